/* MoE and QMoE: mixtures of experts. A router chooses for every token k experts, which are small
 * networks of two or three products, and their results are added with the router's weights. */
#include "base/checked.h"
#include "base/floats.h"
#include "ops/math/activation.h"
#include "ops/core/compute.h"
#include "ops/core/kernel_hooks.h"
#include "ops/matmul/matmul_core.h"
#include "ops/nn/moe.h"
#include "ops/quant/nbits.h"
#include "ops/core/tensor_util.h"

enum { FC1, FC2, FC3 };
enum { RELU, GELU, SILU, SWIGLU, IDENTITY };
enum {
    SEPARATE,
    INTERLEAVED,
    CONCATENATED
}; /* swiglu_fusion: where the gate's partner comes from */

/* One product of all experts: y = x w' + bias, where w is (experts, n, k). */
typedef struct layer {
    const sni_tensor *w; /* NULL: not there */
    const sni_tensor *bias;
    int64_t n, k;
    const float *bias_data; /* (experts, n), or NULL */
    float *buffer;          /* weights of one expert where they are narrow floats */
    sni_nbits packed;       /* QMoE: without the expert's offset */
} layer;

typedef struct moe {
    const sni_moe_params *p;
    int64_t tokens, hidden, inter, experts;
    bool normalize; /* the weights of a token's experts add up to 1 */
    layer layers[SNI_MOE_LAYERS];
    const float *x;
    float *y;
    /* For each token: the experts it goes to and the weights of their results. */
    int64_t *expert;
    float *weight;
    /* Of the expert under way: (tokens, ...) */
    int64_t *rows;
    float *in, *gate, *linear, *out;
} moe;

/* ---- Shapes ---- */

static sn_status moe_infer(sni_infer *c) {
    const sni_moe_params *p = c->params;
    if (p->k < 1) return SNI_INFER_FAIL(c, "k is %lld", (long long)p->k);
    if (p->fusion < SEPARATE || p->fusion > CONCATENATED)
        return SNI_INFER_FAIL(c, "swiglu_fusion is %lld, not 0, 1 or 2", (long long)p->fusion);
    if (p->sparse_mixer)
        return sni_fail(c->err, SN_UNSUPPORTED, "routing by a sparse mixer is not supported");
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) != 2 && sni_infer_rank(c, 0) != 3)
        return SNI_INFER_FAIL(c, "the input has rank %d, not 2 or 3", sni_infer_rank(c, 0));
    return sni_infer_same(c);
}

static sn_status expect_shape(sni_kernel *k, const sni_tensor *t, const char *what, int rank,
                              const int64_t *dims) {
    bool fits = t->rank == rank;
    for (int i = 0; fits && i < rank; i++) fits = t->dims[i] == dims[i];
    if (!fits)
        return SNI_KERNEL_FAIL(k, "%s has %lld elements in %d axes, which do not fit", what,
                               (long long)t->count, t->rank);
    return SN_OK;
}

/* Sizes from the input, the router and FC2, whose rows hold `pack` elements in each of its own. */
static sn_status read_sizes(sni_kernel *k, moe *m, const sni_tensor *fc2, int64_t pack) {
    const sni_tensor *x = sni_in(k, 0), *router = sni_in(k, 1);
    m->p = k->params;
    m->normalize = m->p->normalize != 0;
    m->hidden = x->dims[x->rank - 1];
    m->tokens = sni_tensor_span(x, 0, x->rank - 1);
    if (router->rank != 2 || router->dims[0] != m->tokens)
        return SNI_KERNEL_FAIL(k, "the router's weights are not (%lld, experts)",
                               (long long)m->tokens);
    m->experts = router->dims[1];
    if (m->p->k > m->experts)
        return SNI_KERNEL_FAIL(k, "k is %lld with %lld experts", (long long)m->p->k,
                               (long long)m->experts);
    if (fc2->rank != 3) return SNI_KERNEL_FAIL(k, "FC2 has rank %d, not 3", fc2->rank);
    m->inter = fc2->dims[2] * pack;
    return SN_OK;
}

static bool is_fused(const moe *m) {
    return m->p->activation == SWIGLU && m->p->fusion != SEPARATE;
}

/* Checks a layer's weights and bias, which may be NULL, and converts the bias. `what` names the
 * weights in messages; `pack` of their elements are stored in one. */
