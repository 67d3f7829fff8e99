/* registry.c - which implementations there are, in order of preference. */
#include "ep/ep.h"

#include "cpu/conv/conv_algorithms.h"
#include "cpu/core/cpu_ep.h"
#include "ops/sinter/blocked.h"

#include <pthread.h>

static const sni_impl *const impls[] = {
    /* clang-format off */
    &sni_cpu_gemm,
    &sni_cpu_matmul,
    &sni_cpu_fused_gemm,
    &sni_cpu_fused_matmul,
    &sni_cpu_fused_matmul_activation,
    &sni_cpu_transpose_matmul,
    &sni_cpu_linear,
    &sni_cpu_expand_depthwise,
    &sni_cpu_squeeze,
    &sni_cpu_rnn,
    &sni_cpu_gru,
    &sni_cpu_lstm,
    &sni_cpu_tree_ensemble,
    &sni_cpu_tree_classifier,
    &sni_cpu_tree_regressor,
    &sni_cpu_linear_classifier,
    &sni_cpu_linear_regressor,
    &sni_cpu_nms,
    &sni_cpu_topk,
    &sni_cpu_nonzero,
    &sni_cpu_gather_rows,
    &sni_cpu_roi_align,
    &sni_cpu_blocked_max_pool,
    &sni_cpu_blocked_average_pool,
    &sni_cpu_blocked_mean,
    &sni_cpu_blocked_max,
    &sni_cpu_blocked_mul,
    &sni_cpu_blocked_add,
    &sni_cpu_group,
    &sni_cpu_gather_channels,
    &sni_cpu_to_blocked,
    &sni_cpu_from_blocked,
    &sni_cpu_qlinear_conv,
    &sni_cpu_conv_integer,
    &sni_cpu_qlinear_matmul,
    &sni_cpu_matmul_integer,
    &sni_cpu_qlinear_matmul_stack,
    &sni_cpu_matmul_integer_stack,
    &sni_cpu_qgemm,
    &sni_cpu_matmul_integer_to_float,
    &sni_cpu_dynamic_quantize_matmul,
    &sni_cpu_matmul_nbits,
    &sni_cpu_matmul_bnb4,
    /* clang-format on */
};

/* Lists that end with an entry without an operator; asked after those above. */
static const sni_impl *const lists[] = {sni_cpu_convolutions, sni_cpu_quantised, sni_cpu_maps,
                                        sni_cpu_loops,        sni_cpu_hooked,    sni_cpu_moves,
                                        sni_cpu_compare};

/* Steps whose shapes are known at run time only are asked for in each run: implementations stand
 * by the first letter of their operator, and keep their order. */
enum { LETTERS = 128, MOST_SORTED = 1024 };

static struct {
    pthread_once_t once;
    const sni_impl *impls[MOST_SORTED];
    size_t first[LETTERS + 1]; /* of each letter */
} sorted = {.once = PTHREAD_ONCE_INIT};

static size_t letter_of(const char *name) {
    return (unsigned char)name[0] % LETTERS;
}

static void sort_letter(size_t letter, size_t *count) {
    for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
        if (letter_of(impls[i]->op) == letter && *count < MOST_SORTED)
            sorted.impls[(*count)++] = impls[i];
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const sni_impl *impl = lists[i]; impl->op; impl++)
            if (letter_of(impl->op) == letter && *count < MOST_SORTED)
                sorted.impls[(*count)++] = impl;
}

static void sort(void) {
    size_t count = 0;
    for (size_t letter = 0; letter < LETTERS; letter++) {
        sorted.first[letter] = count;
        sort_letter(letter, &count);
    }
    sorted.first[LETTERS] = count;
}

static bool fits(const sni_impl *impl, const sni_choice *c) {
    return sni_str_is(c->node->type, impl->op) &&
           sni_str_eq(c->node->domain, sni_str_of(impl->domain)) && impl->accepts(c) &&
           (!impl->pays || impl->pays(c));
}

void sni_ep_settings(const sni_graph *g, const sni_node *n, sni_settings *out) {
    *out = (sni_settings){.count = 0};
    if (sni_str_is(n->type, "BlockedConv") && sni_str_is(n->domain, SNI_SINTER_DOMAIN))
        sni_cpu_wino_settings(g, n, out);
}

const sni_impl *sni_ep_find(const sni_choice *c) {
    if (c->node->type.n == 0) return NULL;
    pthread_once(&sorted.once, sort);
    size_t letter = letter_of(c->node->type.p);
    for (size_t i = sorted.first[letter]; i < sorted.first[letter + 1]; i++)
        if (fits(sorted.impls[i], c)) return sorted.impls[i];
    return NULL;
}
