/* cpu_ep.c - what the built-in implementations share. */
#include "cpu/core/cpu_ep.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

sn_status sni_cpu_weight(const sni_choice *c, int i, const sni_tensor **out, sn_error *err) {
    *out = NULL;
    if (i >= c->n_in || !c->constants[i]) return SN_OK;
    const sni_borrow *borrow;
    SN_TRY(sni_pack_borrow(c, i, false, &borrow, err));
    *out = &borrow->tensor;
    return SN_OK;
}

sn_status sni_cpu_unaligned(const sni_choice *c, int i, const sni_unaligned_float **out,
                            sn_error *err) {
    const sni_borrow *borrow;
    SN_TRY(sni_pack_borrow(c, i, true, &borrow, err));
    *out = borrow->tensor.data;
    return SN_OK;
}

sn_status sni_cpu_words(const sni_choice *c, int n, const size_t *counts, void **out, bool *filled,
                        sn_error *err) {
    size_t bytes[SNI_MOST_BLOBS] = {0};
    void *data[SNI_MOST_BLOBS] = {0};
    if (n > SNI_MOST_BLOBS) return sni_fail(err, SN_INTERNAL, "%d blobs at once", n);
    for (int i = 0; i < n; i++)
        if (!sni_mul_size(counts[i] ? counts[i] : 1, 4, &bytes[i]))
            return sni_fail(err, SN_LIMIT, "%zu packed elements are too many", counts[i]);
    SN_TRY(sni_pack_alloc_all(c, n, bytes, data, filled, err));
    for (int i = 0; i < n; i++) out[i] = data[i];
    return SN_OK;
}

sn_status sni_cpu_floats(const sni_choice *c, size_t count, float **out, bool *filled,
                         sn_error *err) {
    void *data = NULL;
    SN_TRY(sni_cpu_words(c, 1, &count, &data, filled, err));
    *out = data;
    return SN_OK;
}

sn_status sni_cpu_keep(const void *made, size_t size, void **state, sn_error *err) {
    void *kept = malloc(size);
    if (!kept) return sni_fail_memory(err);
    memcpy(kept, made, size);
    *state = kept;
    return SN_OK;
}
