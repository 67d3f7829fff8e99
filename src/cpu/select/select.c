/* select.c - NonZero, and GatherND of rows. */
#include "cpu/core/cpu_ep.h"
#include "ops/core/compute.h"
#include "ops/tensor/gather.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

/* ---- NonZero ---- */

static bool nonzero_accepts(const sni_choice *c) {
    static const sn_dtype types[] = {SN_BOOL, SN_UINT8, SN_INT32, SN_INT64, SN_FLOAT32};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (sni_choice_is(c, 0, types[i])) return true;
    return false;
}

/* The bits of element i; it is not 0 if any is set. `mask` hides the sign of floats. */
static inline uint64_t bits_of(const void *data, int64_t i, int width, uint64_t mask) {
    if (width == 1) return ((const uint8_t *)data)[i];
    if (width == 4) return ((const uint32_t *)data)[i] & mask;
    return ((const uint64_t *)data)[i];
}

static inline int64_t count_row(const void *data, int64_t n, int width, uint64_t mask) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) found += bits_of(data, i, width, mask) != 0;
    return found;
}

/* Writes the positions, less `from`, of the elements [from, from + n) that are not 0; returns their
 * number. */
static inline int64_t find_row(const void *data, int64_t from, int64_t n, int width, uint64_t mask,
                               int64_t *out) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        if (bits_of(data, from + i, width, mask)) out[found++] = i;
    return found;
}

static int64_t count(const sni_tensor *x, uint64_t mask) {
    switch (sni_dtype_width(x->dtype)) {
    case 1:
        return count_row(x->data, x->count, 1, mask);
    case 4:
        return count_row(x->data, x->count, 4, mask);
    default:
        return count_row(x->data, x->count, 8, mask);
    }
}

static int64_t find(const sni_tensor *x, int64_t from, int64_t n, uint64_t mask, int64_t *out) {
    switch (sni_dtype_width(x->dtype)) {
    case 1:
        return find_row(x->data, from, n, 1, mask, out);
    case 4:
        return find_row(x->data, from, n, 4, mask, out);
    default:
        return find_row(x->data, from, n, 8, mask, out);
    }
}

/* Rows of the last axis one by one: the other coordinates are the same for a whole row. */
static sn_status nonzero_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    if (x->rank == 0) return k->node->op->ref(k);
    uint64_t mask = x->dtype == SN_FLOAT32 ? 0x7fffffffu : UINT64_MAX;
    int64_t n = count(x, mask), width = x->dims[x->rank - 1], at = 0;
    SN_TRY(sni_out_alloc(k, 0, SN_INT64, 2, (const int64_t[]){x->rank, n}));
    sni_tensor *y = sni_out(k, 0);
    if (!y || n == 0) return SN_OK;
    int64_t *out = y->data, place[SN_MAX_RANK] = {0};
    for (int64_t row = 0; row < x->count / width; row++) {
        int64_t found = find(x, row * width, width, mask, out + (x->rank - 1) * n + at);
        for (int a = 0; a < x->rank - 1; a++)
            for (int64_t i = 0; i < found; i++) out[a * n + at + i] = place[a];
        at += found;
        for (int a = x->rank - 2; a >= 0 && ++place[a] == x->dims[a]; a--) place[a] = 0;
    }
    return SN_OK;
}

const sni_impl sni_cpu_nonzero = {
    .name = "nonzero",
    .op = "NonZero",
    .accepts = nonzero_accepts,
    .run = nonzero_run,
};

/* ---- GatherND with indices of one number: rows of the first axis ---- */

static bool rows_accepts(const sni_choice *c) {
    const sni_gather_nd_params *p = c->params;
    int rank = sni_choice_rank(c, 1);
    return p->batch_dims == 0 && sni_choice_is(c, 1, SN_INT64) && rank > 0 &&
           c->in[1]->dims[rank - 1] == 1 && !sni_choice_is(c, 0, SN_STRING);
}

typedef struct rows_job {
    const char *x;
    char *y;
    const int64_t *index;
    int64_t rows;
    size_t bytes;         /* of a row */
    _Atomic bool outside; /* an index is out of range */
} rows_job;

/* Copies rows of `bytes`, which is a constant at most calls; false if an index is out of range. */
static inline bool copy_rows(const rows_job *j, int64_t begin, int64_t end, size_t bytes) {
    char *y = j->y + (size_t)begin * bytes;
    for (int64_t i = begin; i < end; i++, y += bytes) {
        int64_t at = j->index[i] < 0 ? j->index[i] + j->rows : j->index[i];
        if (at < 0 || at >= j->rows) return false;
        memcpy(y, j->x + (size_t)at * bytes, bytes);
    }
    return true;
}

static void some_rows(void *ctx, int64_t begin, int64_t end) {
    rows_job *j = ctx;
    bool fits;
    switch (j->bytes) {
    case 4:
        fits = copy_rows(j, begin, end, 4);
        break;
    case 8:
        fits = copy_rows(j, begin, end, 8);
        break;
    case 16:
        fits = copy_rows(j, begin, end, 16);
        break;
    default:
        fits = copy_rows(j, begin, end, j->bytes);
    }
    if (!fits) j->outside = true;
}

static sn_status rows_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    if (y->count == 0) return k->node->op->ref(k); /* which checks the indices */
    rows_job j = {.x = x->data,
                  .y = y->data,
                  .index = index->data,
                  .rows = x->dims[0],
                  .bytes = (size_t)(y->count / index->count) * sni_dtype_width(x->dtype)};
    sni_share(k->threads, index->count, (int64_t)j.bytes, some_rows, &j);
    return j.outside ? k->node->op->ref(k) : SN_OK; /* which fails with a message */
}

const sni_impl sni_cpu_gather_rows = {
    .name = "gather_rows",
    .op = "GatherND",
    .accepts = rows_accepts,
    .run = rows_run,
};
