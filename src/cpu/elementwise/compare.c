/* compare.c - comparisons, logic, shifts and plain arithmetic on the loops of a tier. */
#include "cpu/elementwise/compare.h"

#include "cpu/core/cpu_ep.h"

static sn_dtype type_of(const sni_choice *c) {
    return c->in[0] && c->in[0]->kind == SN_KIND_TENSOR ? c->in[0]->dtype : SN_UNDEFINED;
}

#define BINARY(op)                                                        \
    static bool accepts_##op(const sni_choice *c) {                       \
        return c->n_in == 2 && sni_compare_kernels_get()->op[type_of(c)]; \
    }                                                                     \
    static sn_status run_##op(sni_kernel *k) {                            \
        return sni_map_binary(k, sni_compare_kernels_get()->op);          \
    }
SNI_COMPARE_BINARY(BINARY)
#undef BINARY

static bool shift_accepts(const sni_choice *c) {
    return sni_compare_kernels_get()->shift_left[type_of(c)];
}

static sn_status shift_run(sni_kernel *k) {
    const sni_attr *way = sni_node_attr(k->node, "direction");
    bool left = way && sni_str_is(way->u.s, "LEFT");
    return sni_map_binary(k, left ? sni_compare_kernels_get()->shift_left
                                  : sni_compare_kernels_get()->shift_right);
}

static bool relu_accepts(const sni_choice *c) {
    return sni_compare_kernels_get()->Relu[type_of(c)];
}

static sn_status relu_run(sni_kernel *k) {
    return sni_map_unary(k, sni_compare_kernels_get()->Relu);
}

static bool not_accepts(const sni_choice *c) {
    return sni_compare_kernels_get()->Not[type_of(c)];
}

static sn_status not_run(sni_kernel *k) {
    return sni_map_unary(k, sni_compare_kernels_get()->Not);
}

#define ENTRY(type) {.name = "compare", .op = #type, .accepts = accepts_##type, .run = run_##type},

const sni_impl sni_cpu_compare[] = {
    SNI_COMPARE_BINARY(ENTRY){
        .name = "shift", .op = "BitShift", .accepts = shift_accepts, .run = shift_run},
    {.name = "compare", .op = "Relu", .accepts = relu_accepts, .run = relu_run},
    {.name = "compare", .op = "Not", .accepts = not_accepts, .run = not_run},
    {0},
};
