/* quantize.h - what the files of this module share: the model that is worked on, its layers, and
 * what has been chosen for them. See docs/internals/quantisation.md. */
#ifndef SNI_QUANTIZE_QUANTIZE_H
#define SNI_QUANTIZE_QUANTIZE_H

#include "api/model.h"
#include "graph/graph.h"
#include "quantize/observer.h"

#include "sinter_quantize.h"

enum {
    SNI_PRECISIONS = SN_QUANTIZE_TO_MIXED,
    SNI_PRUNED = SN_QUANTIZE_TO_INT8 /* while pruning: what a layer has that is pruned */
};

typedef enum sni_qkind { SNI_Q_CONV, SNI_Q_PRODUCT, SNI_Q_GATHER } sni_qkind;

/* Weights in fewer bits, as the constants that go into the graph. */
typedef struct sni_qweights {
    sni_const *data; /* NULL: not made yet */
    sni_const *scales;
    sni_const *zeros; /* NULL: none */
    uint64_t bytes;   /* of all three in a file */
    double error;     /* relative root mean square */
} sni_qweights;

/* A node whose weights are constant. Ids are those of the base graph. */
typedef struct sni_qlayer {
    const char *name, *op;
    int32_t node;
    int32_t x;    /* the activation; of a Gather the indices */
    int32_t w;    /* the constant that holds the weights, maybe behind a Transpose */
    int32_t bias; /* SNI_NO_ID: none */
    sni_qkind kind;
    bool by_rows;     /* a product: the constant is (k, n), not (n, k) */
    bool reads_rows;  /* the same of what the node reads, behind a Transpose */
    int64_t n, k;     /* outputs, and weights of each; of a Gather rows and columns */
    uint32_t can;     /* bits of sn_quantize_to, FLOAT among them */
    const char *note; /* why it stays as it is; "" */
    sn_quantize_to precision;
    sni_qweights made[SNI_PRECISIONS];
    double losses[SNI_PRECISIONS]; /* of the model with this layer alone; -1: not measured */
    uint64_t ns[SNI_PRECISIONS];   /* of the layer; 0: not measured */
    uint64_t bytes;                /* of its weights in the model */
    bool by_moments; /* weights of few bits were fitted by second moments of the inputs */
    double sparsity;
} sni_qlayer;

/* How a tensor's numbers are held: (q - zero) * scale. */
typedef struct sni_qparams {
    bool known;
    float scale;
    int32_t zero;
    float low, high;
} sni_qparams;

/* Choices that hold for the whole model. */
typedef struct sni_qchoice {
    sn_calibration calibration;
    bool correct; /* biases make up for the rounding of weights on average */
} sni_qchoice;

typedef struct sni_quantizer {
    const sn_model *model;
    sn_quantize_options o;
    sn_samples samples;       /* count 0: none */
    sni_store *store;         /* of the base graph; its parent is the model's */
    sni_graph *base;          /* cleaned up; ids have no gaps, nodes stand in order */
    sn_model *plain;          /* the base graph as a model */
    const char *bytes_suffix; /* of the names of values that hold the bytes of others */
    sni_qlayer *layers;
    size_t n_layers;
    sni_observer **seen; /* by value: NULL: not observed */
    sni_qchoice choice;
    bool alone;   /* times of layers are from floats to floats, as if no neighbour were in bytes */
    bool pruning; /* layers are pruned, not quantised: SNI_PRUNED */
    int weight_levels;                /* largest number of an int8 weight: 127 or 63 */
    sn_dtype activation;              /* SN_UINT8 or SN_INT8 */
    struct sni_qreference *reference; /* metrics.c: outputs to compare with; NULL: not made */
    struct sni_qstate *state;         /* state.c; NULL: none is kept */
    sn_model *smoothed;               /* what the base graph was made of instead; NULL: `model` */
    sn_quantize_report *report;
    sn_error *err;
} sni_quantizer;

/* Tells the caller how far a phase is; SN_CANCELLED if it wants no more. */
sn_status sni_q_progress(const sni_quantizer *q, const char *phase, size_t done, size_t total);

/* ---- base.c: what is worked on ---- */

/* Makes base graph and layers of q->model. */
sn_status sni_q_open(sni_quantizer *q);
void sni_q_close(sni_quantizer *q);

/* Constants of the base graph as float32 tensors in memory; NULL if it is another type, or cannot
 * be read. Stays as long as the base graph. */
const float *sni_q_floats(const sni_quantizer *q, int32_t value, const sni_tensor **shape);

