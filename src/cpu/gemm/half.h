/* half.h - right operands of matrix products that stay in 16 bits: float16 or bfloat16. Kernels
 * make float32 of them in registers, or of a panel at a time, so that memory delivers half the
 * bytes. Every number that was 16 bits wide keeps its value, and sums are those of float32.
 *
 * Panels are as sni_gemm_pack_b() makes them of floats, with k-blocks of an even number of rows (a
 * row of zeros ends the last one if need be): columns of float16 row after row, those of bfloat16
 * by pairs of rows, the two numbers of a column side by side, as products of bfloat16
 * (cpu/gemm/bf16.h) take them. */
#ifndef SNI_CPU_GEMM_HALF_H
#define SNI_CPU_GEMM_HALF_H

#include "base/lengths.h"
#include "cpu/core/dispatch.h"
#include "cpu/core/kernels.h"

#include <stddef.h>

/* The two types, in the order of the kernels. */
enum { SNI_HALF_F16, SNI_HALF_BF16, SNI_HALF_TYPES };

static inline int sni_half_type(sn_dtype dtype) {
    return dtype == SN_BFLOAT16 ? SNI_HALF_BF16 : SNI_HALF_F16;
}

/* A right operand (k,n). */
typedef struct sni_half_b {
    int type;               /* SNI_HALF_F16 or SNI_HALF_BF16 */
    const uint16_t *panels; /* aligned to 64 bytes; NULL: there is none */
} sni_half_b;

/* By type. */
struct sni_half_kernels {
    /* n numbers of any address to float32. */
    void (*widen[SNI_HALF_TYPES])(int64_t n, const uint16_t *from, float *to);
    /* k rows of a panel to float32, row after row. */
    void (*panel[SNI_HALF_TYPES])(int64_t k, const uint16_t *from, float *to);
    /* gemm_row of sni_cpu_kernels, to the bit, on a panel. */
    void (*row[SNI_HALF_TYPES])(int64_t k, const float *a, const uint16_t *b, float *c, bool add);
};

/* Numbers of a packed operand. */
size_t sni_half_size(int64_t k, int64_t n);

/* Where column j (a multiple of nr) lies in the k-block of kc rows that begins with row p. */
static inline const uint16_t *sni_half_panel(const sni_half_b *b, int64_t n, int nr, int64_t p,
                                             int64_t kc, int64_t j) {
    return b->panels + p * sni_round_up(n, nr) + j * sni_round_up(kc, 2);
}

/* What is packed: numbers of the type itself, or floats that are rounded to it. `row` and `col` are
 * elements from one row or column of B to the next. */
typedef struct sni_half_source {
    const void *from; /* any address */
    int64_t row, col;
    bool floats;
} sni_half_source;

void sni_half_pack(const sni_half_source *s, int64_t k, int64_t n, int type, uint16_t *to);

#endif
