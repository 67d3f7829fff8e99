/* pipeline.c - which passes there are, and their order. */
#include "base/clock.h"
#include "ops/sinter/group.h"
#include "ops/sinter/part.h"
#include "opt/rewrite.h"

#include <stdlib.h>

enum {
    ROUND_LIMIT = 12,       /* rounds of one stage */
    FOLD_LIMIT = 64 << 20,  /* bytes of one folded constant */
    FOLD_TOTAL = 512 << 20, /* bytes that folding may read and write in one session */
    MADE_TOTAL = 512 << 20  /* bytes of larger constants that one number makes, in one session */
};

#define FOLD_NS 5000000000u /* that folding may take in one session */

/* Every round runs those of the stages so far, then the rules of the same. */
static const sni_pass passes[] = {
    {"dead-code", 1, sni_pass_dead_code},
    {"identity", 1, sni_pass_identity},
    {"widen-floats", 2, sni_pass_widen_floats},
    {"shape-values", 1, sni_pass_shape_values},
    {"fold-constants", 1, sni_pass_fold_constants},
    {"duplicate-constants", 1, sni_pass_duplicate_constants},
    {"common-subexpressions", 1, sni_pass_common_subexpressions},
    {"blocked-layout", 3, sni_pass_layout, SNI_STAGE_LAYOUT},
    {"byte-tables", 3, sni_pass_byte_tables, SNI_STAGE_LAYOUT},
    {"bytes-channels-last", 3, sni_pass_layout_bytes, SNI_STAGE_LAYOUT},
    {"expand-depthwise", 3, sni_pass_expand, SNI_STAGE_LAYOUT},
    {"conv-factors", 3, sni_pass_conv_factors, SNI_STAGE_LAYOUT},
    {"depthwise-means", 3, sni_pass_depthwise_means, SNI_STAGE_LAYOUT},
    {"squeeze-excite", 3, sni_pass_squeeze_excite, SNI_STAGE_LAYOUT},
    {"indirect-channels", 3, sni_pass_indirect, SNI_STAGE_LAYOUT},
    {"blocked-channels-last", 3, sni_pass_layout_last, SNI_STAGE_LAYOUT},
    {"elementwise-group", 2, sni_pass_group, SNI_STAGE_GROUP},
};

enum { PASSES = sizeof passes / sizeof *passes };

typedef struct pipeline {
    sni_opt_report *report;
    const sni_opt_options *options;
    const sni_rule_set *rules;
    bool *off; /* by the index of sni_opt_name() */
    size_t first_rule;
    size_t fold_left, made_left;
    uint64_t fold_ns_left;
    sn_error *err;
} pipeline;

/* ---- Names ---- */

static size_t family_count(void) {
    size_t n = 0;
    while (sni_numerics_get(n)) n++;
    return n;
}

const char *sni_opt_name(size_t index) {
    const sni_rule_set *set;
    if (index < PASSES) return passes[index].name;
    index -= PASSES;
    if (index < family_count()) return sni_numerics_get(index)->name;
    index -= family_count();
    if (sni_rule_set_get(&set, NULL) != SN_OK || index >= set->count) return NULL;
    return set->rules[index].rule->name;
}

uint32_t sni_opt_family(size_t index) {
    bool is = index >= PASSES && index - PASSES < family_count();
    return is ? sni_numerics_get(index - PASSES)->bit : 0;
}

/* Names of version 0.1, which this version still takes. */
static const struct {
    const char *old, *current;
} old_names[] = {
    {"paired", "inner-product"},
    {"digits", "emulated-gemm"},
    {"picked-channels", "indirect-channels"},
    {"softmax-turned", "softmax-transposed"},
    {"log-softmax-turned", "log-softmax-transposed"},
    {"attention-turned", "attention-transposed"},
    {"attention-mask-turned", "attention-mask-transposed"},
    {"attention-where-turned", "attention-where-transposed"},
    {"attention-fill-turned", "attention-fill-transposed"},
    {"attention-single-turned", "attention-single-transposed"},
    {"attention-single-mask-turned", "attention-single-mask-transposed"},
    {"attention-single-batch-mask-turned", "attention-single-batch-mask-transposed"},
};

const char *sni_opt_current_name(const char *name) {
    for (size_t i = 0; i < sizeof old_names / sizeof *old_names; i++)
        if (strcmp(old_names[i].old, name) == 0) return old_names[i].current;
    return name;
}

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

/* How many characters must be put in, left out or changed to make one name of the other. */
static size_t distance(const char *a, const char *b) {
    enum { MAX_LENGTH = 48 };
    size_t row[MAX_LENGTH + 1], n = strlen(b);
    if (n > MAX_LENGTH || strlen(a) > MAX_LENGTH) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t above = row[j + 1];
            row[j + 1] = min_size(corner + (a[i] != b[j]), 1 + min_size(above, row[j]));
            corner = above;
        }
    }
    return row[n];
}

