/* GatherBlockQuantized: slices of a table that is stored in few bits, with a scale and perhaps a
 * zero point for each block along one axis. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/convert.h"
#include "ops/quant/nbits.h"
#include "ops/core/tensor_util.h"

enum { GRAIN = 4096 }; /* elements worth a thread */

typedef struct table_params {
    int64_t gather_axis, quantize_axis, block_size, bits;
} table_params;

#define DATA \
    (SNI_T(SN_INT4) | SNI_T(SN_UINT4) | SNI_T(SN_UINT8) | SNI_T_FLOAT8 | SNI_T(SN_FLOAT4E2M1))

/* Elements of the last axis in one element of the tensor: bytes hold several. */
static int64_t packing(const table_params *p, sn_dtype dtype) {
    return dtype == SN_UINT8 ? 8 / p->bits : 1;
}

static bool is_float_table(sn_dtype dtype) {
    return sni_dtype_get(dtype)->cls == SNI_CLASS_S;
}

static sn_status check_params(sni_infer *c) {
    const table_params *p = c->params;
    sn_dtype dtype = c->in[0]->dtype;
    if (dtype == SN_UINT8 && p->bits != 2 && p->bits != 4 && p->bits != 8)
        return SNI_INFER_FAIL(c, "bits is %lld, not 2, 4 or 8", (long long)p->bits);
    bool whole = p->block_size == 0 && dtype && is_float_table(dtype);
    if (!whole && (p->block_size < 16 || (p->block_size & (p->block_size - 1))))
        return SNI_INFER_FAIL(c, "block_size is %lld, not a power of two from 16 on",
                              (long long)p->block_size);
    if (dtype && is_float_table(dtype) && sni_infer_given(c, 3))
        return SNI_INFER_FAIL(c, "a table of %s has no zero points", sn_dtype_name(dtype));
    return SN_OK;
}

static sn_status table_infer(sni_infer *c) {
    const table_params *p = c->params;
    SN_TRY(check_params(c));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0), gather, quantize, n = 0;
    SN_TRY(sni_infer_axis(c, p->gather_axis, rank, &gather));
    SN_TRY(sni_infer_axis(c, p->quantize_axis, rank, &quantize));
    if (c->in[0]->dtype == SN_UINT8 && gather != 0)
        return SNI_INFER_FAIL(c, "bytes are gathered along axis %d, not 0", gather);
    if (!sni_infer_shaped(c, 1)) return SN_OK;
    sni_dim dims[2 * SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        if (i == gather) {
            for (int j = 0; j < sni_infer_rank(c, 1); j++) dims[n++] = sni_infer_dim(c, 1, j);
            continue;
        }
        dims[n] = sni_infer_dim(c, 0, i);
        if (i == rank - 1 && c->in[0]->dtype)
            dims[n] = sni_dim_mul(c->symbols, dims[n], packing(p, c->in[0]->dtype));
        n++;
    }
    return sni_infer_set_shape(c, 0, n, dims);
}

/* The table as (outer, rows, inner), where rows are gathered. Scales and zero points are read where
 * they lie: a table has many more than one call needs. */
typedef struct table {
    const sni_tensor *data, *indices, *scales;
    const sni_tensor *zeros; /* NULL: `middle` everywhere */
    int64_t zero_columns;    /* of a row of zero points, ... */
    int64_t zero_bytes;      /* ... and its bytes where they are packed */
    float middle;
    int bits; /* of packed bytes; 0: one element each */
    int rank;
    int64_t dims[SN_MAX_RANK]; /* with bytes unpacked */
    int64_t scale_strides[SN_MAX_RANK];
    int quantize_axis;
    int64_t block, rows, inner;
    int64_t line; /* neighbours that are gathered together: the last axis, or 1 */
    float *y;
} table;

static float number_at(const sni_tensor *t, int64_t i) {
    float v;
    if (t->dtype == SN_FLOAT32) return ((const float *)t->data)[i];
    sni_convert(t->dtype, sni_element(t->data, i, sni_dtype_width(t->dtype)), SN_FLOAT32, &v, 1,
                NULL);
    return v;
}

static float zero_at(const table *t, int64_t at) {
    if (!t->zeros) return t->middle;
    if (!t->bits) return number_at(t->zeros, at);
    const uint8_t *row = (const uint8_t *)t->zeros->data + at / t->zero_columns * t->zero_bytes;
    return (float)sni_packed_at(row, t->bits, at % t->zero_columns);
}

/* Position of the scale of element i. */
static int64_t scale_at(const table *t, int64_t i) {
    int64_t at = 0;
    for (int axis = t->rank - 1; axis >= 0; axis--) {
        int64_t x = i % t->dims[axis];
        i /= t->dims[axis];
        at += (axis == t->quantize_axis ? x / t->block : x) * t->scale_strides[axis];
    }
    return at;
}

/* Elements [from, from + n) as they are stored. */
static void read_numbers(const table *t, int64_t from, int64_t n, float *y) {
    const uint8_t *q = t->data->data;
    if (!t->bits) {
        sni_convert(t->data->dtype, sni_element(q, from, 1), SN_FLOAT32, y, (size_t)n, NULL);
        return;
    }
    if (t->bits == 4 && from % 2 == 0) {
        for (int64_t i = 0; i < n; i++) y[i] = (float)(q[(from + i) / 2] >> i % 2 * 4 & 15);
        return;
    }
    for (int64_t i = 0; i < n; i++) y[i] = (float)sni_packed_at(q, t->bits, from + i);
}

