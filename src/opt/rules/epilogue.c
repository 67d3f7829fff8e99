/* epilogue.c - an activation, as attributes of the node that it follows. */
#include "opt/rules/rules.h"

#include <float.h>

typedef struct activation {
    const char *name;
    int n;
    float v[2];
} activation;

static float float_attr(const sni_node *n, const char *name, float otherwise) {
    const sni_attr *a = sni_node_attr(n, name);
    return a && a->kind == SNI_ATTR_FLOAT ? a->u.f : otherwise;
}

static activation read_activation(const sni_match *m, const sni_node *n) {
    sni_str type = n->type;
    if (sni_str_is(type, "LeakyRelu"))
        return (activation){"LeakyRelu", 1, {float_attr(n, "alpha", 0.01f)}};
    if (sni_str_is(type, "HardSigmoid"))
        return (activation){
            "HardSigmoid", 2, {float_attr(n, "alpha", 0.2f), float_attr(n, "beta", 0.5f)}};
    if (sni_str_is(type, "Elu")) return (activation){"Elu", 1, {float_attr(n, "alpha", 1)}};
    if (sni_str_is(type, "Gelu")) {
        const sni_attr *how = sni_node_attr(n, "approximate");
        return (activation){.name = how && sni_str_is(how->u.s, "tanh") ? "FastGelu" : "Gelu"};
    }
    if (sni_str_is(type, "Swish")) return (activation){.name = "Silu"};
    if (sni_str_is(type, "Clip")) {
        bool low = sni_match_value(m, "low") != SNI_NO_ID;
        bool high = sni_match_value(m, "high") != SNI_NO_ID;
        return (activation){"Clip",
                            2,
                            {low ? (float)sni_match_number(m, "low") : -FLT_MAX,
                             high ? (float)sni_match_number(m, "high") : FLT_MAX}};
    }
    return (activation){.name = n->op->name};
}

sn_status sni_bind_activation(sni_match *m, const char *name) {
    activation a = read_activation(m, sni_match_node(m, name));
    sni_attr params = {.kind = SNI_ATTR_NONE};
    if (a.n) {
        float *v = SNI_NEW_ARRAY(&m->r->store->arena, float, a.n);
        if (!v) return sni_fail_memory(m->r->err);
        for (int i = 0; i < a.n; i++) v[i] = a.v[i];
        params = (sni_attr){.kind = SNI_ATTR_FLOATS, .count = (size_t)a.n, .u.floats = v};
    }
    SN_TRY(sni_match_set_attr(m, "params", params));
    return sni_match_set_attr(m, "act", sni_attr_of_string("activation", a.name));
}