/* A copy of the base graph to be changed, in a store of its own; ids are the same. */
sn_status sni_q_copy(const sni_quantizer *q, sni_graph **out, sn_error *err);
/* A model of a changed copy, which it takes over, also on failure. */
sn_status sni_q_model(const sni_quantizer *q, sni_graph *g, sn_model **out, sn_error *err);

/* ---- edit.c: changing a copy ---- */

/* A node to be put into a graph. Its one result is a new value. */
typedef struct sni_qnode {
    const char *domain, *op;
    const int32_t *in;
    int n_in;
    const sni_attr *attrs;
    int n_attrs;
} sni_qnode;

/* Adds it before node `before` (SNI_NO_ID: at the end); *out is the result. */
sn_status sni_q_add_node(sni_graph *g, int32_t before, const sni_qnode *wanted, int32_t *out,
                         sn_error *err);
/* Adds a constant that exists, or a scalar or list made of numbers. */
sn_status sni_q_add_const(sni_graph *g, sni_const *c, int32_t *out, sn_error *err);
sn_status sni_q_add_floats(sni_graph *g, int rank, const int64_t *dims, const float *v,
                           int32_t *out, sn_error *err);
sn_status sni_q_add_zero(sni_graph *g, sn_dtype dtype, int32_t zero, int32_t *out, sn_error *err);
/* The node that comes after `id`; SNI_NO_ID at the end. */
int32_t sni_q_after(const sni_graph *g, int32_t id);
/* Lets a node's result, with its name, come from `to` instead and takes the node out. */
sn_status sni_q_replace_node(sni_graph *g, sni_node *n, int32_t to, sn_error *err);

/* ---- samples.c, metrics.c: running ---- */

/* Makes a session of `model` as measured runs have it. */
sn_status sni_q_session(const sni_quantizer *q, const sn_model *model, sn_session **out,
                        sn_error *err);

typedef struct sni_qsample {
    sn_binding *inputs;
    size_t count;
} sni_qsample;
sn_status sni_q_sample(const sni_quantizer *q, size_t index, sni_qsample *out, sn_error *err);
void sni_q_sample_free(sni_qsample *s);

/* Calls fn with the values of `names` for every sample, whose number it is told. */
typedef sn_status (*sni_qvalues_fn)(void *ctx, size_t sample, sn_value *const *values, size_t count,
                                    sn_error *err);
typedef struct sni_qwatch {
    const char *const *names;
    size_t count;
    const char *phase;
    sni_qvalues_fn fn;
    void *ctx;
} sni_qwatch;
sn_status sni_q_watch(const sni_quantizer *q, const sni_qwatch *watch, sn_error *err);

typedef struct sni_qloss {
    double cosine, top1, kl;
    double asked;  /* by the metric asked for */
    double smooth; /* for comparing choices: KL where classes are counted, else as asked */
} sni_qloss;

/* The loss of a model over the samples. */
sn_status sni_q_loss(sni_quantizer *q, const sn_model *model, sni_qloss *out, sn_error *err);
void sni_q_reference_free(struct sni_qreference *reference);

/* Least times of a run of the first sample, the models taking turns. */
sn_status sni_q_times(const sni_quantizer *q, sn_model *const *models, size_t count, uint64_t *ns,
                      sn_error *err);

/* ---- calibrate.c ---- */

/* Fills q->seen for what the layers and what lies between them need. */
sn_status sni_q_calibrate(sni_quantizer *q);
/* How a value is held in bytes by the current choice. */
sni_qparams sni_q_params(const sni_quantizer *q, int32_t value);

/* ---- Forms of a layer; they make copies of the base graph by the layers' precisions ---- */

/* forms.c: a model of the precisions chosen. */
sn_status sni_q_build(sni_quantizer *q, sn_model **out, sn_error *err);

/* regions.c: which values are held in bytes, given which layers are. */
typedef struct sni_qregion {
    uint8_t *held;    /* by value: SNI_HELD_ bits */
    int32_t *same_as; /* by value: whose scale it has; itself as a rule */
    bool *dropped;    /* by node: its bounds are those of the bytes, so that it does nothing */
} sni_qregion;
enum {
    SNI_HELD = 1,    /* quantised and dequantised */
    SNI_HELD_ALL = 2 /* every reader reads what is dequantised */
};
/* With `any`, layers that could be int8 count as if they were: what calibration has to look at. */
sn_status sni_q_region(const sni_quantizer *q, bool any, sni_qregion *out, sn_error *err);
void sni_q_region_free(sni_qregion *r);

