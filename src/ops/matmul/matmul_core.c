/* matmul_core.c - the reference matrix product. C is divided into blocks of columns (and of rows
 * when there are few columns); the rows of B that a block needs are copied to a small panel, and
 * tiles of MR x NR are summed in registers. */
#include "ops/core/kernel_hooks.h"

#include "base/threadpool.h"
#include "ops/matmul/matmul_panel.h"

enum {
    MR = 4, /* of a tile */
    TILE_VECTORS = 2,
    TILE_BYTES = 16,
    BLOCK_ROWS = 64,     /* rows of a block of C where rows are split among threads */
    GRAIN_MACS = 65536,  /* multiply-accumulates worth a thread */
    POLL_MACS = 1 << 30, /* ... after which the run may be told to stop */
};

#define BODY "ops/matmul/matmul_core.inc.c"
#define TYPE SNI_TYPE_F32
#include "ops/core/one_type.inc.h"
#undef BODY

#include "ops/matmul/matmul_types.inc.c"

static const sni_gemm_core *core_of(const sni_kernel *k, sn_dtype dtype) {
    const sni_gemm_core *hooked = k->hooks && k->hooks->core ? k->hooks->core(dtype) : NULL;
    if (hooked) return hooked;
    switch (dtype) {
    case SN_FLOAT32:
        return &gemm_core_f32;
    case SN_FLOAT64:
        return &gemm_core_f64;
    case SN_INT32:
    case SN_UINT32:
        return &gemm_core_u32;
    default:
        return &gemm_core_u64;
    }
}

typedef struct gemm_job {
    const sni_gemm *g;
    const sni_gemm_core *core;
    int64_t row_blocks, col_blocks; /* of one product */
    int64_t block_rows;
    int64_t first;             /* block of the slice under way */
    sni_gemm_locate_fn locate; /* NULL: one product */
    const void *ctx;
} gemm_job;

static void gemm_block(const sni_gemm_core *c, const sni_gemm *g, int64_t m0, int64_t m1,
                       int64_t n0, int64_t n1) {
    if (g->k == 0) {
        if (!g->add) c->zero(g, m0, m1, n0, n1);
    } else if (m1 - m0 <= FEW_ROWS && !g->fill) {
        for (int64_t i = m0; i < m1; i++) c->row(g, i, n0, n1);
    } else {
        c->block(g, m0, m1, n0, n1 - n0);
    }
}

static void gemm_piece(void *ctx, int64_t begin, int64_t end) {
    const gemm_job *j = ctx;
    int64_t per_product = j->row_blocks * j->col_blocks;
    int64_t at = -1;
    sni_gemm g = *j->g;
    for (int64_t i = j->first + begin; i < j->first + end; i++) {
        if (i / per_product != at) {
            at = g.product = i / per_product;
            if (j->locate) j->locate(j->ctx, at, &g);
        }
        int64_t m0 = i % per_product / j->col_blocks * j->block_rows;
        int64_t n0 = i % j->col_blocks * PANEL_COLS;
        gemm_block(j->core, &g, m0, g.m - m0 < j->block_rows ? g.m : m0 + j->block_rows, n0,
                   g.n - n0 < PANEL_COLS ? g.n : n0 + PANEL_COLS);
    }
}

sn_status sni_gemm_batch(sni_kernel *k, sn_dtype dtype, const sni_gemm *g, int64_t count,
                         sni_gemm_locate_fn locate, const void *ctx) {
    if (g->m <= 0 || g->n <= 0 || count <= 0) return SN_OK;
    const sni_kernel_hooks *hooks = sni_kernel_hooks_for(k, dtype);
    if (hooks) return hooks->gemm(k, g, count, locate, ctx);
    gemm_job job = {.g = g, .core = core_of(k, dtype), .locate = locate, .ctx = ctx};
    job.col_blocks = (g->n - 1) / PANEL_COLS + 1;
    job.block_rows = job.col_blocks * count < 32 && k->threads != 1 ? BLOCK_ROWS : g->m;
    job.row_blocks = (g->m - 1) / job.block_rows + 1;
    double macs = (double)PANEL_COLS * (double)job.block_rows * (double)(g->k + 1);
    int64_t grain = macs >= GRAIN_MACS ? 1 : (int64_t)(GRAIN_MACS / macs) + 1;
    int64_t blocks = job.row_blocks * job.col_blocks * count;
    int64_t slice = macs >= POLL_MACS ? 1 : (int64_t)(POLL_MACS / macs) + 1;
    for (job.first = 0; job.first < blocks; job.first += slice) {
        SN_TRY(sni_poll(k));
        int64_t n = blocks - job.first < slice ? blocks - job.first : slice;
        sni_parallel_for(k->threads, n, grain, gemm_piece, &job);
    }
    return SN_OK;
}

sn_status sni_gemm_run(sni_kernel *k, sn_dtype dtype, const sni_gemm *g) {
    return sni_gemm_batch(k, dtype, g, 1, NULL, NULL);
}
