/* fit.c - weights in fewer bits: scales, zero points and numbers for them. */
#include "quantize/fit.h"

#include "base/threadpool.h"

#include <math.h>
#include <stdlib.h>

/* ---- Rows ---- */

typedef struct gathering {
    const sni_qlayer *l;
    const float *from;
    float *rows;
} gathering;

static void gather_rows(void *ctx, int64_t begin, int64_t end) {
    const gathering *g = ctx;
    const sni_qlayer *l = g->l;
    for (int64_t r = begin; r < end; r++)
        for (int64_t i = 0; i < l->k; i++)
            g->rows[r * l->k + i] = g->from[l->by_rows ? i * l->n + r : r * l->k + i];
}

sn_status sni_q_rows(const sni_quantizer *q, const sni_qlayer *l, float **rows, sn_error *err) {
    gathering g = {l, sni_q_floats(q, l->w, NULL), NULL};
    if (!g.from) return sni_fail(err, SN_IO, "layer '%s': its weights cannot be read", l->name);
    g.rows = malloc((size_t)(l->n * l->k) * sizeof(float));
    if (!g.rows) return sni_fail_memory(err);
    sni_parallel_for(q->o.threads, l->n, 64, gather_rows, &g);
    *rows = g.rows;
    return SN_OK;
}

static sn_status check_finite(const sni_qlayer *l, const float *rows, sn_error *err) {
    for (int64_t i = 0; i < l->n * l->k; i++)
        if (!isfinite(rows[i]))
            return sni_fail(err, SN_BAD_DATA, "layer '%s': a weight is NaN or infinite", l->name);
    return SN_OK;
}

/* ---- 8 bits: a scale for each output ---- */

typedef struct bytes_fit {
    const sni_qlayer *l;
    const float *rows;
    int levels;
    int8_t *data;
    float *scales;
} bytes_fit;

static void fit_bytes(void *ctx, int64_t begin, int64_t end) {
    const bytes_fit *f = ctx;
    int64_t n = f->l->n, k = f->l->k;
    for (int64_t r = begin; r < end; r++) {
        const float *w = f->rows + r * k;
        float largest = 0;
        for (int64_t i = 0; i < k; i++) largest = fmaxf(largest, fabsf(w[i]));
        float scale = largest > 1e-15f ? largest / (float)f->levels : 1e-15f;
        f->scales[r] = scale;
        for (int64_t i = 0; i < k; i++) {
            float v = rintf(w[i] / scale);
            v = fminf(fmaxf(v, (float)-f->levels), (float)f->levels);
            f->data[f->l->reads_rows ? i * n + r : r * k + i] = (int8_t)v;
        }
    }
}

static double error_of_bytes(const bytes_fit *f) {
    double error = 0, size = 0;
    int64_t n = f->l->n, k = f->l->k;
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < k; i++) {
            double w = (double)f->rows[r * k + i];
            int8_t held = f->data[f->l->reads_rows ? i * n + r : r * k + i];
            double d = (double)held * (double)f->scales[r] - w;
            error += d * d;
            size += w * w;
        }
    return size > 0 ? sqrt(error / size) : 0;
}

static sn_status make_bytes(sni_quantizer *q, sni_qlayer *l, const float *rows, sni_qweights *out,
                            sn_error *err) {
    const sni_tensor *w = &q->base->values[l->w]->constant->tensor;
    int64_t turned[] = {l->reads_rows ? l->k : l->n, l->reads_rows ? l->n : l->k};
    const int64_t *dims = l->kind == SNI_Q_CONV ? w->dims : turned;
    sni_qweights made = {0};
    SN_TRY(sni_const_new(q->store, SN_INT8, w->rank, dims, &made.data, err));
    SN_TRY(sni_const_new(q->store, SN_FLOAT32, 1, &l->n, &made.scales, err));
    SN_TRY(sni_const_new(q->store, SN_INT8, 1, &l->n, &made.zeros, err));
    memset(made.zeros->tensor.data, 0, (size_t)l->n);
    bytes_fit f = {l, rows, q->weight_levels, made.data->tensor.data, made.scales->tensor.data};
    sni_parallel_for(q->o.threads, l->n, 16, fit_bytes, &f);
    made.error = error_of_bytes(&f);
    made.bytes = (uint64_t)(l->n * l->k + l->n * 5);
    *out = made;
    return SN_OK;
}

