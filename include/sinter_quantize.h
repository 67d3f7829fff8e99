/* sinter_quantize.h - models in fewer bits: quantisation, narrower floats, pruning. The conventions
 * are those of sinter.h.
 *
 * The result is a model like any other: sn_model_write() writes it in standard ONNX
 * (QuantizeLinear and DequantizeLinear, MatMulNBits, GatherBlockQuantized, float16). */
#ifndef SINTER_QUANTIZE_H
#define SINTER_QUANTIZE_H

#include "sinter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the weights of a layer, and perhaps its inputs, are stored in. */
typedef enum sn_quantize_to {
    SN_QUANTIZE_TO_FLOAT = 0,        /* as the model has them */
    SN_QUANTIZE_TO_INT8 = 1,         /* weights and activations, with ranges measured before */
    SN_QUANTIZE_TO_INT8_DYNAMIC = 2, /* the same, with ranges measured in every run */
    SN_QUANTIZE_TO_INT4 = 3,         /* weights in blocks; activations stay floats */
    SN_QUANTIZE_TO_INT2 = 4,         /* the same */
    SN_QUANTIZE_TO_FP16 = 5,         /* the whole model */
    SN_QUANTIZE_TO_BF16 = 6,         /* the same */
    SN_QUANTIZE_TO_MIXED = 7         /* to ask for: whatever suits each layer */
} sn_quantize_to;

/* "float32", "int8", ... Static storage. */
SN_API const char *sn_quantize_to_name(sn_quantize_to precision);

/* Which CPUs the result shall be quick and exact on. */
typedef enum sn_quantize_target {
    SN_TARGET_THIS = 0, /* the machine that this runs on */
    SN_TARGET_ANY = 1,
    SN_TARGET_AVX2 = 2, /* no VNNI: weights of 7 bits, so that sums of pairs fit 16 */
    SN_TARGET_VNNI = 3,
    SN_TARGET_AMX = 4,
    SN_TARGET_NEON = 5 /* signed activations */
} sn_quantize_target;

/* How much worse a model is than the one it is compared with; 0: not at all. */
typedef enum sn_quantize_metric {
    SN_METRIC_COSINE = 0, /* 1 - cosine between the outputs */
    SN_METRIC_TOP1 = 1,   /* part of the rows whose largest number stands elsewhere */
    SN_METRIC_KL = 2,     /* Kullback-Leibler divergence of the rows' softmax, in nats */
    SN_METRIC_SCORE = 3   /* relative loss of sn_quantize_options.score */
} sn_quantize_metric;

/* How ranges of activations are chosen. */
typedef enum sn_calibration {
    SN_CALIBRATE_AUTO = 0, /* the one of the others with the least loss */
    SN_CALIBRATE_MINMAX = 1,
    SN_CALIBRATE_PERCENTILE = 2, /* 99.99 % of the numbers lie inside */
    SN_CALIBRATE_ENTROPY = 3,    /* least divergence from the numbers' distribution */
    SN_CALIBRATE_MSE = 4         /* least mean square error */
} sn_calibration;

/* Inputs to calibrate and measure with. `get` is called with indices below `count`, in order and
 * again from 0 for another pass, in the calling thread; it makes values for sample `index` into
 * `inputs`, which has room for as many as the model has inputs, and sets `*input_count`. The values
 * become the library's, which destroys them before it asks for the next sample; names are borrowed
 * until then. */
typedef struct sn_samples {
    size_t count;
    sn_status (*get)(void *ctx, size_t index, sn_binding *inputs, size_t *input_count,
                     sn_error *err);
    void *ctx;
} sn_samples;

/* Told of what is going on: a phase, and how much of it is done. Not 0: stop, SN_CANCELLED. */
typedef int (*sn_progress_fn)(void *ctx, const char *phase, size_t done, size_t total);

/* How good a model is at the caller's own task; more is better. */
typedef sn_status (*sn_score_fn)(void *ctx, const sn_model *model, double *score, sn_error *err);

typedef struct sn_quantize_options {
    size_t size; /* sizeof(sn_quantize_options); set by sn_quantize_options_init */
    sn_quantize_to to;
    sn_quantize_target target;
    const sn_samples *samples; /* NULL: none; then int8 is dynamic and nothing is measured */
    double max_loss;           /* by `metric`; below 0: any */
    sn_quantize_metric metric;
    sn_calibration calibration;
    bool may_be_slower; /* int8 and mixed are chosen for size, and may be slower than the input */
    int block_size;     /* of int4 and int2: 16, 32 (default), 64, 128 or 256 */
    const sn_model *teacher; /* what the result is compared with; NULL: the model itself */
    const char *const *keep; /* names of layers that stay as they are */
    size_t keep_count;
    sn_score_fn score; /* SN_METRIC_SCORE */
    void *score_ctx;
    int threads;             /* of measured runs; 0: all */
    sn_progress_fn progress; /* NULL: nobody is told */
    void *progress_ctx;
    const char *state_path; /* what has been found out is kept in this file, and read from it when
                               the same work is begun again; NULL: nowhere */
    uint64_t memory_limit;  /* bytes for second moments of inputs (int4, int2 and pruning) held at
                               a time; 0: 512 MB */
} sn_quantize_options;

