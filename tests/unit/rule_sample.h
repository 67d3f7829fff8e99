/* rule_sample.h - models made from the text of an optimiser rule.
 *
 * Wherever a pattern leaves something open (an operator, a branch, an input that may be left out,
 * the order of operands), a digit of `odometer` decides; making a model tells how many choices each
 * digit has, so that all combinations can be gone through. */
#ifndef RULE_SAMPLE_H
#define RULE_SAMPLE_H

#include "unit.h"

#include "opt/rewrite.h"

#include <ctype.h>
#include <stdio.h>

enum { SAMPLE_DIGITS = 24, SAMPLE_TEXT = 1 << 16, SAMPLE_NODES = 48, SAMPLE_INPUTS = 16 };

typedef struct sample_input {
    char name[32];
    int rank;
    int64_t dims[SN_MAX_RANK];
    bool positive;
    sn_dtype dtype; /* FLOAT32, UINT8 or INT8 */
} sample_input;

typedef struct sample {
    const sni_compiled_rule *rule;
    const char *spec; /* one case of the rule's sample text */
    size_t spec_n;
    int digit[SAMPLE_DIGITS], radix[SAMPLE_DIGITS], n_emulated;
    bool transposed; /* operands of commutative operators change places */
    bool wide;       /* scalars have rank 1 */
    bool partial;    /* an input is left out */
    bool impossible; /* the choices ask for what an operator does not have */
    uint64_t random;
    char inputs[SAMPLE_TEXT / 8], constants[SAMPLE_TEXT / 2], body[SAMPLE_TEXT / 4];
    char extra[1024]; /* more outputs of the graph */
    int n_values;
    uint32_t made; /* slots that have been written */
    int n_interior;
    char interior[SAMPLE_NODES][16]; /* results of inner nodes that must not be used elsewhere */
    int n_inputs;
    sample_input input[SAMPLE_INPUTS];
    char text[SAMPLE_TEXT];
} sample;

#define ADD(field, ...) unit_append(field, sizeof field, __VA_ARGS__)

static inline int sample_choose(sample *s, int choices) {
    if (choices < 2) return 0;
    int i = s->n_emulated++;
    assert_true(i < SAMPLE_DIGITS);
    s->radix[i] = choices;
    return s->digit[i] < choices ? s->digit[i] : 0;
}

/* The next combination; false after the last. */
static inline bool sample_next(sample *s) {
    for (int i = 0; i < s->n_emulated; i++) {
        if (++s->digit[i] < s->radix[i]) {
            for (int k = s->n_emulated; k < SAMPLE_DIGITS; k++) s->digit[k] = 0;
            return true;
        }
        s->digit[i] = 0;
    }
    return false;
}

/* What the sample text says of a name; "" if nothing. */
static inline void sample_spec(const sample *s, sni_str name, char *out, size_t size) {
    char key[40];
    snprintf(key, sizeof key, "%.*s=", (int)name.n, name.p);
    out[0] = 0;
    for (const char *p = s->spec, *end = s->spec + s->spec_n; p < end;) {
        while (p < end && *p == ' ') p++;
        const char *stop = p;
        while (stop < end && *stop != ' ') stop++;
        const char *word = p + (*p == '%' || *p == '#' || *p == '@');
        if (strncmp(word, key, strlen(key)) == 0) {
            snprintf(out, size, "%.*s", (int)(stop - word) - (int)strlen(key), word + strlen(key));
            return;
        }
        p = stop;
    }
}

/* "[N,3]" with letters as they stand into `text`, and as sizes into dims. */
static inline int sample_dims(const char *spec, int64_t *dims) {
    int rank = 0;
    for (const char *p = strchr(spec, '[') + 1; *p && *p != ']';) {
        dims[rank++] = *p < 'A' ? strtol(p, NULL, 10) : *p == 'S' ? 5 : *p == 'O' ? 1 : 2;
        while (*p && *p != ',' && *p != ']') p++;
        if (*p == ',') p++;
    }
    return rank;
}

static inline double sample_number(sample *s, bool positive) {
    double v = (double)(unit_random(&s->random) % 4001) / 1000 - 2;
    return positive ? fabs(v) / 2 + 0.5 : v;
}

