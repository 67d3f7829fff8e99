/* group.c - elementwise nodes that hang together become one Group (ops/sinter/group.h), which goes
 * over memory once. It runs when nothing else fires any more, so it never takes work away from
 * fusions that know more.
 *
 * All members of a group make values of one shape, that of the group; what is smaller comes in from
 * outside and is broadcast. Members are taken in as long as there is a place in the list of nodes
 * that lies behind everything the group reads and before everything that reads it: then it can
 * stand there, and there is no cycle. At last one reduction of rows may come in. */
#include "ops/sinter/group.h"

#include "opt/opt.h"

enum { MOST_USES = 64 }; /* of a member's value: more are not worth looking through */

/* ---- Which nodes ---- */

typedef enum inputs_kind {
    ONE_FLOAT,   /* one float32 tensor */
    TWO_FLOATS,  /* two */
    SOME_FLOATS, /* two or more */
    BOUNDS,      /* a float32 tensor, and constant scalars that may be left out */
    EXPONENT,    /* a float32 tensor and one of a few constant exponents */
    BOOLS,       /* bool tensors */
    CHOICE,      /* a bool and two float32 tensors */
    CONVERSION   /* a tensor that is made float32 or, of float32, bool */
} inputs_kind;

static const struct {
    const char *op;
    inputs_kind kind;
} known_ops[] = {
    {"Add", TWO_FLOATS},
    {"Sub", TWO_FLOATS},
    {"Mul", TWO_FLOATS},
    {"Div", TWO_FLOATS},
    {"PRelu", TWO_FLOATS},
    {"Max", SOME_FLOATS},
    {"Min", SOME_FLOATS},
    {"Sum", SOME_FLOATS},
    {"Relu", ONE_FLOAT},
    {"Sigmoid", ONE_FLOAT},
    {"Tanh", ONE_FLOAT},
    {"Erf", ONE_FLOAT},
    {"Exp", ONE_FLOAT},
    {"Log", ONE_FLOAT},
    {"Sqrt", ONE_FLOAT},
    {"Reciprocal", ONE_FLOAT},
    {"Abs", ONE_FLOAT},
    {"Neg", ONE_FLOAT},
    {"HardSwish", ONE_FLOAT},
    {"HardSigmoid", ONE_FLOAT},
    {"LeakyRelu", ONE_FLOAT},
    {"Elu", ONE_FLOAT},
    {"Celu", ONE_FLOAT},
    {"Selu", ONE_FLOAT},
    {"Softplus", ONE_FLOAT},
    {"Softsign", ONE_FLOAT},
    {"Mish", ONE_FLOAT},
    {"Gelu", ONE_FLOAT},
    {"Swish", ONE_FLOAT},
    {"Clip", BOUNDS},
    {"Pow", EXPONENT},
    {"Where", CHOICE},
    {"Equal", TWO_FLOATS},
    {"Less", TWO_FLOATS},
    {"LessOrEqual", TWO_FLOATS},
    {"Greater", TWO_FLOATS},
    {"Not", BOOLS},
    {"And", BOOLS},
    {"Or", BOOLS},
    {"Xor", BOOLS},
    {"Cast", CONVERSION},
    {"GreaterOrEqual", TWO_FLOATS},
};

typedef struct grouper {
    sni_rewrite *r;
    sni_graph *g;
    sni_arena temp;   /* until the pass ends */
    double *position; /* by node id: rises along the list */
    bool *fixed;      /* by value id: follows from constants and shapes; plans work it out */
    bool *in;         /* by node id: member of the group under construction */
    int32_t *inner;   /* by value id: the body's value; SNI_NO_ID: none */
    int32_t n_nodes, n_values;
    sni_node *members[SNI_GROUP_MEMBERS];
    int count;
    double place; /* where the group can stand */
} grouper;

static bool is_of(const sni_graph *g, int32_t id, sn_dtype dtype) {
    const sni_value *v = sni_graph_value(g, id);
    return v && v->type.kind == SN_KIND_TENSOR && v->type.dtype == dtype && v->type.has_shape;
}

/* A constant of one element that callers cannot override. */
static bool is_scalar(const sni_graph *g, int32_t id) {
    const sni_value *v = sni_graph_value(g, id);
    return v && v->constant && !v->is_input && v->constant->tensor.count == 1;
}

static bool all_are(const sni_graph *g, const sni_node *n, int32_t from, sn_dtype dtype) {
    for (int32_t i = from; i < n->n_in; i++)
        if (!is_of(g, n->in[i], dtype)) return false;
    return true;
}