static sn_status read_layer(sni_kernel *k, const moe *m, layer *l, const char *what, int64_t pack) {
    const void *data;
    if (!l->w) return SN_OK;
    if (l->k % pack)
        return SNI_KERNEL_FAIL(k, "rows of %lld elements do not fill bytes", (long long)l->k);
    SN_TRY(expect_shape(k, l->w, what, 3, (int64_t[]){m->experts, l->n, l->k / pack}));
    if (!l->bias) return SN_OK;
    SN_TRY(expect_shape(k, l->bias, "a bias", 2, (int64_t[]){m->experts, l->n}));
    SN_TRY(sni_in_as(k, l->bias, SN_FLOAT32, &data));
    l->bias_data = data;
    return SN_OK;
}

/* ---- Routing ---- */

static void softmax(const float *x, float *y, int64_t n) {
    float most = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++) sum += y[i] = expf(x[i] - most);
    for (int64_t i = 0; i < n; i++) y[i] /= sum;
}

/* The k most likely experts of a token; among equal ones the last. `probs` is overwritten. */
static void choose(const moe *m, float *probs, const float *mixing, int64_t *expert,
                   float *weight) {
    float sum = 0;
    for (int64_t j = 0; j < m->p->k; j++) {
        int64_t best = -1;
        for (int64_t e = 0; e < m->experts; e++)
            if (probs[e] >= 0 && (best < 0 || probs[e] >= probs[best])) best = e;
        for (int64_t e = 0; best < 0; e++) /* NaN are left: the first of them */
            if (probs[e] != -1) best = e;
        expert[j] = best;
        weight[j] = mixing ? mixing[best] : probs[best];
        probs[best] = -1;
        sum += weight[j];
    }
    for (int64_t j = 0; m->normalize && j < m->p->k; j++) weight[j] /= sum;
}

/* `mixing` (QMoE: router_weights) tells the weights instead of the router. */
static sn_status route(sni_kernel *k, moe *m, const sni_tensor *mixing) {
    const void *logits, *mix;
    void *memory[3] = {0};
    SN_TRY(sni_in_as(k, sni_in(k, 1), SN_FLOAT32, &logits));
    SN_TRY(sni_in_as(k, mixing, SN_FLOAT32, &mix));
    SN_TRY(sni_scratch_matrix(k, m->tokens, m->p->k, sizeof(int64_t), &memory[0]));
    SN_TRY(sni_scratch_matrix(k, m->tokens, m->p->k, sizeof(float), &memory[1]));
    SN_TRY(sni_scratch_array(k, m->experts, sizeof(float), &memory[2]));
    m->expert = memory[0];
    m->weight = memory[1];
    for (int64_t t = 0; t < m->tokens; t++) {
        softmax((const float *)logits + t * m->experts, memory[2], m->experts);
        choose(m, memory[2], mix ? (const float *)mix + t * m->experts : NULL,
               m->expert + t * m->p->k, m->weight + t * m->p->k);
    }
    return SN_OK;
}

/* ---- Experts ---- */

/* y (rows, n) = x (rows, k) times expert e's weights in layer `at`, plus its bias. */
static sn_status apply(sni_kernel *k, const moe *m, int at, int64_t e, int64_t rows, const float *x,
                       float *y) {
    const layer *l = &m->layers[at];
    const float *bias = l->bias_data ? l->bias_data + e * l->n : NULL;
    if (k->hooks && k->hooks->expert)
        return k->hooks->expert(k, &(sni_expert_product){at, e, rows, x, bias, y});
    for (int64_t i = 0; bias && i < rows; i++)
        sni_copy_bytes(y + i * l->n, bias, (size_t)l->n * sizeof(float));
    if (l->packed.bits) {
        sni_nbits w = l->packed;
        w.q += e * w.n * w.row_bytes;
        w.scales += e * w.n * w.blocks;
        if (w.zeros) w.zeros += e * w.n * w.blocks;
        return sni_nbits_multiply(k, &w, rows, x, y, bias != NULL);
    }
    size_t width = sni_dtype_width(l->w->dtype);
    const void *w = sni_element(l->w->data, e * l->n * l->k, width);
    if (l->buffer) {
        sni_widen(l->w->dtype, w, l->buffer, (size_t)(l->n * l->k));
        w = l->buffer;
    }
    sni_gemm g = {.m = rows,
                  .n = l->n,
                  .k = l->k,
                  .a = x,
                  .a_row = l->k,
                  .a_col = 1,
                  .b = w,
                  .b_row = 1,
                  .b_col = l->k,
                  .c = y,
                  .c_row = l->n,
                  .add = bias != NULL};
    return sni_gemm_run(k, SN_FLOAT32, &g);
}

/* Where the partner of element i of a gate stands in the same row. */
static int64_t partner_of(const moe *m, int64_t i) {
    return m->p->fusion == INTERLEAVED ? 2 * i + 1 : m->inter + i;
}

