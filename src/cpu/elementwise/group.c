/* group.c - runs the program of a Group (group.h) tile by tile. Every step processes a row of a few
 * hundred floats that stays in the first-level cache, so that main memory is read and written once
 * for the whole group. */
#include "cpu/elementwise/group.h"

#include "base/checked.h"
#include "base/threadpool.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <stdlib.h>

enum {
    MEMORY = 4096, /* floats of all buffers of a tile: 16 KiB */
    MOST = 1024,   /* most elements of a tile */
    CHUNK = 32,    /* tiles of a row that are reduced together: fixed, so that results do not depend
                      on the number of threads */
    WORTH = 8192   /* elements worth a thread */
};

/* How an input is laid out along a tile: a contiguous row, one element, or something else that is
 * copied to a buffer first. */
typedef enum layout { ROW, ONE, SPREAD } layout;

/* The shape of the group with axes merged where all inputs allow it. A tile is a range of axis
 * `cut` with all of the axes behind it. */
typedef struct job {
    const sni_group_program *p;
    const sni_map_kernels *kernels;
    const void *in[SNI_GROUP_INPUTS];
    void *out[SNI_GROUP_OUTPUTS];
    int shape_rank; /* of the group */
    int64_t shape[SN_MAX_RANK], count;
    int rank;                                     /* of the merged axes; at least 1 */
    int64_t dims[SN_MAX_RANK], span[SN_MAX_RANK]; /* span: elements from one index to the next */
    int64_t strides[SNI_GROUP_INPUTS][SN_MAX_RANK];
    layout lies[SNI_GROUP_INPUTS];
    int cut;
    int64_t range;  /* of a tile along axis `cut` */
    int64_t ranges; /* tiles along it */
    int64_t room;   /* floats of one buffer: a multiple of 16 */
    /* Reductions: rows of `row` elements begin with merged axis `edge`. */
    int kept; /* axes of the group */
    int edge;
    int64_t row;
    int64_t per_row; /* tiles; 0: a tile has whole rows */
    int64_t chunks;  /* of a row */
    float *results;
    unsigned char *partial; /* an accumulator for each chunk; NULL: one per row */
} job;

enum { ACC = SNI_REDUCE_ACC_MAX };

/* ---- Inputs that must be copied to a buffer ---- */

