/* fuzz.h - what the fuzzers do with a model that could be read: plan it, run it, write it.
 * Everything is small, limited and the same every time. */
#ifndef FUZZ_H
#define FUZZ_H

#include "sinter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_VALUES = 8, FUZZ_ELEMENTS = 4096 };

static inline int fuzz_discard(void *ctx, const void *bytes, size_t size) {
    (void)bytes;
    *(size_t *)ctx += size;
    return 0;
}

/* A tensor for one input: 2 for unknown dimensions, elements that count up from the bit patterns of
 * small numbers. NULL: too large, or of a kind that is not made. */
static inline sn_value *fuzz_input(const sn_value_info *info) {
    int64_t dims[SN_MAX_RANK], count = 1;
    if (info->kind != SN_KIND_TENSOR || (info->has_shape && info->rank > SN_MAX_RANK)) return NULL;
    int rank = info->has_shape ? info->rank : 1;
    for (int i = 0; i < rank; i++) {
        dims[i] = info->has_shape && info->dims[i] >= 0 ? info->dims[i] : 2;
        if (dims[i] > FUZZ_ELEMENTS || (count *= dims[i]) > FUZZ_ELEMENTS) return NULL;
    }
    sn_value *v = NULL;
    if (sn_tensor_create(info->dtype, rank, dims, &v, NULL) != SN_OK) return NULL;
    if (info->dtype == SN_STRING) {
        for (size_t i = 0; i < (size_t)count; i++)
            sn_tensor_set_string(v, i, &"a b,c"[i % 5], 5 - i % 5, NULL);
        return v;
    }
    unsigned char *data = sn_tensor_data(v);
    for (size_t i = 0; i < sn_tensor_bytes(v); i++) {
        if (info->dtype == SN_FLOAT32)
            data[i] = (const unsigned char[]){0, 0, 0x80, 0x3f}[i % 4];
        else if (info->dtype == SN_BOOL)
            data[i] = i & 1;
        else
            data[i] = (unsigned char)(i % 8 == 0 ? i / 8 % 4 : 0);
    }
    return v;
}

static inline void fuzz_run_session(const sn_model *model, sn_session *session) {
    sn_binding in[FUZZ_VALUES] = {{0}}, out[FUZZ_VALUES] = {{0}};
    sn_value_info info;
    size_t n_in = 0, n_out = sn_model_output_count(model);
    bool ready = sn_model_input_count(model) <= FUZZ_VALUES && n_out <= FUZZ_VALUES;
    for (size_t i = 0; ready && i < sn_model_input_count(model); i++) {
        if (sn_model_input_is_optional(model, i)) continue;
        ready = sn_model_input(model, i, &info, NULL) == SN_OK;
        if (ready) in[n_in] = (sn_binding){info.name, fuzz_input(&info)};
        ready = ready && in[n_in].value;
        n_in += ready;
    }
    for (size_t i = 0; ready && i < n_out; i++) {
        ready = sn_model_output(model, i, &info, NULL) == SN_OK;
        out[i].name = info.name;
    }
    sn_error err;
    if (ready) sn_session_run(session, NULL, in, n_in, out, n_out, &err);
    for (size_t i = 0; i < FUZZ_VALUES; i++) {
        sn_value_destroy(in[i].value);
        sn_value_destroy(out[i].value);
    }
}

/* Plans a model with and without the optimiser; `run`: and runs it. */
static inline void fuzz_model(const sn_model *model, bool run) {
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.threads = 1;
    options.memory_limit = 16 << 20;
    options.time_limit_ns = options.prepare_limit_ns = 200000000;
    for (int optimize = 0; optimize <= 3; optimize += 3) {
        sn_session *session = NULL;
        sn_error err;
        options.optimize = optimize;
        if (sn_session_create(model, &options, &session, &err) == SN_OK && run)
            fuzz_run_session(model, session);
        sn_session_destroy(session);
    }
}

/* Writes a model in both formats; nobody keeps it. */
static inline void fuzz_write(const sn_model *model) {
    size_t bytes = 0;
    sn_error err;
    sn_model_write(model, SN_FORMAT_TEXT, fuzz_discard, &bytes, &err);
    sn_model_write(model, SN_FORMAT_ONNX, fuzz_discard, &bytes, &err);
}

#endif
