/* qmoe.c - QMoE whose experts' weights are part of the model: their products with packed weights of
 * few bits. Routing and activations are those of the reference kernel. */
#include "base/checked.h"
#include "base/lengths.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/lowbit/lowbit.h"
#include "ops/core/kernel_hooks.h"
#include "ops/nn/moe.h"

#include <stdlib.h>

enum { INPUT = 0, LAYERS = SNI_MOE_LAYERS, ROW_BLOCK = 128 /* of rows with one scale */ };

/* Inputs of each layer. */
static const int weights_at[LAYERS] = {2, 5, 8}, scales_at[LAYERS] = {3, 6, 9},
                 zeros_at[LAYERS] = {11, 12, 13};

/* A layer of all experts, whose packed weights follow one another. */
typedef struct layer {
    sni_lowbit w; /* of the first expert; n is 0 if there is no such layer */
    int64_t experts;
    size_t expert_bytes;
} layer;

typedef struct state {
    layer layers[LAYERS];
    bool bytes; /* rows become bytes */
} state;

/* ---- Which nodes ---- */

static const sni_tensor *constant(const sni_choice *c, int i) {
    return sni_choice_given(c, i) && c->constants[i] ? &c->constants[i]->tensor : NULL;
}

static bool is_float(sn_dtype dtype) {
    return dtype == SN_FLOAT32 || dtype == SN_FLOAT16 || dtype == SN_BFLOAT16;
}

/* Sizes of layer i: false if one of its inputs is not part of the model or they do not fit. */
static bool read_layer(const sni_choice *c, int i, layer *l) {
    const sni_moe_params *p = c->params;
    const sni_tensor *w = constant(c, weights_at[i]), *scales = constant(c, scales_at[i]),
                     *zeros = constant(c, zeros_at[i]);
    *l = (layer){{0}, 0, 0};
    if (!sni_choice_given(c, weights_at[i])) return i == LAYERS - 1;
    if (!w || !scales || w->rank != 3 || w->count < 1 || w->dims[2] > INT32_MAX ||
        !is_float(scales->dtype))
        return false;
    const int64_t of_byte = 8 / p->bits, k = w->dims[2] * of_byte, n = w->dims[1];
    const int64_t group = p->block_size ? p->block_size : k, groups = k / group;
    const int64_t rows = p->block_size ? w->dims[0] * n : w->dims[0];
    int64_t count = rows * sni_ceil_div(p->block_size ? groups : n, of_byte), all;
    if (k % group || !sni_mul_i64(w->dims[0] * n, groups, &all) || scales->count != all)
        return false;
    if (sni_choice_given(c, zeros_at[i]) && (!zeros || zeros->count != count)) return false;
    int64_t block = p->block_size ? sni_min(group, SNI_LOWBIT_BLOCK) : ROW_BLOCK;
    l->experts = w->dims[0];
    l->w = (sni_lowbit){.bits = (int)p->bits,
                        .n = n,
                        .k = k,
                        .block = block,
                        .blocks = sni_ceil_div(k, block),
                        .zero = zeros ? SNI_LOWBIT_BYTES : SNI_LOWBIT_MIDDLE,
                        .half_scales = scales->dtype == SN_FLOAT16};
    return sni_lowbit_layout(&l->w) &&
           sni_mul_size(l->w.panel_bytes, (size_t)sni_lowbit_panels(&l->w), &l->expert_bytes) &&
           l->expert_bytes < SIZE_MAX / 2 / (size_t)l->experts;
}

static bool accepts(const sni_choice *c) {
    layer l;
    if (!sni_choice_is(c, INPUT, SN_FLOAT32) && !sni_choice_is(c, INPUT, SN_FLOAT16) &&
        !sni_choice_is(c, INPUT, SN_BFLOAT16))
        return false;
    for (int i = 0; i < LAYERS; i++)
        if (!read_layer(c, i, &l)) return false;
    return true;
}

/* ---- Weights ---- */

/* Where expert e's packed weights are. */
static sni_lowbit expert_of(const layer *l, int64_t e) {
    sni_lowbit w = l->w;
    w.panels += (size_t)e * l->expert_bytes;
    w.plain += e * w.n;
    return w;
}

/* Zero points of an expert's rows, one after the other in bits, a byte each. */
static void spread_zeros(const layer *l, const uint8_t *packed, uint8_t *to) {
    const int64_t bits = l->w.bits, of_byte = 8 / bits;
    for (int64_t j = 0; j < l->w.n; j++)
        to[j] = (uint8_t)(packed[j / of_byte] >> j % of_byte * bits & ((1 << bits) - 1));
}

