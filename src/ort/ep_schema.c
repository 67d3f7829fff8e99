/* ep_schema.c - what operators take, for plug-ins: OrtOpSchema, and the type variables of ports. */
#include "ort/ep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, TEXT = 48 };

struct OrtOpSchemaTypeConstraint {
    char name[TEXT];
    char types[MOST][TEXT]; /* "tensor(float)" */
    const char *type_list[MOST];
    size_t type_count;
    size_t inputs[MOST], outputs[MOST];
    size_t input_count, output_count;
};

typedef struct port {
    char name[TEXT], variable[TEXT];
} port;

struct OrtOpSchema {
    int since;
    port inputs[MOST], outputs[MOST];
    size_t input_count, output_count;
    OrtOpSchemaTypeConstraint *constraints;
    size_t constraint_count;
};

/* ---- The engine's descriptions ---- */

static bool find_operator(const char *domain, const char *op, sn_operator_info *out) {
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    for (size_t i = 0; sn_operator(i, out); i++)
        if (strcmp(out->domain, domain) == 0 && strcmp(out->name, op) == 0) return true;
    return false;
}

/* A word up to one of `ends`, without the marks of optional and variadic ports. */
static const char *take(const char *p, const char *ends, char out[TEXT]) {
    size_t n = 0;
    while (*p == ' ') p++;
    for (; *p && !strchr(ends, *p); p++)
        if (!strchr("[]. ", *p) && n + 1 < TEXT) out[n++] = *p;
    out[n] = 0;
    return p;
}

/* "X: T, [B]: T, Y...: T" */
static size_t read_ports(const char *p, port out[MOST]) {
    size_t count = 0;
    while (*p && count < MOST) {
        p = take(p, ":", out[count].name);
        if (*p) p = take(p + 1, ",", out[count].variable);
        if (*p) p++;
        count++;
    }
    return count;
}

bool ort_port_variable(const char *domain, const char *op, bool input, size_t index, char out[32]) {
    sn_operator_info info;
    port ports[MOST];
    if (!find_operator(domain, op, &info)) return false;
    size_t count = read_ports(input ? info.inputs : info.outputs, ports);
    if (!count) return false;
    const port *p = &ports[index < count ? index : count - 1];
    strncpy(out, p->variable, 31);
    out[31] = 0;
    return out[0] != 0;
}

/* ---- Schemas ---- */

static void type_text(const char *name, char out[TEXT]) {
    static const char *const names[][2] = {{"float32", "float"}, {"float64", "double"}};
    for (size_t i = 0; i < 2; i++)
        if (strcmp(name, names[i][0]) == 0) name = names[i][1];
    snprintf(out, TEXT, "tensor(%.32s)", name);
}

/* "T: float16 float32; I: int64" */
static const char *read_constraint(const char *p, OrtOpSchemaTypeConstraint *c) {
    char word[TEXT];
    p = take(p, ":", c->name);
    if (*p) p++;
    while (*p && *p != ';' && c->type_count < MOST) {
        while (*p == ' ') p++;
        size_t n = strcspn(p, " ;");
        if (n && n < TEXT) {
            memcpy(word, p, n);
            word[n] = 0;
            type_text(word, c->types[c->type_count]);
            c->type_list[c->type_count] = c->types[c->type_count];
            c->type_count++;
        }
        p += n;
    }
    return *p == ';' ? p + 1 : p;
}

static void connect(OrtOpSchema *s) {
    for (size_t k = 0; k < s->constraint_count; k++) {
        OrtOpSchemaTypeConstraint *c = &s->constraints[k];
        for (size_t i = 0; i < s->input_count; i++)
            if (strcmp(s->inputs[i].variable, c->name) == 0) c->inputs[c->input_count++] = i;
        for (size_t i = 0; i < s->output_count; i++)
            if (strcmp(s->outputs[i].variable, c->name) == 0) c->outputs[c->output_count++] = i;
    }
}

OrtStatusPtr ort_ep_GetOpSchema(const char *op, int version, const char *domain,
                                OrtOpSchema **out) {
    NEED(op);
    NEED(domain);
    NEED(out);
    sn_operator_info info;
    *out = NULL;
    int since = ort_since_version(strcmp(domain, "ai.onnx") ? domain : "", op, version);
    if (!find_operator(domain, op, &info) || !since) return NULL; /* not known: no failure */
    OrtOpSchema *s = calloc(1, sizeof *s);
    OrtOpSchemaTypeConstraint *c = calloc(MOST, sizeof *c);
    if (!s || !c) {
        free(s);
        free(c);
        return ort_fail_memory();
    }
    s->since = since;
    s->constraints = c;
    s->input_count = read_ports(info.inputs, s->inputs);
    s->output_count = read_ports(info.outputs, s->outputs);
    for (const char *p = info.types; *p && s->constraint_count < MOST;) {
        const char *next = read_constraint(p, &c[s->constraint_count++]);
        if (next == p) break;
        p = next;
    }
    connect(s);
    *out = s;
    return NULL;
}

