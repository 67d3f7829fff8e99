/* rewrite_text.c - the text of a rule, compiled. */
#include "opt/rewrite.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct parser {
    const char *start, *p;
    sni_compiled_rule *rule;
    const sni_pat *named[SNI_RULE_NAMES]; /* nodes of the pattern by slot */
    bool replacing;
    int depth;
    sni_arena *arena;
    sn_error *err;
} parser;

static sn_status fail(const parser *s, const char *what) {
    return sni_fail(s->err, SN_INTERNAL, "rule %s: %s at '%.20s'", s->rule->rule->name, what, s->p);
}

static void skip_space(parser *s) {
    while (*s->p == ' ' || *s->p == '\n') s->p++;
}

static bool at(parser *s, char c) {
    skip_space(s);
    return *s->p == c;
}

static bool accept(parser *s, char c) {
    if (!at(s, c)) return false;
    s->p++;
    return true;
}

static sn_status expect(parser *s, char c) {
    if (accept(s, c)) return SN_OK;
    char what[] = "'?' is expected";
    what[1] = c;
    return fail(s, what);
}

/* Letters, digits, '_' and, if `dots`, '.'. */
static sn_status read_word(parser *s, bool dots, sni_str *out) {
    skip_space(s);
    const char *from = s->p;
    while (isalnum((unsigned char)*s->p) || *s->p == '_' || (dots && *s->p == '.')) s->p++;
    if (s->p == from) return fail(s, "a name is expected");
    *out = (sni_str){from, (size_t)(s->p - from)};
    return SN_OK;
}

static bool at_number(parser *s) {
    skip_space(s);
    return isdigit((unsigned char)*s->p) || *s->p == '-' || *s->p == '.';
}

/* *approximate: it has five digits or more. */
static sn_status read_number(parser *s, double *out, bool *approximate) {
    char *end;
    skip_space(s);
    *out = strtod(s->p, &end);
    if (end == s->p) return fail(s, "a number is expected");
    int digits = 0;
    for (const char *c = s->p; c < end && *c != 'e'; c++) digits += isdigit((unsigned char)*c) != 0;
    *approximate = digits >= 5 && memchr(s->p, '.', (size_t)(end - s->p)) != NULL;
    s->p = end;
    return SN_OK;
}

static sn_status read_ints(parser *s, int *n, int64_t *out) {
    *n = 0;
    SN_TRY(expect(s, '['));
    while (!accept(s, ']')) {
        double v;
        bool approximate;
        if (*n == SNI_PAT_NUMBERS) return fail(s, "the list is too long");
        SN_TRY(read_number(s, &v, &approximate));
        out[(*n)++] = (int64_t)v;
        if (!at(s, ']')) SN_TRY(expect(s, ','));
    }
    return SN_OK;
}

static sn_status find_slot(parser *s, sni_str text, char sigil, int *slot) {
    sni_compiled_rule *c = s->rule;
    for (*slot = 0; *slot < c->n_names; ++*slot) {
        const sni_rule_name *name = &c->names[*slot];
        if (!sni_str_eq(name->text, text)) continue;
        if (name->sigil == sigil || (s->replacing && sigil == 0)) return SN_OK;
        return fail(s, "a name is used in two ways before this");
    }
    if (c->n_names == SNI_RULE_NAMES) return fail(s, "there are too many names");
    c->names[c->n_names++] = (sni_rule_name){text, sigil};
    return SN_OK;
}

/* ---- Attributes ---- */

static sn_status parse_attr(parser *s, sni_pat_attr *a) {
    bool approximate;
    sni_str name;
    *a = (sni_pat_attr){.slot = -1};
    if (accept(s, '*')) {
        a->kind = SNI_PAT_ATTR_ALL;
        SN_TRY(read_word(s, false, &name));
        return find_slot(s, name, ':', &a->slot);
    }
    SN_TRY(read_word(s, false, &a->name));
    SN_TRY(expect(s, '='));
    if (at(s, '[')) {
        a->kind = SNI_PAT_ATTR_INTS;
        return read_ints(s, &a->n_ints, a->ints);
    }
    if (at(s, '@') || at(s, '#')) {
        char sigil = *s->p++;
        a->kind = sigil == '@' ? SNI_PAT_ATTR_NAME : SNI_PAT_ATTR_SCALAR;
        SN_TRY(read_word(s, false, &name));
        return find_slot(s, name, sigil, &a->slot);
    }
    if (accept(s, '"')) {
        const char *end = strchr(s->p, '"');
        a->kind = SNI_PAT_ATTR_STRING;
        if (!end) return fail(s, "a quote has no end");
        a->text = (sni_str){s->p, (size_t)(end - s->p)};
        s->p = end + 1;
        return SN_OK;
    }
    a->kind = SNI_PAT_ATTR_NUMBER;
    return read_number(s, &a->number, &approximate);
}