static sn_status pack_layer(const sni_choice *c, int i, const layer *l, sn_error *err) {
    const sni_moe_params *p = c->params;
    const sni_tensor *q, *scales, *zeros;
    const int64_t of_byte = 8 / p->bits, n = l->w.n, k = l->w.k;
    SN_TRY(sni_cpu_weight(c, weights_at[i], &q, err));
    SN_TRY(sni_cpu_weight(c, scales_at[i], &scales, err));
    SN_TRY(sni_cpu_weight(c, zeros_at[i], &zeros, err));
    sni_lowbit_source from = {.row_bytes = k / of_byte,
                              .group = p->block_size ? p->block_size : k,
                              .scale_type = scales->dtype};
    from.groups = k / from.group;
    from.zero_bytes = p->block_size ? sni_ceil_div(from.groups, of_byte) : 1;
    uint8_t *spread = zeros && !p->block_size ? malloc((size_t)n) : NULL;
    if (zeros && !p->block_size && !spread) return sni_fail_memory(err);
    for (int64_t e = 0; e < l->experts; e++) {
        const sni_lowbit w = expert_of(l, e);
        const int64_t scale_bytes = n * from.groups * (int64_t)sni_dtype_width(scales->dtype);
        from.q = (const uint8_t *)q->data + e * n * from.row_bytes;
        from.scales = (const uint8_t *)scales->data + e * scale_bytes;
        if (spread) {
            spread_zeros(l, (const uint8_t *)zeros->data + e * sni_ceil_div(n, of_byte), spread);
            from.zeros = spread;
        } else if (zeros) {
            from.zeros = (const uint8_t *)zeros->data + e * n * from.zero_bytes;
        }
        sni_lowbit_pack(&w, &from, 0);
    }
    free(spread);
    return SN_OK;
}

static sn_status prepare(const sni_choice *c, void **out, sn_error *err) {
    state s = {.bytes = ((const sni_moe_params *)c->params)->accuracy_level == 4};
    size_t bytes[2 * LAYERS];
    void *pieces[2 * LAYERS];
    bool filled;
    int n = 0, at = 0;
    for (int i = 0; i < LAYERS; i++) {
        if (!read_layer(c, i, &s.layers[i]))
            return sni_fail(err, SN_INTERNAL, "layer %d has other weights than before", i + 1);
        if (!s.layers[i].w.n) continue;
        bytes[n++] = (size_t)s.layers[i].experts * s.layers[i].expert_bytes;
        bytes[n++] = (size_t)(s.layers[i].experts * s.layers[i].w.n);
    }
    SN_TRY(sni_pack_alloc_all(c, n, bytes, pieces, &filled, err));
    for (int i = 0; i < LAYERS; i++) {
        if (!s.layers[i].w.n) continue;
        s.layers[i].w.panels = pieces[at++];
        s.layers[i].w.plain = pieces[at++];
        if (!filled) SN_TRY(pack_layer(c, i, &s.layers[i], err));
    }
    return sni_cpu_keep(&s, sizeof s, out, err);
}

/* ---- Running ---- */

/* The hooks of one run, and what its products share. */
typedef struct qmoe_run {
    sni_kernel_hooks hooks; /* the first member: k->hooks points to it */
    void *scratch;
} qmoe_run;

static sn_status multiply(sni_kernel *k, const sni_expert_product *p) {
    const state *s = k->state;
    const qmoe_run *r = (const void *)k->hooks;
    const sni_lowbit w = expert_of(&s->layers[p->layer], p->expert);
    const sni_lowbit_call c = {.w = &w,
                               .m = p->rows,
                               .a = p->x,
                               .bytes = s->bytes,
                               .bias = p->bias,
                               .c = p->y,
                               .threads = k->threads};
    sni_lowbit_run(&c, r->scratch);
    return SN_OK;
}

/* Bytes of scratch for products of up to `tokens` rows; 0: too many. Few rows may need more than
 * more of them. */
static size_t scratch_size(const state *s, int64_t tokens) {
    size_t most = 0;
    for (int i = 0; i < LAYERS; i++)
        for (int64_t m = 1; m <= tokens && s->layers[i].w.n;
             m = m < SNI_LOWBIT_ROWS ? m + 1 : tokens) {
            size_t size = sni_lowbit_scratch_size(
                &(sni_lowbit_call){.w = &s->layers[i].w, .m = m, .bytes = s->bytes});
            if (!size) return 0;
            most = size > most ? size : most;
            if (m == tokens) break;
        }
    return most;
}

static sn_status run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, INPUT);
    qmoe_run r = {.hooks = {.expert = multiply}};
    const int64_t hidden = x->rank ? x->dims[x->rank - 1] : 0,
                  tokens = hidden ? x->count / hidden : 0;
    size_t size = scratch_size(k->state, tokens);
    if (tokens && !size) return SNI_KERNEL_FAIL(k, "%lld tokens are too many", (long long)tokens);
    r.scratch = sni_scratch(k, size ? size : 1);
    if (!r.scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    k->hooks = &r.hooks;
    sn_status status = k->node->op->ref(k);
    k->hooks = NULL;
    return status;
}

static uint64_t packed_bytes(const void *made) {
    const state *s = made;
    uint64_t bytes = 0;
    for (int i = 0; i < LAYERS; i++)
        bytes += (uint64_t)s->layers[i].experts * s->layers[i].expert_bytes;
    return bytes;
}

const sni_impl sni_cpu_qmoe = {.name = "gemm_lowbit",
                               .op = "QMoE",
                               .domain = "com.microsoft",
                               .accepts = accepts,
                               .prepare = prepare,
                               .release = free,
                               .packs = 1 << 2 | 1 << 5 | 1 << 8,
                               .packed_bytes = packed_bytes,
                               .run = run};
