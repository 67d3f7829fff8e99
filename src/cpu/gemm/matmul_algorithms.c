/* matmul_algorithms.c - see matmul_algorithms.h.
 *
 * Cycles are made of steps: a vector of multiply-adds of a tile takes three. Vectors whose operands
 * are read unpacked take two or three, which is less than what tiles need beside their
 * multiply-adds (END, PACKED_COLUMN); the limits of `supports` keep them to operands that caches
 * hold. Methods with fewer products are the tiles' cycles less what they save. */
#include "cpu/gemm/matmul_algorithms.h"

#include "cpu/gemm/bf16.h"
#include "cpu/gemm/dense_pack.h"
#include "cpu/gemm/emulated.h"
#include "cpu/gemm/gemm_blocks.h"
#include "cpu/gemm/inner_product.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 3,              /* of a vector of multiply-adds */
    ACROSS_STEPS = 2,       /* of one along rows of B, without ends of tiles */
    END = 41,               /* vectors' worth of the end of a tile's row */
    PACKED_COLUMN = 41,     /* and of beginning to pack a column of B */
    FOLD = 5,               /* vectors that could be multiplied while one is added up */
    STRASSEN_SIDE = 128,    /* rows and columns of B that Strassen's method has a use for */
    MEMORY_BYTES = 64 << 20 /* of matrices that no cache keeps */
};

static int lanes_of(void) {
    return sni_cpu_kernels_get()->nr / 2;
}

static double vectors_of(int64_t n) {
    return (double)sni_ceil_div(n, lanes_of());
}

/* Cycles of so many steps. */
static double of_steps(double steps, const sni_gemm_costs *c) {
    return steps * c->vector / STEPS;
}

/* ---- Tiles ---- */

/* True where B has a form that only one algorithm reads. */
static bool has_own_form(const sni_gemm_f32 *g) {
    return g->emulated || g->compressed_b || g->half_b;
}

static bool empty_supports(const sni_gemm_f32 *g) {
    return g->m == 0 || g->n == 0 || g->k == 0;
}

static double empty_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    (void)g, (void)c;
    return 0;
}

static size_t no_scratch(const sni_gemm_f32 *g, int threads) {
    (void)g, (void)threads;
    return 0;
}

/* A single row of A by packed B has an algorithm of its own. */
static bool is_row(const sni_gemm_f32 *g) {
    return g->m == 1 && !g->packed_a && (g->a_col == 1 || g->k == 1);
}

static bool tiled_supports(const sni_gemm_f32 *g) {
    return !has_own_form(g) && !(g->packed_b && is_row(g));
}

static double tiled_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    double k = (double)g->k, panels = (double)sni_ceil_div(g->n, sni_cpu_kernels_get()->nr);
    double steps = (double)g->m * (k * vectors_of(g->n) + END * panels);
    if (!g->packed_b && !g->constant_b) steps += (double)g->n * (k + PACKED_COLUMN);
    return of_steps(STEPS * steps, c);
}

static size_t tiled_scratch(const sni_gemm_f32 *g, int threads) {
    return sni_gemm_blocked_scratch(g, SNI_GEMM_TILES, threads);
}

static void run_tiled(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_run_blocked(g, SNI_GEMM_TILES, threads, scratch);
}

static bool row_supports(const sni_gemm_f32 *g) {
    return is_row(g) && g->packed_b;
}

static double row_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    return of_steps(STEPS * (double)g->k * vectors_of(g->n), c);
}

static void run_row(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_run_blocked(g, SNI_GEMM_ROW, threads, scratch);
}

/* ---- Exponent-compressed weights ---- */

static bool compressed_available(void) {
    return sni_compressed_kernels_get()->group_bytes != 0;
}

static bool compressed_supports(const sni_gemm_f32 *g) {
    return g->compressed_b && !g->emulated && !is_row(g);
}

/* Weights that caches keep gain nothing. From memory a few rows do, fewer and fewer. */
static double compressed_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    double bytes = 4 * (double)g->k * (double)g->n * c->memory_byte * (1 - c->compressed_part);
    double rows = sni_compressed_kernels_get()->rows + 0.5;
    double near = g->matrix_bytes < MEMORY_BYTES ? 1 : 0;
    return tiled_cycles(g, c) - bytes * (1 - near - fmin((double)g->m / rows, 2));
}

