/* Clip: y = min(max(x, low), high). If low is above high, y is high everywhere. */
#include "ops/core/convert.h"
#include "ops/core/elementwise.h"

#include <inttypes.h>
#include <math.h>

#define BODY "ops/math/clip.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

typedef union range {
    double f64[2];
    uint64_t u64[2];
} range;

static sn_status read_end(sni_kernel *k, int input, sn_dtype as, void *end) {
    const sni_tensor *t = sni_in(k, input);
    if (!t) return SN_OK;
    if (t->count != 1)
        return SNI_KERNEL_FAIL(k, "'%s' has %" PRId64 " elements instead of one",
                               input == 1 ? "min" : "max", t->count);
    sni_convert(t->dtype, t->data, as, end, 1, NULL);
    return SN_OK;
}

static sn_status clip_ref(sni_kernel *k) {
    static const sni_unary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(clip)};
    static void (*const widest[SNI_DTYPE_COUNT])(void *) = {SNI_EACH_NUMBER(widest)};
    const sni_tensor *x = sni_in(k, 0);
    sn_dtype as = sni_compute_type(x->dtype);
    range r;
    widest[as](&r);
    SN_TRY(read_end(k, 1, as, &r));
    SN_TRY(read_end(k, 2, as, (unsigned char *)&r + sni_dtype_width(as)));
    sni_elementwise e = {.n_in = 1,
                         .in = {x},
                         .in_as = {as},
                         .out = sni_out(k, 0),
                         .out_as = as,
                         .unary = fns[as],
                         .params = &r};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

const sni_op sni_op_Clip = {
    .name = "Clip",
    .versions = SNI_VERSIONS(1, 6, 11, 12, 13),
    .inputs = SNI_FORMALS({"input", "T"}, {"min", "T", SNI_OPTIONAL}, {"max", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .inplace = 1,
    .moves = SNI_ATTR_MOVES({"min", 11, 1}, {"max", 11, 2}),
    .infer = sni_infer_same,
    .ref = clip_ref,
};
