/* topk.c - TopK: finds a limit that only a few more elements pass than are wanted, collects those
 * elements, and sorts them alone. */
#include "ops/math/topk.h"

#include "base/threadpool.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/select/radix_sort.h"
#include "cpu/select/min_keys.h"
#include "cpu/move/moves.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

enum {
    SHORT = 24,      /* up to so many elements are sorted directly */
    GROUPS = 64,     /* least number of groups */
    SPREAD = 3,      /* groups per wanted element */
    MEMBERS = 4,     /* least elements of a group; otherwise there are no groups */
    DIGITS = 700,    /* entries from which on radix sort is faster than merging */
    GRAIN = 16384,   /* elements worth a thread */
    TRANSPOSED = 16, /* lanes of an axis that is not the last that are transposed together */
};

/* A key of 64 bits and its position. A key of 32 bits and its position are one number of 64 bits.
 */
typedef struct entry {
    int64_t key, at;
} entry;

#define E uint64_t
#define SUFFIX narrow
#define BEFORE(a, b) ((a) < (b))
#include "cpu/select/merge.inc.c"

#define E entry
#define SUFFIX wide
#define BEFORE(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).at < (b).at))
#include "cpu/select/merge.inc.c"

typedef struct topk_job {
    const sni_min_key_fns *fns;
    void (*make_keys)(const void *x, int64_t n, bool largest, void *keys);
    const void *x;
    void *values;     /* may be NULL */
    int64_t *indices; /* may be NULL */
    unsigned char *buffer;
    int64_t lanes, parts, n, take, inner, cap, part_bytes;
    size_t width;
    bool largest;
} topk_job;

/* The buffers of one part. */
typedef struct topk_room {
    entry *entries, *others;   /* cap */
    int64_t *keys, *least;     /* n, and n / MEMBERS + 1 */
    int32_t *at;               /* cap */
    unsigned char *transposed; /* TRANSPOSED lanes */
} topk_room;

static int64_t room_bytes(const topk_job *j) {
    int64_t lanes = j->inner > 1 ? TRANSPOSED : 0;
    int64_t words = 4 * j->cap + j->n + j->n / MEMBERS + 1 + j->cap / 2 + 1;
    return (words + lanes * j->n) * (int64_t)sizeof(int64_t);
}

static topk_room room_of(const topk_job *j, int64_t part) {
    topk_room r;
    r.entries = (entry *)(void *)(j->buffer + part * j->part_bytes);
    r.others = r.entries + j->cap;
    r.keys = (int64_t *)(r.others + j->cap);
    r.least = r.keys + j->n;
    r.at = (int32_t *)(r.least + j->n / MEMBERS + 1);
    r.transposed = (unsigned char *)(r.at + 2 * (j->cap / 2 + 1));
    return r;
}

/* A limit that at least `take` keys do not exceed, by bisection. If there are many keys, it bisects
 * the minima of groups: `take` groups with a small minimum have `take` small keys. */
static int64_t limit_of(const topk_job *j, const topk_room *r) {
    const void *keys = r->keys;
    int64_t n = j->n, groups = GROUPS, low, high;
    while (groups < SPREAD * j->take) groups *= 2;
    if (n > SHORT && n >= MEMBERS * groups) {
        j->fns->fold(keys, n, groups, r->least);
        keys = r->least;
        n = groups;
    }
    j->fns->ends(keys, n, &low, &high);
    if (j->n <= SHORT || j->take == j->n) return high;
    while (low < high) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        int64_t found = j->fns->count(keys, n, middle);
        if (found < j->take) {
            low = middle + 1;
            continue;
        }
        high = middle;
        if (found <= j->take + j->take / 4) break;
    }
    return high;
}

/* Sorts n found positions at r->at by key; the first `take` stay there. Returns the key of the last
 * of those. */
static int64_t sort_found(const topk_job *j, topk_room *r, int64_t n) {
    if (j->width == sizeof(int32_t)) {
        const int32_t *keys = (const int32_t *)r->keys;
        uint64_t *e = (uint64_t *)r->entries, *other = (uint64_t *)r->others;
        for (int64_t i = 0; i < n; i++)
            e[i] = (uint64_t)((uint32_t)keys[r->at[i]] ^ 0x80000000u) << 32 | (uint32_t)r->at[i];
        e = n < DIGITS ? sort_narrow(e, other, n) : sni_radix_sort(e, other, n);
        for (int64_t i = 0; i < j->take; i++) r->at[i] = (int32_t)(uint32_t)e[i];
        return keys[r->at[j->take - 1]];
    }
    entry *e = r->entries;
    for (int64_t i = 0; i < n; i++) e[i] = (entry){r->keys[r->at[i]], r->at[i]};
    e = sort_wide(e, r->others, n);
    for (int64_t i = 0; i < j->take; i++) r->at[i] = (int32_t)e[i].at;
    return e[j->take - 1].key;
}

