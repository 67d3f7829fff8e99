/* EmbedLayerNormalization and QEmbedLayerNormalization: the embeddings of word, position and
 * segment added up and normalised, and the number of words that a mask leaves. The quantised one
 * has tables, scale and shift of 8 bits. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/nn/layer_norm.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct embed_params {
    float epsilon;
    int64_t mask_index_type;
} embed_params;

enum { WORD, PLACE, SEGMENT, GAMMA, BETA, PARTS };

/* Where the inputs of an operator of the family are; -1: it has none such. */
typedef struct embed_inputs {
    int tables[PARTS];
    int ids, segments, mask, positions;
    int scales, zeros; /* of the first table; those of the others follow */
} embed_inputs;

static const embed_inputs plain_inputs = {{2, 3, 4, 5, 6}, 0, 1, 7, 8, -1, -1};
static const embed_inputs quantized_inputs = {{2, 3, 4, 5, 6}, 0, 1, 7, -1, 8, 13};

typedef struct embedding {
    const void *tables[PARTS];
    const int64_t *rows[GAMMA]; /* of word, position and segment tables, for each word */
    void *sum;
    int64_t n;
} embedding;

#define BODY "ops/nn/embed_layer_norm.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* ---- Shapes ---- */

static sn_status check_part(sni_infer *c, int input, int rank, sni_dim width) {
    if (!sni_infer_shaped(c, input)) return SN_OK;
    if (sni_infer_rank(c, input) != rank)
        return SNI_INFER_FAIL(c, "input %d has rank %d, not %d", input, sni_infer_rank(c, input),
                              rank);
    if (sni_dim_differ(sni_infer_dim(c, input, rank - 1), width))
        return SNI_INFER_FAIL(c, "input %d has %lld columns where the words have %lld", input,
                              (long long)sni_infer_dim(c, input, rank - 1), (long long)width);
    return SN_OK;
}

/* Input i has the shape of the word numbers, or with `shared` one row for all of them. */
static sn_status check_ids(sni_infer *c, int i, bool shared) {
    if (i < 0 || !sni_infer_shaped(c, i)) return SN_OK;
    sni_dim batch = sni_infer_rank(c, i) == 2 ? sni_infer_dim(c, i, 0) : 0;
    if (sni_infer_rank(c, i) != 2 ||
        sni_dim_differ(sni_infer_dim(c, i, 1), sni_infer_dim(c, 0, 1)) ||
        (sni_dim_differ(batch, sni_infer_dim(c, 0, 0)) && !(shared && batch == 1)))
        return SNI_INFER_FAIL(c, "input %d has not the shape of input_ids", i);
    return SN_OK;
}

static sn_status embed_shapes(sni_infer *c, const embed_inputs *e) {
    if (sni_infer_given(c, e->segments) != sni_infer_given(c, e->tables[SEGMENT]))
        return SNI_INFER_FAIL(c, "segment_ids and segment_embedding must be given together");
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    if (sni_infer_rank(c, 0) != 2)
        return SNI_INFER_FAIL(c, "input_ids have rank %d, not 2", sni_infer_rank(c, 0));
    SN_TRY(check_ids(c, e->segments, false));
    SN_TRY(check_ids(c, e->mask, false));
    SN_TRY(check_ids(c, e->positions, true));
    sni_dim batch = sni_infer_dim(c, 0, 0);
    SN_TRY(sni_infer_set_shape(c, 1, 1, &batch));
    if (!sni_infer_shaped(c, e->tables[WORD])) return SN_OK;
    if (sni_infer_rank(c, e->tables[WORD]) != 2)
        return SNI_INFER_FAIL(c, "word_embedding has rank %d, not 2",
                              sni_infer_rank(c, e->tables[WORD]));
    sni_dim width = sni_infer_dim(c, e->tables[WORD], 1);
    for (int i = PLACE; i < PARTS; i++)
        SN_TRY(check_part(c, e->tables[i], i < GAMMA ? 2 : 1, width));
    sni_dim dims[3] = {batch, sni_infer_dim(c, 0, 1), width};
    SN_TRY(sni_infer_set_shape(c, 2, 3, dims));
    return sni_infer_set_shape(c, 0, 3, dims);
}