static bool has_bounds(const sni_graph *g, const sni_node *n) {
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID && !is_scalar(g, n->in[i])) return false;
    return is_of(g, n->in[0], SN_FLOAT32);
}

/* Exponents that are products or quotients. */
static bool has_easy_exponent(const sni_graph *g, const sni_node *n) {
    const sni_tensor *t;
    if (!all_are(g, n, 0, SN_FLOAT32) || !is_scalar(g, n->in[1]) ||
        sni_const_load(g->values[n->in[1]]->constant, &t, NULL) != SN_OK)
        return false;
    float e = *(const float *)t->data;
    return e == 2 || e == 3 || e == -1;
}

static bool is_conversion(const sni_graph *g, const sni_node *n) {
    int32_t x = n->in[0];
    if (is_of(g, n->out[0], SN_BOOL)) return is_of(g, x, SN_FLOAT32);
    return is_of(g, n->out[0], SN_FLOAT32) &&
           (is_of(g, x, SN_BOOL) || is_of(g, x, SN_INT32) || is_of(g, x, SN_INT64));
}

static bool takes(const sni_graph *g, const sni_node *n, inputs_kind kind) {
    switch (kind) {
    case ONE_FLOAT:
        return n->n_in == 1 && all_are(g, n, 0, SN_FLOAT32);
    case TWO_FLOATS:
        return n->n_in == 2 && all_are(g, n, 0, SN_FLOAT32);
    case SOME_FLOATS:
        return n->n_in >= 2 && n->n_in <= 4 && all_are(g, n, 0, SN_FLOAT32);
    case BOUNDS:
        return n->n_in >= 1 && n->n_in <= 3 && has_bounds(g, n);
    case EXPONENT:
        return n->n_in == 2 && has_easy_exponent(g, n);
    case BOOLS:
        return n->n_in >= 1 && n->n_in <= 2 && all_are(g, n, 0, SN_BOOL);
    case CHOICE:
        return n->n_in == 3 && is_of(g, n->in[0], SN_BOOL) && all_are(g, n, 1, SN_FLOAT32);
    default:
        return n->n_in == 1 && is_conversion(g, n);
    }
}

static bool is_elementwise(const grouper *p, const sni_node *n) {
    if (n->domain.n || n->n_out != 1 || n->n_in < 1 || n->out[0] == SNI_NO_ID) return false;
    const sni_value *y = p->g->values[n->out[0]];
    if (!y->type.has_shape || y->use_count > MOST_USES || p->fixed[y->id]) return false;
    for (size_t i = 0; i < sizeof known_ops / sizeof *known_ops; i++)
        if (sni_str_is(n->type, known_ops[i].op)) return takes(p->g, n, known_ops[i].kind);
    return false;
}

