/* hooks.c - implementations that run a reference kernel with vector kernels as its hooks
 * (ops/core/kernel_hooks.h): normalisation, softmax, attention, and operators that reduce to matrix
 * products. */
#include "cpu/core/hooks.h"

#include "base/threadpool.h"
#include "cpu/gemm/dense.h"
#include "cpu/elementwise/doubles.h"
#include "cpu/core/loops.h"
#include "cpu/move/moves.h"
#include "cpu/reduce/rows.h"
#include "ops/core/kernel_hooks.h"

/* ---- Products ---- */

#define PART_WORK 1e9 /* operations between two polls */
enum {
    FILL_WORK = 16,     /* estimated operations to make an element of the right operand */
    LEAST_COLUMNS = 256 /* least columns of a part */
};

typedef struct gemm_ctx {
    const sni_gemm *g;
    sni_gemm_locate_fn locate; /* NULL: one product */
    const void *ctx;
} gemm_ctx;

/* A product whose right operand is made by the reference kernel's `fill`, from column `first` on.
 */
typedef struct filled {
    sni_gemm g;
    int64_t first;
} filled;

/* Makes a panel of the right operand. The reference kernel fills only `cols` columns; zeros fill up
 * the others. */
static void fill_panel(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols, int nr,
                       float *panel) {
    const filled *f = ctx;
    for (int64_t r = 0; cols < nr && r < rows; r++)
        for (int64_t i = cols; i < nr; i++) panel[r * nr + i] = 0;
    f->g.fill(f->g.fill_ctx, f->g.product, k0, rows, f->first + n0, cols, panel, nr);
}

static void gemm_locate(const void *ctx, int64_t i, sni_gemm_f32 *out) {
    const gemm_ctx *c = ctx;
    sni_gemm g = *c->g;
    if (c->locate) c->locate(c->ctx, i, &g);
    out->a = g.a;
    out->b = g.b;
    out->c = g.c;
}

/* The columns of a part: what is made and multiplied between two polls. */
static int64_t part_columns(const sni_gemm_f32 *f) {
    double column = FILL_WORK * (double)f->k + (double)f->m * (double)f->k;
    double most = column > 0 ? PART_WORK / column : (double)f->n;
    if (most >= (double)f->n) return f->n;
    return most < LEAST_COLUMNS ? LEAST_COLUMNS : (int64_t)most / LEAST_COLUMNS * LEAST_COLUMNS;
}

/* Scratch that is enough for all parts of a product. */
static sn_status part_scratch(sni_kernel *k, const sni_gemm_f32 *f, int64_t columns,
                              float **scratch) {
    sni_gemm_f32 part = *f, rest = *f;
    part.n = columns;
    rest.n = f->n % columns;
    size_t size = sni_gemm_scratch_size(&part, k->threads);
    size_t other = rest.n ? sni_gemm_scratch_size(&rest, k->threads) : 0;
    if (other > size) size = other;
    if (!size) return SN_OK;
    *scratch = sni_scratch(k, size * sizeof **scratch);
    return *scratch ? SN_OK : k->err ? k->err->status : SN_NO_MEMORY;
}

