/* Scan: a subgraph that runs over slices of its inputs along an axis, with carried values and with
 * outputs that are stacked slices. */
#include "ops/core/body_util.h"
#include "ops/control/scan.h"
#include "ops/core/seq_util.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>

typedef struct scan_params {
    int32_t body;
    int64_t num_scan_inputs;
    sni_ints input_axes, input_directions, output_axes, output_directions;
} scan_params;

static int64_t entry(sni_ints list, int i) {
    return list.given && (size_t)i < list.n ? list.v[i] : 0;
}

/* ---- Inference ---- */

/* The type of a slice: without the scanned axis. Joins the axis's length into *length. */
static sn_status slice_type(sni_infer *c, const sni_type *whole, int64_t axis, sni_dim *length,
                            const sni_type **out) {
    sni_type *slice = SNI_NEW(c->arena, sni_type);
    if (!slice) return sni_fail_memory(c->err);
    *slice = (sni_type){.kind = whole->kind, .dtype = whole->dtype};
    *out = slice;
    if (whole->kind != SN_KIND_TENSOR || !whole->has_shape) return SN_OK;
    int at;
    SN_TRY(sni_infer_axis(c, axis, whole->rank, &at));
    SN_TRY(sni_infer_join_dim(c, "scan inputs", at, *length, whole->dims[at], length));
    sni_dim *dims = SNI_NEW_ARRAY(c->arena, sni_dim, whole->rank);
    if (!dims) return sni_fail_memory(c->err);
    for (int i = 0, n = 0; i < whole->rank; i++)
        if (i != at) dims[n++] = whole->dims[i];
    slice->has_shape = true;
    slice->rank = whole->rank - 1;
    slice->dims = dims;
    return SN_OK;
}

static sn_status set_stacked(sni_infer *c, int out, const sni_type *item, int64_t axis,
                             sni_dim length) {
    if (!item || item->kind != SN_KIND_TENSOR || !item->dtype) return SN_OK;
    SN_TRY(sni_infer_set_type(c, out, item->dtype));
    if (!item->has_shape) return SN_OK;
    int rank = item->rank + 1, at;
    if (rank > SN_MAX_RANK)
        return SNI_INFER_FAIL(c, "output %d has a rank above %d", out, SN_MAX_RANK);
    SN_TRY(sni_infer_axis(c, axis, rank, &at));
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == at ? length : item->dims[i < at ? i : i - 1];
    return sni_infer_set_shape(c, out, rank, dims);
}

static sn_status check_count(sni_infer *c, const scan_params *p) {
    if (p->num_scan_inputs >= 1 && p->num_scan_inputs <= c->n_in) return SN_OK;
    return SNI_INFER_FAIL(c, "num_scan_inputs is %" PRId64 " of %d inputs", p->num_scan_inputs,
                          c->n_in);
}

static sn_status check_lists(sni_infer *c, const scan_params *p, int n_scan_out) {
    if (n_scan_out < 0)
        return SNI_INFER_FAIL(c, "%d outputs for %" PRId64 " carried values", c->n_out,
                              c->n_in - p->num_scan_inputs);
    const sni_ints in[2] = {p->input_axes, p->input_directions};
    const sni_ints out[2] = {p->output_axes, p->output_directions};
    for (int i = 0; i < 2; i++)
        if ((in[i].given && in[i].n != (size_t)p->num_scan_inputs) ||
            (out[i].given && out[i].n != (size_t)n_scan_out))
            return SNI_INFER_FAIL(c, "axes or directions are not one for each scan value");
    return SN_OK;
}

static sn_status scan_infer(sni_infer *c) {
    const scan_params *p = c->params;
    SN_TRY(check_count(c, p));
    int n_state = (int)(c->n_in - p->num_scan_inputs), n_scan = c->n_in - n_state;
    SN_TRY(check_lists(c, p, c->n_out - n_state));
    sni_body b = {.graph = p->body, .n_in = c->n_in, .n_out = c->n_out, .n_state = n_state};
    SN_TRY(sni_body_init(c, &b));
    for (int i = 0; i < c->n_in; i++)
        if (!c->in[i]) return SNI_INFER_FAIL(c, "input %d is left out", i);
    for (int i = 0; i < n_state; i++) b.in[i] = c->in[i];
    sni_dim length = sni_dim_fresh(c->symbols);
    for (int i = 0; i < n_scan; i++)
        SN_TRY(slice_type(c, c->in[n_state + i], entry(p->input_axes, i), &length,
                          &b.in[n_state + i]));
    SN_TRY(sni_body_infer(c, &b));
    for (int i = 0; i < n_state; i++)
        if (b.in[i]) SN_TRY(sni_infer_set_full_type(c, i, b.in[i]));
    for (int i = n_state; i < c->n_out; i++)
        SN_TRY(set_stacked(c, i, b.out[i], entry(p->output_axes, i - n_state), length));
    return SN_OK;
}