static bool same_shape(const sni_type *a, const sni_type *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

/* ---- What a group reads and who reads it ---- */

/* True if the value comes into the body instead of being an input of the group: numbers and lists
 * of axes. */
static bool moves_in(const sni_graph *g, int32_t id) {
    const sni_value *v = sni_graph_value(g, id);
    if (is_scalar(g, id)) return true;
    return v && v->constant && !v->is_input && v->type.dtype == SN_INT64 && v->type.rank == 1 &&
           v->constant->tensor.count <= SN_MAX_RANK;
}

static bool is_used_outside(const grouper *p, const sni_value *v) {
    for (int32_t i = 0; i < v->use_count; i++)
        if (v->uses[i].node == SNI_NO_ID || !p->in[v->uses[i].node]) return true;
    return false;
}

/* Whether the members, whose `in` flags are set, can stand somewhere as one node. */
static bool fits(grouper *p) {
    double behind = -1, before = 1e300;
    int32_t inputs[SNI_GROUP_INPUTS];
    int n_inputs = 0, n_outputs = 0;
    for (int m = 0; m < p->count; m++) {
        const sni_node *n = p->members[m];
        for (int32_t i = 0; i < n->n_in; i++) {
            if (n->in[i] == SNI_NO_ID || moves_in(p->g, n->in[i])) continue;
            const sni_value *v = p->g->values[n->in[i]];
            if (v->producer != SNI_NO_ID && p->in[v->producer]) continue;
            int k = 0;
            while (k < n_inputs && inputs[k] != v->id) k++;
            if (k == SNI_GROUP_INPUTS) return false;
            if (k == n_inputs) inputs[n_inputs++] = v->id;
            if (v->producer != SNI_NO_ID && p->position[v->producer] > behind)
                behind = p->position[v->producer];
        }
        const sni_value *y = p->g->values[n->out[0]];
        if (is_used_outside(p, y) && ++n_outputs > SNI_GROUP_OUTPUTS) return false;
        for (int32_t i = 0; i < y->use_count; i++) {
            int32_t user = y->uses[i].node;
            if (user != SNI_NO_ID && !p->in[user] && p->position[user] < before)
                before = p->position[user];
        }
    }
    p->place = before;
    return n_inputs > 0 && behind < before;
}

/* ---- Growing ---- */

/* Takes a node in if there is a place for the group with it. */
static bool admit(grouper *p, sni_node *n) {
    p->members[p->count++] = n;
    p->in[n->id] = true;
    if (fits(p)) return true;
    p->in[n->id] = false;
    p->count--;
    return false;
}

/* Takes a node in if it belongs to the group. */
static bool try_member(grouper *p, sni_node *n, const sni_type *shape) {
    if (!n || p->in[n->id] || p->count == SNI_GROUP_MEMBERS || !is_elementwise(p, n)) return false;
    if (!same_shape(&p->g->values[n->out[0]]->type, shape)) return false;
    return admit(p, n);
}

/* Tries the neighbours of member m; says whether one came in. */
static bool try_neighbours(grouper *p, int m, const sni_type *shape) {
    const sni_node *n = p->members[m];
    const sni_value *y = p->g->values[n->out[0]];
    bool grew = false;
    for (int32_t i = 0; i < y->use_count; i++)
        grew |= try_member(p, sni_graph_node(p->g, y->uses[i].node), shape);
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *x = sni_graph_value(p->g, n->in[i]);
        if (x && x->producer != SNI_NO_ID) grew |= try_member(p, p->g->nodes[x->producer], shape);
    }
    return grew;
}

/* ---- A reduction at the end ---- */

/* True if the node reduces rows of float32: its axes are the last ones. */
static bool reduces_rows(const sni_graph *g, const sni_node *n) {
    static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",
                                      "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSum"};
    bool known = false, gone[SN_MAX_RANK] = {false};
    const sni_tensor *axes;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        known = known || (!n->domain.n && sni_str_is(n->type, ops[i]));
    if (!known || n->n_in != 2 || n->out[0] == SNI_NO_ID || !is_of(g, n->in[0], SN_FLOAT32) ||
        !is_of(g, n->out[0], SN_FLOAT32) || !moves_in(g, n->in[1]))
        return false;
    int rank = g->values[n->in[0]]->type.rank;
    if (sni_const_load(g->values[n->in[1]]->constant, &axes, NULL) != SN_OK || axes->count == 0 ||
        axes->dtype != SN_INT64)
        return false;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = ((const int64_t *)axes->data)[i];
        if (axis < -rank || axis >= rank) return false;
        gone[axis < 0 ? axis + rank : axis] = true;
    }
    for (int i = 1; i < rank; i++)
        if (gone[i - 1] && !gone[i]) return false;
    return gone[rank - 1];
}

/* Takes in one reduction of a member's value. */
static void try_reduction(grouper *p) {
    int members = p->count;
    for (int m = 0; m < members && p->count < SNI_GROUP_MEMBERS; m++) {
        const sni_value *y = p->g->values[p->members[m]->out[0]];
        for (int32_t i = 0; i < y->use_count; i++) {
            sni_node *n = sni_graph_node(p->g, y->uses[i].node);
            if (!n || p->in[n->id] || n->in[0] != y->id || !reduces_rows(p->g, n) ||
                p->g->values[n->out[0]]->use_count > MOST_USES)
                continue;
            if (admit(p, n)) return;
        }
    }
}

static void grow(grouper *p, sni_node *seed) {
    if (seed->n_out == 0 || seed->out[0] == SNI_NO_ID) return;
    const sni_type *shape = &p->g->values[seed->out[0]]->type;
    bool grew = try_member(p, seed, shape);
    while (grew) {
        grew = false;
        for (int m = 0; m < p->count; m++) grew |= try_neighbours(p, m, shape);
    }
    if (!p->count) return;
    try_reduction(p);
    fits(p);
}

/* ---- Making the node ---- */

typedef struct making {
    sni_graph *body;
    int32_t in[SNI_GROUP_INPUTS], out[SNI_GROUP_OUTPUTS]; /* the group's, outside */
    int32_t n_in, n_out;
} making;

