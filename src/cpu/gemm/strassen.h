/* strassen.h - the vector kernels of Strassen's method (cpu/gemm/strassen.c). */
#ifndef SNI_CPU_GEMM_STRASSEN_H
#define SNI_CPU_GEMM_STRASSEN_H

#include "cpu/core/kernels.h"

struct sni_strassen_kernels {
    /* Packs a pair of row panels and their sums: rows i and rows + i of `from`, which are `step`
     * elements apart and have 2 * half columns; where i is not below `lower` the second is the
     * first again. Writes A11 and A22, then A11 + A22, A21 + A22, A11 + A12, A11 - A21 and
     * A12 - A22, one after the other. sizes[i] and sizes[mr + i] become the bits of the largest
     * magnitude in the two rows. */
    void (*left_sums)(const float *from, int64_t step, int64_t rows, int64_t lower, int64_t half,
                      float *to, int32_t *sizes);
    /* sizes[j] becomes the maximum of itself and the bits of the magnitudes in column j of a panel
     * of B. */
    void (*column_sizes)(int64_t k, const float *b, int32_t *sizes);
};

#endif
