/* HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: tables for audio features. */
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

typedef struct window_params {
    int64_t output_datatype, periodic;
} window_params;

/* a[0] - a[1] cos(t) + a[2] cos(2t), t from 0 to 2 pi. A window of one element is 1. */
static sn_status window(sni_kernel *k, const double a[3]) {
    const window_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, y->count, sizeof(double), &memory));
    double *w = memory;
    double length = (double)(p->periodic ? y->count : y->count - 1);
    for (int64_t i = 0; i < y->count; i++) {
        double t = 2 * pi * (double)i / length;
        w[i] = y->count == 1 ? 1 : a[0] - a[1] * cos(t) + a[2] * cos(2 * t);
    }
    sni_store_numbers(y, SN_FLOAT64, w, false);
    return SN_OK;
}

static sn_status hann_ref(sni_kernel *k) {
    return window(k, (const double[]){0.5, 0.5, 0});
}

static sn_status hamming_ref(sni_kernel *k) {
    return window(k, (const double[]){25.0 / 46, 21.0 / 46, 0});
}

static sn_status blackman_ref(sni_kernel *k) {
    return window(k, (const double[]){0.42, 0.5, 0.08});
}

static sn_status set_output_type(sni_infer *c, int64_t dtype) {
    const sni_types numbers = SNI_T_NUMBERS;
    if (dtype < 0 || dtype >= SNI_DTYPE_COUNT || !(SNI_T(dtype) & numbers))
        return SNI_INFER_FAIL(c, "output_datatype %lld is no type of numbers", (long long)dtype);
    return sni_infer_set_type(c, 0, (sn_dtype)dtype);
}

/* The one element of integer input i as a dimension; *known false if inference cannot tell. */
static sn_status scalar_dim(sni_infer *c, int i, const char *what, sni_dim *out, bool *known) {
    const sni_dim *dims;
    int32_t count;
    SN_TRY(sni_infer_dims(c, i, &dims, &count));
    *known = dims != NULL;
    if (!dims) return SN_OK;
    if (count != 1) return SNI_INFER_FAIL(c, "%s has %d elements, not 1", what, (int)count);
    *out = dims[0];
    return SN_OK;
}

static sn_status window_infer(sni_infer *c) {
    const window_params *p = c->params;
    sni_dim size = 0;
    bool known;
    SN_TRY(set_output_type(c, p->output_datatype));
    SN_TRY(scalar_dim(c, 0, "size", &size, &known));
    if (!known) size = sni_dim_fresh(c->symbols);
    return sni_infer_set_shape(c, 0, 1, &size);
}

/* ---- MelWeightMatrix ---- */

static double mel_of(double hertz) {
    return 2595 * log10(1 + hertz / 700);
}

/* The spectrogram bin of edge i of the triangles. */
static int64_t edge(double low, double step, int64_t i, double per_hertz, int64_t bins) {
    double hertz = 700 * (pow(10, (low + step * (double)i) / 2595) - 1);
    double bin = floor(hertz * per_hertz);
    return bin > 0 ? (bin < (double)bins ? (int64_t)bin : bins) : 0;
}

/* weights is (bins, mels); edges are in [0, bins], those at `bins` are outside. */
static void triangle(double *weights, int64_t bins, int64_t mels, int64_t mel, const int64_t e[3]) {
    int64_t rise = e[1] - e[0], fall = e[2] - e[1];
    if (rise == 0 && e[1] < bins) weights[e[1] * mels + mel] = 1;
    for (int64_t j = e[0]; rise > 0 && j <= e[1] && j < bins; j++)
        weights[j * mels + mel] = (double)(j - e[0]) / (double)rise;
    for (int64_t j = e[1]; fall > 0 && j < e[2] && j < bins; j++)
        weights[j * mels + mel] = (double)(e[2] - j) / (double)fall;
}

