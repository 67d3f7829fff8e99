/* pipeline.c - which passes there are, and their order. */
#include "opt/opt.h"

enum {
    ROUND_LIMIT = 8, /* rounds over the whole pipeline */
    DEPTH_LIMIT = 64,
    FOLD_LIMIT = 64 << 20, /* bytes of one folded constant */
    FOLD_TOTAL = 512 << 20 /* bytes that folding may read and write in one session */
};

static const sni_pass passes[] = {
    {"dead-code", 1, sni_pass_dead_code},
    {"identity", 1, sni_pass_identity},
    {"widen-floats", 2, sni_pass_widen_floats},
    {"fold-constants", 1, sni_pass_fold_constants},
    {"common-subexpressions", 1, sni_pass_common_subexpressions},
    {"conv-batchnorm", 2, sni_pass_conv_batchnorm},
    {"fuse-conv", 2, sni_pass_fuse_conv},
    {0},
};

const sni_pass *sni_passes(void) {
    return passes;
}

static size_t count_nodes(const sni_graph *g, int depth) {
    size_t count = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        count++;
        for (int32_t i = 0; i < n->n_subgraphs && depth < DEPTH_LIMIT; i++)
            count += count_nodes(n->subgraphs[i], depth + 1);
    }
    return count;
}

static bool is_disabled(const char *name, const char *const *disabled, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, disabled[i]) == 0) return true;
    return false;
}

/* Runs one pass over a graph, innermost subgraphs first. */
static sn_status run_pass(const sni_pass *pass, sni_graph *g, int depth, size_t *fold_left,
                          size_t *count, sn_error *err) {
    if (depth > DEPTH_LIMIT)
        return sni_fail(err, SN_LIMIT, "subgraphs nest more than %d deep", DEPTH_LIMIT);
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(run_pass(pass, n->subgraphs[i], depth + 1, fold_left, count, err));
    sni_rewrite r = {.graph = g,
                     .store = g->store,
                     .fold_limit = FOLD_LIMIT,
                     .fold_left = fold_left,
                     .err = err};
    sn_status status = pass->run(&r);
    *count += r.count;
    return status;
}

sn_status sni_optimize(sni_graph *g, int level, const char *const *disabled, size_t n_disabled,
                       sni_opt_report *report, sn_error *err) {
    size_t n_passes = sizeof passes / sizeof *passes - 1, fold_left = FOLD_TOTAL;
    report->nodes_before = report->nodes_after = count_nodes(g, 0);
    report->counts = SNI_NEW_ARRAY(&g->store->arena, size_t, n_passes);
    if (!report->counts) return sni_fail_memory(err);
    for (int round = 0, fired = 1; fired && round < ROUND_LIMIT; round++) {
        fired = 0;
        for (size_t i = 0; i < n_passes; i++) {
            size_t before = report->counts[i];
            if (passes[i].level > level || is_disabled(passes[i].name, disabled, n_disabled))
                continue;
            sn_status status = run_pass(&passes[i], g, 0, &fold_left, &report->counts[i], err);
            if (status != SN_OK) return sni_fail_context(err, status, "pass %s", passes[i].name);
#ifndef NDEBUG
            SN_TRY(sni_graph_verify(g, err));
#endif
            if (report->counts[i] != before) fired = 1;
        }
        if (fired) SN_TRY(sni_infer_graph(g, err));
    }
    report->nodes_after = count_nodes(g, 0);
    return SN_OK;
}
