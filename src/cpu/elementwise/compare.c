/* compare.c - comparisons, logic, shifts and plain arithmetic on the loops of a tier. */
#include "cpu/elementwise/compare.h"

#include "cpu/core/cpu_ep.h"

extern const sni_compare sni_compare_baseline;
#ifdef SNI_X86
extern const sni_compare sni_compare_avx2, sni_compare_avx512;
#endif

static const sni_compare *loops(void) {
#ifdef SNI_X86
    if (sni_cpu_isa() >= SNI_ISA_AVX512) return &sni_compare_avx512;
    if (sni_cpu_isa() >= SNI_ISA_AVX2) return &sni_compare_avx2;
#endif
    return &sni_compare_baseline;
}

static sn_dtype type_of(const sni_choice *c) {
    return c->in[0] && c->in[0]->kind == SN_KIND_TENSOR ? c->in[0]->dtype : SN_UNDEFINED;
}

#define BINARY(op)                                      \
    static bool accepts_##op(const sni_choice *c) {     \
        return c->n_in == 2 && loops()->op[type_of(c)]; \
    }                                                   \
    static sn_status run_##op(sni_kernel *k) {          \
        return sni_map_binary(k, loops()->op);          \
    }
SNI_COMPARE_BINARY(BINARY)
#undef BINARY

static bool shift_accepts(const sni_choice *c) {
    return loops()->shift_left[type_of(c)];
}

static sn_status shift_run(sni_kernel *k) {
    const sni_attr *way = sni_node_attr(k->node, "direction");
    bool left = way && sni_str_is(way->u.s, "LEFT");
    return sni_map_binary(k, left ? loops()->shift_left : loops()->shift_right);
}

static bool relu_accepts(const sni_choice *c) {
    return loops()->Relu[type_of(c)];
}

static sn_status relu_run(sni_kernel *k) {
    return sni_map_unary(k, loops()->Relu);
}

static bool not_accepts(const sni_choice *c) {
    return loops()->Not[type_of(c)];
}

static sn_status not_run(sni_kernel *k) {
    return sni_map_unary(k, loops()->Not);
}

#define ENTRY(type) {.name = "compare", .op = #type, .accepts = accepts_##type, .run = run_##type},

const sni_impl sni_cpu_compare[] = {
    SNI_COMPARE_BINARY(ENTRY){
        .name = "shift", .op = "BitShift", .accepts = shift_accepts, .run = shift_run},
    {.name = "compare", .op = "Relu", .accepts = relu_accepts, .run = relu_run},
    {.name = "compare", .op = "Not", .accepts = not_accepts, .run = not_run},
    {0},
};