/* r->at = the positions of a lane's first `take` elements, in order. */
static void best_of(const topk_job *j, const void *lane, topk_room *r) {
    j->make_keys(lane, j->n, j->largest, r->keys);
    int64_t limit = limit_of(j, r), from = 0, found = 0;
    const int64_t least = j->width == sizeof(int32_t) ? INT32_MIN : INT64_MIN;
    for (;;) {
        found += j->fns->find(r->keys, j->n, limit, &from, r->at + found, j->cap - found);
        int64_t last = sort_found(j, r, found);
        if (from == j->n || last == least) return; /* among equal keys the first positions win */
        limit = last - 1;
        found = j->take;
    }
}

static void put_lane(const topk_job *j, const void *lane, const int32_t *at, int64_t to) {
    for (int64_t t = 0; t < j->take; t++) {
        int64_t place = to + t * j->inner;
        if (j->indices) j->indices[place] = at[t];
        if (!j->values) continue;
        if (j->width == sizeof(int32_t))
            ((uint32_t *)j->values)[place] = ((const uint32_t *)lane)[at[t]];
        else
            ((uint64_t *)j->values)[place] = ((const uint64_t *)lane)[at[t]];
    }
}

/* Processes parts of the lanes. */
static void topk_piece(void *ctx, int64_t begin, int64_t end) {
    const topk_job *j = ctx;
    topk_room r = room_of(j, begin);
    int64_t last = end * j->lanes / j->parts, ready = 0;
    const unsigned char *lane = NULL;
    for (int64_t i = begin * j->lanes / j->parts; i < last; i++) {
        int64_t outer = i / j->inner, column = i % j->inner;
        if (j->inner == 1) {
            lane = sni_element(j->x, i * j->n, j->width);
        } else if (ready > 0) {
            lane += (size_t)j->n * j->width;
            ready--;
        } else {
            int64_t columns = j->inner - column < last - i ? j->inner - column : last - i;
            if (columns > TRANSPOSED) columns = TRANSPOSED;
            sni_move_transpose(j->width,
                               sni_element(j->x, outer * j->n * j->inner + column, j->width),
                               j->inner, j->n, columns, r.transposed, j->n);
            lane = r.transposed;
            ready = columns - 1;
        }
        best_of(j, lane, &r);
        put_lane(j, lane, r.at, outer * j->take * j->inner + column);
    }
}

static bool topk_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) || sni_choice_is(c, 0, SN_FLOAT64) ||
           sni_choice_is(c, 0, SN_INT32) || sni_choice_is(c, 0, SN_INT64);
}

static sn_status topk_run(sni_kernel *k) {
    const sni_topk_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *values = sni_out(k, 0), *indices = sni_out(k, 1);
    const sni_tensor *shape = values ? values : indices;
    if (!shape || shape->count == 0) return SN_OK;
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    const sni_min_keys *least = sni_min_keys_get();
    size_t width = sni_dtype_width(x->dtype);
    topk_job j = {.fns = width == sizeof(int32_t) ? &least->narrow : &least->wide,
                  .make_keys = least->keys[x->dtype],
                  .x = x->data,
                  .values = values ? values->data : NULL,
                  .indices = indices ? indices->data : NULL,
                  .n = x->dims[axis],
                  .take = shape->dims[axis],
                  .inner = sni_tensor_span(x, axis + 1, x->rank),
                  .width = width,
                  .largest = p->largest != 0};
    if (j.n > INT32_MAX) return k->node->op->ref(k);
    int64_t threads = k->threads > 0 ? k->threads : sni_threads_available();
    j.lanes = shape->count / j.take;
    j.parts = x->count / GRAIN + 1;
    if (j.parts > threads) j.parts = threads;
    if (j.parts > j.lanes) j.parts = j.lanes;
    j.cap = 4 * j.take + GROUPS < j.n ? 4 * j.take + GROUPS : j.n;
    j.cap += SNI_MIN_KEYS_CHUNK;
    j.part_bytes = room_bytes(&j);
    void *buffer = NULL;
    SN_TRY(sni_scratch_matrix(k, j.parts, j.part_bytes, 1, &buffer));
    j.buffer = buffer;
    sni_parallel_for(k->threads, j.parts, 1, topk_piece, &j);
    return SN_OK;
}

const sni_impl sni_cpu_topk = {
    .name = "topk",
    .op = "TopK",
    .accepts = topk_accepts,
    .run = topk_run,
};
