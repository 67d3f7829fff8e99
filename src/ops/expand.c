/* Expand: a tensor broadcast to a shape. Tile: a tensor repeated along its axes. */
#include "base/checked.h"
#include "ops/shape_util.h"
#include "ops/tensor_util.h"

#include <inttypes.h>

/* ---- Expand ---- */

static sn_status expand_infer(sni_infer *c) {
    sni_list shape;
    SN_TRY(sni_infer_list(c, 1, &shape));
    if (!shape.known || !sni_infer_shaped(c, 0)) return SN_OK;
    if (shape.count > SN_MAX_RANK)
        return SNI_INFER_FAIL(c, "shape has %" PRId64 " elements: more than %d", shape.count,
                              SN_MAX_RANK);
    int own = sni_infer_rank(c, 0), given = (int)shape.count, rank = own > given ? own : given;
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int a = i - (rank - own), j = i - (rank - given);
        int64_t v;
        if (j >= 0 && sni_list_int(&shape, j, &v) && v < 0)
            return SNI_INFER_FAIL(c, "shape has %" PRId64 " at %d", v, j);
        sni_dim from = a < 0 ? 1 : sni_infer_dim(c, 0, a);
        sni_dim to = j < 0 ? 1 : sni_list_dim(c, &shape, j);
        bool fits;
        dims[i] = sni_dim_broadcast(c->symbols, from, to, &fits);
        if (!fits)
            return SNI_INFER_FAIL(c, "axis %d of length %" PRId64 " does not expand to %" PRId64, a,
                                  from, to);
    }
    SN_TRY(sni_infer_set_shape(c, 0, rank, dims));
    const sni_dim *known;
    int32_t count;
    SN_TRY(sni_infer_dims(c, 0, &known, &count));
    if (!known || count != 1 || rank != 1 || !sni_dim_known(dims[0]) || dims[0] > SNI_LIST_MAX)
        return SN_OK;
    sni_dim list[SNI_LIST_MAX];
    for (int64_t j = 0; j < dims[0]; j++) list[j] = known[0];
    return sni_infer_set_dims(c, 0, (int32_t)dims[0], list);
}

static sn_status expand_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK];
    sni_broadcast_strides(x, y->rank, y->dims, from);
    sni_strides(y->rank, y->dims, to);
    sni_copy_box(k, y->rank, y->dims, y->data, to, x->data, from, sni_dtype_width(x->dtype));
    return SN_OK;
}

const sni_op sni_op_Expand = {
    .name = "Expand",
    .versions = SNI_VERSIONS(8, 13),
    .inputs = SNI_FORMALS({"input", "T"}, {"shape", "int64"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .infer = expand_infer,
    .ref = expand_ref,
};

/* ---- Tile ---- */

static sn_status tile_infer(sni_infer *c) {
    sni_list repeats;
    SN_TRY(sni_infer_list(c, 1, &repeats));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (repeats.known && repeats.count != rank)
        return SNI_INFER_FAIL(c, "%" PRId64 " repeats for a tensor of rank %d", repeats.count,
                              rank);
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int64_t v;
        if (!repeats.known) {
            dims[i] = sni_dim_fresh(c->symbols);
            continue;
        }
        if (sni_list_int(&repeats, i, &v) && v < 0)
            return SNI_INFER_FAIL(c, "repeats has %" PRId64 " at %d", v, i);
        sni_dim times = sni_list_dim(c, &repeats, i), length = sni_infer_dim(c, 0, i);
        if (sni_dim_known(times) && sni_dim_known(length) && !sni_mul_i64(times, length, &v))
            return sni_fail(c->err, SN_LIMIT, "%" PRId64 " times length %" PRId64 " is too large",
                            times, length);
        dims[i] = sni_dim_mul(c->symbols, length, times);
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* The input goes into the corner of the output; then each axis, the last first, is completed by
 * copies of what is there. */
static sn_status tile_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    if (y->count == 0) return SN_OK;
    size_t width = sni_dtype_width(x->dtype);
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK];
    sni_strides(x->rank, x->dims, from);
    sni_strides(y->rank, y->dims, to);
    sni_copy_box(k, x->rank, x->dims, y->data, to, x->data, from, width);
    for (int axis = x->rank - 1; axis >= 0; axis--) {
        int64_t times = y->dims[axis] / x->dims[axis];
        size_t block = (size_t)(x->dims[axis] * to[axis]) * width;
        if (times == 1) continue;
        SN_TRY(sni_poll(k));
        sni_walk w;
        sni_walk_init(&w, axis, x->dims, 1, (const int64_t *[]){to});
        do {
            unsigned char *first = sni_element(y->data, w.offset[0], width);
            for (int64_t done = 1; done < times;) {
                int64_t n = done < times - done ? done : times - done;
                memcpy(first + (size_t)done * block, first, (size_t)n * block);
                done += n;
            }
        } while (sni_walk_next(&w));
    }
    return SN_OK;
}

/* Version 1 repeats one axis: inputs are the data, how often, and which axis. */
static sn_status tile_upgrade(sni_upgrade *u) {
    if (u->from != 1 || u->node->n_in < 3) return SN_OK;
    sni_attr to = sni_attr_of_int("to", SN_INT64);
    int32_t shape, rank, one, ones, list, parts[3];
    SN_TRY(sni_upgrade_insert(u, "Shape", &u->node->in[0], 1, NULL, 0, &shape));
    SN_TRY(sni_upgrade_insert(u, "Shape", &shape, 1, NULL, 0, &rank));
    SN_TRY(sni_upgrade_ints(u, (const int64_t[]){1}, 1, &one));
    SN_TRY(sni_upgrade_insert(u, "Expand", (const int32_t[]){one, rank}, 2, NULL, 0, &ones));
    parts[0] = ones;
    for (int i = 1; i < 3; i++) {
        int32_t number;
        SN_TRY(sni_upgrade_insert(u, "Cast", &u->node->in[3 - i], 1, &to, 1, &number));
        SN_TRY(sni_upgrade_insert(u, "Reshape", (const int32_t[]){number, one}, 2, NULL, 0,
                                  &parts[i]));
    }
    SN_TRY(sni_upgrade_insert(u, "ScatterElements", parts, 3, NULL, 0, &list));
    SN_TRY(sni_node_set_input(u->graph, u->node, 1, list, u->err));
    return sni_node_resize_inputs(u->graph, u->node, 2, u->err);
}

const sni_op sni_op_Tile = {
    .name = "Tile",
    .versions = SNI_VERSIONS(1, 6, 13),
    .inputs = SNI_FORMALS({"input", "T"}, {"repeats", "int64"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .upgrade = tile_upgrade,
    .infer = tile_infer,
    .ref = tile_ref,
};
