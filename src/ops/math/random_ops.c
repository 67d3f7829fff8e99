/* RandomNormal, RandomUniform, their Like forms, Bernoulli and Multinomial. A seed gives the same
 * numbers in every run; without one they differ. */
#include "ops/core/convert.h"
#include "ops/core/op.h"
#include "ops/core/random.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>
#include <math.h>

enum { BLOCK = 256 }; /* numbers made at a time */

typedef struct random_params {
    float a, b; /* mean and deviation, or low and high */
    float seed;
    bool has_seed;
    int64_t dtype; /* 0: that of the input */
    sni_ints shape;
    int64_t sample_size; /* Multinomial */
} random_params;

static void start(sni_random *r, const random_params *p) {
    uint32_t seed;
    if (!p->has_seed)
        seed = sni_random_fresh_seed();
    else if (p->seed >= 0 && p->seed < 4294967296.0f)
        seed = (uint32_t)p->seed;
    else
        memcpy(&seed, &p->seed, sizeof seed);
    sni_random_seed(r, seed);
}

/* y[i] = make(r, x[i], params) for every element; x is NULL for operators without an input. */
typedef double (*make_fn)(sni_random *r, double x, const random_params *p);

static sn_status generate(sni_kernel *k, const sni_tensor *x, make_fn make) {
    const random_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    sni_random r;
    start(&r, p);
    double block[BLOCK];
    for (int64_t done = 0; done < y->count; done += BLOCK) {
        int64_t n = y->count - done < BLOCK ? y->count - done : BLOCK;
        for (int64_t i = 0; i < n; i++) block[i] = make(&r, x ? sni_number_at(x, done + i) : 0, p);
        sni_convert(SN_FLOAT64, block, y->dtype,
                    sni_element(y->data, done, sni_dtype_width(y->dtype)), (size_t)n, NULL);
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

static double make_normal(sni_random *r, double x, const random_params *p) {
    (void)x;
    return sni_random_normal(r) * (double)p->b + (double)p->a;
}

static double make_uniform(sni_random *r, double x, const random_params *p) {
    (void)x;
    return sni_random_uniform(r) * ((double)p->b - (double)p->a) + (double)p->a;
}

/* Which side of a number is 1 depends on the probability, as it does in numpy's binomial. */
static double make_bernoulli(sni_random *r, double x, const random_params *p) {
    (void)p;
    double u = sni_random_uniform(r);
    return x <= 0.5 ? u > 1 - x : u <= x;
}

static sn_status normal_ref(sni_kernel *k) {
    return generate(k, NULL, make_normal);
}

static sn_status uniform_ref(sni_kernel *k) {
    return generate(k, NULL, make_uniform);
}

static sn_status bernoulli_ref(sni_kernel *k) {
    return generate(k, sni_in(k, 0), make_bernoulli);
}

/* The output's type: `dtype`, or that of input 0. */
static sn_status set_dtype(sni_infer *c, sni_types allowed) {
    const random_params *p = c->params;
    sn_dtype dtype = (sn_dtype)p->dtype;
    if (p->dtype == 0) {
        dtype = c->n_in ? c->in[0]->dtype : SN_FLOAT32;
        if (dtype == SN_UNDEFINED) return SN_OK;
    }
    if (p->dtype < 0 || p->dtype >= SNI_DTYPE_COUNT || !(SNI_T(dtype) & allowed))
        return SNI_INFER_FAIL(c, "%s does not make type %" PRId64 " (%s)", c->op->name,
                              (int64_t)dtype, sn_dtype_name(dtype));
    return sni_infer_set_type(c, 0, dtype);
}

static sn_status random_infer(sni_infer *c) {
    const random_params *p = c->params;
    SN_TRY(set_dtype(c, SNI_T_FLOATS));
    if (p->shape.n > SN_MAX_RANK)
        return SNI_INFER_FAIL(c, "rank %zu is more than the %d supported", p->shape.n, SN_MAX_RANK);
    return sni_infer_set_shape(c, 0, (int)p->shape.n, p->shape.v);
}

static sn_status random_like_infer(sni_infer *c) {
    SN_TRY(set_dtype(c, SNI_T_FLOATS));
    return sni_infer_same(c);
}

static sn_status bernoulli_infer(sni_infer *c) {
    SN_TRY(set_dtype(c, SNI_T_NUMBERS | SNI_T(SN_BOOL)));
    return sni_infer_same(c);
}

/* Entries of the parameter tables. */
#define NUMBER(name, field, value) \
    { name, SNI_ATTR_FLOAT, offsetof(random_params, field), .number = (value) }
#define SEED                                                   \
    {                                                          \
        "seed", SNI_ATTR_FLOAT, offsetof(random_params, seed), \
            .present = offsetof(random_params, has_seed) + 1   \
    }
#define DTYPE(value) \
    { "dtype", SNI_ATTR_INT, offsetof(random_params, dtype), .number = (value) }
#define SHAPE \
    { "shape", SNI_ATTR_INTS, offsetof(random_params, shape), .required = true }

const sni_op sni_op_RandomNormal = {
    .name = "RandomNormal",
    .versions = SNI_VERSIONS(1, 22),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params =
        SNI_PARAMS(NUMBER("mean", a, 0), NUMBER("scale", b, 1), SEED, DTYPE(SN_FLOAT32), SHAPE),
    .params_size = sizeof(random_params),
    .flags = SNI_OP_RANDOM,
    .infer = random_infer,
    .ref = normal_ref,
};

const sni_op sni_op_RandomNormalLike = {
    .name = "RandomNormalLike",
    .versions = SNI_VERSIONS(1, 22),
    .inputs = SNI_FORMALS({"input", "T1"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_ANY}, {"T2", SNI_T_FLOATS}),
    .params = SNI_PARAMS(NUMBER("mean", a, 0), NUMBER("scale", b, 1), SEED, DTYPE(0)),
    .params_size = sizeof(random_params),
    .flags = SNI_OP_RANDOM,
    .infer = random_like_infer,
    .ref = normal_ref,
};

const sni_op sni_op_RandomUniform = {
    .name = "RandomUniform",
    .versions = SNI_VERSIONS(1, 22),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(NUMBER("low", a, 0), NUMBER("high", b, 1), SEED, DTYPE(SN_FLOAT32), SHAPE),
    .params_size = sizeof(random_params),
    .flags = SNI_OP_RANDOM,
    .infer = random_infer,
    .ref = uniform_ref,
};

const sni_op sni_op_RandomUniformLike = {
    .name = "RandomUniformLike",
    .versions = SNI_VERSIONS(1, 22),
    .inputs = SNI_FORMALS({"input", "T1"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_ANY}, {"T2", SNI_T_FLOATS}),
    .params = SNI_PARAMS(NUMBER("low", a, 0), NUMBER("high", b, 1), SEED, DTYPE(0)),
    .params_size = sizeof(random_params),
    .flags = SNI_OP_RANDOM,
    .infer = random_like_infer,
    .ref = uniform_ref,
};

const sni_op sni_op_Bernoulli = {
    .name = "Bernoulli",
    .versions = SNI_VERSIONS(15, 22),
    .inputs = SNI_FORMALS({"input", "T1"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}, {"T2", SNI_T_NUMBERS | SNI_T(SN_BOOL)}),
    .params = SNI_PARAMS(SEED, DTYPE(0)),
    .params_size = sizeof(random_params),
    .flags = SNI_OP_RANDOM,
    .infer = bernoulli_infer,
    .ref = bernoulli_ref,
};

/* ---- Multinomial ---- */

static sn_status multinomial_infer(sni_infer *c) {
    const random_params *p = c->params;
    SN_TRY(set_dtype(c, SNI_T_INDEX));
    if (p->sample_size < 0) return SNI_INFER_FAIL(c, "'sample_size' is %" PRId64, p->sample_size);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    if (sni_infer_rank(c, 0) != 2)
        return SNI_INFER_FAIL(c, "the input has rank %d, not 2", sni_infer_rank(c, 0));
    return sni_infer_set_shape(c, 0, 2, (const sni_dim[]){sni_infer_dim(c, 0, 0), p->sample_size});
}

/* sums[i] = exp(x[0] - top) + ... + exp(x[i] - top); the first class whose sum is above a uniform
 * share of the total is drawn. */
static void draw_classes(sni_random *r, const double *sums, int64_t classes, double *drawn,
                         int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double share = sni_random_uniform(r) * sums[classes - 1];
        int64_t low = 0, high = classes - 1;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (sums[middle] > share)
                high = middle;
            else
                low = middle + 1;
        }
        drawn[i] = (double)low;
    }
}

