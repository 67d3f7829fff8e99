/* RNN, GRU, LSTM: one direction after the other; the input's part of all gates is one matrix
 * product, then step by step the state's part and the cell. */
#include "ops/rnn_core.h"

#include "ops/compute.h"
#include "ops/matmul_core.h"
#include "ops/quant.h"

#include <math.h>
#include <string.h>

typedef struct rnn {
    const sni_rnn_params *p;
    sni_cell cell;
    sn_dtype dtype; /* of all arrays */
    int64_t gates, seq, batch, input, hidden, dirs;
    const void *x, *w, *r, *b, *h0, *c0, *peep; /* b, h0, c0 and peep may be NULL */
    const int32_t *lengths;                     /* NULL: all of `seq` */
    void *y, *yh, *yc;                          /* may be NULL */
    sni_activation all_acts[6];
    /* Scratch: gx (rows of x, gates, hidden), gh (batch, gates, hidden), rt (hidden, gates,
     * hidden), h and c, gz and reset (batch, hidden). */
    void *gx, *gh, *rt, *h, *c, *gz, *reset;
    void *rounded; /* (batch, hidden): the state in bytes; NULL if it is multiplied as it is */
    /* Of the direction under way. */
    const sni_activation *act;
    const void *dir_p, *dir_rbh;
} rnn;

static int64_t length_of(const rnn *r, int64_t b) {
    return r->lengths ? r->lengths[b] : r->seq;
}

/* Time that step t of direction d stands at in sequence b. */
static int64_t time_of(const rnn *r, int64_t d, int64_t b, int64_t t) {
    bool reverse = r->p->direction == 1 || d == 1;
    return reverse ? length_of(r, b) - 1 - t : t;
}

/* Row of x for step t. */
static int64_t input_row(const rnn *r, int64_t d, int64_t b, int64_t t) {
    int64_t s = time_of(r, d, b, t);
    return r->p->layout == 1 ? b * r->seq + s : s * r->batch + b;
}

/* First element of Y for step t. */
static int64_t output_at(const rnn *r, int64_t d, int64_t b, int64_t t) {
    int64_t s = time_of(r, d, b, t);
    int64_t row =
        r->p->layout == 1 ? (b * r->seq + s) * r->dirs + d : (s * r->dirs + d) * r->batch + b;
    return row * r->hidden;
}

/* First element of sequence b's state in the initial and final states. */
static int64_t state_at(const rnn *r, int64_t d, int64_t b) {
    return (r->p->layout == 1 ? b * r->dirs + d : d * r->batch + b) * r->hidden;
}

#define BODY "ops/rnn_core.inc.c"
#include "ops/each_float.inc.h"
#undef BODY

/* Weights, and with those that are not the inputs' the input in bytes, and room for the state. */
static sn_status read_weights(sni_kernel *k, rnn *r, const sni_rnn_weights *weights) {
    const sni_tensor *x = sni_in(k, 0);
    void *rounded = NULL;
    SN_TRY(sni_in_as(k, x, r->dtype, &r->x));
    if (!weights) {
        SN_TRY(sni_in_as(k, sni_in(k, 1), r->dtype, &r->w));
        return sni_in_as(k, sni_in(k, 2), r->dtype, &r->r);
    }
    r->w = weights->w;
    r->r = weights->r;
    SN_TRY(sni_scratch_array(k, x->count, sizeof(float), &rounded));
    sni_dynamic_round(r->x, rounded, x->count);
    r->x = rounded;
    return sni_scratch_matrix(k, r->batch, r->hidden, sizeof(float), &r->rounded);
}

static sn_status read_inputs(sni_kernel *k, rnn *r) {
    const sni_tensor *lengths = sni_in(k, 4);
    SN_TRY(sni_in_as(k, sni_in(k, 3), r->dtype, &r->b));
    SN_TRY(sni_in_as(k, sni_in(k, 5), r->dtype, &r->h0));
    SN_TRY(sni_in_as(k, sni_in(k, 6), r->dtype, &r->c0));
    SN_TRY(sni_in_as(k, sni_in(k, 7), r->dtype, &r->peep));
    r->lengths = lengths ? lengths->data : NULL;
    for (int64_t b = 0; lengths && b < r->batch; b++)
        if (r->lengths[b] < 0 || r->lengths[b] > r->seq)
            return SNI_KERNEL_FAIL(k, "sequence_lens[%lld] is %d, outside 0 to %lld", (long long)b,
                                   r->lengths[b], (long long)r->seq);
    return SN_OK;
}

static sn_status make_room(sni_kernel *k, rnn *r) {
    size_t width = sni_dtype_width(r->dtype);
    int64_t wide = r->gates * r->hidden;
    SN_TRY(sni_scratch_matrix(k, r->seq * r->batch, wide, width, &r->gx));
    SN_TRY(sni_scratch_matrix(k, r->batch, wide, width, &r->gh));
    SN_TRY(sni_scratch_matrix(k, r->hidden, wide, width, &r->rt));
    SN_TRY(sni_scratch_matrix(k, r->batch, r->hidden, width, &r->h));
    if (r->cell == SNI_CELL_LSTM) SN_TRY(sni_scratch_matrix(k, r->batch, r->hidden, width, &r->c));
    if (r->cell != SNI_CELL_GRU) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, r->batch, r->hidden, width, &r->gz));
    return sni_scratch_matrix(k, r->batch, r->hidden, width, &r->reset);
}

sn_status sni_rnn_run(sni_kernel *k, sni_cell cell, const sni_rnn_weights *weights) {
    const sni_rnn_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    bool first = p->layout == 1;
    rnn r = {.p = p,
             .cell = cell,
             .dtype = sni_compute_dtype(x->dtype),
             .gates = sni_cell_gates(cell),
             .seq = x->dims[first],
             .batch = x->dims[!first],
             .input = x->dims[2],
             .hidden = weights ? weights->hidden : sni_in(k, 2)->dims[2],
             .dirs = p->direction == 2 ? 2 : 1};
    SN_TRY(sni_rnn_activations(p, cell, r.all_acts, k->err));
    SN_TRY(read_weights(k, &r, weights));
    SN_TRY(read_inputs(k, &r));
    SN_TRY(make_room(k, &r));
    SN_TRY(sni_out_as(k, sni_out(k, 0), r.dtype, &r.y));
    SN_TRY(sni_out_as(k, sni_out(k, 1), r.dtype, &r.yh));
    SN_TRY(sni_out_as(k, sni_out(k, 2), r.dtype, &r.yc));
    if (r.y && r.lengths && sni_out(k, 0)->count)
        memset(r.y, 0, (size_t)sni_out(k, 0)->count * sni_dtype_width(r.dtype));
    SN_TRY(r.dtype == SN_FLOAT64 ? run_f64(k, &r) : run_f32(k, &r));
    sni_out_done(k, sni_out(k, 0), r.dtype, r.y);
    sni_out_done(k, sni_out(k, 1), r.dtype, r.yh);
    sni_out_done(k, sni_out(k, 2), r.dtype, r.yc);
    return SN_OK;
}