/* One line, whose first element is number `from` of the table. */
static void gather_line(const table *t, int64_t from, float *y) {
    const int64_t at = scale_at(t, from), step = t->scale_strides[t->rank - 1];
    const bool blocks = t->quantize_axis == t->rank - 1;
    read_numbers(t, from, t->line, y);
    for (int64_t i = 0, g = 0; i < t->line; g++) {
        int64_t end = blocks ? i + t->block : i + 1;
        float scale = number_at(t->scales, at + g * step), zero = zero_at(t, at + g * step);
        if (end > t->line) end = t->line;
        for (; i < end; i++) y[i] = (y[i] - zero) * scale;
    }
}

/* Lines [begin, end) of the output; an index outside the table gives zeros. */
static void gather_lines(void *ctx, int64_t begin, int64_t end) {
    const table *t = ctx;
    const int64_t lines = t->inner / t->line, count = t->indices->count;
    for (int64_t i = begin; i < end; i++) {
        int64_t slice = i / lines, row = sni_index_at(t->indices, slice % count);
        float *y = t->y + i * t->line;
        if (row < 0) row += t->rows;
        if (row < 0 || row >= t->rows)
            memset(y, 0, (size_t)t->line * sizeof *y);
        else
            gather_line(t, (slice / count * t->rows + row) * t->inner + i % lines * t->line, y);
    }
}

/* Shape of the scales: that of the data, blocks along one axis. Tables of floats may have one scale
 * for all of another axis. */
static sn_status plan_scales(sni_kernel *k, table *t) {
    const sni_tensor *scales = sni_in(k, 2);
    bool floats = is_float_table(t->data->dtype);
    if (scales->rank != t->rank)
        return SNI_KERNEL_FAIL(k, "scales have rank %d and the data %d", scales->rank, t->rank);
    sni_strides(t->rank, scales->dims, t->scale_strides);
    for (int i = 0; i < t->rank; i++) {
        int64_t size = t->dims[i];
        if (i == t->quantize_axis) size = size / t->block + (size % t->block != 0);
        if (floats && i != t->quantize_axis && scales->dims[i] == 1)
            t->scale_strides[i] = 0;
        else if (scales->dims[i] != size)
            return SNI_KERNEL_FAIL(k, "scales have size %lld along axis %d where %lld are needed",
                                   (long long)scales->dims[i], i, (long long)size);
    }
    t->scales = scales;
    return SN_OK;
}

/* One zero point for each scale; those of bytes are packed along the last axis. */
static sn_status plan_zeros(sni_kernel *k, table *t) {
    const sni_tensor *zeros = sni_in(k, 3), *scales = sni_in(k, 2);
    if (t->bits) t->middle = (float)(1 << (t->bits - 1));
    if (!zeros) return SN_OK;
    int64_t columns = scales->dims[t->rank - 1], rows = columns ? scales->count / columns : 0;
    int64_t row_size = t->bits ? (columns * t->bits + 7) / 8 : columns;
    if (zeros->count != rows * row_size)
        return SNI_KERNEL_FAIL(k, "%lld zero points for %lld scales", (long long)zeros->count,
                               (long long)scales->count);
    t->zeros = zeros;
    t->zero_columns = columns;
    t->zero_bytes = row_size;
    return SN_OK;
}

static sn_status table_ref(sni_kernel *k) {
    const table_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    table t = {.data = sni_in(k, 0), .indices = sni_in(k, 1), .inner = 1};
    int64_t gather = 0, quantize = 0;
    void *out;
    t.rank = t.data->rank;
    SN_TRY(sni_wrap_index(k, "gather_axis", p->gather_axis, t.rank, &gather));
    SN_TRY(sni_wrap_index(k, "quantize_axis", p->quantize_axis, t.rank, &quantize));
    t.quantize_axis = (int)quantize;
    if (t.data->dtype == SN_UINT8) t.bits = (int)p->bits;
    for (int i = 0; i < t.rank; i++) t.dims[i] = t.data->dims[i];
    t.dims[t.rank - 1] *= packing(p, t.data->dtype);
    t.block = p->block_size ? p->block_size : t.dims[quantize] > 0 ? t.dims[quantize] : 1;
    t.rows = t.dims[gather];
    for (int i = (int)gather + 1; i < t.rank; i++) t.inner *= t.dims[i];
    if (y->count == 0) return SN_OK;
    SN_TRY(plan_scales(k, &t));
    SN_TRY(plan_zeros(k, &t));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &out));
    t.y = out;
    t.line = gather < t.rank - 1 ? t.dims[t.rank - 1] : 1;
    sni_parallel_for(k->threads, y->count / t.line, GRAIN / t.line + 1, gather_lines, &t);
    sni_out_done(k, y, SN_FLOAT32, out);
    return SN_OK;
}

#define FIELD(f) offsetof(table_params, f)

const sni_op sni_op_ms_GatherBlockQuantized = {
    .name = "GatherBlockQuantized",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"data", "T1"}, {"indices", "Tind"}, {"scales", "T2"},
                          {"zero_points", "T1", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", DATA}, {"T2", SNI_T(SN_FLOAT32) | SNI_T_HALVES},
                           {"Tind", SNI_T_INDEX}),
    .params = SNI_PARAMS({"gather_axis", SNI_ATTR_INT, FIELD(gather_axis)},
                         {"quantize_axis", SNI_ATTR_INT, FIELD(quantize_axis), .number = 1},
                         {"block_size", SNI_ATTR_INT, FIELD(block_size), .number = 128},
                         {"bits", SNI_ATTR_INT, FIELD(bits), .number = 4}),
    .params_size = sizeof(table_params),
    .infer = table_infer,
    .ref = table_ref,
};
