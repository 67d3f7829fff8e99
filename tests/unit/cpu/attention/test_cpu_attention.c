/* test_cpu_attention.c - attention on the vector kernels against the reference kernels: short and
 * long sequences, few queries, shared heads, masks of every kind, caches. */
#include "versus.h"

static versus v;

typedef struct shape {
    int64_t batch, q_heads, kv_heads, queries, keys, head, value;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 1},       {2, 3, 3, 5, 7, 8, 8},     {1, 2, 1, 33, 40, 16, 24},
    {1, 4, 2, 1, 300, 64, 64},   {1, 4, 1, 3, 270, 20, 33}, {2, 2, 2, 70, 530, 32, 32},
    {1, 12, 12, 16, 16, 64, 64}, {1, 1, 1, 64, 64, 7, 5},   {1, 6, 2, 2, 19, 12, 12},
    {1, 1, 1, 3, 0, 8, 8},       {8, 3, 3, 49, 49, 32, 32}, {1, 3, 3, 70, 300, 16, 48},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Bit 0: causal; bits 1 and 2: no mask, additive, bool, additive for keys alone; bit 3: soft cap.
 */
static void attention_case(const shape *s, int mode) {
    int mask = mode >> 1 & 3;
    if (s->keys == 0 && mask) return;
    versus_start(&v, "", "Attention");
    v.scale = 2;
    versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){s->batch, s->q_heads, s->queries, s->head}, NULL);
    versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){s->batch, s->kv_heads, s->keys, s->head}, NULL);
    versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){s->batch, s->kv_heads, s->keys, s->value}, NULL);
    if (mode & 8) v.scale = 120; /* of masks: most weights are too small for normal numbers */
    if (mask == 1)
        versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){1, s->q_heads, s->queries, s->keys}, NULL);
    else if (mask == 2)
        versus_tensor(&v, SN_BOOL, 2, (int64_t[]){s->queries, s->keys}, NULL);
    else if (mask == 3)
        versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){s->batch, 1, 1, s->keys}, NULL);
    eval_attr(&v.e, sni_attr_of_int("is_causal", mode & 1));
    if (mode & 8) eval_attr(&v.e, sni_attr_of_float("softcap", 1.5f));
    versus_run(&v, 1, 2e-5);
    assert_string_equal(v.impl, "attention_f32");
}

static void attention_matches(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++)
        for (int mode = 0; mode < 16; mode++) attention_case(&shapes[i], mode);
}

/* Heads inside rows, and a cache in front. */
static void caches_join(void **state) {
    (void)state;
    for (int mode = 0; mode < 8; mode++) {
        int64_t queries = mode & 1 ? 1 : 9, past = mode & 2 ? 41 : 0, heads = 3, d = 16;
        versus_start(&v, "", "Attention");
        for (int i = 0; i < 3; i++)
            versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, queries, heads * d}, NULL);
        versus_without(&v);
        for (int i = 0; i < 2; i++)
            versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){2, heads, past, d}, NULL);
        eval_attr(&v.e, sni_attr_of_int("q_num_heads", heads));
        eval_attr(&v.e, sni_attr_of_int("kv_num_heads", heads));
        eval_attr(&v.e, sni_attr_of_int("is_causal", mode >> 2));
        versus_run(&v, 3, 2e-5);
    }
}

/* Scores that somebody wants to see are computed the long way, on the fast products. */
static void scores_can_be_seen(void **state) {
    (void)state;
    versus_start(&v, "", "Attention");
    for (int i = 0; i < 3; i++) versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){1, 2, 6, 8}, NULL);
    eval_attr(&v.e, sni_attr_of_int("qk_matmul_output_mode", 3));
    versus_run(&v, 4, 2e-5);
}

static void multi_head_attention_matches(void **state) {
    (void)state;
    for (int mode = 0; mode < 4; mode++) {
        int64_t n = mode & 1 ? 3 : 40;
        versus_start(&v, "com.microsoft", "MultiHeadAttention");
        for (int i = 0; i < 3; i++) versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, n, 32}, NULL);
        if (mode & 2) {
            int32_t padding[2] = {(int32_t)n, (int32_t)n - 2};
            versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){96}, NULL);
            versus_tensor(&v, SN_INT32, 1, (int64_t[]){2}, padding);
        }
        eval_attr(&v.e, sni_attr_of_int("num_heads", 4));
        versus_run(&v, 1, 2e-5);
    }
}

typedef struct grouped {
    int64_t batch, q_heads, kv_heads, queries, past, spare, head; /* spare: rows of the cache */
} grouped;

