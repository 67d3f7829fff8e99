/* resident.c - tensors that stay on a device from part to part. The run keeps a list of them, found
 * by the address that the plan has given them on the host, where nobody looks. */
#include "api/provider/provider.h"

#include <stdlib.h>

typedef struct residents {
    sni_resident *first;
} residents;

static void free_residents(void *state) {
    residents *all = state;
    for (sni_resident *x = all->first, *next; x; x = next) {
        next = x->next;
        sni_engine_free(x->engine, x->block);
        free(x);
    }
    free(all);
}

static residents *residents_of(const sni_kernel *k) {
    sni_run_extra *extra = k->host->extra ? k->host->extra(k) : NULL;
    if (!extra) return NULL;
    if (!extra->state) {
        extra->state = calloc(1, sizeof(residents));
        extra->free = free_residents;
    }
    return extra->state;
}

sni_resident *sni_resident_find(const sni_kernel *k, const sni_engine *engine,
                                const sni_tensor *t) {
    const residents *all = residents_of(k);
    size_t bytes = sni_tensor_bytes(t);
    for (sni_resident *x = all ? all->first : NULL; x && bytes; x = x->next)
        if (x->address == t->data && x->bytes == bytes && x->engine == engine) return x;
    return NULL;
}

void sni_resident_leave(const sni_kernel *k, sni_resident *x) {
    residents *all = residents_of(k);
    if (--x->left > 0) return;
    sni_resident **at = &all->first;
    while (*at != x) at = &(*at)->next;
    *at = x->next;
    sni_engine_free(x->engine, x->block);
    free(x);
}

sn_status sni_resident_add(const sni_kernel *k, const sni_resident *wanted) {
    residents *all = residents_of(k);
    sni_resident *x = calloc(1, sizeof *x);
    if (!x || !all) {
        free(x);
        return sni_fail_memory(k->err);
    }
    *x = *wanted;
    x->next = all->first;
    all->first = x;
    return SN_OK;
}
