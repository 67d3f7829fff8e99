/* rnn_infer.c - RNN, GRU and LSTM: activations and shapes. */
#include "base/checked.h"
#include "ops/nn/rnn_core.h"

int sni_cell_gates(sni_cell cell) {
    return cell == SNI_CELL_RNN ? 1 : cell == SNI_CELL_GRU ? 3 : 4;
}

int sni_cell_activations(sni_cell cell) {
    return cell == SNI_CELL_RNN ? 1 : cell == SNI_CELL_GRU ? 2 : 3;
}

sn_status sni_rnn_activations(const sni_rnn_params *p, sni_cell cell, sni_activation out[6],
                              sn_error *err) {
    static const char *const usual[3][3] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    int each = sni_cell_activations(cell), count = each * (p->direction == 2 ? 2 : 1);
    size_t alphas = 0, betas = 0;
    if (p->activations.n != 0 && p->activations.n != (size_t)count)
        return sni_fail(err, SN_INVALID_MODEL, "%zu activations, not %d", p->activations.n, count);
    /* Lists as long as that of the functions have one place for each; shorter ones are consumed by
     * the functions that take a parameter. */
    bool alpha_by_place = p->alpha.n == (size_t)count, beta_by_place = p->beta.n == (size_t)count;
    for (int i = 0; i < count; i++) {
        sni_str name = p->activations.n ? p->activations.v[i] : sni_str_of(usual[cell][i % each]);
        out[i] = sni_activation_named(name);
        if (out[i].kind == SNI_FN_COUNT || out[i].kind == SNI_FN_NONE)
            return sni_fail(err, SN_INVALID_MODEL, "unknown activation '%.*s'", SNI_FMT(name));
        int parameters = sni_activation_parameters(out[i].kind);
        size_t at = alpha_by_place ? (size_t)i : alphas;
        if (parameters > 0 && at < p->alpha.n) {
            out[i].alpha = p->alpha.v[at];
            alphas++;
        }
        at = beta_by_place ? (size_t)i : betas;
        if (parameters > 1 && at < p->beta.n) {
            out[i].beta = p->beta.v[at];
            betas++;
        }
    }
    return SN_OK;
}

/* Checks input i, if given with a known shape, against sizes where both are known. */
static sn_status expect(sni_infer *c, int i, int rank, const sni_dim *dims) {
    if (!sni_infer_shaped(c, i)) return SN_OK;
    if (sni_infer_rank(c, i) != rank)
        return SNI_INFER_FAIL(c, "input %d ('%s') has rank %d, not %d", i, c->op->inputs[i].name,
                              sni_infer_rank(c, i), rank);
    for (int a = 0; a < rank; a++) {
        sni_dim d = sni_infer_dim(c, i, a);
        if (sni_dim_known(d) && sni_dim_known(dims[a]) && d != dims[a])
            return SNI_INFER_FAIL(c, "input %d ('%s') has size %lld along axis %d, not %lld", i,
                                  c->op->inputs[i].name, (long long)d, a, (long long)dims[a]);
    }
    return SN_OK;
}

typedef struct sizes {
    sni_dim seq, batch, input, hidden, dirs;
} sizes;

static sn_status read_sizes(sni_infer *c, bool transposed, sizes *s) {
    const sni_rnn_params *p = c->params;
    int first = p->layout == 1;
    s->dirs = p->direction == 2 ? 2 : 1;
    s->seq = sni_infer_dim(c, 0, first);
    s->batch = sni_infer_dim(c, 0, !first);
    s->input = sni_infer_dim(c, 0, 2);
    s->hidden = sni_infer_shaped(c, 2) ? sni_infer_dim(c, 2, transposed ? 1 : 2) : SNI_DIM_FAIL;
    if (p->hidden_size < 0)
        return SNI_INFER_FAIL(c, "hidden_size is %lld", (long long)p->hidden_size);
    if (p->hidden_size && sni_dim_known(s->hidden) && s->hidden != p->hidden_size)
        return SNI_INFER_FAIL(c, "hidden_size is %lld, but R has %lld", (long long)p->hidden_size,
                              (long long)s->hidden);
    if (p->hidden_size) s->hidden = p->hidden_size;
    if (s->hidden == SNI_DIM_FAIL) s->hidden = sni_dim_fresh(c->symbols);
    return SN_OK;
}