static sn_status embed_infer(sni_infer *c) {
    return embed_shapes(c, &plain_inputs);
}

/* Scales and zero points are scalars. */
static sn_status quantized_infer(sni_infer *c) {
    for (int i = quantized_inputs.scales; i < c->n_in; i++) {
        if (!sni_infer_shaped(c, i)) continue;
        for (int d = 0; d < sni_infer_rank(c, i); d++)
            if (sni_dim_differ(sni_infer_dim(c, i, d), 1))
                return SNI_INFER_FAIL(c, "input %d has more than one element", i);
    }
    if (sni_infer_given(c, quantized_inputs.segments) &&
        !sni_infer_given(c, quantized_inputs.scales + SEGMENT))
        return SNI_INFER_FAIL(c, "segment embeddings without a scale");
    return embed_shapes(c, &quantized_inputs);
}

/* ---- Running ---- */

/* Rows of a table for every word: `ids` has one for each, or for each of a batch's words; NULL:
 * the word's number in its batch. */
static sn_status read_rows(sni_kernel *k, const sni_tensor *table, const char *what,
                           const sni_tensor *ids, const int64_t **out) {
    const sni_tensor *words = sni_in(k, 0);
    int64_t *rows = NULL;
    SN_TRY(sni_scratch_i64(k, words->count, &rows));
    for (int64_t i = 0; i < words->count; i++) {
        rows[i] = ids ? sni_index_at(ids, i % ids->count) : i % words->dims[1];
        if (rows[i] < 0 || rows[i] >= table->dims[0])
            return SNI_KERNEL_FAIL(k, "%s %" PRId64 " is outside a table of %" PRId64, what,
                                   rows[i], table->dims[0]);
    }
    *out = rows;
    return SN_OK;
}

/* The number of words that the mask leaves in each batch; 0 without a mask. */
static void count_words(sni_tensor *counts, const sni_tensor *mask) {
    int32_t *out = counts->data;
    int64_t length = mask ? mask->dims[1] : 0;
    for (int64_t b = 0; b < counts->count; b++) {
        int32_t n = 0;
        for (int64_t i = 0; i < length; i++) n += sni_index_at(mask, b * length + i) == 1;
        out[b] = n;
    }
}

/* The elements of a table in `dtype`; those of 8 bits less their zero point, times their scale. */
static sn_status read_table(sni_kernel *k, const embed_inputs *e, int part, sn_dtype dtype,
                            const void **out) {
    const sni_tensor *t = sni_in(k, e->tables[part]);
    if (!t || e->scales < 0) return sni_in_as(k, t, dtype, out);
    float scale = (float)sni_number_at(sni_in(k, e->scales + part), 0), *v = NULL;
    const sni_tensor *zero = sni_in(k, e->zeros + part);
    int32_t origin = zero ? (int32_t)sni_number_at(zero, 0) : 0;
    void *made = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sizeof(float), &made));
    v = made;
    for (int64_t i = 0; i < t->count; i++)
        v[i] = (float)((int32_t)sni_number_at(t, i) - origin) * scale;
    *out = made;
    return SN_OK;
}

