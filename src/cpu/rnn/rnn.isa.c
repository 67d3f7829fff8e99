/* rnn.isa.c - the recurrent cells, for one tier. A tile is up to MOST_ROWS sequences by one block
 * of hidden units (a vector) for all gates; its sums stay in registers over the state. Weights are
 * read once per tile from beginning to end: one sequence is limited by reading them, several by
 * multiply-adds. */
#include "cpu/rnn/rnn.h"
#include "cpu/core/simd_math.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    MOST_GATES = 4,
    MOST_ROWS = LANES == 16 ? 4 : 2, /* rows whose sums fit the registers with 4 gates */
    SUMS = LANES == 16 ? 8 : 12      /* independent sums that hide the latency of multiply-adds */
};

typedef vf gate_sums[MOST_ROWS][MOST_GATES];

/* out = the state times the weights of gates [from, from + count) of `gates`, for `rows` rows from
 * row b on. All numbers but b are constants at every call, so that it is inlined without its eight
 * parameters. If there are few sums, each is split into `parts` over the state's elements. */
INLINE void dot(const sni_rnn_step *s, const float *w, int64_t b, int rows, int gates, int from,
                int count, gate_sums out) {
    const int parts = rows * count >= SUMS ? 1 : SUMS / (rows * count);
    vf sums[SUMS][MOST_ROWS][MOST_GATES];
    UNROLL
    for (int p = 0; p < parts; p++) UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int g = 0; g < count; g++) sums[p][r][g] = splat(0);
    const float *h = s->state + b * s->row;
    w += from * LANES;
    int64_t k = 0;
    for (; k + parts <= s->hidden; k += parts) {
        UNROLL
        for (int p = 0; p < parts; p++) {
            UNROLL
            for (int g = 0; g < count; g++) {
                vf v = load(w + (p * gates + g) * LANES);
                UNROLL
                for (int r = 0; r < rows; r++) sums[p][r][g] += splat(h[r * s->row + k + p]) * v;
            }
        }
        w += parts * gates * LANES;
    }
    for (; k < s->hidden; k++, w += gates * LANES) {
        UNROLL
        for (int g = 0; g < count; g++) UNROLL
        for (int r = 0; r < rows; r++)
            sums[0][r][g] += splat(h[r * s->row + k]) * load(w + g * LANES);
    }
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int g = 0; g < count; g++) {
        vf total = sums[0][r][g];
        UNROLL
        for (int p = 1; p < parts; p++) total += sums[p][r][g];
        out[r][g] = total;
    }
}

/* The input's part of gate g of a block, for row b. */
INLINE vf gate_x(const sni_rnn_step *s, int64_t b, int64_t block, int gates, int g) {
    return load(s->gates_x + b * s->gates_row + (block * gates + g) * LANES);
}

INLINE const float *block_weights(const sni_rnn_step *s, int64_t block, int gates) {
    return s->weights + block * s->hidden * gates * LANES;
}

/* ---- Cells: one block, `rows` rows from row b on ---- */

/* sigmoid_vf() with fewer registers: the others hold the sums of several rows. */
static inline vf gate_vf(vf x) {
    return splat(1.0f) / (splat(1.0f) + exp_vf(-x));
}

INLINE void lstm_rows(const sni_rnn_step *s, int64_t block, int64_t b, int rows) {
    gate_sums a;
    dot(s, block_weights(s, block, 4), b, rows, 4, 0, 4, a);
    UNROLL
    for (int r = 0; r < rows; r++) {
        int64_t at = (b + r) * s->row + block * LANES;
        vf in = gate_vf(a[r][0] + gate_x(s, b + r, block, 4, 0));
        vf out = gate_vf(a[r][1] + gate_x(s, b + r, block, 4, 1));
        vf keep = gate_vf(a[r][2] + gate_x(s, b + r, block, 4, 2));
        vf fresh = tanh_vf(a[r][3] + gate_x(s, b + r, block, 4, 3));
        vf cell = keep * load(s->cell + at) + in * fresh;
        store(s->cell + at, cell);
        store(s->to + at, out * tanh_vf(cell));
    }
}

