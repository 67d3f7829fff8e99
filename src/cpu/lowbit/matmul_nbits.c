/* matmul_nbits.c - MatMulNBits and MatMulBnb4 with weights that are part of the model. */
#include "base/checked.h"
#include "base/lengths.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/lowbit/lowbit.h"
#include "ops/core/compute.h"
#include "ops/quant/nbits.h"
#include "ops/quant/quant.h"

#include <stdlib.h>

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

typedef struct state {
    sni_lowbit w;
    int32_t *order; /* malloc; what w.order is */
    bool bytes;     /* rows of A become bytes */
} state;

static void release(void *s) {
    if (!s) return;
    free(((state *)s)->order);
    free(s);
}

/* ---- Which nodes ---- */

static bool is_float(const sni_choice *c, int i) {
    return sni_choice_is(c, i, SN_FLOAT32) || sni_choice_is(c, i, SN_FLOAT16) ||
           sni_choice_is(c, i, SN_BFLOAT16);
}

/* True if input i is part of the model and has so many elements. */
static bool is_constant(const sni_choice *c, int i, int64_t count) {
    return sni_choice_given(c, i) && c->constants[i] && c->constants[i]->tensor.count == count;
}

static int64_t zero_bytes(const sni_nbits_params *p, int64_t groups) {
    return (groups * p->bits + 7) / 8;
}

static bool accepts_zeros(const sni_choice *c, int64_t groups) {
    const sni_nbits_params *p = c->params;
    if (!sni_choice_given(c, ZEROS)) return true;
    if (sni_choice_is(c, ZEROS, SN_UINT8))
        return is_constant(c, ZEROS, p->n * zero_bytes(p, groups));
    return is_float(c, ZEROS) && is_constant(c, ZEROS, p->n * groups);
}

static bool nbits_accepts(const sni_choice *c) {
    const sni_nbits_params *p = c->params;
    if (p->bits != 2 && p->bits != 4 && p->bits != 8) return false;
    if (p->k > INT32_MAX || !is_float(c, A) || !is_float(c, SCALES)) return false;
    int64_t groups = sni_ceil_div(p->k, p->block_size), count;
    if (!sni_mul_i64(groups * p->n, p->block_size / 8 * p->bits, &count)) return false;
    if (!is_constant(c, B, count) || !is_constant(c, SCALES, p->n * groups)) return false;
    return accepts_zeros(c, groups) &&
           (!sni_choice_given(c, GROUPS) || is_constant(c, GROUPS, p->k) ||
            is_constant(c, GROUPS, groups * p->block_size));
}

/* ---- Weights ---- */

/* Memory for what is packed, and whether scales are narrow: a file that brings them says so by its
 * size. */
static sn_status allocate(const sni_choice *c, const sni_lowbit_source *from, sni_lowbit *w,
                          bool *filled, sn_error *err) {
    sni_lowbit half = *w, whole = *w;
    half.half_scales = true;
    if (!sni_lowbit_layout(&half) || !sni_lowbit_layout(&whole))
        return sni_fail(err, SN_LIMIT, "the packed weights are too large");
    size_t panels = (size_t)sni_lowbit_panels(w), given = sni_pack_given(c);
    bool is_half = given == panels * half.panel_bytes ||
                   (given != panels * whole.panel_bytes && sni_lowbit_halves(w, from));
    *w = is_half ? half : whole;
    size_t bytes[2] = {panels * w->panel_bytes, (size_t)w->n};
    void *pieces[2];
    SN_TRY(sni_pack_alloc_all(c, 2, bytes, pieces, filled, err));
    w->panels = pieces[0];
    w->plain = pieces[1];
    return SN_OK;
}

/* Packs what `from` describes; its scales and elements are inputs 2 and 1. */
static sn_status pack(const sni_choice *c, sni_lowbit_source *from, sni_lowbit *w, sn_error *err) {
    const sni_tensor *t;
    bool filled;
    SN_TRY(sni_cpu_weight(c, SCALES, &t, err));
    from->scales = t->data;
    from->scale_type = t->dtype;
    SN_TRY(allocate(c, from, w, &filled, err));
    if (filled) return SN_OK;
    SN_TRY(sni_cpu_weight(c, B, &t, err));
    from->q = t->data;
    sni_lowbit_pack(w, from, 0);
    return SN_OK;
}

