/* select.c - TopK of float32, NonZero, and GatherND of rows. */
#include "base/threadpool.h"
#include "ep/cpu/cpu_ep.h"
#include "ep/cpu/keys.h"
#include "ops/compute.h"
#include "ops/gather.h"
#include "ops/shape_util.h"
#include "ops/tensor_util.h"
#include "ops/topk.h"

/* ---- TopK ---- */

enum {
    FEW = 16,      /* up to one in so many is found quicker without sorting all ... */
    SHORT = 256,   /* ... as it is in lanes of so many */
    SKIP = 32,     /* keys looked at together */
    GRAIN = 16384, /* elements worth a thread */
};

typedef struct topk_job {
    const float *x;
    float *values;    /* may be NULL */
    int64_t *indices; /* may be NULL */
    uint64_t *room;   /* 2 n for each part */
    int64_t lanes, parts, n, take, inner;
    bool largest;
} topk_job;

static bool topk_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32);
}

/* Keys of a lane's elements, in the order of the result once they are sorted. */
static void make_keys(const float *lane, int64_t step, int64_t n, bool largest, uint32_t *keys) {
    const uint32_t turn = largest ? 0 : UINT32_MAX;
    if (step == 1)
        for (int64_t i = 0; i < n; i++) keys[i] = sni_falling_key(lane[i]) ^ turn;
    else
        for (int64_t i = 0; i < n; i++) keys[i] = sni_falling_key(lane[i * step]) ^ turn;
}

/* Lets heap[at] sink to its place among n; the root is the greatest. */
static void sink(uint64_t *heap, int64_t n, int64_t at) {
    uint64_t key = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= key) break;
        heap[at] = heap[child];
    }
    heap[at] = key;
}

/* The least `take` of n keys, which stand without their positions, in order. */
static void least_keys(const uint32_t *keys, int64_t n, uint64_t *heap, int64_t take) {
    for (int64_t i = 0; i < take; i++) heap[i] = (uint64_t)keys[i] << 32 | (uint64_t)i;
    for (int64_t i = take / 2; i-- > 0;) sink(heap, take, i);
    for (int64_t i = take; i < n; i += SKIP) {
        int64_t end = i + SKIP < n ? i + SKIP : n;
        uint32_t worst = (uint32_t)(heap[0] >> 32), some = 0;
        if (end - i == SKIP)
            for (int j = 0; j < SKIP; j++) some |= keys[i + j] < worst;
        else
            some = 1;
        for (int64_t j = i; some && j < end; j++) { /* of equal ones the first stays */
            if (keys[j] >= heap[0] >> 32) continue;
            heap[0] = (uint64_t)keys[j] << 32 | (uint64_t)j;
            sink(heap, take, 0);
        }
    }
    for (int64_t m = take - 1; m > 0; m--) {
        uint64_t last = heap[0];
        heap[0] = heap[m];
        heap[m] = last;
        sink(heap, m, 0);
    }
}

/* Parts of the lanes. */
static void topk_piece(void *ctx, int64_t begin, int64_t end) {
    const topk_job *j = ctx;
    uint64_t *keys = j->room + begin * 2 * j->n, *other = keys + j->n;
    bool few = j->take < j->n / FEW || j->n <= SHORT;
    for (int64_t i = begin * j->lanes / j->parts; i < end * j->lanes / j->parts; i++) {
        int64_t to = i / j->inner * j->take * j->inner + i % j->inner;
        const float *lane = j->x + i / j->inner * j->n * j->inner + i % j->inner;
        uint32_t *plain = (uint32_t *)keys;
        make_keys(lane, j->inner, j->n, j->largest, plain);
        const uint64_t *sorted = other;
        if (few) {
            least_keys(plain, j->n, other, j->take);
        } else {
            for (int64_t t = 0; t < j->n; t++) other[t] = (uint64_t)plain[t] << 32 | (uint64_t)t;
            sorted = sni_sort_keys(other, keys, j->n);
        }
        for (int64_t t = 0; t < j->take; t++) {
            int64_t at = (int64_t)(uint32_t)sorted[t];
            if (j->indices) j->indices[to + t * j->inner] = at;
            if (j->values) j->values[to + t * j->inner] = lane[at * j->inner];
        }
    }
}