static float swiglu(const sni_moe_params *p, float gate, float linear) {
    if (p->has_limit) {
        gate = gate > p->limit ? p->limit : gate;
        linear = sni_clamp_f32(linear, -p->limit, p->limit);
    }
    return gate * sni_sigmoid_f32(p->alpha * gate) * (linear + p->beta);
}

/* The activation of `rows` rows, in place: to the first `inter` elements of each, packed. */
static void activate(const moe *m, int64_t rows) {
    static const sni_fn kinds[] = {SNI_FN_RELU, SNI_FN_FAST_GELU, SNI_FN_SILU, SNI_FN_NONE,
                                   SNI_FN_NONE};
    sni_activation f = {.kind = kinds[m->p->activation]};
    bool fused = is_fused(m);
    for (int64_t r = 0; r < rows; r++) {
        float *gate = m->gate + r * m->layers[FC1].n, *to = m->gate + r * m->inter;
        const float *linear = m->layers[FC3].w ? m->linear + r * m->inter : NULL;
        for (int64_t i = 0; i < m->inter; i++) {
            float g = fused && m->p->fusion == INTERLEAVED ? gate[2 * i] : gate[i];
            if (m->p->activation == SWIGLU)
                to[i] = swiglu(m->p, g, fused ? gate[partner_of(m, i)] : linear[i]);
            else
                to[i] = sni_activation_of_f32(&f, g) * (linear ? linear[i] : 1);
        }
    }
}

/* All tokens that go to expert e. */
static sn_status run_expert(sni_kernel *k, moe *m, int64_t e) {
    int64_t n = 0;
    for (int64_t i = 0; i < m->tokens * m->p->k; i++)
        if (m->expert[i] == e) m->rows[n++] = i;
    if (n == 0) return SN_OK;
    for (int64_t r = 0; r < n; r++)
        sni_copy_bytes(m->in + r * m->hidden, m->x + m->rows[r] / m->p->k * m->hidden,
                       (size_t)m->hidden * sizeof(float));
    SN_TRY(apply(k, m, FC1, e, n, m->in, m->gate));
    if (m->layers[FC3].w) SN_TRY(apply(k, m, FC3, e, n, m->in, m->linear));
    activate(m, n);
    SN_TRY(apply(k, m, FC2, e, n, m->gate, m->out));
    for (int64_t r = 0; r < n; r++) {
        float *y = m->y + m->rows[r] / m->p->k * m->hidden, w = m->weight[m->rows[r]];
        for (int64_t i = 0; i < m->hidden; i++) y[i] += w * m->out[r * m->hidden + i];
    }
    return SN_OK;
}

static sn_status run_experts(sni_kernel *k, moe *m) {
    sni_tensor *y = sni_out(k, 0);
    const void *x;
    void *out, *memory[5] = {0};
    SN_TRY(sni_in_as(k, sni_in(k, 0), SN_FLOAT32, &x));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &out));
    SN_TRY(sni_scratch_matrix(k, m->tokens, m->p->k, sizeof(int64_t), &memory[0]));
    SN_TRY(sni_scratch_matrix(k, m->tokens, m->hidden, sizeof(float), &memory[1]));
    SN_TRY(sni_scratch_matrix(k, m->tokens, m->layers[FC1].n, sizeof(float), &memory[2]));
    SN_TRY(sni_scratch_matrix(k, m->tokens, m->inter, sizeof(float), &memory[3]));
    SN_TRY(sni_scratch_matrix(k, m->tokens, m->hidden, sizeof(float), &memory[4]));
    m->rows = memory[0];
    m->in = memory[1];
    m->gate = memory[2];
    m->linear = memory[3];
    m->out = memory[4];
    m->x = x;
    m->y = out;
    for (int64_t i = 0; i < y->count; i++) m->y[i] = 0;
    for (int64_t e = 0; e < m->experts; e++) {
        SN_TRY(sni_poll(k));
        SN_TRY(run_expert(k, m, e));
    }
    sni_out_done(k, y, SN_FLOAT32, out);
    return SN_OK;
}

/* Sizes and weights of all layers: `at` has the inputs of FC1's, FC2's and FC3's weights and biases
 * in turn. */