/* ---- Blocks of few bits ---- */

static double block_error(const float *w, const float *weight, int64_t count, int levels,
                          float scale, int zero, double sums[2]) {
    double error = 0;
    sums[0] = sums[1] = 0;
    for (int64_t i = 0; i < count; i++) {
        float u = weight ? weight[i] : 1;
        float v = fminf(fmaxf(rintf(w[i] / scale) + (float)zero, 0), (float)(levels - 1));
        float step = v - (float)zero, d = w[i] - step * scale;
        error += (double)(u * d * d);
        sums[0] += (double)(u * step * w[i]);
        sums[1] += (double)(u * step * step);
    }
    return error;
}

void sni_q_fit_block(const float *w, const float *weight, int64_t count, int levels, float *scale,
                     int *zero) {
    enum { TRIES = 12 };
    float low = 0, high = 0;
    double best = INFINITY, sums[2];
    *scale = 1e-8f;
    *zero = levels / 2;
    for (int64_t i = 0; i < count; i++) {
        low = fminf(low, w[i]);
        high = fmaxf(high, w[i]);
    }
    if (!(high - low > 1e-12f)) return;
    for (int t = 0; t < TRIES; t++) {
        float part = 1 - 0.04f * (float)t, s = (high - low) * part / (float)(levels - 1);
        int z = (int)fminf(fmaxf(rintf(-low * part / s), 0), (float)(levels - 1));
        for (int turn = 0; turn < 2; turn++) {
            double error = block_error(w, weight, count, levels, s, z, sums);
            if (error < best) {
                best = error;
                *scale = s;
                *zero = z;
            }
            if (!(sums[1] > 0) || !(sums[0] > 0)) break;
            s = (float)(sums[0] / sums[1]); /* the best for these numbers */
        }
    }
}

typedef struct blocks_fit {
    const sni_qlayer *l;
    const float *rows;
    const sni_qblocks *b;
} blocks_fit;

static void fit_blocks(void *ctx, int64_t begin, int64_t end) {
    const blocks_fit *f = ctx;
    const sni_qblocks *b = f->b;
    int64_t k = f->l->k;
    for (int64_t r = begin; r < end; r++)
        for (int64_t g = 0; g < b->groups; g++) {
            int64_t at = g * b->size, count = k - at < b->size ? k - at : b->size;
            const float *w = f->rows + r * k + at;
            float scale;
            int zero;
            sni_q_fit_block(w, NULL, count, 1 << b->bits, &scale, &zero);
            sni_q_blocks_set(b, r, g, scale, zero);
            for (int64_t i = 0; i < count; i++)
                sni_q_blocks_put(b, r, at + i, w[i] / scale + (float)zero);
        }
}

void sni_q_blocks_set(const sni_qblocks *b, int64_t row, int64_t group, float scale, int zero) {
    int of_byte = 8 / b->bits;
    uint8_t *z = &b->zeros[row * b->zero_row + group / of_byte];
    *z |= (uint8_t)(zero << group % of_byte * b->bits);
    b->scales[row * b->groups + group] = scale;
}

float sni_q_blocks_put(const sni_qblocks *b, int64_t row, int64_t i, float v) {
    int of_byte = 8 / b->bits;
    v = fminf(fmaxf(rintf(v), 0), (float)((1 << b->bits) - 1));
    b->data[row * b->data_row + i / of_byte] |= (uint8_t)((int)v << i % of_byte * b->bits);
    return v;
}

int sni_q_bits(const sni_qlayer *l, sn_quantize_to precision) {
    if (precision == SN_QUANTIZE_TO_INT8 || precision == SN_QUANTIZE_TO_INT8_DYNAMIC) return 8;
    return precision == SN_QUANTIZE_TO_INT2 && l->kind != SNI_Q_GATHER ? 2 : 4;
}

