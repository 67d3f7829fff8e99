/* coded.h - panels of weights with their exponents coded: fewer bytes, every bit kept.
 *
 * A piece is what a tile reads of B at once: some rows of nr floats, four of them a group. Sign and
 * mantissa of a float are kept as they are, 24 bits. The exponents of a piece are mostly a few
 * neighbours: those from `base` on have a code of 3 bits (4 with AVX2), and the greatest code says
 * that the exponent itself is the next byte of the piece's list of `more`. Whatever the bits of a
 * piece are, a kernel reads its groups and bytes from `more` to `end` + SNI_CODED_SPARE only. */
#ifndef SNI_CPU_CODED_H
#define SNI_CPU_CODED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SNI_CODED_ROWS = 4,        /* of a group */
    SNI_CODED_SPARE = 64,      /* bytes behind a list of exponents that may be read */
    SNI_CODED_AHEAD = 16 << 10 /* bytes ahead that are brought to the second-level cache */
};

typedef struct sni_coded_piece {
    const uint8_t *groups; /* aligned to 4 bytes */
    const uint8_t *more, *end;
    uint8_t base;
} sni_coded_piece;

/* sums (rows x nr, side by side) = A B, or sums that go on as if they had never left the registers.
 * Otherwise as sni_gemm_tile_fn. */
typedef void (*sni_coded_tile_fn)(int64_t k, const float *a, const float *b, float *sums,
                                  bool go_on, const float *fetch, int64_t lines);

typedef struct sni_coded_kernels sni_coded_kernels;
struct sni_coded_kernels {
    int group_bytes; /* 0: this tier codes nothing, and has no kernels */
    int codes;       /* exponents that have a code */
    int rows;        /* of A up to which coded B from memory is quicker than floats, as measured */
    /* Codes whole groups of floats. Writes at most a byte per float to `more`, returns its end. */
    uint8_t *(*encode)(const float *x, int64_t groups, uint8_t base, uint8_t *to, uint8_t *more);
    /* Writes k rows, rounded up to whole groups, and moves the piece on behind them. Meanwhile
     * fetches like sni_gemm_tile_fn. */
    void (*decode)(sni_coded_piece *piece, int64_t k, float *to, const void *fetch, int64_t lines);
    /* gemm_row of sni_cpu_kernels, to the bit, on a piece. */
    void (*row)(int64_t k, const float *a, const sni_coded_piece *piece, float *c, bool add);
    const sni_coded_tile_fn *tiles;      /* by number of rows, 1 to mr */
    const sni_coded_kernels *with_vbmi2; /* the same for a CPU that has it; NULL: none */
};

/* The kernels of the tier in force. */
const sni_coded_kernels *sni_coded_kernels_get(void);

#endif
