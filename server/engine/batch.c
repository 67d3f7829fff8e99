/* batch.c - one run for one or more requests: inputs put together, outputs taken apart. */
#include "server/engine/batch.h"
#include "server/engine/repository.h"
#include "server/server.h"

#include <stdlib.h>

/* ---- Which requests go together ----------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

uint64_t srv_batch_signature(const srv_request *request) {
    uint64_t hash = mix(1, request->input_count);
    int first = request->model->max_batch > 0 ? 1 : 0; /* rows are counted apart */
    for (size_t i = 0; i < request->input_count; i++) {
        const srv_input *input = &request->inputs[i];
        hash = mix(hash, (uint64_t)input->index << 32 | (uint64_t)input->rank);
        for (int d = first; d < input->rank; d++) hash = mix(hash, (uint64_t)input->dims[d]);
    }
    return hash;
}

/* Types under 8 bits may have rows that end inside a byte. */
static bool whole_rows(sn_dtype dtype) {
    return dtype == SN_STRING || sn_dtype_bytes(dtype, 2) == 2 * sn_dtype_bytes(dtype, 1);
}

bool srv_batch_alike(const srv_request *a, const srv_request *b) {
    if (a->signature != b->signature || a->input_count != b->input_count) return false;
    if (a->rows < 1 || b->rows < 1) return false;
    for (size_t i = 0; i < a->input_count; i++) {
        const srv_input *x = &a->inputs[i], *y = &b->inputs[i];
        if (x->index != y->index || x->rank != y->rank || !whole_rows(x->dtype)) return false;
        for (int d = 1; d < x->rank; d++) {
            if (x->dims[d] != y->dims[d]) return false;
        }
    }
    return true;
}

/* ---- Putting inputs together -------------------------------------------------------------- */

typedef struct joined {
    sn_value *value;
    void *memory;
    size_t bytes;
} joined;

static void free_joined(srv_buffers *buffers, joined *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sn_value_destroy(list[i].value);
        srv_buffer_give(buffers, list[i].memory, list[i].bytes);
    }
    free(list);
}

static sn_status join_strings(const srv_batch *batch, size_t index, sn_value *whole,
                              sn_error *err) {
    size_t at = 0;
    for (const srv_request *r = batch->first; r; r = r->next) {
        const srv_input *input = &r->inputs[index];
        for (size_t i = 0; i < input->count; i++) {
            const char *text;
            size_t length;
            SN_TRY(sn_tensor_get_string(input->value, i, &text, &length, err));
            SN_TRY(sn_tensor_set_string(whole, at++, text, length, err));
        }
    }
    return SN_OK;
}

static sn_status join_input(const srv_batch *batch, size_t index, joined *out, sn_error *err) {
    const srv_input *model_input = &batch->first->inputs[index];
    int64_t dims[SN_MAX_RANK];
    memcpy(dims, model_input->dims, sizeof dims);
    dims[0] = batch->rows;
    if (model_input->dtype == SN_STRING) {
        SN_TRY(sn_tensor_create(SN_STRING, model_input->rank, dims, &out->value, err));
        return join_strings(batch, index, out->value, err);
    }
    for (const srv_request *r = batch->first; r; r = r->next) out->bytes += r->inputs[index].bytes;
    out->memory = srv_buffer_take(&batch->model->server->buffers, out->bytes);
    if (!out->memory) return sni_fail_memory(err);
    char *to = out->memory;
    for (const srv_request *r = batch->first; r; r = r->next) {
        const srv_input *input = &r->inputs[index];
        if (input->bytes) memcpy(to, input->memory, input->bytes);
        to += input->bytes;
    }
    return sn_tensor_wrap(model_input->dtype, model_input->rank, dims, out->memory, out->bytes,
                          &out->value, err);
}

/* ---- Which outputs ------------------------------------------------------------------------ */

