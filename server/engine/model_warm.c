/* model_warm.c - runs a new model with made-up inputs: so that the first request finds it warm, and
 * to see whether its rows are independent of each other.
 *
 * A first dimension of one name does not make a batch: it may be a sequence. So a model whose
 * configuration is silent is run with two rows by themselves and together; only if the results are
 * the same are requests gathered. */
#include "server/engine/model.h"
#include "server/server.h"

#include <math.h>
#include <stdlib.h>

#define MOST_IO 64
#define MOST_ELEMENTS (64 << 20)

typedef struct trial {
    uint64_t deadline; /* 0: none */
    sn_value *inputs[MOST_IO];
    sn_value *outputs[MOST_IO];
} trial;

static void clear(trial *t) {
    for (size_t i = 0; i < MOST_IO; i++) {
        sn_value_destroy(t->inputs[i]);
        sn_value_destroy(t->outputs[i]);
    }
    *t = (trial){.deadline = t->deadline};
}

/* Numbers from 0 to 1 (integers 0 or 1) that depend on `seed` only. */
static void fill(sn_value *value, size_t from, size_t to, uint32_t seed) {
    sn_dtype dtype = sn_tensor_dtype(value);
    void *data = sn_tensor_data(value);
    size_t width = sn_dtype_bytes(dtype, 1);
    uint32_t state = seed * 2654435761u + 12345u;
    if (!data || sn_dtype_bytes(dtype, 2) != 2 * width) return;
    for (size_t i = from; i < to; i++) {
        state = state * 1664525u + 1013904223u;
        float real = (float)(state >> 8) / 16777216.0f;
        double wide = (double)real;
        uint64_t whole = state >> 31;
        char *at = (char *)data + i * width;
        switch (dtype) {
        case SN_FLOAT32:
            memcpy(at, &real, 4);
            break;
        case SN_FLOAT64:
            memcpy(at, &wide, 8);
            break;
        case SN_FLOAT16: /* 0.5 to 1 */
            whole = 0x3800u + (state >> 22);
            memcpy(at, &whole, 2);
            break;
        case SN_BFLOAT16:
            whole = 0x3F00u + (state >> 25);
            memcpy(at, &whole, 2);
            break;
        case SN_COMPLEX64:
        case SN_COMPLEX128:
            break;
        default:
            if (width <= 8) memcpy(at, &whole, width); /* the low end comes first */
        }
    }
}

/* Inputs of `rows` rows (0: the model has no batch dimension); row r is filled from seed + r. */
static bool make_inputs(const srv_model *model, int64_t rows, int64_t free_dim, uint32_t seed,
                        trial *t) {
    for (size_t i = 0; i < model->input_count; i++) {
        const srv_io *io = &model->inputs[i];
        int64_t dims[SN_MAX_RANK];
        if (io->optional) continue;
        if (!io->has_shape || i >= MOST_IO) return false;
        double elements = 1;
        for (int d = 0; d < io->rank; d++) {
            dims[d] = io->dims[d] >= 0 ? io->dims[d] : free_dim;
            if (d == 0 && rows > 0) dims[d] = rows;
            elements *= (double)dims[d];
        }
        if (elements > MOST_ELEMENTS) return false;
        if (sn_tensor_create(io->dtype, io->rank, dims, &t->inputs[i], NULL) != SN_OK) return false;
        size_t each = sn_tensor_count(t->inputs[i]) / (size_t)(rows > 0 ? rows : 1);
        for (int64_t r = 0; r < (rows > 0 ? rows : 1); r++) {
            fill(t->inputs[i], (size_t)r * each, (size_t)(r + 1) * each,
                 seed + (uint32_t)r + (uint32_t)i * 1000);
        }
    }
    return true;
}

/* Of a run, when so much is left for all of them. */
static uint64_t run_limit(const srv_model *model, uint64_t left) {
    uint64_t usual = model->config.time_limit_ns;
    if (!usual) usual = model->server->limits.time_ns;
    return usual && usual < left ? usual : left;
}

