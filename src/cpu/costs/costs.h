/* costs.h - what estimates of cycles are made of: coefficients of a microarchitecture, one file for
 * each beside this one. `bench_gemm --costs` measures those of matrix products. */
#ifndef SNI_CPU_COSTS_COSTS_H
#define SNI_CPU_COSTS_COSTS_H

#include "base/cpu.h"

/* Matrix products (cpu/gemm/matmul_algorithms.c). Cycles are those of one thread. */
typedef struct sni_gemm_costs {
    double vector; /* cycles of a vector of multiply-adds where both operands are near */
    /* Strassen's method: the part of a multiply-add that it saves, and the rows at which its sums
     * have taken up what it saves. */
    double strassen_gain, strassen_rows;
    /* Winograd's inner product: the part of a multiply-add that it saves (below 0: it loses),
     * cycles that the end of a row's tile takes more, and those of packing one term of a row. */
    double inner_gain, inner_end, inner_pack;
    /* Emulation on int8 tiles: the part of a multiply-add that it takes, and the rows at which it
     * is as quick as floats. */
    double emulated_part, emulated_rows;
    /* Products of bfloat16: the part of a multiply-add that they take, and cycles of rounding and
     * packing one term of a row. */
    double bf16_part, bf16_pack;
    /* Cycles to bring in a byte of weights from memory, where that is the bound. */
    double memory_byte;
    /* Part of the bytes that weights have with compressed exponents, as far as decoding them does
     * not take the gain back; 1: it takes all. */
    double compressed_part;
} sni_gemm_costs;

/* Convolutions of blocked tensors (cpu/conv/conv_costs.c). `bench_conv --costs` measures them. */
typedef struct sni_conv_costs {
    double direct_rate;  /* of the peak of multiply-adds, what direct sums reach, */
    double inner_rate;   /* sums by Winograd's inner product (above 1: they need fewer), */
    double product_rate; /* and the products of Winograd's method */
    double transform_in, transform_out; /* instructions for each vector that its transforms move */
    double stream;                      /* bytes of weights that come from memory in a cycle, */
    double reread;                      /* and from caches behind the second */
    double overlap; /* of work and streams, the part of the shorter one that adds to the other */
} sni_conv_costs;

typedef struct sni_costs {
    const char *name;
    sni_isa tier;        /* the lowest instruction set in force that the numbers are for */
    bool vectors_halved; /* a vector of 512 bits takes as long as two of 256 */
    sni_gemm_costs gemm;
    sni_conv_costs conv;
} sni_costs;

/* Those of this processor with the instruction set in force: of its microarchitecture, or of the
 * tier where that has none. They do not depend on anything that is measured at run time. */
const sni_costs *sni_costs_get(void);

/* For code that asks for one fact. */
static inline bool sni_cpu_halves_vectors(void) {
    return sni_costs_get()->vectors_halved;
}

/* All there are, in the order of their files; NULL past the end. */
const sni_costs *sni_costs_at(int index);

#endif
