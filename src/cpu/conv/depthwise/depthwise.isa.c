/* depthwise.isa.c - rows of depthwise convolution, and of groups whose channels are near each
 * other, for one instruction-set tier (see tier.isa.c). */
#include "base/lengths.h"
#include "cpu/blocked/block.h"
#include "cpu/conv/depthwise/depthwise.h"

enum {
    MOST_PIXELS = LANES == 4 ? 4 : 8, /* outputs whose sums are in registers at once */
    MOST_TAPS = 7,                    /* of a kernel whose width is a constant */
    NEAR = 12288                      /* floats of input that stay in the first cache */
};

/* Has v in a register: else it is loaded for each product. */
#if LANES == 4
#define LOADED(v) (void)(v)
#else
#define LOADED(v) __asm__("" : "+v"(v))
#endif

/* What lanes of the output see of the input, channel after channel of their groups; a constant
 * wherever it is used. */
typedef enum sight {
    OWN,  /* the lane in their own place alone */
    ONE,  /* one lane: they are all of one group */
    FEW,  /* lanes of one block */
    PAIR, /* lanes of two blocks */
} sight;

/* The channels whose turn it is: the blocks they lie in, by the address of column 0 of the first
 * row (ONE: of the channel there), and what each lane sees, lanes of the second block counted from
 * BLOCK on. */
typedef struct turn {
    uintptr_t near, far;
    vbi lanes;
} turn;

/* Finds all turns. */
INLINE sight find_turns(const sni_depthwise_rows *r, turn *turns) {
    const int64_t few = r->few, last = sni_min(r->channel + BLOCK, r->channels) - 1;
    const int64_t x_block = r->x_block * (int64_t)sizeof(float);
    const bool one = r->channel / r->shares == last / r->shares;
    bool single = true; /* block that lanes see in each turn */
    if (few == 1 && r->shares == 1) return OWN;
    vbi at = {0}; /* channels of the input */
    for (int64_t i = 0; i < BLOCK; i++)
        at[i] = (int32_t)(sni_min(r->channel + i, last) / r->shares * few);
    for (int64_t i = 0; i < few; i++, at += 1) {
        const vbi block = at >> (BLOCK == 16 ? 4 : 3);
        const int32_t near = block[0], far = block[BLOCK - 1];
        turns[i].near = (uintptr_t)r->x + (uintptr_t)(near * x_block);
        if (one) turns[i].near += (uintptr_t)(at[0] & (BLOCK - 1)) * sizeof(float);
        turns[i].far = (uintptr_t)r->x + (uintptr_t)(far * x_block);
        turns[i].lanes = (at & (BLOCK - 1)) | ((block != near) & BLOCK);
        single &= near == far;
    }
    return one ? ONE : single ? FEW : PAIR;
}

/* Has lanes of *v, which is the nearer block `x` bytes from column 0 of the first row, be what they
 * see there. */
INLINE void pick(sight see, const turn *t, uintptr_t x, vb *v) {
    const vb near = *v;
    vb far = near;
    if (see == PAIR) far = VB_CONST(t->far + x);
#if LANES == 16
    if (see == PAIR)
        *v = (vb)_mm512_permutex2var_ps((__m512)near, (__m512i)t->lanes, (__m512)far);
    else
        *v = (vb)_mm512_permutexvar_ps((__m512i)t->lanes, (__m512)near);
#elif LANES == 8
    *v = (vb)_mm256_permutevar8x32_ps((__m256)near, (__m256i)t->lanes);
    if (see == PAIR) /* the bit of BLOCK as a sign */
        *v = (vb)_mm256_blendv_ps((__m256)*v,
                                  _mm256_permutevar8x32_ps((__m256)far, (__m256i)t->lanes),
                                  (__m256)(t->lanes << 28));
#else
    for (int i = 0; i < BLOCK; i++)
        (*v)[i] = t->lanes[i] < BLOCK ? near[t->lanes[i]] : far[t->lanes[i] - BLOCK];
#endif
}

/* Where the nearer block is `x` bytes from column 0 of the first row. */
INLINE uintptr_t near_at(const sni_depthwise_rows *r, sight see, const turn *t, uintptr_t x) {
    return (see == OWN ? (uintptr_t)r->x : t->near) + x;
}

/* Rows of the kernel that begin within `height` rows of the input. */
INLINE int64_t rows_within(const sni_depthwise_rows *r, int64_t height) {
    return r->dilation_h == 1 ? height : (height + r->dilation_h - 1) / r->dilation_h;
}

/* Rows [*first, *end) of the kernel are in the picture for row n of output; returns the row of the
 * input that the first of them sees. */