static bool run(const srv_model *model, int64_t rows, int64_t free_dim, uint32_t seed, trial *t) {
    sn_binding inputs[MOST_IO], outputs[MOST_IO];
    sn_error err;
    sn_run_options options;
    size_t count = 0, out = model->output_count;
    uint64_t now = srv_now_ns();
    sn_run_options_init(&options, sizeof options);
    if (t->deadline && now >= t->deadline) return false;
    if (t->deadline) options.time_limit_ns = run_limit(model, t->deadline - now);
    if (out > MOST_IO || !make_inputs(model, rows, free_dim, seed, t)) return false;
    for (size_t i = 0; i < model->input_count && i < MOST_IO; i++) {
        if (!model->inputs[i].optional) {
            inputs[count++] = (sn_binding){model->inputs[i].name, t->inputs[i]};
        }
    }
    for (size_t i = 0; i < out; i++) outputs[i] = (sn_binding){model->outputs[i].name, NULL};
    if (sn_session_run(model->session, &options, inputs, count, outputs, out, &err) != SN_OK) {
        return false;
    }
    for (size_t i = 0; i < out; i++) t->outputs[i] = outputs[i].value;
    return true;
}

/* Whether the elements at `a` and `b` are the same, floats up to rounding. */
static bool same(sn_dtype dtype, const char *a, const char *b, size_t count) {
    size_t bytes = sn_dtype_bytes(dtype, count);
    if (dtype != SN_FLOAT32) return bytes == 0 || memcmp(a, b, bytes) == 0;
    float scale = 0;
    for (size_t i = 0; i < count; i++) {
        float x;
        memcpy(&x, a + i * 4, 4);
        if (fabsf(x) > scale) scale = fabsf(x);
    }
    for (size_t i = 0; i < count; i++) {
        float x, y;
        memcpy(&x, a + i * 4, 4);
        memcpy(&y, b + i * 4, 4);
        bool equal = (isnan(x) && isnan(y)) || fabsf(x - y) <= 1e-4f * scale || x == y;
        if (!equal) return false;
    }
    return true;
}

/* Whether row `row` of `both` is the one row of `alone`. */
static bool row_agrees(const sn_value *both, const sn_value *alone, size_t row) {
    sn_dtype dtype = sn_tensor_dtype(both);
    int rank = sn_tensor_rank(both);
    const int64_t *b = sn_tensor_dims(both), *a = sn_tensor_dims(alone);
    if (dtype == SN_STRING || rank < 1 || rank != sn_tensor_rank(alone)) return false;
    if (b[0] != 2 || a[0] != 1) return false;
    for (int i = 1; i < rank; i++) {
        if (a[i] != b[i]) return false;
    }
    size_t count = sn_tensor_count(alone), bytes = sn_dtype_bytes(dtype, count);
    if (sn_dtype_bytes(dtype, 2 * count) != 2 * bytes) return false;
    const char *data = sn_tensor_const_data(both);
    return same(dtype, data + row * bytes, sn_tensor_const_data(alone), count);
}

static bool rows_independent(const srv_model *model, int64_t free_dim, uint64_t deadline) {
    trial first = {.deadline = deadline}, second = first, both = first;
    bool agree = run(model, 1, free_dim, 1, &first) && run(model, 1, free_dim, 2, &second) &&
                 run(model, 2, free_dim, 1, &both);
    for (size_t i = 0; agree && i < model->output_count; i++) {
        agree = row_agrees(both.outputs[i], first.outputs[i], 0) &&
                row_agrees(both.outputs[i], second.outputs[i], 1);
    }
    clear(&first);
    clear(&second);
    clear(&both);
    return agree;
}

/* A size for free dimensions other than the batch with which the model runs; 0 if there is none. */
static int64_t working_size(const srv_model *model, uint64_t deadline) {
    static const int64_t sizes[] = {8, 64, 224, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        trial t = {.deadline = deadline};
        bool ok = run(model, model->max_batch > 0 ? 1 : 0, sizes[i], 1, &t);
        clear(&t);
        if (ok) return sizes[i];
    }
    return 0;
}

void srv_model_warm(srv_model *model, uint64_t deadline) {
    bool must_find_out = model->max_batch > 0 && !model->batch_declared;
    if (model->config.no_warmup && !must_find_out) return;
    int64_t size = working_size(model, deadline);
    if (size && must_find_out && !rows_independent(model, size, deadline)) {
        srv_log(&model->server->log, SRV_LOG_INFO,
                "rows depend on each other: requests are not batched", "model", model->name, NULL);
        model->max_batch = 0;
    } else if (!size) {
        srv_log(&model->server->log, SRV_LOG_INFO, "could not be warmed up with made-up inputs",
                "model", model->name, NULL);
        if (must_find_out) model->max_batch = 0;
    }
}
