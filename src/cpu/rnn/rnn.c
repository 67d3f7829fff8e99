/* rnn.c - RNN, GRU and LSTM in float32 with constant weights. The input's part of all gates is one
 * matrix product for all steps; then each step is one pass over the packed recurrent weights. */
#include "ops/nn/rnn_core.h"

#include "base/checked.h"
#include "base/threadpool.h"
#include "cpu/rnn/rnn.h"
#include "cpu/gemm/dense.h"
#include "ops/core/compute.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS_AT_ONCE = 128,    /* steps between two polls */
    MACS_TO_SPLIT = 200000, /* multiply-adds of a step that are worth waking a second thread */
    MACS_TO_STAY = 50000, /* the same for a thread that is still awake from the step before, ... */
    MACS_TO_WAKE = 2000000, /* ... if all steps together have so many */
    CHUNK_BYTES = 64 << 10  /* recurrent weights that are read in one direction */
};

typedef struct packed_rnn {
    sni_cell cell;
    int64_t gates, hidden, input, dirs, blocks, lanes;
    float *w;    /* (input, dirs * blocks * gates * lanes) for the matrix product */
    float *r;    /* (dirs, blocks, hidden, gates, lanes) */
    float *bias; /* (dirs, blocks, gates, lanes) */
    float *late; /* GRU: (dirs, blocks, lanes) */
} packed_rnn;

/* ---- Choosing ---- */

static bool is_weight(const sni_choice *c, int i) {
    return i < c->n_in && c->constants[i] && c->constants[i]->tensor.dtype == SN_FLOAT32;
}

/* True for the activations that the kernels have: ONNX's defaults, and Relu for RNN. */
static bool usual_activations(const sni_rnn_params *p, sni_cell cell) {
    static const sni_fn usual[][3] = {[SNI_CELL_RNN] = {SNI_FN_TANH},
                                      [SNI_CELL_GRU] = {SNI_FN_SIGMOID, SNI_FN_TANH},
                                      [SNI_CELL_LSTM] = {SNI_FN_SIGMOID, SNI_FN_TANH, SNI_FN_TANH}};
    sni_activation acts[6];
    int each = sni_cell_activations(cell), dirs = p->direction == 2 ? 2 : 1;
    if (sni_rnn_activations(p, cell, acts, NULL) != SN_OK) return false;
    for (int i = 0; i < each * dirs; i++) {
        bool relu = cell == SNI_CELL_RNN && acts[i].kind == SNI_FN_RELU;
        if (acts[i].kind != usual[cell][i % each] && !relu) return false;
        if (acts[i].kind != acts[i % each].kind) return false;
    }
    return true;
}

static bool accepts(const sni_choice *c, sni_cell cell) {
    const sni_rnn_params *p = c->params;
    bool biased = sni_choice_given(c, 3);
    return sni_choice_is(c, 0, SN_FLOAT32) && is_weight(c, 1) && is_weight(c, 2) &&
           c->constants[1]->tensor.rank == 3 && c->constants[2]->tensor.rank == 3 &&
           (!biased || is_weight(c, 3)) && !sni_choice_given(c, 7) && !p->has_clip &&
           !(cell == SNI_CELL_LSTM && p->input_forget) && usual_activations(p, cell);
}

static bool rnn_accepts(const sni_choice *c) {
    return accepts(c, SNI_CELL_RNN);
}

static bool gru_accepts(const sni_choice *c) {
    return accepts(c, SNI_CELL_GRU);
}

static bool lstm_accepts(const sni_choice *c) {
    return accepts(c, SNI_CELL_LSTM);
}

/* ---- Packing ---- */

/* The row of W and R for lane `lane` of a gate of a block; -1: padding. */
static int64_t unit_row(const packed_rnn *p, int64_t block, int64_t gate, int64_t lane) {
    int64_t unit = block * p->lanes + lane;
    return unit < p->hidden ? gate * p->hidden + unit : -1;
}