INLINE int64_t place_row(const sni_depthwise_rows *r, int64_t n, int64_t *first, int64_t *end) {
    int64_t top = r->top + n * r->stride_h;
    *first = top >= 0 ? 0 : rows_within(r, -top);
    *end = top >= r->in_h ? 0 : sni_min(rows_within(r, r->in_h - top), r->rows);
    return top + *first * r->dilation_h;
}

INLINE void finish_pixels(const sni_depthwise_rows *r, int pixels, bool bounded, int64_t at,
                          vb *sum) {
    const float *residual = r->residual;
    float *y = r->y + at;
    if (residual) {
        residual += at;
        UNROLL
        for (int o = 0; o < pixels; o++) sum[o] += VB_CONST(residual + o * BLOCK);
    }
    if (bounded && r->most < INFINITY) {
        const vb least = VB_SPLAT(r->least), most = VB_SPLAT(r->most);
        UNROLL
        for (int o = 0; o < pixels; o++) clamp_vb(&sum[o], &least, &most);
    } else if (bounded) {
        const vb least = VB_SPLAT(r->least);
        UNROLL
        for (int o = 0; o < pixels; o++) raise_vb(&sum[o], &least);
    }
    UNROLL
    for (int o = 0; o < pixels; o++) VB(y + o * BLOCK) = sum[o];
}

/* What a group of outputs is compiled for: all of it constants at every call, so that each input
 * is loaded once and every sum stays in a register. */
typedef struct shape {
    int taps, stride; /* along a row; 0: any, and then any distance of taps */
    int pixels;       /* outputs side by side */
    sight see;
    bool edge; /* not all columns are in the picture */
} shape;

/* Outputs from column `first` on of rows [from, to). */
typedef struct place {
    int64_t first, from, to;
} place;

/* Adds one row of the kernel to the outputs, the first of which sees the input from `x` on. At an
 * edge only columns with a bit in `inside` are in the picture. */
INLINE void add_fixed(const sni_depthwise_rows *r, shape c, const turn *t, uint32_t inside,
                      uintptr_t x, const float *weights, vb *sum) {
    const int taps = c.taps, stride = c.stride, pixels = c.pixels;
    const sight see = c.see;
    const uintptr_t near = near_at(r, see, t, x);
    vb w[MOST_TAPS];
    UNROLL
    for (int tap = 0; tap < taps; tap++) w[tap] = VB_CONST(weights + tap * BLOCK);
    UNROLL
    for (int i = 0; i < (pixels - 1) * stride + taps; i++) {
        if (c.edge && !(inside & 1u << i)) continue;
        const uintptr_t at = (uintptr_t)i * sizeof(vb);
        vb v;
        if (see == ONE)
            v = VB_SPLAT(*(const float *)(near + at));
        else
            v = VB_CONST(near + at);
        if (see == FEW || see == PAIR) pick(see, t, x + at, &v);
        if (see != OWN || i % stride + stride < taps) LOADED(v);
        UNROLL
        for (int o = 0; o < pixels; o++) {
            int tap = i - o * stride;
            if (tap >= 0 && tap < taps) sum[o] += v * w[tap];
        }
    }
}

/* Bits below bit n, of 32. */
INLINE uint32_t bits_below(int64_t n) {
    return n <= 0 ? 0 : (uint32_t)((UINT64_C(1) << sni_min(n, 32)) - 1);
}

/* Columns from `at` on that are in the picture, a bit each. */
INLINE uint32_t columns_inside(const sni_depthwise_rows *r, int64_t at) {
    return bits_below(r->in_w - at) & ~bits_below(-at);
}

INLINE void run_fixed(const sni_depthwise_rows *r, shape c, const turn *turns, place p) {
    const int taps = c.taps, stride = c.stride, pixels = c.pixels;
    const int64_t first = p.first;
    const int64_t at = r->left + first * stride, line = r->x_line, y_line = r->y_line;
    const uintptr_t step = (uintptr_t)(r->dilation_h * line) * sizeof(float);
    const uint32_t inside = c.edge ? columns_inside(r, at) : 0;
    const bool bounded = r->least > -INFINITY || r->most < INFINITY;
    const int64_t few = c.see == OWN ? 1 : r->few;
    vb start = {0};
    if (r->bias) start = VB_CONST(r->bias);
    for (int64_t n = p.from; n < p.to; n++) {
        int64_t row, end, top = place_row(r, n, &row, &end);
        uintptr_t x = (uintptr_t)((top - r->x_first) * line + at * BLOCK) * sizeof(float);
        const float *w = r->w + row * few * taps * BLOCK;
        vb sum[MOST_PIXELS];
        UNROLL
        for (int o = 0; o < pixels; o++) sum[o] = start;
        for (; row < end; row++, x += step)
            for (int64_t i = 0; i < few; i++, w += taps * BLOCK)
                add_fixed(r, c, &turns[i], inside, x, w, sum);
        finish_pixels(r, pixels, bounded, n * y_line + first * BLOCK, sum);
    }
}

