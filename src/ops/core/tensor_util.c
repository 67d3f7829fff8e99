/* tensor_util.c - helpers of kernels: indices, strides, walks over positions, copies. */
#include "ops/core/tensor_util.h"

#include "base/floats.h"
#include "base/threadpool.h"
#include "ops/core/kernel_hooks.h"
#include "ops/core/typed.h"
#include "ops/core/wide.h"

#include <inttypes.h>

enum {
    COPY_GRAIN = 65536, /* bytes worth a thread */
    CUT_ROW = 4096,     /* bytes; shorter rows stay whole */
    LINE = 64           /* bytes that one thread alone should write */
};

double sni_number_at(const sni_tensor *t, int64_t i) {
    const void *p = sni_element(t->data, i, sni_dtype_width(t->dtype));
    switch (t->dtype) {
    case SN_FLOAT32:
        return *(const float *)p;
    case SN_FLOAT64:
        return *(const double *)p;
    case SN_INT8:
    case SN_INT4:
    case SN_INT2:
        return *(const int8_t *)p;
    case SN_INT16:
        return *(const int16_t *)p;
    case SN_INT32:
        return *(const int32_t *)p;
    case SN_INT64:
        return (double)*(const int64_t *)p;
    case SN_UINT8:
    case SN_UINT4:
    case SN_UINT2:
        return *(const uint8_t *)p;
    case SN_UINT16:
        return *(const uint16_t *)p;
    case SN_UINT32:
        return *(const uint32_t *)p;
    case SN_UINT64:
        return (double)*(const uint64_t *)p;
    case SN_BOOL:
        return *(const uint8_t *)p != 0;
    default:
        break;
    }
    if (sni_dtype_get(t->dtype)->cls == SNI_CLASS_S) return sni_narrow_to_f32(t->dtype, p);
    return 0;
}

sn_status sni_wrap_index(sni_kernel *k, const char *what, int64_t index, int64_t n, int64_t *out) {
    if (index < -n || index >= n)
        return SNI_KERNEL_FAIL(k, "%s %" PRId64 " is out of range for an axis of length %" PRId64,
                               what, index, n);
    *out = index < 0 ? index + n : index;
    return SN_OK;
}

sn_status sni_scratch_i64(sni_kernel *k, int64_t count, int64_t **out) {
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, count, sizeof(int64_t), &p));
    *out = p;
    return SN_OK;
}

void sni_strides(int rank, const int64_t *dims, int64_t *strides) {
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        if (dims[i] > 0) step *= dims[i];
    }
}

void sni_broadcast_strides(const sni_tensor *t, int rank, const int64_t *dims, int64_t *strides) {
    int64_t own[SN_MAX_RANK];
    sni_strides(t->rank, t->dims, own);
    int lead = rank - t->rank;
    for (int i = 0; i < rank; i++)
        strides[i] = i < lead || t->dims[i - lead] != dims[i] ? 0 : own[i - lead];
}

void sni_walk_init(sni_walk *w, int rank, const int64_t *dims, int operands,
                   const int64_t *const *strides) {
    w->rank = rank;
    w->operands = operands;
    for (int i = 0; i < rank; i++) {
        w->dims[i] = dims[i];
        w->position[i] = 0;
        for (int j = 0; j < operands; j++) w->strides[j][i] = strides[j][i];
    }
    for (int j = 0; j < operands; j++) w->offset[j] = 0;
}

bool sni_walk_next(sni_walk *w) {
    for (int i = w->rank - 1; i >= 0; i--) {
        if (++w->position[i] < w->dims[i]) {
            for (int j = 0; j < w->operands; j++) w->offset[j] += w->strides[j][i];
            return true;
        }
        w->position[i] = 0;
        for (int j = 0; j < w->operands; j++) w->offset[j] -= w->strides[j][i] * (w->dims[i] - 1);
    }
    return false;
}

/* ---- Copies ---- */

void sni_share(int threads, int64_t n, int64_t bytes,
               void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
    if (n <= 0) return;
    int64_t least = bytes > 0 && bytes < COPY_GRAIN ? COPY_GRAIN / bytes : 1, pieces = n / least;
    if (pieces < 2 || threads == 1) {
        fn(ctx, 0, n);
        return;
    }
    int64_t hands = threads > 0 ? threads : sni_threads_available();
    if (pieces > hands) pieces -= pieces % hands;
    sni_parallel_for(threads, n, n / pieces, fn, ctx);
}