static bool wants(const srv_request *request, int index, srv_wanted **wanted) {
    if (wanted) *wanted = NULL;
    if (request->wanted_count == 0) return true;
    for (size_t i = 0; i < request->wanted_count; i++) {
        if (request->wanted[i].index != index) continue;
        if (wanted) *wanted = &request->wanted[i];
        return true;
    }
    return false;
}

/* Binds every output that any of the requests wants; `indices` are the model's. */
static size_t bind_outputs(const srv_batch *batch, sn_binding *bindings, int *indices) {
    size_t count = 0;
    for (size_t i = 0; i < batch->model->output_count; i++) {
        bool wanted = false;
        if (batch->model->outputs[i].dtype == SN_UNDEFINED) continue;
        for (const srv_request *r = batch->first; r && !wanted; r = r->next) {
            wanted = wants(r, (int)i, NULL);
        }
        if (!wanted) continue;
        bindings[count] = (sn_binding){batch->model->outputs[i].name, NULL};
        indices[count++] = (int)i;
    }
    return count;
}

/* ---- Taking outputs apart ----------------------------------------------------------------- */

/* Whether every output has the batch's rows, so that it can be cut. */
static bool can_cut(const srv_batch *batch, const sn_binding *outputs, size_t count) {
    if (batch->count == 1) return true;
    for (size_t i = 0; i < count; i++) {
        const sn_value *value = outputs[i].value;
        if (sn_value_kind(value) != SN_KIND_TENSOR || sn_tensor_rank(value) < 1 ||
            sn_tensor_dims(value)[0] != batch->rows || !whole_rows(sn_tensor_dtype(value))) {
            return false;
        }
    }
    return true;
}

/* Rows [row, row + rows) of `owner`; all of it when the batch is one request. */
static void cut(srv_output *out, srv_shared *owner, const srv_batch *batch, int64_t row,
                int64_t rows) {
    const sn_value *value = owner->value;
    out->dtype = sn_tensor_dtype(value);
    out->rank = sn_tensor_rank(value);
    if (out->rank) memcpy(out->dims, sn_tensor_dims(value), (size_t)out->rank * sizeof(int64_t));
    out->count = sn_tensor_count(value);
    out->data = sn_tensor_const_data(value);
    out->bytes = sn_tensor_bytes(value);
    if (out->dtype == SN_STRING) out->bytes = 0;
    out->owner = srv_shared_retain(owner);
    if (batch->count == 1) return;
    size_t each = out->count / (size_t)batch->rows, each_bytes = out->bytes / (size_t)batch->rows;
    out->dims[0] = rows;
    out->count = each * (size_t)rows;
    out->first = each * (size_t)row;
    out->bytes = each_bytes * (size_t)rows;
    if (out->data) out->data = (const char *)out->data + each_bytes * (size_t)row;
}

static void give_outputs(srv_batch *batch, srv_shared **owners, const int *indices, size_t count) {
    int64_t row = 0;
    for (srv_request *r = batch->first; r; row += r->rows, r = r->next) {
        r->outputs = SNI_NEW_ARRAY(&r->arena, srv_output, count ? count : 1);
        if (!r->outputs) {
            srv_request_fail(r, SRV_UNAVAILABLE, "out of memory");
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            srv_wanted *wanted;
            if (!wants(r, indices[i], &wanted)) continue;
            srv_output *out = &r->outputs[r->output_count++];
            *out = (srv_output){.name = batch->model->outputs[indices[i]].name, .wanted = wanted};
            cut(out, owners[i], batch, row, r->rows);
        }
        r->code = SRV_OK;
    }
}

/* ---- The run ------------------------------------------------------------------------------ */

static void fail_all(srv_batch *batch, const sn_error *err) {
    for (srv_request *r = batch->first; r; r = r->next) srv_request_fail_error(r, err);
}

static void stamp(srv_batch *batch, size_t offset) {
    uint64_t now = srv_now_ns();
    for (srv_request *r = batch->first; r; r = r->next) {
        memcpy((char *)&r->times + offset, &now, sizeof now);
    }
}
#define STAMP(batch, member) stamp(batch, offsetof(srv_times, member))

