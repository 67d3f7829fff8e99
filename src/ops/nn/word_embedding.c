/* WordConvEmbedding of com.microsoft: a vector for each word from the vectors of its characters: a
 * convolution over them, tanh, and the maximum of each filter. */
#include "ops/math/activation.h"
#include "ops/core/compute.h"
#include "ops/matmul/matmul_core.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

typedef struct word_params {
    int64_t embedding_size, conv_window_size, char_embedding_size; /* 0: as the weights say */
} word_params;

/* Words are (words, characters), W is (filters, 1, window, size), B (filters), C (alphabet, size).
 */
static sn_status word_infer(sni_infer *c) {
    const word_params *p = c->params;
    static const int ranks[4] = {2, 4, 1, 2};
    for (int i = 0; i < 4; i++)
        if (sni_infer_shaped(c, i) && sni_infer_rank(c, i) != ranks[i])
            return SNI_INFER_FAIL(c, "input %d has rank %d, not %d", i, sni_infer_rank(c, i),
                                  ranks[i]);
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    sni_dim filters = sni_infer_dim(c, 1, 0), size = sni_infer_dim(c, 1, 3), ignored;
    if (p->embedding_size > 0)
        SN_TRY(
            sni_infer_join_dim(c, "W and embedding_size", 0, filters, p->embedding_size, &filters));
    if (p->conv_window_size > 0)
        SN_TRY(sni_infer_join_dim(c, "W and conv_window_size", 2, sni_infer_dim(c, 1, 2),
                                  p->conv_window_size, &ignored));
    if (p->char_embedding_size > 0)
        SN_TRY(sni_infer_join_dim(c, "W and char_embedding_size", 3, size, p->char_embedding_size,
                                  &size));
    SN_TRY(sni_infer_join_dim(c, "W", 1, sni_infer_dim(c, 1, 1), 1, &ignored));
    if (sni_infer_shaped(c, 2))
        SN_TRY(sni_infer_join_dim(c, "W and B", 0, filters, sni_infer_dim(c, 2, 0), &filters));
    if (sni_infer_shaped(c, 3))
        SN_TRY(sni_infer_join_dim(c, "W and C", 3, size, sni_infer_dim(c, 3, 1), &ignored));
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){sni_infer_dim(c, 0, 0), filters});
}

typedef struct words {
    const int32_t *ids;
    const float *table;
    int64_t length, window, size, alphabet, filters;
    float *in;  /* (length, size): vectors of the characters */
    float *out; /* (length, filters) */
} words;

/* Vectors of the first `n` characters of a word. */
static sn_status look_up(sni_kernel *k, const words *w, const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= w->alphabet)
            return SNI_KERNEL_FAIL(k, "character %d is outside an alphabet of %lld", ids[i],
                                   (long long)w->alphabet);
        sni_copy_bytes(w->in + i * w->size, w->table + ids[i] * w->size,
                       (size_t)w->size * sizeof(float));
    }
    return SN_OK;
}

/* A word that starts with character 0 has no characters, and its vector is 0. */
static sn_status embed(sni_kernel *k, const words *w, const int32_t *ids, float *y) {
    const sni_tensor *bias = sni_in(k, 2);
    sni_activation tanh = {.kind = SNI_FN_TANH};
    int64_t n = 0;
    for (int64_t f = 0; f < w->filters; f++) y[f] = 0;
    for (int64_t i = 0; ids[0] > 0 && i < w->length; i++) n += ids[i] > 0;
    if (n == 0) return SN_OK;
    if (n < w->window) n = w->window;
    SN_TRY(look_up(k, w, ids, n));
    int64_t places = n - w->window + 1;
    for (int64_t i = 0; i < places; i++)
        sni_copy_bytes(w->out + i * w->filters, bias->data, (size_t)w->filters * sizeof(float));
    sni_gemm g = {.m = places,
                  .n = w->filters,
                  .k = w->window * w->size,
                  .a = w->in,
                  .a_row = w->size,
                  .a_col = 1,
                  .b = sni_in(k, 1)->data,
                  .b_row = 1,
                  .b_col = w->window * w->size,
                  .c = w->out,
                  .c_row = w->filters,
                  .add = true};
    SN_TRY(sni_gemm_run(k, SN_FLOAT32, &g));
    sni_activate(&tanh, SN_FLOAT32, w->out, NULL, places * w->filters, k->threads);
    for (int64_t f = 0; f < w->filters; f++) {
        y[f] = w->out[f];
        for (int64_t i = 1; i < places; i++)
            if (w->out[i * w->filters + f] > y[f]) y[f] = w->out[i * w->filters + f];
    }
    return SN_OK;
}

static sn_status word_ref(sni_kernel *k) {
    const sni_tensor *ids = sni_in(k, 0), *weights = sni_in(k, 1), *table = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    void *memory[2] = {0};
    words w = {.ids = ids->data,
               .table = table->data,
               .length = ids->dims[1],
               .window = weights->dims[2],
               .size = weights->dims[3],
               .alphabet = table->dims[0],
               .filters = weights->dims[0]};
    if (y->count == 0) return SN_OK;
    if (w.window < 1 || w.window > w.length)
        return SNI_KERNEL_FAIL(k, "a window of %lld over words of %lld characters",
                               (long long)w.window, (long long)w.length);
    SN_TRY(sni_scratch_matrix(k, w.length, w.size, sizeof(float), &memory[0]));
    SN_TRY(sni_scratch_matrix(k, w.length, w.filters, sizeof(float), &memory[1]));
    w.in = memory[0];
    w.out = memory[1];
    for (int64_t i = 0; i < ids->dims[0]; i++)
        SN_TRY(embed(k, &w, w.ids + i * w.length, (float *)y->data + i * w.filters));
    return SN_OK;
}

#define FIELD(f) offsetof(word_params, f)

const sni_op sni_op_ms_WordConvEmbedding = {
    .name = "WordConvEmbedding",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs =
        SNI_FORMALS({"Sequence", "int32"}, {"W", "float32"}, {"B", "float32"}, {"C", "float32"}),
    .outputs = SNI_FORMALS({"Y", "float32"}),
    .params = SNI_PARAMS({"embedding_size", SNI_ATTR_INT, FIELD(embedding_size)},
                         {"conv_window_size", SNI_ATTR_INT, FIELD(conv_window_size)},
                         {"char_embedding_size", SNI_ATTR_INT, FIELD(char_embedding_size)}),
    .params_size = sizeof(word_params),
    .infer = word_infer,
    .ref = word_ref,
};
