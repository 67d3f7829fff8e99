/* rewrite.c - goes through a graph and applies rules where they match. */
#include "opt/rewrite.h"

/* Rules whose replacements match each other's patterns must come to an end. */
enum { MOST_PER_NODE = 16, MOST_EXTRA = 64 };

static sn_status note(sni_rewrite *r, const sni_rule_run *run, const char *rule, sni_str label) {
    sni_arena *arena = &r->store->arena;
    sni_opt_event *e = SNI_NEW(arena, sni_opt_event);
    if (!e) return sni_fail_memory(r->err);
    *e = (sni_opt_event){.rule = rule, .node = label};
    *run->report->last = e;
    run->report->last = &e->next;
    return SN_OK;
}

/* Tries every rule at one node. *made: where to go on, if one was applied. */
static sn_status try_node(sni_rewrite *r, const sni_rule_run *run, const sni_compiled_rule *base,
                          sni_node *n, bool *applied, sni_node **made) {
    size_t count;
    const sni_compiled_rule *const *rules;
    SN_TRY(sni_rules_of(n->op, &rules, &count, r->err));
    *applied = false;
    for (size_t i = 0; i < count && !*applied; i++) {
        const sni_compiled_rule *rule = rules[i];
        sni_match m;
        if (rule->stage > run->stage || run->off[rule - base]) continue;
        m.r = r;
        m.g = r->graph;
        if (!sni_rule_match(&m, rule, n)) continue;
        sni_str label = sni_node_label(r->graph, n);
        sn_status status = sni_rule_apply(&m, applied);
        if (status != SN_OK) return sni_fail_context(r->err, status, "rule %s", rule->rule->name);
        if (!*applied) continue;
        run->counts[rule - base]++;
        r->count++;
        *made = m.made;
        SN_TRY(note(r, run, rule->rule->name, label));
    }
    return SN_OK;
}

sn_status sni_apply_rules(sni_rewrite *r, const sni_rule_run *run) {
    const sni_rule_set *set;
    SN_TRY(sni_rule_set_get(&set, r->err));
    size_t left = (size_t)r->graph->node_count * MOST_PER_NODE + MOST_EXTRA;
    for (sni_node *n = sni_graph_first(r->graph), *next; n && left; n = next) {
        bool applied = false;
        sni_node *made = NULL;
        next = sni_graph_next(r->graph, n);
        if (n->op) SN_TRY(try_node(r, run, set->rules, n, &applied, &made));
        if (applied && made) next = made;
        left -= applied;
    }
    return SN_OK;
}
