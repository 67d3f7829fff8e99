/* bf16.h - matrix products of bfloat16 numbers with sums in float32, by instructions that multiply
 * pairs of them: AVX512-BF16 and AMX-BF16. The right operand is packed as cpu/gemm/half.h says; the
 * left one is rounded to bfloat16 on the way. Subnormal numbers count as 0. */
#ifndef SNI_CPU_GEMM_BF16_H
#define SNI_CPU_GEMM_BF16_H

#include "cpu/gemm/half.h"
#include "cpu/gemm/product.h"

enum { SNI_BF16_TERMS = 32 /* of a row in a line of 64 bytes */ };

typedef struct sni_bf16_kernels {
    int rows; /* most of a tile, at most SNI_PRODUCT_ROWS */
    /* Packs parts of `rows` rows, all of SNI_LEFT_STEPS terms a line: lines of SNI_BF16_TERMS
     * terms, those of all rows of a tile after each other, zeros behind the last term. */
    void (*left)(int rows, int count, const sni_product_part *parts, uint16_t *to);
    /* Rows of a packed left operand from term 0 on, times k rows of a panel: to `sums`, in rows of
     * nr, or added to them. k is even. */
    void (*tile)(int rows, int64_t k, const uint16_t *a, const uint16_t *b, bool add, float *sums);
    void (*end)(void); /* after all calls of a thread; NULL: nothing */
} sni_bf16_kernels;

/* The kernels of this processor and the tier in force; NULL: there are none. */
const sni_bf16_kernels *sni_bf16_kernels_get(void);

/* Bytes of scratch for so many threads. Panels of rows have at most `rows` of the kernels. */
size_t sni_bf16_scratch_size(const sni_product *p, int64_t k, int64_t n, int threads);

/* Runs a product by a right operand (k,n); k is a multiple of SNI_LEFT_STEPS. */
void sni_bf16_run(const sni_product *p, const sni_half_b *b, int64_t k, int64_t n, int threads,
                  void *scratch);

#endif
