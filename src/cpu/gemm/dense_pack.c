/* dense_pack.c - see dense_pack.h. */
#include "cpu/gemm/dense_pack.h"

#include "base/checked.h"
#include "base/lengths.h"
#include "cpu/gemm/matmul_algorithms.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPRESS_BYTES = 1 << 20, /* of weights that are worth it */
    MEMORY_BYTES = 64 << 20   /* of the model's matrices that no cache keeps */
};

/* Most weights that do not fit a compressed exponent: each takes 16 bits more. */
static const double MAX_UNCOMPRESSED = 0.06;

/* Weights that have been read. */
static void drop_weights(const void *borrow, const void *from, size_t bytes) {
    sni_borrow_done(borrow, from, bytes);
}

static sn_status borrow_matrix(sni_dense_request *r, sn_error *err) {
    return r->borrow ? SN_OK : sni_pack_borrow(r->c, r->input, true, &r->borrow, err);
}

/* The borrowed weights, given back as they are read. */
static sni_gemm_stream stream_of(const sni_dense_request *r) {
    return (sni_gemm_stream){.b = r->borrow->tensor.data,
                             .b_row = r->transposed ? 1 : r->n,
                             .b_col = r->transposed ? r->k : 1,
                             .k = r->k,
                             .n = r->n,
                             .done = drop_weights,
                             .ctx = r->borrow};
}

/* ---- Panels of floats ---- */

bool sni_dense_can_pack_any(sni_dense_request *r) {
    (void)r;
    return true;
}

size_t sni_dense_float_bytes(int64_t k, int64_t n) {
    return sni_gemm_packed_b_size(k, n) * sizeof(float);
}

sn_status sni_dense_pack_floats(sni_dense_request *r, sni_dense *out, sn_error *err) {
    size_t size = sni_gemm_packed_b_size(r->k, r->n);
    bool filled;
    SN_TRY(sni_cpu_floats(r->c, size, &out->panels, &filled, err));
    if (filled) return SN_OK;
    SN_TRY(borrow_matrix(r, err));
    sni_gemm_stream s = stream_of(r);
    sni_gemm_stream_b(&s, out->panels);
    for (size_t at = 0; r->alpha != 1.0f && at < size; at++) out->panels[at] *= r->alpha;
    return SN_OK;
}

/* Beside the panels: which pairs of them are of sizes that may be added up. */
sn_status sni_dense_pack_strassen(sni_dense_request *r, sni_dense *out, sn_error *err) {
    void *even;
    bool filled;
    SN_TRY(sni_dense_pack_floats(r, out, err));
    SN_TRY(sni_pack_alloc(r->c, sni_gemm_even_size(r->k, r->n), &even, &filled, err));
    if (!filled) sni_gemm_find_even(out->panels, r->k, r->n, even);
    out->even = even;
    return SN_OK;
}

/* Beside the panels: the sums of their columns' pairs of terms. */
sn_status sni_dense_pack_inner_product(sni_dense_request *r, sni_dense *out, sn_error *err) {
    size_t sizes[2] = {sni_inner_product_numbers(r->k, r->n, false) * sizeof(float),
                       sni_inner_product_flags(r->n)};
    void *blobs[2];
    bool filled;
    SN_TRY(sni_dense_pack_floats(r, out, err));
    SN_TRY(sni_pack_alloc_all(r->c, 2, sizes, blobs, &filled, err));
    if (!filled) sni_inner_product_measure(out->panels, r->k, r->n, false, blobs[0], blobs[1]);
    out->inner_product = (sni_inner_product_b){
        .k = r->k, .n = r->n, .panels = out->panels, .numbers = blobs[0], .tame = blobs[1]};
    return SN_OK;
}

/* ---- Compressed exponents ---- */

bool sni_dense_can_compress(sni_dense_request *r) {
    if (!sni_gemm_compressed_b_size(r->k, r->n) || r->alpha != 1.0f ||
        sni_dense_float_bytes(r->k, r->n) < COMPRESS_BYTES || r->c->matrix_bytes < MEMORY_BYTES ||
        borrow_matrix(r, NULL) != SN_OK)
        return false;
    return sni_gemm_uncompressed_part(r->borrow->tensor.data, r->k * r->n) < MAX_UNCOMPRESSED;
}

/* The list of exponents; `compressed` says that the weights were finished. */
static sn_status keep_more(const sni_dense_request *r, const uint8_t *list, bool compressed,
                           sni_compressed_b *b, sn_error *err) {
    void *data;
    bool filled;
    SN_TRY(sni_pack_alloc(r->c, b->n_more, &data, &filled, err));
    if (filled != compressed)
        return sni_fail(err, SN_INVALID_MODEL,
                        "packed weights: a list of %zu exponents without its weights", b->n_more);
    if (list && b->n_more) memcpy(data, list, b->n_more);
    b->more = data;
    return SN_OK;
}