/* ---- Groups by g_idx ---- */

/* Elements in order of their groups, each group filled up to whole blocks. */
typedef struct grouping {
    int32_t *order;    /* (blocks * block), -1: nothing */
    int32_t *group_of; /* (blocks) */
    int64_t blocks;
} grouping;

static int64_t count_blocks(const int32_t *group, int64_t k, int64_t block, int64_t *counts,
                            int64_t groups) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < k; i++) counts[group[i]]++;
    for (int64_t g = 0; g < groups; g++) {
        int64_t first = blocks;
        blocks += sni_ceil_div(counts[g], block);
        counts[g] = first * block; /* where the group's next element goes */
    }
    return blocks;
}

static sn_status order_groups(const sni_choice *c, int64_t groups, int64_t block, grouping *out,
                              sn_error *err) {
    const sni_nbits_params *p = c->params;
    const sni_tensor *t;
    SN_TRY(sni_cpu_weight(c, GROUPS, &t, err));
    const int32_t *group = t->data;
    SN_TRY(sni_nbits_check_groups(group, p->k, groups, err));
    int64_t *next = calloc((size_t)groups, sizeof *next);
    if (!next) return sni_fail_memory(err);
    *out = (grouping){.blocks = count_blocks(group, p->k, block, next, groups)};
    out->order = malloc((size_t)(out->blocks * block) * sizeof *out->order);
    out->group_of = malloc((size_t)out->blocks * sizeof *out->group_of);
    bool made = out->order && out->group_of;
    if (made) memset(out->order, 0xff, (size_t)(out->blocks * block) * sizeof *out->order);
    for (int64_t i = 0; made && i < p->k; i++) {
        int64_t at = next[group[i]]++;
        out->order[at] = (int32_t)i;
        out->group_of[at / block] = group[i];
    }
    free(next);
    if (made) return SN_OK;
    free(out->order);
    free(out->group_of);
    return sni_fail_memory(err);
}

/* ---- MatMulNBits ---- */

static sn_status read_zeros(const sni_choice *c, sni_lowbit_source *from, sni_lowbit *w,
                            sn_error *err) {
    const sni_tensor *t;
    SN_TRY(sni_cpu_weight(c, ZEROS, &t, err));
    if (!t) return SN_OK;
    if (t->dtype == SN_UINT8) {
        w->zero = SNI_LOWBIT_BYTES;
        from->zeros = t->data;
        from->zero_bytes = zero_bytes(c->params, from->groups);
        return SN_OK;
    }
    w->zero = SNI_LOWBIT_FLOATS;
    from->zero_numbers = t->data;
    from->zero_type = t->dtype;
    return SN_OK;
}

static sn_status nbits_prepare(const sni_choice *c, void **out, sn_error *err) {
    const sni_nbits_params *p = c->params;
    state s = {.bytes = p->accuracy_level == 4};
    s.w = (sni_lowbit){.bits = (int)p->bits,
                       .n = p->n,
                       .k = p->k,
                       .block = sni_min(p->block_size, SNI_LOWBIT_BLOCK)};
    sni_lowbit_source from = {.group = p->block_size, .groups = sni_ceil_div(p->k, p->block_size)};
    grouping groups = {NULL, NULL, sni_ceil_div(p->k, s.w.block)};
    from.row_bytes = from.groups * (p->block_size / 8 * p->bits);
    SN_TRY(read_zeros(c, &from, &s.w, err));
    if (sni_choice_given(c, GROUPS)) SN_TRY(order_groups(c, from.groups, s.w.block, &groups, err));
    s.w.blocks = groups.blocks;
    from.order = s.w.order = s.order = groups.order;
    from.group_of = groups.group_of;
    sn_status status = pack(c, &from, &s.w, err);
    free(groups.group_of);
    if (status == SN_OK) status = sni_cpu_keep(&s, sizeof s, out, err);
    if (status != SN_OK) free(groups.order);
    return status;
}

static bool stopping(const void *kernel) {
    return sni_stopping(kernel);
}

