/* TfIdfVectorizer: counts the n-grams of a pool in rows of words or numbers. */
#include "ops/tensor_util.h"
#include "ops/wide.h"

typedef struct tfidf_params {
    int64_t min_gram_length, max_gram_length, max_skip_count;
    int32_t mode;
    sni_ints ngram_counts, ngram_indexes, pool_int64s;
    sni_strings pool_strings;
    sni_floats weights;
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

/* Items (words or numbers) are replaced by the position of their first occurrence in the pool, so
 * n-grams are rows of integers. Slots hold pool positions, or n-gram numbers; -1 is free. */
typedef struct tfidf_job {
    const tfidf_params *p;
    int64_t slots; /* of both tables: a power of two */
    int64_t *item_slots, *gram_slots;
    int64_t *items;      /* the pool in item numbers */
    int64_t *gram_start; /* per n-gram: its place in the pool; one more at the end */
    int64_t *gram_size;
    int64_t grams;
} tfidf_job;

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static uint64_t hash_text(sni_str s) {
    uint64_t h = s.n;
    for (size_t i = 0; i < s.n; i++) h = mix(h, (unsigned char)s.p[i]);
    return h;
}

static bool pool_item_is(const tfidf_params *p, int64_t at, sni_str text, int64_t number) {
    return p->pool_strings.n ? sni_str_eq(p->pool_strings.v[at], text)
                             : p->pool_int64s.v[at] == number;
}

/* The slot of an item: that which holds it, or a free one. */
static int64_t *item_slot(const tfidf_job *j, sni_str text, int64_t number) {
    uint64_t h = j->p->pool_strings.n ? hash_text(text) : mix(1, (uint64_t)number);
    for (;; h++) {
        int64_t *slot = &j->item_slots[h & (uint64_t)(j->slots - 1)];
        if (*slot < 0 || pool_item_is(j->p, *slot, text, number)) return slot;
    }
}

static int64_t *gram_slot(const tfidf_job *j, const int64_t *gram, int64_t n, int64_t stride) {
    uint64_t h = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) h = mix(h, (uint64_t)gram[i * stride]);
    for (;; h++) {
        int64_t *slot = &j->gram_slots[h & (uint64_t)(j->slots - 1)];
        if (*slot < 0) return slot;
        if (j->gram_size[*slot] != n) continue;
        const int64_t *known = j->items + j->gram_start[*slot];
        int64_t i = 0;
        while (i < n && known[i] == gram[i * stride]) i++;
        if (i == n) return slot;
    }
}

static sn_status ints(sni_kernel *k, int64_t n, int64_t **out) {
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, n, sizeof(int64_t), &p));
    *out = p;
    return SN_OK;
}

static sn_status build(sni_kernel *k, tfidf_job *j) {
    const tfidf_params *p = j->p;
    int64_t pool = (int64_t)pool_size(p);
    for (j->slots = 16; j->slots < 2 * pool + 2;) j->slots *= 2;
    SN_TRY(ints(k, j->slots, &j->item_slots));
    SN_TRY(ints(k, j->slots, &j->gram_slots));
    SN_TRY(ints(k, pool, &j->items));
    SN_TRY(ints(k, (int64_t)p->ngram_indexes.n, &j->gram_start));
    SN_TRY(ints(k, (int64_t)p->ngram_indexes.n, &j->gram_size));
    for (int64_t i = 0; i < j->slots; i++) j->item_slots[i] = j->gram_slots[i] = -1;
    for (int64_t i = 0; i < pool; i++) {
        int64_t *slot = item_slot(j, p->pool_strings.n ? p->pool_strings.v[i] : (sni_str){0},
                                  p->pool_strings.n ? 0 : p->pool_int64s.v[i]);
        if (*slot < 0) *slot = i;
        j->items[i] = *slot;
    }
    for (size_t n = 1; n <= p->ngram_counts.n; n++) {
        for (int64_t at = p->ngram_counts.v[n - 1]; at < level_end(p, n); at += (int64_t)n) {
            j->gram_start[j->grams] = at;
            j->gram_size[j->grams] = (int64_t)n;
            int64_t *slot = gram_slot(j, j->items + at, (int64_t)n, 1);
            if (*slot < 0) *slot = j->grams;
            j->grams++;
        }
    }
    return SN_OK;
}