static sn_status add_inner(grouper *p, making *m, int32_t id, sni_value **out) {
    const sni_value *v = p->g->values[id];
    if (moves_in(p->g, id)) {
        SN_TRY(sni_graph_add_const(m->body, (sni_str){0}, v->constant, out, p->r->err));
    } else {
        SN_TRY(sni_graph_add_value(m->body, (sni_str){0}, out, p->r->err));
        if (!sni_type_copy(&(*out)->type, &v->type, &p->r->store->arena))
            return sni_fail_memory(p->r->err);
    }
    p->inner[id] = (*out)->id;
    return SN_OK;
}

/* The body's value for what a member reads. */
static sn_status inner_of(grouper *p, making *m, int32_t id, int32_t *out) {
    if (id != SNI_NO_ID && p->inner[id] == SNI_NO_ID) {
        sni_value *v;
        SN_TRY(add_inner(p, m, id, &v));
        if (!moves_in(p->g, id)) {
            SN_TRY(sni_graph_add_input(m->body, v->id, p->r->err));
            m->in[m->n_in++] = id;
        }
    }
    *out = id == SNI_NO_ID ? SNI_NO_ID : p->inner[id];
    return SN_OK;
}

static sn_status add_member(grouper *p, making *m, const sni_node *from) {
    int32_t *in = SNI_NEW_ARRAY(&p->temp, int32_t, from->n_in);
    sni_value *y;
    sni_node *n;
    if (!in) return sni_fail_memory(p->r->err);
    for (int32_t i = 0; i < from->n_in; i++) SN_TRY(inner_of(p, m, from->in[i], &in[i]));
    SN_TRY(add_inner(p, m, from->out[0], &y));
    SN_TRY(sni_graph_add_node(m->body, SNI_NO_ID,
                              &(sni_new_node){from->domain, from->type, in, from->n_in, &y->id, 1},
                              &n, p->r->err));
    for (int32_t i = 0; i < from->n_attrs; i++)
        SN_TRY(sni_node_set_attr(m->body, n, &from->attrs[i], p->r->err));
    n->name = from->name;
    n->version = from->version;
    n->op = from->op;
    n->params = from->params;
    return SN_OK;
}

/* Members in the order of the list. */
static void sort_members(grouper *p) {
    for (int i = 1; i < p->count; i++) {
        sni_node *n = p->members[i];
        int k = i;
        for (; k > 0 && p->position[p->members[k - 1]->id] > p->position[n->id]; k--)
            p->members[k] = p->members[k - 1];
        p->members[k] = n;
    }
}

static sn_status make_body(grouper *p, making *m) {
    SN_TRY(sni_graph_new(p->r->store, p->g->symbols, p->g, &m->body, p->r->err));
    for (int i = 0; i < p->count; i++) SN_TRY(add_member(p, m, p->members[i]));
    for (int i = 0; i < p->count; i++) {
        int32_t id = p->members[i]->out[0];
        if (!is_used_outside(p, p->g->values[id])) continue;
        sni_str name = sni_arena_printf(&p->r->store->arena, "y%d", (int)m->n_out);
        if (!name.p) return sni_fail_memory(p->r->err);
        SN_TRY(sni_graph_add_output(m->body, p->inner[id], name, p->r->err));
        m->out[m->n_out++] = id;
    }
    return SN_OK;
}

/* Values with the names and types of the members' results, which lose their names. */
static sn_status make_outputs(grouper *p, const making *m, int32_t *out) {
    for (int32_t i = 0; i < m->n_out; i++) {
        sni_value *old = p->g->values[m->out[i]], *v;
        SN_TRY(sni_graph_add_value(p->g, (sni_str){0}, &v, p->r->err));
        if (!sni_type_copy(&v->type, &old->type, &p->r->store->arena))
            return sni_fail_memory(p->r->err);
        v->name = old->name;
        old->name = (sni_str){0};
        out[i] = v->id;
    }
    return SN_OK;
}

/* The node that the group is put before: the last member if nobody reads it earlier. */
static int32_t find_place(const grouper *p, double *position) {
    const sni_node *n = p->members[p->count - 1];
    *position = p->position[n->id];
    if (p->place > *position) return n->id;
    while (p->position[n->id] > p->place) n = p->g->nodes[n->prev];
    double before = n->prev == SNI_NO_ID ? -1 : p->position[n->prev];
    *position = (before + p->place) / 2;
    return n->id;
}