/* The type of a constant: sizes in place of letters. */
static inline void sample_type(sample *s, const char *spec) {
    int64_t dims[SN_MAX_RANK];
    int rank = sample_dims(spec, dims);
    ADD(s->constants, "float");
    for (int i = 0; i < rank; i++)
        ADD(s->constants, "%s%lld%s", i ? "," : "[", (long long)dims[i], i + 1 < rank ? "" : "]");
}

static inline void sample_contents(sample *s, const char *spec) {
    int64_t dims[SN_MAX_RANK], count = 1;
    int rank = sample_dims(spec, dims);
    for (int i = 0; i < rank; i++) count *= dims[i];
    ADD(s->constants, " = {");
    for (int64_t i = 0; i < count; i++)
        ADD(s->constants, "%s%.4g", i ? ", " : "",
            isdigit((unsigned char)spec[0]) ? spec[0] - '0' : sample_number(s, spec[0] == '+'));
    ADD(s->constants, "}");
}

/* Constant numbers that count from 0. */
static inline void sample_numbers(sample *s, sni_str name, const char *spec) {
    int64_t dims[SN_MAX_RANK], count = 1;
    int rank = sample_dims(spec, dims);
    for (int i = 0; i < rank; i++) count *= dims[i];
    ADD(s->constants, "%sint64%s %.*s = {", s->constants[0] ? ",\n" : "", rank ? spec + 1 : "",
        (int)name.n, name.p);
    for (int64_t i = 0; i < count; i++) ADD(s->constants, "%s%lld", i ? ", " : "", (long long)i);
    ADD(s->constants, "}");
}

/* The type that a text such as "int8[2,3]" begins with; UNDEFINED: none. */
static inline sn_dtype sample_integer(const char *spec) {
    if (strncmp(spec, "uint8[", 6) == 0) return SN_UINT8;
    if (strncmp(spec, "int8[", 5) == 0) return SN_INT8;
    if (strncmp(spec, "uint4[", 6) == 0) return SN_UINT4;
    if (strncmp(spec, "int4[", 5) == 0) return SN_INT4;
    return strncmp(spec, "int32[", 6) == 0 ? SN_INT32 : SN_UNDEFINED;
}

/* Constant random integers. */
static inline void sample_integers(sample *s, sni_str name, const char *spec) {
    int64_t dims[SN_MAX_RANK], count = 1;
    int rank = sample_dims(spec, dims), range = strstr(spec, "int4[") ? 16 : 256;
    int low = spec[0] == 'u' ? 0 : -range / 2;
    for (int i = 0; i < rank; i++) count *= dims[i];
    ADD(s->constants, "%s%s %.*s = {", s->constants[0] ? ",\n" : "", spec, (int)name.n, name.p);
    for (int64_t i = 0; i < count; i++)
        ADD(s->constants, "%s%d", i ? ", " : "",
            (int)(unit_random(&s->random) % (unsigned)range) + low);
    ADD(s->constants, "}");
}

/* A constant lower triangle of bools. */
static inline void sample_triangle(sample *s, sni_str name, const char *spec) {
    int64_t dims[SN_MAX_RANK];
    int rank = sample_dims(spec, dims);
    ADD(s->constants, "%sbool%s %.*s = {", s->constants[0] ? ",\n" : "", spec + 1, (int)name.n,
        name.p);
    for (int64_t i = 0; i < dims[rank - 2]; i++)
        for (int64_t j = 0; j < dims[rank - 1]; j++)
            ADD(s->constants, "%s%s", i || j ? ", " : "", j <= i ? "true" : "false");
    ADD(s->constants, "}");
}

/* "2x[...]" is an input twice over along its last axis, "x2[...]" one (of 4 axes) with each element
 * of that axis twice. Cuts the spec down to the input's own. */
