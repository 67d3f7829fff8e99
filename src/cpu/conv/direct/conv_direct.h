/* conv_direct.h - what the files of direct convolutions share. */
#ifndef SNI_CPU_CONV_DIRECT_CONV_DIRECT_H
#define SNI_CPU_CONV_DIRECT_CONV_DIRECT_H

#include "cpu/conv/blocked.h"
#include "cpu/gemm/half.h"

/* Packed as (groups, output blocks, input blocks, kh, kw, channels of an input block, block), or if
 * taps lie apart as (groups, output blocks, kh, kw, input blocks, channels of one, block).
 * Groups of fewer channels than a block are merged until they fill one, with zeros between them;
 * tiles that are NaN then, as 0 times infinity is, are summed again group by group. */
typedef struct sni_direct_weights {
    int64_t groups, in, out;       /* merged ones, and channels of one */
    int64_t merged;                /* groups of the model in one of these */
    int64_t in_block;              /* channels of an input block: 1 if the input is plain */
    int64_t taps, kernel_w;        /* of a channel, and of a row of them */
    bool apart;                    /* taps of a channel lie apart */
    float *panels, *bias, *slopes; /* the last two may be NULL */
    sni_half_b half;               /* with panels: the weights in 16 bits, where `panels` is NULL */
} sni_direct_weights;

/* ---- Weights in 16 bits (conv_direct_half.c): not of merged groups, nor of taps that lie apart */

/* Whether a choice's weights are kept so: they are made of narrow numbers. */
bool sni_direct_is_half(const sni_choice *c, const sni_direct_weights *d);
/* Packs them. */
sn_status sni_direct_pack_half(const sni_choice *c, sni_direct_weights *d, sn_error *err);

/* Outputs are cut into items: some spans (rows, or stretches of a picture whose rows do not matter
 * or that is one row high) of some output blocks. */
typedef struct sni_direct_job {
    const sni_direct_weights *weights;
    const sni_conv_kernels *kernels;
    sni_conv_geometry g; /* a flat picture is one row high */
    sni_conv_epilogue epilogue;
    const float *x, *panels;
    float *y;
    bool plain, flat, outputs_first;
    bool line;      /* one row of output */
    bool pointwise; /* one tap: input blocks take the place of taps */
    bool strips;    /* tiles side by side are run in one call where all input is summed at once */
    bool ends_half; /* the last output block of a group is one for half vectors, if it is alone */
    bool framed;    /* x is a copy with zeros to the left and right */
    /* Taps lie apart: no tile reaches over columns that differ in the taps they have, a tile takes
     * one tap after the other over all input blocks, and rows that read the same rows of input come
     * one after another. */
    bool apart;
    int64_t row_taps; /* of the tiles of a row, if they lie apart */
    bool onto;        /* y has what is added to the sums: they begin with it */
    sni_conv_step step;
    int64_t block, x_pixel;               /* elements between pixels of the input, along a row */
    int64_t in_blocks, out_blocks;        /* of a group; input channels if plain */
    int64_t image_blocks;                 /* from an image of the input to the next */
    int64_t width;                        /* output blocks of a tile */
    int64_t span, spans;                  /* pixels of one, and how many */
    int64_t item_spans, item_rows, tiles; /* spans of an item; items along spans and blocks */
    int64_t grain;
    int64_t chunk; /* input blocks whose weights stay in the cache */
    bool far;      /* the input comes from behind the second cache */
    /* Factors of input channels that weights are multiplied by, tile by tile; NULL: none. Items are
     * shared out to slots, each with `scaled_floats` of its own from `scaled` on. */
    const float *factors;
    float *scaled;
    int64_t scaled_floats, items, slots;
} sni_direct_job;

/* Weights of one item and chunk as floats, in the room of a slot: `chunk` of the input blocks of
 * `width` output blocks from output block `first` (counted over all groups) and input block
 * first_in on. */
typedef struct sni_direct_part {
    int64_t first, width, first_in, chunk;
} sni_direct_part;
void sni_direct_widen(const sni_direct_job *j, const sni_direct_part *part, float *room);

/* Takes taps of dilated kernels out that are beside the picture for all outputs: what is left may
 * be one tap. */
void sni_direct_trim(sni_direct_job *j);

/* Looks at the geometry and cuts the output into items for so many threads. */
void sni_direct_cut(sni_direct_job *j, int threads);

/* Lets j->x be a copy with padding, in scratch, and the geometry be its. */
sn_status sni_direct_frame(sni_kernel *k, sni_direct_job *j);

/* Computes items [begin, end) of an sni_direct_job, or slots of it, whose weights are multiplied by
 * the factors first. For sni_parallel_for(). */
void sni_direct_items(void *job, int64_t begin, int64_t end);
void sni_direct_slots(void *job, int64_t begin, int64_t end);

/* A stretch of rows or columns of a kernel. */
typedef struct sni_stretch {
    int64_t from, to;
} sni_stretch;

/* Leaves out taps of an axis that no output has in the picture, and returns which are left. The pad
 * of those stays 0 or more. */
sni_stretch sni_dilated_trim(int64_t in, int64_t out, int64_t stride, int64_t dilation,
                             int64_t *kernel, int64_t *pad);

/* Where the taps that columns have in the picture change first after column `from`, or `to`. */
int64_t sni_dilated_band(const sni_conv_geometry *g, int64_t from, int64_t to);

/* The row of output that comes `place`-th. Rows that a dilated kernel reads together come one after
 * another, so that what one of them has read is near when the next one needs it. */
int64_t sni_dilated_row(const sni_conv_geometry *g, int64_t place);

/* Rows of the kernel that a row of output has in the picture. */
sni_stretch sni_kernel_rows(const sni_conv_geometry *g, int64_t row);

/* How far the last row of input of the row that comes after the `span`-th is from that of this one;
 * 0 if there is none. */
int64_t sni_dilated_below(const sni_conv_geometry *g, int64_t span);

#endif
