/* gemm_product.c - matrix products on packed weights by Winograd's inner product
 * (cpu/gemm/inner_product.h), emulated on int8 tiles (cpu/gemm/emulated.h), and of bfloat16
 * (cpu/gemm/bf16.h). */
#include "cpu/gemm/bf16.h"
#include "cpu/gemm/emulated.h"
#include "cpu/gemm/gemm_blocks.h"
#include "cpu/gemm/inner_product.h"

/* ---- A product as cpu/gemm/product.h describes it ---- */

typedef struct described {
    const sni_gemm_f32 *g;
    int64_t panels;
} described;

static int64_t first_row(const described *d, int64_t panel) {
    return sni_gemm_panel_row(d->g->m, d->panels, panel);
}

static sni_product_rows rows_of(const void *ctx, int64_t panel) {
    int64_t first = first_row(ctx, panel);
    return (sni_product_rows){.count = (int)(first_row(ctx, panel + 1) - first), .at = first};
}

static int left_of(const void *ctx, int64_t panel, int64_t line, int64_t lines,
                   sni_product_part *part) {
    const sni_gemm_f32 *g = ((const described *)ctx)->g;
    sni_product_rows rows = rows_of(ctx, panel);
    const float *from = g->a + rows.at * g->a_row + line * SNI_LEFT_STEPS;
    part->lines = lines;
    part->factors = NULL;
    for (int i = 0; i < rows.count; i++) {
        part->from[i] = from + i * g->a_row;
        part->step[i] = SNI_LEFT_STEPS;
    }
    return 1;
}

static bool end_of(const void *ctx, const sni_product_place *p, sni_product_end *end) {
    const sni_gemm_f32 *g = ((const described *)ctx)->g;
    const sni_epilogue *e = &g->epilogue;
    int vector = sni_cpu_kernels_get()->nr / 2;
    *end = (sni_product_end){.y = g->c + p->rows.at * g->c_row + p->column,
                             .row = g->c_row,
                             .vector = vector,
                             .add = !p->first || g->add};
    if (!p->last) return false;
    if (e->column_bias) end->bias = e->column_bias + p->column;
    if (e->residual) end->residual = e->residual + p->rows.at * e->residual_row + p->column;
    end->residual_row = e->residual_row;
    end->residual_vector = vector;
    return !sni_product_bound(e->act, e->p0, e->p1, end);
}

static void finish(const void *ctx, const sni_product_place *p, const float *sums) {
    const sni_gemm_f32 *g = ((const described *)ctx)->g;
    sni_epilogue e = {0};
    if (p->last) e = g->epilogue;
    if (!sums) { /* they are in place, with bias and residual */
        e.column_bias = NULL;
        e.residual = NULL;
    }
    sni_cpu_kernels_get()->finish_tile(&e, sums, !p->first || g->add,
                                       g->c + p->rows.at * g->c_row + p->column, g->c_row,
                                       p->rows.at, p->rows.count, p->column, p->columns);
}

static sni_product product_of(const described *d) {
    return (sni_product){.panels = d->panels,
                         .ctx = d,
                         .rows = rows_of,
                         .left = left_of,
                         .end = end_of,
                         .finish = finish,
                         .stop = d->g->stop,
                         .stop_ctx = d->g->stop_ctx};
}

/* ---- Winograd's inner product ---- */

static described for_pairs(const sni_gemm_f32 *g) {
    return (described){g, sni_ceil_div(g->m, sni_inner_product_most())};
}

size_t sni_gemm_inner_product_size(const sni_gemm_f32 *g, int threads) {
    described d = for_pairs(g);
    sni_product p = product_of(&d);
    return sni_inner_product_scratch_size(&p, g->inner_product, threads);
}

void sni_gemm_run_inner_product(const sni_gemm_f32 *g, int threads, float *scratch) {
    described d = for_pairs(g);
    sni_product p = product_of(&d);
    sni_inner_product_run(&p, g->inner_product, threads, scratch);
}

/* ---- Emulation ---- */

static described for_tiles(const sni_gemm_f32 *g) {
    return (described){g, sni_ceil_div(g->m, SNI_EMULATED_ROWS)};
}

size_t sni_gemm_emulated_size(const sni_gemm_f32 *g, int threads) {
    described d = for_tiles(g);
    sni_product p = product_of(&d);
    return g->m ? sni_emulated_scratch_size(&p, g->emulated, threads) / sizeof(float) : 0;
}

void sni_gemm_run_emulated(const sni_gemm_f32 *g, int threads, float *scratch) {
    described d = for_tiles(g);
    sni_product p = product_of(&d);
    sni_emulated_run(&p, g->emulated, threads, scratch);
}

/* ---- Products of bfloat16 ---- */

static described for_bf16(const sni_gemm_f32 *g) {
    return (described){g, sni_ceil_div(g->m, sni_bf16_kernels_get()->rows)};
}

size_t sni_gemm_bf16_size(const sni_gemm_f32 *g, int threads) {
    described d = for_bf16(g);
    sni_product p = product_of(&d);
    return sni_bf16_scratch_size(&p, g->k, g->n, threads) / sizeof(float);
}

void sni_gemm_run_bf16(const sni_gemm_f32 *g, int threads, float *scratch) {
    described d = for_bf16(g);
    sni_product p = product_of(&d);
    sni_bf16_run(&p, g->half_b, g->k, g->n, threads, scratch);
}