static inline bool sample_doubled(sample *s, sni_str name, char *spec) {
    bool halves = strncmp(spec, "2x[", 3) == 0, pairs = strncmp(spec, "x2[", 3) == 0;
    int n = (int)name.n;
    if (!halves && !pairs) return false;
    memmove(spec, spec + 2, strlen(spec + 2) + 1);
    if (halves) {
        ADD(s->body, "%.*s = Concat <axis = -1> (%.*s_f, %.*s_f)\n", n, name.p, n, name.p, n,
            name.p);
        return true;
    }
    ADD(s->constants, "%sint64[1] ax_%.*s = {-1},\nint64[4] sh_%.*s = {0, 0, 0, -1}",
        s->constants[0] ? ",\n" : "", n, name.p, n, name.p);
    ADD(s->body,
        "u_%.*s = Unsqueeze(%.*s_f, ax_%.*s)\nc_%.*s = Concat <axis = -1> (u_%.*s, u_%.*s)\n", n,
        name.p, n, name.p, n, name.p, n, name.p, n, name.p, n, name.p);
    ADD(s->body, "%.*s = Reshape(c_%.*s, sh_%.*s)\n", n, name.p, n, name.p, n, name.p);
    return true;
}

/* Declares the value of a slot as an input or a constant, once. */
static inline void sample_capture(sample *s, const sni_pat *p) {
    const sni_rule_name *name = &s->rule->names[p->slot];
    char spec[256];
    if (s->made & 1u << p->slot) return;
    s->made |= 1u << p->slot;
    sample_spec(s, name->text, spec, sizeof spec);
    if (strchr(spec, '(')) {
        ADD(s->body, "%.*s = %s\n", (int)name->text.n, name->text.p, spec);
        return;
    }
    const char *colon = strchr(spec, ':');
    bool number = isdigit((unsigned char)spec[0]) && !strchr(spec, '[');
    if (colon || (number && p->kind == SNI_PAT_CONST)) { /* "uint8:128" or "0.5": a scalar */
        ADD(s->constants, "%s%.*s %.*s = {%s}", s->constants[0] ? ",\n" : "",
            colon ? (int)(colon - spec) : 5, colon ? spec : "float", (int)name->text.n,
            name->text.p, colon ? colon + 1 : spec);
        return;
    }
    if (p->kind == SNI_PAT_SCALAR) {
        ADD(s->constants, "%s%s %.*s = {%s}", s->constants[0] ? ",\n" : "",
            s->wide ? "float[1]" : "float", (int)name->text.n, name->text.p,
            spec[0] ? spec : "0.7");
        return;
    }
    if (!spec[0]) strcpy(spec, "[2,3,8]");
    if (strncmp(spec, "int64{", 6) == 0) {
        int count = 1;
        for (const char *c = spec; *c; c++) count += *c == ',';
        ADD(s->constants, "%sint64[%d] %.*s = %s", s->constants[0] ? ",\n" : "", count,
            (int)name->text.n, name->text.p, spec + 5);
        return;
    }
    if (spec[0] == 'A') {
        sample_numbers(s, name->text, spec);
        return;
    }
    if (spec[0] == 'L') {
        sample_triangle(s, name->text, spec);
        return;
    }
    if (p->kind == SNI_PAT_CONST && sample_integer(spec)) {
        sample_integers(s, name->text, spec);
        return;
    }
    bool filled = isdigit((unsigned char)spec[0]) && spec[1] == '[';
    if (p->kind == SNI_PAT_CONST || filled) {
        ADD(s->constants, "%s", s->constants[0] ? ",\n" : "");
        sample_type(s, spec);
        ADD(s->constants, " %.*s", (int)name->text.n, name->text.p);
        sample_contents(s, spec);
        return;
    }
    bool doubled = sample_doubled(s, name->text, spec);
    bool truth = strncmp(spec, "bool[", 5) == 0;
    sn_dtype dtype = sample_integer(spec) ? sample_integer(spec) : SN_FLOAT32;
    if (dtype != SN_FLOAT32) memmove(spec, strchr(spec, '['), strlen(strchr(spec, '[')) + 1);
    if (truth) {
        memmove(spec, spec + 4, strlen(spec + 4) + 1);
        ADD(s->constants, "%sfloat no_%.*s = {0}", s->constants[0] ? ",\n" : "", (int)name->text.n,
            name->text.p);
        ADD(s->body, "%.*s = Greater(%.*s_f, no_%.*s)\n", (int)name->text.n, name->text.p,
            (int)name->text.n, name->text.p, (int)name->text.n, name->text.p);
    }
    sample_input *in = &s->input[s->n_inputs++];
    assert_true(s->n_inputs <= SAMPLE_INPUTS);
    snprintf(in->name, sizeof in->name, "%.*s%s", (int)name->text.n, name->text.p,
             truth || doubled ? "_f" : "");
    in->positive = spec[0] == '+';
    in->dtype = dtype;
    in->rank = sample_dims(spec, in->dims);
    ADD(s->inputs, "%s%s%s %s", s->inputs[0] ? ", " : "",
        dtype == SN_UINT8  ? "uint8"
        : dtype == SN_INT8 ? "int8"
                           : "float",
        in->rank ? spec + in->positive : "", in->name);
}