/* ---- Kernel ---- */

/* An input that is cut into slices. */
typedef struct scan_in {
    const sni_tensor *whole;
    int axis;
    bool backwards;
    void *memory;    /* of the slice, where slices are not contiguous */
    sni_datum slice; /* borrows */
} scan_in;

/* A scan under way. */
typedef struct scan {
    int n_state, n_in, n_scan_out;
    int64_t length;
    scan_in *inputs;
    sni_datum *state;     /* carried values the body made */
    sni_datum *made;      /* outputs of the iteration under way */
    sni_datum *results;   /* stacked outputs so far */
    const sni_datum **in; /* inputs of the next iteration */
} scan;

static sn_status scan_in_init(sni_kernel *k, scan *s, int i) {
    const scan_params *p = k->params;
    scan_in *x = &s->inputs[i];
    int64_t axis = 0;
    x->whole = sni_in(k, s->n_state + i);
    if (!x->whole) return SNI_KERNEL_FAIL(k, "scan input %d is no tensor", i);
    SN_TRY(sni_wrap_index(k, "axis", entry(p->input_axes, i), x->whole->rank, &axis));
    x->axis = (int)axis;
    x->backwards = entry(p->input_directions, i) != 0;
    if (i == 0) s->length = x->whole->dims[axis];
    if (x->whole->dims[axis] != s->length)
        return SNI_KERNEL_FAIL(k, "scan input %d has length %" PRId64 ", the first %" PRId64, i,
                               x->whole->dims[axis], s->length);
    int64_t dims[SN_MAX_RANK];
    for (int a = 0, n = 0; a < x->whole->rank; a++)
        if (a != axis) dims[n++] = x->whole->dims[a];
    SN_TRY(sni_tensor_shape(&x->slice.tensor, x->whole->dtype, x->whole->rank - 1, dims, k->err));
    x->slice.kind = SN_KIND_TENSOR;
    s->in[s->n_state + i] = &x->slice;
    if (sni_tensor_span(x->whole, 0, x->axis) == 1) return SN_OK;
    return sni_scratch_array(k, x->slice.tensor.count, sni_dtype_width(x->whole->dtype),
                             &x->memory);
}

static void scan_in_set(sni_kernel *k, scan_in *x, int64_t t, int64_t length) {
    int64_t at = x->backwards ? length - 1 - t : t;
    sni_tensor *slice = &x->slice.tensor;
    if (x->memory) sni_get_part(k, x->whole, x->axis, at, x->memory, 1);
    slice->data =
        x->memory ? x->memory
                  : sni_element(x->whole->data, at * slice->count, sni_dtype_width(slice->dtype));
}

static sn_status scan_init(sni_kernel *k, scan *s) {
    const scan_params *p = k->params;
    s->n_in = (int)p->num_scan_inputs;
    s->n_state = k->n_in - s->n_in;
    s->n_scan_out = k->n_out - s->n_state;
    SN_TRY(sni_datum_array(k, s->n_state, &s->state));
    SN_TRY(sni_datum_array(k, k->n_out, &s->made));
    SN_TRY(sni_datum_array(k, s->n_scan_out, &s->results));
    void *in = NULL, *inputs = NULL;
    SN_TRY(sni_scratch_array(k, k->n_in, sizeof *s->in, &in));
    SN_TRY(sni_scratch_array(k, s->n_in, sizeof *s->inputs, &inputs));
    memset(inputs, 0, (size_t)s->n_in * sizeof *s->inputs);
    s->in = in;
    s->inputs = inputs;
    for (int i = 0; i < s->n_state; i++) s->in[i] = k->in[i];
    for (int i = 0; i < s->n_in; i++) SN_TRY(scan_in_init(k, s, i));
    return SN_OK;
}

/* Memory for all slices of a scan output, once the shape of one is known. */
static sn_status result_init(sni_kernel *k, scan *s, int i, sn_dtype dtype, int rank,
                             const int64_t *item) {
    const scan_params *p = k->params;
    int64_t axis = 0, dims[SN_MAX_RANK + 1];
    SN_TRY(sni_wrap_index(k, "axis", entry(p->output_axes, i), rank + 1, &axis));
    for (int a = 0; a <= rank; a++) dims[a] = a == axis ? s->length : item[a < axis ? a : a - 1];
    SN_TRY(sni_tensor_new(&s->results[i].tensor, dtype, rank + 1, dims, k->budget, k->err));
    s->results[i].kind = SN_KIND_TENSOR;
    return SN_OK;
}