static void pack_recurrent(const packed_rnn *p, const float *r) {
    float *to = p->r;
    for (int64_t d = 0; d < p->dirs; d++, r += p->gates * p->hidden * p->hidden)
        for (int64_t block = 0; block < p->blocks; block++)
            for (int64_t k = 0; k < p->hidden; k++)
                for (int64_t g = 0; g < p->gates; g++)
                    for (int64_t lane = 0; lane < p->lanes; lane++) {
                        int64_t row = unit_row(p, block, g, lane);
                        *to++ = row < 0 ? 0 : r[row * p->hidden + k];
                    }
}

/* Adds up both biases, except that of a GRU's product before the reset gate (`late`), which is kept
 * separately. */
static void pack_bias(const packed_rnn *p, const float *b, bool late) {
    float *to = p->bias;
    int64_t wide = p->gates * p->hidden;
    for (int64_t d = 0; d < p->dirs; d++)
        for (int64_t block = 0; block < p->blocks; block++)
            for (int64_t g = 0; g < p->gates; g++)
                for (int64_t lane = 0; lane < p->lanes; lane++) {
                    int64_t row = unit_row(p, block, g, lane);
                    const float *from = b ? b + d * 2 * wide : NULL;
                    bool apart = late && g == 2;
                    *to++ = !from || row < 0 ? 0 : from[row] + (apart ? 0 : from[wide + row]);
                    if (apart)
                        p->late[(d * p->blocks + block) * p->lanes + lane] =
                            !from || row < 0 ? 0 : from[wide + row];
                }
}

/* Packs W as a right operand, with its rows in the order of the gates' vectors. */
static sn_status pack_input(const packed_rnn *p, const float *w, sn_error *err) {
    int64_t wide = p->blocks * p->gates * p->lanes;
    size_t row_bytes = (size_t)p->input * sizeof(float), bytes;
    if (!sni_mul_size((size_t)(p->dirs * wide), row_bytes, &bytes)) return sni_fail_memory(err);
    float *ordered = calloc(bytes + 1, 1);
    if (!ordered) return sni_fail_memory(err);
    float *to = ordered;
    for (int64_t d = 0; d < p->dirs; d++, w += p->gates * p->hidden * p->input)
        for (int64_t block = 0; block < p->blocks; block++)
            for (int64_t g = 0; g < p->gates; g++)
                for (int64_t lane = 0; lane < p->lanes; lane++, to += p->input) {
                    int64_t row = unit_row(p, block, g, lane);
                    if (row >= 0 && row_bytes) memcpy(to, w + row * p->input, row_bytes);
                }
    sni_gemm_pack_b(ordered, 1, p->input, p->input, p->dirs * wide, p->w);
    free(ordered);
    return SN_OK;
}

static sn_status fill(const sni_choice *c, packed_rnn *p, sn_error *err) {
    const sni_rnn_params *params = c->params;
    bool late = p->cell == SNI_CELL_GRU && params->linear_before_reset, filled;
    int64_t units = p->dirs * p->blocks * p->lanes, vectors = units * p->gates;
    const sni_tensor *w, *r, *b;
    const size_t counts[] = {sni_gemm_packed_b_size(p->input, vectors),
                             (size_t)(vectors * p->hidden), (size_t)vectors, (size_t)units};
    void *blobs[4];
    SN_TRY(sni_cpu_words(c, 4, counts, blobs, &filled, err));
    p->w = blobs[0];
    p->r = blobs[1];
    p->bias = blobs[2];
    p->late = blobs[3];
    if (filled) return SN_OK;
    SN_TRY(sni_cpu_weight(c, 1, &w, err));
    SN_TRY(sni_cpu_weight(c, 2, &r, err));
    SN_TRY(sni_cpu_weight(c, 3, &b, err));
    memset(p->late, 0, (size_t)units * sizeof *p->late);
    pack_recurrent(p, r->data);
    pack_bias(p, b ? b->data : NULL, late);
    return pack_input(p, w->data, err);
}

