/* Expand: a tensor broadcast to a shape. Tile: a tensor repeated along its axes. */
#include "base/checked.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

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
        if (!sni_dim_known(to) && from != to && !sni_list_is_size(c, &shape, j)) {
            dims[i] = from == 1 ? to : sni_dim_fresh(c->symbols); /* a run checks the number */
            continue;
        }
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
    sni_copy_box(
        k, &(sni_box){y->rank, y->dims, y->data, to, x->data, from, sni_dtype_width(x->dtype)});
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

enum { SMALL_BLOCK = 4096 }; /* bytes; what is copied is doubled up to here */

typedef struct tile_job {
    const sni_tensor *x;
    sni_tensor *y;
    int first; /* axis that is repeated */
    size_t width;
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK]; /* strides */
} tile_job;

/* Completes `times` blocks of which the first is there. */
static void repeat_block(unsigned char *first, size_t block, int64_t times) {
    int64_t most = (SMALL_BLOCK - 1) / (int64_t)block + 1;
    for (int64_t done = 1; done < times;) {
        int64_t n = done < most ? done : most;
        if (n > times - done) n = times - done;
        memcpy(first + (size_t)done * block, first, (size_t)n * block);
        done += n;
    }
}

/* The same for `bytes` that come from elsewhere, a constant at every call. */
static inline void spread_bytes(unsigned char *to, const unsigned char *from, size_t bytes,
                                int64_t times) {
    unsigned char row[16];
    memcpy(row, from, bytes);
    for (int64_t i = 0; i < times; i++) memcpy(to + (size_t)i * bytes, row, bytes);
}

static void spread_row(unsigned char *to, const unsigned char *from, size_t bytes, int64_t times) {
    switch (bytes) {
    case 1:
        memset(to, *from, (size_t)times);
        break;
    case 2:
        spread_bytes(to, from, 2, times);
        break;
    case 3:
        spread_bytes(to, from, 3, times);
        break;
    case 4:
        spread_bytes(to, from, 4, times);
        break;
    case 8:
        spread_bytes(to, from, 8, times);
        break;
    case 12:
        spread_bytes(to, from, 12, times);
        break;
    case 16:
        spread_bytes(to, from, 16, times);
        break;
    default:
        memcpy(to, from, bytes);
        repeat_block(to, bytes, times);
    }
}

/* The input's rows of one slice go into the corner of the output's, each repeated at once; then
 * each axis before, the last first, is completed by copies of what is there. */
static void tile_slice(const tile_job *j, int64_t slice) {
    const sni_tensor *x = j->x, *y = j->y;
    int last = x->rank - 1, rank = last - j->first;
    int64_t in = sni_tensor_span(x, j->first, x->rank), out = sni_tensor_span(y, j->first, y->rank);
    const unsigned char *src = sni_element(x->data, slice * in, j->width);
    unsigned char *dst = sni_element(y->data, slice * out, j->width);
    const int64_t *dims = x->dims + j->first, *from = j->from + j->first, *to = j->to + j->first;
    size_t bytes = (size_t)x->dims[last] * j->width;
    int64_t times = y->dims[last] / x->dims[last];
    sni_walk w;
    sni_walk_init(&w, rank, dims, 2, (const int64_t *[]){to, from});
    do {
        unsigned char *at = sni_element(dst, w.offset[0], j->width);
        const unsigned char *row = sni_element(src, w.offset[1], j->width);
        spread_row(at, row, bytes, times);
    } while (sni_walk_next(&w));
    for (int a = rank - 1; a >= 0; a--) {
        times = y->dims[j->first + a] / dims[a];
        if (times == 1) continue;
        sni_walk_init(&w, a, dims, 1, (const int64_t *[]){to});
        do
            repeat_block(sni_element(dst, w.offset[0], j->width),
                         (size_t)(dims[a] * to[a]) * j->width, times);
        while (sni_walk_next(&w));
    }
}

static void tile_slices(void *ctx, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) tile_slice(ctx, i);
}

/* Bytes of copies of all of the input, one after another. */
static void tile_bytes(void *ctx, int64_t begin, int64_t end) {
    const tile_job *j = ctx;
    int64_t whole = (int64_t)sni_tensor_bytes(j->x);
    unsigned char *to = j->y->data;
    for (int64_t at = begin; at < end;) {
        int64_t from = at % whole, n = whole - from < end - at ? whole - from : end - at;
        memcpy(to + at, (const unsigned char *)j->x->data + from, (size_t)n);
        at += n;
    }
}

static sn_status tile_ref(sni_kernel *k) {
    tile_job j = {.x = sni_in(k, 0), .y = sni_out(k, 0)};
    const sni_tensor *x = j.x;
    if (j.y->count == 0) return SN_OK;
    int repeated = 0;
    j.width = sni_dtype_width(x->dtype);
    j.first = x->rank;
    for (int i = x->rank - 1; i >= 0; i--) {
        if (j.y->dims[i] == x->dims[i]) continue;
        j.first = i;
        repeated++;
    }
    int64_t bytes = (int64_t)sni_tensor_bytes(j.y), slices = sni_tensor_span(x, 0, j.first);
    if (repeated == 0 || (repeated == 1 && slices == 1 && sni_tensor_bytes(x) >= SMALL_BLOCK)) {
        sni_share(k->threads, bytes, 1, tile_bytes, &j);
        return SN_OK;
    }
    while (j.first > 0 && bytes / slices < SMALL_BLOCK)
        slices = sni_tensor_span(x, 0, --j.first); /* too little for a slice of its own */
    sni_strides(x->rank, x->dims, j.from);
    sni_strides(j.y->rank, j.y->dims, j.to);
    sni_share(k->threads, slices, bytes / slices, tile_slices, &j);
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
