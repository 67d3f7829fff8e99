/* interop.c - memory and semaphores of other interfaces: none can be imported here, and every
 * function says so by its name. */
#include "ort/ort_ep_abi.h"

#include "ort/ort.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ABSENT(name, parameters)              \
    static OrtStatusPtr name parameters {     \
        return ort_not_implemented(__func__); \
    }
ABSENT(CreateExternalResourceImporterForDevice,
       (const OrtEpDevice *device, OrtExternalResourceImporter **out))
ABSENT(CanImportMemory,
       (const OrtExternalResourceImporter *importer, OrtExternalMemoryHandleType type, bool *out))
ABSENT(ImportMemory, (OrtExternalResourceImporter * importer,
                      const OrtExternalMemoryDescriptor *memory, OrtExternalMemoryHandle **out))
ABSENT(CreateTensorFromMemory,
       (OrtExternalResourceImporter * importer, const OrtExternalMemoryHandle *memory,
        const OrtExternalTensorDescriptor *tensor, OrtValue **out))
ABSENT(CanImportSemaphore,
       (const OrtExternalResourceImporter *importer, OrtExternalSemaphoreType type, bool *out))
ABSENT(ImportSemaphore,
       (OrtExternalResourceImporter * importer, const OrtExternalSemaphoreDescriptor *semaphore,
        OrtExternalSemaphoreHandle **out))
ABSENT(WaitSemaphore, (OrtExternalResourceImporter * importer,
                       OrtExternalSemaphoreHandle *semaphore, OrtSyncStream *stream, uint64_t v))
ABSENT(SignalSemaphore, (OrtExternalResourceImporter * importer,
                         OrtExternalSemaphoreHandle *semaphore, OrtSyncStream *stream, uint64_t v))
ABSENT(InitGraphicsInteropForEpDevice,
       (const OrtEpDevice *device, const OrtGraphicsInteropConfig *config))
ABSENT(DeinitGraphicsInteropForEpDevice, (const OrtEpDevice *device))

/* Nothing of these kinds is ever made. */
static void release_importer(OrtExternalResourceImporter *importer) {
}

static void release_memory(OrtExternalMemoryHandle *memory) {
}

static void release_semaphore(OrtExternalSemaphoreHandle *semaphore) {
}
#pragma GCC diagnostic pop

const OrtInteropApi *ort_GetInteropApi(void) {
    static const OrtInteropApi api = {
        .CreateExternalResourceImporterForDevice = CreateExternalResourceImporterForDevice,
        .ReleaseExternalResourceImporter = release_importer,
        .CanImportMemory = CanImportMemory,
        .ImportMemory = ImportMemory,
        .ReleaseExternalMemoryHandle = release_memory,
        .CreateTensorFromMemory = CreateTensorFromMemory,
        .CanImportSemaphore = CanImportSemaphore,
        .ImportSemaphore = ImportSemaphore,
        .ReleaseExternalSemaphoreHandle = release_semaphore,
        .WaitSemaphore = WaitSemaphore,
        .SignalSemaphore = SignalSemaphore,
        .InitGraphicsInteropForEpDevice = InitGraphicsInteropForEpDevice,
        .DeinitGraphicsInteropForEpDevice = DeinitGraphicsInteropForEpDevice,
    };
    return &api;
}
