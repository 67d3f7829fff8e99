/* compressed.h - panels of exponent-compressed weights: fewer bytes, every bit kept.
 *
 * A piece is what a tile reads of B at once: some rows of nr floats, sixteen of them a group. The
 * lower 24 bits of a float are kept as they are. The byte above them, sign and most of the
 * exponent, is mostly one of a few neighbours with either sign: from `base` on they have a code of
 * 3 bits (4 with AVX2). For the others, the piece has a list of `more`, two bytes for each: how
 * many floats come between it and the one before, and its highest byte. Whatever the bits of a
 * piece are, a kernel reads its groups and bytes from `more` to `end` only. */
#ifndef SNI_CPU_GEMM_COMPRESSED_H
#define SNI_CPU_GEMM_COMPRESSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SNI_COMPRESSED_ROWS = 16,        /* of a group */
    SNI_COMPRESSED_MORE = 2,         /* bytes of a float in the list */
    SNI_COMPRESSED_AHEAD = 16 << 10, /* bytes ahead that are brought to the second-level cache */
    SNI_COMPRESSED_TOPS = 128        /* values of the highest byte without its sign */
};

typedef struct sni_compressed_piece {
    const uint8_t *groups; /* aligned to 64 bytes */
    const uint8_t *more, *end;
    int64_t last; /* float of the list that came last, from `groups` on: negative, at first -1 */
    uint8_t base;
} sni_compressed_piece;

/* A list that grows; `last` as above. */
typedef struct sni_compressed_list {
    uint8_t *end;
    int64_t last;
} sni_compressed_list;

/* sni_gemm_tile_fn on a piece, which is written to `b` on the way, k rounded up to whole groups. */
typedef void (*sni_compressed_first_fn)(int64_t k, const float *a,
                                        const sni_compressed_piece *piece, float *b, float *c,
                                        int64_t c_row, bool add, float *apart, const float *fetch,
                                        int64_t lines);

typedef struct sni_compressed_kernels sni_compressed_kernels;
struct sni_compressed_kernels {
    int group_bytes; /* 0: this tier has no kernels */
    int codes;       /* neighbours that have a code */
    int rows; /* of A up to which compressed B from memory is quicker than floats, as measured */
    /* Compresses whole groups of floats. Adds at most SNI_COMPRESSED_MORE bytes per float to
     * `list`. */
    void (*encode)(const float *x, int64_t groups, uint8_t base, uint8_t *to,
                   sni_compressed_list *list);
    /* Writes k rows, rounded up to whole groups, and moves the piece on behind them. Meanwhile
     * fetches like sni_gemm_tile_fn. */
    void (*decode)(sni_compressed_piece *piece, int64_t k, float *to, const void *fetch,
                   int64_t lines);
    /* gemm_row of sni_cpu_kernels, to the bit, on a piece. */
    void (*row)(int64_t k, const float *a, const sni_compressed_piece *piece, float *c, bool add);
    const sni_compressed_first_fn *firsts;    /* by number of rows, 1 to mr */
    const sni_compressed_kernels *with_vbmi2; /* the same for a CPU that has it; NULL: none */
};

/* The kernels of the tier in force. */
const sni_compressed_kernels *sni_compressed_kernels_get(void);

#endif