static void forget_inner(grouper *p) {
    for (int m = 0; m < p->count; m++) {
        const sni_node *n = p->members[m];
        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i] != SNI_NO_ID) p->inner[n->in[i]] = SNI_NO_ID;
        p->inner[n->out[0]] = SNI_NO_ID;
    }
}

static sn_status make_group(grouper *p) {
    making m = {0};
    int32_t out[SNI_GROUP_OUTPUTS], index;
    double position;
    sni_node *n;
    sort_members(p);
    int32_t before = find_place(p, &position);
    SN_TRY(make_body(p, &m));
    SN_TRY(make_outputs(p, &m, out));
    SN_TRY(sni_graph_add_node(
        p->g, before,
        &(sni_new_node){SNI_STR("ai.sinter"), SNI_STR("Group"), m.in, m.n_in, out, m.n_out}, &n,
        p->r->err));
    n->name = p->members[p->count - 1]->name;
    n->op = sni_op_find(n->domain, n->type);
    n->version = 1;
    SN_TRY(sni_node_add_subgraph(p->g, n, m.body, &index, p->r->err));
    sni_attr body = {.name = SNI_STR("body"), .kind = SNI_ATTR_GRAPH, .u.graph = index};
    SN_TRY(sni_node_set_attr(p->g, n, &body, p->r->err));
    SN_TRY(sni_node_bind(p->g, n, p->r->err));
    for (int32_t i = 0; i < m.n_out; i++)
        SN_TRY(sni_graph_replace_uses(p->g, m.out[i], out[i], p->r->err));
    forget_inner(p);
    for (int i = p->count - 1; i >= 0; i--) sni_graph_remove_node(p->g, p->members[i]);
    p->position[n->id] = position;
    p->r->count++;
    return SN_OK;
}

/* ---- The pass ---- */

/* Marks what follows from constants and shapes alone. */
static void mark_fixed(grouper *p) {
    for (int32_t i = 0; i < p->n_values; i++) {
        const sni_value *v = p->g->values[i];
        if (v) p->fixed[i] = (v->constant && !v->is_input) || v->shape_value;
    }
    double at = 0;
    for (const sni_node *n = sni_graph_first(p->g); n; n = sni_graph_next(p->g, n)) {
        p->position[n->id] = at++;
        bool fixed = !n->n_subgraphs && n->op && !(n->op->flags & SNI_OP_RANDOM);
        bool asks_shape =
            !n->domain.n && (sni_str_is(n->type, "Shape") || sni_str_is(n->type, "Size"));
        for (int32_t i = 0; i < n->n_in && fixed && !asks_shape; i++)
            fixed = n->in[i] == SNI_NO_ID || p->fixed[n->in[i]];
        for (int32_t i = 0; i < n->n_out && fixed; i++)
            if (n->out[i] != SNI_NO_ID) p->fixed[n->out[i]] = true;
    }
}

static sn_status run(grouper *p) {
    /* A group stands for two nodes at least, and has as many results as they had at most. */
    size_t nodes = (size_t)p->n_nodes * 2 + 1, values = (size_t)p->n_values * 2 + 1;
    p->position = SNI_NEW_ARRAY(&p->temp, double, nodes);
    p->in = SNI_NEW_ARRAY(&p->temp, bool, nodes);
    p->fixed = SNI_NEW_ARRAY(&p->temp, bool, values);
    p->inner = SNI_NEW_ARRAY(&p->temp, int32_t, values);
    if (!p->position || !p->in || !p->fixed || !p->inner) return sni_fail_memory(p->r->err);
    for (size_t i = 0; i < values; i++) p->inner[i] = SNI_NO_ID;
    mark_fixed(p);
    for (sni_node *n = sni_graph_first(p->g), *next; n; n = next) {
        p->count = 0;
        grow(p, n);
        next = sni_graph_next(p->g, n);
        if (p->count >= 2) {
            while (next && p->in[next->id]) next = sni_graph_next(p->g, next);
            SN_TRY(make_group(p));
        } else if (p->count) {
            p->in[n->id] = false;
        }
    }
    sni_graph_remove_dead_values(p->g);
    return SN_OK;
}

sn_status sni_pass_group(sni_rewrite *r) {
    grouper p = {
        .r = r, .g = r->graph, .n_nodes = r->graph->node_count, .n_values = r->graph->value_count};
    sni_arena_init(&p.temp, 0);
    sn_status status = run(&p);
    sni_arena_free(&p.temp);
    return status;
}
