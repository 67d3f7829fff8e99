/* winograd.h - convolution of blocked tensors with fewer products (Winograd, Toom-Cook): no
 * dilation, stride 1 with kernels of 1 to 5 or 7 along each axis, or stride 2 along both with
 * kernels of 3, 5 or 7.
 *
 * The picture is cut into tiles of (m_h x m_w) output pixels. Tiles of (t_h x t_w) input pixels are
 * transformed to as many points; at each point the tiles' channels are multiplied with transformed
 * weights; the sums are transformed back. An axis with t = 1 has no transform (kernel size 1).
 *
 * With stride 2 the even and the odd taps of a row meet pixels of their own, and so do those of a
 * column: it is a sum of four convolutions of stride 1, one for each phase of the picture, whose
 * points are added up before they are transformed back. The even taps are one more than the odd
 * ones; those have no term of the highest power, which is what the point at infinity is, so that
 * there a product has fewer phases. 3x3 taps with 6x6 points: 121 products for 225.
 *
 * Where there are few tiles and many weights, transformed weights would take longer to come from
 * memory than to be multiplied. A variant "of taps" keeps the weights as they are and transforms
 * them in registers, each time they meet a few tiles: 3x3 taps, 6x6 points. */
#ifndef SNI_CPU_CONV_WINOGRAD_WINOGRAD_H
#define SNI_CPU_CONV_WINOGRAD_WINOGRAD_H

#include "cpu/conv/conv.h"
#include "cpu/costs/costs.h"

/* How a convolution is cut; t = m + r - 1 is 1, 4, 6, 8 or 10. */
typedef struct sni_wino_variant {
    int t_h, t_w;       /* points */
    int m_h, m_w;       /* outputs */
    int r_h, r_w;       /* taps, of a phase */
    int stride;         /* 1 or 2 */
    bool taps;          /* weights are transformed when they are used */
    bool inner_product; /* products are Winograd inner products (cpu/gemm/inner_product.h) */
} sni_wino_variant;

enum {
    SNI_WINO_POINTS = 10, /* most along an axis */
    SNI_WINO_TAPS = 7,
    SNI_WINO_STRIP = 48, /* most columns of input that are transformed at once */
    SNI_WINO_TILES = 16  /* most tiles that are transformed at once */
};

/* What the vector parts are given. Strides are in floats. */
typedef struct sni_wino_input {
    int t_h, t_w, m_w, tiles;
    int64_t columns, from, to;          /* of the strip; zeros outside [from, to) */
    const float *rows[SNI_WINO_POINTS]; /* of the input from column `from` of the strip on */
    int64_t column;                     /* from column to column of the input */
    float *v[SNI_WINO_TILES];           /* point 0 of each tile */
    int64_t step;                       /* from point to point */
} sni_wino_input;

/* Products of one row of points, some tiles side by side and one block of output channels. */
typedef struct sni_wino_taps {
    const float *w; /* (channels, 9, block) */
    const float *v; /* (blocks of channels, 36, tiles, block), scaled */
    int64_t channels, v_block;
    float *m; /* point 0 of the first tile */
    int64_t m_step;
    bool add;          /* to what m has */
    const float *next; /* weights to come, of which each channel fetches two places `step` apart */
    int64_t step;
} sni_wino_taps;

typedef struct sni_wino_output {
    int t_h, t_w, m_h, m_w;
    int rows, columns; /* that lie in the picture */
    const float *from; /* point 0 */
    int64_t step;
    const float *bias, *residual; /* NULL: none */
    float least, most;            /* results are clamped */
    float *y;
    int64_t row; /* of y and residual */
} sni_wino_output;

/* One block of output channels of some input channels. */
typedef struct sni_wino_weights {
    int t_h, t_w, r_h, r_w;
    int64_t channels;
    const float *taps;                           /* (channels, r_h, r_w, block) */
    float *u[SNI_WINO_POINTS * SNI_WINO_POINTS]; /* points of the first channel; NULL: left out */
    int64_t next;                                /* from channel to channel */
} sni_wino_weights;

struct sni_wino_kernels {
    int rows; /* tiles that one product takes */
    void (*input)(const sni_wino_input *s);
    void (*output)(const sni_wino_output *s);
    /* A plain function of numbers: it is called for every few tiles of every point, where filling a
     * struct takes as long as the call.
     *
     * c (`nv` channel blocks, c_step apart, of `rows` tiles) = a b. `a` is `phases` times the
     * blocks of `channels`, a_step apart, of `rows` tiles; b is as often `channels` rows of nv
     * blocks. With each row of b two places of the weights to come are fetched: one `step` floats
     * farther from `next` on, and one `second` floats behind that. */
    void (*product)(int rows, int nv, int64_t phases, int64_t channels, const float *a,
                    int64_t a_step, const float *b, float *c, int64_t c_step, const float *next,
                    int64_t step, int64_t second);
    int taps_tiles; /* tiles that products with taps take at once */
    /* Row `row` of 6 points. */
    void (*taps)(int row, const sni_wino_taps *s);
    /* Scales `count` of (36, taps_tiles, block) for products with taps, whose points lack these
     * factors. */
    void (*taps_scale)(float *v, int64_t count);
    void (*weights)(const sni_wino_weights *s);
};

/* Whether products of this convolution's points can be Winograd inner products, and those are
 * quicker. */
bool sni_wino_takes_inner_product(const sni_conv_geometry *g);

/* The variant with so many points along the axes (1 along an axis with one tap; 10 along one axis
 * only; with stride 2 at most 6). False if there is none for this convolution. */
bool sni_wino_variant_of(const sni_conv_geometry *g, int t_h, int t_w, sni_wino_variant *variant);
/* The variant of taps, if there is one. */
bool sni_wino_variant_of_taps(const sni_conv_geometry *g, sni_wino_variant *variant);

/* Cycles of one thread that a variant is expected to take. Sizes must be known. Not for comparing
 * machines. */
double sni_wino_cost(const sni_conv_geometry *g, const sni_wino_variant *variant,
                     const sni_costs *costs);

/* The variant that is expected to be the quickest; false if none takes less than `limit` cycles.
 * Does not depend on threads. Sizes that are not known (below 1) are taken to be those of one
 * middling picture. `inner_product`: products are Winograd inner products
 * (cpu/gemm/inner_product.h) where those are quicker. */
bool sni_wino_choose(const sni_conv_geometry *g, bool inner_product, double limit,
                     const sni_costs *costs, sni_wino_variant *variant);

/* Floats of packed weights. */
size_t sni_wino_packed_size(const sni_conv_geometry *g, const sni_wino_variant *variant);

/* Packs weights (out_channels, in_channels, kernel_h, kernel_w) on so many threads. */
void sni_wino_pack(const sni_conv_geometry *g, const sni_wino_variant *variant,
                   const sni_unaligned_float *w, float *to, int threads);

/* Floats of scratch that a run with so many threads needs. */
size_t sni_wino_scratch_size(const sni_conv_geometry *g, const sni_wino_variant *variant,
                             int threads);

/* One run. packed, x and y are aligned to a block of channels, scratch to SNI_ALIGN. */
typedef struct sni_wino_call {
    const sni_conv_geometry *g;
    const sni_wino_variant *variant;
    const float *packed, *x;
    float *y;
    sni_conv_epilogue epilogue;
    int threads;
    float *scratch;
    size_t scratch_floats; /* at least sni_wino_scratch_size() */
} sni_wino_call;

/* Results are the same for any number of threads. */
void sni_wino_run(const sni_wino_call *call);

#endif
