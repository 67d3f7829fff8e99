/* matmul_algorithms.h - the table of matrix product algorithms: a row says for which products an
 * algorithm is, what it is estimated to cost, and how it runs. sni_gemm_choose() is the one place
 * that decides between them. To add one see docs/internals/adding-an-algorithm.md. */
#ifndef SNI_CPU_GEMM_MATMUL_ALGORITHMS_H
#define SNI_CPU_GEMM_MATMUL_ALGORITHMS_H

#include "cpu/costs/costs.h"
#include "cpu/gemm/gemm.h"

struct sni_dense_request; /* cpu/gemm/dense_pack.h */
struct sni_dense;

typedef struct sni_gemm_algorithm {
    const char *name;
    bool (*available)(void); /* whether the tier in force has its kernels; NULL: every one has */
    uint32_t numerics;       /* families that it belongs to; 0: plain sums */
    /* Whether it can run a product whose operands are given so, within the sizes that it is meant
     * for. Sizes, strides and forms of operands decide, so that every number of threads has the
     * same bits. Products without rows, columns or terms are the first row's: others are
     * not asked. */
    bool (*supports)(const sni_gemm_f32 *g);
    /* Cycles of one thread; of products that it supports. */
    double (*cycles)(const sni_gemm_f32 *g, const sni_gemm_costs *costs);
    size_t (*scratch)(const sni_gemm_f32 *g, int threads); /* floats */
    void (*run)(const sni_gemm_f32 *g, int threads, float *scratch);
    /* Of algorithms that want a constant B of their own form (dense_pack.c). NULL: they take one
     * that is packed for the tiles. */
    bool (*can_pack)(struct sni_dense_request *r);
    sn_status (*pack)(struct sni_dense_request *r, struct sni_dense *out, sn_error *err);
    /* Bytes of the first piece that pack() makes; 0: none. Where it is a form of its own a compiled
     * model tells by it what was packed. */
    size_t (*pack_bytes)(int64_t k, int64_t n);
    bool own_form;
} sni_gemm_algorithm;

/* By index; NULL past the end. Of equal cycles the first is taken. */
const sni_gemm_algorithm *sni_gemm_algorithm_at(int index);

/* The row of this name, for tests and benchmarks; NULL: there is none. */
const sni_gemm_algorithm *sni_gemm_algorithm_named(const char *name);

/* ---- The choice ---- */

/* The row with the least cycles of those that support the product: `g->use` if that is one of them.
 */
const sni_gemm_algorithm *sni_gemm_choose(const sni_gemm_f32 *g, const sni_costs *costs);

/* Whether it packs constants in a form that these families allow, and this machine has it. */
bool sni_gemm_can_pack_for(const sni_gemm_algorithm *row, uint32_t numerics);

/* The row for which a constant B is packed: of those that this machine has, that can be packed for
 * and that `numerics` allows. `g` describes the product with B packed beforehand. */
const sni_gemm_algorithm *sni_gemm_choose_pack(struct sni_dense_request *r, const sni_gemm_f32 *g,
                                               uint32_t numerics, const sni_costs *costs);

#endif