#if LANES == 16
/* Two rows of output of a 3x3 kernel at once, n and n + 1: all weights and sums are in registers,
 * and each input is loaded once for up to six products. */
INLINE void run_pairs(const sni_depthwise_rows *r, int pixels, place p) {
    const int64_t first = p.first, from = p.from, to = p.to;
    const int64_t line = r->x_line;
    const bool bounded = r->least > -INFINITY || r->most < INFINITY;
    const float *x = r->x + (r->top + from - r->x_first) * line + (r->left + first) * BLOCK;
    vb w[9], start = {0};
    if (r->bias) start = VB_CONST(r->bias);
    UNROLL
    for (int i = 0; i < 9; i++) w[i] = VB_CONST(r->w + i * BLOCK);
    for (int64_t n = from; n < to; n += 2, x += 2 * line) {
        vb sum[2 * MOST_PIXELS];
        UNROLL
        for (int o = 0; o < 2 * pixels; o++) sum[o] = start;
        UNROLL
        for (int row = 0; row < 4; row++) UNROLL
        for (int i = 0; i < pixels + 2; i++) {
            vb v = VB_CONST(x + row * line + i * BLOCK);
            LOADED(v);
            UNROLL
            for (int o = 0; o < 2 * pixels; o++) {
                int tap = i - o % pixels, k = row - o / pixels;
                if (tap >= 0 && tap < 3 && k >= 0 && k < 3) sum[o] += v * w[k * 3 + tap];
            }
        }
        finish_pixels(r, pixels, bounded, n * r->y_line + first * BLOCK, sum);
        finish_pixels(r, pixels, bounded, (n + 1) * r->y_line + first * BLOCK, sum + pixels);
    }
}
#endif

/* The same for any kernel; the first output sees column `at` and those after it. */
INLINE void add_any(const sni_depthwise_rows *r, shape c, const turn *t, uintptr_t x,
                    const float *w, int64_t at, vb *sum) {
    const int pixels = c.pixels;
    const sight see = c.see;
    for (int64_t tap = 0; tap < r->taps; tap++, w += BLOCK) {
        vb weight = VB_CONST(w);
        UNROLL
        for (int o = 0; o < pixels; o++) {
            int64_t column = at + tap * r->dilation_w + o * r->stride_w;
            if (c.edge && (column < 0 || column >= r->in_w)) continue;
            const uintptr_t there = x + (uintptr_t)column * sizeof(vb);
            const uintptr_t near = near_at(r, see, t, there);
            vb v;
            if (see == ONE)
                v = VB_SPLAT(*(const float *)near);
            else
                v = VB_CONST(near);
            if (see == FEW || see == PAIR) pick(see, t, there, &v);
            sum[o] += weight * v;
        }
    }
}

INLINE void run_any(const sni_depthwise_rows *r, shape c, const turn *turns, place p) {
    const int pixels = c.pixels;
    const int64_t first = p.first;
    const int64_t at = r->left + first * r->stride_w, few = c.see == OWN ? 1 : r->few;
    vb start = {0};
    if (r->bias) start = VB_CONST(r->bias);
    for (int64_t n = p.from; n < p.to; n++) {
        int64_t row, end, top = place_row(r, n, &row, &end);
        const float *w = r->w + row * few * r->taps * BLOCK;
        vb sum[MOST_PIXELS];
        UNROLL
        for (int o = 0; o < pixels; o++) sum[o] = start;
        for (; row < end; row++, top += r->dilation_h) {
            uintptr_t x = (uintptr_t)((top - r->x_first) * r->x_line) * sizeof(float);
            for (int64_t i = 0; i < few; i++, w += r->taps * BLOCK)
                add_any(r, c, &turns[i], x, w, at, sum);
        }
        finish_pixels(r, pixels, true, n * r->y_line + first * BLOCK, sum);
    }
}

/* The same where all columns are in the picture and lanes see their own place. */
INLINE void run_inner(const sni_depthwise_rows *r, shape c, const turn *turns, place p) {
#if LANES == 16
    if (c.taps == 3 && c.stride == 1 && r->rows == 3 && r->stride_h == 1 && r->dilation_h == 1) {
        for (; p.from < p.to && r->top + p.from < 0; p.from++)
            run_fixed(r, c, turns, (place){p.first, p.from, p.from + 1});
        int64_t whole = sni_min(p.to, r->in_h - r->top - 2), pairs = (whole - p.from) / 2;
        if (pairs > 0) {
            run_pairs(r, c.pixels, (place){p.first, p.from, p.from + 2 * pairs});
            p.from += 2 * pairs;
        }
    }
#endif
    run_fixed(r, c, turns, p);
}