static sn_status fail_name(const char *name, sn_error *err) {
    enum { SHOWN = 3 };
    const char *near[SHOWN] = {"", "", ""};
    size_t far[SHOWN] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    const char *other;
    for (size_t i = 0; (other = sni_opt_name(i)) != NULL; i++) {
        size_t d = distance(name, other);
        if (strstr(other, name)) d = 1;
        for (int at = 0; at < SHOWN; at++) {
            if (d >= far[at]) continue;
            for (int k = SHOWN - 1; k > at; k--) {
                near[k] = near[k - 1];
                far[k] = far[k - 1];
            }
            near[at] = other;
            far[at] = d;
            break;
        }
    }
    return sni_fail(err, SN_INVALID_ARGUMENT,
                    "there is no optimiser rule '%.60s'; the nearest are %s, %s and %s", name,
                    near[0], near[1], near[2]);
}

/* True if one of the names, which may be old ones, is this current one. */
static bool is_named(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (names[i] && strcmp(name, sni_opt_current_name(names[i])) == 0) return true;
    return false;
}

sn_status sni_opt_check_names(const char *const *names, size_t count, sn_error *err) {
    const sni_rule_set *set;
    if (!count) return SN_OK;
    SN_TRY(sni_rule_set_get(&set, err));
    for (size_t i = 0; i < count; i++) {
        const char *other;
        size_t at = 0;
        if (!names[i]) return sni_fail(err, SN_INVALID_ARGUMENT, "the name of a rule is NULL");
        const char *name = sni_opt_current_name(names[i]);
        while ((other = sni_opt_name(at)) != NULL && strcmp(other, name) != 0) at++;
        if (!other) return fail_name(names[i], err);
    }
    return SN_OK;
}

/* The families that a precision allows beside those of the level. */
static uint32_t families_of(sn_precision precision) {
    switch (precision) {
    case SN_PRECISION_TF32_LIKE:
        return SNI_NUMERICS_TO_TF32;
    case SN_PRECISION_BF16:
        return SNI_NUMERICS_TO_BF16;
    case SN_PRECISION_FP16:
        return SNI_NUMERICS_TO_FP16;
    default:
        return 0;
    }
}

uint32_t sni_opt_numerics(const sni_opt_options *o) {
    const sni_numerics_family *f;
    uint32_t mask = 0, precise = families_of(o->precision);
    for (size_t i = 0; (f = sni_numerics_get(i)) != NULL; i++) {
        bool off = is_named(f->name, o->disabled, o->n_disabled);
        bool plain = (f->level > o->level && !(f->bit & precise)) || (f->level > 0 && o->portable);
        if (!off && !plain) mask |= f->bit;
    }
    return mask;
}

/* ---- Running ---- */

/* Whether a node's subgraph is its description, which passes leave alone. */
static bool has_own_body(const sni_node *n) {
    return sni_is_group(n) || sni_is_part(n);
}

static size_t count_nodes(const sni_graph *g, int depth) {
    size_t count = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        count++;
        if (has_own_body(n)) continue;
        for (int32_t i = 0; i < n->n_subgraphs && depth < SNI_MAX_NESTING; i++)
            count += count_nodes(n->subgraphs[i], depth + 1);
    }
    return count;
}

/* Runs one pass, or the rules of a stage if `pass` is NULL, over a graph, innermost subgraphs
 * first. Adds to *count. */
static sn_status run_pass(pipeline *p, const sni_pass *pass, sni_stage stage, sni_graph *g,
                          int depth, size_t *count) {
    SN_TRY(sni_check_nesting(depth, p->err));
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        for (int32_t i = 0; i < n->n_subgraphs && !has_own_body(n); i++)
            SN_TRY(run_pass(p, pass, stage, n->subgraphs[i], depth + 1, count));
    sni_rewrite r = {.graph = g,
                     .stage = stage,
                     .store = g->store,
                     .fold_limit = FOLD_LIMIT,
                     .fold_left = &p->fold_left,
                     .made_left = &p->made_left,
                     .fold_ns_left = &p->fold_ns_left,
                     .deadline_ns = p->options->deadline_ns,
                     .err = p->err};
    sni_rule_run run = {stage, p->off + p->first_rule, p->report->counts + p->first_rule,
                        p->report};
    sn_status status = pass ? pass->run(&r) : sni_apply_rules(&r, &run);
    *count += r.count;
    return status;
}

