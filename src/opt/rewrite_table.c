/* rewrite_table.c - the rules there are, found by operator, and compiled when a graph first has it.
 */
#include "opt/rewrite.h"

#include "opt/rules/rules.h"

#include <pthread.h>
#include <stdlib.h>

const sni_rule_table sni_rule_tables[] = {
    {"shape", SNI_STAGE_CLEAN, sni_rules_shape},
    {"gelu", SNI_STAGE_RECOGNISE, sni_rules_gelu},
    {"activations", SNI_STAGE_RECOGNISE, sni_rules_activations},
    {"norms", SNI_STAGE_RECOGNISE, sni_rules_norms},
    {"channels last", SNI_STAGE_RECOGNISE, sni_rules_channels_last},
    {"rotary", SNI_STAGE_RECOGNISE, sni_rules_rotary},
    {"attention", SNI_STAGE_RECOGNISE, sni_rules_attention},
    {"quantize", SNI_STAGE_RECOGNISE, sni_rules_quantize},
    {"quantised operators", SNI_STAGE_RECOGNISE, sni_rules_qlinear},
    {"weights of few bits", SNI_STAGE_RECOGNISE, sni_rules_lowbit},
    {"conv", SNI_STAGE_FUSE, sni_rules_conv},
    {"linear", SNI_STAGE_FUSE, sni_rules_linear},
    {"packed attention", SNI_STAGE_FUSE, sni_rules_packed},
    {"sums and norms", SNI_STAGE_FUSE, sni_rules_skip_norms},
    {0},
};

enum { BUCKETS = 1024 }; /* more than there are operators with rules */

typedef struct bucket {
    const sni_op *op;
    sni_compiled_rule **rules;
    size_t count, capacity;
    bool compiled;
} bucket;

/* Guarded by the lock. What has been compiled stays as it is. */
static struct {
    sni_arena arena;
    sni_compiled_rule *rules;
    sni_rule_set set;
    bucket buckets[BUCKETS];
    bool ready;
} all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bucket *bucket_of(const sni_op *op) {
    size_t at = (size_t)((uintptr_t)op / 16 * 0x9e3779b1u) % BUCKETS;
    while (all.buckets[at].op && all.buckets[at].op != op) at = (at + 1) % BUCKETS;
    return &all.buckets[at];
}

static sn_status add_to_bucket(const sni_op *op, sni_compiled_rule *rule, sn_error *err) {
    bucket *b = bucket_of(op);
    b->op = op;
    if (b->count == b->capacity) {
        size_t capacity = b->capacity ? b->capacity * 2 : 8;
        sni_compiled_rule **rules = SNI_NEW_ARRAY(&all.arena, sni_compiled_rule *, capacity);
        if (!rules) return sni_fail_memory(err);
        if (b->count) memcpy(rules, b->rules, b->count * sizeof *rules);
        b->rules = rules;
        b->capacity = capacity;
    }
    b->rules[b->count++] = rule;
    return SN_OK;
}

static sn_status enlist(sn_error *err) {
    size_t count = 0;
    sni_arena_init(&all.arena, 0);
    for (const sni_rule_table *t = sni_rule_tables; t->rules; t++)
        for (const sni_rule *r = t->rules; r->name; r++) count++;
    sni_compiled_rule *rules = SNI_NEW_ARRAY(&all.arena, sni_compiled_rule, count);
    if (!rules) return sni_fail_memory(err);
    all.rules = rules;
    all.set = (sni_rule_set){rules, count};
    for (const sni_rule_table *t = sni_rule_tables; t->rules; t++)
        for (const sni_rule *r = t->rules; r->name; r++, rules++) {
            const sni_op *roots[SNI_PAT_OPS];
            int n_roots;
            rules->rule = r;
            rules->stage = t->stage;
            SN_TRY(sni_rule_roots(r, roots, &n_roots, err));
            for (int i = 0; i < n_roots; i++) SN_TRY(add_to_bucket(roots[i], rules, err));
        }
    return SN_OK;
}

/* Makes the list, if it is not there yet. Called with the lock held. */
static sn_status be_ready(sn_error *err) {
    if (all.ready) return SN_OK;
    sn_status status = enlist(err);
    all.ready = status == SN_OK;
    if (!all.ready) {
        sni_arena_free(&all.arena);
        memset(all.buckets, 0, sizeof all.buckets);
    }
    return status;
}

static sn_status compile_all(sn_error *err) {
    for (size_t i = 0; i < all.set.count; i++)
        if (!all.rules[i].pattern) SN_TRY(sni_rule_compile(&all.rules[i], &all.arena, err));
    return SN_OK;
}

static sn_status compile_bucket(bucket *b, sn_error *err) {
    for (size_t i = 0; i < b->count && !b->compiled; i++)
        if (!b->rules[i]->pattern) SN_TRY(sni_rule_compile(b->rules[i], &all.arena, err));
    b->compiled = true;
    return SN_OK;
}

sn_status sni_rule_set_get(const sni_rule_set **out, sn_error *err) {
    pthread_mutex_lock(&lock);
    sn_status status = be_ready(err);
    pthread_mutex_unlock(&lock);
    if (status == SN_OK) *out = &all.set;
    return status;
}

sn_status sni_rule_set_compile(const sni_rule_set **out, sn_error *err) {
    pthread_mutex_lock(&lock);
    sn_status status = be_ready(err);
    if (status == SN_OK) status = compile_all(err);
    pthread_mutex_unlock(&lock);
    if (status == SN_OK) *out = &all.set;
    return status;
}

sn_status sni_rules_of(const sni_op *op, const sni_compiled_rule *const **rules, size_t *count,
                       sn_error *err) {
    bucket *b = NULL;
    pthread_mutex_lock(&lock);
    sn_status status = be_ready(err);
    if (status == SN_OK) {
        b = bucket_of(op);
        if (b->op) status = compile_bucket(b, err);
    }
    pthread_mutex_unlock(&lock);
    if (status != SN_OK) return status;
    *count = b->op ? b->count : 0;
    *rules = (const sni_compiled_rule *const *)b->rules;
    return SN_OK;
}
