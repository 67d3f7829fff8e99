/* rnn_core.inc.c - template by type (typed.h): the reference kernels of RNN, GRU and LSTM.
 * Instances: rnn_core.c, for float and double. */

/* Recurrent cells for one type. Rows of gates are (gates, hidden). */

/* Clips, then applies. */
static T FN(gate)(const rnn *r, int f, T v) {
    if (r->p->has_clip) {
        T c = (T)r->p->clip;
        v = v < -c ? -c : v > c ? c : v;
    }
    return FN(sni_activation_of)(&r->act[f], v);
}

/* h (hidden) from gx, the input's part of the gates, and gh, the state's part. */
static void FN(rnn_row)(const rnn *r, const T *gx, const T *gh, T *h) {
    for (int64_t i = 0; i < r->at.hidden; i++) h[i] = FN(gate)(r, 0, gx[i] + gh[i]);
}

static void FN(lstm_row)(const rnn *r, const T *gx, const T *gh, T *h, T *c) {
    int64_t n = r->at.hidden;
    const T *peep = r->dir_p; /* for gates i, o, f */
    for (int64_t i = 0; i < n; i++) {
        T vi = gx[i] + gh[i], vo = gx[n + i] + gh[n + i], vf = gx[2 * n + i] + gh[2 * n + i];
        T vc = gx[3 * n + i] + gh[3 * n + i];
        if (peep) vi += peep[i] * c[i];
        if (peep) vf += peep[2 * n + i] * c[i];
        T in = FN(gate)(r, 0, vi);
        T keep = r->p->input_forget ? 1 - in : FN(gate)(r, 0, vf);
        c[i] = keep * c[i] + in * FN(gate)(r, 1, vc);
        if (peep) vo += peep[n + i] * c[i];
        h[i] = FN(gate)(r, 0, vo) * FN(gate)(r, 2, c[i]);
    }
}

/* GRU, first half: update gate to gz, and what the candidate's product with R needs: reset state
 * to `reset` unless the reset comes after the product, then the candidate itself. */
static void FN(gru_reset)(const rnn *r, const T *gx, const T *gh, const T *h, T *gz, T *reset) {
    int64_t n = r->at.hidden;
    for (int64_t i = 0; i < n; i++) {
        gz[i] = FN(gate)(r, 0, gx[i] + gh[i]);
        T open = FN(gate)(r, 0, gx[n + i] + gh[n + i]);
        if (!r->p->linear_before_reset) {
            reset[i] = open * h[i];
            continue;
        }
        T state = gh[2 * n + i] + (r->dir_rbh ? ((const T *)r->dir_rbh)[i] : 0);
        reset[i] = FN(gate)(r, 1, gx[2 * n + i] + open * state);
    }
}

static void FN(gru_mix)(const rnn *r, const T *gx, const T *gh, const T *gz, const T *reset, T *h) {
    int64_t n = r->at.hidden;
    for (int64_t i = 0; i < n; i++) {
        T candidate =
            r->p->linear_before_reset ? reset[i] : FN(gate)(r, 1, gx[2 * n + i] + gh[2 * n + i]);
        h[i] = (1 - gz[i]) * candidate + gz[i] * h[i];
    }
}

/* Copies direction d of R (gates * hidden, hidden) transposed to r->rt, sets biases and peepholes,
 * and computes the input's part of all gates. */
static sn_status FN(begin)(sni_kernel *k, rnn *r, int64_t d) {
    int64_t n = r->at.hidden, wide = r->gates * n, rows = r->at.seq * r->at.batch;
    const T *rw = (const T *)r->r + d * wide * n;
    const T *bias = r->b ? (const T *)r->b + d * 2 * wide : NULL;
    T *rt = r->rt, *gx = r->gx;
    for (int64_t i = 0; i < wide; i++)
        for (int64_t j = 0; j < n; j++) rt[j * wide + i] = rw[i * n + j];
    r->dir_p = r->peep ? (const T *)r->peep + d * 3 * n : NULL;
    bool late = r->cell == SNI_CELL_GRU && r->p->linear_before_reset;
    r->dir_rbh = bias && late ? bias + wide + 2 * n : NULL;
    for (int64_t row = 0; bias && row < rows; row++)
        for (int64_t i = 0; i < wide; i++)
            gx[row * wide + i] = bias[i] + (late && i >= 2 * n ? 0 : bias[wide + i]);
    sni_gemm g = {.m = rows,
                  .n = wide,
                  .k = r->at.input,
                  .a = r->x,
                  .a_row = r->at.input,
                  .a_col = 1,
                  .b = (const T *)r->w + d * wide * r->at.input,
                  .b_row = 1,
                  .b_col = r->at.input,
                  .c = gx,
                  .c_row = wide,
                  .add = bias != NULL};
    SN_TRY(sni_gemm_run(k, r->dtype, &g));
    for (int64_t b = 0; b < r->at.batch; b++) {
        int64_t at = sni_rnn_state(&r->at, d, b);
        for (int64_t i = 0; i < n; i++) {
            ((T *)r->h)[b * n + i] = r->h0 ? ((const T *)r->h0)[at + i] : 0;
            if (r->c) ((T *)r->c)[b * n + i] = r->c0 ? ((const T *)r->c0)[at + i] : 0;
        }
    }
    return SN_OK;
}