static sn_status run_filled(sni_kernel *k, filled *one, sni_gemm_f32 f, int64_t columns,
                            float *scratch) {
    int64_t n = f.n;
    for (one->first = 0; one->first < n; one->first += columns) {
        f.n = n - one->first < columns ? n - one->first : columns;
        f.c = (float *)one->g.c + one->first;
        sni_gemm_f32_run(&f, k->threads, scratch);
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

static sn_status core_gemm(sni_kernel *k, const sni_gemm *g, int64_t count,
                           sni_gemm_locate_fn locate, const void *ctx) {
    gemm_ctx c = {.g = g, .locate = locate, .ctx = ctx};
    sni_gemm_f32 f = {.m = g->m,
                      .n = g->n,
                      .k = g->k,
                      .a_row = g->a_row,
                      .a_col = g->a_col,
                      .b_row = g->b_row,
                      .b_col = g->b_col,
                      .c_row = g->c_row,
                      .add = g->add,
                      .fill = g->fill ? fill_panel : NULL};
    SN_TRY(sni_poll(k));
    if (!g->fill) return sni_dense_many(k, &f, count, gemm_locate, &c);
    int64_t columns = part_columns(&f);
    float *scratch = NULL;
    SN_TRY(part_scratch(k, &f, columns, &scratch));
    for (int64_t i = 0; i < count;
         i++) { /* one after the other: many threads make the panels of each */
        filled one = {*g, 0};
        one.g.product = i;
        if (locate) locate(ctx, i, &one.g);
        f.a = one.g.a;
        f.fill_ctx = &one;
        SN_TRY(run_filled(k, &one, f, columns, scratch));
    }
    return SN_OK;
}

static const sni_gemm_core *core_of(sn_dtype dtype) {
    return sni_loops_get()->gemm[dtype];
}

/* ---- Softmax ---- */

enum {
    GRAIN = 4096,     /* elements worth a thread */
    SHORT_ROW = 24,   /* rows of up to so many elements are transposed, ... */
    SHORT_ROWS = 64,  /* ... so many at once, ... */
    SHORT_LEAST = 16, /* ... if there are so many: otherwise transposing takes longer */
};

static void softmax_rows(void *ctx, int64_t begin, int64_t end) {
    const sni_lanes *l = ctx;
    const sni_row_kernels *kernels = sni_cpu_kernels_get()->rows;
    const float *x = l->x;
    float *y = l->y;
    for (int64_t r = begin; r < end; r++)
        (l->logarithm ? kernels->log_softmax_row : kernels->softmax_row)(x + r * l->n, y + r * l->n,
                                                                         l->n);
}

/* Short rows are transposed to columns, a block at a time. A vector then holds one element of each
 * of LANES rows, instead of a part of one row. */
static void softmax_short(void *ctx, int64_t begin, int64_t end) {
    const sni_lanes *l = ctx;
    const sni_row_kernels *kernels = sni_cpu_kernels_get()->rows;
    float block[SHORT_ROW * SHORT_ROWS];
    for (int64_t r = begin; r < end; r += SHORT_ROWS) {
        int64_t rows = end - r < SHORT_ROWS ? end - r : SHORT_ROWS;
        sni_move_transpose(sizeof *block, (const float *)l->x + r * l->n, l->n, rows, l->n, block,
                           SHORT_ROWS);
        for (int64_t i = 0; i < rows; i += kernels->lanes)
            kernels->softmax_columns(block + i, block + i, l->n, SHORT_ROWS,
                                     rows - i < kernels->lanes ? rows - i : kernels->lanes,
                                     l->logarithm);
        sni_move_transpose(sizeof *block, block, SHORT_ROWS, l->n, rows, (float *)l->y + r * l->n,
                           l->n);
    }
}

static void softmax_rows_f64(void *ctx, int64_t begin, int64_t end) {
    const sni_lanes *l = ctx;
    const sni_doubles *doubles = sni_doubles_get();
    const double *x = l->x;
    double *y = l->y;
    for (int64_t r = begin; r < end; r++)
        (l->logarithm ? doubles->log_softmax_row : doubles->softmax_row)(x + r * l->n, y + r * l->n,
                                                                         l->n);
}

/* The columns that one call of softmax_columns() takes. */
static int64_t softmax_width(const sni_lanes *l) {
    return l->dtype == SN_FLOAT64 ? sni_doubles_get()->lanes : sni_cpu_kernels_get()->rows->lanes;
}

static void softmax_groups(void *ctx, int64_t begin, int64_t end) {
    const sni_lanes *l = ctx;
    int64_t width = softmax_width(l), groups = (l->step + width - 1) / width;
    for (int64_t i = begin; i < end; i++) {
        int64_t column = i % groups * width, at = i / groups * l->n * l->step + column;
        int64_t count = l->step - column < width ? l->step - column : width;
        if (l->dtype == SN_FLOAT64)
            sni_doubles_get()->softmax_columns((const double *)l->x + at, (double *)l->y + at, l->n,
                                               l->step, count, l->logarithm);
        else
            sni_cpu_kernels_get()->rows->softmax_columns(
                (const float *)l->x + at, (float *)l->y + at, l->n, l->step, count, l->logarithm);
    }
}

static void core_softmax(int threads, const sni_lanes *l) {
    sni_lanes lanes = *l;
    if (l->step == 1) {
        bool transposed = l->dtype == SN_FLOAT32 && l->n <= SHORT_ROW && l->outer >= SHORT_LEAST;
        sni_parallel_for(threads, l->outer, GRAIN / l->n + 1,
                         l->dtype == SN_FLOAT64 ? softmax_rows_f64
                         : transposed           ? softmax_short
                                                : softmax_rows,
                         &lanes);
        return;
    }
    int64_t width = softmax_width(l), groups = (l->step + width - 1) / width;
    sni_parallel_for(threads, l->outer * groups, GRAIN / (l->n * width) + 1, softmax_groups,
                     &lanes);
}

/* ---- Normalisation ---- */

static void normalize_rows(void *ctx, int64_t begin, int64_t end) {
    const sni_row_norm *j = ctx;
    const sni_row_kernels *kernels = sni_cpu_kernels_get()->rows;
    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)j->x + r * j->n, *scale = j->scale.data,
                    *shift = j->shift.data;
        float mean, inverse;
        kernels->moments(x, j->n, j->centered, j->epsilon, &mean, &inverse);
        if (j->mean) ((float *)j->mean)[r] = mean;
        if (j->inverse) ((float *)j->inverse)[r] = inverse;
        if (j->y)
            kernels->normalize_row(x, (float *)j->y + r * j->n, j->n, mean, inverse,
                                   scale + r * j->scale.step,
                                   shift ? shift + r * j->shift.step : NULL);
    }
}