/* What a cache stores: the type of the queries, or integers with a scale for all or for each. */
typedef enum storage { AS_QUERIES, BYTES, BYTES_BY_CHANNEL, PAIRS, PAIRS_BY_CHANNEL } storage;

static void put_lengths(const grouped *g) {
    int32_t lengths[8], total = (int32_t)(g->past + g->queries);
    for (int b = 0; b < g->batch; b++) /* batches are filled to different lengths */
        lengths[b] = total - 1 - (g->past > 1 && g->queries == 1 ? b : 0);
    versus_tensor(&v, SN_INT32, 1, &g->batch, lengths);
    versus_tensor(&v, SN_INT32, 1, (int64_t[]){1}, &total);
}

static void put_scales(const grouped *g, storage s) {
    const bool each = s == BYTES_BY_CHANNEL || s == PAIRS_BY_CHANNEL;
    float scales[512];
    assert_true(g->kv_heads * g->head <= 512);
    for (int i = 0; i < 512; i++)
        scales[i] = (s == PAIRS || s == PAIRS_BY_CHANNEL ? 0.3f : 0.02f) * (1 + 0.001f * (float)i);
    for (int i = 0; i < 2; i++)
        versus_tensor(&v, SN_FLOAT32, each ? 3 : 1,
                      each ? (int64_t[]){g->kv_heads, 1, g->head} : (int64_t[]){1}, scales);
}

static void grouped_case(const grouped *g, storage s, sn_dtype type) {
    const bool bytes = s == BYTES || s == BYTES_BY_CHANNEL;
    const sn_dtype cache = s == AS_QUERIES ? type : bytes ? SN_INT8 : SN_UINT8;
    const int64_t row = cache == SN_UINT8 ? (g->head + 1) / 2 : g->head;
    versus_start(&v, "com.microsoft", "GroupQueryAttention");
    v.scale = 2;
    for (int i = 0; i < 3; i++)
        versus_tensor(&v, type, 3,
                      (int64_t[]){g->batch, g->queries, (i ? g->kv_heads : g->q_heads) * g->head},
                      NULL);
    for (int i = 0; i < 2; i++)
        versus_tensor(&v, cache, 4, (int64_t[]){g->batch, g->kv_heads, g->past + g->spare, row},
                      NULL);
    put_lengths(g);
    if (s != AS_QUERIES) {
        for (int i = 7; i < 12; i++) versus_without(&v);
        put_scales(g, s);
        const char *quant = s == BYTES || s == PAIRS ? "PER_TENSOR" : "PER_CHANNEL";
        eval_attr(&v.e, sni_attr_of_string("k_quant_type", quant));
        eval_attr(&v.e, sni_attr_of_string("v_quant_type", quant));
        eval_attr(&v.e, sni_attr_of_int("kv_cache_bit_width", bytes ? 8 : 4));
    }
    eval_attr(&v.e, sni_attr_of_int("num_heads", g->q_heads));
    eval_attr(&v.e, sni_attr_of_int("kv_num_heads", g->kv_heads));
    versus_run(&v, 3, 2e-5);
    assert_string_equal(v.impl, "attention_f32");
}

/* Caches in every type that they may be stored in, for decoding and for prompts. */
static void stored_caches_match(void **state) {
    (void)state;
    static const grouped cases[] = {
        {1, 1, 1, 1, 1, 0, 1},   {2, 4, 2, 1, 9, 3, 16},    {1, 8, 2, 1, 130, 7, 64},
        {2, 8, 1, 1, 70, 0, 24}, {1, 2, 2, 5, 0, 0, 128},   {2, 3, 3, 3, 0, 0, 33},
        {1, 6, 2, 2, 300, 1, 7}, {1, 4, 2, 40, 300, 0, 40}, {3, 2, 1, 1, 63, 0, 15},
    };
    static const sn_dtype types[] = {SN_FLOAT32, SN_FLOAT16, SN_BFLOAT16};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int s = AS_QUERIES; s <= PAIRS_BY_CHANNEL; s++)
            for (int t = 0; t < 3; t++) grouped_case(&cases[i], (storage)s, types[t]);
}

/* Sequences with caches of `past` tokens and `fresh` new ones, in pages in any order. */
typedef struct sequences {
    int count, heads, groups, size, page;
    int past[6], fresh[6];
    bool packed, sink, slots;
} sequences;

