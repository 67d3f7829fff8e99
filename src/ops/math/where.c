/* Where: elements of one of two tensors, chosen by a tensor of bools. */
#include "ops/core/elementwise.h"

#define BODY "ops/math/where.inc.c"
#include "ops/core/each_uint.inc.h"
typedef struct wide {
    uint64_t half[2];
} wide;
#define T wide
#define SUFFIX wide
#include BODY
#undef T
#undef SUFFIX
#undef BODY

_Static_assert(sizeof(sni_str) == sizeof(wide), "strings move as 16 bytes");

static sn_status where_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 1);
    sni_ternary_fn fn = choose_wide;
    switch (sni_dtype_width(x->dtype)) {
    case 1:
        fn = choose_u8;
        break;
    case 2:
        fn = choose_u16;
        break;
    case 4:
        fn = choose_u32;
        break;
    case 8:
        fn = choose_u64;
        break;
    default:
        break;
    }
    sni_elementwise e = {.n_in = 3,
                         .in = {sni_in(k, 0), x, sni_in(k, 2)},
                         .in_as = {SN_BOOL, x->dtype, x->dtype},
                         .out = sni_out(k, 0),
                         .out_as = x->dtype,
                         .ternary = fn};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

enum { MOST_DIMS = 64 };

/* Lists of dimensions are followed where the condition, or the equality of both sides, decides. */
static sn_status where_infer(sni_infer *c) {
    SN_TRY(sni_infer_broadcast(c));
    const sni_dim *in[3];
    int32_t count[3], most = 1;
    for (int i = 0; i < 3; i++) {
        SN_TRY(sni_infer_dims(c, i, &in[i], &count[i]));
        if (i == 0 && !in[i]) continue; /* an unknown condition */
        if (!in[i] || count[i] < 1 || count[i] > MOST_DIMS) return SN_OK;
        if (count[i] > most) most = count[i];
    }
    sni_dim chosen[MOST_DIMS];
    for (int32_t j = 0; j < most; j++) {
        sni_dim at[3] = {SNI_DIM_SYMBOL, 0, 0};
        for (int i = 0; i < 3; i++) {
            if (!in[i]) continue;
            if (count[i] != 1 && count[i] != most) return SN_OK;
            at[i] = in[i][count[i] == 1 ? 0 : j];
        }
        if (!sni_dim_is_symbol(at[0]))
            chosen[j] = at[0] ? at[1] : at[2];
        else
            chosen[j] = at[1] == at[2] ? at[1] : sni_dim_fresh(c->symbols);
    }
    return sni_infer_set_dims(c, 0, most, chosen);
}

const sni_op sni_op_Where = {
    .name = "Where",
    .versions = SNI_VERSIONS(9, 16),
    .inputs = SNI_FORMALS({"condition", "bool"}, {"X", "T"}, {"Y", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .inplace = 7,
    .infer = where_infer,
    .ref = where_ref,
};
