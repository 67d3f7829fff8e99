/* winograd_parts.h - what the files of Winograd's method share: its phases and points. */
#ifndef SNI_CPU_CONV_WINOGRAD_WINOGRAD_PARTS_H
#define SNI_CPU_CONV_WINOGRAD_WINOGRAD_PARTS_H

#include "base/lengths.h"
#include "cpu/conv/winograd/winograd.h"

/* Whether a phase has the odd taps down and across. In this order those that a point needs come
 * one after the other. */
typedef struct sni_wino_phase {
    int down, across;
} sni_wino_phase;

static inline sni_wino_phase sni_wino_phase_of(int64_t i) {
    static const sni_wino_phase phases[] = {{0, 1}, {0, 0}, {1, 0}, {1, 1}};
    return phases[i];
}

static inline int sni_wino_phases(const sni_wino_variant *f) {
    return f->stride * f->stride;
}

static inline int64_t sni_wino_points(const sni_wino_variant *f) {
    return (int64_t)f->t_h * f->t_w;
}

/* Phases [*first, *end) of a point: the odd taps have no part in a point at infinity. Without a
 * stride there is one, of all taps. */
static inline void sni_wino_phases_at(const sni_wino_variant *f, int64_t point, int64_t *first,
                                      int64_t *end) {
    bool bottom = point / f->t_w == f->t_h - 1, right = point % f->t_w == f->t_w - 1;
    *first = f->stride == 2 && right;
    *end = f->stride == 1 ? 1 : bottom ? 2 : right ? 3 : 4;
}

/* Channels that all points have together. */
static inline int64_t sni_wino_depth(const sni_conv_geometry *g, const sni_wino_variant *f) {
    int64_t count = 0, first, end;
    for (int64_t i = 0; i < sni_wino_points(f); i++) {
        sni_wino_phases_at(f, i, &first, &end);
        count += end - first;
    }
    return count * g->in_channels;
}

/* How a run is cut into blocks of tiles, whose transformed input V and sums M stay in the
 * second-level cache, and how threads share them. */
typedef struct sni_wino_cut {
    int64_t tiles_h, tiles_w, tiles; /* the last over all images */
    int64_t in_blocks, out_blocks, pairs, points;
    int64_t v_blocks;  /* blocks of channels of all phases */
    int64_t depth;     /* channels of all points */
    int64_t most;      /* tiles of a block */
    int64_t rows;      /* tiles of a group, */
    int64_t most_rows; /* at most */
    bool inner_product;
    int64_t together;       /* pairs of output channel blocks whose sums are kept at once */
    bool by_channels;       /* threads share a block of tiles */
    int parts;              /* threads */
    int64_t v_step, m_step; /* from point to point; not a multiple of a page */
    int64_t v_group;        /* from group to group of tiles, */
    int64_t v_block;        /* and from block to block of channels */
    size_t v_size, m_size;  /* floats of one block's V, one part's M */
} sni_wino_cut;

/* By sizes, the variant and the caches alone; `threads` decide about sharing, not about results. */
sni_wino_cut sni_wino_cut_of(const sni_conv_geometry *g, const sni_wino_variant *f, int threads);

/* Floats that go through the level behind the second cache for blocks of `most` tiles with
 * `together` pairs at a time. */
double sni_wino_traffic(const sni_wino_cut *c, int64_t most, int64_t together);

#endif
