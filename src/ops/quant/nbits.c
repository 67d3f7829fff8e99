/* nbits.c - the reference product with matrices of 2, 4 or 8 bits. */
#include "ops/quant/nbits.h"

#include "ops/core/compute.h"
#include "ops/matmul/matmul_core.h"

sn_status sni_unpacked(sni_kernel *k, const uint8_t *q, int bits, int64_t rows, int64_t columns,
                       float **out) {
    int64_t per_byte = 8 / bits, row_bytes = (columns + per_byte - 1) / per_byte;
    void *memory = NULL;
    SN_TRY(sni_scratch_matrix(k, rows, columns, sizeof(float), &memory));
    float *v = memory;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            v[i * columns + j] = (float)sni_packed_at(q + i * row_bytes, bits, j);
    *out = v;
    return SN_OK;
}

sn_status sni_nbits_check_groups(const int32_t *group, int64_t k, int64_t groups, sn_error *err) {
    for (int64_t i = 0; i < k; i++)
        if (group[i] < 0 || group[i] >= groups)
            return sni_fail(err, SN_BAD_DATA, "g_idx[%lld] is %d, outside the %lld groups",
                            (long long)i, group[i], (long long)groups);
    return SN_OK;
}

/* Column `n` of the product's right operand: row n of the matrix, elements [k0, k0 + rows). */
static void fill_column(const sni_nbits *w, int64_t n, int64_t k0, int64_t rows, float *to,
                        int64_t stride) {
    const uint8_t *q = w->q + n * w->row_bytes;
    const float *scales = w->scales + n * w->blocks;
    const float *zeros = w->zeros ? w->zeros + n * w->blocks : NULL;
    const float middle = (float)(1 << (w->bits - 1));
    for (int64_t i = 0; i < rows;) {
        int64_t at = k0 + i, block = w->group ? w->group[at] : at / w->block;
        int64_t end = w->group ? i + 1 : (block + 1) * w->block - k0;
        float scale = scales[block], zero = zeros ? zeros[block] : middle;
        if (end > rows) end = rows;
        for (; i < end; i++)
            to[i * stride] = ((float)sni_packed_at(q, w->bits, k0 + i) - zero) * scale;
    }
}

static void fill_panel(const void *ctx, int64_t product, int64_t k0, int64_t rows, int64_t n0,
                       int64_t cols, void *panel, int64_t stride) {
    (void)product;
    for (int64_t j = 0; j < cols; j++)
        fill_column(ctx, n0 + j, k0, rows, (float *)panel + j, stride);
}

sn_status sni_nbits_multiply(sni_kernel *k, const sni_nbits *w, int64_t m, const float *x, float *y,
                             bool add) {
    sni_gemm g = {.m = m,
                  .n = w->n,
                  .k = w->k,
                  .a = x,
                  .a_row = w->k,
                  .a_col = 1,
                  .fill = fill_panel,
                  .fill_ctx = w,
                  .c = y,
                  .c_row = w->n,
                  .add = add};
    return sni_gemm_run(k, SN_FLOAT32, &g);
}
