/* gemm_blocks.h - what the files of the blocked matrix product share: its blocks and panels, and
 * one thread's share of it. */
#ifndef SNI_CPU_GEMM_GEMM_BLOCKS_H
#define SNI_CPU_GEMM_GEMM_BLOCKS_H

#include "base/lengths.h"
#include "cpu/gemm/gemm.h"

/* Row panels [i0, i1) and columns [n0, n1) of C; n0 is a multiple of nr. */
typedef struct sni_gemm_share {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    const sni_compressed_kernels *codec; /* NULL: B is not compressed */
    const struct sni_half_kernels *half; /* NULL: B is not in 16 bits */
    int64_t panels, kc;                  /* row panels of A, rows of a k-block */
    int64_t rows, more_rows;             /* of each panel; panels that have one more */
    int64_t i0, i1, n0, n1;
    bool strided; /* A is not packed at all */
    float *a_block,
        *b_block; /* scratch; NULL for packed operands; of B in a form of its own one panel */
} sni_gemm_share;

/* Rows of a k-block: as equal as can be, in steps that the tile takes at once; of several blocks
 * each can be cut in the middle then (strassen.c). The last may be shorter. */
int64_t sni_gemm_depth(int64_t k);

/* First row of panel i when m rows are dealt out to `panels`. */
static inline int64_t sni_gemm_panel_row(int64_t m, int64_t panels, int64_t i) {
    return m / panels * i + sni_min(i, m % panels);
}

/* Floats of a row panel of A over kc columns. */
static inline int64_t sni_gemm_left_panel(const sni_cpu_kernels *kernels, int64_t kc) {
    return kernels->mr * sni_round_up(kc, SNI_LEFT_STEPS);
}

/* Where column j of a packed B of n columns lies in the k-block of kc rows that begins with row p;
 * j is a multiple of nr. */
static inline const float *sni_gemm_packed_panel(const float *packed, int64_t n, int nr, int64_t p,
                                                 int64_t kc, int64_t j) {
    return packed + p * sni_round_up(n, nr) + j * kc;
}

/* Groups of compressed B in so many rows. */
static inline int64_t sni_gemm_groups_of(int64_t rows) {
    return sni_ceil_div(rows, SNI_COMPRESSED_ROWS);
}

/* A k-block of A: m rows, `row` elements apart, dealt out to `panels`; terms are `col` apart. */
typedef struct sni_gemm_rows {
    const sni_unaligned_float *from;
    int64_t row, col, m, panels;
} sni_gemm_rows;

/* Packs panels [first, last) of its rows, kc terms of them. */
void sni_gemm_pack_rows(const sni_cpu_kernels *kernels, const sni_gemm_rows *a, int64_t first,
                        int64_t last, int64_t kc, float *to);

/* Columns [0, n) of B for one k-block. */
void sni_gemm_pack_columns(const sni_cpu_kernels *kernels, const sni_unaligned_float *from,
                           int64_t row, int64_t col, int64_t n, int64_t kc, float *to);

/* The panel of compressed B that holds column j, of the k-block that begins with row p. Whatever
 * the bytes of B's table are, it lies within B. */
sni_compressed_piece sni_gemm_compressed_piece(const sni_gemm_f32 *g, int64_t p, int64_t j);

static inline bool sni_gemm_is_scaled(const sni_gemm_f32 *g) {
    return g->scale != 0 && g->scale != 1;
}

/* Scale, bias, residual and activation on finished rows and columns of C. */
void sni_gemm_finish(const sni_gemm_share *s, int64_t i, int64_t rows, int64_t j, int64_t cols);

/* ---- Products of panels (gemm.c) ---- */

typedef enum sni_gemm_kind {
    SNI_GEMM_TILES,
    SNI_GEMM_ROW,     /* a single row, which reads B once from end to end */
    SNI_GEMM_STRASSEN /* panels are dealt out in pairs; the number of those of rows is even */
} sni_gemm_kind;

/* Floats of scratch, for all threads together. */
size_t sni_gemm_blocked_scratch(const sni_gemm_f32 *g, sni_gemm_kind kind, int threads);
void sni_gemm_run_blocked(const sni_gemm_f32 *g, sni_gemm_kind kind, int threads, float *scratch);

/* Products of bfloat16 (gemm_product.c). */
size_t sni_gemm_bf16_size(const sni_gemm_f32 *g, int threads);
void sni_gemm_run_bf16(const sni_gemm_f32 *g, int threads, float *scratch);

/* A product over no terms, or of no rows or columns: C is bias and activation of zeros. */
void sni_gemm_run_empty(const sni_gemm_f32 *g, int threads, float *scratch);

/* ---- Products of operands that are read unpacked (gemm_unpacked.c) ---- */

typedef enum sni_gemm_along {
    SNI_GEMM_ACROSS,     /* rows of B */
    SNI_GEMM_ROW_DOTS,   /* rows of A, times a few columns of B */
    SNI_GEMM_COLUMN_DOTS /* columns of B, times a few rows of A */
} sni_gemm_along;

/* Whether a product can run so, with operands that caches hold. By its sizes and strides alone: the
 * number of threads does not matter. */
bool sni_gemm_can_go_across(const sni_gemm_f32 *g);
bool sni_gemm_has_row_dots(const sni_gemm_f32 *g);
bool sni_gemm_has_column_dots(const sni_gemm_f32 *g);

/* Floats of scratch, for all threads together. */
size_t sni_gemm_unpacked_size(const sni_gemm_f32 *g, sni_gemm_along along);
void sni_gemm_run_unpacked(const sni_gemm_f32 *g, sni_gemm_along along, int threads,
                           float *scratch);

/* ---- Winograd's inner product, and emulation (gemm_product.c) ---- */

/* Floats of scratch, for all threads together. */
size_t sni_gemm_inner_product_size(const sni_gemm_f32 *g, int threads);
void sni_gemm_run_inner_product(const sni_gemm_f32 *g, int threads, float *scratch);

size_t sni_gemm_emulated_size(const sni_gemm_f32 *g, int threads);
void sni_gemm_run_emulated(const sni_gemm_f32 *g, int threads, float *scratch);

/* ---- Strassen's method (strassen.c) ---- */

/* Floats of scratch: of A's block with its sums, and of the sums of B. */
size_t sni_gemm_strassen_left_size(const sni_gemm_f32 *g);

/* A share whose row panels are an even number, and begin with an even one; so do its panels of
 * columns. */
void sni_gemm_run_strassen(const sni_gemm_share *s);

#endif
