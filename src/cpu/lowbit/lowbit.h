/* lowbit.h - products of floats with weights of 2, 4 or 8 bits that have a scale for each block of
 * neighbours along k: C = A W' + bias. Weights stay in their bits; a kernel unpacks them in
 * registers.
 *
 * W is (n, k), packed in panels of 16 columns of the product. A panel is a row of groups of 4
 * blocks: their elements, then their scales and their zero points, 16 of each for a block. Elements
 * come in chunks of 64 bytes: 4 bytes for each column, and bits [j * bits, (j + 1) * bits) of byte
 * i are element 4 * j + i of the chunk's part of the block. */
#ifndef SNI_CPU_LOWBIT_LOWBIT_H
#define SNI_CPU_LOWBIT_LOWBIT_H

#include "base/floats.h"
#include "cpu/core/dispatch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SNI_LOWBIT_COLUMNS = 16, /* of a panel */
    SNI_LOWBIT_ROWS = 12,    /* most rows of a tile */
    SNI_LOWBIT_CHUNK = 64,   /* bytes */
    SNI_LOWBIT_SIDE = 4,     /* blocks side by side */
    SNI_LOWBIT_SLICES = 3,   /* bytes that a float of A is split into */
    SNI_LOWBIT_SPLIT = 2,    /* most rows of a tile of such */
    SNI_LOWBIT_BLOCK = 256   /* longest block: longer ones are several with the same scale */
};

typedef enum sni_lowbit_zero {
    SNI_LOWBIT_MIDDLE, /* 2^(bits - 1) for all */
    SNI_LOWBIT_BYTES,
    SNI_LOWBIT_FLOATS
} sni_lowbit_zero;

/* Packed weights: element (j, p) stands for (q - zero) * scale, or codes[q] * scale. */
typedef struct sni_lowbit {
    int bits;
    int64_t n, k;
    int64_t block, blocks; /* elements of a block, blocks of a column: they hold k at least */
    sni_lowbit_zero zero;
    bool half_scales;     /* scales are float16 */
    const float *codes;   /* 16 numbers for 4 bits; NULL: q - zero */
    const int32_t *order; /* which element of a row of A belongs to each of a column's, -1: none;
                             NULL: as they come */
    size_t block_bytes;   /* of a block's elements */
    size_t scales_at, zeros_at; /* in a group of blocks */
    size_t group_bytes, panel_bytes;
    uint8_t *panels;
    uint8_t *plain; /* for each column: 1 if it has a scale or zero point that is not finite or
                       huge, so that only sums of whole elements give what they should */
} sni_lowbit;

/* Rows of A for one tile. Floats: element p of row r at [p * rows + r]. Bytes: x = q * scale with a
 * scale for each block; four neighbours along k are an int32, unit u of slice s of row r at
 * [(u * slices + s) * rows + r]. With 3 slices, q is (q0 * 256 + q1) * 256 + q2. */
typedef struct sni_lowbit_left {
    int rows;   /* of the tile, those that are there for nothing included */
    int slices; /* 0: floats */
    const float *floats;
    const int32_t *a;
    const float *scale; /* of row r's block b, at [b * rows + r] */
    /* What sums of products with a block start from, at [(b * slices + s) * rows + r]: minus the
     * sum of its bytes, times the middle of the weights' numbers unless zero points are bytes. */
    const int32_t *start;
} sni_lowbit_left;

/* Tiles of (rows, 16) sums from one panel. A's number of rows is what sni_lowbit_height() gave. */
typedef void (*sni_lowbit_tile_fn)(const sni_lowbit *w, const uint8_t *panel,
                                   const sni_lowbit_left *a, float *y);

