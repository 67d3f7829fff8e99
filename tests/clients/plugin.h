/* plugin.h - what the factories of the test plug-in share. The plug-in is written against the
 * interface alone and runs on any library that has it. */
#ifndef TESTS_CLIENTS_PLUGIN_H
#define TESTS_CLIENTS_PLUGIN_H

#include "ort/ort_ep_abi.h"

extern const OrtApi *ort;
extern const OrtEpApi *ep_api;

#define TRY(expr)                            \
    do {                                     \
        OrtStatus *try_status_ = (expr);     \
        if (try_status_) return try_status_; \
    } while (0)

/* What happened, for the client: counted by name. */
void note(const char *what);

/* An error if the client wants this to fail. */
OrtStatus *fail_at(const char *what);

/* The parts of a factory that all three have. */
typedef struct factory {
    OrtEpFactory base;
    const char *name;
    OrtMemoryInfo *memory;      /* NULL: the host's */
    OrtKernelCreateFunc create; /* of its kernels; NULL: it compiles */
} factory;

void factory_init(factory *f, const char *name);
OrtStatus *new_ep_device(factory *f, const OrtHardwareDevice *const *devices, size_t count,
                         OrtEpDevice **out, size_t *out_count);

void compiling_init(factory *f); /* plugin_compile.c */
void kernels_init(factory *f);   /* plugin_kernel.c */
void device_init(factory *f);    /* plugin_device.c */

/* Dense floats of a tensor: their number. */
OrtStatus *count_of(const OrtValue *value, size_t *count, int64_t *dims, size_t *rank);

/* Makes it one of providers with a registry that has Add and Mul of floats (plugin_registry.c). */
void registry_init(factory *f, OrtKernelCreateFunc create);

#endif
