/* elementwise.c - see elementwise.h. A job's axes are merged where all operands allow it. Threads
 * take ranges of output elements and process them in runs along the innermost axis, where an
 * operand either advances with the output or stays the same. */
#include "ops/core/elementwise.h"

#include "base/threadpool.h"
#include "ops/core/convert.h"
#include "ops/core/tensor_util.h"

enum {
    BLOCK = 512,   /* elements converted at a time */
    GRAIN = 16384, /* elements worth a thread */
    WIDEST = 8,    /* bytes of an element that is converted */
};

typedef struct job {
    const sni_elementwise *map;
    int rank; /* number of merged axes, at least 1 */
    int64_t dims[SN_MAX_RANK];
    int64_t strides[3][SN_MAX_RANK]; /* in elements */
    bool converts;
} job;

/* The position of a part on the merged axes, and the operands' offsets there. */
typedef struct cursor {
    int64_t position[SN_MAX_RANK];
    int64_t offset[3];
} cursor;

sn_dtype sni_compute_type(sn_dtype dtype) {
    return sni_dtype_get(dtype)->cls == SNI_CLASS_S ? SN_FLOAT32 : dtype;
}

static void add_axis(job *j, int64_t size, const int64_t stride[3]) {
    bool merge = j->rank > 0;
    for (int i = 0; i < j->map->n_in && merge; i++)
        merge = j->strides[i][j->rank - 1] == stride[i] * size;
    if (!merge) {
        j->dims[j->rank] = 1;
        j->rank++;
    }
    j->dims[j->rank - 1] *= size;
    for (int i = 0; i < j->map->n_in; i++) j->strides[i][j->rank - 1] = stride[i];
}

static void plan_job(job *j) {
    const sni_elementwise *m = j->map;
    int rank = m->out->rank;
    int64_t strides[3][SN_MAX_RANK];
    for (int i = 0; i < m->n_in; i++) {
        sni_broadcast_strides(m->in[i], rank, m->out->dims, strides[i]);
        if (m->in_as[i] != m->in[i]->dtype) j->converts = true;
    }
    if (m->out_as != m->out->dtype) j->converts = true;
    for (int axis = 0; axis < rank; axis++) {
        if (m->out->dims[axis] == 1) continue;
        int64_t stride[3] = {0};
        for (int i = 0; i < m->n_in; i++) stride[i] = strides[i][axis];
        add_axis(j, m->out->dims[axis], stride);
    }
    if (j->rank == 0) add_axis(j, 1, (const int64_t[3]){1, 1, 1});
}

static void cursor_seek(const job *j, cursor *c, int64_t index) {
    memset(c->offset, 0, sizeof c->offset);
    for (int axis = j->rank - 1; axis >= 0; axis--) {
        c->position[axis] = index % j->dims[axis];
        index /= j->dims[axis];
        for (int i = 0; i < j->map->n_in; i++)
            c->offset[i] += c->position[axis] * j->strides[i][axis];
    }
}

/* Moves on by `run` elements, which do not go beyond the innermost axis. */
static void cursor_advance(const job *j, cursor *c, int64_t run) {
    int axis = j->rank - 1;
    int64_t step = run;
    for (;;) {
        c->position[axis] += step;
        for (int i = 0; i < j->map->n_in; i++) c->offset[i] += step * j->strides[i][axis];
        if (c->position[axis] < j->dims[axis] || axis == 0) return;
        for (int i = 0; i < j->map->n_in; i++)
            c->offset[i] -= c->position[axis] * j->strides[i][axis];
        c->position[axis--] = 0;
        step = 1;
    }
}

static void call(const sni_elementwise *m, const void *const in[3], const int64_t stride[3],
                 void *out, int64_t n) {
    if (m->n_in == 1)
        m->unary(in[0], out, n, m->params);
    else if (m->n_in == 2)
        m->binary(in[0], in[1], out, n, stride[0], stride[1], m->params);
    else
        m->ternary(in, stride, out, n, m->params);
}