static sn_status read_layers(sni_kernel *k, moe *m, const int at[6], int64_t pack) {
    SN_TRY(read_sizes(k, m, sni_in(k, at[2]), pack));
    int64_t wide;
    if (!sni_mul_i64(m->inter, is_fused(m) ? 2 : 1, &wide))
        return SNI_KERNEL_FAIL(k, "the layers are too large");
    m->layers[FC1] =
        (layer){.w = sni_in(k, at[0]), .bias = sni_in(k, at[1]), .n = wide, .k = m->hidden};
    m->layers[FC2] =
        (layer){.w = sni_in(k, at[2]), .bias = sni_in(k, at[3]), .n = m->hidden, .k = m->inter};
    m->layers[FC3] =
        (layer){.w = sni_in(k, at[4]), .bias = sni_in(k, at[5]), .n = m->inter, .k = m->hidden};
    SN_TRY(read_layer(k, m, &m->layers[FC1], "FC1", pack));
    SN_TRY(read_layer(k, m, &m->layers[FC2], "FC2", pack));
    SN_TRY(read_layer(k, m, &m->layers[FC3], "FC3", pack));
    if (m->p->activation == SWIGLU && is_fused(m) == (m->layers[FC3].w != NULL))
        return SNI_KERNEL_FAIL(k, "swiglu_fusion is %lld %s FC3", (long long)m->p->fusion,
                               m->layers[FC3].w ? "with" : "without");
    return SN_OK;
}

/* ---- MoE ---- */

static sn_status moe_ref(sni_kernel *k) {
    moe m = {0};
    SN_TRY(read_layers(k, &m, (const int[6]){2, 3, 4, 5, 6, 7}, 1));
    if (sni_out(k, 0)->count == 0) return SN_OK;
    for (int i = 0; i < SNI_MOE_LAYERS; i++) {
        layer *l = &m.layers[i];
        if (!l->w || l->w->dtype == SN_FLOAT32) continue;
        void *buffer = NULL;
        SN_TRY(sni_scratch_matrix(k, l->n, l->k, sizeof(float), &buffer));
        l->buffer = buffer;
    }
    SN_TRY(route(k, &m, NULL));
    return run_experts(k, &m);
}

#define FIELD(f) offsetof(sni_moe_params, f)
#define MOE_FIELDS                                                                         \
    {"k", SNI_ATTR_INT, FIELD(k), .number = 1},                                            \
        {"activation_type", SNI_ATTR_STRING, FIELD(activation), .text = "relu",            \
         .choices = "relu|gelu|silu|swiglu|identity"},                                     \
        {"activation_alpha", SNI_ATTR_FLOAT, FIELD(alpha), .number = 1},                   \
        {"activation_beta", SNI_ATTR_FLOAT, FIELD(beta)},                                  \
        {"normalize_routing_weights", SNI_ATTR_INT, FIELD(normalize)},                     \
        {"swiglu_fusion", SNI_ATTR_INT, FIELD(fusion)},                                    \
        {"swiglu_limit", SNI_ATTR_FLOAT, FIELD(limit), .present = FIELD(has_limit) + 1}, { \
        "use_sparse_mixer", SNI_ATTR_INT, FIELD(sparse_mixer)                              \
    }
#define FLOATS (SNI_T(SN_FLOAT32) | SNI_T_HALVES)

