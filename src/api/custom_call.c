/* custom_call.c - one run of a caller's operator: its tensors, and the table of what it may call.
 */
#include "api/custom.h"

#include "base/threadpool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sni_value_view(sn_value *v, const sni_tensor *t) {
    *v = (sn_value){.kind = SN_KIND_TENSOR, .dtype = t->dtype, .rank = t->rank};
    atomic_init(&v->refs, 1);
    memcpy(v->dims, t->dims, (size_t)t->rank * sizeof *v->dims);
    v->count = (size_t)t->count;
    v->bytes = sn_dtype_bytes(t->dtype, v->count);
    if (t->dtype == SN_STRING)
        v->strings = t->data;
    else
        v->data = t->data;
}

/* What the operator sees of a value. */
static void show(sn_value *v, sn_op_tensor *out) {
    *out = (sn_op_tensor){.dtype = v->dtype,
                          .rank = v->rank,
                          .dims = v->dims,
                          .count = v->count,
                          .bytes = v->bytes,
                          .data = v->data,
                          .value = v};
}

/* ---- Inputs ---- */

/* The functions of the table take NULL for a call, since they are called by others' code. */
static size_t count_inputs(const sn_op_call *call) {
    return call ? (size_t)call->k->n_in : 0;
}

static size_t count_outputs(const sn_op_call *call) {
    return call ? (size_t)call->k->n_out : 0;
}

static void *scratch(sn_op_call *call, size_t bytes) {
    return call ? sni_scratch(call->k, bytes ? bytes : 1) : NULL;
}

/* Views are made once per run and input; types under 8 bits are packed into scratch first. */
static bool get_input(sn_op_call *call, size_t index, sn_op_tensor *out) {
    if (!call || !out || index >= count_inputs(call)) return false;
    const sni_tensor *t = sni_in(call->k, (int)index);
    if (!t) return false;
    sn_value *v = &call->values[index];
    if (v->kind == SN_KIND_NONE) {
        sni_value_view(v, t);
        if (sni_dtype_subbyte(t->dtype)) {
            v->data = scratch(call, v->bytes);
            if (!v->data) return false;
            sni_subbyte_pack(t->dtype, t->data, v->data, v->count);
        }
    }
    show(v, out);
    return true;
}

/* ---- Outputs ---- */

/* The formal output that an actual one belongs to: the last one where it is variadic. */
static const sni_formal *formal_of(const sn_op_call *call, size_t index) {
    const sni_formal *f = call->k->node->op->outputs;
    for (size_t i = 0; i < index && f->name && !(f->flags & SNI_VARIADIC) && f[1].name; i++) f++;
    return f;
}

/* What the operator asks for, else what inference said, else the type of input 0. */
static sn_dtype output_type(const sn_op_call *call, size_t index, sn_dtype asked) {
    if (asked != SN_UNDEFINED) return asked;
    sn_dtype known = call->kernel->types[index];
    if (known != SN_UNDEFINED) return known;
    const sni_tensor *x = sni_in(call->k, 0);
    return x ? x->dtype : SN_FLOAT32;
}

static void shape_text(int rank, const int64_t *dims, char *text, size_t size) {
    int n = snprintf(text, size, "[");
    for (int i = 0; i < rank && (size_t)n < size; i++)
        n += snprintf(text + n, size - (size_t)n, "%s%" PRId64, i ? "," : "", dims[i]);
    if ((size_t)n < size) snprintf(text + n, size - (size_t)n, "]");
}

/* An output that was planned has its memory already: a kernel that makes another shape is at fault.
 */
static sn_status check_planned(size_t index, const sni_tensor *t, sn_dtype dtype, int rank,
                               const int64_t *dims, sn_error *err) {
    bool same = t->dtype == dtype && t->rank == rank;
    for (int i = 0; same && i < rank; i++) same = t->dims[i] == dims[i];
    if (same) return SN_OK;
    char a[128], b[128];
    shape_text(rank, dims, a, sizeof a);
    shape_text(t->rank, t->dims, b, sizeof b);
    return sni_fail(err, SN_BAD_DATA, "it makes output %zu %s%s where its inference says %s%s",
                    index, sn_dtype_name(dtype), a, sn_dtype_name(t->dtype), b);
}

/* Memory for an output: the plan's, new, or scratch if nobody wants it. */
static sn_status output_memory(sn_op_call *call, size_t index, sn_dtype dtype, int rank,
                               const int64_t *dims, sni_tensor *out, sn_error *err) {
    sni_kernel *k = call->k;
    SN_TRY(sni_tensor_shape(out, dtype, rank, dims, err));
    sni_datum *d = k->out[index];
    if (d && d->kind == SN_KIND_TENSOR && d->tensor.data) {
        SN_TRY(check_planned(index, &d->tensor, dtype, rank, dims, err));
        out->data = d->tensor.data;
    } else if (d) {
        SN_TRY(sni_out_alloc(k, (int)index, dtype, rank, dims));
        out->data = d->tensor.data;
    } else {
        out->data = scratch(call, sni_tensor_bytes(out));
        if (!out->data) return sni_fail_memory(err);
    }
    return SN_OK;
}