static sn_status run(sni_kernel *k) {
    const state *s = k->state;
    const sni_tensor *a = sni_in(k, A), *bias = sni_in(k, BIAS);
    sni_tensor *y = sni_out(k, 0);
    const void *rows, *added;
    void *out;
    if (bias && bias->count != s->w.n)
        return SNI_KERNEL_FAIL(k, "bias has %lld elements, not %lld", (long long)bias->count,
                               (long long)s->w.n);
    if (y->count == 0) return SN_OK;
    SN_TRY(sni_in_as(k, a, SN_FLOAT32, &rows));
    SN_TRY(sni_in_as(k, bias, SN_FLOAT32, &added));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &out));
    sni_lowbit_call c = {.w = &s->w,
                         .m = y->count / s->w.n,
                         .a = rows,
                         .bytes = s->bytes,
                         .bias = added,
                         .c = out,
                         .threads = k->threads};
    static const double long_work = 1e9; /* multiply-accumulates: some ten milliseconds */
    if ((double)c.m * (double)s->w.n * (double)s->w.k > long_work) {
        c.stop = stopping;
        c.stop_ctx = k;
    }
    size_t size = sni_lowbit_scratch_size(&c);
    if (!size) return SNI_KERNEL_FAIL(k, "%lld rows are too many", (long long)c.m);
    void *scratch = sni_scratch(k, size);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_lowbit_run(&c, scratch);
    if (c.stop) SN_TRY(sni_poll(k));
    sni_out_done(k, y, SN_FLOAT32, out);
    return SN_OK;
}

static uint64_t packed_bytes(const void *made) {
    const sni_lowbit *w = &((const state *)made)->w;
    return (uint64_t)sni_lowbit_panels(w) * w->panel_bytes;
}

const sni_impl sni_cpu_matmul_nbits = {.name = "gemm_lowbit",
                                       .op = "MatMulNBits",
                                       .domain = "com.microsoft",
                                       .accepts = nbits_accepts,
                                       .prepare = nbits_prepare,
                                       .release = release,
                                       .packs = 1 << B | 1 << SCALES | 1 << ZEROS | 1 << GROUPS,
                                       .packed_bytes = packed_bytes,
                                       .run = run};

/* ---- MatMulBnb4: blocks go on from row to row of W ---- */

/* Elements of a row that have the same scale wherever the row begins. */
static int64_t bnb_block(const sni_nbits_params *p) {
    int64_t block = sni_min(p->block_size, SNI_LOWBIT_BLOCK);
    while (p->k % block) block /= 2;
    return block;
}

static bool bnb_accepts(const sni_choice *c) {
    const sni_nbits_params *p = c->params;
    enum { SHORTEST = 16 };
    int64_t count = p->k * p->n;
    if (!p->trans_b || bnb_block(p) < SHORTEST || !is_float(c, A) || !is_float(c, SCALES))
        return false;
    return is_constant(c, B, (count + 1) / 2) &&
           is_constant(c, SCALES, (count - 1) / p->block_size + 1);
}

static sn_status bnb_prepare(const sni_choice *c, void **out, sn_error *err) {
    const sni_nbits_params *p = c->params;
    state s = {.bytes = false};
    s.w = (sni_lowbit){.bits = 4,
                       .n = p->n,
                       .k = p->k,
                       .block = bnb_block(p),
                       .codes = sni_bnb4_codes[p->quant_type]};
    s.w.blocks = p->k / s.w.block;
    sni_lowbit_source from = {.high_first = true,
                              .row_bytes = p->k / 2,
                              .group = s.w.block,
                              .groups = s.w.blocks,
                              .scale_run = p->block_size / s.w.block};
    SN_TRY(pack(c, &from, &s.w, err));
    return sni_cpu_keep(&s, sizeof s, out, err);
}

const sni_impl sni_cpu_matmul_bnb4 = {.name = "gemm_lowbit",
                                      .op = "MatMulBnb4",
                                      .domain = "com.microsoft",
                                      .accepts = bnb_accepts,
                                      .prepare = bnb_prepare,
                                      .release = release,
                                      .packs = 1 << B | 1 << SCALES,
                                      .packed_bytes = packed_bytes,
                                      .run = run};