/* x (batch, classes) holds logarithms of probabilities that need not sum to 1. */
static sn_status multinomial_ref(sni_kernel *k) {
    const random_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t classes = x->dims[1], samples = p->sample_size;
    if (y->count == 0) return SN_OK;
    if (classes == 0) return SNI_KERNEL_FAIL(k, "there are no classes to draw from");
    const double *logs;
    void *sums = NULL;
    SN_TRY(sni_as_f64(k, x, &logs));
    SN_TRY(sni_scratch_array(k, classes, sizeof(double), &sums));
    sni_random r;
    start(&r, p);
    double *sum = sums, block[BLOCK];
    for (int64_t row = 0; row < x->dims[0]; row++, logs += classes) {
        double top = logs[0], total = 0;
        for (int64_t i = 1; i < classes; i++) top = logs[i] > top ? logs[i] : top;
        for (int64_t i = 0; i < classes; i++) sum[i] = total += exp(logs[i] - top);
        for (int64_t done = 0; done < samples; done += BLOCK) {
            int64_t n = samples - done < BLOCK ? samples - done : BLOCK;
            draw_classes(&r, sum, classes, block, n);
            sni_convert(SN_FLOAT64, block, y->dtype,
                        sni_element(y->data, row * samples + done, sni_dtype_width(y->dtype)),
                        (size_t)n, NULL);
            SN_TRY(sni_poll(k));
        }
    }
    return SN_OK;
}

const sni_op sni_op_Multinomial = {
    .name = "Multinomial",
    .versions = SNI_VERSIONS(7, 22),
    .inputs = SNI_FORMALS({"input", "T1"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}, {"T2", SNI_T_INDEX}),
    .params = SNI_PARAMS(
        SEED, DTYPE(SN_INT32),
        {"sample_size", SNI_ATTR_INT, offsetof(random_params, sample_size), .number = 1}),
    .params_size = sizeof(random_params),
    .flags = SNI_OP_RANDOM,
    .infer = multinomial_infer,
    .ref = multinomial_ref,
};
