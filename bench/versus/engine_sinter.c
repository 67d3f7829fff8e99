/* engine_sinter.c - drives Sinter by its own interface. */
#include "engine.h"

#include "sinter.h"

#include <string.h>

static sn_session *session;
static sn_binding *inputs, *outputs;
static size_t n_inputs, n_outputs;
static sn_error err;

static void check(sn_status status) {
    if (status != SN_OK) die("%s", err.message);
}

static void open_sinter(const char *library, const char *model, int threads, const tensor *in,
                        int n_in, times *took) {
    (void)library;
    sn_model *loaded;
    sn_session_options options;
    double start = now_ms();
    sn_session_options_init(&options, sizeof options);
    options.threads = threads;
    check(sn_model_load(model, NULL, &loaded, &err));
    check(sn_session_create(loaded, &options, &session, &err));
    took->session_ms = now_ms() - start;
    n_inputs = (size_t)n_in;
    n_outputs = sn_model_output_count(loaded);
    inputs = allocate(n_inputs, sizeof *inputs);
    outputs = allocate(n_outputs, sizeof *outputs);
    for (size_t i = 0; i < n_outputs; i++) {
        sn_value_info info;
        check(sn_model_output(loaded, i, &info, &err));
        outputs[i].name = info.name;
    }
    for (size_t i = 0; i < n_inputs; i++) {
        inputs[i].name = in[i].name;
        check(sn_tensor_wrap((sn_dtype)in[i].dtype, in[i].rank, in[i].dims, in[i].data, in[i].bytes,
                             &inputs[i].value, &err));
    }
}

static void run_sinter(void) {
    check(sn_session_run(session, NULL, inputs, n_inputs, outputs, n_outputs, &err));
}

static void drop_sinter(void) {
    for (size_t i = 0; i < n_outputs; i++) {
        sn_value_destroy(outputs[i].value);
        outputs[i].value = NULL;
    }
}

static int count_sinter(void) {
    return (int)n_outputs;
}

static void output_sinter(int index, tensor *out) {
    sn_value *v = outputs[index].value;
    if (sn_value_kind(v) != SN_KIND_TENSOR) die("output %d is no tensor", index);
    *out = (tensor){.name = outputs[index].name,
                    .dtype = (int)sn_tensor_dtype(v),
                    .rank = sn_tensor_rank(v),
                    .data = sn_tensor_data(v),
                    .bytes = sn_tensor_bytes(v)};
    for (int i = 0; i < out->rank; i++) out->dims[i] = sn_tensor_dims(v)[i];
}

const engine engine_sinter = {open_sinter, run_sinter, drop_sinter, count_sinter, output_sinter};