static sn_status parse_attrs(parser *s, sni_pat *p) {
    sni_pat_attr attrs[SNI_PAT_ATTRS];
    if (!accept(s, '<')) return SN_OK;
    do {
        if (p->n_attrs == SNI_PAT_ATTRS) return fail(s, "there are too many attributes");
        SN_TRY(parse_attr(s, &attrs[p->n_attrs++]));
    } while (accept(s, ','));
    sni_pat_attr *copy = SNI_NEW_ARRAY(s->arena, sni_pat_attr, p->n_attrs);
    if (!copy) return sni_fail_memory(s->err);
    memcpy(copy, attrs, (size_t)p->n_attrs * sizeof *copy);
    p->attrs = copy;
    return expect(s, '>');
}

/* ---- Nodes ---- */

static sn_status add_operator(parser *s, sni_pat *p, sni_str word) {
    size_t dot = word.n;
    while (dot > 0 && word.p[dot - 1] != '.') dot--;
    sni_str domain = {word.p, dot ? dot - 1 : 0}, type = {word.p + dot, word.n - dot};
    const sni_op *op = sni_op_find(domain, type);
    if (!op) return fail(s, "an operator before this is not known");
    if (p->n_ops == SNI_PAT_OPS) return fail(s, "there are too many alternatives");
    p->ops[p->n_ops++] = op;
    return SN_OK;
}

static bool commutes(const sni_op *op) {
    static const char *const names[] = {"Add", "And", "Equal", "Max", "Min",
                                        "Mul", "Or",  "Sum",   "Xor"};
    if (op->domain) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op->name, names[i]) == 0) return true;
    return false;
}

static sn_status parse_expr(parser *s, const sni_pat **out);

static sn_status parse_output(parser *s, int *out) {
    if (*s->p != '[') return SN_OK;
    double v;
    bool approximate;
    s->p++;
    SN_TRY(read_number(s, &v, &approximate));
    *out = (int)v;
    return expect(s, ']');
}

/* `word` is the first operator, already read. */
static sn_status parse_operators(parser *s, sni_pat *p, sni_str word) {
    p->kind = SNI_PAT_NODE;
    SN_TRY(add_operator(s, p, word));
    while (accept(s, '|')) {
        SN_TRY(read_word(s, true, &word));
        SN_TRY(add_operator(s, p, word));
    }
    return SN_OK;
}

static sn_status parse_node(parser *s, sni_pat *p, sni_str word) {
    SN_TRY(parse_operators(s, p, word));
    SN_TRY(parse_attrs(s, p));
    SN_TRY(expect(s, '('));
    while (!accept(s, ')')) {
        if (p->n_in == SNI_PAT_INPUTS) return fail(s, "there are too many inputs");
        SN_TRY(parse_expr(s, &p->in[p->n_in++]));
        if (!at(s, ')')) SN_TRY(expect(s, ','));
    }
    p->commutative = p->n_in == 2;
    for (int i = 0; i < p->n_ops; i++) p->commutative &= commutes(p->ops[i]);
    return parse_output(s, &p->out);
}

/* A word: an operator with its inputs, a named node, or a name alone. */
static sn_status parse_word(parser *s, sni_pat *p) {
    sni_str word;
    p->shared = accept(s, '~');
    SN_TRY(read_word(s, true, &word));
    if (accept(s, ':')) {
        SN_TRY(find_slot(s, word, ':', &p->slot));
        sni_str op;
        SN_TRY(read_word(s, true, &op));
        SN_TRY(parse_node(s, p, op));
        if (!s->replacing) s->named[p->slot] = p;
        return SN_OK;
    }
    if (at(s, '(') || at(s, '<') || at(s, '|')) return parse_node(s, p, word);
    if (sni_str_is(word, "_")) return SN_OK;
    for (int i = 0; i < s->rule->n_names && !s->replacing; i++) {
        if (!s->named[i] || !sni_str_eq(s->rule->names[i].text, word)) continue;
        p->kind = SNI_PAT_AGAIN;
        p->slot = i;
        return parse_output(s, &p->out);
    }
    p->kind = SNI_PAT_VALUE;
    p->optional = accept(s, '?');
    return find_slot(s, word, 0, &p->slot);
}

