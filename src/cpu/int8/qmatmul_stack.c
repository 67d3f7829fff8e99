/* qmatmul_stack.c - batches of matrix products of bytes where neither operand is constant: each
 * right operand is packed while it is multiplied. */
#include "base/threadpool.h"
#include "cpu/int8/integer.h"
#include "ops/matmul/matmul.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

/* The indices of the operator's inputs; -1: it has none. */
typedef struct places {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero;
} places;

static const places linear = {0, 1, 2, 3, 4, 5, 6, 7};
static const places integer = {0, -1, 2, 1, -1, 3, -1, -1};

static bool is_one_scale(const sni_choice *c, int i) {
    return sni_choice_is(c, i, SN_FLOAT32) && sni_int_is_single(c, i);
}

static bool accepts(const sni_choice *c, const places *p) {
    if (!sni_int_is_bytes(c, p->a) || !sni_int_is_bytes(c, p->b) ||
        !sni_int_is_single(c, p->a_zero) || !sni_int_is_single(c, p->b_zero))
        return false;
    return p->a_scale < 0 || (is_one_scale(c, p->a_scale) && is_one_scale(c, p->b_scale) &&
                              is_one_scale(c, p->y_scale) && sni_int_is_single(c, p->y_zero));
}

static bool linear_accepts(const sni_choice *c) {
    return accepts(c, &linear);
}

static bool integer_accepts(const sni_choice *c) {
    return accepts(c, &integer);
}

typedef struct stack {
    const sni_int_kernels *kernels;
    sni_matmul shape;
    const uint8_t *a, *b;
    sn_dtype a_type;
    uint8_t b_flip;
    int32_t a_zero, b_zero; /* after the flips */
    sni_igemm g;            /* what all products share */
    const int32_t *row_mul; /* minus a_zero, for each row */
    char *scratch;
    size_t part_bytes, rows_bytes; /* of one part; of its row terms */
    int parts, threads;
} stack;

static size_t round_64(size_t n) {
    return (n + 63) / 64 * 64;
}

/* adds[i] = the contribution of the zero points to row i of A. */
static void correct_rows(const stack *s, const uint8_t *a, int32_t *adds) {
    int64_t k = s->shape.k;
    uint8_t flip = sni_int_flip(s->a_type, true) ^ 0x80;
    uint32_t zero = (uint32_t)s->b_zero, whole = (uint32_t)s->a_zero * (uint32_t)k * zero;
    for (int64_t i = 0; i < s->shape.m; i++) {
        int64_t sum = s->kernels->byte_sum(a + i * s->shape.a_row, k, flip) - 128 * k;
        adds[i] = (int32_t)(whole - zero * (uint32_t)sum);
    }
}

static void run_product(const stack *s, int64_t i, char *scratch) {
    int64_t a, b;
    sni_igemm g = s->g;
    size_t width = g.kind == SNI_INT_BYTES ? 1 : sizeof(int32_t);
    int32_t *adds = (int32_t *)(void *)scratch;
    sni_matmul_offsets(&s->shape, i, &a, &b);
    sni_int_rows rows = {s->b + b, s->shape.b_row, s->shape.k, s->b_flip, false};
    correct_rows(s, s->a + a, adds);
    g.a = s->a + a;
    g.fill_ctx = &rows;
    g.row_add = adds;
    g.row_mul = s->row_mul;
    g.c = (char *)s->g.c + (size_t)(i * g.m * g.n) * width;
    sni_igemm_run(&g, s->threads, scratch + s->rows_bytes);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const stack *s = ctx;
    for (int64_t part = begin; part < end; part++) {
        int64_t to = (part + 1) * s->shape.count / s->parts;
        for (int64_t i = part * s->shape.count / s->parts; i < to; i++)
            run_product(s, i, s->scratch + (size_t)part * s->part_bytes);
    }
}

