/* lowbit.c - products with weights that are dequantised by blocks along k: MatMulNBits, whose
 * weights stay in their bits. */
#include "opt/rules/rules.h"

#include "base/lengths.h"

/* A right operand: constants as they stand, (k, n) or (n, k). */
typedef struct weights {
    sni_const *q, *scales, *zeros; /* zeros NULL: 0 */
    bool by_rows;                  /* (k, n) */
    int bits;
    int64_t k, n, block, groups;
} weights;

/* Bits of an element; 0: not a type that MatMulNBits can hold. */
static int bits_of(sn_dtype dtype) {
    switch (dtype) {
    case SN_INT2:
    case SN_UINT2:
        return 2;
    case SN_INT4:
    case SN_UINT4:
        return 4;
    case SN_INT8:
    case SN_UINT8:
        return 8;
    default:
        return 0;
    }
}

static bool is_signed(sn_dtype dtype) {
    return dtype == SN_INT2 || dtype == SN_INT4 || dtype == SN_INT8;
}

/* The number of an element, whose type has a byte for each, as unsigned bits. */
static uint8_t number_of(const sni_const *c, int bits, uint8_t byte) {
    int flip = is_signed(c->tensor.dtype) ? 1 << (bits - 1) : 0;
    return (uint8_t)((byte ^ flip) & ((1 << bits) - 1));
}

static int64_t attr_int(const sni_match *m, const char *name, int64_t otherwise) {
    const sni_attr *a = sni_match_attr(m, name);
    return a && a->kind == SNI_ATTR_INT ? a->u.i : otherwise;
}

static bool has_shape(const sni_const *c, int64_t rows, int64_t columns) {
    return c->tensor.rank == 2 && c->tensor.dims[0] == rows && c->tensor.dims[1] == columns;
}

/* Reads the match's constants; false if they are no blocks along k. `by_rows`: k is axis 0. */
static bool read_weights(const sni_match *m, bool by_rows, weights *w) {
    enum { SHORTEST = 16 };
    *w = (weights){.q = sni_value_const(m->g, sni_match_value(m, "w")),
                   .scales = sni_value_const(m->g, sni_match_value(m, "s")),
                   .zeros = sni_value_const(m->g, sni_match_value(m, "z")),
                   .by_rows = by_rows,
                   .block = attr_int(m, "size", 0)};
    int64_t axis = attr_int(m, "axis", 1);
    if (!w->q || !w->scales || w->q->tensor.rank != 2) return false;
    w->bits = bits_of(w->q->tensor.dtype);
    w->k = w->q->tensor.dims[!by_rows];
    w->n = w->q->tensor.dims[by_rows];
    if (!w->bits || w->k < 1 || w->n < 1 || (axis + 2) % 2 != !by_rows) return false;
    if (w->block < SHORTEST || (w->block & (w->block - 1)) || w->block > INT32_MAX) return false;
    w->groups = sni_ceil_div(w->k, w->block);
    int64_t rows = by_rows ? w->groups : w->n, columns = by_rows ? w->n : w->groups;
    if (w->zeros &&
        (!has_shape(w->zeros, rows, columns) || w->zeros->tensor.dtype != w->q->tensor.dtype))
        return false;
    return has_shape(w->scales, rows, columns);
}

static bool is_float(sn_dtype dtype) {
    return dtype == SN_FLOAT32 || dtype == SN_FLOAT16 || dtype == SN_BFLOAT16;
}

static bool is_product(const sni_match *m, bool by_rows) {
    weights w;
    if (!read_weights(m, by_rows, &w)) return false;
    sn_dtype dtype = sni_match_type(m, "x")->dtype;
    return is_float(dtype) && w.scales->tensor.dtype == dtype;
}

static bool by_rows(sni_match *m) {
    return is_product(m, true);
}

static bool by_columns(sni_match *m) {
    return is_product(m, false);
}

static bool gemm_by_rows(const sni_match *m) {
    return attr_int(m, "t", 0) == 0;
}

static bool is_gemm(sni_match *m) {
    weights w;
    if (!is_product(m, gemm_by_rows(m)) || !read_weights(m, gemm_by_rows(m), &w)) return false;
    if (sni_match_value(m, "b") == SNI_NO_ID) return true;
    const sni_type *b = sni_match_type(m, "b");
    return b->has_shape && b->rank == 1 && b->dims[0] == w.n;
}

/* ---- Contents ---- */

/* Element p of column j of a constant whose axis of k has `depth`. */
static int64_t place(const weights *w, int64_t depth, int64_t j, int64_t p) {
    return w->by_rows ? p * w->n + j : j * depth + p;
}

/* Packs `depth` numbers of each column: column j begins at byte j * row. */
static void pack_numbers(const weights *w, const sni_const *c, const uint8_t *from, int64_t depth,
                         int64_t row, uint8_t *to) {
    const int64_t of_byte = 8 / w->bits;
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t p = 0; p < depth; p++) {
            uint8_t v = number_of(c, w->bits, from[place(w, depth, j, p)]);
            to[j * row + p / of_byte] |= (uint8_t)(v << p % of_byte * w->bits);
        }
}

static sn_status decode_numbers(sni_const *c, sn_error *err) {
    const weights *w = c->source;
    sni_borrow from;
    SN_TRY(sni_const_own_memory(c, err));
    memset(c->tensor.data, 0, sni_tensor_bytes(&c->tensor));
    SN_TRY(sni_const_borrow(w->q, false, &from, err));
    pack_numbers(w, w->q, from.tensor.data, w->k, w->groups * (w->block / 8 * w->bits),
                 c->tensor.data);
    sni_borrow_end(&from);
    return SN_OK;
}