static size_t compressed_scratch(const sni_gemm_f32 *g, int threads) {
    return sni_gemm_blocked_scratch(g, SNI_GEMM_TILES, threads);
}

static bool compressed_row_supports(const sni_gemm_f32 *g) {
    return g->compressed_b && !g->emulated && is_row(g);
}

/* ---- Weights in 16 bits ---- */

static bool half_supports(const sni_gemm_f32 *g) {
    return g->half_b && !is_row(g);
}

/* Each block of rows makes floats of B anew: a vector takes as long as one of products. */
static double half_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    return tiled_cycles(g, c) + of_steps(STEPS * (double)g->k * vectors_of(g->n), c);
}

static bool half_row_supports(const sni_gemm_f32 *g) {
    return g->half_b && is_row(g);
}

static bool bf16_available(void) {
    return sni_bf16_kernels_get() != NULL;
}

/* Rows of A side by side, and nothing but columns in what follows the sums. */
static bool bf16_supports(const sni_gemm_f32 *g) {
    return g->half_b && g->half_b->type == SNI_HALF_BF16 && g->round_left && bf16_available() &&
           !g->packed_a && g->a_col == 1 && !g->add && !sni_gemm_is_scaled(g) &&
           !g->epilogue.row_bias && !g->epilogue.row_slopes && g->k % SNI_LEFT_STEPS == 0;
}

static double bf16_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    double rows = (double)g->m, k = (double)g->k;
    double panels = (double)sni_ceil_div(g->n, sni_cpu_kernels_get()->nr);
    double steps = rows * (c->bf16_part * k * vectors_of(g->n) + END * panels);
    return of_steps(STEPS * steps, c) + c->bf16_pack * rows * k;
}

/* ---- Operands read unpacked ---- */

static double across_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    return of_steps(ACROSS_STEPS * (double)g->m * (double)g->k * vectors_of(g->n), c);
}

static double dots_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    double each = (double)(g->k / lanes_of() + FOLD);
    return of_steps(STEPS * (double)g->m * (double)g->n * each, c);
}

static size_t dots_scratch(const sni_gemm_f32 *g, int threads) {
    (void)threads;
    return sni_gemm_unpacked_size(g, SNI_GEMM_ROW_DOTS);
}

static size_t column_dots_scratch(const sni_gemm_f32 *g, int threads) {
    (void)threads;
    return sni_gemm_unpacked_size(g, SNI_GEMM_COLUMN_DOTS);
}

static void run_across(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_run_unpacked(g, SNI_GEMM_ACROSS, threads, scratch);
}

static void run_dots(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_run_unpacked(g, SNI_GEMM_ROW_DOTS, threads, scratch);
}

static void run_column_dots(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_run_unpacked(g, SNI_GEMM_COLUMN_DOTS, threads, scratch);
}

/* ---- Fewer products ---- */

/* Rows of A side by side, and nothing but columns in what follows the sums. */
static bool has_plain_rows(const sni_gemm_f32 *g) {
    return g->packed_b && !g->packed_a && g->a_col == 1 && !sni_gemm_is_scaled(g);
}

static bool strassen_supports(const sni_gemm_f32 *g) {
    return g->even && has_plain_rows(g);
}

/* Its sums of B's panels take as much whatever the rows. */
static double strassen_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    double each = c->strassen_gain * (double)g->k * vectors_of(g->n);
    return tiled_cycles(g, c) - of_steps(STEPS * each * ((double)g->m - c->strassen_rows), c);
}

static bool strassen_can_pack(sni_dense_request *r) {
    return r->k >= STRASSEN_SIDE && r->n >= STRASSEN_SIDE && sni_gemm_even_size(r->k, r->n) > 0;
}

static size_t strassen_scratch(const sni_gemm_f32 *g, int threads) {
    return sni_gemm_blocked_scratch(g, SNI_GEMM_STRASSEN, threads);
}

static void run_strassen(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_run_blocked(g, SNI_GEMM_STRASSEN, threads, scratch);
}

static bool inner_available(void) {
    return sni_inner_product_most() > 0;
}

static bool inner_supports(const sni_gemm_f32 *g) {
    return g->inner_product && has_plain_rows(g) && !g->epilogue.row_bias &&
           !g->epilogue.row_slopes && g->m > sni_inner_product_most() && g->k % SNI_LEFT_STEPS == 0;
}