static void fill(float *to, float v, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

static const void *element(const job *j, int i, int64_t offset) {
    return (const unsigned char *)j->in[i] + (size_t)offset * sni_dtype_width(j->p->in_type[i]);
}

static void load_run(const job *j, int i, int64_t offset, float *to, int64_t n) {
    const void *from = element(j, i, offset);
    switch (j->p->in_type[i]) {
    case SN_BOOL:
        j->kernels->from_bools(from, to, n);
        break;
    case SN_INT32:
        j->kernels->from_int32(from, to, n);
        break;
    case SN_INT64:
        j->kernels->from_int64(from, to, n);
        break;
    default:
        memcpy(to, from, (size_t)n * sizeof *to);
    }
}

/* Copies `count` indices of an axis, with all axes behind it, to a contiguous buffer. Recursion is
 * as deep as there are axes. */
static void spread(const job *j, int i, int axis, int64_t count, int64_t offset, float *to) {
    int64_t stride = j->strides[i][axis], span = j->span[axis];
    if (axis == j->rank - 1) {
        load_run(j, i, offset, to, stride ? count : 1);
        if (!stride) fill(to + 1, to[0], count - 1);
        return;
    }
    for (int64_t k = 0; k < (stride ? count : 1); k++)
        spread(j, i, axis + 1, j->dims[axis + 1], offset + k * stride, to + k * span);
    if (stride) return;
    for (int64_t done = 1; done < count;) { /* repeat what is there already */
        int64_t more = done < count - done ? done : count - done;
        memcpy(to + done * span, to, (size_t)(more * span) * sizeof *to);
        done += more;
    }
}

/* ---- A tile ---- */

typedef struct tile {
    const float *at[SNI_GROUP_SLOTS];
    int64_t stride[SNI_GROUP_SLOTS];
    int64_t seen[SNI_GROUP_INPUTS]; /* the offset that an input's buffer was filled from ... */
    int64_t held[SNI_GROUP_INPUTS]; /* ... and for how many elements; 0: not filled */
    float *memory;
} tile;

static void tile_init(const job *j, tile *t, float *memory) {
    const sni_group_program *p = j->p;
    t->memory = memory;
    for (int s = p->n_in; s < p->n_slots; s++) {
        t->stride[s] = !p->is_const[s];
        t->at[s] = p->is_const[s] ? &p->constant[s]
                                  : memory + (p->buffer[s] < 0 ? 0 : p->buffer[s]) * j->room;
    }
    int buffer = p->n_buffers;
    for (int i = 0; i < p->n_in; i++) {
        bool own = j->lies[i] == SPREAD || p->in_type[i] != SN_FLOAT32;
        t->held[i] = 0;
        t->at[i] = own ? memory + buffer++ * j->room : NULL;
        t->stride[i] = j->lies[i] != ONE;
    }
}

/* Sets the inputs' slots for a tile, and fills their buffers where needed. */
static void tile_load(const job *j, tile *t, int64_t outer, int64_t start, int64_t count) {
    for (int i = 0; i < j->p->n_in; i++) {
        const int64_t *strides = j->strides[i];
        int64_t offset = start * strides[j->cut], index = outer;
        for (int axis = j->cut - 1; axis >= 0; axis--) {
            offset += index % j->dims[axis] * strides[axis];
            index /= j->dims[axis];
        }
        if (j->lies[i] != SPREAD && j->p->in_type[i] == SN_FLOAT32) {
            t->at[i] = element(j, i, offset);
            continue;
        }
        int64_t n = count * j->span[j->cut];
        if (t->held[i] >= n && t->seen[i] == offset) continue;
        float *to = (float *)t->at[i];
        if (j->lies[i] == SPREAD)
            spread(j, i, j->cut, count, offset, to);
        else
            load_run(j, i, offset, to, j->lies[i] == ONE ? 1 : n);
        t->seen[i] = offset;
        t->held[i] = n;
    }
}

static void run_map(const sni_group_step *s, const tile *t, float *to, int64_t n) {
    const float *x = t->at[s->in[0]];
    bool row = t->stride[s->in[0]] != 0;
    s->fn.map(s->p0, s->p1, x, to, row ? n : 1);
    if (!row) fill(to + 1, to[0], n - 1);
}

static void run_choice(const job *j, const sni_group_step *s, const tile *t, float *to, int64_t n) {
    const float *c = t->at[s->in[0]], *a = t->at[s->in[1]], *b = t->at[s->in[2]];
    int64_t sa = t->stride[s->in[1]], sb = t->stride[s->in[2]];
    if (t->stride[s->in[0]]) {
        j->kernels->choose_row(c, a, b, to, n, sa, sb);
        return;
    }
    if (*c != 0 ? sa : sb)
        memmove(to, *c != 0 ? a : b, (size_t)n * sizeof *to);
    else
        fill(to, *c != 0 ? *a : *b, n);
}

static void run_steps(const job *j, const tile *t, int64_t n) {
    const sni_group_program *p = j->p;
    for (int i = 0; i < p->n_steps; i++) {
        const sni_group_step *s = &p->steps[i];
        float *to = (float *)t->at[s->to];
        if (s->kind == SNI_GROUP_MAP)
            run_map(s, t, to, n);
        else if (s->kind == SNI_GROUP_BINARY)
            s->fn.binary(t->at[s->in[0]], t->at[s->in[1]], to, n, t->stride[s->in[0]],
                         t->stride[s->in[1]], NULL);
        else
            run_choice(j, s, t, to, n);
    }
}

static void store_outputs(const job *j, const tile *t, int64_t at, int64_t n) {
    const sni_group_program *p = j->p;
    for (int i = 0; i < p->n_out; i++) {
        if (!p->late[i] || i == p->reduction) continue;
        if (p->out_type[i] == SN_BOOL)
            j->kernels->to_bools(t->at[p->out[i]], (uint8_t *)j->out[i] + at, n);
        else
            memcpy((float *)j->out[i] + at, t->at[p->out[i]], (size_t)n * sizeof(float));
    }
}

/* Tile number `index`; returns how many elements it has. */
static int64_t run_tile(const job *j, tile *t, int64_t index) {
    const sni_group_program *p = j->p;
    int64_t outer = index / j->ranges, start = index % j->ranges * j->range;
    int64_t count = j->dims[j->cut] - start < j->range ? j->dims[j->cut] - start : j->range;
    int64_t n = count * j->span[j->cut];
    int64_t at = (outer * j->dims[j->cut] + start) * j->span[j->cut];
    tile_load(j, t, outer, start, count);
    for (int i = 0; i < p->n_out; i++)
        if (!p->late[i]) t->at[p->out[i]] = (float *)j->out[i] + at;
    run_steps(j, t, n);
    store_outputs(j, t, at, n);
    if (p->reducer && !j->per_row) { /* whole rows */
        _Alignas(16) unsigned char acc[ACC];
        for (int64_t r = 0; r < n / j->row; r++) {
            p->reducer->init(acc, 1);
            p->reducer->row(acc, t->at[p->reduced] + r * j->row, j->row);
            p->reducer->finish(acc, j->results + at / j->row + r, 1, j->row);
        }
    }
    return n;
}

static void run_tiles(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    _Alignas(SNI_ALIGN) float memory[MEMORY];
    tile t;
    tile_init(j, &t, memory);
    for (int64_t index = begin; index < end; index++) run_tile(j, &t, index);
}

/* Chunks of rows that are longer than a tile. */
static void run_chunks(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const sni_reducer *reducer = j->p->reducer;
    _Alignas(SNI_ALIGN) float memory[MEMORY];
    _Alignas(16) unsigned char acc[ACC];
    tile t;
    tile_init(j, &t, memory);
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t row = chunk / j->chunks, first = chunk % j->chunks * CHUNK;
        int64_t last = first + CHUNK < j->per_row ? first + CHUNK : j->per_row;
        reducer->init(acc, 1);
        for (int64_t i = first; i < last; i++) {
            int64_t n = run_tile(j, &t, row * j->per_row + i);
            reducer->row(acc, t.at[j->p->reduced], n);
        }
        if (j->partial)
            memcpy(j->partial + chunk * ACC, acc, ACC);
        else
            reducer->finish(acc, j->results + row, 1, j->row);
    }
}