/* One thread per product if there are enough of them; otherwise all threads on each product. */
static sn_status run_stack(sni_kernel *k, stack *s) {
    void *row_mul;
    SN_TRY(sni_scratch_array(k, s->shape.m, sizeof(int32_t), &row_mul));
    for (int64_t i = 0; i < s->shape.m; i++) ((int32_t *)row_mul)[i] = -s->a_zero;
    s->row_mul = row_mul;
    s->g.row_mul = row_mul;
    int threads = k->threads < 1 ? 1 : k->threads;
    bool many = s->shape.count >= threads;
    s->parts = many ? threads : 1;
    s->threads = many ? 1 : threads;
    s->rows_bytes = round_64((size_t)s->shape.m * sizeof(int32_t));
    s->part_bytes = s->rows_bytes + round_64(sni_igemm_scratch_size(&s->g, s->threads));
    s->scratch = sni_scratch(k, s->part_bytes * (size_t)s->parts);
    if (!s->scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_int_watch(k, &s->g, s->shape.count);
    sni_parallel_for(s->parts, s->parts, 1, run_parts, s);
    return s->g.stop ? sni_poll(k) : SN_OK;
}

static sn_status run(sni_kernel *k, const places *at, sni_igemm g) {
    const sni_tensor *a = sni_in(k, at->a), *b = sni_in(k, at->b);
    stack s = {.kernels = sni_int_kernels_get(), .a = a->data, .b = b->data, .a_type = a->dtype};
    sni_matmul *mm = &s.shape;
    sni_matmul_init(mm, a, b);
    if (sni_out(k, 0)->count == 0) return SN_OK;
    if (mm->k == 0 || (mm->a_col != 1 && mm->k > 1) || (mm->b_col != 1 && mm->n > 1))
        return k->node->op->ref(k);
    s.b_flip = sni_int_flip(b->dtype, false);
    s.a_zero = sni_int_moved(sni_zero_of(sni_in(k, at->a_zero)), a->dtype, true);
    s.b_zero = sni_int_moved(sni_zero_of(sni_in(k, at->b_zero)), b->dtype, false);
    s.g = g;
    s.g.m = mm->m;
    s.g.n = s.g.c_row = mm->n;
    s.g.units = sni_int_units(mm->k);
    s.g.a_signed = true;
    s.g.a_row = mm->a_row;
    s.g.a_k = mm->k;
    s.g.a_flip = sni_int_flip(a->dtype, true);
    s.g.fill = sni_int_fill_rows;
    s.g.c = sni_out(k, 0)->data;
    return run_stack(k, &s);
}

static sn_status linear_run(sni_kernel *k) {
    const sni_tensor *y = sni_out(k, 0), *b_scale = sni_in(k, linear.b_scale);
    sni_matmul mm;
    sni_matmul_init(&mm, sni_in(k, linear.a), sni_in(k, linear.b));
    void *scales;
    SN_TRY(sni_scratch_array(k, mm.m, sizeof(float), &scales));
    sni_int_scales(*(const float *)sni_in(k, linear.a_scale)->data, b_scale,
                   *(const float *)sni_in(k, linear.y_scale)->data, mm.m, scales);
    sni_igemm g = {.kind = SNI_INT_BYTES,
                   .row_scale = scales,
                   .zero = (float)sni_zero_of(sni_in(k, linear.y_zero)),
                   .low = y->dtype == SN_INT8 ? -128 : 0};
    return run(k, &linear, g);
}

static sn_status integer_run(sni_kernel *k) {
    return run(k, &integer, (sni_igemm){.kind = SNI_INT_SUMS});
}

const sni_impl sni_cpu_qlinear_matmul_stack = {
    .name = "gemm_i8",
    .op = "QLinearMatMul",
    .accepts = linear_accepts,
    .run = linear_run,
};

const sni_impl sni_cpu_matmul_integer_stack = {
    .name = "gemm_i8",
    .op = "MatMulInteger",
    .accepts = integer_accepts,
    .run = integer_run,
};
