/* test_cpu_qmoe.c - mixtures of experts with packed weights against the reference kernel: every
 * number of bits, scales of rows and of blocks, zero points, two and three layers, routers with
 * NaN. Run once per tier (SINTER_ISA). */
#include "versus.h"

static versus v;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&v.seed) % (uint32_t)n);
}

enum { EXPERTS = 5 };

typedef struct mixture {
    int bits, fusion;
    int64_t tokens, hidden, inter, block, k;
    bool zeros, biases, gate; /* gate: there is FC3 */
    int special;              /* of versus.h, for the router */
} mixture;

typedef struct sizes {
    int64_t n, k;
} sizes;

static sizes layer_sizes(const mixture *m, int layer) {
    if (layer == 1) return (sizes){m->hidden, m->inter};
    return (sizes){m->inter * (layer == 0 && m->fusion ? 2 : 1), m->hidden};
}

static void put_layer(const mixture *m, int layer) {
    const sizes s = layer_sizes(m, layer);
    const int64_t of_byte = 8 / m->bits, groups = m->block ? s.k / m->block : 1;
    const int64_t count = EXPERTS * s.n * groups;
    if (layer == 2 && !m->gate) {
        for (int i = 0; i < 3; i++) versus_without(&v);
        return;
    }
    float *scales = malloc((size_t)count * sizeof *scales);
    assert_non_null(scales);
    for (int64_t i = 0; i < count; i++)
        scales[i] = (float)(draw(100) + 50) * (m->bits == 8 ? 2e-5f : 3e-4f);
    versus_weight(&v, SN_UINT8, 3, (int64_t[]){EXPERTS, s.n, s.k / of_byte}, NULL);
    versus_weight(&v, SN_FLOAT32, m->block ? 3 : 2, (int64_t[]){EXPERTS, s.n, groups}, scales);
    free(scales);
    if (m->biases)
        versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){EXPERTS, s.n}, NULL);
    else
        versus_without(&v);
}

static void put_zeros(const mixture *m, int layer) {
    const sizes s = layer_sizes(m, layer);
    const int64_t of_byte = 8 / m->bits, groups = m->block ? s.k / m->block : 1;
    if (!m->zeros || (layer == 2 && !m->gate))
        versus_without(&v);
    else if (m->block)
        versus_weight(&v, SN_UINT8, 3, (int64_t[]){EXPERTS, s.n, (groups + of_byte - 1) / of_byte},
                      NULL);
    else
        versus_weight(&v, SN_UINT8, 2, (int64_t[]){EXPERTS, (s.n + of_byte - 1) / of_byte}, NULL);
}

static void check(const mixture *m) {
    const bool swiglu = m->fusion || m->gate;
    versus_start(&v, "com.microsoft", "QMoE");
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m->tokens, m->hidden}, NULL);
    v.special = m->special;
    v.scale = 3;
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m->tokens, EXPERTS}, NULL);
    v.special = 0;
    v.scale = 1;
    for (int layer = 0; layer < 3; layer++) put_layer(m, layer);
    for (int layer = 0; layer < 3; layer++) put_zeros(m, layer);
    eval_attr(&v.e, sni_attr_of_int("expert_weight_bits", m->bits));
    eval_attr(&v.e, sni_attr_of_int("block_size", m->block));
    eval_attr(&v.e, sni_attr_of_int("k", m->k));
    eval_attr(&v.e, sni_attr_of_int("swiglu_fusion", m->fusion));
    eval_attr(&v.e, sni_attr_of_string("activation_type", swiglu ? "swiglu" : "silu"));
    versus_run(&v, 1, 1e-4); /* sums of up to 384 products of such sums, times others */
    assert_string_equal(v.impl, "gemm_lowbit");
}

static void every_kind(void **state) {
    (void)state;
    static const int64_t blocks[] = {0, 16, 32, 128};
    for (int bits = 2; bits <= 8; bits *= 2)
        for (int b = 0; b < 4; b++)
            for (int kind = 0; kind < 8; kind++) {
                const int64_t unit = blocks[b] ? blocks[b] : 8;
                const mixture m = {.bits = bits,
                                   .fusion = kind & 1 ? 1 + (int)draw(2) : 0,
                                   .tokens = 1 + draw(kind & 4 ? 30 : 3),
                                   .hidden = unit * (1 + draw(3)),
                                   .inter = unit * (1 + draw(3)),
                                   .block = blocks[b],
                                   .k = 1 + draw(EXPERTS),
                                   .zeros = draw(2),
                                   .biases = draw(2),
                                   .gate = !(kind & 1) && kind & 2};
                check(&m);
            }
}

/* A token never goes to one expert twice. */
static void routers_with_nan(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        const mixture m = {.bits = 4,
                           .tokens = 1 + draw(9),
                           .hidden = 32,
                           .inter = 32,
                           .block = 32,
                           .k = 1 + draw(EXPERTS),
                           .special = 1 + (int)draw(3)};
        check(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),
        cmocka_unit_test(routers_with_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