static sn_status run_session(srv_batch *batch, sn_binding *inputs, sn_binding *outputs,
                             size_t output_count, sn_error *err) {
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
    options.cancel = batch->cancel;
    options.threads = batch->threads;
    options.time_limit_ns = batch->time_limit_ns;
    STAMP(batch, input);
    sn_status status = sn_session_run(batch->model->session, &options, inputs,
                                      batch->first->input_count, outputs, output_count, err);
    STAMP(batch, computed);
    return status;
}

/* Wraps the outputs and gives them to the requests. */
static sn_status share_outputs(srv_batch *batch, sn_binding *outputs, const int *indices,
                               size_t count, srv_shared **owners, sn_error *err) {
    for (size_t i = 0; i < count; i++) {
        owners[i] = srv_shared_new(outputs[i].value);
        if (!owners[i]) return sni_fail_memory(err);
        outputs[i].value = NULL;
    }
    give_outputs(batch, owners, indices, count);
    return SN_OK;
}

/* Runs the batch as one; SN_UNSUPPORTED when the outputs cannot be cut. */
static sn_status run_together(srv_batch *batch, sn_error *err) {
    size_t inputs = batch->first->input_count, outputs = batch->model->output_count;
    joined *together = calloc(inputs ? inputs : 1, sizeof *together);
    sn_binding *bindings = calloc(inputs + outputs + 1, sizeof *bindings);
    int *indices = calloc(outputs + 1, sizeof *indices);
    srv_shared **owners = calloc(outputs + 1, sizeof(srv_shared *));
    size_t count = 0;
    sn_status status = SN_OK;
    if (!together || !bindings || !indices || !owners) status = sni_fail_memory(err);
    for (size_t i = 0; i < inputs && status == SN_OK; i++) {
        const srv_input *input = &batch->first->inputs[i];
        bindings[i] = (sn_binding){batch->model->inputs[input->index].name, input->value};
        if (batch->count > 1) {
            status = join_input(batch, i, &together[i], err);
            bindings[i].value = together[i].value;
        }
    }
    if (status == SN_OK) {
        count = bind_outputs(batch, bindings + inputs, indices);
        status = run_session(batch, bindings, bindings + inputs, count, err);
    }
    if (status == SN_OK && !can_cut(batch, bindings + inputs, count)) {
        status = sni_fail(err, SN_UNSUPPORTED, "outputs do not have the batch's rows");
    }
    if (status == SN_OK) {
        status = share_outputs(batch, bindings + inputs, indices, count, owners, err);
    }
    for (size_t i = 0; bindings && owners && i < outputs; i++) {
        sn_value_destroy(bindings[inputs + i].value);
        srv_shared_release(owners[i]);
    }
    if (together) free_joined(&batch->model->server->buffers, together, inputs);
    free(bindings);
    free(indices);
    free(owners);
    return status;
}

static void run_one(srv_batch *batch) {
    sn_error err = {0};
    if (run_together(batch, &err) != SN_OK) {
        srv_repository_hide_paths(batch->model->server->repository, err.message);
        fail_all(batch, &err);
    }
    STAMP(batch, finished);
}

void srv_batch_run(srv_batch *batch) {
    sn_error err = {0};
    if (batch->count == 1) {
        run_one(batch);
        return;
    }
    sn_status status = run_together(batch, &err);
    STAMP(batch, finished);
    if (status == SN_OK) return;
    if (status == SN_CANCELLED || status == SN_TIMEOUT) {
        fail_all(batch, &err);
        return;
    }
    /* one request's values, or a model whose rows are not rows: each answers for itself */
    srv_log(&batch->model->server->log, SRV_LOG_VERBOSE, "a batch failed and is run one by one",
            "model", batch->model->name, "reason", err.message, NULL);
    srv_batch single = *batch;
    srv_request *next;
    for (srv_request *r = batch->first; r; r = next) {
        next = r->next;
        r->next = NULL;
        single.first = r;
        single.count = 1;
        single.rows = r->rows;
        run_one(&single);
        r->next = next;
    }
}