static inline const sni_param *sample_param(const sni_op *op, sni_str name) {
    for (const sni_param *p = op->params; p && p->name; p++)
        if (sni_str_is(name, p->name)) return p;
    return NULL;
}

static inline void sample_attr(sample *s, const sni_op *op, const sni_pat_attr *a, char *out,
                               size_t size) {
    const sni_param *p = sample_param(op, a->name);
    char spec[128];
    if (!p) {
        s->impossible |= a->kind != SNI_PAT_ATTR_NAME;
        return;
    }
    const char *comma = out[0] ? ", " : "";
    int n = (int)a->name.n;
    switch (a->kind) {
    case SNI_PAT_ATTR_NUMBER:
        if (p->kind == SNI_ATTR_FLOAT)
            unit_append(out, size, "%s%.*s : float = %.9g", comma, n, a->name.p, a->number);
        else
            unit_append(out, size, "%s%.*s = %lld", comma, n, a->name.p, (long long)a->number);
        break;
    case SNI_PAT_ATTR_STRING:
        unit_append(out, size, "%s%.*s = \"%.*s\"", comma, n, a->name.p, (int)a->text.n, a->text.p);
        break;
    case SNI_PAT_ATTR_INTS:
        unit_append(out, size, "%s%.*s = [", comma, n, a->name.p);
        for (int i = 0; i < a->n_ints; i++)
            unit_append(out, size, "%s%lld", i ? ", " : "", (long long)a->ints[i]);
        unit_append(out, size, "]");
        break;
    default:
        sample_spec(s, s->rule->names[a->slot].text, spec, sizeof spec);
        if (spec[0]) unit_append(out, size, "%s%.*s = %s", comma, n, a->name.p, spec);
    }
}

static inline int sample_formals(const sni_op *op) {
    int n = 0;
    while (op->inputs[n].name) {
        if (op->inputs[n].flags & SNI_VARIADIC) return SNI_PAT_INPUTS;
        n++;
    }
    return n;
}

static inline void sample_value(sample *s, const sni_pat *p, char *out);

static inline bool sample_exposed(const sample *s, int slot) {
    for (int i = 0; i < s->rule->n_outputs; i++)
        if (slot >= 0 && s->rule->outputs[i].slot == slot) return true;
    return false;
}