static sn_status parse_choice(parser *s, sni_pat *p) {
    p->kind = SNI_PAT_CHOICE;
    do {
        if (p->n_in == SNI_PAT_INPUTS) return fail(s, "there are too many choices");
        SN_TRY(parse_expr(s, &p->in[p->n_in++]));
    } while (accept(s, '|'));
    return expect(s, '}');
}

static sn_status parse_expr(parser *s, const sni_pat **out) {
    sni_pat *p = SNI_NEW(s->arena, sni_pat);
    if (!p) return sni_fail_memory(s->err);
    if (++s->depth > SNI_TEXT_DEPTH_MAX) return fail(s, "it nests too deep");
    p->slot = -1;
    *out = p;
    if (at(s, '[')) {
        p->kind = SNI_PAT_INTS;
        SN_TRY(read_ints(s, &p->n_ints, p->ints));
        p->optional = accept(s, '?');
    } else if (accept(s, '{')) {
        SN_TRY(parse_choice(s, p));
    } else if (at(s, '%') || at(s, '#')) {
        char sigil = *s->p++;
        sni_str word;
        p->kind = sigil == '%' ? SNI_PAT_CONST : SNI_PAT_SCALAR;
        SN_TRY(read_word(s, false, &word));
        SN_TRY(find_slot(s, word, sigil, &p->slot));
        p->optional = accept(s, '?');
    } else if (at_number(s)) {
        p->kind = SNI_PAT_NUMBER;
        SN_TRY(read_number(s, &p->number, &p->approximate));
    } else {
        SN_TRY(parse_word(s, p));
    }
    s->depth--;
    return SN_OK;
}

/* "(root, _, s) =", if it is there. */
static sn_status parse_outputs(parser *s) {
    sni_compiled_rule *c = s->rule;
    if (!accept(s, '(')) return SN_OK;
    do {
        sni_str word;
        int slot = -2, out = 0;
        if (c->n_outputs == SNI_PAT_OUTPUTS) return fail(s, "there are too many outputs");
        SN_TRY(read_word(s, false, &word));
        if (sni_str_is(word, "root"))
            slot = -1;
        else if (!sni_str_is(word, "_"))
            SN_TRY(find_slot(s, word, ':', &slot));
        SN_TRY(parse_output(s, &out));
        c->outputs[c->n_outputs].slot = slot;
        c->outputs[c->n_outputs++].out = out;
    } while (accept(s, ','));
    SN_TRY(expect(s, ')'));
    return expect(s, '=');
}

static sn_status parse_end(parser *s) {
    skip_space(s);
    return *s->p ? fail(s, "the text goes on") : SN_OK;
}

sn_status sni_rule_roots(const sni_rule *rule, const sni_op **ops, int *count, sn_error *err) {
    sni_compiled_rule about = {.rule = rule};
    parser s = {.start = rule->pattern, .p = rule->pattern, .rule = &about, .err = err};
    sni_pat root = {.n_ops = 0};
    sni_str word;
    SN_TRY(read_word(&s, true, &word));
    if (accept(&s, ':')) SN_TRY(read_word(&s, true, &word));
    SN_TRY(parse_operators(&s, &root, word));
    memcpy(ops, root.ops, (size_t)root.n_ops * sizeof *ops);
    *count = root.n_ops;
    return SN_OK;
}

static sn_status compile(parser *s, const sni_pat **pattern, const sni_pat **replacement) {
    const sni_rule *rule = s->rule->rule;
    s->start = s->p = rule->pattern;
    SN_TRY(parse_expr(s, pattern));
    SN_TRY(parse_end(s));
    if ((*pattern)->kind != SNI_PAT_NODE) return fail(s, "the pattern is no operator");
    s->start = s->p = rule->replacement;
    s->replacing = true;
    SN_TRY(parse_outputs(s));
    SN_TRY(parse_expr(s, replacement));
    return parse_end(s);
}

sn_status sni_rule_compile(sni_compiled_rule *c, sni_arena *arena, sn_error *err) {
    parser s = {.rule = c, .arena = arena, .err = err};
    const sni_pat *pattern, *replacement;
    c->n_names = c->n_outputs = 0;
    SN_TRY(compile(&s, &pattern, &replacement));
    c->pattern = pattern;
    c->replacement = replacement;
    return SN_OK;
}
