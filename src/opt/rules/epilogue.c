/* epilogue.c - an activation, as attributes of the node that it follows. */
#include "opt/rules/rules.h"

#include <float.h>

static float float_attr(const sni_node *n, const char *name, float otherwise) {
    const sni_attr *a = sni_node_attr(n, name);
    return a && a->kind == SNI_ATTR_FLOAT ? a->u.f : otherwise;
}

/* The number that input i is, or `otherwise` if it is left out; false if it is not a constant. */
static bool bound_of(const sni_graph *g, const sni_node *n, int32_t i, float otherwise,
                     float *out) {
    double v;
    *out = otherwise;
    if (i >= n->n_in || n->in[i] == SNI_NO_ID) return true;
    if (!sni_value_scalar(g, n->in[i], &v)) return false;
    *out = (float)v;
    return true;
}

bool sni_ending_of(const sni_graph *g, const sni_node *n, sni_ending *out) {
    static const char *const plain[] = {"Relu", "Sigmoid", "Tanh", "HardSwish", "Mish", "Softplus"};
    sni_str type = n->type;
    sni_ending e = {0};
    if (!n->op || n->domain.n) return false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (sni_str_is(type, plain[i])) e.name = plain[i];
    if (sni_str_is(type, "LeakyRelu"))
        e = (sni_ending){"LeakyRelu", 1, {float_attr(n, "alpha", 0.01f)}};
    if (sni_str_is(type, "HardSigmoid"))
        e = (sni_ending){
            "HardSigmoid", 2, {float_attr(n, "alpha", 0.2f), float_attr(n, "beta", 0.5f)}};
    if (sni_str_is(type, "Elu")) e = (sni_ending){"Elu", 1, {float_attr(n, "alpha", 1)}};
    if (sni_str_is(type, "Gelu")) {
        const sni_attr *how = sni_node_attr(n, "approximate");
        e.name = how && sni_str_is(how->u.s, "tanh") ? "FastGelu" : "Gelu";
    }
    if (sni_str_is(type, "Swish") && float_attr(n, "alpha", 1) == 1) e.name = "Silu";
    if (sni_str_is(type, "Clip") && bound_of(g, n, 1, -FLT_MAX, &e.v[0]) &&
        bound_of(g, n, 2, FLT_MAX, &e.v[1])) {
        e.name = "Clip";
        e.n = 2;
    }
    *out = e;
    return e.name != NULL;
}

sn_status sni_ending_attrs(const sni_ending *e, sni_arena *arena, sni_attr attrs[2],
                           sn_error *err) {
    attrs[0] = sni_attr_of_string("activation", e->name);
    attrs[1] = (sni_attr){.kind = SNI_ATTR_NONE};
    if (!e->n) return SN_OK;
    float *v = SNI_NEW_ARRAY(arena, float, e->n);
    if (!v) return sni_fail_memory(err);
    for (int i = 0; i < e->n; i++) v[i] = e->v[i];
    attrs[1] = (sni_attr){.name = SNI_STR("activation_params"),
                          .kind = SNI_ATTR_FLOATS,
                          .count = (size_t)e->n,
                          .u.floats = v};
    return SN_OK;
}

sn_status sni_bind_activation(sni_match *m, const char *name) {
    sni_ending e;
    sni_attr attrs[2];
    if (!sni_ending_of(m->g, sni_match_node(m, name), &e))
        return sni_fail(m->r->err, SN_INTERNAL, "the activation is no longer there");
    SN_TRY(sni_ending_attrs(&e, &m->r->store->arena, attrs, m->r->err));
    SN_TRY(sni_match_set_attr(m, "params", attrs[1]));
    return sni_match_set_attr(m, "act", attrs[0]);
}