static sn_status check_sizes(sni_infer *c, sni_cell cell, bool transposed, const sizes *s) {
    const sni_rnn_params *p = c->params;
    sni_symbols *sy = c->symbols;
    sni_dim wide = sni_dim_mul(sy, sni_cell_gates(cell), s->hidden);
    SN_TRY(expect(c, 1, 3,
                  transposed ? (sni_dim[]){s->dirs, s->input, wide}
                             : (sni_dim[]){s->dirs, wide, s->input}));
    SN_TRY(expect(c, 2, 3,
                  transposed ? (sni_dim[]){s->dirs, s->hidden, wide}
                             : (sni_dim[]){s->dirs, wide, s->hidden}));
    SN_TRY(expect(c, 3, 2, (sni_dim[]){s->dirs, sni_dim_mul(sy, 2, wide)}));
    SN_TRY(expect(c, 4, 1, &s->batch));
    sni_dim state[3] = {p->layout == 1 ? s->batch : s->dirs, p->layout == 1 ? s->dirs : s->batch,
                        s->hidden};
    SN_TRY(expect(c, 5, 3, state));
    if (cell != SNI_CELL_LSTM) return SN_OK;
    SN_TRY(expect(c, 6, 3, state));
    return expect(c, 7, 2, (sni_dim[]){s->dirs, sni_dim_mul(sy, 3, s->hidden)});
}

sn_status sni_rnn_infer(sni_infer *c, sni_cell cell, bool transposed) {
    const sni_rnn_params *p = c->params;
    sni_activation ignored[6];
    sizes s;
    SN_TRY(sni_rnn_activations(p, cell, ignored, c->err));
    if (p->layout != 0 && p->layout != 1)
        return SNI_INFER_FAIL(c, "layout is %lld, not 0 or 1", (long long)p->layout);
    if (p->has_clip && !(p->clip >= 0))
        return SNI_INFER_FAIL(c, "clip is %g, below 0", (double)p->clip);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    for (int i = 0; i < 3; i++)
        if (sni_infer_shaped(c, i) && sni_infer_rank(c, i) != 3)
            return SNI_INFER_FAIL(c, "input %d ('%s') has rank %d, not 3", i, c->op->inputs[i].name,
                                  sni_infer_rank(c, i));
    SN_TRY(read_sizes(c, transposed, &s));
    SN_TRY(check_sizes(c, cell, transposed, &s));
    bool first = p->layout == 1;
    sni_dim y[4] = {first ? s.batch : s.seq, first ? s.seq : s.dirs, first ? s.dirs : s.batch,
                    s.hidden};
    sni_dim state[3] = {first ? s.batch : s.dirs, first ? s.dirs : s.batch, s.hidden};
    SN_TRY(sni_infer_set_shape(c, 0, 4, y));
    for (int i = 1; i < c->n_out; i++) SN_TRY(sni_infer_set_shape(c, i, 3, state));
    return SN_OK;
}

int64_t sni_rnn_macs(const sni_infer *c) {
    const sni_rnn_params *p = c->params;
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1) || !sni_infer_shaped(c, 2)) return -1;
    int64_t steps, wide, macs;
    int64_t columns[2] = {sni_infer_dim(c, 1, 2), sni_infer_dim(c, 2, 2)};
    int64_t dims[4] = {sni_infer_dim(c, 0, 0), sni_infer_dim(c, 0, 1), p->direction == 2 ? 2 : 1,
                       sni_infer_dim(c, 2, 1)};
    if (!sni_shape_count(4, dims, &steps) || !sni_dim_known(columns[0]) ||
        !sni_dim_known(columns[1]) || !sni_add_i64(columns[0], columns[1], &wide) ||
        !sni_mul_i64(steps, wide, &macs))
        return -1;
    return macs;
}