sn_status sni_q_blocks_new(sni_quantizer *q, const sni_qlayer *l, sn_quantize_to precision,
                           sni_qblocks *b, sni_qweights *out, sn_error *err) {
    bool table = l->kind == SNI_Q_GATHER;
    *b = (sni_qblocks){.bits = sni_q_bits(l, precision)};
    b->size = q->o.block_size;
    while (table && l->k % b->size) b->size /= 2;
    b->groups = (l->k + b->size - 1) / b->size;
    b->data_row = (table ? l->k : b->groups * b->size) * b->bits / 8;
    b->zero_row = (b->groups * b->bits + 7) / 8;
    const int64_t block = b->size * b->bits / 8, flat[] = {l->n, b->data_row};
    const int64_t dims[] = {l->n, b->groups, block}, zero_dims[] = {l->n, b->zero_row};
    sni_qweights w = {0};
    SN_TRY(sni_const_new(q->store, SN_UINT8, table ? 2 : 3, table ? flat : dims, &w.data, err));
    SN_TRY(sni_const_new(q->store, SN_FLOAT32, 2, dims, &w.scales, err));
    SN_TRY(sni_const_new(q->store, SN_UINT8, 2, zero_dims, &w.zeros, err));
    b->data = w.data->tensor.data;
    b->scales = w.scales->tensor.data;
    b->zeros = w.zeros->tensor.data;
    memset(b->data, 0, sni_tensor_bytes(&w.data->tensor));
    memset(b->zeros, 0, sni_tensor_bytes(&w.zeros->tensor));
    w.bytes = (uint64_t)(l->n * (b->data_row + b->zero_row + 4 * b->groups));
    *out = w;
    return SN_OK;
}

double sni_q_blocks_error(const sni_qblocks *b, const sni_qlayer *l, const float *rows) {
    double error = 0, size = 0;
    int of_byte = 8 / b->bits, mask = (1 << b->bits) - 1;
    for (int64_t r = 0; r < l->n; r++)
        for (int64_t i = 0; i < l->k; i++) {
            int64_t g = i / b->size;
            int v = b->data[r * b->data_row + i / of_byte] >> i % of_byte * b->bits & mask;
            int z = b->zeros[r * b->zero_row + g / of_byte] >> g % of_byte * b->bits & mask;
            double w = (double)rows[r * l->k + i];
            double d = (v - z) * (double)b->scales[r * b->groups + g] - w;
            error += d * d;
            size += w * w;
        }
    return size > 0 ? sqrt(error / size) : 0;
}

static sn_status make_blocks(sni_quantizer *q, sni_qlayer *l, const float *rows,
                             sn_quantize_to precision, sni_qweights *out, sn_error *err) {
    sni_qblocks b;
    sni_qweights w;
    SN_TRY(sni_q_blocks_new(q, l, precision, &b, &w, err));
    blocks_fit f = {l, rows, &b};
    sni_parallel_for(q->o.threads, l->n, 4, fit_blocks, &f);
    w.error = sni_q_blocks_error(&b, l, rows);
    *out = w;
    return SN_OK;
}

sn_status sni_q_fit(sni_quantizer *q, sni_qlayer *l, sn_quantize_to precision, sn_error *err) {
    if (precision == SN_QUANTIZE_TO_INT8_DYNAMIC) precision = SN_QUANTIZE_TO_INT8;
    sni_qweights *w = &l->made[precision];
    float *rows = NULL;
    if (w->data) return SN_OK;
    SN_TRY(sni_q_rows(q, l, &rows, err));
    sn_status status = check_finite(l, rows, err);
    if (status == SN_OK && precision == SN_QUANTIZE_TO_INT8 && l->kind != SNI_Q_GATHER)
        status = make_bytes(q, l, rows, w, err);
    else if (status == SN_OK)
        status = make_blocks(q, l, rows, precision, w, err);
    free(rows);
    return status;
}
