/* request.c - one inference request: its memory, and its agreement with the model. */
#include "server/engine/request.h"
#include "server/engine/model.h"
#include "server/server.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_ENTRIES 1024

/* ---- Shared values ------------------------------------------------------------------------ */

srv_shared *srv_shared_new(sn_value *value) {
    srv_shared *shared = malloc(sizeof *shared);
    if (!shared) return NULL;
    atomic_init(&shared->refs, 1);
    shared->value = value;
    return shared;
}

srv_shared *srv_shared_retain(srv_shared *shared) {
    atomic_fetch_add(&shared->refs, 1);
    return shared;
}

void srv_shared_release(srv_shared *shared) {
    if (!shared || atomic_fetch_sub(&shared->refs, 1) != 1) return;
    sn_value_destroy(shared->value);
    free(shared);
}

/* ---- Life --------------------------------------------------------------------------------- */

srv_request *srv_request_new(srv_server *server) {
    srv_request *request = calloc(1, sizeof *request);
    if (!request) return NULL;
    request->server = server;
    sni_arena_init(&request->arena, 8 << 20);
    return request;
}

void srv_request_free(srv_request *request) {
    if (!request) return;
    for (size_t i = 0; i < request->input_count; i++) {
        sn_value_destroy(request->inputs[i].value);
        if (!request->inputs[i].borrowed) {
            srv_buffer_give(&request->server->buffers, request->inputs[i].memory,
                            request->inputs[i].bytes);
        }
    }
    for (size_t i = 0; i < request->output_count; i++) {
        srv_shared_release(request->outputs[i].owner);
    }
    srv_budget_give(&request->server->budget, request->charged);
    srv_model_release(request->model);
    sni_arena_free(&request->arena);
    free(request);
}

srv_code srv_request_fail(srv_request *request, srv_code code, const char *fmt, ...) {
    if (request->code != SRV_OK) return request->code;
    va_list args;
    va_start(args, fmt);
    vsnprintf(request->message, sizeof request->message, fmt, args);
    va_end(args);
    request->code = code;
    return code;
}

srv_code srv_request_fail_error(srv_request *request, const sn_error *err) {
    return srv_request_fail(request, srv_code_of(err->status), "%s", err->message);
}

/* One more entry in an array of the arena that doubles. */
static void *add_entry(sni_arena *arena, void **list, size_t *count, size_t *capacity,
                       size_t size) {
    if (*count == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 4;
        void *grown = *capacity >= MAX_ENTRIES ? NULL : sni_arena_array(arena, more, size);
        if (!grown) return NULL;
        if (*count) memcpy(grown, *list, *count * size);
        *list = grown;
        *capacity = more;
    }
    return (char *)*list + (*count)++ * size;
}

srv_input *srv_request_add_input(srv_request *request) {
    void *list = request->inputs;
    srv_input *input = add_entry(&request->arena, &list, &request->input_count,
                                 &request->input_capacity, sizeof *input);
    request->inputs = list;
    if (!input) srv_request_fail(request, SRV_INVALID, "more than %d inputs", MAX_ENTRIES);
    return input;
}

