/* winograd_inner_product.c - see winograd_inner_product.h. */
#include "cpu/conv/winograd/winograd_inner_product.h"

#include "base/lengths.h"
#include "cpu/gemm/inner_product.h"

void sni_wino_pair_columns(float *panel, int64_t k, float *numbers) {
    bool tame =
        sni_inner_product_scale_panel(&(sni_inner_product_panel){.panels = panel,
                                                                 .k = k,
                                                                 .n = sni_cpu_kernels_get()->nr,
                                                                 .depth = k,
                                                                 .less = numbers,
                                                                 .factors = numbers + SNI_MAX_NR});
    numbers[2 * SNI_MAX_NR] = tame ? 0 : 1;
}

void sni_wino_pair_rows(float *v, int64_t v_block, int64_t lines, int64_t first, int64_t rows,
                        int64_t most, float *numbers) {
    const sni_inner_product_kernels *k = sni_cpu_kernels_get()->inner_product;
    float *less = numbers + first, *factors = less + most, *wild = factors + most;
    uint32_t which = k->scale((int)rows, lines, 1, v, v_block, less, factors);
    for (int64_t i = 0; i < rows; i++) wild[i] = (float)(which >> i & 1);
}

/* `rows` rows from row i on plainly. */
static void multiply_plain(const sni_wino_product *p, int64_t i, int64_t rows) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    int64_t block = k->block;
    const float *factors = p->column_numbers + SNI_MAX_NR;
    k->wino->product((int)rows, p->nv, 1, p->k, p->v + i * block, p->v_block, p->u,
                     p->to + i * block, p->to_block, p->u, 0, 0);
    for (int64_t r = i; r < i + rows; r++) {
        float factor = p->row_numbers[p->most + p->first + r];
        for (int64_t b = 0; b < p->nv; b++) {
            float *to = p->to + b * p->to_block + r * block;
            for (int64_t q = 0; q < block; q++)
                to[q] = to[q] * (p->nv == 1 ? 1 : factors[b * block + q]) * factor;
        }
    }
}

static void multiply_rows(const sni_wino_product *p) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    const float *less = p->row_numbers + p->first, *factors = less + p->most;
    sni_inner_product_tile t = {.k = p->k,
                                .a = p->v,
                                .a_step = p->v_block,
                                .b = p->u,
                                .row_less = less,
                                .row_factors = factors,
                                .column_less = p->column_numbers,
                                .column_factors = p->column_numbers + SNI_MAX_NR,
                                .fetch = p->next,
                                .fetch_step = p->step * SNI_LEFT_STEPS,
                                .each = p->step * SNI_LEFT_STEPS / 16,
                                .end = {.y = p->to, .row = k->block, .vector = p->to_block}};
    k->inner_product->tile[p->rows](&t);
}

void sni_wino_multiply_inner_product(const sni_wino_product *p) {
    const float *wild = p->row_numbers + 2 * p->most + p->first;
    if (p->nv == 1 || p->column_numbers[2 * SNI_MAX_NR] != 0) {
        multiply_plain(p, 0, p->rows);
        return;
    }
    multiply_rows(p);
    for (int64_t i = 0; i < p->rows; i++)
        if (wild[i] != 0) multiply_plain(p, i, 1);
}
