/* upgrade.c - helpers of operators' upgrade functions. */
#include "ops/core/op.h"

#include "base/floats.h"

#include <math.h>

sni_attr sni_attr_of_int(const char *name, int64_t v) {
    return (sni_attr){.name = sni_str_of(name), .kind = SNI_ATTR_INT, .u.i = v};
}

sni_attr sni_attr_of_float(const char *name, float v) {
    return (sni_attr){.name = sni_str_of(name), .kind = SNI_ATTR_FLOAT, .u.f = v};
}

sni_attr sni_attr_of_string(const char *name, const char *v) {
    return (sni_attr){.name = sni_str_of(name), .kind = SNI_ATTR_STRING, .u.s = sni_str_of(v)};
}

int64_t sni_upgrade_int(const sni_upgrade *u, const char *name, int64_t otherwise) {
    const sni_attr *a = sni_node_attr(u->node, name);
    return a && a->kind == SNI_ATTR_INT ? a->u.i : otherwise;
}

static sn_status add_list(sni_upgrade *u, sn_dtype dtype, const void *v, size_t n, int32_t *out) {
    sni_const *c;
    sni_value *value;
    SN_TRY(sni_const_new(u->graph->store, dtype, 1, &(int64_t){(int64_t)n}, &c, u->err));
    if (n) memcpy(c->tensor.data, v, sni_tensor_bytes(&c->tensor));
    SN_TRY(sni_graph_add_const(u->graph, (sni_str){0}, c, &value, u->err));
    *out = value->id;
    return SN_OK;
}

sn_status sni_upgrade_ints(sni_upgrade *u, const int64_t *v, size_t n, int32_t *out) {
    return add_list(u, SN_INT64, v, n, out);
}

sn_status sni_upgrade_floats(sni_upgrade *u, const float *v, size_t n, int32_t *out) {
    return add_list(u, SN_FLOAT32, v, n, out);
}

/* Writes v as one element of any numeric type; integers saturate. */
static void write_scalar(sn_dtype dtype, double v, void *dst) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    if (dtype == SN_FLOAT32) {
        memcpy(dst, &(float){(float)v}, sizeof(float));
    } else if (dtype == SN_FLOAT64) {
        memcpy(dst, &v, sizeof v);
    } else if (f->cls == SNI_CLASS_S) {
        sni_narrow(dtype, &(float){(float)v}, dst, 1, true);
    } else if (f->cls == SNI_CLASS_U || f->cls == SNI_CLASS_B) {
        uint64_t most = f->bits == 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
        uint64_t n = !(v > 0) ? 0 : v >= (double)most ? most : (uint64_t)v;
        memcpy(dst, &n, f->width); /* little-endian */
    } else {
        int64_t most = (int64_t)(((uint64_t)1 << (f->bits - 1)) - 1), least = -most - 1;
        int64_t n = isnan(v)             ? 0
                    : v >= (double)most  ? most
                    : v <= (double)least ? least
                                         : (int64_t)v;
        memcpy(dst, &n, f->width);
    }
}

sn_status sni_upgrade_scalar(sni_upgrade *u, sn_dtype dtype, double v, int32_t *out) {
    if (dtype == SN_UNDEFINED) {
        /* The element type of input 0 is not known before inference: a float that CastLike turns
         * into whatever it is. */
        int32_t number, in[2];
        const sni_value *like =
            sni_graph_value(u->graph, u->node->n_in ? u->node->in[0] : SNI_NO_ID);
        if (!like) return sni_fail(u->err, SN_INVALID_MODEL, "input 0 is missing");
        if (like->type.kind == SN_KIND_TENSOR && like->type.dtype)
            return sni_upgrade_scalar(u, like->type.dtype, v, out);
        SN_TRY(sni_upgrade_scalar(u, SN_FLOAT64, v, &number));
        in[0] = number;
        in[1] = like->id;
        return sni_upgrade_insert(u, "CastLike", in, 2, NULL, 0, out);
    }
    sni_class cls = sni_dtype_get(dtype)->cls;
    if (cls == SNI_CLASS_T || cls == SNI_CLASS_C)
        return sni_fail(u->err, SN_INVALID_MODEL, "a number cannot be %s", sn_dtype_name(dtype));
    sni_const *c;
    sni_value *value;
    SN_TRY(sni_const_new(u->graph->store, dtype, 0, NULL, &c, u->err));
    write_scalar(dtype, v, c->tensor.data);
    SN_TRY(sni_graph_add_const(u->graph, (sni_str){0}, c, &value, u->err));
    *out = value->id;
    return SN_OK;
}