/* Combines the chunks' accumulators in a fixed order. */
static void join_chunks(const job *j, int64_t rows) {
    for (int64_t row = 0; row < rows; row++) {
        unsigned char *first = j->partial + row * j->chunks * ACC;
        for (int64_t i = 1; i < j->chunks; i++) {
            if (j->p->selects) {
                j->p->reducer->row(first, first + i * ACC, 1);
            } else {
                double sum, more;
                memcpy(&sum, first, sizeof sum);
                memcpy(&more, first + i * ACC, sizeof more);
                sum += more;
                memcpy(first, &sum, sizeof sum);
            }
        }
        j->p->reducer->finish(first, j->results + row, 1, j->row);
    }
}

/* ---- Shapes ---- */

/* Computes the broadcast shape; false if the inputs do not broadcast. */
static bool find_shape(const sni_kernel *k, job *j) {
    j->shape_rank = j->p->const_rank;
    for (int i = 0; i < k->n_in; i++) {
        const sni_tensor *x = sni_in(k, i);
        if (!x || x->dtype != j->p->in_type[i]) return false;
        if (x->rank > j->shape_rank) j->shape_rank = x->rank;
        j->in[i] = x->data;
    }
    for (int axis = 0; axis < j->shape_rank; axis++) j->shape[axis] = 1;
    for (int i = 0; i < k->n_in; i++) {
        const sni_tensor *x = sni_in(k, i);
        int64_t *shape = j->shape + j->shape_rank - x->rank;
        for (int axis = 0; axis < x->rank; axis++) {
            if (shape[axis] == 1) shape[axis] = x->dims[axis];
            if (x->dims[axis] != 1 && x->dims[axis] != shape[axis]) return false;
        }
    }
    j->count = 1;
    for (int axis = 0; axis < j->shape_rank; axis++)
        if (!sni_mul_i64(j->count, j->shape[axis], &j->count)) return false;
    return true;
}