/* Asked again for the same output, it gives the same memory. */
static sn_status get_output(sn_op_call *call, size_t index, sn_dtype dtype, int rank,
                            const int64_t *dims, sn_op_tensor *out, sn_error *err) {
    if (!call || !out || rank < 0 || rank > SN_MAX_RANK || (rank && !dims))
        return sni_fail(err, SN_INVALID_ARGUMENT, "output %zu: rank %d, or dims is NULL", index,
                        rank);
    bool optional = index >= count_outputs(call) ||
                    (!call->k->out[index] && formal_of(call, index)->flags & SNI_OPTIONAL);
    if (optional) { /* nobody wants it */
        *out = (sn_op_tensor){0};
        return SN_OK;
    }
    sn_value *v = &call->values[count_inputs(call) + index];
    if (v->kind == SN_KIND_NONE) {
        sni_tensor t = {0};
        SN_TRY(output_memory(call, index, output_type(call, index, dtype), rank, dims, &t, err));
        sni_value_view(v, &t);
        if (t.dtype == SN_STRING) { /* set_string wants elements with memory of their own */
            v->strings = scratch(call, v->count * sizeof *v->strings);
            if (!v->strings) return sni_fail_memory(err);
            memset((void *)v->strings, 0, v->count * sizeof *v->strings);
        } else if (sni_dtype_subbyte(t.dtype)) {
            v->data = scratch(call, v->bytes);
            if (!v->data) return sni_fail_memory(err);
        }
    }
    show(v, out);
    return SN_OK;
}

/* ---- Other services ---- */

static void parallel(sn_op_call *call, int64_t n, int64_t grain, sn_op_range_fn fn, void *ctx) {
    if (call && fn && n > 0) sni_parallel_for(call->k->threads, n, grain > 0 ? grain : 1, fn, ctx);
}

static bool cancelled(sn_op_call *call) {
    return call && sni_poll(call->k) != SN_OK;
}

/* The table's way to fill an error slot; SN_OK is no failure to report. */
__attribute__((format(printf, 3, 4))) static sn_status fail(sn_error *err, sn_status status,
                                                            const char *format, ...) {
    char text[SN_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sni_fail(err, status == SN_OK ? SN_INTERNAL : status, "%s", text);
}

const sn_op_api sni_op_api = {.size = sizeof(sn_op_api),
                              .add = sn_operators_add,
                              .fail = fail,
                              .node_name = sni_node_name_text,
                              .node_domain = sni_node_domain_text,
                              .node_type = sni_node_type_text,
                              .node_version = sni_node_opset,
                              .node_input_count = sni_node_inputs,
                              .node_output_count = sni_node_outputs,
                              .node_input = sni_node_input_info,
                              .node_output = sni_node_output_info,
                              .node_constant = sni_node_constant_input,
                              .node_int = sni_node_get_int,
                              .node_float = sni_node_get_float,
                              .node_text = sni_node_get_text,
                              .node_ints = sni_node_get_ints,
                              .node_floats = sni_node_get_floats,
                              .node_texts = sni_node_get_texts,
                              .node_text_at = sni_node_get_text_at,
                              .node_tensor = sni_node_get_tensor,
                              .infer_node = sni_infer_node_of,
                              .infer_input = sni_infer_input_info,
                              .infer_output = sni_infer_set_output,
                              .input_count = count_inputs,
                              .output_count = count_outputs,
                              .input = get_input,
                              .output = get_output,
                              .parallel = parallel,
                              .scratch = scratch,
                              .cancelled = cancelled,
                              .get_string = sn_tensor_get_string,
                              .set_string = sn_tensor_set_string};

/* ---- A run ---- */

/* Text of a string output, from the memory of its own to the run's. */
static sn_status keep_strings(sni_kernel *k, sn_value *v, sni_str *to, bool wanted) {
    sn_status status = SN_OK;
    for (size_t i = 0; i < v->count; i++) {
        sni_str s = v->strings[i];
        if (wanted && status == SN_OK && s.n) {
            char *text = sni_text(k, s.n + 1);
            if (text) {
                memcpy(text, s.p, s.n);
                text[s.n] = 0;
                to[i] = (sni_str){text, s.n};
            } else {
                status = SN_NO_MEMORY;
            }
        }
        free((void *)s.p);
    }
    return status;
}

/* What could not be written in place, and a check that every wanted output was made. */
static sn_status finish(sn_op_call *call, sn_status status) {
    sni_kernel *k = call->k;
    for (int i = 0; i < k->n_out; i++) {
        sn_value *v = &call->values[k->n_in + i];
        sni_datum *d = k->out[i];
        if (v->kind == SN_KIND_TENSOR && v->dtype == SN_STRING) {
            sn_status kept = keep_strings(k, v, d ? d->tensor.data : NULL, d && status == SN_OK);
            if (status == SN_OK) status = kept;
        } else if (v->kind == SN_KIND_TENSOR && d && sni_dtype_subbyte(v->dtype)) {
            sni_subbyte_unpack(v->dtype, v->data, d->tensor.data, v->count);
        } else if (v->kind == SN_KIND_NONE && d && status == SN_OK) {
            status = sni_fail(k->err, SN_BAD_DATA, "it did not make output %d", i);
        }
    }
    return status;
}

sn_status sni_custom_run(sni_kernel *k) {
    const sni_custom_kernel *kernel = k->params;
    if (!kernel) return sni_fail(k->err, SN_INTERNAL, "its kernel was not made");
    size_t count = (size_t)k->n_in + (size_t)k->n_out;
    sn_op_call call = {.k = k, .kernel = kernel};
    call.values = sni_scratch(k, (count + 1) * sizeof *call.values);
    if (!call.values) return SN_NO_MEMORY;
    memset((void *)call.values, 0, count * sizeof *call.values);
    sn_error told = {0};
    const sn_op *op = &kernel->custom->given;
    sn_status status = op->run(op->ctx, kernel->state, &call, &told);
    if (status != SN_OK)
        sni_fail(k->err, status, "%s", told.message[0] ? told.message : "its kernel failed");
    return finish(&call, status);
}