static inline void sample_node(sample *s, const sni_pat *p, char *out) {
    const sni_op *op = p->ops[sample_choose(s, p->n_ops)];
    char in[SNI_PAT_INPUTS][32], attrs[512] = "";
    int formals = sample_formals(op), used = 0;
    for (int i = 0; i < p->n_in; i++) {
        strcpy(in[i], "\"\"");
        bool may = i < formals;
        if (!may && !p->in[i]->optional) s->impossible = true;
        if (may) sample_value(s, p->in[i], in[i]);
        if (strcmp(in[i], "\"\"") != 0) used = i + 1;
    }
    for (int i = 0; i < p->n_attrs; i++) sample_attr(s, op, &p->attrs[i], attrs, sizeof attrs);
    bool transpose = s->transposed && p->commutative;
    if (p->slot >= 0 && p->kind == SNI_PAT_NODE)
        sprintf(out, "%.*s", (int)s->rule->names[p->slot].text.n, s->rule->names[p->slot].text.p);
    else
        sprintf(out, "tmp%d", s->n_values++);
    bool root = p == s->rule->pattern;
    if (!root && !p->shared && !sample_exposed(s, p->slot))
        strcpy(s->interior[s->n_interior++], out);
    if (root) strcpy(out, "result");
    int outs = op->outputs[0].flags & SNI_VARIADIC ? 3 : p->out + 1; /* a Split is in three */
    for (int i = 0; i < p->out; i++) ADD(s->body, "%s_%d, ", out, i);
    ADD(s->body, "%s", out);
    for (int i = p->out + 1; i < outs; i++) ADD(s->body, ", %s_%d", out, i);
    ADD(s->body, " = %s%s%s", op->domain ? op->domain : "", op->domain ? "." : "", op->name);
    if (attrs[0]) ADD(s->body, " <%s>", attrs);
    ADD(s->body, " (");
    for (int i = 0; i < used; i++) ADD(s->body, "%s%s", i ? ", " : "", in[transpose ? 1 - i : i]);
    ADD(s->body, ")\n");
}

static inline void sample_value(sample *s, const sni_pat *p, char *out) {
    strcpy(out, "\"\"");
    if (p->optional && sample_choose(s, 2)) {
        s->partial = true;
        return;
    }
    switch (p->kind) {
    case SNI_PAT_ABSENT:
        return;
    case SNI_PAT_NODE:
        sample_node(s, p, out);
        return;
    case SNI_PAT_CHOICE:
        sample_value(s, p->in[sample_choose(s, p->n_in)], out);
        return;
    case SNI_PAT_NUMBER:
        sprintf(out, "tmp%d", s->n_values++);
        ADD(s->constants, "%s%s %s = {%.9g}", s->constants[0] ? ",\n" : "",
            s->wide ? "float[1]" : "float", out, p->number);
        return;
    case SNI_PAT_INTS:
        sprintf(out, "tmp%d", s->n_values++);
        ADD(s->constants, "%sint64[%d] %s = {", s->constants[0] ? ",\n" : "", p->n_ints, out);
        for (int i = 0; i < p->n_ints; i++)
            ADD(s->constants, "%s%lld", i ? ", " : "", (long long)p->ints[i]);
        ADD(s->constants, "}");
        return;
    default:
        sprintf(out, "%.*s", (int)s->rule->names[p->slot].text.n, s->rule->names[p->slot].text.p);
        if (p->kind != SNI_PAT_AGAIN)
            sample_capture(s, p);
        else if (p->out > 0)
            sprintf(out + strlen(out), "_%d", p->out);
    }
}

/* Writes the model of the current combination; `more` is a further output of the graph or NULL. */
static inline void sample_make(sample *s, const char *more) {
    char out[32];
    s->inputs[0] = s->constants[0] = s->body[0] = s->extra[0] = 0;
    s->n_emulated = s->n_values = s->n_interior = s->n_inputs = 0;
    s->made = 0;
    s->random = 42;
    s->impossible = s->partial = false;
    s->transposed = sample_choose(s, 2);
    s->wide = sample_choose(s, 2);
    sample_node(s, s->rule->pattern, out);
    for (int i = 0; i < s->rule->n_outputs; i++)
        if (s->rule->outputs[i].slot >= 0 && s->rule->outputs[i].out == 0 && !sample_choose(s, 2)) {
            sni_str name = s->rule->names[s->rule->outputs[i].slot].text;
            ADD(s->extra, ", %.*s", (int)name.n, name.p);
        }
    if (more) ADD(s->extra, ", %s", more);
    int n =
        snprintf(s->text, sizeof s->text,
                 "<ir_version: 11, opset_import: [\"\" : 25, \"com.microsoft\" : 1, \"ai.sinter\" "
                 ": 1]>\ng (%s) => (%s%s)\n<%s>\n{\n%s}\n",
                 s->inputs, "result", s->extra, s->constants, s->body);
    assert_true(n > 0 && (size_t)n < sizeof s->text);
}

#endif
