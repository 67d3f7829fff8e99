/* ConvTranspose: every input element adds the kernel, multiplied by it, to the output. */
#include "base/checked.h"
#include "ops/nn/col2im.h"
#include "ops/core/compute.h"
#include "ops/nn/conv_core.h"
#include "ops/matmul/matmul_core.h"
#include "ops/core/tensor_util.h"

#include <limits.h>
#include <string.h>

typedef struct transpose_params {
    sni_conv_params conv;
    sni_ints output_padding, output_shape;
} transpose_params;

enum { COLUMN_BYTES = 8 << 20 }; /* of windows worked out before they are added to the output */

/* Value i of an attribute that may have N and C in front of the spatial ones; -1 if not given. */
static int64_t spatial_value(sni_ints v, int rank, int i) {
    if (v.n == 0) return -1;
    return v.v[v.n == (size_t)rank ? i : i + 2];
}

static sn_status check_extra(const transpose_params *p, int rank, sn_error *err) {
    const sni_ints *lists[2] = {&p->output_padding, &p->output_shape};
    static const char *const names[2] = {"output_padding", "output_shape"};
    for (int l = 0; l < 2; l++) {
        if (lists[l]->n && lists[l]->n != (size_t)rank &&
            (l == 0 || lists[l]->n != (size_t)rank + 2))
            return sni_fail(err, SN_INVALID_MODEL, "%s has %zu values, not %d", names[l],
                            lists[l]->n, rank);
        for (int i = 0; i < rank && lists[l]->n; i++) {
            int64_t v = spatial_value(*lists[l], rank, i);
            if (v < 0 || v > INT_MAX)
                return sni_fail(err, SN_INVALID_MODEL, "%s[%d] is %lld", names[l], i, (long long)v);
        }
    }
    return SN_OK;
}

/* What one window and the output padding take along axis i. */
static int64_t last_reach(const sni_window *w, const transpose_params *p, int i) {
    return sni_window_extent(w, i) + (p->output_padding.n ? p->output_padding.v[i] : 0);
}

static sn_status transpose_size(sni_infer *c, const sni_window *w, int i, sni_dim in,
                                sni_dim *out) {
    const transpose_params *p = c->params;
    int32_t mode = p->conv.window.auto_pad;
    int64_t asked = spatial_value(p->output_shape, w->rank, i);
    if (sni_dim_known(in) && (in < 1 || in > INT_MAX))
        return SNI_INFER_FAIL(c, "the input has %lld elements along spatial axis %d", (long long)in,
                              i);
    if (asked >= 0) {
        *out = asked;
    } else if (mode == SNI_PAD_SAME_UPPER || mode == SNI_PAD_SAME_LOWER) {
        *out = sni_dim_mul(c->symbols, in, w->stride[i]);
    } else if (w->kernel[i] < 0) {
        *out = sni_dim_fresh(c->symbols);
    } else {
        sni_dim steps = sni_dim_mul(c->symbols, sni_dim_sub(c->symbols, in, 1), w->stride[i]);
        sni_dim full = sni_dim_add(c->symbols, steps, last_reach(w, p, i));
        if (sni_dim_known(full) && full < w->begin[i] + w->end[i])
            return SNI_INFER_FAIL(c, "padding of %lld and %lld around %lld elements of output",
                                  (long long)w->begin[i], (long long)w->end[i], (long long)full);
        *out = sni_dim_sub(c->symbols, full, w->begin[i] + w->end[i]);
    }
    return SN_OK;
}