/* Finds the reduced axes; false unless they are the last ones. */
static bool find_rows(job *j) {
    bool gone[SN_MAX_RANK] = {false};
    int rank = j->shape_rank;
    for (int i = 0; i < j->p->n_axes; i++) {
        int64_t axis = j->p->axes[i];
        if (axis < -rank || axis >= rank) return false;
        gone[axis < 0 ? axis + rank : axis] = true;
    }
    j->kept = 0;
    while (j->kept < rank && !gone[j->kept]) j->kept++;
    j->row = 1;
    for (int axis = j->kept; axis < rank; axis++) {
        if (!gone[axis]) return false;
        j->row *= j->shape[axis];
    }
    return true;
}

/* Sets the operands; false if they are not what the program was compiled for. */
static bool bind(const sni_kernel *k, job *j) {
    if (!find_shape(k, j) || (j->p->reducer && !find_rows(j))) return false;
    for (int i = 0; i < k->n_out; i++) {
        sni_tensor *y = sni_out(k, i);
        if (!y || y->dtype != j->p->out_type[i]) return false;
        j->out[i] = y->data;
        if (i == j->p->reduction) {
            if (y->count * j->row != j->count) return false;
            continue;
        }
        if (y->rank != j->shape_rank) return false;
        for (int axis = 0; axis < y->rank; axis++)
            if (y->dims[axis] != j->shape[axis]) return false;
    }
    return true;
}

/* Appends an axis, merged with the one before if all inputs' strides allow it and `apart` is false.
 */
static void add_axis(job *j, int64_t size, const int64_t *stride, bool apart) {
    bool merge = j->rank > 0 && !apart;
    for (int i = 0; i < j->p->n_in && merge; i++)
        merge = j->strides[i][j->rank - 1] == stride[i] * size;
    if (!merge) j->dims[j->rank++] = 1;
    j->dims[j->rank - 1] *= size;
    for (int i = 0; i < j->p->n_in; i++) j->strides[i][j->rank - 1] = stride[i];
}

static void merge_axes(const sni_kernel *k, job *j) {
    int64_t strides[SNI_GROUP_INPUTS][SN_MAX_RANK], stride[SNI_GROUP_INPUTS];
    bool plain = !j->p->reducer;
    for (int i = 0; i < k->n_in; i++) {
        int64_t count = sni_in(k, i)->count;
        stride[i] = count == j->count;
        plain = plain && (count == 1 || count == j->count);
    }
    j->rank = 0;
    if (plain) { /* rows and single elements only */
        add_axis(j, j->count, stride, false);
        return;
    }
    bool apart = false;
    for (int i = 0; i < k->n_in; i++)
        sni_broadcast_strides(sni_in(k, i), j->shape_rank, j->shape, strides[i]);
    for (int axis = 0; axis < j->shape_rank; axis++) {
        if (j->p->reducer && axis == j->kept) {
            j->edge = j->rank;
            apart = true;
        }
        if (j->shape[axis] == 1) continue;
        for (int i = 0; i < k->n_in; i++) stride[i] = strides[i][axis];
        add_axis(j, j->shape[axis], stride, apart);
        apart = false;
    }
    if (j->rank == 0) add_axis(j, 1, stride, false);
    if (j->p->reducer && j->row == 1) j->edge = j->rank;
}

/* How every input lies along the axes of a tile. */
static int classify(job *j) {
    int buffers = j->p->n_buffers;
    for (int i = 0; i < j->p->n_in; i++) {
        bool row = true, one = true;
        for (int axis = j->cut; axis < j->rank; axis++) {
            row = row && j->strides[i][axis] == j->span[axis];
            one = one && j->strides[i][axis] == 0;
        }
        j->lies[i] = row ? ROW : one ? ONE : SPREAD;
        buffers += j->lies[i] == SPREAD || j->p->in_type[i] != SN_FLOAT32;
    }
    return buffers;
}