static sn_status decode_scales(sni_const *c, sn_error *err) {
    const weights *w = c->source;
    const size_t size = sni_dtype_width(c->tensor.dtype);
    sni_borrow from;
    SN_TRY(sni_const_own_memory(c, err));
    SN_TRY(sni_const_borrow(w->scales, false, &from, err));
    const unsigned char *s = from.tensor.data;
    unsigned char *to = c->tensor.data;
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t g = 0; g < w->groups; g++, to += size)
            memcpy(to, s + (size_t)place(w, w->groups, j, g) * size, size);
    sni_borrow_end(&from);
    return SN_OK;
}

/* ---- Building ---- */

/* Zero points as MatMulNBits has them; none if all are in the middle, as it takes them to be. */
static sn_status build_zeros(sni_match *m, const weights *w) {
    const int64_t row = sni_ceil_div(w->groups * w->bits, 8), dims[] = {w->n, row};
    const uint8_t middle = (uint8_t)(1 << (w->bits - 1));
    const sni_tensor *z = w->zeros ? sni_match_const(m, "z") : NULL;
    bool all = w->zeros || is_signed(w->q->tensor.dtype);
    if (w->zeros && !z) return sni_fail(m->r->err, SN_INTERNAL, "zero points cannot be read");
    for (int64_t i = 0; z && all && i < z->count; i++)
        all = number_of(w->zeros, w->bits, ((const uint8_t *)z->data)[i]) == middle;
    if (all) return sni_match_set_value(m, "zp", SNI_NO_ID);
    void *data;
    SN_TRY(sni_match_new_const(m, "zp", SN_UINT8, 2, dims, &data)); /* zeros */
    if (z) pack_numbers(w, w->zeros, z->data, w->groups, row, data);
    return SN_OK;
}

static sn_status build(sni_match *m, bool rows) {
    weights *w = SNI_NEW(&m->r->store->arena, weights);
    if (!w) return sni_fail_memory(m->r->err);
    if (!read_weights(m, rows, w)) return sni_fail(m->r->err, SN_INTERNAL, "no blocks");
    const int64_t dims[] = {w->n, w->groups, w->block / 8 * w->bits};
    sni_tensor q = {0}, scales = {0};
    SN_TRY(sni_tensor_shape(&q, SN_UINT8, 3, dims, m->r->err));
    SN_TRY(sni_match_new_lazy(m, "wp", &q, decode_numbers, w));
    SN_TRY(sni_tensor_shape(&scales, w->scales->tensor.dtype, 2, dims, m->r->err));
    SN_TRY(sni_match_new_lazy(m, "sp", &scales, decode_scales, w));
    SN_TRY(build_zeros(m, w));
    SN_TRY(sni_match_set_number(m, "k", (double)w->k));
    SN_TRY(sni_match_set_number(m, "n", (double)w->n));
    return sni_match_set_number(m, "bits", w->bits);
}

static sn_status build_by_rows(sni_match *m) {
    return build(m, true);
}

static sn_status build_by_columns(sni_match *m) {
    return build(m, false);
}

static sn_status build_gemm(sni_match *m) {
    return build(m, gemm_by_rows(m));
}

#define BLOCKS "~DequantizeLinear<axis = @axis, block_size = @size>(%w, %s, %z?)"
#define PRODUCT(rest)                                                                         \
    "com.microsoft.MatMulNBits<K = #k, N = #n, bits = #bits, block_size = @size>(x, wp, sp, " \
    "zp" rest

const sni_rule sni_rules_lowbit[] = {
    {"matmul-blocks", "MatMul(x, " BLOCKS ")", PRODUCT(")"), .where = by_rows,
     .build = build_by_rows,
     .sample = "x=[N,3,40] %w=int4[40,6] %s=+[3,6] %z=int4[3,6] @axis=0 @size=16"
               "; x=[3,40] %w=uint4[40,5] %s=+[3,5] %z=uint4[3,5] @axis=0 @size=16"
               "; x=[3,32] %w=int8[32,5] %s=+[2,5] %z=int8[2,5] @axis=-2 @size=16"
               "; x=[32] %w=uint8[32,5] %s=+[1,5] %z=uint8[1,5] @axis=0 @size=32"},
    {"matmul-blocks-transposed", "MatMul(x, ~Transpose<perm = [1, 0]>(" BLOCKS "))", PRODUCT(")"),
     .where = by_columns, .build = build_by_columns,
     .sample = "x=[N,3,40] %w=int4[6,40] %s=+[6,3] %z=int4[6,3] @axis=1 @size=16"
               "; x=[3,64] %w=uint8[5,64] %s=+[5,1] %z=uint8[5,1] @axis=-1 @size=64"},
    {"gemm-blocks", "Gemm<alpha = 1, beta = 1, transA = 0, transB = @t>(x, " BLOCKS ", b?)",
     PRODUCT(", _, b)"), .where = is_gemm, .build = build_gemm,
     .sample = "x=[3,40] %w=int4[6,40] %s=+[6,3] %z=int4[6,3] b=[6] @t=1 @axis=1 @size=16"
               "; x=[3,40] %w=uint4[40,6] %s=+[3,6] %z=uint4[3,6] b=[6] @t=0 @axis=0 @size=16"},
    {0},
};