static sn_status mel_ref(sni_kernel *k) {
    sni_tensor *y = sni_out(k, 0);
    double v[5];
    for (int i = 0; i < 5; i++) {
        const sni_tensor *t = sni_in(k, i);
        if (t->count != 1)
            return SNI_KERNEL_FAIL(k, "input %d has %lld elements, not 1", i, (long long)t->count);
        v[i] = sni_number_at(t, 0);
    }
    int64_t bins = y->dims[0], mels = y->dims[1];
    if (!(v[2] > 0) || !(v[3] >= 0) || !(v[4] >= v[3]))
        return SNI_KERNEL_FAIL(k, "sample rate %g or edges %g to %g Hz make no sense", v[2], v[3],
                               v[4]);
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, y->count, sizeof(double), &memory));
    double *weights = memory;
    for (int64_t i = 0; i < y->count; i++) weights[i] = 0;
    double low = mel_of(v[3]), step = (mel_of(v[4]) - low) / ((double)mels + 2);
    double per_hertz = (v[1] + 1) / v[2];
    for (int64_t m = 0; m < mels; m++) {
        int64_t e[3];
        for (int i = 0; i < 3; i++) e[i] = edge(low, step, m + i, per_hertz, bins);
        triangle(weights, bins, mels, m, e);
    }
    sni_store_numbers(y, SN_FLOAT64, weights, false);
    return SN_OK;
}

static sn_status mel_infer(sni_infer *c) {
    const window_params *p = c->params;
    sni_dim mels = 0, length = 0;
    bool known;
    SN_TRY(set_output_type(c, p->output_datatype));
    SN_TRY(scalar_dim(c, 0, "num_mel_bins", &mels, &known));
    if (!known) mels = sni_dim_fresh(c->symbols);
    SN_TRY(scalar_dim(c, 1, "dft_length", &length, &known));
    sni_dim bins = !known ? sni_dim_fresh(c->symbols)
                          : sni_dim_add(c->symbols, sni_dim_floordiv(c->symbols, length, 2), 1);
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){bins, mels});
}

#define WINDOW_OP(NAME, REF)                                                             \
    const sni_op sni_op_##NAME = {                                                       \
        .name = #NAME,                                                                   \
        .versions = SNI_VERSIONS(17),                                                    \
        .inputs = SNI_FORMALS({"size", "T1"}),                                           \
        .outputs = SNI_FORMALS({"output", "T2"}),                                        \
        .types = SNI_TYPE_VARS({"T1", SNI_T_INDEX}, {"T2", SNI_T_NUMBERS}),              \
        .params = SNI_PARAMS(                                                            \
            {"output_datatype", SNI_ATTR_INT, offsetof(window_params, output_datatype),  \
             .number = SN_FLOAT32},                                                      \
            {"periodic", SNI_ATTR_INT, offsetof(window_params, periodic), .number = 1}), \
        .params_size = sizeof(window_params),                                            \
        .infer = window_infer,                                                           \
        .ref = REF,                                                                      \
    }

WINDOW_OP(BlackmanWindow, blackman_ref);
WINDOW_OP(HammingWindow, hamming_ref);
WINDOW_OP(HannWindow, hann_ref);

const sni_op sni_op_MelWeightMatrix = {
    .name = "MelWeightMatrix",
    .versions = SNI_VERSIONS(17),
    .inputs = SNI_FORMALS({"num_mel_bins", "T1"}, {"dft_length", "T1"}, {"sample_rate", "T1"},
                          {"lower_edge_hertz", "T2"}, {"upper_edge_hertz", "T2"}),
    .outputs = SNI_FORMALS({"output", "T3"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_INDEX}, {"T2", SNI_T_FLOATS}, {"T3", SNI_T_NUMBERS}),
    .params = SNI_PARAMS({"output_datatype", SNI_ATTR_INT, offsetof(window_params, output_datatype),
                          .number = SN_FLOAT32}),
    .params_size = sizeof(window_params),
    .infer = mel_infer,
    .ref = mel_ref,
};
