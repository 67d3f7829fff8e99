/* ToBlocked and FromBlocked: between plain tensors (N,C,H,W) or (N,C,W) and blocked ones; and what
 * the operators on blocked tensors share. */
#include "ops/sinter/blocked.h"

#include "ops/core/compute.h"
#include "ops/core/shape_util.h"

void sni_to_blocked(const float *x, float *y, int64_t n, int64_t channels, int64_t pixels,
                    int64_t block) {
    int64_t blocks = (channels + block - 1) / block;
    for (int64_t i = 0; i < n * blocks; i++) {
        int64_t first = i % blocks * block;
        const float *from = x + (i / blocks * channels + first) * pixels;
        float *to = y + i * pixels * block;
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < block; c++)
                to[p * block + c] = first + c < channels ? from[c * pixels + p] : 0;
    }
}

void sni_from_blocked(const float *x, float *y, int64_t n, int64_t channels, int64_t pixels,
                      int64_t block) {
    int64_t blocks = (channels + block - 1) / block;
    for (int64_t i = 0; i < n * channels; i++) {
        int64_t channel = i % channels;
        const float *from =
            x + (i / channels * blocks + channel / block) * pixels * block + channel % block;
        for (int64_t p = 0; p < pixels; p++) y[i * pixels + p] = from[p * block];
    }
}

void sni_plain_means(const float *x, float *means, int64_t planes, int64_t pixels) {
    for (int64_t i = 0; i < planes; i++) {
        double sum = 0;
        for (int64_t p = i * pixels; p < (i + 1) * pixels; p++) sum += (double)x[p];
        means[i] = (float)(sum / (double)pixels);
    }
}

sn_status sni_blocked_set_means(sni_kernel *k, const float *y, int64_t n, int64_t channels,
                                int64_t pixels, int64_t block) {
    const sni_tensor *out = sni_out(k, 1);
    void *means;
    if (!out || out->count == 0) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, n, channels, sizeof(float), &means));
    sni_plain_means(y, means, n * channels, pixels);
    sni_to_blocked(means, out->data, n, channels, 1, block);
    return SN_OK;
}

/* True if the n-th of `few` inputs of the groups of `shares` outputs that a block of outputs is of
 * lie in two blocks at most, for all blocks and n. */
static bool are_near(int64_t few, int64_t shares, int64_t block) {
    if (shares >= block) return true; /* it is of two groups at most */
    for (int64_t first = 0; first < shares * block; first += block)
        for (int64_t n = 0; n < few; n++) {
            int64_t blocks = 1, at = (first / shares * few + n) / block;
            for (int64_t c = first + 1; c < first + block; c++) {
                int64_t here = (c / shares * few + n) / block;
                blocks += here != at;
                at = here;
            }
            if (blocks > 2) return false;
        }
    return true;
}

bool sni_blocked_near(int64_t in, int64_t out, int64_t groups, int64_t taps, int64_t block) {
    enum { MOST_TERMS = 1024 };
    int64_t few = in / groups, shares = out / groups;
    if (in == out && in == groups) return true;
    if (groups * few != in || groups * shares != out || few < 1 || shares < 1) return false;
    return groups > 1 && few <= SNI_NEAR_CHANNELS && taps <= MOST_TERMS / few &&
           are_near(few, shares, block);
}

int64_t sni_blocked_merge(int64_t in, int64_t out, int64_t groups, int64_t block) {
    in /= groups;
    out /= groups;
    if (groups == 1 || (in % block == 0 && out % block == 0)) return 1;
    if (in < 1 || in > block || block % in) return 0;
    int64_t merged = block / in;
    return groups % merged == 0 && merged * out % block == 0 ? merged : 0;
}

bool sni_blocked_is_flat(const sni_conv_params *p, const int64_t *weights) {
    return weights[2] == 1 && weights[3] == 1 && sni_ints_are(&p->window.strides, 1) &&
           sni_ints_are(&p->window.pads, 0);
}

/* ---- Inference ---- */

sn_status sni_infer_block(sni_infer *c, int64_t block) {
    if (block < 1 || block > SNI_MOST_BLOCK)
        return SNI_INFER_FAIL(c, "block is %lld, not 1 to %d", (long long)block, SNI_MOST_BLOCK);
    return SN_OK;
}

sn_status sni_infer_unblocked(sni_infer *c, int i, int64_t block, sni_dim channels,
                              sni_dim plain[4]) {
    if (sni_infer_rank(c, i) != 5)
        return SNI_INFER_FAIL(c, "input %d is not blocked: its rank is %d", i,
                              sni_infer_rank(c, i));
    sni_dim blocks = sni_infer_dim(c, i, 1), last = sni_infer_dim(c, i, 4);
    if (sni_dim_differ(last, block))
        return SNI_INFER_FAIL(c, "input %d is blocked by %lld, not %lld", i, (long long)last,
                              (long long)block);
    if (sni_dim_known(channels) &&
        sni_dim_differ(blocks, sni_dim_ceildiv(c->symbols, channels, block)))
        return SNI_INFER_FAIL(c, "input %d has %lld blocks of %lld, which are not %lld channels", i,
                              (long long)blocks, (long long)block, (long long)channels);
    plain[0] = sni_infer_dim(c, i, 0);
    plain[1] = channels;
    plain[2] = sni_infer_dim(c, i, 2);
    plain[3] = sni_infer_dim(c, i, 3);
    return SN_OK;
}