static sn_status topk_run(sni_kernel *k) {
    const sni_topk_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *values = sni_out(k, 0), *indices = sni_out(k, 1);
    const sni_tensor *shape = values ? values : indices;
    if (!shape || shape->count == 0) return SN_OK;
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    topk_job j = {.x = x->data,
                  .values = values ? values->data : NULL,
                  .indices = indices ? indices->data : NULL,
                  .n = x->dims[axis],
                  .take = shape->dims[axis],
                  .inner = sni_tensor_span(x, axis + 1, x->rank),
                  .largest = p->largest != 0};
    if (j.n > INT32_MAX) return k->node->op->ref(k);
    int64_t threads = k->threads > 0 ? k->threads : sni_threads_available();
    j.lanes = shape->count / j.take;
    j.parts = x->count / GRAIN + 1;
    if (j.parts > threads) j.parts = threads;
    if (j.parts > j.lanes) j.parts = j.lanes;
    void *room = NULL;
    SN_TRY(sni_scratch_matrix(k, 2 * j.parts, j.n, sizeof(uint64_t), &room));
    j.room = room;
    sni_parallel_for(k->threads, j.parts, 1, topk_piece, &j);
    return SN_OK;
}

const sni_impl sni_cpu_topk = {
    .name = "topk_f32",
    .op = "TopK",
    .accepts = topk_accepts,
    .run = topk_run,
};

/* ---- NonZero ---- */

static bool nonzero_accepts(const sni_choice *c) {
    static const sn_dtype types[] = {SN_BOOL, SN_UINT8, SN_INT32, SN_INT64, SN_FLOAT32};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (sni_choice_is(c, 0, types[i])) return true;
    return false;
}

/* Bits of element i that make it other than 0; a float's sign is none of them. */
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

/* Positions of the elements [from, from + n) that are not 0, counted from 0. */
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

/* Row by row of the last axis: the other coordinates of a row are the same for all of it. */
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

/* ---- GatherND by one index each: rows of the first axis ---- */

static bool rows_accepts(const sni_choice *c) {
    const sni_gather_nd_params *p = c->params;
    int rank = sni_choice_rank(c, 1);
    return p->batch_dims == 0 && sni_choice_is(c, 1, SN_INT64) && rank > 0 &&
           c->in[1]->dims[rank - 1] == 1 && !sni_choice_is(c, 0, SN_STRING);
}

/* Copies rows of `bytes`, a constant where the call says so; false: an index is out of range. */
static inline bool copy_rows(const char *x, int64_t rows, const int64_t *index, int64_t n,
                             size_t bytes, char *y) {
    for (int64_t i = 0; i < n; i++, y += bytes) {
        int64_t at = index[i] < 0 ? index[i] + rows : index[i];
        if (at < 0 || at >= rows) return false;
        memcpy(y, x + (size_t)at * bytes, bytes);
    }
    return true;
}

static sn_status rows_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    int64_t rows = x->dims[0], n = index->count;
    if (y->count == 0) return k->node->op->ref(k); /* indices are checked all the same */
    size_t bytes = (size_t)(y->count / n) * sni_dtype_width(x->dtype);
    bool fits;
    switch (bytes) {
    case 4:
        fits = copy_rows(x->data, rows, index->data, n, 4, y->data);
        break;
    case 8:
        fits = copy_rows(x->data, rows, index->data, n, 8, y->data);
        break;
    case 16:
        fits = copy_rows(x->data, rows, index->data, n, 16, y->data);
        break;
    default:
        fits = copy_rows(x->data, rows, index->data, n, bytes, y->data);
    }
    return fits ? SN_OK : k->node->op->ref(k); /* which says what is wrong */
}

const sni_impl sni_cpu_gather_rows = {
    .name = "gather_rows",
    .op = "GatherND",
    .accepts = rows_accepts,
    .run = rows_run,
};