/* `c` but for its edge, which is found here. */
INLINE void run_group(const sni_depthwise_rows *r, shape c, const turn *turns, place p) {
    const int64_t at = r->left + p.first * r->stride_w;
    const int64_t reach = (c.pixels - 1) * r->stride_w + (r->taps - 1) * r->dilation_w;
    const bool edge = at < 0 || at + reach >= r->in_w;
    const shape inner = c, outer = {c.taps, c.stride, c.pixels, c.see, true};
    if (!c.taps && edge)
        run_any(r, outer, turns, p);
    else if (!c.taps)
        run_any(r, inner, turns, p);
    else if (edge)
        run_fixed(r, outer, turns, p);
    else if (c.see != OWN)
        run_fixed(r, inner, turns, p);
    else
        run_inner(r, inner, turns, p);
}

/* Rows [from, to) in groups of nearly the same size. */
INLINE void run_groups(const sni_depthwise_rows *r, int taps, int stride, sight see,
                       const turn *turns, int64_t from, int64_t to) {
    int groups = (int)((r->pixels + MOST_PIXELS - 1) / MOST_PIXELS), left = (int)r->pixels;
    for (int64_t first = 0; groups > 0; groups--) {
        int pixels = (left + groups - 1) / groups;
        switch (pixels) {
#define CASE(n)                                                                                  \
    case n:                                                                                      \
        if (n <= MOST_PIXELS)                                                                    \
            run_group(r, (shape){taps, stride, n, see, false}, turns, (place){first, from, to}); \
        break;
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
            CASE(6)
            CASE(7)
            CASE(8)
#undef CASE
        }
        first += pixels;
        left -= pixels;
    }
}

/* Some rows at once, so that the inputs of a group are near when those of the next one are read. */
INLINE void run_rows(const sni_depthwise_rows *r, int taps, int stride, sight see,
                     const turn *turns) {
    int64_t some = NEAR / (r->in_w * BLOCK) / (r->stride_h < 2 ? 1 : 2);
    if (some < 1) some = 1;
    for (int64_t n = 0; n < r->count; n += some)
        run_groups(r, taps, stride, see, turns, n, n + some < r->count ? n + some : r->count);
}

static void own_3_1(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 1, OWN, t);
}
static void own_3_2(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 2, OWN, t);
}
static void own_5_1(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 5, 1, OWN, t);
}
static void own_5_2(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 5, 2, OWN, t);
}
static void own_7_1(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 7, 1, OWN, t);
}
static void own_any(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 0, 0, OWN, t);
}
static void one_3_1(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 1, ONE, t);
}
static void one_3_2(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 2, ONE, t);
}
static void one_any(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 0, 0, ONE, t);
}
static void few_3_1(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 1, FEW, t);
}
static void few_3_2(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 2, FEW, t);
}
static void few_any(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 0, 0, FEW, t);
}
static void pair_3_1(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 1, PAIR, t);
}
static void pair_3_2(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 3, 2, PAIR, t);
}
static void pair_any(const sni_depthwise_rows *r, const turn *t) {
    run_rows(r, 0, 0, PAIR, t);
}

typedef void (*rows_fn)(const sni_depthwise_rows *r, const turn *t);

/* By what lanes see and by the window: three columns side by side, one or two apart; any other. */
static const rows_fn by_sight[][3] = {[OWN] = {own_3_1, own_3_2, own_any},
                                      [ONE] = {one_3_1, one_3_2, one_any},
                                      [FEW] = {few_3_1, few_3_2, few_any},
                                      [PAIR] = {pair_3_1, pair_3_2, pair_any}};

static void rows(const sni_depthwise_rows *r) {
    turn turns[SNI_DEPTHWISE_FEW];
    const sight see = find_turns(r, turns);
    int64_t kind = r->dilation_w == 1 && r->stride_w <= 2 ? r->taps * 2 + r->stride_w : 0;
    if (kind == 3 * 2 + 1)
        by_sight[see][0](r, turns);
    else if (kind == 3 * 2 + 2)
        by_sight[see][1](r, turns);
    else if (see == OWN && kind == 5 * 2 + 1)
        own_5_1(r, turns);
    else if (see == OWN && kind == 5 * 2 + 2)
        own_5_2(r, turns);
    else if (see == OWN && kind == 7 * 2 + 1)
        own_7_1(r, turns);
    else
        by_sight[see][2](r, turns);
}

SNI_DEFINE_TABLE(sni_depthwise_kernels) = {.rows = rows};
