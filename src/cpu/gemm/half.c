/* half.c - packing of right operands that stay in 16 bits (cpu/gemm/half.h). */
#include "cpu/gemm/half.h"

#include "base/floats.h"
#include "base/threadpool.h"
#include "cpu/gemm/gemm_blocks.h"

#include <string.h>

enum {
    GRAIN = 1 << 15, /* numbers to pack that are worth a thread */
    SOME = 32, /* rows of B that are packed at once: what is written stays in the first cache */
    LINE = 32  /* numbers that are read at once, at least SOME and SNI_MAX_NR */
};

_Static_assert((int)LINE >= (int)SNI_MAX_NR && (int)LINE >= (int)SOME, "lines have room");

typedef struct job {
    const sni_half_source *s;
    int64_t k, n, kc, panels;
    int type, nr;
    uint16_t *to;
} job;

size_t sni_half_size(int64_t k, int64_t n) {
    return (size_t)(sni_round_up(k, 2) * sni_round_up(n, sni_cpu_kernels_get()->nr));
}

/* `count` numbers of B from row p and column j on, `step` elements apart. */
static void read_line(const job *j, int64_t p, int64_t column, int64_t step, int64_t count,
                      uint16_t *to) {
    int64_t at = p * j->s->row + column * j->s->col;
    sn_dtype dtype = j->type == SNI_HALF_BF16 ? SN_BFLOAT16 : SN_FLOAT16;
    if (j->s->floats) {
        const sni_unaligned_float *from = (const sni_unaligned_float *)j->s->from + at;
        float line[LINE];
        for (int64_t i = 0; i < count; i++) line[i] = from[i * step];
        sni_narrow(dtype, line, to, (size_t)count, false);
        return;
    }
    const char *from = (const char *)j->s->from + at * (int64_t)sizeof *to;
    if (step == 1)
        memcpy(to, from, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i, from + i * step * (int64_t)sizeof *to, sizeof *to);
}

/* Where row p and column i of a panel are, from its first row on. */
static inline int64_t place_of(const job *j, int64_t p, int64_t i) {
    return j->type == SNI_HALF_BF16 ? (p / 2 * j->nr + i) * 2 + p % 2 : p * j->nr + i;
}

/* Rows [p, p + rows) of a panel of `cols` columns, by lines along whichever side is contiguous. */
static void pack_some(const job *j, int64_t p, int64_t rows, int64_t column, int64_t cols,
                      int64_t first, uint16_t *to) {
    uint16_t line[LINE];
    if (j->s->row == 1) {
        for (int64_t i = 0; i < cols; i++) {
            read_line(j, p, column + i, 1, rows, line);
            for (int64_t r = 0; r < rows; r++) to[place_of(j, p - first + r, i)] = line[r];
        }
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        read_line(j, p + r, column, j->s->col, cols, line);
        if (j->type == SNI_HALF_F16)
            memcpy(to + place_of(j, p - first + r, 0), line, (size_t)cols * sizeof *line);
        else
            for (int64_t i = 0; i < cols; i++) to[place_of(j, p - first + r, i)] = line[i];
    }
}

/* Pieces are panels of k-blocks, one k-block after the other. Their memory is zeros at first. */
static void pack_pieces(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t p = piece / j->panels * j->kc, column = piece % j->panels * j->nr;
        int64_t kc = sni_min(j->kc, j->k - p), cols = sni_min(j->nr, j->n - column);
        uint16_t *to = j->to + p * j->panels * j->nr + column * sni_round_up(kc, 2);
        for (int64_t r = 0; r < kc; r += SOME)
            pack_some(j, p + r, sni_min(SOME, kc - r), column, cols, p, to);
    }
}

void sni_half_pack(const sni_half_source *s, int64_t k, int64_t n, int type, uint16_t *to) {
    int nr = sni_cpu_kernels_get()->nr;
    job j = {.s = s,
             .k = k,
             .n = n,
             .kc = sni_gemm_depth(k),
             .panels = sni_ceil_div(n, nr),
             .type = type,
             .nr = nr,
             .to = to};
    if (k == 0 || n == 0) return;
    sni_parallel_for(0, j.panels * sni_ceil_div(k, j.kc), GRAIN / (nr * j.kc) + 1, pack_pieces, &j);
}
