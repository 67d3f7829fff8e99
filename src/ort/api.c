/* api.c - the exported entry point, the table of functions, and a record of which were called. */
#include "ort/ep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_TEXT "1.30.0" /* what clients compare with the version they were written for */

const OrtApi ort_api = {
#define ORT_SLOT(since, ret, name, parameters, arguments) .name = ort_##name,
#define ORT_STUB ORT_SLOT
#include "ort/ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB
};

_Static_assert(sizeof(OrtApi) == ORT_SLOT_COUNT * sizeof(void (*)(void)), "slots of OrtApi");

/* ---- Functions that do not exist here ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ORT_SLOT(since, ret, name, parameters, arguments)
#define ORT_STUB(since, ret, name, parameters, arguments) \
    ret ort_##name parameters {                           \
        return ort_not_implemented(__func__);             \
    }
#include "ort/ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB
#pragma GCC diagnostic pop

/* ---- The record: SINTER_ORT_TRACE=FILE writes a line per called slot when the process ends ----
 */

enum {
#define ORT_SLOT(since, ret, name, parameters, arguments) SLOT_##name,
#define ORT_STUB ORT_SLOT
#include "ort/ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB
};

static const struct slot {
    const char *name;
    bool stub;
} slots[] = {
#define ORT_SLOT(since, ret, name, parameters, arguments) {#name, false},
#define ORT_STUB(since, ret, name, parameters, arguments) {#name, true},
#include "ort/ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB
};

static atomic_ulong calls[ORT_SLOT_COUNT];

#define ORT_SLOT(since, ret, name, parameters, arguments)                        \
    static ret traced_##name parameters {                                        \
        atomic_fetch_add_explicit(&calls[SLOT_##name], 1, memory_order_relaxed); \
        return ort_##name arguments;                                             \
    }
#define ORT_STUB ORT_SLOT
#include "ort/ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB

static const OrtApi traced_api = {
#define ORT_SLOT(since, ret, name, parameters, arguments) .name = traced_##name,
#define ORT_STUB ORT_SLOT
#include "ort/ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB
};

/* ---- The same of the table that plug-ins call ---- */

enum {
#define ORT_EP_SLOT(since, ret, name, parameters, arguments) EP_SLOT_##name,
#define ORT_EP_STUB ORT_EP_SLOT
#include "ort/ort_ep_slots.def"
#undef ORT_EP_SLOT
#undef ORT_EP_STUB
    EP_SLOT_COUNT
};

static const struct slot ep_slots[] = {
#define ORT_EP_SLOT(since, ret, name, parameters, arguments) {#name, false},
#define ORT_EP_STUB(since, ret, name, parameters, arguments) {#name, true},
#include "ort/ort_ep_slots.def"
#undef ORT_EP_SLOT
#undef ORT_EP_STUB
};

static atomic_ulong ep_calls[EP_SLOT_COUNT];

#define ORT_EP_SLOT(since, ret, name, parameters, arguments)                           \
    static ret traced_ep_##name parameters {                                           \
        atomic_fetch_add_explicit(&ep_calls[EP_SLOT_##name], 1, memory_order_relaxed); \
        return ort_ep_##name arguments;                                                \
    }
#define ORT_EP_STUB ORT_EP_SLOT
#include "ort/ort_ep_slots.def"
#undef ORT_EP_SLOT
#undef ORT_EP_STUB

static const OrtEpApi traced_ep_api = {
#define ORT_EP_SLOT(since, ret, name, parameters, arguments) .name = traced_ep_##name,
#define ORT_EP_STUB ORT_EP_SLOT
#include "ort/ort_ep_slots.def"
#undef ORT_EP_SLOT
#undef ORT_EP_STUB
};

static const char *trace_file;
static pthread_once_t trace_once = PTHREAD_ONCE_INIT;

/* Called when the process ends: number, name and calls of every slot that was called. */
static void write_trace(void) {
    FILE *f = fopen(trace_file, "a");
    if (!f) return;
    for (int i = 0; i < ORT_SLOT_COUNT; i++) {
        unsigned long n = atomic_load(&calls[i]);
        if (n) fprintf(f, "%d\t%s\t%lu\t%s\n", i, slots[i].name, n, slots[i].stub ? "stub" : "");
    }
    for (int i = 0; i < EP_SLOT_COUNT; i++) {
        unsigned long n = atomic_load(&ep_calls[i]);
        if (n)
            fprintf(f, "ep %d\t%s\t%lu\t%s\n", i, ep_slots[i].name, n,
                    ep_slots[i].stub ? "stub" : "");
    }
    fclose(f);
}

/* Called once, before the first table is handed out. */
static void start_trace(void) {
    const char *name = getenv("SINTER_ORT_TRACE");
    if (!name || !*name) return;
    trace_file = strdup(name);
    if (trace_file && atexit(write_trace) != 0) trace_file = NULL;
}

/* ---- The entry point ---- */

/* The table, or NULL with a word on stderr for a version that does not exist yet. Older versions
 * are beginnings of the same table. */
static const OrtApi *get_api(uint32_t version) {
    if (version > ORT_API_VERSION) {
        fprintf(stderr,
                "libonnxruntime.so.1 (Sinter): version %u of the interface is asked for and %d is "
                "the newest that this library has\n",
                (unsigned)version, ORT_API_VERSION);
        return NULL;
    }
    pthread_once(&trace_once, start_trace);
    return trace_file ? &traced_api : &ort_api;
}

const OrtEpApi *ort_GetEpApi(void) {
    return trace_file ? &traced_ep_api : &ort_ep_api;
}

static const char *get_version(void) {
    return VERSION_TEXT;
}

const OrtApiBase ort_api_base = {.GetApi = get_api, .GetVersionString = get_version};

const OrtApiBase *OrtGetApiBase(void) {
    return &ort_api_base;
}

const char *ort_GetBuildInfoString(void) {
    return "ORT Build Info: Sinter, interface version " VERSION_TEXT;
}
