/* cpu_ep.c - what the built-in implementations share. */
#include "ep/cpu/cpu_ep.h"

#include "base/checked.h"

sn_status sni_cpu_weight(const sni_choice *c, int i, const sni_tensor **out, sn_error *err) {
    *out = NULL;
    if (i >= c->n_in || !c->constants[i]) return SN_OK;
    const sni_loan *loan;
    SN_TRY(sni_pack_borrow(c, i, false, &loan, err));
    *out = &loan->tensor;
    return SN_OK;
}

sn_status sni_cpu_loose(const sni_choice *c, int i, const sni_loose_float **out, sn_error *err) {
    const sni_loan *loan;
    SN_TRY(sni_pack_borrow(c, i, true, &loan, err));
    *out = loan->tensor.data;
    return SN_OK;
}

sn_status sni_cpu_floats(const sni_choice *c, size_t count, float **out, bool *filled,
                         sn_error *err) {
    size_t bytes;
    void *data;
    if (!sni_mul_size(count ? count : 1, sizeof(float), &bytes))
        return sni_fail(err, SN_LIMIT, "%zu packed elements are too many", count);
    SN_TRY(sni_pack_alloc(c, bytes, &data, filled, err));
    *out = data;
    return SN_OK;
}
