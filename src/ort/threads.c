/* threads.c - functions of a program that make and join threads. The engine has one pool for the
 * process: the newest functions that a session or the environment still holds are those it uses. */
#include "ort/ort.h"

#include <stdlib.h>

struct ort_maker {
    ort_thread_fns fns;
    size_t holders;
    ort_maker *older;
};

static struct {
    pthread_mutex_t lock; /* guards the list; held while the pool changes hands */
    ort_maker *newest;
} makers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A handle is the program's pointer to const and goes through the engine unread. */
typedef union handle {
    OrtCustomThreadHandle theirs;
    void *ours;
} handle;

/* An sn_thread_functions.create: a thread of the program that runs work(arg). */
static void *create(void *ctx, void (*work)(void *arg), void *arg) {
    const ort_maker *m = ctx;
    handle h = {.theirs = m->fns.create(m->fns.options, work, arg)};
    return h.ours;
}

/* Waits for a thread of create(). */
static void join(void *ctx, void *thread) {
    const ort_maker *m = ctx;
    handle h = {.ours = thread};
    m->fns.join(h.theirs);
}

/* With the lock held. `m` NULL: the engine's own threads. */
static OrtStatus *install(ort_maker *m) {
    sn_error err;
    sn_thread_functions functions = {.create = create, .join = join, .ctx = m};
    return sn_use_thread_functions(m ? &functions : NULL, &err) == SN_OK ? NULL : ort_fail_sn(&err);
}

/* Sessions with the same functions and options share a maker. */
static bool same(const ort_thread_fns *a, const ort_thread_fns *b) {
    return a->create == b->create && a->join == b->join && a->options == b->options;
}

/* A new maker with one holder, which becomes the newest and makes the threads from now on. With the
 * lock held. */
static OrtStatus *add(const ort_thread_fns *fns, ort_maker **out) {
    ort_maker *m = calloc(1, sizeof *m);
    if (!m) return ort_fail_memory();
    *m = (ort_maker){.fns = *fns, .holders = 1, .older = makers.newest};
    OrtStatus *failed = install(m);
    if (failed) {
        free(m);
        return failed;
    }
    makers.newest = m;
    *out = m;
    return NULL;
}

OrtStatus *ort_threads_hold(const ort_thread_fns *fns, ort_maker **out) {
    if (!fns->create) {
        *out = NULL;
        return NULL;
    }
    if (!fns->join)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "there is a function that creates threads, but none that joins them");
    pthread_mutex_lock(&makers.lock);
    ort_maker *m = makers.newest;
    while (m && !same(&m->fns, fns)) m = m->older;
    OrtStatus *failed = NULL;
    if (m) {
        m->holders++;
        *out = m;
    } else {
        failed = add(fns, out);
    }
    pthread_mutex_unlock(&makers.lock);
    return failed;
}

void ort_threads_release(ort_maker *maker) {
    if (!maker) return;
    pthread_mutex_lock(&makers.lock);
    if (--maker->holders == 0) {
        ort_maker **at = &makers.newest;
        while (*at != maker) at = &(*at)->older;
        bool in_use = maker == makers.newest;
        *at = maker->older;
        OrtStatus *failed = in_use ? install(makers.newest) : NULL;
        if (!failed) free(maker); /* otherwise the pool still uses it */
        ort_ReleaseStatus(failed);
    }
    pthread_mutex_unlock(&makers.lock);
}

/* ---- Options of sessions and of the environment ---- */

OrtStatusPtr
ort_SessionOptionsSetCustomCreateThreadFn(OrtSessionOptions *options,
                                          OrtCustomCreateThreadFn ort_custom_create_thread_fn) {
    NEED(options);
    options->thread_fns.create = ort_custom_create_thread_fn;
    return NULL;
}

OrtStatusPtr
ort_SessionOptionsSetCustomThreadCreationOptions(OrtSessionOptions *options,
                                                 void *ort_custom_thread_creation_options) {
    NEED(options);
    options->thread_fns.options = ort_custom_thread_creation_options;
    return NULL;
}

OrtStatusPtr
ort_SessionOptionsSetCustomJoinThreadFn(OrtSessionOptions *options,
                                        OrtCustomJoinThreadFn ort_custom_join_thread_fn) {
    NEED(options);
    options->thread_fns.join = ort_custom_join_thread_fn;
    return NULL;
}

OrtStatusPtr
ort_SetGlobalCustomCreateThreadFn(OrtThreadingOptions *tp_options,
                                  OrtCustomCreateThreadFn ort_custom_create_thread_fn) {
    NEED(tp_options);
    tp_options->fns.create = ort_custom_create_thread_fn;
    return NULL;
}

OrtStatusPtr ort_SetGlobalCustomThreadCreationOptions(OrtThreadingOptions *tp_options,
                                                      void *ort_custom_thread_creation_options) {
    NEED(tp_options);
    tp_options->fns.options = ort_custom_thread_creation_options;
    return NULL;
}

OrtStatusPtr ort_SetGlobalCustomJoinThreadFn(OrtThreadingOptions *tp_options,
                                             OrtCustomJoinThreadFn ort_custom_join_thread_fn) {
    NEED(tp_options);
    tp_options->fns.join = ort_custom_join_thread_fn;
    return NULL;
}
