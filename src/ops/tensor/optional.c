/* Optional, OptionalGetElement, OptionalHasElement. At run time an optional is the value it holds,
 * or NONE. */
#include "ops/core/seq_util.h"
#include "ops/core/tensor_util.h"

typedef struct optional_params {
    const sni_type *type; /* of the element; NULL: that of the input */
} optional_params;

static sn_status optional_infer(sni_infer *c) {
    const optional_params *p = c->params;
    const sni_type *inner = sni_infer_given(c, 0) ? c->in[0] : p->type;
    if (!inner) return SNI_INFER_FAIL(c, "neither an input nor a type is given");
    return sni_infer_set_full_type(c, 0, &(sni_type){.kind = SN_KIND_OPTIONAL, .inner = inner});
}

static sn_status optional_ref(sni_kernel *k) {
    return k->n_in > 0 && k->in[0] ? sni_out_share(k, 0, k->in[0]) : SN_OK;
}

const sni_op sni_op_Optional = {
    .name = "Optional",
    .versions = SNI_VERSIONS(15),
    .inputs = SNI_FORMALS({"input", "V", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "O"}),
    .types = SNI_TYPE_VARS({"V", SNI_T_ALL}, {"O", SNI_T_OPTIONAL}),
    .params = SNI_PARAMS({"type", SNI_ATTR_TYPE, offsetof(optional_params, type)}),
    .params_size = sizeof(optional_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = optional_infer,
    .ref = optional_ref,
};

static sn_status get_element_infer(sni_infer *c) {
    const sni_type *t = c->in[0];
    if (t->kind == SN_KIND_OPTIONAL) t = t->inner;
    return t && t->kind != SN_KIND_NONE ? sni_infer_set_full_type(c, 0, t) : SN_OK;
}

static sn_status get_element_ref(sni_kernel *k) {
    if (k->in[0]->kind == SN_KIND_NONE) return SNI_KERNEL_FAIL(k, "the optional holds nothing");
    return sni_out_share(k, 0, k->in[0]);
}

const sni_op sni_op_OptionalGetElement = {
    .name = "OptionalGetElement",
    .versions = SNI_VERSIONS(15, 18),
    .inputs = SNI_FORMALS({"input", "O"}),
    .outputs = SNI_FORMALS({"output", "V"}),
    .types = SNI_TYPE_VARS({"O", SNI_T_ALL}, {"V", SNI_T_ALL}),
    .flags = SNI_OP_ALLOCATES,
    .infer = get_element_infer,
    .ref = get_element_ref,
};

static sn_status has_element_infer(sni_infer *c) {
    return sni_infer_set_shape(c, 0, 0, NULL);
}

static sn_status has_element_ref(sni_kernel *k) {
    *(uint8_t *)sni_out(k, 0)->data = k->n_in > 0 && k->in[0] && k->in[0]->kind != SN_KIND_NONE;
    return SN_OK;
}

const sni_op sni_op_OptionalHasElement = {
    .name = "OptionalHasElement",
    .versions = SNI_VERSIONS(15, 18),
    .inputs = SNI_FORMALS({"input", "O", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "bool"}),
    .types = SNI_TYPE_VARS({"O", SNI_T_ALL}),
    .infer = has_element_infer,
    .ref = has_element_ref,
};