static sn_status transpose_infer(sni_infer *c) {
    const transpose_params *p = c->params;
    int64_t group = p->conv.group;
    if (group < 1) return SNI_INFER_FAIL(c, "group is %lld", (long long)group);
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank < 3 || sni_infer_rank(c, 1) != rank)
        return SNI_INFER_FAIL(c, "input of rank %d and weights of rank %d", rank,
                              sni_infer_rank(c, 1));
    sni_dim channels = sni_infer_dim(c, 0, 1), rows = sni_infer_dim(c, 1, 0);
    if (sni_dim_known(channels) && (channels % group || (sni_dim_known(rows) && rows != channels)))
        return SNI_INFER_FAIL(c, "input of %lld channels, weights for %lld, %lld groups",
                              (long long)channels, (long long)rows, (long long)group);
    sni_window w;
    sni_dim dims[SN_MAX_RANK];
    SN_TRY(sni_window_init(&w, &p->conv.window, rank - 2, c->in[1]->dims + 2, c->err));
    SN_TRY(check_extra(p, rank - 2, c->err));
    dims[0] = sni_infer_dim(c, 0, 0);
    dims[1] = sni_dim_mul(c->symbols, sni_infer_dim(c, 1, 1), group);
    for (int i = 0; i < rank - 2; i++)
        SN_TRY(transpose_size(c, &w, i, sni_infer_dim(c, 0, 2 + i), &dims[2 + i]));
    if (sni_infer_shaped(c, 2)) {
        sni_dim b = sni_infer_rank(c, 2) == 1 ? sni_infer_dim(c, 2, 0) : 0;
        if (sni_infer_rank(c, 2) != 1 ||
            (sni_dim_known(b) && sni_dim_known(dims[1]) && b != dims[1]))
            return SNI_INFER_FAIL(c, "the bias does not fit %lld output channels",
                                  (long long)dims[1]);
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* A window over the output whose positions are the input's elements. */
static sn_status place_window(sni_kernel *k, sni_window *w, const sni_tensor *x,
                              const sni_tensor *weights, const sni_tensor *y) {
    const transpose_params *p = k->params;
    int32_t mode = p->conv.window.auto_pad;
    bool same = mode == SNI_PAD_SAME_UPPER || mode == SNI_PAD_SAME_LOWER;
    SN_TRY(sni_window_init(w, &p->conv.window, x->rank - 2, weights->dims + 2, k->err));
    for (int i = 0; i < w->rank; i++) {
        w->in[i] = y->dims[2 + i];
        w->out[i] = x->dims[2 + i];
        if (!same && p->output_shape.n == 0) continue;
        int64_t spare = (w->out[i] - 1) * w->stride[i] + last_reach(w, p, i) - w->in[i];
        if (spare < 0) spare = 0;
        w->begin[i] = mode == SNI_PAD_SAME_UPPER ? spare / 2 : spare - spare / 2;
        w->end[i] = spare - w->begin[i];
    }
    return SN_OK;
}

/* The output channels of one group of one image, a few at a time. */
typedef struct group_job {
    sni_window window;
    sn_dtype dtype;
    int64_t in_channels, out_channels; /* of a group */
    int64_t taps, positions, plane, chunk;
    void *columns; /* (chunk, taps, positions) */
} group_job;

static sn_status add_group(sni_kernel *k, const group_job *j, const void *x, const void *w,
                           void *y) {
    size_t width = sni_dtype_width(j->dtype);
    int64_t wide = j->out_channels * j->taps;
    for (int64_t m = 0; m < j->out_channels; m += j->chunk) {
        int64_t n = j->out_channels - m < j->chunk ? j->out_channels - m : j->chunk;
        /* W is (in channel, out channel, tap): its transpose is read in place. */
        sni_gemm g = {.m = n * j->taps,
                      .n = j->positions,
                      .k = j->in_channels,
                      .a = sni_element(w, m * j->taps, width),
                      .a_row = 1,
                      .a_col = wide,
                      .b = x,
                      .b_row = j->positions,
                      .b_col = 1,
                      .c = j->columns,
                      .c_row = j->positions};
        SN_TRY(sni_gemm_run(k, j->dtype, &g));
        for (int64_t i = 0; i < n; i++)
            sni_scatter_windows[j->dtype](
                &j->window, sni_element(j->columns, i * j->taps * j->positions, width),
                sni_element(y, (m + i) * j->plane, width));
    }
    return SN_OK;
}

static sn_status transpose_ref(sni_kernel *k) {
    const transpose_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1), *b = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    int64_t groups = p->conv.group;
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    size_t width = sni_dtype_width(dtype);
    group_job j = {.dtype = dtype,
                   .in_channels = x->dims[1] / groups,
                   .out_channels = w->dims[1],
                   .taps = sni_tensor_span(w, 2, w->rank),
                   .positions = sni_tensor_span(x, 2, x->rank),
                   .plane = sni_tensor_span(y, 2, y->rank)};
    const void *data, *weights, *bias;
    void *out;
    if (y->count == 0) return SN_OK;
    SN_TRY(place_window(k, &j.window, x, w, y));
    SN_TRY(sni_in_as(k, x, dtype, &data));
    SN_TRY(sni_in_as(k, w, dtype, &weights));
    SN_TRY(sni_in_as(k, b, dtype, &bias));
    SN_TRY(sni_out_as(k, y, dtype, &out));
    int64_t each;
    if (!sni_mul_i64(j.taps, j.positions, &each) || each > INT64_MAX / 16)
        return sni_fail(k->err, SN_LIMIT, "%lld taps at %lld positions", (long long)j.taps,
                        (long long)j.positions);
    j.chunk = COLUMN_BYTES / (each * (int64_t)width) + 1;
    if (j.chunk > j.out_channels) j.chunk = j.out_channels;
    SN_TRY(sni_scratch_matrix(k, j.chunk, each, width, &j.columns));
    if (bias)
        sni_fill_channels(out, bias, y->dims[0], y->dims[1], j.plane, width);
    else
        memset(out, 0, (size_t)y->count * width);
    for (int64_t i = 0; i < x->dims[0] * groups; i++) {
        SN_TRY(add_group(
            k, &j, sni_element(data, i * j.in_channels * j.positions, width),
            sni_element(weights, i % groups * j.in_channels * j.out_channels * j.taps, width),
            sni_element(out, i * j.out_channels * j.plane, width)));
    }
    sni_out_done(k, y, dtype, out);
    return SN_OK;
}