static sn_status prepare(const sni_choice *c, sni_cell cell, void **state, sn_error *err) {
    const sni_tensor *w = &c->constants[1]->tensor, *r = &c->constants[2]->tensor;
    packed_rnn *p = calloc(1, sizeof *p);
    if (!p) return sni_fail_memory(err);
    p->cell = cell;
    p->gates = sni_cell_gates(cell);
    p->hidden = r->dims[2];
    p->input = w->dims[2];
    p->dirs = r->dims[0];
    p->lanes = sni_cpu_kernels_get()->rnn->lanes;
    p->blocks = (p->hidden + p->lanes - 1) / p->lanes;
    sn_status status = fill(c, p, err);
    if (status == SN_OK)
        *state = p;
    else
        free(p);
    return status;
}

static sn_status rnn_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, SNI_CELL_RNN, state, err);
}

static sn_status gru_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, SNI_CELL_GRU, state, err);
}

static sn_status lstm_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, SNI_CELL_LSTM, state, err);
}

/* ---- Running ---- */

typedef struct rnn_call {
    const packed_rnn *p;
    const sni_rnn_kernels *kernels;
    sni_rnn_place at;
    int threads;   /* of one step */
    int64_t chunk; /* blocks that are processed in one direction: CHUNK_BYTES */
    bool relu, early;
    int64_t wide, units;    /* vectors of all gates of a direction; units with padding */
    const float *gates_x;   /* (rows of X, dirs, wide) */
    float *h[2], *cell;     /* (dirs, batch, units); h by the step's number, even and odd */
    float *update, *reset;  /* GRU: (dirs, batch, units) */
    float *y;               /* NULL: not wanted */
    int64_t step, step_end; /* steps to do now */
} rnn_call;

typedef struct step_job {
    sni_rnn_fn fn;
    sni_rnn_step step;
    int64_t chunk;
    bool back;
} step_job;

/* Blocks [begin, end) of a step, chunk by chunk, backwards in every other step: if the weights are
 * a little larger than the cache, those that were read last are still in it. */
static void run_blocks(void *ctx, int64_t begin, int64_t end) {
    const step_job *j = ctx;
    int64_t chunks = (end - begin + j->chunk - 1) / j->chunk;
    for (int64_t i = 0; i < chunks; i++) {
        int64_t first = begin + (j->back ? chunks - 1 - i : i) * j->chunk, last = first + j->chunk;
        j->fn(&j->step, first, last < end ? last : end);
    }
}

/* All blocks of a step, divided among the threads. */
static void run_step(const rnn_call *c, sni_rnn_fn fn, const sni_rnn_step *s, bool back) {
    step_job job = {fn, *s, c->chunk, back};
    int64_t grain = (c->p->blocks + c->threads - 1) / c->threads;
    sni_parallel_for(c->threads, c->p->blocks, grain, run_blocks, &job);
}

/* `rows` sequences from b on, all at step t. */
static void run_rows(const rnn_call *c, int64_t d, int64_t b, int64_t rows, int64_t t) {
    const packed_rnn *p = c->p;
    int64_t from = (d * c->at.batch + b) * c->units, row = sni_rnn_input_row(&c->at, d, b, t);
    int64_t next = c->at.batch_first ? c->at.seq : 1;
    sni_rnn_step s = {.rows = rows,
                      .hidden = p->hidden,
                      .weights = p->r + d * p->hidden * c->wide,
                      .state = c->h[t & 1] + from,
                      .gates_x = c->gates_x + (row * p->dirs + d) * c->wide,
                      .gates_row = next * p->dirs * c->wide,
                      .old = c->h[t & 1] + from,
                      .late = p->late + d * c->units,
                      .cell = c->cell ? c->cell + from : NULL,
                      .update = c->update ? c->update + from : NULL,
                      .to = c->h[!(t & 1)] + from,
                      .row = c->units,
                      .relu = c->relu};
    if (p->cell == SNI_CELL_RNN) {
        run_step(c, c->kernels->rnn, &s, t & 1);
    } else if (p->cell == SNI_CELL_LSTM) {
        run_step(c, c->kernels->lstm, &s, t & 1);
    } else if (!c->early) {
        run_step(c, c->kernels->gru, &s, t & 1);
    } else {
        sni_rnn_step first = s;
        first.to = c->reset + from;
        run_step(c, c->kernels->gru_reset, &first, false);
        s.state = c->reset + from;
        run_step(c, c->kernels->gru_mix, &s, true);
    }
}