sn_status sni_dense_pack_compressed(sni_dense_request *r, sni_dense *out, sn_error *err) {
    sni_compressed_b *b = &out->compressed;
    void *data;
    bool filled;
    SN_TRY(sni_pack_alloc(r->c, sni_gemm_compressed_b_size(r->k, r->n), &data, &filled, err));
    b->compressed = data;
    if (filled) {
        b->n_more = sni_pack_given(r->c);
        if (!b->n_more)
            return sni_fail(err, SN_INVALID_MODEL,
                            "packed weights: compressed ones without their list");
        return keep_more(r, NULL, true, b, err);
    }
    SN_TRY(borrow_matrix(r, err));
    uint8_t *buffer = malloc(sni_gemm_compress_capacity(r->k, r->n));
    if (!buffer) return sni_fail_memory(err);
    sni_gemm_stream s = stream_of(r);
    b->n_more = sni_gemm_compress_b(&s, data, buffer);
    sn_status status = keep_more(r, buffer, false, b, err);
    free(buffer);
    return status;
}

/* ---- Emulation on int8 tiles ---- */

/* Packs what `s` gives, of which a compiled model has brought nothing. */
static sn_status pack_source(const sni_choice *c, const sni_emulated_source *s, sni_emulated_b *out,
                             sn_error *err) {
    int32_t *sizes = malloc((size_t)sni_round_up(s->n, SNI_EMULATED_COLUMNS) * sizeof *sizes);
    void *data;
    bool filled;
    if (!sizes) return sni_fail_memory(err);
    bool floats = !sni_emulated_measure(s, sizes);
    sn_status status =
        sni_pack_alloc(c, sni_emulated_size(s->k, s->n, floats), &data, &filled, err);
    if (status == SN_OK) {
        if (!filled) sni_emulated_pack(s, sizes, floats, data);
        *out = sni_emulated_of(s->k, s->n, floats, data);
    }
    free(sizes);
    return status;
}

sn_status sni_dense_emulated(const sni_choice *c, const sni_dense_origin *from, sni_emulated_b *out,
                             sn_error *err) {
    size_t given = sni_pack_given(c);
    bool floats = given == sni_emulated_size(from->k, from->n, true), filled;
    void *data;
    if (floats || given == sni_emulated_size(from->k, from->n, false)) {
        SN_TRY(sni_pack_alloc(c, given, &data, &filled, err));
        if (!filled) return sni_fail(err, SN_INTERNAL, "packed weights: slices that were there");
        *out = sni_emulated_of(from->k, from->n, floats, data);
        return SN_OK;
    }
    sni_emulated_source s = {.k = from->k, .n = from->n};
    SN_TRY(from->open(from->ctx, &s, err));
    return pack_source(c, &s, out, err);
}

static void fill_matrix(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols, int nr,
                        float *panel) {
    const sni_dense_request *r = ctx;
    const sni_unaligned_float *w = r->borrow->tensor.data;
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    if (r->transposed)
        k->pack_transposed(w + n0 * r->k + k0, r->k, cols, nr, rows, panel);
    else
        k->pack_straight(w + k0 * r->n + n0, r->n, cols, nr, rows, panel);
}

static sn_status open_matrix(void *ctx, sni_emulated_source *s, sn_error *err) {
    s->fill = fill_matrix;
    s->ctx = ctx;
    return borrow_matrix(ctx, err);
}

size_t sni_dense_emulated_bytes(int64_t k, int64_t n) {
    return sni_emulated_can(k, n) ? sni_emulated_size(k, n, false) : 0;
}

sn_status sni_dense_pack_emulated(sni_dense_request *r, sni_dense *out, sn_error *err) {
    sni_dense_origin from = {r->k, r->n, open_matrix, r};
    SN_TRY(sni_dense_emulated(r->c, &from, &out->emulated, err));
    if (r->borrow)
        drop_weights(r->borrow, r->borrow->tensor.data, (size_t)(r->k * r->n) * sizeof(float));
    return SN_OK;
}

/* ---- 16 bits ---- */

/* Families that round weights in float32 to 16 bits. */
enum { ROUNDING = SNI_NUMERICS_TO_TF32 | SNI_NUMERICS_TO_FP16 | SNI_NUMERICS_TO_BF16 };

/* The greatest magnitude of the matrix; infinity if it has numbers that are not finite. */
static float greatest_of(const sni_borrow *borrow) {
    const sni_unaligned_float *x = borrow->tensor.data;
    float most = 0;
    for (int64_t i = 0; i < borrow->tensor.count; i++) {
        float size = fabsf(x[i]);
        most = size > most ? size : most;
        if (!(size <= FLT_MAX)) return INFINITY;
    }
    return most;
}