/* ---- Counting ---- */

/* Adds the n-grams of length n whose items are `stride` apart. */
static void count_grams(const tfidf_job *j, const int64_t *row, int64_t length, int64_t n,
                        int64_t stride, float *out) {
    for (int64_t start = 0; start + (n - 1) * stride < length; start++) {
        int64_t gram = *gram_slot(j, row + start, n, stride);
        if (gram >= 0) out[j->p->ngram_indexes.v[gram]] += 1;
    }
}

static sn_status count_row(sni_kernel *k, const tfidf_job *j, const int64_t *row, int64_t length,
                           float *out) {
    const tfidf_params *p = j->p;
    for (int64_t n = p->min_gram_length; n <= p->max_gram_length; n++) {
        for (int64_t skip = 0; skip <= p->max_skip_count; skip++) {
            if (skip > 0 && (n == 1 || skip >= length)) break;
            if (n > 1 && (n - 1) > (length - 1) / (skip + 1)) break;
            count_grams(j, row, length, n, skip + 1, out);
            SN_TRY(sni_poll(k));
        }
    }
    return SN_OK;
}

/* Counts to the values that the mode wants. */
static void weigh(const tfidf_params *p, float *row, const float *weight_of, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
        if (p->mode == IDF)
            row[i] = row[i] > 0 ? weight_of[i] : 0;
        else if (p->mode == TFIDF)
            row[i] *= weight_of[i];
    }
}

static sn_status tfidf_ref(sni_kernel *k) {
    const tfidf_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t width = 0, *items = NULL;
    SN_TRY(check_params(p, &width, k->err));
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, length = x->rank ? x->dims[x->rank - 1] : 1;
    if ((x->dtype == SN_STRING) != (p->pool_strings.n > 0) || x->rank > 2 ||
        y->count != rows * width)
        return SNI_KERNEL_FAIL(k, "%s input of rank %d does not fit the pool",
                               sn_dtype_name(x->dtype), x->rank);
    tfidf_job job = {.p = p};
    SN_TRY(build(k, &job));
    SN_TRY(ints(k, x->count, &items));
    for (int64_t i = 0; i < x->count; i++) {
        bool text = x->dtype == SN_STRING;
        items[i] = *item_slot(&job, text ? ((const sni_str *)x->data)[i] : (sni_str){0},
                              text ? 0 : sni_index_at(x, i));
    }
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, width, sizeof(float), &memory));
    float *weight_of = memory, *out = y->data;
    for (int64_t i = 0; i < width; i++) weight_of[i] = 1;
    for (size_t i = 0; i < p->weights.n; i++) weight_of[p->ngram_indexes.v[i]] = p->weights.v[i];
    for (int64_t i = 0; i < y->count; i++) out[i] = 0;
    for (int64_t r = 0; r < rows && width; r++) {
        SN_TRY(count_row(k, &job, items + r * length, length, out + r * width));
        weigh(p, out + r * width, weight_of, width);
    }
    return SN_OK;
}

static sn_status tfidf_infer(sni_infer *c) {
    int64_t width = 0;
    SN_TRY(check_params(c->params, &width, c->err));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank > 2) return SNI_INFER_FAIL(c, "the input has rank %d, not 1 or 2", rank);
    if (rank < 2) return sni_infer_set_shape(c, 0, 1, &width);
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){sni_infer_dim(c, 0, 0), width});
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
    .infer = tfidf_infer,
    .ref = tfidf_ref,
};