void ort_ep_ReleaseOpSchema(OrtOpSchema *schema) {
    if (!schema) return;
    free(schema->constraints);
    free(schema);
}

/* ---- What plug-ins ask ---- */

#define TELL(slot, type, object, member, out_type)                  \
    OrtStatusPtr ort_ep_##slot(const type *object, out_type *out) { \
        NEED(object);                                               \
        NEED(out);                                                  \
        *out = object->member;                                      \
        return NULL;                                                \
    }
TELL(OpSchema_GetSinceVersion, OrtOpSchema, schema, since, int)
TELL(OpSchema_GetNumInputs, OrtOpSchema, schema, input_count, size_t)
TELL(OpSchema_GetNumOutputs, OrtOpSchema, schema, output_count, size_t)
TELL(OpSchema_GetTypeConstraintCount, OrtOpSchema, schema, constraint_count, size_t)
TELL(OpSchemaTypeConstraint_GetTypeParamName, OrtOpSchemaTypeConstraint, constraint, name,
     const char *)

static OrtStatus *check_index(const char *what, size_t index, size_t count) {
    return index < count ? NULL
                         : ort_fail(ORT_INVALID_ARGUMENT, "%s %zu of an operator that has %zu",
                                    what, index, count);
}

static const OrtOpSchemaTypeConstraint *constraint_of(const OrtOpSchema *s, const port *p) {
    for (size_t i = 0; i < s->constraint_count; i++)
        if (strcmp(s->constraints[i].name, p->variable) == 0) return &s->constraints[i];
    return NULL; /* a fixed type */
}

#define PORTS(side, list, count)                                                          \
    OrtStatusPtr ort_ep_OpSchema_Get##side##Name(const OrtOpSchema *schema, size_t index, \
                                                 const char **out) {                      \
        NEED(schema);                                                                     \
        NEED(out);                                                                        \
        ORT_TRY(check_index(#side, index, schema->count));                                \
        *out = schema->list[index].name;                                                  \
        return NULL;                                                                      \
    }                                                                                     \
    OrtStatusPtr ort_ep_OpSchema_Get##side##TypeConstraint(                               \
        const OrtOpSchema *schema, size_t index, const OrtOpSchemaTypeConstraint **out) { \
        NEED(schema);                                                                     \
        NEED(out);                                                                        \
        ORT_TRY(check_index(#side, index, schema->count));                                \
        *out = constraint_of(schema, &schema->list[index]);                               \
        return NULL;                                                                      \
    }
PORTS(Input, inputs, input_count)
PORTS(Output, outputs, output_count)

OrtStatusPtr ort_ep_OpSchema_GetTypeConstraint(const OrtOpSchema *schema, size_t index,
                                               const OrtOpSchemaTypeConstraint **out) {
    NEED(schema);
    NEED(out);
    ORT_TRY(check_index("type constraint", index, schema->constraint_count));
    *out = &schema->constraints[index];
    return NULL;
}

OrtStatusPtr
ort_ep_OpSchemaTypeConstraint_GetAllowedTypes(const OrtOpSchemaTypeConstraint *constraint,
                                              const char *const **out, size_t *count) {
    NEED(constraint);
    NEED(out);
    NEED(count);
    *out = constraint->type_list;
    *count = constraint->type_count;
    return NULL;
}

OrtStatusPtr
ort_ep_OpSchemaTypeConstraint_GetInputIndices(const OrtOpSchemaTypeConstraint *constraint,
                                              const size_t **out, size_t *count) {
    NEED(constraint);
    NEED(out);
    NEED(count);
    *out = constraint->inputs;
    *count = constraint->input_count;
    return NULL;
}

OrtStatusPtr
ort_ep_OpSchemaTypeConstraint_GetOutputIndices(const OrtOpSchemaTypeConstraint *constraint,
                                               const size_t **out, size_t *count) {
    NEED(constraint);
    NEED(out);
    NEED(count);
    *out = constraint->outputs;
    *count = constraint->output_count;
    return NULL;
}