static void core_normalize(int threads, int64_t rows, const sni_row_norm *norm) {
    sni_row_norm copy = *norm;
    sni_parallel_for(threads, rows, 2 * GRAIN / (norm->n + 1) + 1, normalize_rows, &copy);
}

/* ---- Implementations ---- */

static const sni_kernel_hooks hooks = {.gemm = core_gemm,
                                       .core = core_of,
                                       .softmax = core_softmax,
                                       .normalize = core_normalize,
                                       .transpose = sni_move_transpose,
                                       .attend = sni_cpu_attend,
                                       .norm_axes = sni_cpu_norm_axes};

static bool accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) || sni_choice_is(c, 0, SN_FLOAT16) ||
           sni_choice_is(c, 0, SN_BFLOAT16);
}

static bool accepts_f64(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT64);
}

static bool accepts_wide(const sni_choice *c) {
    return c->in[0] && c->in[0]->kind == SN_KIND_TENSOR && sni_loops_get()->gemm[c->in[0]->dtype];
}

static sn_status run(sni_kernel *k) {
    k->hooks = &hooks;
    return k->node->op->ref(k);
}

#define HOOKED(label, type, where) \
    { .name = label, .op = type, .domain = where, .accepts = accepts, .run = run }
#define HOOKED_F64(label, type) \
    { .name = label, .op = type, .accepts = accepts_f64, .run = run }
#define HOOKED_WIDE(type, where) \
    { .name = "gemm_tiles", .op = type, .domain = where, .accepts = accepts_wide, .run = run }

const sni_impl sni_cpu_hooked[] = {
    HOOKED("softmax_f32", "Softmax", NULL),
    HOOKED("softmax_f32", "LogSoftmax", NULL),
    HOOKED_F64("softmax_f64", "Softmax"),
    HOOKED_F64("softmax_f64", "LogSoftmax"),
    HOOKED("norm_f32", "LayerNormalization", NULL),
    HOOKED("norm_f32", "RMSNormalization", NULL),
    HOOKED("norm_f32", "SimplifiedLayerNormalization", NULL),
    HOOKED("norm_f32", "SkipLayerNormalization", "com.microsoft"),
    HOOKED("norm_f32", "SkipSimplifiedLayerNormalization", "com.microsoft"),
    HOOKED("axes_f32", "LpNormalization", NULL),
    HOOKED("axes_f32", "MeanVarianceNormalization", NULL),
    HOOKED("attention_f32", "Attention", NULL),
    HOOKED("attention_f32", "Attention", "com.microsoft"),
    HOOKED("attention_f32", "MultiHeadAttention", "com.microsoft"),
    HOOKED("attention_f32", "GroupQueryAttention", "com.microsoft"),
    HOOKED("attention_f32", "PackedAttention", "ai.sinter"),
    HOOKED("attention_f32", "PagedAttention", "com.microsoft"),
    HOOKED("conv_f32", "Conv", NULL),
    HOOKED("conv_f32", "FusedConv", "com.microsoft"),
    HOOKED("conv_f32", "ConvTranspose", NULL),
    HOOKED("gemm_f32", "Einsum", NULL),
    HOOKED("gemm_f32", "MatMul", NULL),
    HOOKED("gemm_f32", "Gemm", NULL),
    HOOKED("gemm_f32", "FusedMatMul", "com.microsoft"),
    HOOKED("gemm_f32", "FusedGemm", "com.microsoft"),
    HOOKED("gemm_f32", "Linear", "ai.sinter"),
    HOOKED("gemm_f32", "MoE", "com.microsoft"),
    HOOKED_WIDE("Conv", NULL),
    HOOKED_WIDE("FusedConv", "com.microsoft"),
    HOOKED_WIDE("ConvTranspose", NULL),
    HOOKED_WIDE("Einsum", NULL),
    HOOKED_WIDE("MatMul", NULL),
    HOOKED_WIDE("Gemm", NULL),
    HOOKED_WIDE("FusedMatMul", "com.microsoft"),
    HOOKED_WIDE("FusedGemm", "com.microsoft"),
    HOOKED_WIDE("Linear", "ai.sinter"),
    {0},
};