/* Elements by width, whatever type they were stored as. */
typedef uint8_t __attribute__((may_alias)) move8;
typedef uint16_t __attribute__((may_alias)) move16;
typedef uint32_t __attribute__((may_alias)) move32;
typedef uint64_t __attribute__((may_alias)) move64;
typedef struct __attribute__((may_alias)) move128 {
    uint64_t half[2];
} move128;

#define T move8
#define SUFFIX 1
#include "ops/core/move.inc.c"
#undef T
#undef SUFFIX
#define T move16
#define SUFFIX 2
#include "ops/core/move.inc.c"
#undef T
#undef SUFFIX
#define T move32
#define SUFFIX 4
#include "ops/core/move.inc.c"
#undef T
#undef SUFFIX
#define T move64
#define SUFFIX 8
#include "ops/core/move.inc.c"
#undef T
#undef SUFFIX
#define T move128
#define SUFFIX 16
#include "ops/core/move.inc.c"
#undef T
#undef SUFFIX

void sni_copy_strided(void *dst, int64_t dst_stride, const void *src, int64_t src_stride, int64_t n,
                      size_t width) {
    if (n <= 0) return;
    if (dst_stride == 1 && src_stride == 1) {
        memcpy(dst, src, (size_t)n * width);
        return;
    }
    switch (width) {
    case 1:
        move_1(dst, dst_stride, src, src_stride, n);
        break;
    case 2:
        move_2(dst, dst_stride, src, src_stride, n);
        break;
    case 4:
        move_4(dst, dst_stride, src, src_stride, n);
        break;
    case 8:
        move_8(dst, dst_stride, src, src_stride, n);
        break;
    default:
        move_16(dst, dst_stride, src, src_stride, n);
        break;
    }
}

void sni_fill(void *dst, const void *value, int64_t n, size_t width) {
    if (n <= 0) return;
    if (width == 1)
        memset(dst, *(const unsigned char *)value, (size_t)n);
    else
        sni_copy_strided(dst, 1, value, 0, n, width);
}

typedef struct fill_job {
    unsigned char *dst;
    const void *value;
    size_t width;
} fill_job;

static void fill_some(void *ctx, int64_t begin, int64_t end) {
    const fill_job *j = ctx;
    sni_fill(j->dst + begin * (int64_t)j->width, j->value, end - begin, j->width);
}

void sni_fill_shared(int threads, void *dst, const void *value, int64_t n, size_t width) {
    sni_share(threads, n, (int64_t)width, fill_some, &(fill_job){dst, value, width});
}

typedef struct copy_job {
    unsigned char *dst;
    const unsigned char *src;
    int64_t bytes;
} copy_job;

/* Lines [begin, end) of the bytes. */
static void copy_lines(void *ctx, int64_t begin, int64_t end) {
    const copy_job *j = ctx;
    int64_t from = begin * LINE, to = j->bytes - end * LINE < 0 ? j->bytes : end * LINE;
    memcpy(j->dst + from, j->src + from, (size_t)(to - from));
}

void sni_copy_shared(int threads, void *dst, const void *src, size_t bytes) {
    uintptr_t to = (uintptr_t)dst, from = (uintptr_t)src;
    if (to == from || bytes < 2 * COPY_GRAIN || (to < from ? from - to : to - from) < bytes) {
        sni_copy_bytes(dst, src, bytes);
        return;
    }
    copy_job j = {.dst = dst, .src = src, .bytes = (int64_t)bytes};
    sni_share(threads, (j.bytes - 1) / LINE + 1, LINE, copy_lines, &j);
}

/* A box whose neighbouring axes are merged where both sides allow; a row of the last axis is the
 * unit of work unless it is long. */
typedef struct box {
    int rank;
    int64_t dims[SN_MAX_RANK];
    int64_t to[SN_MAX_RANK], from[SN_MAX_RANK]; /* strides */
    unsigned char *dst;
    const unsigned char *src;
    size_t width;
    const sni_kernel_hooks *hooks; /* NULL: plain C */
} box;

static void box_merge(box *b, int rank, const int64_t *dims, const int64_t *to,
                      const int64_t *from) {
    b->rank = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        int last = b->rank - 1;
        if (last >= 0 && b->to[last] == to[i] * dims[i] && b->from[last] == from[i] * dims[i]) {
            b->dims[last] *= dims[i];
            b->to[last] = to[i];
            b->from[last] = from[i];
        } else {
            b->dims[b->rank] = dims[i];
            b->to[b->rank] = to[i];
            b->from[b->rank++] = from[i];
        }
    }
    if (b->rank == 0) {
        b->dims[0] = b->to[0] = b->from[0] = 1;
        b->rank = 1;
    }
}