srv_wanted *srv_request_add_wanted(srv_request *request) {
    void *list = request->wanted;
    srv_wanted *wanted = add_entry(&request->arena, &list, &request->wanted_count,
                                   &request->wanted_capacity, sizeof *wanted);
    request->wanted = list;
    if (!wanted) srv_request_fail(request, SRV_INVALID, "more than %d outputs", MAX_ENTRIES);
    return wanted;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

srv_code srv_request_charge(srv_request *request, size_t bytes) {
    if (!srv_budget_take(&request->server->budget, bytes)) {
        return srv_request_fail(request, SRV_UNAVAILABLE,
                                "the requests under way leave no memory for %zu bytes", bytes);
    }
    request->charged += bytes;
    return SRV_OK;
}

static srv_code count_elements(srv_request *request, srv_input *input) {
    int64_t count;
    if (!sni_shape_count(input->rank, input->dims, &count) || (uint64_t)count > SIZE_MAX / 32) {
        return srv_request_fail(request, SRV_INVALID, "input '%.*s': the shape is too large",
                                SNI_FMT(input->name));
    }
    input->count = (size_t)count;
    return SRV_OK;
}

srv_code srv_input_borrow(srv_request *request, srv_input *input, void *memory, size_t size) {
    if (count_elements(request, input) != SRV_OK) return request->code;
    size_t bytes = sn_dtype_bytes(input->dtype, input->count);
    if (size != bytes) {
        return srv_request_fail(request, SRV_INVALID,
                                "input '%.*s' has %zu bytes, its shape and datatype take %zu",
                                SNI_FMT(input->name), size, bytes);
    }
    input->memory = memory;
    input->bytes = bytes;
    input->borrowed = true;
    return SRV_OK;
}

srv_code srv_input_allocate(srv_request *request, srv_input *input) {
    sn_error err;
    if (count_elements(request, input) != SRV_OK) return request->code;
    if (input->dtype == SN_STRING) {
        size_t bytes = input->count * 32;
        if (bytes > request->server->limits.body) {
            return srv_request_fail(request, SRV_TOO_LARGE, "input '%.*s': %zu strings",
                                    SNI_FMT(input->name), input->count);
        }
        if (srv_request_charge(request, bytes) != SRV_OK) return request->code;
        if (sn_tensor_create(SN_STRING, input->rank, input->dims, &input->value, &err) != SN_OK) {
            return srv_request_fail_error(request, &err);
        }
        return SRV_OK;
    }
    size_t bytes = sn_dtype_bytes(input->dtype, input->count);
    if (bytes > request->server->limits.body) {
        return srv_request_fail(request, SRV_TOO_LARGE, "input '%.*s' has %zu bytes; %zu may be",
                                SNI_FMT(input->name), bytes, request->server->limits.body);
    }
    if (srv_request_charge(request, bytes) != SRV_OK) return request->code;
    input->memory = srv_buffer_take(&request->server->buffers, bytes);
    if (!input->memory) return srv_request_fail(request, SRV_UNAVAILABLE, "out of memory");
    input->bytes = bytes;
    return SRV_OK;
}

srv_code srv_input_finish(srv_request *request, srv_input *input) {
    sn_error err;
    if (input->value) return SRV_OK;
    if (sn_tensor_wrap(input->dtype, input->rank, input->dims, input->memory, input->bytes,
                       &input->value, &err) != SN_OK) {
        return srv_request_fail_error(request, &err);
    }
    return SRV_OK;
}

srv_code srv_input_strings(srv_request *request, srv_input *input, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    sn_error err;
    size_t left = size;
    for (size_t i = 0; i < input->count; i++) {
        size_t length = left < 4 ? SIZE_MAX
                                 : (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 |
                                       (size_t)at[3] << 24;
        if (left < 4 || length > left - 4) {
            return srv_request_fail(request, SRV_INVALID,
                                    "input '%.*s': its data ends inside string %zu of %zu",
                                    SNI_FMT(input->name), i, input->count);
        }
        if (sn_tensor_set_string(input->value, i, (const char *)at + 4, length, &err) != SN_OK) {
            return srv_request_fail_error(request, &err);
        }
        at += 4 + length;
        left -= 4 + length;
    }
    if (left) {
        return srv_request_fail(request, SRV_INVALID, "input '%.*s': %zu bytes after its strings",
                                SNI_FMT(input->name), left);
    }
    return SRV_OK;
}

void srv_output_strings(const srv_output *output, srv_text *out) {
    for (size_t i = 0; i < output->count; i++) {
        const char *text = "";
        size_t length = 0;
        sn_tensor_get_string(output->owner->value, output->first + i, &text, &length, NULL);
        unsigned char size[4] = {(unsigned char)length, (unsigned char)(length >> 8),
                                 (unsigned char)(length >> 16), (unsigned char)(length >> 24)};
        srv_text_add(out, size, 4);
        srv_text_add(out, text, length);
    }
}

/* ---- Agreement with the model ------------------------------------------------------------- */

static srv_code check_shape(srv_request *request, const srv_io *io, const srv_input *input) {
    if (input->dtype != io->dtype) {
        return srv_request_fail(
            request, SRV_INVALID, "input '%s' is %s, but the model's '%s' takes %s", io->name,
            srv_type_name(input->dtype), request->model->name, srv_type_name(io->dtype));
    }
    if (!io->has_shape) return SRV_OK;
    bool fits = io->rank == input->rank;
    for (int i = 0; fits && i < io->rank; i++) {
        fits = io->dims[i] < 0 || io->dims[i] == input->dims[i];
    }
    if (fits) return SRV_OK;
    char got[200], want[200];
    srv_dims_text(input->rank, input->dims, got, sizeof got);
    srv_dims_text(io->rank, io->dims, want, sizeof want);
    return srv_request_fail(request, SRV_INVALID, "input '%s' has shape %s, but the model takes %s",
                            io->name, got, want);
}

static srv_code check_inputs(srv_request *request) {
    const srv_model *model = request->model;
    for (size_t i = 0; i < request->input_count; i++) {
        srv_input *input = &request->inputs[i];
        input->index = srv_io_find(model->inputs, model->input_count, input->name);
        if (input->index < 0) {
            return srv_request_fail(request, SRV_INVALID, "the model has no input '%.*s'",
                                    SNI_FMT(input->name));
        }
        for (size_t j = 0; j < i; j++) {
            if (request->inputs[j].index == input->index) {
                return srv_request_fail(request, SRV_INVALID, "input '%.*s' is given twice",
                                        SNI_FMT(input->name));
            }
        }
        if (check_shape(request, &model->inputs[input->index], input) != SRV_OK) {
            return request->code;
        }
    }
    for (size_t i = 0; i < model->input_count; i++) {
        bool given = model->inputs[i].optional;
        for (size_t j = 0; j < request->input_count && !given; j++) {
            given = request->inputs[j].index == (int)i;
        }
        if (!given) {
            return srv_request_fail(request, SRV_INVALID, "input '%s' is missing",
                                    model->inputs[i].name);
        }
    }
    return SRV_OK;
}

static srv_code check_outputs(srv_request *request) {
    const srv_model *model = request->model;
    for (size_t i = 0; i < request->wanted_count; i++) {
        srv_wanted *wanted = &request->wanted[i];
        wanted->index = srv_io_find(model->outputs, model->output_count, wanted->name);
        if (wanted->index < 0) {
            return srv_request_fail(request, SRV_INVALID, "the model has no output '%.*s'",
                                    SNI_FMT(wanted->name));
        }
        for (size_t j = 0; j < i; j++) {
            if (request->wanted[j].index == wanted->index) {
                return srv_request_fail(request, SRV_INVALID, "output '%.*s' is asked for twice",
                                        SNI_FMT(wanted->name));
            }
        }
    }
    return SRV_OK;
}

/* The rows of the batch dimension must be the same in every input. */
static srv_code check_rows(srv_request *request) {
    request->rows = 1;
    if (request->model->max_batch <= 0) return SRV_OK;
    for (size_t i = 0; i < request->input_count; i++) {
        const srv_input *input = &request->inputs[i];
        if (input->rank == 0) {
            return srv_request_fail(request, SRV_INVALID,
                                    "input '%.*s' has no dimension for the batch",
                                    SNI_FMT(input->name));
        }
        if (i == 0) request->rows = input->dims[0];
        if (input->dims[0] != request->rows) {
            return srv_request_fail(
                request, SRV_INVALID, "input '%.*s' has %lld rows, another input has %lld",
                SNI_FMT(input->name), (long long)input->dims[0], (long long)request->rows);
        }
    }
    const srv_model *model = request->model;
    if (model->batch_declared && request->rows > model->max_batch) {
        return srv_request_fail(request, SRV_INVALID,
                                "the request has %lld rows; max_batch_size is %lld",
                                (long long)request->rows, (long long)model->max_batch);
    }
    return SRV_OK;
}

srv_code srv_request_check(srv_request *request) {
    if (check_inputs(request) != SRV_OK) return request->code;
    if (check_outputs(request) != SRV_OK) return request->code;
    return check_rows(request);
}
