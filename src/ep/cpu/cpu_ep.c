/* cpu_ep.c - what the built-in implementations share. */
#include "ep/cpu/cpu_ep.h"

#include "base/checked.h"

#include <stdlib.h>

sn_status sni_cpu_weight(const sni_choice *c, int i, const sni_tensor **out, sn_error *err) {
    *out = NULL;
    if (i >= c->n_in || !c->constants[i]) return SN_OK;
    return sni_const_load(c->constants[i], out, err);
}

sn_status sni_cpu_floats(size_t count, float **out, sn_error *err) {
    size_t bytes;
    if (!sni_mul_size(count, sizeof(float), &bytes) || !sni_add_size(bytes, SNI_ALIGN, &bytes))
        return sni_fail(err, SN_LIMIT, "%zu packed elements are too many", count);
    float *p = aligned_alloc(SNI_ALIGN, bytes & ~(size_t)(SNI_ALIGN - 1));
    if (!p) return sni_fail_memory(err);
    *out = p;
    return SN_OK;
}