const sni_op sni_op_ms_MoE = {
    .name = "MoE",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T"}, {"router_probs", "T"}, {"fc1_experts_weights", "T"},
                          {"fc1_experts_bias", "T", SNI_OPTIONAL}, {"fc2_experts_weights", "T"},
                          {"fc2_experts_bias", "T", SNI_OPTIONAL},
                          {"fc3_experts_weights", "T", SNI_OPTIONAL},
                          {"fc3_experts_bias", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", FLOATS}),
    .params = SNI_PARAMS(MOE_FIELDS),
    .params_size = sizeof(sni_moe_params),
    .infer = moe_infer,
    .ref = moe_ref,
};

/* ---- QMoE ---- */

static sn_status qmoe_infer(sni_infer *c) {
    const sni_moe_params *p = c->params;
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return SNI_INFER_FAIL(c, "expert_weight_bits is %lld, not 2, 4 or 8", (long long)p->bits);
    if (p->block_size < 0 || (p->block_size & (p->block_size - 1)) ||
        (p->block_size && p->block_size < 16))
        return SNI_INFER_FAIL(c, "block_size is %lld, not a power of two from 16 on",
                              (long long)p->block_size);
    if (!sni_str_is(p->quant_type, "int") || p->prepacked > 0)
        return sni_fail(c->err, SN_UNSUPPORTED, "weights of type '%.*s' or packed for a device",
                        SNI_FMT(p->quant_type));
    return moe_infer(c);
}

/* Scales and zero points of a layer's weights: one for each row, or for each block of it. Zero
 * points of rows are packed along the rows, those of blocks along the blocks. */
static sn_status read_scales(sni_kernel *k, const moe *m, layer *l, int scales_at, int zeros_at) {
    const sni_tensor *scales = sni_in(k, scales_at), *zeros = sni_in(k, zeros_at);
    int64_t block = m->p->block_size ? m->p->block_size : l->k, pack = 8 / m->p->bits;
    const void *data;
    float *unpacked = NULL;
    if (!l->w) return SN_OK;
    if (!scales) return SNI_KERNEL_FAIL(k, "input %d, the scales, is missing", scales_at);
    if (l->k < 1 || l->k % block)
        return SNI_KERNEL_FAIL(k, "rows of %lld elements in blocks of %lld", (long long)l->k,
                               (long long)block);
    l->packed = (sni_nbits){.bits = (int)m->p->bits,
                            .n = l->n,
                            .k = l->k,
                            .block = block,
                            .blocks = l->k / block,
                            .row_bytes = l->k / pack,
                            .q = l->w->data};
    int64_t per_layer = l->n * l->packed.blocks;
    if (scales->count != m->experts * per_layer)
        return SNI_KERNEL_FAIL(k, "%lld scales, not %lld for each of %lld experts",
                               (long long)scales->count, (long long)per_layer,
                               (long long)m->experts);
    SN_TRY(sni_in_as(k, scales, SN_FLOAT32, &data));
    l->packed.scales = data;
    if (!zeros) return SN_OK;
    bool blocks = m->p->block_size != 0;
    int64_t rows = blocks ? m->experts * l->n : m->experts;
    int64_t columns = blocks ? l->packed.blocks : l->n;
    if (zeros->count != rows * ((columns + pack - 1) / pack))
        return SNI_KERNEL_FAIL(k, "%lld bytes of zero points do not fit", (long long)zeros->count);
    SN_TRY(sni_unpacked(k, zeros->data, (int)m->p->bits, rows, columns, &unpacked));
    l->packed.zeros = unpacked;
    return SN_OK;
}

static sn_status qmoe_ref(sni_kernel *k) {
    const sni_moe_params *p = k->params;
    const sni_tensor *mixing = sni_in(k, 14);
    moe m = {0};
    SN_TRY(read_layers(k, &m, (const int[6]){2, 4, 5, 7, 8, 10}, 8 / p->bits));
    if (mixing)
        SN_TRY(expect_shape(k, mixing, "router_weights", 2, (int64_t[]){m.tokens, m.experts}));
    if (sni_out(k, 0)->count == 0) return SN_OK;
    if (!mixing) m.normalize = true; /* as ONNX Runtime has it, whatever the attribute says */
    SN_TRY(read_scales(k, &m, &m.layers[FC1], 3, 11));
    SN_TRY(read_scales(k, &m, &m.layers[FC2], 6, 12));
    SN_TRY(read_scales(k, &m, &m.layers[FC3], 9, 13));
    SN_TRY(route(k, &m, mixing));
    return run_experts(k, &m);
}

const sni_op sni_op_ms_QMoE = {
    .name = "QMoE",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"input", "T"}, {"router_probs", "T"}, {"fc1_experts_weights", "uint8"},
        {"fc1_scales", "T2", SNI_OPTIONAL}, {"fc1_experts_bias", "T", SNI_OPTIONAL},
        {"fc2_experts_weights", "uint8"}, {"fc2_scales", "T2", SNI_OPTIONAL},
        {"fc2_experts_bias", "T", SNI_OPTIONAL}, {"fc3_experts_weights", "uint8", SNI_OPTIONAL},
        {"fc3_scales", "T2", SNI_OPTIONAL}, {"fc3_experts_bias", "T", SNI_OPTIONAL},
        {"fc1_zero_points", "uint8", SNI_OPTIONAL}, {"fc2_zero_points", "uint8", SNI_OPTIONAL},
        {"fc3_zero_points", "uint8", SNI_OPTIONAL}, {"router_weights", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", FLOATS}, {"T2", FLOATS}),
    .params = SNI_PARAMS(MOE_FIELDS, {"expert_weight_bits", SNI_ATTR_INT, FIELD(bits), .number = 4},
                         {"block_size", SNI_ATTR_INT, FIELD(block_size)},
                         {"accuracy_level", SNI_ATTR_INT, FIELD(accuracy_level)},
                         {"weights_prepacked", SNI_ATTR_INT, FIELD(prepacked), .number = -1},
                         {"quant_type", SNI_ATTR_STRING, FIELD(quant_type), .text = "int"}),
    .params_size = sizeof(sni_moe_params),
    .infer = qmoe_infer,
    .ref = qmoe_ref,
};