static void put_pages(const sequences *s, int wide, int pages) {
    int32_t ends[7] = {0}, past[6], table[6 * 16], next = 0;
    for (int i = 0; i < s->count; i++) {
        ends[i + 1] = ends[i] + s->fresh[i];
        past[i] = s->past[i];
        for (int p = 0; p < wide; p++) {
            bool used = p * s->page < s->past[i] + s->fresh[i];
            table[i * wide + p] = used ? next++ * 7 % pages : -1;
        }
    }
    const int64_t n = s->count, n_ends = n + 1;
    versus_tensor(&v, SN_INT32, 1, &n_ends, ends);
    versus_tensor(&v, SN_INT32, 1, &n, past);
    versus_tensor(&v, SN_INT32, 2, (int64_t[]){n, wide}, table);
}

static void put_paged_options(const sequences *s, storage kind, int tokens, int rows) {
    const grouped g = {.kv_heads = s->groups, .head = s->size};
    int32_t slots[256];
    for (int i = 0; i < 2; i++) versus_without(&v);
    for (int i = 0; i < tokens; i++) slots[i] = i % 3 == 2 ? -1 : (i * 11 + 3) % rows;
    const int64_t n = tokens, heads = s->heads;
    if (s->slots)
        versus_tensor(&v, SN_INT32, 1, &n, slots);
    else
        versus_without(&v);
    if (s->sink)
        versus_tensor(&v, SN_FLOAT32, 1, &heads, NULL);
    else
        versus_without(&v);
    for (int i = 0; i < 2; i++) versus_without(&v);
    if (kind == AS_QUERIES) return;
    put_scales(&g, kind);
    const char *quant = kind == BYTES || kind == PAIRS ? "PER_TENSOR" : "PER_CHANNEL";
    const char *type = kind == BYTES || kind == BYTES_BY_CHANNEL ? "int8" : "int4";
    eval_attr(&v.e, sni_attr_of_string("k_quant_type", quant));
    eval_attr(&v.e, sni_attr_of_string("v_quant_type", quant));
    eval_attr(&v.e, sni_attr_of_string("k_cache_dtype", type));
    eval_attr(&v.e, sni_attr_of_string("v_cache_dtype", type));
}

static void paged_case(const sequences *s, storage kind) {
    const bool bytes = kind == BYTES || kind == BYTES_BY_CHANNEL;
    const sn_dtype cache = kind == AS_QUERIES ? SN_FLOAT32 : bytes ? SN_INT8 : SN_UINT8;
    const int64_t row = cache == SN_UINT8 ? (s->size + 1) / 2 : s->size;
    int tokens = 0, wide = 1, pages = 0;
    for (int i = 0; i < s->count; i++) {
        int used = (s->past[i] + s->fresh[i] + s->page - 1) / s->page;
        tokens += s->fresh[i];
        pages += used;
        wide = used > wide ? used : wide;
    }
    pages += pages % 7 ? 0 : 1; /* so that multiples of 7 name all */
    versus_start(&v, "com.microsoft", "PagedAttention");
    const int all = s->packed ? s->heads + 2 * s->groups : s->heads;
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){tokens, all * s->size}, NULL);
    for (int i = 0; i < 2; i++) {
        if (s->packed)
            versus_without(&v);
        else
            versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){tokens, s->groups * s->size}, NULL);
    }
    for (int i = 0; i < 2; i++)
        versus_tensor(&v, cache, 4, (int64_t[]){pages, s->page, s->groups, row}, NULL);
    put_pages(s, wide, pages);
    put_paged_options(s, kind, tokens, pages * s->page);
    eval_attr(&v.e, sni_attr_of_int("num_heads", s->heads));
    eval_attr(&v.e, sni_attr_of_int("kv_num_heads", s->groups));
    versus_run(&v, 3, 2e-5);
    assert_string_equal(v.impl, "attention_f32");
}

static void pages_match(void **state) {
    (void)state;
    static const sequences cases[] = {
        {1, 1, 1, 4, 2, {0}, {3}, false, false, false},
        {3, 4, 2, 16, 4, {5, 0, 17}, {1, 1, 1}, false, false, false},
        {4, 4, 2, 8, 8, {5, 0, 17, 40}, {1, 9, 0, 3}, true, true, false},
        {6, 6, 2, 15, 16, {100, 3, 64, 15, 16, 0}, {1, 2, 20, 5, 1, 40}, false, true, true},
        {2, 8, 1, 32, 32, {300, 31}, {1, 66}, true, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kind = AS_QUERIES; kind <= PAIRS_BY_CHANNEL; kind++)
            paged_case(&cases[i], (storage)kind);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_matches),   cmocka_unit_test(caches_join),
        cmocka_unit_test(scores_can_be_seen),  cmocka_unit_test(multi_head_attention_matches),
        cmocka_unit_test(stored_caches_match), cmocka_unit_test(pages_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