/* Whether float16 has room for the matrix. For the precision of TF32 its numbers below the normal
 * ones, which have fewer bits, must be small beside the greatest. */
static bool fits_f16(sni_dense_request *r) {
    const float most = 65504, least = 0x1p-8f;
    if (borrow_matrix(r, NULL) != SN_OK) return false;
    float greatest = greatest_of(r->borrow);
    return greatest <= most && (!(r->numerics & SNI_NUMERICS_TO_TF32) || greatest >= least);
}

/* The 16-bit type that a matrix of floats may be rounded to, or that it is made of. */
static int half_type_of(const sni_dense_request *r) {
    const sni_const *c = r->c->constants[r->input];
    if (c->narrow) return sni_half_type(c->narrow->tensor.dtype);
    return r->numerics & SNI_NUMERICS_TO_BF16 ? SNI_HALF_BF16 : SNI_HALF_F16;
}

bool sni_dense_can_halve(sni_dense_request *r) {
    if (r->alpha != 1 || r->k == 0 || r->n == 0) return false;
    if (r->c->constants[r->input]->narrow) return true;
    return (r->numerics & ROUNDING) && (half_type_of(r) == SNI_HALF_BF16 || fits_f16(r));
}

size_t sni_dense_half_bytes(int64_t k, int64_t n) {
    return sni_half_size(k, n) * sizeof(uint16_t);
}

/* The panels, and of what type they are. */
sn_status sni_dense_pack_half(sni_dense_request *r, sni_dense *out, sn_error *err) {
    enum { TYPE_BYTES = 64 };
    bool narrow = r->c->constants[r->input]->narrow != NULL, filled;
    size_t sizes[2] = {sni_dense_half_bytes(r->k, r->n), TYPE_BYTES};
    void *pieces[2];
    SN_TRY(sni_pack_alloc_all(r->c, 2, sizes, pieces, &filled, err));
    uint8_t *type = pieces[1];
    if (!filled && !sni_dense_can_halve(r))
        return sni_fail(err, SN_INVALID_MODEL, "packed weights: 16 bits without their type");
    if (!filled) {
        if (narrow)
            SN_TRY(sni_pack_borrow_narrow(r->c, r->input, &r->borrow, err));
        else
            SN_TRY(borrow_matrix(r, err));
        *type = (uint8_t)half_type_of(r);
        sni_gemm_stream from = stream_of(r);
        sni_half_source s = {from.b, from.b_row, from.b_col, !narrow};
        sni_half_pack(&s, r->k, r->n, *type, pieces[0]);
        sni_borrow_done(r->borrow, r->borrow->tensor.data, sni_tensor_bytes(&r->borrow->tensor));
    }
    out->half = (sni_half_b){*type ? SNI_HALF_BF16 : SNI_HALF_F16, pieces[0]};
    out->round_left = r->numerics & (SNI_NUMERICS_BF16 | SNI_NUMERICS_TO_BF16);
    return SN_OK;
}

/* ---- The choice ---- */

/* Rows of a left operand of this type as far as they are known; a great number if they are not. */
static int64_t rows_of(const sni_type *t, int64_t k) {
    int64_t rows = 1;
    if (!t || !t->has_shape || t->rank < 1 || k == 0) return INT64_MAX;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || !sni_mul_i64(rows, t->dims[i], &rows)) return INT64_MAX;
    return rows / k;
}

/* Whether the left operand can have so few rows or fewer in another run: that some dimension can be
 * any number, and those that are known do not make it more. */
static bool may_have(const sni_choice *c, int64_t k, int64_t rows) {
    const sni_type *t = c->left;
    int64_t least = 1;
    bool any = false;
    if (!t || !t->has_shape) return false;
    for (int i = 0; i < t->rank; i++) {
        any |= t->dims[i] < 0;
        if (t->dims[i] >= 0 && !sni_mul_i64(least, t->dims[i], &least)) return false;
    }
    return any && least / k <= rows;
}

/* What is known of the product, for its estimates. Weights that may meet few rows are packed for
 * those, if a model reads them from memory: more rows lose at most 4 % by it. */
static sni_dense_request request_of(const sni_choice *c, const sni_dense_weight *w,
                                    uint32_t numerics, int64_t k, int64_t n) {
    sni_dense_request r = {.c = c,
                           .input = w->input,
                           .transposed = w->transposed,
                           .alpha = w->alpha,
                           .numerics = numerics,
                           .k = k,
                           .n = n,
                           .rows = rows_of(c->left, k),
                           .few_rows = rows_of(c->in[0], k)};
    int64_t few = sni_compressed_kernels_get()->rows;
    if (r.few_rows > few && r.few_rows != INT64_MAX && may_have(c, k, few)) r.few_rows = few;
    return r;
}

