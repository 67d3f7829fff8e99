/* gemm.h - matrix products in float on packed panels: C = act(A B + bias).
 *
 * A is (m,k), B is (k,n), C is (m,n) with contiguous rows. Either operand may be packed once
 * beforehand (weights) or while running. Each element of C is summed over k in the same order
 * whatever the number of threads, so results do not depend on it. */
#ifndef SNI_CPU_GEMM_GEMM_H
#define SNI_CPU_GEMM_GEMM_H

#include "cpu/gemm/compressed.h"
#include "cpu/core/kernels.h"

#include <stdatomic.h>
#include <stddef.h>

/* Writes rows [k0, k0 + rows) and columns [n0, n0 + cols) of B to `panel`: rows of `nr` elements,
 * zeros from `cols` on. Called from several threads. */
typedef void (*sni_gemm_fill_fn)(const void *ctx, int64_t k0, int64_t rows, int64_t n0,
                                 int64_t cols, int nr, float *panel);

/* B packed with its exponents compressed, from sni_gemm_compress_b(). */
typedef struct sni_compressed_b {
    const void *compressed; /* sni_gemm_compressed_b_size() bytes */
    const uint8_t *more;    /* what has no code */
    size_t n_more;
} sni_compressed_b;

struct sni_gemm_algorithm; /* cpu/gemm/matmul_algorithms.h */

typedef struct sni_gemm_f32 {
    int64_t m, n, k;
    const float *a; /* strides in elements */
    int64_t a_row, a_col;
    const float *packed_a; /* from sni_gemm_pack_a; NULL: `a` is read in place, or packed while
                              running */
    const float *b;
    int64_t b_row, b_col;
    const float *packed_b; /* from sni_gemm_pack_b; NULL: another form, `b` or `fill` */
    /* With packed_b: what Strassen's method needs (sni_gemm_find_even); NULL: it is not allowed. */
    const uint8_t *even;
    /* With packed_b: what Winograd's inner product needs (cpu/gemm/inner_product.h), not scaled;
     * NULL: it is not allowed. */
    const struct sni_inner_product_b *inner_product;
    /* All there is of B for emulation on int8 tiles (cpu/gemm/emulated.h): a_col is 1, there is no
     * scale, and nothing in the epilogue goes by rows. */
    const struct sni_emulated_b *emulated;
    const sni_compressed_b *compressed_b;
    /* All there is of B where it stays in 16 bits (cpu/gemm/half.h); NULL: it does not. With
     * `round_left` A may be rounded to bfloat16 where B is of that type. */
    const struct sni_half_b *half_b;
    bool round_left;
    /* The algorithm to take where it supports the product; NULL: the one of least cycles. */
    const struct sni_gemm_algorithm *use;
    /* Keeps the choice for a caller whose products differ in m, and in where they are, alone; 0 at
     * first, any thread may run. NULL: the choice is made for each product. */
    atomic_uint_least64_t *chosen;
    /* For estimates before B is packed: it is a constant of a model that has so many bytes of
     * matrices. */
    bool constant_b;
    uint64_t matrix_bytes;
    sni_gemm_fill_fn fill; /* makes B piece by piece; NULL: from `b` */
    const void *fill_ctx;
    float *c;
    int64_t c_row;
    bool add; /* C += instead of C =, before the epilogue */
    /* Operands may be read unpacked, where that is quicker. The sizes decide, so they must
     * not depend on the number of threads. */
    bool may_stay_unpacked;
    /* A single row takes packed B from its end: what the caches kept of its last time comes first
     * then. */
    bool backwards;
    float scale; /* of the product, before the epilogue; 0 stands for 1 */
    sni_epilogue epilogue;
    /* Asked between blocks by every thread; true: the rest of C is left undone. NULL: never. */
    bool (*stop)(const void *ctx);
    const void *stop_ctx;
} sni_gemm_f32;

/* Floats of a packed operand. */
size_t sni_gemm_packed_a_size(int64_t m, int64_t k);
size_t sni_gemm_packed_b_size(int64_t k, int64_t n);

void sni_gemm_pack_a(const sni_unaligned_float *a, int64_t a_row, int64_t a_col, int64_t m,
                     int64_t k, float *to);
void sni_gemm_pack_b(const sni_unaligned_float *b, int64_t b_row, int64_t b_col, int64_t k,
                     int64_t n, float *to);

/* The same of an operand that `fill` makes. */
void sni_gemm_make_b(sni_gemm_fill_fn fill, const void *ctx, int64_t k, int64_t n, float *to);

/* The same of a large operand, some megabytes after the other: `done` is told of each stretch that
 * will not be read again. */
typedef void (*sni_gemm_done_fn)(const void *ctx, const void *from, size_t bytes);
typedef struct sni_gemm_stream {
    const sni_unaligned_float *b;
    int64_t b_row, b_col, k, n;
    sni_gemm_done_fn done; /* NULL: nobody wants to know */
    const void *ctx;
} sni_gemm_stream;
void sni_gemm_stream_b(const sni_gemm_stream *s, float *to);

/* Bytes that say which columns of a packed B may be added up; 0: it is not of a size for that. */
size_t sni_gemm_even_size(int64_t k, int64_t n);
void sni_gemm_find_even(const float *packed_b, int64_t k, int64_t n, uint8_t *even);

/* Bytes of a compressed operand without `more`, aligned to 64; 0 if the tier in force has none or
 * the operand is too large. */
size_t sni_gemm_compressed_b_size(int64_t k, int64_t n);

/* Part of the elements that would have no code, by a sample of `count` (at least 1) of them. */
double sni_gemm_uncompressed_part(const sni_unaligned_float *b, int64_t count);

/* Bytes of a buffer that sni_gemm_compress_b() needs for the worst case; few of them are touched.
 */
size_t sni_gemm_compress_capacity(int64_t k, int64_t n);

/* As sni_gemm_stream_b(), with exponents compressed. Returns the number of bytes of `more`, with
 * which `buffer` begins then. */
size_t sni_gemm_compress_b(const sni_gemm_stream *s, void *to, uint8_t *buffer);

/* How a product runs: the algorithm, chosen once, and the floats of scratch that it needs. Sizes,
 * strides and forms of operands decide, not where they are nor the number of threads. */
typedef struct sni_gemm_call {
    const struct sni_gemm_algorithm *algorithm;
    int threads;
    size_t scratch;
} sni_gemm_call;
sni_gemm_call sni_gemm_plan(const sni_gemm_f32 *g, int threads);

/* Runs the product that was planned, or one that differs in where its operands are. `scratch` is
 * aligned to 64 bytes. */
void sni_gemm_call_run(const sni_gemm_call *call, const sni_gemm_f32 *g, float *scratch);

/* The same in two steps that plan each: for products that are not run often. */
size_t sni_gemm_scratch_size(const sni_gemm_f32 *g, int threads);
void sni_gemm_f32_run(const sni_gemm_f32 *g, int threads, float *scratch);

#endif