/* State times columns [from, to) of R's transpose, into the same columns of gh. */
static sn_status FN(recur)(sni_kernel *k, const rnn *r, const void *state, int64_t from,
                           int64_t to) {
    int64_t n = r->at.hidden, wide = r->gates * n;
    if (r->rounded) {
        sni_dynamic_round(state, r->rounded, r->at.batch * n);
        state = r->rounded;
    }
    sni_gemm g = {.m = r->at.batch,
                  .n = to - from,
                  .k = n,
                  .a = state,
                  .a_row = n,
                  .a_col = 1,
                  .b = (const T *)r->rt + from,
                  .b_row = wide,
                  .b_col = 1,
                  .c = (T *)r->gh + from,
                  .c_row = wide};
    return sni_gemm_run(k, r->dtype, &g);
}

static sn_status FN(step)(sni_kernel *k, rnn *r, int64_t d, int64_t t) {
    int64_t n = r->at.hidden, wide = r->gates * n;
    bool two = r->cell == SNI_CELL_GRU && !r->p->linear_before_reset;
    T *gh = r->gh, *h = r->h, *c = r->c, *gz = r->gz, *reset = r->reset;
    SN_TRY(FN(recur)(k, r, h, 0, two ? 2 * n : wide));
    if (r->cell == SNI_CELL_GRU) {
        for (int64_t b = 0; b < r->at.batch; b++) {
            if (t >= sni_rnn_length(&r->at, b)) {
                for (int64_t i = 0; i < n; i++) reset[b * n + i] = 0;
                continue;
            }
            const T *gx = (const T *)r->gx + sni_rnn_input_row(&r->at, d, b, t) * wide;
            FN(gru_reset)(r, gx, gh + b * wide, h + b * n, gz + b * n, reset + b * n);
        }
        if (two) SN_TRY(FN(recur)(k, r, reset, 2 * n, wide));
    }
    for (int64_t b = 0; b < r->at.batch; b++) {
        if (t >= sni_rnn_length(&r->at, b)) continue;
        const T *gx = (const T *)r->gx + sni_rnn_input_row(&r->at, d, b, t) * wide;
        if (r->cell == SNI_CELL_RNN)
            FN(rnn_row)(r, gx, gh + b * wide, h + b * n);
        else if (r->cell == SNI_CELL_LSTM)
            FN(lstm_row)(r, gx, gh + b * wide, h + b * n, c + b * n);
        else
            FN(gru_mix)(r, gx, gh + b * wide, gz + b * n, reset + b * n, h + b * n);
        if (!r->y) continue;
        T *y = (T *)r->y + sni_rnn_output(&r->at, d, b, t);
        for (int64_t i = 0; i < n; i++) y[i] = h[b * n + i];
    }
    return SN_OK;
}

/* Final states of direction d to their outputs. */
static void FN(finish)(const rnn *r, int64_t d) {
    int64_t n = r->at.hidden;
    for (int64_t b = 0; b < r->at.batch; b++)
        for (int64_t i = 0; i < n; i++) {
            if (r->yh) ((T *)r->yh)[sni_rnn_state(&r->at, d, b) + i] = ((const T *)r->h)[b * n + i];
            if (r->yc) ((T *)r->yc)[sni_rnn_state(&r->at, d, b) + i] = ((const T *)r->c)[b * n + i];
        }
}

static sn_status FN(run)(sni_kernel *k, rnn *r) {
    int each = sni_cell_activations(r->cell);
    for (int64_t d = 0; d < r->at.dirs; d++) {
        r->act = r->all_acts + d * each;
        SN_TRY(FN(begin)(k, r, d));
        for (int64_t t = 0; t < r->at.seq; t++) {
            SN_TRY(sni_poll(k));
            SN_TRY(FN(step)(k, r, d, t));
        }
        SN_TRY(sni_poll(k));
        FN(finish)(r, d);
    }
    return SN_OK;
}