sn_status sni_infer_set_blocked(sni_infer *c, const sni_dim plain[4], int64_t block) {
    sni_dim dims[5] = {plain[0], sni_dim_ceildiv(c->symbols, plain[1], block), plain[2], plain[3],
                       block};
    if (dims[1] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    return sni_infer_set_shape(c, 0, 5, dims);
}

sn_status sni_infer_set_means(sni_infer *c, const sni_dim plain[4], int64_t block) {
    sni_dim dims[5] = {plain[0], sni_dim_ceildiv(c->symbols, plain[1], block), 1, 1, block};
    if (dims[1] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    return sni_infer_set_shape(c, 1, 5, dims);
}

sn_status sni_blocked_window(sni_kernel *k, sni_window *w, const sni_tensor *x,
                             const sni_tensor *weights, const sni_tensor *y) {
    const sni_conv_params *p = k->params;
    SN_TRY(sni_window_init(w, &p->window, 2, weights->dims + 2, k->err));
    sni_window_place(w, &p->window, x->dims + 2, y->dims + 2);
    return SN_OK;
}

/* ---- ToBlocked ---- */

static sn_status to_infer(sni_infer *c) {
    const sni_blocked_params *p = c->params;
    SN_TRY(sni_infer_block(c, p->block));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank != 3 && rank != 4) return SNI_INFER_FAIL(c, "an input of rank %d, not 3 or 4", rank);
    const sni_dim *d = c->in[0]->dims, rows = rank == 3 ? 1 : d[p->channels_last ? 1 : 2];
    sni_dim plain[4] = {d[0], d[1], rows, d[rank - 1]};
    if (p->channels_last) {
        plain[1] = d[rank - 1];
        plain[3] = d[rank - 2];
    }
    return sni_infer_set_blocked(c, plain, p->block);
}

/* Moves between a plain tensor with its channels last and a blocked one. */
static void move_last(const float *x, float *y, int64_t images, int64_t channels, int64_t pixels,
                      int64_t block, bool to) {
    int64_t blocks = (channels + block - 1) / block;
    for (int64_t i = 0; i < images * pixels; i++)
        for (int64_t c = 0; c < blocks * block; c++) {
            int64_t plane = i / pixels * blocks + c / block;
            int64_t blocked = (plane * pixels + i % pixels) * block + c % block;
            if (to)
                y[blocked] = c < channels ? x[i * channels + c] : 0;
            else if (c < channels)
                y[i * channels + c] = x[blocked];
        }
}

static sn_status to_ref(sni_kernel *k) {
    const sni_blocked_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    const sni_tensor *y = sni_out(k, 0);
    int64_t channels, pixels;
    sni_blocked_plain(p, x, &channels, &pixels);
    if (y->count && p->channels_last)
        move_last(x->data, y->data, x->dims[0], channels, pixels, p->block, true);
    else if (y->count)
        sni_to_blocked(x->data, y->data, x->dims[0], channels, pixels, p->block);
    return SN_OK;
}

const sni_op sni_op_sinter_ToBlocked = {
    .name = "ToBlocked",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32)}),
    .params =
        SNI_PARAMS({"block", SNI_ATTR_INT, offsetof(sni_blocked_params, block), .required = true},
                   {"channels_last", SNI_ATTR_INT, offsetof(sni_blocked_params, channels_last)}),
    .params_size = sizeof(sni_blocked_params),
    .infer = to_infer,
    .ref = to_ref,
};

/* ---- FromBlocked ---- */

static sn_status from_infer(sni_infer *c) {
    const sni_blocked_params *p = c->params;
    sni_dim plain[4];
    SN_TRY(sni_infer_block(c, p->block));
    if (p->channels < 0) return SNI_INFER_FAIL(c, "channels is %lld", (long long)p->channels);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    SN_TRY(sni_infer_unblocked(c, 0, p->block, p->channels, plain));
    if (p->line && sni_dim_differ(plain[2], 1))
        return SNI_INFER_FAIL(c, "%lld rows are not a line", (long long)plain[2]);
    sni_dim dims[4] = {plain[0]};
    int rank = 1;
    if (!p->channels_last) dims[rank++] = plain[1];
    if (!p->line) dims[rank++] = plain[2];
    dims[rank++] = plain[3];
    if (p->channels_last) dims[rank++] = plain[1];
    return sni_infer_set_shape(c, 0, rank, dims);
}

static sn_status from_ref(sni_kernel *k) {
    const sni_blocked_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    const sni_tensor *y = sni_out(k, 0);
    int64_t channels, pixels;
    sni_blocked_plain(p, y, &channels, &pixels);
    if (y->count && p->channels_last)
        move_last(x->data, y->data, y->dims[0], channels, pixels, p->block, false);
    else if (y->count)
        sni_from_blocked(x->data, y->data, y->dims[0], channels, pixels, p->block);
    return SN_OK;
}

const sni_op sni_op_sinter_FromBlocked = {
    .name = "FromBlocked",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS(
        {"block", SNI_ATTR_INT, offsetof(sni_blocked_params, block), .required = true},
        {"channels", SNI_ATTR_INT, offsetof(sni_blocked_params, channels), .required = true},
        {"channels_last", SNI_ATTR_INT, offsetof(sni_blocked_params, channels_last)},
        {"line", SNI_ATTR_INT, offsetof(sni_blocked_params, line)}),
    .params_size = sizeof(sni_blocked_params),
    .infer = from_infer,
    .ref = from_ref,
};
