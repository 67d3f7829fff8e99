/* rnn_core.c - the reference of RNN, GRU and LSTM: one direction after the other; the input's part
 * of all gates is one matrix product, then each step adds the state's part and applies the cell. */
#include "ops/nn/rnn_core.h"

#include "ops/core/compute.h"
#include "ops/matmul/matmul_core.h"
#include "ops/quant/quant.h"

#include <math.h>
#include <string.h>

typedef struct rnn {
    const sni_rnn_params *p;
    sni_cell cell;
    sn_dtype dtype; /* of all arrays */
    int64_t gates;
    sni_rnn_place at;
    const void *x, *w, *r, *b, *h0, *c0, *peep; /* b, h0, c0 and peep may be NULL */
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

#define BODY "ops/nn/rnn_core.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* The weights; if they are not the inputs', also the input in bytes and a buffer for the state. */
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
    return sni_scratch_matrix(k, r->at.batch, r->at.hidden, sizeof(float), &r->rounded);
}

static sn_status read_inputs(sni_kernel *k, rnn *r) {
    SN_TRY(sni_in_as(k, sni_in(k, 3), r->dtype, &r->b));
    SN_TRY(sni_in_as(k, sni_in(k, 5), r->dtype, &r->h0));
    SN_TRY(sni_in_as(k, sni_in(k, 6), r->dtype, &r->c0));
    SN_TRY(sni_in_as(k, sni_in(k, 7), r->dtype, &r->peep));
    return sni_rnn_read_lengths(k, &r->at);
}

sn_status sni_rnn_read_lengths(sni_kernel *k, sni_rnn_place *at) {
    const sni_tensor *lengths = sni_in(k, 4);
    const int32_t *v = lengths ? lengths->data : NULL;
    for (int64_t b = 0; v && b < at->batch; b++)
        if (v[b] < 0 || v[b] > at->seq)
            return SNI_KERNEL_FAIL(k, "sequence_lens[%lld] is %d, outside 0 to %lld", (long long)b,
                                   v[b], (long long)at->seq);
    at->lengths = v;
    return SN_OK;
}

static sn_status make_room(sni_kernel *k, rnn *r) {
    size_t width = sni_dtype_width(r->dtype);
    int64_t wide = r->gates * r->at.hidden;
    SN_TRY(sni_scratch_matrix(k, r->at.seq * r->at.batch, wide, width, &r->gx));
    SN_TRY(sni_scratch_matrix(k, r->at.batch, wide, width, &r->gh));
    SN_TRY(sni_scratch_matrix(k, r->at.hidden, wide, width, &r->rt));
    SN_TRY(sni_scratch_matrix(k, r->at.batch, r->at.hidden, width, &r->h));
    if (r->cell == SNI_CELL_LSTM)
        SN_TRY(sni_scratch_matrix(k, r->at.batch, r->at.hidden, width, &r->c));
    if (r->cell != SNI_CELL_GRU) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, r->at.batch, r->at.hidden, width, &r->gz));
    return sni_scratch_matrix(k, r->at.batch, r->at.hidden, width, &r->reset);
}

sn_status sni_rnn_run(sni_kernel *k, sni_cell cell, const sni_rnn_weights *weights) {
    const sni_rnn_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    rnn r = {.p = p,
             .cell = cell,
             .dtype = sni_compute_dtype(x->dtype),
             .gates = sni_cell_gates(cell),
             .at = sni_rnn_place_of(p, x, weights ? weights->hidden : sni_in(k, 2)->dims[2])};
    SN_TRY(sni_rnn_activations(p, cell, r.all_acts, k->err));
    SN_TRY(read_weights(k, &r, weights));
    SN_TRY(read_inputs(k, &r));
    SN_TRY(make_room(k, &r));
    SN_TRY(sni_out_as(k, sni_out(k, 0), r.dtype, &r.y));
    SN_TRY(sni_out_as(k, sni_out(k, 1), r.dtype, &r.yh));
    SN_TRY(sni_out_as(k, sni_out(k, 2), r.dtype, &r.yc));
    if (r.y && r.at.lengths && sni_out(k, 0)->count)
        memset(r.y, 0, (size_t)sni_out(k, 0)->count * sni_dtype_width(r.dtype));
    SN_TRY(r.dtype == SN_FLOAT64 ? run_f64(k, &r) : run_f32(k, &r));
    sni_out_done(k, sni_out(k, 0), r.dtype, r.y);
    sni_out_done(k, sni_out(k, 1), r.dtype, r.yh);
    sni_out_done(k, sni_out(k, 2), r.dtype, r.yc);
    return SN_OK;
}
