/* ByteTable: Y = T[X] for tensors of bytes, what a chain of operators on one of them makes of each
 * byte (opt/byte_tables.c). T has 256 elements; the bits of a byte, without a sign, are its place.
 */
#include "ops/core/elementwise.h"
#include "ops/quant/qlinear.h"
#include "ops/sinter/blocked.h"

static void look_up(const void *x, void *y, int64_t n, const void *params) {
    const uint8_t *table = params, *src = x;
    uint8_t *dst = y;
    for (int64_t i = 0; i < n; i++) dst[i] = table[src[i]];
}

static sn_status table_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *t = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    if (t->count != 256)
        return SNI_KERNEL_FAIL(k, "the table has %lld elements, not 256", (long long)t->count);
    sni_elementwise e = {.n_in = 1,
                         .in = {x},
                         .in_as = {x->dtype},
                         .out = y,
                         .out_as = y->dtype,
                         .unary = look_up,
                         .params = t->data};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

const sni_op sni_op_sinter_ByteTable = {
    .name = "ByteTable",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"T", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .inplace = 1,
    .infer = sni_infer_same,
    .ref = table_ref,
};