/* Rows [begin, end) of the axes before the last one. */
static void box_rows(const box *b, int64_t begin, int64_t end) {
    int outer = b->rank - 1;
    sni_walk w;
    sni_walk_init(&w, outer, b->dims, 2, (const int64_t *[]){b->to, b->from});
    int64_t rest = begin;
    for (int i = outer - 1; i >= 0; i--) {
        w.position[i] = rest % b->dims[i];
        rest /= b->dims[i];
        w.offset[0] += w.position[i] * b->to[i];
        w.offset[1] += w.position[i] * b->from[i];
    }
    int64_t width = (int64_t)b->width;
    for (int64_t row = begin; row < end;) { /* to the end of the axis before the last */
        int64_t run = outer ? b->dims[outer - 1] - w.position[outer - 1] : 1;
        if (run > end - row) run = end - row;
        unsigned char *dst = b->dst + w.offset[0] * width;
        const unsigned char *src = b->src + w.offset[1] * width;
        int64_t to = outer ? b->to[outer - 1] * width : 0;
        int64_t from = outer ? b->from[outer - 1] * width : 0;
        bool again = from == 0 && b->to[outer] == 1 && to == b->dims[outer] * width;
        if (again) { /* the same row again and again: what has been written is copied to double it
                      */
            sni_copy_strided(dst, 1, src, b->from[outer], b->dims[outer], b->width);
            for (int64_t done = 1; done < run; done *= 2)
                memcpy(dst + done * to, dst,
                       (size_t)((done < run - done ? done : run - done) * to));
        }
        for (int64_t i = 0; i < run && !again; i++)
            sni_copy_strided(dst + i * to, b->to[outer], src + i * from, b->from[outer],
                             b->dims[outer], b->width);
        row += run;
        if (outer) {
            w.position[outer - 1] += run - 1;
            w.offset[0] += (run - 1) * b->to[outer - 1];
            w.offset[1] += (run - 1) * b->from[outer - 1];
        }
        sni_walk_next(&w);
    }
}

/* `n` elements of one row from element `first` on. */
static void box_cut(const box *b, int64_t row, int64_t first, int64_t n) {
    int last = b->rank - 1;
    int64_t to = first * b->to[last], from = first * b->from[last], width = (int64_t)b->width;
    for (int i = last - 1; i >= 0; i--) {
        to += row % b->dims[i] * b->to[i];
        from += row % b->dims[i] * b->from[i];
        row /= b->dims[i];
    }
    sni_copy_strided(b->dst + to * width, b->to[last], b->src + from * width, b->from[last], n,
                     b->width);
}

/* Elements [begin, end), or, where rows are short, the rows that begin among them. */
static void box_elements(void *ctx, int64_t begin, int64_t end) {
    const box *b = ctx;
    int64_t length = b->dims[b->rank - 1], short_row = length * (int64_t)b->width < CUT_ROW;
    if (short_row) {
        box_rows(b, (begin + length - 1) / length, (end + length - 1) / length);
        return;
    }
    int64_t first = begin / length, last = end / length, at = begin % length;
    if (at > 0) {
        int64_t n = length - at < end - begin ? length - at : end - begin;
        box_cut(b, first++, at, n);
        if (first > last) return;
    }
    box_rows(b, first, last);
    if (end % length > 0) box_cut(b, last, 0, end % length);
}

/* Brings the axis along which the source is contiguous next to the last one, along which it is
 * not; false if there is none or the last one is fine. */
static bool box_transpose(box *b) {
    int last = b->rank - 1;
    if (b->from[last] == 1 || b->from[last] == 0 || b->to[last] != 1) return false;
    for (int i = 0; i < last; i++) {
        if (b->from[i] != 1) continue;
        int64_t dim = b->dims[i], to = b->to[i];
        for (; i < last - 1; i++) {
            b->dims[i] = b->dims[i + 1];
            b->to[i] = b->to[i + 1];
            b->from[i] = b->from[i + 1];
        }
        b->dims[i] = dim;
        b->to[i] = to;
        b->from[i] = 1;
        return true;
    }
    return false;
}

