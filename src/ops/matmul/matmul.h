/* matmul.h - shapes of matrix products as numpy has them: stacks of matrices that are broadcast,
 * vectors as rows or columns. */
#ifndef SNI_OPS_MATMUL_MATMUL_H
#define SNI_OPS_MATMUL_MATMUL_H

#include "ops/matmul/matmul_core.h"

typedef struct sni_gemm_params { /* of Gemm */
    float alpha, beta;
    int64_t trans_a, trans_b;
} sni_gemm_params;

/* Sets output 0 to the shape of input a times input b; the second variant for transposed inputs. */
sn_status sni_infer_gemm(sni_infer *c, const int in[3], bool trans_a, bool trans_b);

/* How an operand's axes are permuted before it is multiplied: `batch` moves its first axis behind
 * the batch axes, so that it counts the rows; then `trans` swaps the last two. Vectors stay as they
 * are. */
typedef struct sni_transposition {
    bool trans, batch;
} sni_transposition;

/* Sets output 0 to the shape of input a times input b; the second for transposed inputs. */
sn_status sni_infer_matmul(sni_infer *c, int a, int b);
sn_status sni_infer_transposed(sni_infer *c, int a, sni_transposition transpose_a, int b,
                               sni_transposition transpose_b);
int64_t sni_matmul_macs(const sni_infer *c, int a, int b);
int64_t sni_transposed_macs(const sni_infer *c, int a, sni_transposition transpose_a, int b);

typedef struct sni_matmul {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col; /* strides of the matrices, in elements */
    int64_t count;                      /* products */
    int rank;                           /* axes of the stack */
    int64_t dims[SN_MAX_RANK], a_strides[SN_MAX_RANK], b_strides[SN_MAX_RANK];
} sni_matmul;

void sni_matmul_init(sni_matmul *mm, const sni_tensor *a, const sni_tensor *b);
void sni_matmul_transposed(sni_matmul *mm, const sni_tensor *a, sni_transposition transpose_a,
                           const sni_tensor *b, sni_transposition transpose_b);

/* Where product number i's operands start, in elements. */
void sni_matmul_offsets(const sni_matmul *mm, int64_t i, int64_t *a, int64_t *b);

/* c = a b, all of type `dtype` (one that sni_gemm_run takes). */
sn_status sni_matmul_run(sni_kernel *k, const sni_matmul *mm, sn_dtype dtype, const void *a,
                         const void *b, void *c);

#endif