static double inner_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    return tiled_cycles(g, c) - (double)g->m * sni_inner_product_gain(g->n, g->k, c);
}

static bool inner_can_pack(sni_dense_request *r) {
    return r->k % SNI_LEFT_STEPS == 0 && r->rows > sni_inner_product_most();
}

/* ---- Emulation on int8 tiles ---- */

static bool emulated_available(void) {
    return sni_emulated_kernels_get() != NULL;
}

static bool emulated_supports(const sni_gemm_f32 *g) {
    return g->emulated != NULL;
}

/* Few rows take as long as with floats, which a cache brings as quickly; where they come from
 * farther away, three bytes are less than four. */
static double emulated_cycles(const sni_gemm_f32 *g, const sni_gemm_costs *c) {
    double each = (1 - c->emulated_part) * (double)g->k * vectors_of(g->n);
    double gain = of_steps(STEPS * each * ((double)g->m - c->emulated_rows), c);
    if (g->matrix_bytes > 2 * sni_cpu_cache(2))
        gain += (double)g->k * (double)g->n * c->memory_byte;
    return tiled_cycles(g, c) - gain;
}

static bool emulated_can_pack(sni_dense_request *r) {
    return r->alpha == 1 && sni_emulated_can(r->k, r->n);
}

/* ---- The table ---- */

static const sni_gemm_algorithm table[] = {
    {.name = "empty",
     .supports = empty_supports,
     .cycles = empty_cycles,
     .scratch = no_scratch,
     .run = sni_gemm_run_empty},
    {.name = "across",
     .supports = sni_gemm_can_go_across,
     .cycles = across_cycles,
     .scratch = no_scratch,
     .run = run_across},
    {.name = "dots",
     .supports = sni_gemm_has_row_dots,
     .cycles = dots_cycles,
     .scratch = dots_scratch,
     .run = run_dots},
    {.name = "column-dots",
     .supports = sni_gemm_has_column_dots,
     .cycles = dots_cycles,
     .scratch = column_dots_scratch,
     .run = run_column_dots},
    {.name = "row",
     .supports = row_supports,
     .cycles = row_cycles,
     .scratch = no_scratch,
     .run = run_row},
    {.name = "compressed-row",
     .numerics = SNI_NUMERICS_COMPRESSED,
     .supports = compressed_row_supports,
     .cycles = row_cycles,
     .scratch = no_scratch,
     .run = run_row},
    {.name = "tiled",
     .supports = tiled_supports,
     .cycles = tiled_cycles,
     .scratch = tiled_scratch,
     .run = run_tiled,
     .can_pack = sni_dense_can_pack_any,
     .pack = sni_dense_pack_floats,
     .pack_bytes = sni_dense_float_bytes},
    {.name = "strassen",
     .numerics = SNI_NUMERICS_STRASSEN,
     .supports = strassen_supports,
     .cycles = strassen_cycles,
     .scratch = strassen_scratch,
     .run = run_strassen,
     .can_pack = strassen_can_pack,
     .pack = sni_dense_pack_strassen,
     .pack_bytes = sni_dense_float_bytes},
    {.name = "inner-product",
     .available = inner_available,
     .numerics = SNI_NUMERICS_INNER_PRODUCT,
     .supports = inner_supports,
     .cycles = inner_cycles,
     .scratch = sni_gemm_inner_product_size,
     .run = sni_gemm_run_inner_product,
     .can_pack = inner_can_pack,
     .pack = sni_dense_pack_inner_product,
     .pack_bytes = sni_dense_float_bytes},
    {.name = "emulated",
     .available = emulated_available,
     .numerics = SNI_NUMERICS_EMULATED,
     .supports = emulated_supports,
     .cycles = emulated_cycles,
     .scratch = sni_gemm_emulated_size,
     .run = sni_gemm_run_emulated,
     .can_pack = emulated_can_pack,
     .pack = sni_dense_pack_emulated,
     .pack_bytes = sni_dense_emulated_bytes,
     .own_form = true},
    {.name = "compressed",
     .available = compressed_available,
     .numerics = SNI_NUMERICS_COMPRESSED,
     .supports = compressed_supports,
     .cycles = compressed_cycles,
     .scratch = compressed_scratch,
     .run = run_tiled,
     .can_pack = sni_dense_can_compress,
     .pack = sni_dense_pack_compressed,
     .pack_bytes = sni_gemm_compressed_b_size,
     .own_form = true},
    {.name = "half-row",
     .supports = half_row_supports,
     .cycles = row_cycles,
     .scratch = no_scratch,
     .run = run_row},
    {.name = "half",
     .supports = half_supports,
     .cycles = half_cycles,
     .scratch = tiled_scratch,
     .run = run_tiled,
     .can_pack = sni_dense_can_halve,
     .pack = sni_dense_pack_half,
     .pack_bytes = sni_dense_half_bytes,
     .own_form = true},
    {.name = "bf16",
     .available = bf16_available,
     .numerics = SNI_NUMERICS_BF16,
     .supports = bf16_supports,
     .cycles = bf16_cycles,
     .scratch = sni_gemm_bf16_size,
     .run = sni_gemm_run_bf16},
};