enum {
    TILE_LINE = 64,   /* bytes that are neighbours in the source: a cache line */
    TILE_LEAST = 16,  /* elements that are neighbours there at least */
    TILE_COLUMNS = 64 /* elements that are neighbours in the destination */
};

static int64_t tile_rows(const box *b) {
    int64_t rows = TILE_LINE / (int64_t)b->width;
    return rows > TILE_LEAST ? rows : TILE_LEAST;
}

/* Tiles [begin, end) of the axes before the last two, of tile_rows() rows each: a transposition
 * that uses every cache line it reads before it is evicted. */
static void box_tiles(void *ctx, int64_t begin, int64_t end) {
    const box *b = ctx;
    int row = b->rank - 2, column = b->rank - 1;
    int64_t width = (int64_t)b->width, most = tile_rows(b), per_row = (b->dims[row] - 1) / most + 1;
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t rest = tile / per_row, to = 0, from = 0, first = tile % per_row * most;
        for (int i = row - 1; i >= 0; i--) {
            to += rest % b->dims[i] * b->to[i];
            from += rest % b->dims[i] * b->from[i];
            rest /= b->dims[i];
        }
        int64_t rows = b->dims[row] - first < most ? b->dims[row] - first : most;
        if (b->hooks && b->hooks->transpose &&
            b->hooks->transpose(b->width, b->src + (from + first) * width, b->from[column],
                                b->dims[column], rows, b->dst + (to + first * b->to[row]) * width,
                                b->to[row]))
            continue;
        for (int64_t c = 0; c < b->dims[column]; c += TILE_COLUMNS) {
            int64_t n = b->dims[column] - c < TILE_COLUMNS ? b->dims[column] - c : TILE_COLUMNS;
            for (int64_t r = first; r < first + rows; r++)
                sni_copy_strided(b->dst + (to + r * b->to[row] + c) * width, 1,
                                 b->src + (from + r + c * b->from[column]) * width, b->from[column],
                                 n, b->width);
        }
    }
}

void sni_copy_box(sni_kernel *k, const sni_box *given) {
    for (int i = 0; i < given->rank; i++)
        if (given->dims[i] == 0) return;
    box b = {.dst = given->dst, .src = given->src, .width = given->width, .hooks = k->hooks};
    box_merge(&b, given->rank, given->dims, given->dst_strides, given->src_strides);
    int64_t rows = 1;
    for (int i = 0; i < b.rank - 1; i++) rows *= b.dims[i];
    int64_t row_bytes = b.dims[b.rank - 1] * (int64_t)b.width;
    if (box_transpose(&b)) {
        int64_t length = b.dims[b.rank - 2], most = tile_rows(&b), tiles = (length - 1) / most + 1;
        sni_share(k->threads, rows / length * tiles, most * row_bytes, box_tiles, &b);
        return;
    }
    sni_share(k->threads, rows * b.dims[b.rank - 1], (int64_t)b.width, box_elements, &b);
}

/* The two axes, outer and the rest, that a part of one axis is a box of. */
typedef struct part {
    int64_t dims[2], whole[2], dense[2]; /* sizes and strides on both sides */
    void *first;                         /* of the part inside the whole */
    size_t width;
} part;

static part part_of(const sni_tensor *whole, int axis, int64_t at, int64_t length) {
    size_t width = sni_dtype_width(whole->dtype);
    int64_t inner = sni_tensor_span(whole, axis + 1, whole->rank);
    return (part){
        .dims = {sni_tensor_span(whole, 0, axis), length * inner},
        .whole = {whole->dims[axis] * inner, 1},
        .dense = {length * inner, 1},
        .first = sni_element(whole->data, at * inner, width),
        .width = width,
    };
}

void sni_put_part(sni_kernel *k, const sni_tensor *whole, int axis, int64_t at, const void *from,
                  int64_t length) {
    if (whole->count == 0) return;
    part p = part_of(whole, axis, at, length);
    sni_copy_box(k, &(sni_box){2, p.dims, p.first, p.whole, from, p.dense, p.width});
}

void sni_get_part(sni_kernel *k, const sni_tensor *whole, int axis, int64_t at, void *to,
                  int64_t length) {
    if (whole->count == 0) return;
    part p = part_of(whole, axis, at, length);
    sni_copy_box(k, &(sni_box){2, p.dims, to, p.dense, p.first, p.whole, p.width});
}
