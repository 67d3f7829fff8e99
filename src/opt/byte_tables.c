/* byte_tables.c - operators that make of each byte another one become a table of 256 bytes, and so
 * do chains of them and sums and products of a tensor and what a table made of it. The operator
 * itself, applied to all bytes, is the table: folding constants works it out. */
#include "opt/layout.h"

#include "ops/quant/qlinear.h"

#include <string.h>

enum { BYTES = 256, MOST_INPUTS = 8 };

static bool is_op(const sni_node *n, const char *domain, const char *type) {
    return n && n->op && sni_str_is(n->domain, domain) && sni_str_is(n->type, type);
}

static bool is_bytes(const sni_layout_pass *l, int32_t id) {
    const sni_value *v = sni_graph_value(l->g, id);
    return v && v->type.kind == SN_KIND_TENSOR &&
           (v->type.dtype == SN_UINT8 || v->type.dtype == SN_INT8);
}

/* True if every input but those of operands is left out or a constant. */
static bool has_constants(const sni_layout_pass *l, const sni_node *n, int a, int b) {
    for (int i = 0; i < n->n_in; i++)
        if (i != a && i != b && n->in[i] != SNI_NO_ID && !sni_layout_const(l, n->in[i]))
            return false;
    return true;
}

/* All bytes, as elements of the type of a value. */
static sn_status all_bytes(sni_layout_pass *l, int32_t like, int32_t *out) {
    const int64_t dims = BYTES;
    sni_const *c;
    sni_value *v;
    SN_TRY(sni_const_new(l->r->store, l->g->values[like]->type.dtype, 1, &dims, &c, l->r->err));
    for (int i = 0; i < BYTES; i++) ((uint8_t *)c->tensor.data)[i] = (uint8_t)i;
    SN_TRY(sni_graph_add_const(l->g, (sni_str){0}, c, &v, l->r->err));
    *out = v->id;
    return SN_OK;
}

/* The node becomes a table over x: itself with inputs `in`. */
static sn_status become(sni_layout_pass *l, sni_node *n, int32_t x, const int32_t *in) {
    int32_t pair[2] = {x}, out;
    sni_layout_node table = {.domain = n->op->domain ? n->op->domain : "",
                             .type = n->op->name,
                             .in = in,
                             .n_in = n->n_in,
                             .like = n};
    SN_TRY(sni_layout_emit(l, n, &table, &pair[1]));
    sni_layout_node node = {
        .domain = SNI_SINTER_DOMAIN, .type = "ByteTable", .in = pair, .n_in = 2};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    l->g->values[out]->type = l->g->values[n->out[0]]->type; /* passes of this round look at it */
    SN_TRY(sni_graph_replace_uses(l->g, n->out[0], out, l->r->err));
    sni_graph_remove_node(l->g, n);
    l->r->count++;
    return SN_OK;
}

static sni_node *producer(const sni_layout_pass *l, int32_t id) {
    const sni_value *v = sni_graph_value(l->g, id);
    return v ? sni_value_producer(l->g, v) : NULL;
}

/* An operator of one operand. */
static sn_status single(sni_layout_pass *l, sni_node *n) {
    int32_t in[MOST_INPUTS];
    if (n->n_in < 1 || n->n_in > MOST_INPUTS || !is_bytes(l, n->in[0]) || !is_bytes(l, n->out[0]) ||
        sni_layout_const(l, n->in[0]) || !has_constants(l, n, 0, 0))
        return SN_OK;
    memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
    SN_TRY(all_bytes(l, n->in[0], &in[0]));
    return become(l, n, n->in[0], in);
}

/* A table of what a table made. */
static sn_status chain(sni_layout_pass *l, sni_node *n) {
    const sni_node *first = producer(l, n->in[0]);
    if (!is_op(first, SNI_SINTER_DOMAIN, "ByteTable") || !sni_layout_const(l, first->in[1]) ||
        !sni_layout_const(l, n->in[1]))
        return SN_OK;
    const int32_t in[2] = {first->in[1], n->in[1]};
    return become(l, n, first->in[0], in);
}

/* QLinearAdd and QLinearMul of x and what a table makes of x. */
static sn_status pair(sni_layout_pass *l, sni_node *n) {
    int32_t in[MOST_INPUTS];
    if (n->n_in < 7 || n->n_in > MOST_INPUTS || !has_constants(l, n, 0, 3)) return SN_OK;
    for (int made = 0; made <= 3; made += 3) {
        const int other = 3 - made;
        const sni_node *table = producer(l, n->in[made]);
        if (!is_op(table, SNI_SINTER_DOMAIN, "ByteTable") || table->in[0] != n->in[other] ||
            !sni_layout_const(l, table->in[1]))
            continue;
        memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
        in[made] = table->in[1];
        SN_TRY(all_bytes(l, n->in[other], &in[other]));
        return become(l, n, n->in[other], in);
    }
    return SN_OK;
}

static sn_status look_at(sni_layout_pass *l, sni_node *n) {
    static const char ms[] = "com.microsoft";
    if (is_op(n, ms, "QLinearSigmoid") || is_op(n, ms, "QLinearLeakyRelu") || is_op(n, "", "Clip"))
        return single(l, n);
    if (is_op(n, ms, "QLinearMul") || is_op(n, ms, "QLinearAdd")) return pair(l, n);
    return is_op(n, SNI_SINTER_DOMAIN, "ByteTable") ? chain(l, n) : SN_OK;
}

sn_status sni_pass_byte_tables(sni_rewrite *r) {
    sni_layout_pass l = {.r = r, .g = r->graph};
    sni_node *next;
    for (sni_node *n = sni_graph_first(r->graph); n; n = next) {
        next = sni_graph_next(r->graph, n);
        SN_TRY(look_at(&l, n));
    }
    return SN_OK;
}
