/* TfIdfVectorizer: counts the n-grams of a pool in rows of words or numbers. */
#include "ops/core/lookup.h"
#include "ops/core/wide.h"

/* Items (words or numbers) are replaced by the position of their first occurrence in the pool, so
 * n-grams are rows of integers. */
typedef struct tfidf_index {
    sni_lookup lookup;   /* of items */
    int64_t *items;      /* the pool in item numbers */
    int64_t *gram_start; /* per n-gram: its place in the pool */
    int64_t *gram_size;
    int64_t grams, slots; /* slots is a power of two */
    int64_t *gram_slots;  /* n-gram numbers; -1: free */
} tfidf_index;

typedef struct tfidf_params {
    int64_t min_gram_length, max_gram_length, max_skip_count;
    int32_t mode;
    sni_ints ngram_counts, ngram_indexes, pool_int64s;
    sni_strings pool_strings;
    sni_floats weights;
    tfidf_index index; /* prepared, like what follows */
    int64_t width;     /* of an output row */
    float *weight_of;  /* per column */
} tfidf_params;

enum { TF, IDF, TFIDF };

static size_t pool_size(const tfidf_params *p) {
    return p->pool_strings.n ? p->pool_strings.n : p->pool_int64s.n;
}

/* Where the n-grams of length n end in the pool. */
static int64_t level_end(const tfidf_params *p, size_t n) {
    return n < p->ngram_counts.n ? p->ngram_counts.v[n] : (int64_t)pool_size(p);
}

static sn_status check_params(const tfidf_params *p, int64_t *width, sn_error *err) {
    int64_t grams = 0;
    if (p->pool_strings.n && p->pool_int64s.n)
        return sni_fail(err, SN_INVALID_MODEL, "there are a pool of strings and one of integers");
    if (p->min_gram_length < 1 || p->max_gram_length < p->min_gram_length ||
        p->max_skip_count < 0 || p->max_gram_length > (int64_t)p->ngram_counts.n)
        return sni_fail(err, SN_INVALID_MODEL,
                        "gram lengths %lld to %lld with %lld skips do not fit %zu ngram_counts",
                        (long long)p->min_gram_length, (long long)p->max_gram_length,
                        (long long)p->max_skip_count, p->ngram_counts.n);
    for (size_t n = 1; n <= p->ngram_counts.n; n++) {
        int64_t start = p->ngram_counts.v[n - 1], end = level_end(p, n);
        if (start < 0 || end < start || end > (int64_t)pool_size(p) ||
            (end - start) % (int64_t)n != 0)
            return sni_fail(err, SN_INVALID_MODEL,
                            "n-grams of length %zu from %lld to %lld do not fit a pool of %zu", n,
                            (long long)start, (long long)end, pool_size(p));
        grams += (end - start) / (int64_t)n;
    }
    if (grams != (int64_t)p->ngram_indexes.n ||
        (p->weights.n && p->weights.n != p->ngram_indexes.n))
        return sni_fail(err, SN_INVALID_MODEL, "%lld n-grams with %zu indexes and %zu weights",
                        (long long)grams, p->ngram_indexes.n, p->weights.n);
    *width = 0;
    for (size_t i = 0; i < p->ngram_indexes.n; i++) {
        if (p->ngram_indexes.v[i] < 0 || p->ngram_indexes.v[i] == INT64_MAX)
            return sni_fail(err, SN_INVALID_MODEL, "ngram_indexes has %lld",
                            (long long)p->ngram_indexes.v[i]);
        if (p->ngram_indexes.v[i] >= *width) *width = p->ngram_indexes.v[i] + 1;
    }
    return SN_OK;
}

/* ---- Items and n-grams by hash ---- */

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

/* The slot of an n-gram whose items are `stride` apart: the one that holds it, or a free one. */
static int64_t *gram_slot(const tfidf_index *x, const int64_t *gram, int64_t n, int64_t stride) {
    uint64_t h = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) h = mix(h, (uint64_t)gram[i * stride]);
    for (;; h++) {
        int64_t *slot = &x->gram_slots[h & (uint64_t)(x->slots - 1)];
        if (*slot < 0) return slot;
        if (x->gram_size[*slot] != n) continue;
        const int64_t *known = x->items + x->gram_start[*slot];
        int64_t i = 0;
        while (i < n && known[i] == gram[i * stride]) i++;
        if (i == n) return slot;
    }
}

static sn_status build_index(tfidf_params *p, sni_arena *arena, sn_error *err) {
    tfidf_index *x = &p->index;
    bool text = p->pool_strings.n > 0;
    const void *keys = text ? (const void *)p->pool_strings.v : (const void *)p->pool_int64s.v;
    size_t pool = pool_size(p), width = text ? sizeof(sni_str) : sizeof(int64_t);
    SN_TRY(sni_lookup_make(&x->lookup, text ? SN_STRING : SN_INT64, keys, pool, arena, err));
    for (x->slots = 16; x->slots < 2 * (int64_t)p->ngram_indexes.n;) x->slots *= 2;
    x->items = SNI_NEW_ARRAY(arena, int64_t, pool);
    x->gram_start = SNI_NEW_ARRAY(arena, int64_t, p->ngram_indexes.n);
    x->gram_size = SNI_NEW_ARRAY(arena, int64_t, p->ngram_indexes.n);
    x->gram_slots = SNI_NEW_ARRAY(arena, int64_t, x->slots);
    if (!x->items || !x->gram_start || !x->gram_size || !x->gram_slots) return sni_fail_memory(err);
    for (int64_t i = 0; i < x->slots; i++) x->gram_slots[i] = -1;
    for (size_t i = 0; i < pool; i++)
        x->items[i] = sni_lookup_find(&x->lookup, (const unsigned char *)keys + i * width);
    for (size_t n = 1; n <= p->ngram_counts.n; n++) {
        for (int64_t at = p->ngram_counts.v[n - 1]; at < level_end(p, n); at += (int64_t)n) {
            x->gram_start[x->grams] = at;
            x->gram_size[x->grams] = (int64_t)n;
            int64_t *slot = gram_slot(x, x->items + at, (int64_t)n, 1);
            if (*slot < 0) *slot = x->grams;
            x->grams++;
        }
    }
    return SN_OK;
}