/* Chooses tiles of at most `most` elements, or fewer if all buffers would not have room. */
static void cut_tiles(job *j, int64_t most) {
    int64_t span = 1;
    for (int axis = j->rank - 1; axis >= 0; axis--) {
        j->span[axis] = span;
        span *= j->dims[axis];
    }
    for (;;) {
        j->cut = 0;
        while (j->span[j->cut] > most) j->cut++;
        /* One index of an axis is all of the axes behind it. */
        if (j->cut < j->rank - 1 && j->span[j->cut] > most / 2) j->cut++;
        int buffers = classify(j);
        int64_t room = buffers ? MEMORY / buffers & ~15 : most;
        if (room >= most) break;
        most = room;
    }
    j->range = most / j->span[j->cut];
    if (j->range > j->dims[j->cut]) j->range = j->dims[j->cut];
    j->ranges = (j->dims[j->cut] + j->range - 1) / j->range;
    j->range = (j->dims[j->cut] + j->ranges - 1) / j->ranges; /* all about as large */
    j->room = most;
}

/* ---- The whole ---- */

/* Where results go: not over an input, of which other rows may still need elements. */
static sn_status place_results(sni_kernel *k, job *j, int64_t rows) {
    sni_tensor *y = sni_out(k, j->p->reduction);
    j->results = y->data;
    for (int i = 0; i < k->n_in; i++)
        if (sni_in(k, i)->data == y->data) {
            void *p = NULL;
            SN_TRY(sni_scratch_array(k, rows, sizeof(float), &p));
            j->results = p;
        }
    return SN_OK;
}

static sn_status run_reduction(sni_kernel *k, job *j) {
    int64_t rows = j->count / j->row, tiles = j->ranges;
    SN_TRY(place_results(k, j, rows));
    j->per_row = 0;
    j->partial = NULL;
    if (j->cut < j->edge) {
        for (int axis = 0; axis < j->cut; axis++) tiles *= j->dims[axis];
        sni_parallel_for(k->threads, tiles, WORTH / (j->range * j->span[j->cut]) + 1, run_tiles, j);
    } else {
        for (int axis = j->edge; axis < j->cut; axis++) tiles *= j->dims[axis];
        j->per_row = tiles;
        j->chunks = (tiles + CHUNK - 1) / CHUNK;
        if (j->chunks > 1) {
            void *p = NULL;
            SN_TRY(sni_scratch_array(k, rows * j->chunks, ACC, &p));
            j->partial = p;
        }
        int64_t size = j->row / j->chunks;
        sni_parallel_for(k->threads, rows * j->chunks, WORTH / size + 1, run_chunks, j);
        if (j->partial) join_chunks(j, rows);
    }
    void *y = sni_out(k, j->p->reduction)->data;
    if (j->results != y) memcpy(y, j->results, (size_t)rows * sizeof(float));
    return SN_OK;
}

static sn_status group_run(sni_kernel *k) {
    job j; /* set as far as needed */
    j.p = k->state;
    j.kernels = sni_cpu_kernels_get()->maps;
    if (!bind(k, &j)) return k->node->op->ref(k);
    if (j.count == 0 && !j.p->reducer) return SN_OK;
    if (j.count == 0) return k->node->op->ref(k);
    merge_axes(k, &j);
    cut_tiles(&j, MOST);
    if (j.p->reducer) return run_reduction(k, &j);
    int64_t outer = 1, size = j.range * j.span[j.cut];
    for (int axis = 0; axis < j.cut; axis++) outer *= j.dims[axis];
    sni_parallel_for(k->threads, outer * j.ranges, WORTH / size + 1, run_tiles, &j);
    return SN_OK;
}

static bool group_accepts(const sni_choice *c) {
    sni_group_program p;
    return sni_group_compile(c, &p);
}

static sn_status group_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_group_program *p = malloc(sizeof *p);
    if (!p) return sni_fail_memory(err);
    if (!sni_group_compile(c, p)) {
        free(p);
        return sni_fail_memory(err);
    }
    *state = p;
    return SN_OK;
}

const sni_impl sni_cpu_group = {.name = "group_f32",
                                .op = "Group",
                                .domain = "ai.sinter",
                                .accepts = group_accepts,
                                .prepare = group_prepare,
                                .release = free,
                                .run = group_run};