/* One run of n elements; at most BLOCK of them when the job converts. */
static void run_span(const job *j, const cursor *c, int64_t index, int64_t n) {
    const sni_elementwise *m = j->map;
    _Alignas(SNI_ALIGN) unsigned char blocks[4][BLOCK * WIDEST];
    const void *in[3] = {0};
    int64_t stride[3] = {0};
    for (int i = 0; i < m->n_in; i++) {
        const sni_tensor *t = m->in[i];
        const unsigned char *p =
            (const unsigned char *)t->data + (size_t)c->offset[i] * sni_dtype_width(t->dtype);
        stride[i] = n == 1 ? 1 : j->strides[i][j->rank - 1];
        in[i] = p;
        if (t->dtype != m->in_as[i]) {
            sni_convert(t->dtype, p, m->in_as[i], blocks[i], stride[i] ? (size_t)n : 1, NULL);
            in[i] = blocks[i];
        }
    }
    unsigned char *out =
        (unsigned char *)m->out->data + (size_t)index * sni_dtype_width(m->out->dtype);
    if (m->out->dtype == m->out_as) {
        call(m, in, stride, out, n);
        return;
    }
    call(m, in, stride, blocks[3], n);
    sni_convert(m->out_as, blocks[3], m->out->dtype, out, (size_t)n, NULL);
}

static void run_piece(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    int64_t inner = j->dims[j->rank - 1];
    cursor c;
    cursor_seek(j, &c, begin);
    while (begin < end) {
        int64_t run = inner - c.position[j->rank - 1];
        if (run > end - begin) run = end - begin;
        if (j->converts && run > BLOCK) run = BLOCK;
        run_span(j, &c, begin, run);
        cursor_advance(j, &c, run);
        begin += run;
    }
}

void sni_elementwise_run(int threads, const sni_elementwise *map) {
    if (map->out->count == 0) return;
    job j = {.map = map};
    plan_job(&j);
    sni_parallel_for(threads, map->out->count, GRAIN, run_piece, &j);
}

static sn_status no_kernel(sni_kernel *k, sn_dtype dtype) {
    return sni_fail(k->err, SN_UNSUPPORTED, "no kernel for %s", sn_dtype_name(dtype));
}

/* Input and output types of a table's entry: those of the tensors, or float32 for narrow floats
 * without an entry of their own. */
static void entry_types(sni_elementwise *m, bool own_entry) {
    sn_dtype dtype = m->in[0]->dtype, as = own_entry ? dtype : sni_compute_type(dtype);
    for (int i = 0; i < m->n_in; i++) m->in_as[i] = as;
    m->out_as = m->out->dtype == dtype ? as : m->out->dtype;
}

sn_status sni_map_unary(sni_kernel *k, const sni_unary_fn table[SNI_DTYPE_COUNT]) {
    sni_elementwise m = {
        .n_in = 1, .in = {sni_in(k, 0)}, .out = sni_out(k, 0), .params = k->params};
    entry_types(&m, table[m.in[0]->dtype] != NULL);
    m.unary = table[m.in_as[0]];
    if (!m.unary) return no_kernel(k, m.in[0]->dtype);
    sni_elementwise_run(k->threads, &m);
    return SN_OK;
}

sn_status sni_map_binary(sni_kernel *k, const sni_binary_fn table[SNI_DTYPE_COUNT]) {
    sni_elementwise m = {
        .n_in = 2, .in = {sni_in(k, 0), sni_in(k, 1)}, .out = sni_out(k, 0), .params = k->params};
    entry_types(&m, table[m.in[0]->dtype] != NULL);
    m.binary = table[m.in_as[0]];
    if (!m.binary) return no_kernel(k, m.in[0]->dtype);
    sni_elementwise_run(k->threads, &m);
    return SN_OK;
}

/* ---- Inference ---- */

enum { MOST_DIMS = 64 }; /* longest list that is followed */

sn_status sni_infer_dim_math(sni_infer *c, sni_dim_fn f) {
    SN_TRY(sni_infer_broadcast(c));
    sni_dim folded[MOST_DIMS];
    int32_t count = 0;
    for (int i = 0; i < c->n_in; i++) {
        const sni_dim *dims = NULL;
        int32_t n = 0;
        SN_TRY(sni_infer_dims(c, i, &dims, &n));
        if (!dims || n < 1 || n > MOST_DIMS) return SN_OK;
        if (i == 0) {
            memcpy(folded, dims, (size_t)n * sizeof *dims);
            count = n;
            continue;
        }
        if (n != count && n != 1 && count != 1) return SN_OK;
        for (int32_t j = count; j < n; j++) folded[j] = folded[0];
        if (n > count) count = n;
        for (int32_t j = 0; j < count; j++) {
            folded[j] = f(c->symbols, folded[j], dims[n == 1 ? 0 : j]);
            if (folded[j] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
        }
    }
    return sni_infer_set_dims(c, 0, count, folded);
}