static sn_status tfidf_prepare(void *params, sni_arena *arena, sn_error *err) {
    tfidf_params *p = params;
    SN_TRY(check_params(p, &p->width, err));
    SN_TRY(build_index(p, arena, err));
    if (p->mode == TF || p->weights.n == 0) return SN_OK;
    p->weight_of = SNI_NEW_ARRAY(arena, float, p->width);
    if (!p->weight_of) return sni_fail_memory(err);
    for (int64_t i = 0; i < p->width; i++) p->weight_of[i] = 1;
    for (size_t i = 0; i < p->weights.n; i++) p->weight_of[p->ngram_indexes.v[i]] = p->weights.v[i];
    return SN_OK;
}

/* ---- Counting ---- */

/* Adds the n-grams of length n whose items are `stride` apart. */
static void count_grams(const tfidf_params *p, const int64_t *row, int64_t length, int64_t n,
                        int64_t stride, float *out) {
    for (int64_t start = 0; start + (n - 1) * stride < length; start++) {
        int64_t gram = *gram_slot(&p->index, row + start, n, stride);
        if (gram >= 0) out[p->ngram_indexes.v[gram]] += 1;
    }
}

static sn_status count_row(sni_kernel *k, const int64_t *row, int64_t length, float *out) {
    const tfidf_params *p = k->params;
    for (int64_t n = p->min_gram_length; n <= p->max_gram_length; n++) {
        for (int64_t skip = 0; skip <= p->max_skip_count; skip++) {
            if (skip > 0 && (n == 1 || skip >= length)) break;
            if (n > 1 && (n - 1) > (length - 1) / (skip + 1)) break;
            count_grams(p, row, length, n, skip + 1, out);
            SN_TRY(sni_poll(k));
        }
    }
    for (int64_t i = 0; i < p->width && p->mode != TF; i++) {
        float weight = p->weight_of ? p->weight_of[i] : 1;
        out[i] = p->mode == TFIDF ? out[i] * weight : out[i] > 0 ? weight : 0;
    }
    return SN_OK;
}

static sn_status tfidf_ref(sni_kernel *k) {
    const tfidf_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, length = x->rank ? x->dims[x->rank - 1] : 1;
    if ((x->dtype == SN_STRING) != (p->index.lookup.kind == SN_STRING) || x->rank > 2 ||
        y->count != rows * p->width)
        return SNI_KERNEL_FAIL(k, "%s input of rank %d does not fit the pool",
                               sn_dtype_name(x->dtype), x->rank);
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, x->count, sizeof(int64_t), &memory));
    int64_t *items = memory;
    for (int64_t i = 0; i < x->count; i++) items[i] = sni_lookup_element(&p->index.lookup, x, i);
    float *out = y->data;
    for (int64_t i = 0; i < y->count; i++) out[i] = 0;
    for (int64_t r = 0; r < rows && p->width; r++)
        SN_TRY(count_row(k, items + r * length, length, out + r * p->width));
    return SN_OK;
}

static sn_status tfidf_infer(sni_infer *c) {
    const tfidf_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank > 2) return SNI_INFER_FAIL(c, "the input has rank %d, not 1 or 2", rank);
    if (rank < 2) return sni_infer_set_shape(c, 0, 1, &p->width);
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){sni_infer_dim(c, 0, 0), p->width});
}

const sni_op sni_op_TfIdfVectorizer = {
    .name = "TfIdfVectorizer",
    .versions = SNI_VERSIONS(9),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_INDEX | SNI_T(SN_STRING)}, {"T1", SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS(
        {"min_gram_length", SNI_ATTR_INT, offsetof(tfidf_params, min_gram_length),
         .required = true},
        {"max_gram_length", SNI_ATTR_INT, offsetof(tfidf_params, max_gram_length),
         .required = true},
        {"max_skip_count", SNI_ATTR_INT, offsetof(tfidf_params, max_skip_count), .required = true},
        {"mode", SNI_ATTR_STRING, offsetof(tfidf_params, mode), .required = true,
         .choices = "TF|IDF|TFIDF"},
        {"ngram_counts", SNI_ATTR_INTS, offsetof(tfidf_params, ngram_counts), .required = true},
        {"ngram_indexes", SNI_ATTR_INTS, offsetof(tfidf_params, ngram_indexes), .required = true},
        {"pool_int64s", SNI_ATTR_INTS, offsetof(tfidf_params, pool_int64s)},
        {"pool_strings", SNI_ATTR_STRINGS, offsetof(tfidf_params, pool_strings)},
        {"weights", SNI_ATTR_FLOATS, offsetof(tfidf_params, weights)}),
    .params_size = sizeof(tfidf_params),
    .prepare = tfidf_prepare,
    .infer = tfidf_infer,
    .ref = tfidf_ref,
};