SN_API void sn_quantize_options_init(sn_quantize_options *options, size_t size);

/* What was found out; owned by the caller, with all its strings and lists. */
typedef struct sn_quantize_report sn_quantize_report;

/* The whole model, before and after. Losses and times are -1 where nothing was measured. */
typedef struct sn_quantize_summary {
    double loss;                         /* by the metric asked for */
    double cosine, top1, kl;             /* losses by these */
    uint64_t ns_before, ns_after;        /* least time of a run of the first sample; 0: unknown */
    uint64_t bytes_before, bytes_after;  /* of weights */
    size_t layer_count, quantized_count; /* layers with weights, and those that were changed */
    size_t sample_count;
    const char *calibration; /* what was chosen: "percentile", ... or "" */
    bool smoothed;           /* scales were moved from activations to weights */
    bool bias_corrected;
    double sparsity; /* part of the layers' weights that is 0 */
} sn_quantize_summary;

/* A layer. Its loss is the model's when this layer alone is quantised. */
typedef struct sn_quantize_layer {
    const char *name, *op;
    sn_quantize_to precision;
    const char *note;             /* why it was left as it is, or "" */
    double loss;                  /* -1: not measured */
    uint64_t ns_before, ns_after; /* 0: not measured */
    uint64_t bytes_before, bytes_after;
    double weight_error; /* relative root mean square error of the weights; -1: none */
    double sparsity;
    float low, high; /* the range chosen for its input; both 0: none */
    float seen_low, seen_high;
    const uint64_t *histogram; /* of its input between seen_low and seen_high; NULL: none */
    size_t bins;
} sn_quantize_layer;

/* A whole model that was tried. */
typedef struct sn_quantize_trial {
    const char *what;
    double loss;
    uint64_t ns; /* 0: not measured */
    uint64_t bytes;
} sn_quantize_trial;

SN_API void sn_quantize_report_summary(const sn_quantize_report *report, sn_quantize_summary *out);
/* By index, in the order of the graph or of time; false past the end. */
SN_API bool sn_quantize_report_layer(const sn_quantize_report *report, size_t index,
                                     sn_quantize_layer *out);
SN_API bool sn_quantize_report_trial(const sn_quantize_report *report, size_t index,
                                     sn_quantize_trial *out);
SN_API void sn_quantize_report_destroy(sn_quantize_report *report);

/* Quantises a model. `report` may be NULL; it is also set when the loss or the time asked for
 * cannot be reached (SN_LIMIT, with the layer and the figures), as far as it came.
 * SN_INVALID_MODEL: the model is quantised already, or has no layer that can be. SN_BAD_DATA: a
 * sample gives NaN or infinity. Both results are owned. */
SN_API sn_status sn_quantize(const sn_model *model, const sn_quantize_options *options,
                             sn_model **out, sn_quantize_report **report, sn_error *err);

typedef enum sn_prune_pattern {
    SN_PRUNE_UNSTRUCTURED = 0, /* any weights */
    SN_PRUNE_2_4 = 1           /* two of four neighbours along the inputs */
} sn_prune_pattern;

typedef struct sn_prune_options {
    size_t size; /* sizeof(sn_prune_options); set by sn_prune_options_init */
    sn_prune_pattern pattern;
    double sparsity; /* part of each layer's weights that becomes 0, above 0 and below 1; of 2:4 it
                        is 0.5 whatever is said here */
    /* Samples, metric, loss, teacher, names to keep, progress, threads, state and limits; NULL: the
     * defaults. With samples the inputs' second moments say which weights matter, and in products
     * those that stay make up for those that go; without, their size does. */
    const sn_quantize_options *common;
} sn_prune_options;

SN_API void sn_prune_options_init(sn_prune_options *options, size_t size);

/* Sets weights of convolutions and products to 0. Where all layers together lose more than allowed,
 * those that lose most stay as they are. Results and failures as of sn_quantize(). */
SN_API sn_status sn_prune(const sn_model *model, const sn_prune_options *options, sn_model **out,
                          sn_quantize_report **report, sn_error *err);

#ifdef __cplusplus
}
#endif

#endif