/* static_int8.c, dynamic_int8.c, low_bits.c, half.c */
sn_status sni_q_static(sni_quantizer *q, sni_graph *g, sn_error *err);
sn_status sni_q_dynamic(sni_quantizer *q, sni_graph *g, sn_error *err);
sn_status sni_q_low_bits(sni_quantizer *q, sni_graph *g, sn_error *err);
sn_status sni_q_half(sni_quantizer *q, sn_dtype dtype, sni_graph *g, sn_error *err);

/* prune.c: the layers' weights with zeros in them, l->made[SNI_PRUNED]. */
sn_status sni_q_pruned(sni_quantizer *q, sni_graph *g, sn_error *err);

/* ---- Weights ---- */

/* fit.c: the weights of a layer in a precision, made once. */
sn_status sni_q_fit(sni_quantizer *q, sni_qlayer *l, sn_quantize_to precision, sn_error *err);
/* Bits of a weight: tables that are gathered from have 4 where products have 2. */
int sni_q_bits(const sni_qlayer *l, sn_quantize_to precision);
/* The layer's weights as rows of k numbers; the caller frees. */
sn_status sni_q_rows(const sni_quantizer *q, const sni_qlayer *l, float **rows, sn_error *err);
/* Scale and zero point of `count` numbers in `levels` steps from 0, by least squares of errors
 * weighted by `weight` (NULL: 1). */
void sni_q_fit_block(const float *w, const float *weight, int64_t count, int levels, float *scale,
                     int *zero);

/* smooth.c: an equal model of floats in which scales have moved from the inputs of products, whose
 * channels differ in size, to their weights. NULL: there is nothing to move. */
sn_status sni_q_smooth(const sni_quantizer *q, sn_model **out, sn_error *err);

/* ---- search.c, knapsack.c ---- */

/* Chooses precisions and makes the model that they give. */
sn_status sni_q_search(sni_quantizer *q, sn_model **out);
/* Measures the model of the precisions set. Where it loses more than allowed, or is slower, it is
 * made again with fewer layers changed: with precisions of `bits`, by times or by sizes. */
sn_status sni_q_judge(sni_quantizer *q, uint32_t bits, bool by_time, sn_model **model);

/* Builds and measures what is chosen now. What the state file knows is not measured again. *out
 * (may be NULL) is set also then. */
sn_status sni_q_try(sni_quantizer *q, const char *what, sni_qloss *loss, sn_model **out);

/* Precisions by measured losses and times (or sizes) of each layer, so that the whole is within the
 * loss asked for: `bits` says which precisions a layer may have. `*out` is the best model found, or
 * NULL if none but the one as it was will do. */
sn_status sni_q_knapsack(sni_quantizer *q, uint32_t bits, bool by_time, sn_model **out);

/* ---- layer_cost.c: measures one layer alone: l->losses and l->ns ---- */
sn_status sni_q_layer_loss(sni_quantizer *q, sni_qlayer *l, sn_quantize_to p);
/* See q->alone. */
sn_status sni_q_layer_times(sni_quantizer *q, uint32_t bits);

/* ---- state.c: what is known already ---- */
sn_status sni_q_state_open(sni_quantizer *q);
void sni_q_state_close(sni_quantizer *q);
enum { SNI_STATE_NUMBERS = 5 };
/* Numbers by a key of one line; get() says whether it is there. */
bool sni_q_state_get(const sni_quantizer *q, const char *key, double *numbers);
sn_status sni_q_state_put(sni_quantizer *q, const char *key, const double *numbers);

/* ---- report.c ---- */
sn_status sni_q_report_new(sn_quantize_report **out, sn_error *err);
sn_status sni_q_report_trial(sni_quantizer *q, const char *what, double loss, uint64_t ns);
/* Copies what is known of layers and choices. */
sn_status sni_q_report_fill(sni_quantizer *q);
sn_quantize_summary *sni_q_report_summary(sn_quantize_report *report);
/* Bytes of all layers' weights as chosen. */
uint64_t sni_q_bytes(const sni_quantizer *q);

/* ---- quantize.c ---- */

/* Checks options that quantising and pruning share and opens the model; *q needs
 * sni_q_finish() also if it fails. */
sn_status sni_q_begin(sni_quantizer *q, const sn_model *model, const sn_quantize_options *given,
                      sn_error *err);
/* Frees what *q holds, hands over what was made (NULL: nothing) and the report (where there is
 * one to tell, also of a loss that could not be reached), and returns how the work ended. */
sn_status sni_q_finish(sni_quantizer *q, sn_status status, sn_model *made, sn_model **out,
                       sn_quantize_report **report);

#endif