static sn_status run_round(pipeline *p, sni_graph *g, sni_stage stage, size_t *fired) {
    *fired = 0;
    for (size_t i = 0; i <= PASSES; i++) {
        const sni_pass *pass = i < PASSES ? &passes[i] : NULL;
        size_t count = 0;
        if (pass && (p->off[i] || pass->stage > stage)) continue;
        if (p->options->deadline_ns && sni_now_ns() >= p->options->deadline_ns)
            return sni_fail(p->err, SN_TIMEOUT, "making the session reached its time limit");
        sn_status status = run_pass(p, pass, stage, g, 0, &count);
        if (status != SN_OK)
            return sni_fail_context(p->err, status, "pass %s", pass ? pass->name : "rules");
#ifndef NDEBUG
        SN_TRY(sni_graph_verify(g, p->err));
#endif
        if (pass) p->report->counts[i] += count;
        *fired += count;
    }
    return *fired ? sni_infer_graph(g, p->err) : SN_OK;
}

static sn_status run_stage(pipeline *p, sni_graph *g, sni_stage stage) {
    size_t fired = 1;
    for (int round = 0; round < ROUND_LIMIT && fired; round++)
        SN_TRY(run_round(p, g, stage, &fired));
    return SN_OK;
}

/* Lets providers take nodes of the cleaned graph, whose element types are still the model's. */
static sn_status partition(pipeline *p, sni_graph *g) {
    const sni_opt_options *o = p->options;
    size_t widen = 0;
    while (passes[widen].run != sni_pass_widen_floats) widen++;
    bool off = p->off[widen];
    p->off[widen] = true;
    sn_status status = o->level > 0 ? run_stage(p, g, SNI_STAGE_CLEAN) : SN_OK;
    p->off[widen] = off;
    if (status == SN_OK) status = o->partition(o->partition_ctx, g, p->err);
    return status;
}

static sn_status run_stages(pipeline *p, sni_graph *g) {
    if (p->options->partition) SN_TRY(partition(p, g));
    if (p->options->level <= 0) return SN_OK;
    for (int stage = 0; stage < SNI_STAGE_COUNT; stage++) SN_TRY(run_stage(p, g, (sni_stage)stage));
    return SN_OK;
}

/* True if a replacement makes a node that no file can say. */
static bool is_internal(const sni_pat *p) {
    if (p->kind != SNI_PAT_NODE) return false;
    const sni_op *op = p->ops[0];
    if (op->domain && strcmp(op->domain, "ai.sinter") == 0 && !(op->flags & SNI_OP_SPELLED))
        return true;
    for (int i = 0; i < p->n_in; i++)
        if (is_internal(p->in[i])) return true;
    return false;
}

/* Whether a pass (compiled NULL) or rule is left out. */
static bool is_off(const sni_opt_options *o, const sni_pass *pass,
                   const sni_compiled_rule *compiled) {
    const sni_rule *rule = compiled ? compiled->rule : NULL;
    int needed = rule ? (rule->level ? rule->level : 2) : pass->level;
    bool internal = o->portable &&
                    (rule ? is_internal(compiled->replacement) : pass->stage >= SNI_STAGE_LAYOUT);
    return needed > o->level || internal ||
           is_named(rule ? rule->name : pass->name, o->disabled, o->n_disabled);
}

/* What folding may take of a limit of its own and the session's. */
static size_t fold_share(const sni_opt_options *o, size_t own) {
    return o->memory_limit && o->memory_limit < own ? o->memory_limit : own;
}

sn_status sni_optimize(sni_graph *g, const sni_opt_options *o, sni_opt_report *report,
                       sn_error *err) {
    pipeline p = {.report = report,
                  .options = o,
                  .fold_left = fold_share(o, FOLD_TOTAL),
                  .made_left = o->portable ? 0 : fold_share(o, MADE_TOTAL),
                  .fold_ns_left = FOLD_NS,
                  .first_rule = PASSES + family_count(),
                  .err = err};
    *report = (sni_opt_report){.nodes_before = count_nodes(g, 0)};
    report->last = &report->events;
    report->nodes_after = report->nodes_before;
    if (o->level <= 0 && !o->n_disabled && !o->partition)
        return SN_OK; /* the rules need not be read */
    SN_TRY(o->portable ? sni_rule_set_compile(&p.rules, err) : sni_rule_set_get(&p.rules, err));
    SN_TRY(sni_opt_check_names(o->disabled, o->n_disabled, err));
    size_t names = p.first_rule + p.rules->count;
    report->counts = SNI_NEW_ARRAY(&g->store->arena, size_t, names);
    p.off = SNI_NEW_ARRAY(&g->store->arena, bool, names);
    if (!report->counts || !p.off) return sni_fail_memory(err);
    for (size_t i = 0; i < PASSES; i++) p.off[i] = is_off(o, &passes[i], NULL);
    for (size_t i = 0; i < p.rules->count; i++)
        p.off[p.first_rule + i] = is_off(o, NULL, &p.rules->rules[i]);
    SN_TRY(run_stages(&p, g));
    report->nodes_after = count_nodes(g, 0);
    return SN_OK;
}
