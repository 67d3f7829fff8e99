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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_matches),
        cmocka_unit_test(caches_join),
        cmocka_unit_test(scores_can_be_seen),
        cmocka_unit_test(multi_head_attention_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
