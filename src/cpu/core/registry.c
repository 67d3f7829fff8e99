/* registry.c - the table of implementations, and the choice of the one that runs a node. */
#include "ep/ep.h"

#include "cpu/conv/conv_algorithms.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/costs/costs.h"
#include "ops/sinter/blocked.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

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
    &sni_cpu_qlinear_conv_nhwc,
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
    &sni_cpu_qmoe,
    /* clang-format on */
};

/* Lists that end with an entry without an operator; asked after those above. */
static const sni_impl *const lists[] = {
    sni_cpu_convolutions, sni_cpu_quantised, sni_cpu_byte_tables, sni_cpu_maps,
    sni_cpu_loops,        sni_cpu_hooked,    sni_cpu_moves,       sni_cpu_compare};

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

/* True if this machine and this session have the row, and it takes the node in some way. */
static bool takes(const sni_impl *impl, const sni_choice *c) {
    return sni_str_is(c->node->type, impl->op) &&
           sni_str_eq(c->node->domain, sni_str_of(impl->domain)) && impl->needs <= sni_cpu_isa() &&
           (impl->numerics & ~c->numerics) == 0 && impl->accepts(c);
}

/* Rows by the first letter of a node's operator: [*first, *end). */
static void rows_of(const sni_node *n, size_t *first, size_t *end) {
    *first = *end = 0;
    if (n->type.n == 0) return;
    pthread_once(&sorted.once, sort);
    size_t letter = letter_of(n->type.p);
    *first = sorted.first[letter];
    *end = sorted.first[letter + 1];
}

const sni_impl *sni_ep_find(const sni_choice *c) {
    const sni_impl *best = NULL;
    double least = INFINITY;
    size_t i, end;
    for (rows_of(c->node, &i, &end); i < end; i++) {
        const sni_impl *impl = sorted.impls[i];
        if (!takes(impl, c) || (impl->suits && !impl->suits(c))) continue;
        if (!impl->cycles) return best ? best : impl;
        double cycles = impl->cycles(c, sni_costs_get());
        if (cycles >= least) continue;
        least = cycles;
        best = impl;
    }
    return best;
}

/* ---- Candidates ---- */

void sni_candidate_name(const sni_impl *impl, uint32_t variant, char out[SNI_IMPL_NAME]) {
    if (variant)
        snprintf(out, SNI_IMPL_NAME, "%s#%" PRIu32, impl->name, variant);
    else
        snprintf(out, SNI_IMPL_NAME, "%s", impl->name);
}

/* A row's candidates for a node, at most SNI_MAX_VARIANTS. */
static int variants_of(const sni_impl *impl, const sni_choice *c, uint32_t *out) {
    if (impl->variants) return impl->variants(c, out);
    if (impl->suits && !impl->suits(c)) return 0;
    if (impl->cycles && impl->cycles(c, sni_costs_get()) == INFINITY) return 0;
    out[0] = impl->variant ? impl->variant(c) : 0;
    return 1;
}

int sni_ep_candidates(const sni_choice *c, sni_candidate out[SNI_MAX_CANDIDATES]) {
    size_t i, end;
    int count = 0;
    for (rows_of(c->node, &i, &end); i < end; i++) {
        const sni_impl *impl = sorted.impls[i];
        uint32_t variants[SNI_MAX_VARIANTS];
        int n = takes(impl, c) ? variants_of(impl, c, variants) : 0;
        for (int v = 0; v < n && count < SNI_MAX_CANDIDATES; v++)
            out[count++] = (sni_candidate){impl, variants[v]};
        if (n && !impl->cycles && !impl->suits) break; /* those behind it are never asked */
    }
    return count;
}

bool sni_ep_named(const sni_choice *c, const char *name, sni_candidate *out) {
    sni_candidate all[SNI_MAX_CANDIDATES];
    char text[SNI_IMPL_NAME];
    int count = sni_ep_candidates(c, all);
    for (int i = 0; i < count; i++) {
        sni_candidate_name(all[i].impl, all[i].variant, text);
        if (strcmp(text, name) != 0) continue;
        *out = all[i];
        return true;
    }
    return false;
}