/* Puts slice t of scan output i to its place. */
static sn_status result_put(sni_kernel *k, scan *s, int i, int64_t t, const sni_datum *d) {
    const scan_params *p = k->params;
    if (d->kind != SN_KIND_TENSOR) return SNI_KERNEL_FAIL(k, "scan output %d is no tensor", i);
    const sni_tensor *item = &d->tensor;
    if (t == 0) SN_TRY(result_init(k, s, i, item->dtype, item->rank, item->dims));
    const sni_tensor *whole = &s->results[i].tensor;
    int axis = (int)entry(p->output_axes, i);
    if (axis < 0) axis += whole->rank;
    bool same = item->dtype == whole->dtype && item->rank + 1 == whole->rank;
    for (int a = 0; same && a < item->rank; a++)
        same = item->dims[a] == whole->dims[a < axis ? a : a + 1];
    if (!same)
        return SNI_KERNEL_FAIL(k, "scan output %d has another shape in iteration %" PRId64, i, t);
    int64_t at = entry(p->output_directions, i) ? s->length - 1 - t : t;
    sni_put_part(k, whole, axis, at, item->data, 1);
    return SN_OK;
}

static sn_status scan_iterate(sni_kernel *k, scan *s) {
    const scan_params *p = k->params;
    for (int64_t t = 0; t < s->length; t++) {
        SN_TRY(sni_poll(k));
        for (int i = 0; i < s->n_in; i++) scan_in_set(k, &s->inputs[i], t, s->length);
        SN_TRY(sni_run_subgraph(k, p->body, s->in, k->n_in, s->made, k->n_out));
        for (int i = 0; i < s->n_scan_out; i++)
            SN_TRY(result_put(k, s, i, t, &s->made[s->n_state + i]));
        for (int i = 0; i < s->n_state; i++) {
            sni_datum_clear(&s->state[i]);
            s->state[i] = s->made[i];
            s->made[i] = (sni_datum){0};
            s->in[i] = &s->state[i];
        }
        sni_datum_clear_all(s->made, k->n_out);
    }
    return SN_OK;
}

static sn_status scan_finish(sni_kernel *k, scan *s) {
    const scan_params *p = k->params;
    for (int i = 0; i < s->n_state; i++) {
        if (s->length)
            sni_out_give(k, i, &s->state[i]);
        else
            SN_TRY(sni_out_share(k, i, k->in[i]));
    }
    for (int i = 0; i < s->n_scan_out; i++) {
        if (s->length == 0) {
            const sni_type *type = sni_subgraph_output(k, p->body, s->n_state + i);
            int64_t dims[SN_MAX_RANK];
            int rank = sni_empty_dims(k, p->body, s->in, type, dims);
            SN_TRY(result_init(k, s, i, type->dtype, rank, dims));
        }
        sni_out_give(k, s->n_state + i, &s->results[i]);
    }
    return SN_OK;
}

static sn_status scan_ref(sni_kernel *k) {
    scan s = {0};
    sn_status status = scan_init(k, &s);
    if (status == SN_OK) status = scan_iterate(k, &s);
    if (status == SN_OK) status = scan_finish(k, &s);
    sni_datum_clear_all(s.state, s.n_state);
    sni_datum_clear_all(s.made, k->n_out);
    sni_datum_clear_all(s.results, s.n_scan_out);
    return status;
}

const sni_op sni_op_Scan = {
    .name = "Scan",
    .versions = SNI_VERSIONS(8, 9, 11, 16, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"initial_state_and_scan_inputs", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .outputs = SNI_FORMALS({"final_state_and_scan_outputs", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .types = SNI_TYPE_VARS({"V", SNI_T_ANY}),
    .params = SNI_PARAMS(
        {"body", SNI_ATTR_GRAPH, offsetof(scan_params, body), .required = true},
        {"num_scan_inputs", SNI_ATTR_INT, offsetof(scan_params, num_scan_inputs), .required = true},
        {"scan_input_axes", SNI_ATTR_INTS, offsetof(scan_params, input_axes)},
        {"scan_input_directions", SNI_ATTR_INTS, offsetof(scan_params, input_directions)},
        {"scan_output_axes", SNI_ATTR_INTS, offsetof(scan_params, output_axes)},
        {"scan_output_directions", SNI_ATTR_INTS, offsetof(scan_params, output_directions)}),
    .params_size = sizeof(scan_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS,
    .upgrade = sni_scan_upgrade,
    .infer = scan_infer,
    .ref = scan_ref,
};