static sni_gemm_f32 product_of(const sni_dense_request *r, int64_t m) {
    return (sni_gemm_f32){.m = m,
                          .n = r->n,
                          .k = r->k,
                          .a_row = r->k,
                          .a_col = 1,
                          .constant_b = true,
                          .matrix_bytes = r->c->matrix_bytes};
}

/* The row whose own form a compiled model brings; NULL: it brings panels. */
static const sni_gemm_algorithm *given_form(const sni_dense_request *r, size_t given) {
    const sni_gemm_algorithm *row;
    for (int i = 0; (row = sni_gemm_algorithm_at(i)) != NULL; i++)
        if (row->own_form && row->pack_bytes(r->k, r->n) == given) return row;
    bool floats = sni_emulated_can(r->k, r->n) && given == sni_emulated_size(r->k, r->n, true);
    return floats ? sni_gemm_algorithm_named("emulated") : NULL;
}

/* Families of rows with a form of their own. */
enum { OWN_FORMS = SNI_NUMERICS_EMULATED | SNI_NUMERICS_COMPRESSED };

static const sni_gemm_algorithm *choose_form(sni_dense_request *r, uint32_t numerics) {
    const sni_costs *costs = sni_costs_get();
    size_t given = sni_pack_given(r->c);
    const sni_gemm_algorithm *row = given ? given_form(r, given) : NULL;
    if (row) return row;
    if (given)
        numerics &= ~(uint32_t)OWN_FORMS;
    else if (sni_dense_can_halve(r)) /* what is narrow, or may be, takes half the memory */
        return sni_gemm_algorithm_named("half");
    sni_gemm_f32 few = product_of(r, r->few_rows), all = product_of(r, r->rows);
    row = sni_gemm_choose_pack(r, &few, numerics, costs);
    if (row->numerics == SNI_NUMERICS_COMPRESSED) return row;
    return sni_gemm_choose_pack(r, &all, numerics & ~(uint32_t)SNI_NUMERICS_COMPRESSED, costs);
}

/* Variants of a node are 1 and up: rows of the table by index, as long as SNI_PACK_VERSION stays.
 */
static const sni_gemm_algorithm *tuned_form(sni_dense_request *r) {
    const sni_gemm_algorithm *row =
        r->c->variant ? sni_gemm_algorithm_at((int)r->c->variant - 1) : NULL;
    return row && row->pack && row->can_pack(r) ? row : NULL;
}

int sni_dense_variants(const sni_choice *c, const sni_dense_weight *w, uint32_t *out) {
    const sni_tensor *t = &c->constants[w->input]->tensor;
    sni_dense_request r =
        request_of(c, w, c->numerics, t->dims[w->transposed], t->dims[!w->transposed]);
    const sni_gemm_algorithm *row;
    int count = 0;
    if (sni_dense_can_halve(&r)) { /* memory decides */
        out[0] = 0;
        return 1;
    }
    for (int i = 0; (row = sni_gemm_algorithm_at(i)) != NULL && count < SNI_MAX_VARIANTS; i++) {
        bool exact = row->numerics & SNI_NUMERICS_COMPRESSED; /* estimates decide about memory */
        if (!exact && sni_gemm_can_pack_for(row, c->numerics) && row->can_pack(&r))
            out[count++] = (uint32_t)i + 1;
    }
    return count;
}

sn_status sni_dense_pack(const sni_choice *c, const sni_dense_weight *weight, uint32_t numerics,
                         void **state, sn_error *err) {
    const sni_tensor *w = &c->constants[weight->input]->tensor;
    sni_dense p = {.k = w->dims[weight->transposed], .n = w->dims[!weight->transposed]};
    sni_dense_request r = request_of(c, weight, numerics, p.k, p.n);
    const sni_gemm_algorithm *row = tuned_form(&r);
    if (row && row->numerics) p.use = row; /* plain sums leave the choice to their kind of kernel */
    if (!row) row = choose_form(&r, numerics);
    SN_TRY(row->pack(&r, &p, err));
    struct {
        sni_dense dense;
        atomic_uint row_passes;
        atomic_uint_least64_t chosen;
    } *kept = malloc(sizeof *kept);
    if (!kept) return sni_fail_memory(err);
    kept->dense = p;
    kept->dense.row_passes = &kept->row_passes;
    kept->dense.chosen = &kept->chosen;
    atomic_init(&kept->row_passes, 0);
    atomic_init(&kept->chosen, 0);
    *state = kept;
    return SN_OK;
}

uint32_t sni_dense_uses(const sni_choice *c, const void *state) {
    const sni_dense *w = state;
    sni_gemm_f32 g = {
        .m = rows_of(c->in[0], w->k), .a_row = w->k, .a_col = 1, .may_stay_unpacked = true};
    sni_dense_right(w, &g);
    return sni_gemm_choose(&g, sni_costs_get())->numerics;
}