/* Sequences of different lengths are processed one by one; one that has ended keeps its state. */
static void run_ragged(const rnn_call *c, int64_t d, int64_t t) {
    for (int64_t b = 0; b < c->at.batch; b++) {
        int64_t from = (d * c->at.batch + b) * c->units;
        if (t < sni_rnn_length(&c->at, b))
            run_rows(c, d, b, 1, t);
        else
            memcpy(c->h[!(t & 1)] + from, c->h[t & 1] + from, (size_t)c->units * sizeof(float));
    }
}

/* Steps [step, step_end) of one direction. */
static void run_direction(const rnn_call *c, int64_t d) {
    size_t bytes = (size_t)c->p->hidden * sizeof(float);
    for (int64_t t = c->step; t < c->step_end; t++) {
        if (c->at.lengths)
            run_ragged(c, d, t);
        else
            run_rows(c, d, 0, c->at.batch, t);
        for (int64_t b = 0; c->y && b < c->at.batch; b++)
            if (t < sni_rnn_length(&c->at, b))
                memcpy(c->y + sni_rnn_output(&c->at, d, b, t),
                       c->h[!(t & 1)] + (d * c->at.batch + b) * c->units, bytes);
    }
}

static void run_directions(void *ctx, int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; d++) run_direction(ctx, d);
}

static sn_status all_steps(sni_kernel *k, rnn_call *c) {
    for (c->step = 0; c->step < c->at.seq; c->step = c->step_end) {
        c->step_end = c->step + STEPS_AT_ONCE < c->at.seq ? c->step + STEPS_AT_ONCE : c->at.seq;
        SN_TRY(sni_poll(k));
        if (c->p->dirs == 1)
            run_direction(c, 0);
        else
            sni_parallel_for(k->threads, c->p->dirs, 1, run_directions, c);
    }
    return SN_OK;
}

/* Allocates the states, padded with zeros, and sets the initial ones. */
static sn_status begin(sni_kernel *k, rnn_call *c) {
    float **states[] = {&c->h[0], &c->h[1], &c->cell, &c->update, &c->reset};
    int64_t rows = c->p->dirs * c->at.batch;
    bool lstm = c->p->cell == SNI_CELL_LSTM;
    bool wanted[] = {true, true, lstm, c->early, c->early};
    for (int i = 0; i < 5; i++) {
        void *state = NULL;
        if (wanted[i]) SN_TRY(sni_scratch_matrix(k, rows, c->units, sizeof(float), &state));
        if (wanted[i] && rows) memset(state, 0, (size_t)(rows * c->units) * sizeof(float));
        *states[i] = state;
    }
    const sni_tensor *first[] = {sni_in(k, 5), lstm ? sni_in(k, 6) : NULL};
    for (int i = 0; i < 2; i++)
        for (int64_t row = 0; first[i] && row < rows; row++) {
            int64_t d = row / c->at.batch, b = row % c->at.batch;
            memcpy((i ? c->cell : c->h[0]) + row * c->units,
                   (const float *)first[i]->data + sni_rnn_state(&c->at, d, b),
                   (size_t)c->p->hidden * sizeof(float));
        }
    return SN_OK;
}