static int64_t transpose_macs(const sni_infer *c) {
    int64_t inputs, each, macs;
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return -1;
    if (!sni_shape_count(sni_infer_rank(c, 0), c->in[0]->dims, &inputs) ||
        !sni_shape_count(sni_infer_rank(c, 1) - 1, c->in[1]->dims + 1, &each) ||
        !sni_mul_i64(inputs, each, &macs))
        return -1;
    return macs;
}

#define TRANSPOSE_FIELDS                                                             \
    {"output_padding", SNI_ATTR_INTS, offsetof(transpose_params, output_padding)}, { \
        "output_shape", SNI_ATTR_INTS, offsetof(transpose_params, output_shape)      \
    }

const sni_op sni_op_ConvTranspose = {
    .name = "ConvTranspose",
    .versions = SNI_VERSIONS(1, 11, 22),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_CONV_FIELDS, TRANSPOSE_FIELDS),
    .params_size = sizeof(transpose_params),
    .infer = transpose_infer,
    .ref = transpose_ref,
    .macs = transpose_macs,
};

/* ---- com.microsoft ---- */

/* Rank of the spatial axes: of the kernel, or as the weights or the data say; 0 if nothing does. */
static int spatial_rank(const sni_upgrade *u) {
    const transpose_params *p = u->node->params;
    if (p->conv.window.kernel_shape.n) return (int)p->conv.window.kernel_shape.n;
    for (int32_t i = 0; i < 2; i++) {
        const sni_value *v = sni_graph_value(u->graph, u->node->in[i]);
        if (v && v->type.kind == SN_KIND_TENSOR && v->type.has_shape && v->type.rank > 2)
            return v->type.rank - 2;
    }
    return 0;
}

/* Elements [from, to) of a list. */
static sn_status part_of_list(sni_upgrade *u, int32_t list, int64_t from, int64_t to,
                              int32_t *out) {
    int32_t in[3] = {list, SNI_NO_ID, SNI_NO_ID};
    SN_TRY(sni_upgrade_ints(u, &from, 1, &in[1]));
    SN_TRY(sni_upgrade_ints(u, &to, 1, &in[2]));
    return sni_upgrade_insert(u, "Slice", in, 3, NULL, 0, out);
}

/* Padding is what is cut off the output, so pads that are an input become a Slice. */
static sn_status dynamic_upgrade(sni_upgrade *u) {
    int32_t n_in = u->node->n_in, in[4], cut[4], sizes = SNI_NO_ID, after = SNI_NO_ID;
    int64_t axes[SN_MAX_RANK];
    int rank = spatial_rank(u);
    sni_attr start = sni_attr_of_int("start", 2);
    if (rank < 1 || rank > SN_MAX_RANK - 2)
        return sni_fail(u->err, SN_UNSUPPORTED, "the rank is not known");
    for (int32_t i = 0; i < 4; i++) in[i] = i < n_in ? u->node->in[i] : SNI_NO_ID;
    for (int i = 0; i < rank; i++) axes[i] = i + 2;
    int32_t operands[3] = {in[0], in[1], in[3]}, n = in[3] == SNI_NO_ID ? 2 : 3;
    if (in[2] == SNI_NO_ID)
        return sni_upgrade_become(u, "ConvTranspose", operands, n, u->node->attrs,
                                  u->node->n_attrs);
    SN_TRY(sni_upgrade_insert(u, "ConvTranspose", operands, n, u->node->attrs, u->node->n_attrs,
                              &cut[0]));
    SN_TRY(part_of_list(u, in[2], 0, rank, &cut[1]));
    SN_TRY(part_of_list(u, in[2], rank, 2 * rank, &after));
    SN_TRY(sni_upgrade_insert(u, "Shape", &cut[0], 1, &start, 1, &sizes));
    SN_TRY(sni_upgrade_insert(u, "Sub", (int32_t[]){sizes, after}, 2, NULL, 0, &cut[2]));
    SN_TRY(sni_upgrade_ints(u, axes, (size_t)rank, &cut[3]));
    return sni_upgrade_become(u, "Slice", cut, 4, NULL, 0);
}

const sni_op sni_op_ms_ConvTransposeWithDynamicPads = {
    .name = "ConvTransposeWithDynamicPads",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"Pads", "int64", SNI_OPTIONAL},
                          {"B", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_CONV_FIELDS, TRANSPOSE_FIELDS),
    .params_size = sizeof(transpose_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = dynamic_upgrade,
};