struct sni_lowbit_kernels {
    int rows; /* most of a tile */
    sni_lowbit_tile_fn bytes, floats;
    /* Bytes of 3 slices, whose products are as exact as those of floats; up to SNI_LOWBIT_SPLIT
     * rows, and not with codes. They are quicker than floats for weights of up to split_bits. */
    sni_lowbit_tile_fn split;
    int split_bits; /* 0: there are none */
    /* A block of floats to bytes, one slice (the greatest becomes 127 in size) or three of n bytes
     * each (8323072). Returns the scale and sets sum[s] to the sum of slice s. The scale is NaN,
     * and all q are 0, where the block has numbers that are not finite or nearly subnormal. */
    float (*quantize)(const float *x, int64_t n, int8_t *q, int32_t *sum);
    float (*quantize_split)(const float *x, int64_t n, int8_t *q, int32_t sum[SNI_LOWBIT_SLICES]);
};

/* Rows of a tile that `rows` of A are brought to, which may be a few more. */
int sni_lowbit_height(int rows);

/* ---- Packing (lowbit_pack.c) ---- */

/* What is packed: element p of column j, and scale and zero point of its group g. */
typedef struct sni_lowbit_source {
    const uint8_t *q; /* rows of row_bytes: element p at bits p * bits on, low bits first */
    int64_t row_bytes;
    bool high_first;         /* of the two elements in a byte */
    int64_t group, groups;   /* elements of a group, groups of a column */
    const int32_t *order;    /* as in sni_lowbit */
    const int32_t *group_of; /* group of each block; NULL: block * w->block / group */
    sn_dtype scale_type;     /* float32, float16 or bfloat16 */
    const void *scales;      /* (n, groups) of that */
    int64_t scale_run;       /* so many groups in a row, over the ends of columns, have one scale; 0
                                stands for 1 */
    const uint8_t *zeros;    /* BYTES: rows of zero_bytes, packed as elements are */
    int64_t zero_bytes;
    sn_dtype zero_type;       /* of `zero_numbers` */
    const void *zero_numbers; /* FLOATS: (n, groups) */
} sni_lowbit_source;

/* Where block b's elements, scales and zero points are. */
typedef struct sni_lowbit_place {
    const uint8_t *data, *scales, *zeros;
} sni_lowbit_place;
static inline sni_lowbit_place sni_lowbit_block(const sni_lowbit *w, const uint8_t *panel,
                                                int64_t b) {
    const uint8_t *group = panel + (size_t)(b / SNI_LOWBIT_SIDE) * w->group_bytes;
    const size_t i = (size_t)(b % SNI_LOWBIT_SIDE), columns = i * SNI_LOWBIT_COLUMNS;
    const size_t zero_size = w->zero == SNI_LOWBIT_FLOATS ? 4 : 1;
    return (sni_lowbit_place){group + i * w->block_bytes,
                              group + w->scales_at + columns * (w->half_scales ? 2 : 4),
                              group + w->zeros_at + columns * zero_size};
}

/* Sets what follows from bits, n, block, blocks, zero and half_scales; false: too large. */
bool sni_lowbit_layout(sni_lowbit *w);
static inline int64_t sni_lowbit_panels(const sni_lowbit *w) {
    return (w->n + SNI_LOWBIT_COLUMNS - 1) / SNI_LOWBIT_COLUMNS;
}

/* True if all of w's scales are exactly what float16 holds. */
bool sni_lowbit_halves(const sni_lowbit *w, const sni_lowbit_source *s);

/* Fills w->panels and w->plain. */
void sni_lowbit_pack(const sni_lowbit *w, const sni_lowbit_source *s, int threads);

/* Element p of column j, in the order of blocks. */
float sni_lowbit_element(const sni_lowbit *w, int64_t j, int64_t p);

/* ---- The product (lowbit.c) ---- */

typedef struct sni_lowbit_call {
    const sni_lowbit *w;
    int64_t m;
    const float *a; /* rows of w->k elements */
    bool bytes;     /* rows of A become bytes, with a scale for each block */
    const float *bias;
    float *c; /* rows of w->n elements */
    int threads;
    /* Asked now and then by every thread; true: the rest of C is left undone. NULL: never. */
    bool (*stop)(const void *ctx);
    const void *stop_ctx;
} sni_lowbit_call;

/* Bytes of scratch, aligned to 64, that a product needs; 0: it is too large. */
size_t sni_lowbit_scratch_size(const sni_lowbit_call *c);
void sni_lowbit_run(const sni_lowbit_call *c, void *scratch);

#endif