INLINE void gru_rows(const sni_rnn_step *s, int64_t block, int64_t b, int rows) {
    gate_sums a;
    dot(s, block_weights(s, block, 3), b, rows, 3, 0, 3, a);
    UNROLL
    for (int r = 0; r < rows; r++) {
        int64_t at = (b + r) * s->row + block * LANES;
        vf update = gate_vf(a[r][0] + gate_x(s, b + r, block, 3, 0));
        vf open = gate_vf(a[r][1] + gate_x(s, b + r, block, 3, 1));
        vf state = a[r][2] + load(s->late + block * LANES);
        vf fresh = tanh_vf(gate_x(s, b + r, block, 3, 2) + open * state);
        store(s->to + at, (splat(1) - update) * fresh + update * load(s->old + at));
    }
}

INLINE void gru_reset_rows(const sni_rnn_step *s, int64_t block, int64_t b, int rows) {
    gate_sums a;
    dot(s, block_weights(s, block, 3), b, rows, 3, 0, 2, a);
    UNROLL
    for (int r = 0; r < rows; r++) {
        int64_t at = (b + r) * s->row + block * LANES;
        vf open = gate_vf(a[r][1] + gate_x(s, b + r, block, 3, 1));
        store(s->update + at, gate_vf(a[r][0] + gate_x(s, b + r, block, 3, 0)));
        store(s->to + at, open * load(s->old + at));
    }
}

INLINE void gru_mix_rows(const sni_rnn_step *s, int64_t block, int64_t b, int rows) {
    gate_sums a;
    dot(s, block_weights(s, block, 3), b, rows, 3, 2, 1, a);
    UNROLL
    for (int r = 0; r < rows; r++) {
        int64_t at = (b + r) * s->row + block * LANES;
        vf update = load(s->update + at);
        vf fresh = tanh_vf(a[r][0] + gate_x(s, b + r, block, 3, 2));
        store(s->to + at, (splat(1) - update) * fresh + update * load(s->old + at));
    }
}

INLINE void rnn_rows(const sni_rnn_step *s, int64_t block, int64_t b, int rows) {
    gate_sums a;
    dot(s, block_weights(s, block, 1), b, rows, 1, 0, 1, a);
    UNROLL
    for (int r = 0; r < rows; r++) {
        vf x = a[r][0] + gate_x(s, b + r, block, 1, 0);
        store(s->to + (b + r) * s->row + block * LANES, s->relu ? max_vf(x, splat(0)) : tanh_vf(x));
    }
}

/* ---- All rows of a block, MOST_ROWS at a time, while its weights stay in the cache ---- */

typedef void (*rows_fn)(const sni_rnn_step *s, int64_t block, int64_t b, int rows);

INLINE void all_rows(const sni_rnn_step *s, int64_t first, int64_t last, rows_fn fn) {
    for (int64_t block = first; block < last; block++) {
        int64_t b = 0;
        for (; b + MOST_ROWS <= s->rows; b += MOST_ROWS) fn(s, block, b, MOST_ROWS);
        switch (s->rows - b) {
#if LANES == 16
        case 3:
            fn(s, block, b, 3);
            break;
        case 2:
            fn(s, block, b, 2);
            break;
#endif
        case 1:
            fn(s, block, b, 1);
            break;
        default:
            break;
        }
    }
}

static void lstm(const sni_rnn_step *s, int64_t first, int64_t last) {
    all_rows(s, first, last, lstm_rows);
}

static void gru(const sni_rnn_step *s, int64_t first, int64_t last) {
    all_rows(s, first, last, gru_rows);
}

static void gru_reset(const sni_rnn_step *s, int64_t first, int64_t last) {
    all_rows(s, first, last, gru_reset_rows);
}

static void gru_mix(const sni_rnn_step *s, int64_t first, int64_t last) {
    all_rows(s, first, last, gru_mix_rows);
}

static void rnn(const sni_rnn_step *s, int64_t first, int64_t last) {
    all_rows(s, first, last, rnn_rows);
}

SNI_DEFINE_TABLE(sni_rnn_kernels) = {
    .lanes = LANES,
    .rnn = rnn,
    .lstm = lstm,
    .gru = gru,
    .gru_reset = gru_reset,
    .gru_mix = gru_mix,
};
