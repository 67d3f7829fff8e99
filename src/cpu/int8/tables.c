/* tables.c - ByteTable, and QLinearConcat, which puts each input through a table on its way into
 * the result. */
#include "base/threadpool.h"
#include "cpu/int8/integer.h"
#include "ops/core/tensor_util.h"
#include "ops/quant/qlinear.h"

#include <string.h>

enum { GRAIN = 32768 }; /* bytes worth a thread */

/* ---- ByteTable ---- */

typedef struct table_job {
    const sni_requantize_kernels *kernels;
    const uint8_t *x, *table;
    uint8_t *y;
} table_job;

static void table_piece(void *ctx, int64_t begin, int64_t end) {
    const table_job *j = ctx;
    j->kernels->look_up(j->table, j->x + begin, end - begin, j->y + begin);
}

static bool table_accepts(const sni_choice *c) {
    return sni_int_is_bytes(c, 0);
}

static sn_status table_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *t = sni_in(k, 1);
    table_job j = {sni_requantize_kernels_get(), x->data, t->data, sni_out(k, 0)->data};
    if (t->count != 256) return k->node->op->ref(k);
    if (x->count) sni_parallel_for(k->threads, x->count, GRAIN, table_piece, &j);
    return SN_OK;
}

/* ---- QLinearConcat ---- */

/* One input: rows of `width` bytes that begin `at` bytes into rows of the result. */
typedef struct part_job {
    const sni_requantize_kernels *kernels;
    const uint8_t *x;
    uint8_t *y;
    int64_t width, whole; /* bytes of a row of the input, and of the result */
    bool same;            /* the table changes nothing */
    uint8_t table[256];
} part_job;

static void part_rows(void *ctx, int64_t begin, int64_t end) {
    const part_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        const uint8_t *x = j->x + i * j->width;
        uint8_t *y = j->y + i * j->whole;
        if (j->same)
            memcpy(y, x, (size_t)j->width);
        else
            j->kernels->look_up(j->table, x, j->width, y);
    }
}

static bool concat_accepts(const sni_choice *c) {
    return c->n_in > 2 && sni_int_is_bytes(c, 2);
}

static sn_status concat_run(sni_kernel *k) {
    const sni_attr *a = sni_node_attr(k->node, "axis");
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(a->u.i < 0 ? a->u.i + y->rank : a->u.i);
    int64_t inner = sni_tensor_span(y, axis + 1, y->rank), at = 0;
    sni_qscale from, to;
    SN_TRY(sni_qscale_get(k, 0, y->dtype, &to));
    for (int i = 2; i < k->n_in; i += 3) {
        const sni_tensor *x = sni_in(k, i);
        part_job j = {.kernels = sni_requantize_kernels_get(), .x = x->data};
        SN_TRY(sni_qscale_get(k, i + 1, x->dtype, &from));
        sni_requantize_table(&from, &to, j.table);
        j.same = from.scale == to.scale && from.zero == to.zero && from.dtype == to.dtype;
        j.width = x->dims[axis] * inner;
        j.whole = y->dims[axis] * inner;
        j.y = (uint8_t *)y->data + at;
        at += j.width;
        if (x->count)
            sni_parallel_for(k->threads, x->count / j.width, GRAIN / j.width + 1, part_rows, &j);
    }
    return SN_OK;
}

/* ---- QLinearSoftmax ---- */

static void softmax_lanes(void *ctx, int64_t begin, int64_t end) {
    const sni_qsoftmax *j = ctx;
    const sni_requantize_kernels *kernels = sni_requantize_kernels_get();
    const sni_int_softmax s = {.weight = j->weight,
                               .y_scale = j->to.scale,
                               .zero = (float)j->to.zero,
                               .low = j->to.dtype == SN_INT8 ? -128 : 0,
                               .flip = j->flip};
    for (int64_t i = begin; i < end; i++)
        kernels->softmax(&s, j->x + i * j->n, j->n, j->y + i * j->n);
}

/* Lanes whose elements lie apart are the reference kernel's: they are short. */
static sn_status softmax_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_qsoftmax j;
    SN_TRY(sni_qsoftmax_get(k, &j));
    if (x->count == 0) return SN_OK;
    if (j.step != 1 || !j.is_usual) return k->node->op->ref(k);
    sni_parallel_for(k->threads, x->count / j.n, GRAIN / j.n + 1, softmax_lanes, &j);
    return sni_poll(k);
}

const sni_impl sni_cpu_byte_tables[] = {
    {.name = "table_i8",
     .op = "QLinearSoftmax",
     .domain = "com.microsoft",
     .accepts = table_accepts,
     .run = softmax_run},
    {.name = "table_i8",
     .op = "ByteTable",
     .domain = "ai.sinter",
     .accepts = table_accepts,
     .run = table_run},
    {.name = "table_i8",
     .op = "QLinearConcat",
     .domain = "com.microsoft",
     .accepts = concat_accepts,
     .run = concat_run},
    {0},
};