/* Copies the final states to their outputs. */
static void end(const sni_kernel *k, const rnn_call *c) {
    sni_tensor *last[] = {sni_out(k, 1), c->cell ? sni_out(k, 2) : NULL};
    for (int i = 0; i < 2; i++)
        for (int64_t row = 0; last[i] && row < c->p->dirs * c->at.batch; row++) {
            int64_t d = row / c->at.batch, b = row % c->at.batch;
            memcpy((float *)last[i]->data + sni_rnn_state(&c->at, d, b),
                   (i ? c->cell : c->h[c->at.seq & 1]) + row * c->units,
                   (size_t)c->p->hidden * sizeof(float));
        }
}

static sn_status input_gates(sni_kernel *k, rnn_call *c) {
    const packed_rnn *p = c->p;
    int64_t rows = c->at.seq * c->at.batch, n = p->dirs * c->wide;
    void *gates = NULL;
    SN_TRY(sni_scratch_matrix(k, rows, n, sizeof(float), &gates));
    sni_gemm_f32 g = {.m = rows,
                      .n = n,
                      .k = p->input,
                      .a = sni_in(k, 0)->data,
                      .a_row = p->input,
                      .a_col = 1,
                      .packed_b = p->w,
                      .c = gates,
                      .c_row = n,
                      .epilogue = {.column_bias = p->bias}};
    c->gates_x = gates;
    return sni_dense_run(k, &g);
}

static sn_status run(sni_kernel *k) {
    const packed_rnn *p = k->state;
    const sni_rnn_params *params = k->params;
    sni_activation acts[6];
    SN_TRY(sni_rnn_activations(params, p->cell, acts, k->err));
    rnn_call c = {.p = p,
                  .kernels = sni_cpu_kernels_get()->rnn,
                  .at = sni_rnn_place_of(params, sni_in(k, 0), p->hidden),
                  .relu = acts[0].kind == SNI_FN_RELU,
                  .early = p->cell == SNI_CELL_GRU && !params->linear_before_reset,
                  .wide = p->blocks * p->gates * p->lanes,
                  .units = p->blocks * p->lanes,
                  .y = sni_out(k, 0) ? sni_out(k, 0)->data : NULL};
    SN_TRY(sni_rnn_read_lengths(k, &c.at));
    double macs = (double)c.at.batch * (double)c.wide * (double)p->hidden;
    bool long_enough = macs >= MACS_TO_STAY && macs * (double)c.at.seq >= MACS_TO_WAKE;
    bool split = p->dirs == 1 && k->threads != 1 && (macs >= MACS_TO_SPLIT || long_enough);
    c.threads = split ? (k->threads ? k->threads : sni_threads_available()) : 1;
    c.chunk = 1 + CHUNK_BYTES / (1 + p->hidden * p->gates * p->lanes * (int64_t)sizeof(float));
    SN_TRY(input_gates(k, &c));
    SN_TRY(begin(k, &c));
    if (c.y && c.at.lengths && sni_out(k, 0)->count)
        memset(c.y, 0, (size_t)sni_out(k, 0)->count * sizeof(float));
    SN_TRY(all_steps(k, &c));
    end(k, &c);
    return SN_OK;
}

const sni_impl sni_cpu_rnn = {
    .name = "rnn_f32",
    .op = "RNN",
    .accepts = rnn_accepts,
    .prepare = rnn_prepare,
    .release = free,
    .packs = 1u << 1 | 1u << 2 | 1u << 3,
    .run = run,
};

const sni_impl sni_cpu_gru = {
    .name = "gru_f32",
    .op = "GRU",
    .accepts = gru_accepts,
    .prepare = gru_prepare,
    .release = free,
    .packs = 1u << 1 | 1u << 2 | 1u << 3,
    .run = run,
};

const sni_impl sni_cpu_lstm = {
    .name = "lstm_f32",
    .op = "LSTM",
    .accepts = lstm_accepts,
    .prepare = lstm_prepare,
    .release = free,
    .packs = 1u << 1 | 1u << 2 | 1u << 3,
    .run = run,
};