sn_status sni_upgrade_insert(sni_upgrade *u, const char *type, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int32_t n_attrs, int32_t *out) {
    sni_value *value;
    sni_node *n;
    SN_TRY(sni_graph_add_value(u->graph, (sni_str){0}, &value, u->err));
    SN_TRY(sni_graph_add_node(
        u->graph, u->node->id,
        &(sni_new_node){SNI_STR(""), sni_str_of(type), in, n_in, &value->id, 1}, &n, u->err));
    n->name = u->node->name;
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(u->err, SN_UNSUPPORTED, "operator %s is needed", type);
    n->version = sni_op_version(n->op);
    for (int32_t i = 0; i < n_attrs; i++) SN_TRY(sni_node_set_attr(u->graph, n, &attrs[i], u->err));
    SN_TRY(sni_node_bind(u->graph, n, u->err));
    *out = value->id;
    return SN_OK;
}

sn_status sni_upgrade_become(sni_upgrade *u, const char *type, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int32_t n_attrs) {
    SN_TRY(sni_node_resize_inputs(u->graph, u->node, n_in, u->err));
    for (int32_t i = 0; i < n_in; i++)
        SN_TRY(sni_node_set_input(u->graph, u->node, i, in[i], u->err));
    u->node->n_attrs = 0;
    u->node->domain = SNI_STR("");
    u->node->type = sni_str_of(type);
    for (int32_t i = 0; i < n_attrs; i++)
        SN_TRY(sni_node_set_attr(u->graph, u->node, &attrs[i], u->err));
    return SN_OK;
}

sn_status sni_upgrade_to_reshape(sni_upgrade *u, int32_t x, int32_t shape) {
    sni_attr exact = sni_attr_of_int("allowzero", 1);
    return sni_upgrade_become(u, "Reshape", (int32_t[]){x, shape}, 2, &exact, 1);
}

sn_status sni_upgrade_legacy_broadcast(sni_upgrade *u) {
    int64_t broadcast = sni_upgrade_int(u, "broadcast", 0);
    const sni_attr *axis = sni_node_attr(u->node, "axis");
    bool has_axis = broadcast && axis && axis->kind == SNI_ATTR_INT;
    int64_t first = has_axis ? axis->u.i : 0;
    sni_node_remove_attr(u->node, "broadcast");
    sni_node_remove_attr(u->node, "axis");
    if (!has_axis || u->node->n_in < 2) return SN_OK;
    /* B stands at axes [axis, axis + rank B) of A: it gets trailing axes of size 1. How many
     * depends on both ranks, so the new shape is computed from the shapes themselves. */
    int32_t in[3] = {0}, a_shape = 0, tail = 0, ones = 0, b_shape = 0;
    int32_t a = u->node->in[0], b = u->node->in[1], reshaped = 0;
    const sni_value *av = sni_graph_value(u->graph, a), *bv = sni_graph_value(u->graph, b);
    if (!av || !bv) return sni_fail(u->err, SN_INVALID_MODEL, "an input is missing");
    sni_attr start = sni_attr_of_int("start", first);
    SN_TRY(sni_upgrade_insert(u, "Shape", &a, 1, &start, 1, &a_shape)); /* from axis on */
    SN_TRY(sni_upgrade_insert(u, "Shape", &b, 1, NULL, 0, &b_shape));
    /* ones for the axes of A that follow B's: A's tail, from rank B on, divided by itself would
     * trap on 0; Slice then multiply by 0 and add 1 keeps it exact. */
    int32_t b_rank = 0, most = 0, zero = 0, one = 0, zeros = 0;
    SN_TRY(sni_upgrade_insert(u, "Shape", &b_shape, 1, NULL, 0, &b_rank)); /* [rank B] */
    SN_TRY(sni_upgrade_ints(u, &(int64_t){INT64_MAX}, 1, &most));
    in[0] = a_shape, in[1] = b_rank, in[2] = most;
    SN_TRY(sni_upgrade_insert(u, "Slice", in, 3, NULL, 0, &tail));
    SN_TRY(sni_upgrade_ints(u, &(int64_t){0}, 1, &zero));
    SN_TRY(sni_upgrade_ints(u, &(int64_t){1}, 1, &one));
    in[0] = tail, in[1] = zero;
    SN_TRY(sni_upgrade_insert(u, "Mul", in, 2, NULL, 0, &zeros));
    in[0] = zeros, in[1] = one;
    SN_TRY(sni_upgrade_insert(u, "Add", in, 2, NULL, 0, &ones));
    sni_attr concat_axis = sni_attr_of_int("axis", 0);
    in[0] = b_shape, in[1] = ones;
    SN_TRY(sni_upgrade_insert(u, "Concat", in, 2, &concat_axis, 1, &reshaped));
    in[0] = b, in[1] = reshaped;
    SN_TRY(sni_upgrade_insert(u, "Reshape", in, 2, NULL, 0, &reshaped));
    return sni_node_set_input(u->graph, u->node, 1, reshaped, u->err);
}