enum { ROWS = sizeof table / sizeof *table };

const sni_gemm_algorithm *sni_gemm_algorithm_at(int index) {
    return index >= 0 && index < ROWS ? &table[index] : NULL;
}

const sni_gemm_algorithm *sni_gemm_algorithm_named(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

bool sni_gemm_can_pack_for(const sni_gemm_algorithm *row, uint32_t numerics) {
    return row->pack && !(row->numerics & ~numerics) && (!row->available || row->available());
}

const sni_gemm_algorithm *sni_gemm_choose(const sni_gemm_f32 *g, const sni_costs *costs) {
    const sni_gemm_algorithm *can[ROWS], *best;
    int count = 0;
    if (empty_supports(g)) return &table[0];
    if (g->use && g->use->supports(g)) return g->use;
    for (int i = 0; i < ROWS; i++)
        if (table[i].supports(g)) can[count++] = &table[i];
    best = can[0];
    double least = count > 1 ? best->cycles(g, &costs->gemm) : 0;
    for (int i = 1; i < count; i++) {
        double cycles = can[i]->cycles(g, &costs->gemm);
        if (cycles >= least) continue;
        least = cycles;
        best = can[i];
    }
    return best;
}

const sni_gemm_algorithm *sni_gemm_choose_pack(sni_dense_request *r, const sni_gemm_f32 *g,
                                               uint32_t numerics, const sni_costs *costs) {
    const sni_gemm_algorithm *best = NULL;
    double least = INFINITY;
    for (int i = 0; i < ROWS; i++) {
        const sni_gemm_algorithm *row = &table[i];
        if (!sni_gemm_can_pack_for(row, numerics)) continue;
        double cycles = row->cycles(g, &costs->gemm);
        if ((best && cycles >= least) || !row->can_pack(r)) continue;
        least = cycles;
        best = row;
    }
    return best;
}

/* ---- Calls ---- */

/* The choice, as it was made for the last product with as many rows. A word holds m and the row:
 * threads that run other sizes at once only choose more often. */
static const sni_gemm_algorithm *chosen_for(const sni_gemm_f32 *g) {
    enum { ROW_BITS = 8 };
    if (!g->chosen) return sni_gemm_choose(g, sni_costs_get());
    uint64_t kept = atomic_load_explicit(g->chosen, memory_order_relaxed);
    uint64_t nth = kept & ((1 << ROW_BITS) - 1);
    if (nth && kept >> ROW_BITS == (uint64_t)g->m) return &table[nth - 1];
    const sni_gemm_algorithm *row = sni_gemm_choose(g, sni_costs_get());
    kept = (uint64_t)g->m << ROW_BITS | (uint64_t)(row - table + 1);
    atomic_store_explicit(g->chosen, kept, memory_order_relaxed);
    return row;
}

sni_gemm_call sni_gemm_plan(const sni_gemm_f32 *g, int threads) {
    const sni_gemm_algorithm *row = chosen_for(g);
    if (threads < 1) threads = 1;
    return (sni_gemm_call){row, threads, row->scratch(g, threads)};
}

void sni_gemm_call_run(const sni_gemm_call *call, const sni_gemm_f32 *g, float *scratch) {
    call->algorithm->run(g, call->threads, scratch);
}

size_t sni_gemm_scratch_size(const sni_gemm_f32 *g, int threads) {
    return sni_gemm_plan(g, threads).scratch;
}

void sni_gemm_f32_run(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_call call = sni_gemm_plan(g, threads);
    sni_gemm_call_run(&call, g, scratch);
}