static sn_status run_embedding(sni_kernel *k, const embed_inputs *e) {
    const embed_params *p = k->params;
    const sni_tensor *words = sni_in(k, e->ids);
    const sni_tensor *segments = sni_in(k, e->segments), *tables[GAMMA];
    sni_tensor *y = sni_out(k, 0), *sum = sni_out(k, 2);
    for (int i = 0; i < GAMMA; i++) tables[i] = sni_in(k, e->tables[i]);
    sn_dtype dtype = e->scales < 0 ? sni_compute_dtype(tables[WORD]->dtype) : SN_FLOAT32;
    embedding m = {.n = tables[WORD]->dims[1]};
    if (sni_out(k, 1)) count_words(sni_out(k, 1), sni_in(k, e->mask));
    SN_TRY(read_rows(k, tables[WORD], "word", words, &m.rows[WORD]));
    SN_TRY(read_rows(k, tables[PLACE], "position",
                     e->positions < 0 ? NULL : sni_in(k, e->positions), &m.rows[PLACE]));
    if (segments) SN_TRY(read_rows(k, tables[SEGMENT], "segment", segments, &m.rows[SEGMENT]));
    for (int i = 0; i < PARTS; i++) SN_TRY(read_table(k, e, i, dtype, &m.tables[i]));
    if (sum)
        SN_TRY(sni_out_as(k, sum, dtype, &m.sum));
    else
        SN_TRY(sni_scratch_matrix(k, words->count, m.n, sni_dtype_width(dtype), &m.sum));
    if (words->count == 0 || m.n == 0) return SN_OK;
    sni_row_norm norm = {.x = m.sum,
                         .n = m.n,
                         .scale = {m.tables[GAMMA], 0},
                         .shift = {m.tables[BETA], 0},
                         .epsilon = p->epsilon,
                         .centered = true};
    SN_TRY(sni_out_as(k, y, dtype, &norm.y));
    sni_parallel_for(k->threads, words->count, 8192 / m.n + 1,
                     dtype == SN_FLOAT64 ? embed_words_f64 : embed_words_f32, &m);
    sni_normalize(k, dtype, words->count, &norm);
    sni_out_done(k, y, dtype, norm.y);
    sni_out_done(k, sum, dtype, m.sum);
    return SN_OK;
}

static sn_status embed_ref(sni_kernel *k) {
    return run_embedding(k, &plain_inputs);
}

static sn_status quantized_ref(sni_kernel *k) {
    for (int i = quantized_inputs.scales; i < k->n_in; i++)
        if (sni_in(k, i) && sni_in(k, i)->count != 1)
            return SNI_KERNEL_FAIL(k, "input %d has %" PRId64 " elements, not 1", i,
                                   sni_in(k, i)->count);
    return run_embedding(k, &quantized_inputs);
}

#define EMBED_PARAMS                                                                          \
    SNI_PARAMS({"epsilon", SNI_ATTR_FLOAT, offsetof(embed_params, epsilon), .number = 1e-12}, \
               {"mask_index_type", SNI_ATTR_INT, offsetof(embed_params, mask_index_type)})

const sni_op sni_op_ms_EmbedLayerNormalization = {
    .name = "EmbedLayerNormalization",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input_ids", "int32"}, {"segment_ids", "int32", SNI_OPTIONAL},
                          {"word_embedding", "T"}, {"position_embedding", "T"},
                          {"segment_embedding", "T", SNI_OPTIONAL}, {"gamma", "T"}, {"beta", "T"},
                          {"mask", "int32", SNI_OPTIONAL}, {"position_ids", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"mask_index", "int32", SNI_OPTIONAL},
                           {"embedding_sum", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = EMBED_PARAMS,
    .params_size = sizeof(embed_params),
    .infer = embed_infer,
    .ref = embed_ref,
};

const sni_op sni_op_ms_QEmbedLayerNormalization = {
    .name = "QEmbedLayerNormalization",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"input_ids", "int32"}, {"segment_ids", "int32", SNI_OPTIONAL},
        {"word_embedding_quant", "T2"}, {"position_embedding_quant", "T2"},
        {"segment_embedding", "T2", SNI_OPTIONAL}, {"gamma_quant", "T2"}, {"beta_quant", "T2"},
        {"mask", "int32", SNI_OPTIONAL}, {"word_embedding_scale", "float32"},
        {"position_embedding_scale", "float32"},
        {"segment_embedding_scale", "float32", SNI_OPTIONAL}, {"gamma_scale", "float32"},
        {"beta_scale", "float32"}, {"word_embedding_zero_point", "T2", SNI_OPTIONAL},
        {"position_embedding_zero_point", "T2", SNI_OPTIONAL},
        {"segment_embedding_zero_point", "T2", SNI_OPTIONAL},
        {"gamma_zero_point", "T2", SNI_OPTIONAL}, {"beta_zero_point", "T2", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"layernorm_out", "float32"}, {"mask_index_out", "int32", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T2", SNI_T(SN_INT8) | SNI_T(SN_UINT8)}),
    .params = EMBED_PARAMS,
    .params_size = sizeof(embed_params),
    .infer = quantized_infer,
    .ref = quantized_ref,
};
