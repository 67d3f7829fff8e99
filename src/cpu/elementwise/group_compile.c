/* group_compile.c - compiles the body of a Group to steps over rows; see group.h. */
#include "cpu/elementwise/group.h"

#include <math.h>
#include <stdlib.h>

typedef struct compiler {
    sni_group_program *p;
    const sni_graph *body;
    const sni_map_kernels *kernels;
    int16_t *slot;   /* by value of the body; -1: none yet */
    sn_dtype *dtype; /* likewise */
} compiler;

/* ---- Slots and steps; -1: the program is full, or an operand is missing ---- */

static int new_slot(compiler *c) {
    sni_group_program *p = c->p;
    if (p->n_slots == SNI_GROUP_SLOTS) return -1;
    p->buffer[p->n_slots] = -1;
    return p->n_slots++;
}

static int add_const(compiler *c, float v) {
    int s = new_slot(c);
    if (s < 0) return -1;
    c->p->is_const[s] = true;
    c->p->constant[s] = v;
    return s;
}

/* Adds a step on slots a, b and d, and returns its result's slot. */
static int add_step(compiler *c, const sni_group_step *step, int a, int b, int d) {
    int to = new_slot(c);
    if (to < 0 || a < 0 || b < 0 || d < 0 || c->p->n_steps == SNI_GROUP_STEPS) return -1;
    sni_group_step *s = &c->p->steps[c->p->n_steps++];
    *s = *step;
    s->in[0] = (int16_t)a;
    s->in[1] = (int16_t)b;
    s->in[2] = (int16_t)d;
    s->to = (int16_t)to;
    return to;
}

static int add_map(compiler *c, sni_act act, float p0, float p1, int x) {
    sni_group_step s = {.kind = SNI_GROUP_MAP, .p0 = p0, .p1 = p1};
    s.fn.map = c->kernels->map[act];
    return add_step(c, &s, x, x, x);
}

static int add_binary(compiler *c, sni_binary fn, int a, int b) {
    sni_group_step s = {.kind = SNI_GROUP_BINARY};
    s.fn.binary = c->kernels->binary[fn];
    return add_step(c, &s, a, b, b);
}

static int add_choice(compiler *c, int condition, int a, int b) {
    sni_group_step s = {.kind = SNI_GROUP_CHOOSE};
    return add_step(c, &s, condition, a, b);
}

/* ---- Values ---- */

/* The slot of input i of a member; -1 if it has another type. */
static int operand(const compiler *c, const sni_node *n, int i, sn_dtype dtype) {
    if (i >= n->n_in || n->in[i] == SNI_NO_ID || c->dtype[n->in[i]] != dtype) return -1;
    return c->slot[n->in[i]];
}

/* *out = the value of a constant input of a member; `otherwise` if it is left out. False if it is
 * not constant. */
static bool number(const compiler *c, const sni_node *n, int i, float otherwise, float *out) {
    *out = otherwise;
    if (i >= n->n_in || n->in[i] == SNI_NO_ID) return true;
    int s = operand(c, n, i, SN_FLOAT32);
    if (s < 0 || !c->p->is_const[s]) return false;
    *out = c->p->constant[s];
    return true;
}

/* ---- Operators ---- */

static int compile_compare(compiler *c, const sni_node *n) {
    static const struct {
        const char *op;
        sni_binary fn;
        bool swapped;
    } known[] = {{"Equal", SNI_BINARY_EQUAL, false},
                 {"Less", SNI_BINARY_LESS, false},
                 {"LessOrEqual", SNI_BINARY_LESS_OR_EQUAL, false},
                 {"Greater", SNI_BINARY_LESS, true},
                 {"GreaterOrEqual", SNI_BINARY_LESS_OR_EQUAL, true}};
    int a = operand(c, n, 0, SN_FLOAT32), b = operand(c, n, 1, SN_FLOAT32);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sni_str_is(n->type, known[i].op))
            return known[i].swapped ? add_binary(c, known[i].fn, b, a)
                                    : add_binary(c, known[i].fn, a, b);
    return -1;
}

static int compile_logic(compiler *c, const sni_node *n) {
    int a = operand(c, n, 0, SN_BOOL), b = operand(c, n, 1, SN_BOOL);
    if (sni_str_is(n->type, "Not")) return add_map(c, SNI_ACT_AFFINE, -1, 1, a);
    if (sni_str_is(n->type, "And")) return add_binary(c, SNI_BINARY_MUL, a, b);
    if (sni_str_is(n->type, "Or")) return add_binary(c, SNI_BINARY_MAX, a, b);
    if (sni_str_is(n->type, "Xor")) return add_binary(c, SNI_BINARY_NOT_EQUAL, a, b);
    return -1;
}

static int compile_cast(compiler *c, const sni_node *n, sn_dtype *made) {
    const sni_attr *to = sni_node_attr(n, "to");
    if (!to || to->kind != SNI_ATTR_INT || n->in[0] == SNI_NO_ID) return -1;
    sn_dtype from = c->dtype[n->in[0]];
    int x = c->slot[n->in[0]];
    *made = (sn_dtype)to->u.i;
    if (to->u.i == SN_FLOAT32) return x; /* rows are floats, whatever type they were loaded from */
    if (to->u.i != SN_BOOL) return -1;
    if (from == SN_BOOL) return x;
    return from == SN_FLOAT32 ? add_binary(c, SNI_BINARY_NOT_EQUAL, x, add_const(c, 0)) : -1;
}

/* Operators of two inputs; variadic ones as a chain. */
static int compile_chain(compiler *c, const sni_node *n) {
    sni_binary fn = SNI_BINARY_ADD;
    if (!sni_str_is(n->type, "Sum") && !sni_cpu_binary(n, &fn)) return -1;
    bool variadic = sni_str_is(n->type, "Sum") || fn == SNI_BINARY_MAX || fn == SNI_BINARY_MIN;
    int result = operand(c, n, 0, SN_FLOAT32);
    if (n->n_in < 2 || (n->n_in > 2 && !variadic)) return -1;
    for (int i = 1; i < n->n_in; i++)
        result = add_binary(c, fn, result, operand(c, n, i, SN_FLOAT32));
    return result;
}

static int compile_one(compiler *c, const sni_node *n) {
    sni_act act = SNI_ACT_NONE;
    float p0 = 0, p1 = 0;
    int x = operand(c, n, 0, SN_FLOAT32);
    if (sni_str_is(n->type, "Clip")) {
        if (!number(c, n, 1, -INFINITY, &p0) || !number(c, n, 2, INFINITY, &p1)) return -1;
        act = SNI_ACT_CLIP;
    } else if (sni_str_is(n->type, "Pow")) {
        if (n->n_in != 2 || !number(c, n, 1, 0, &p0) || !sni_cpu_power(p0, &act)) return -1;
    } else if (!sni_cpu_unary(n, &act, &p0, &p1)) {
        return -1;
    }
    return add_map(c, act, p0, p1, x);
}

/* ---- A reduction ---- */

static const sni_reducer *find_reducer(const sni_node *n, bool *selects) {
    const sni_reduce_kernels *l = sni_reduce_kernels_get();
    const struct {
        const char *op;
        const sni_reducer *const *table;
        bool selects;
    } known[] = {
        {"ReduceSum", l->ReduceSum, false},       {"ReduceMean", l->ReduceMean, false},
        {"ReduceL1", l->ReduceL1, false},         {"ReduceL2", l->ReduceL2, false},
        {"ReduceMax", l->ReduceMax, true},        {"ReduceMin", l->ReduceMin, true},
        {"ReduceLogSum", l->ReduceLogSum, false}, {"ReduceSumSquare", l->ReduceSumSquare, false}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!sni_str_is(n->type, known[i].op)) continue;
        *selects = known[i].selects;
        return known[i].table[SN_FLOAT32];
    }
    return NULL;
}

/* A reduction's result has no slot: it can only be an output of the group. */
static bool compile_reduction(compiler *c, const sni_node *n) {
    sni_group_program *p = c->p;
    const sni_tensor *axes;
    int x = operand(c, n, 0, SN_FLOAT32);
    const sni_value *list = n->n_in == 2 ? sni_graph_value(c->body, n->in[1]) : NULL;
    if (x < 0 || p->reducer || !list || !list->constant || list->is_input ||
        list->constant->tensor.dtype != SN_INT64 || list->constant->tensor.count < 1 ||
        list->constant->tensor.count > SN_MAX_RANK ||
        sni_const_load(list->constant, &axes, NULL) != SN_OK)
        return false;
    if (x < p->n_in || p->is_const[x]) x = add_map(c, SNI_ACT_NONE, 0, 0, x); /* a whole row */
    if (x < 0) return false;
    p->reducer = find_reducer(n, &p->selects);
    p->reduced = (int16_t)x;
    p->n_axes = (int)axes->count;
    memcpy(p->axes, axes->data, (size_t)axes->count * sizeof *p->axes);
    for (int i = 0; i < c->body->n_outputs; i++)
        if (c->body->outputs[i] == n->out[0]) p->reduction = i;
    return p->reduction >= 0;
}

static bool compile_node(compiler *c, const sni_node *n) {
    sn_dtype made = SN_FLOAT32;
    bool selects;
    int s = -1;
    if (n->domain.n || n->n_out != 1 || n->out[0] == SNI_NO_ID || n->n_in < 1) return false;
    if (find_reducer(n, &selects)) return compile_reduction(c, n);
    if (sni_str_is(n->type, "Cast")) {
        s = compile_cast(c, n, &made);
    } else if (sni_str_is(n->type, "Where")) {
        s = add_choice(c, operand(c, n, 0, SN_BOOL), operand(c, n, 1, SN_FLOAT32),
                       operand(c, n, 2, SN_FLOAT32));
    } else {
        s = compile_chain(c, n);
        if (s < 0) s = compile_one(c, n);
        if (s < 0) {
            made = SN_BOOL;
            s = compile_compare(c, n);
        }
        if (s < 0) s = compile_logic(c, n);
    }
    c->slot[n->out[0]] = (int16_t)s;
    c->dtype[n->out[0]] = made;
    return s >= 0;
}

/* ---- Inputs, constants, outputs ---- */

static bool take_inputs(compiler *c, const sni_choice *choice) {
    sni_group_program *p = c->p;
    const sni_graph *g = c->body;
    if (choice->n_in > SNI_GROUP_INPUTS || g->n_inputs != choice->n_in ||
        g->n_outputs > SNI_GROUP_OUTPUTS)
        return false;
    p->n_in = choice->n_in;
    p->n_out = g->n_outputs;
    for (int i = 0; i < p->n_in; i++) {
        sn_dtype t = choice->in[i] ? choice->in[i]->dtype : SN_UNDEFINED;
        if (t != SN_FLOAT32 && t != SN_BOOL && t != SN_INT32 && t != SN_INT64) return false;
        p->in_type[i] = c->dtype[g->inputs[i]] = t;
        c->slot[g->inputs[i]] = (int16_t)new_slot(c);
    }
    return true;
}

/* Constants of one float or bool. Others get no slot: members that use them cannot be compiled. */
static bool take_constants(compiler *c) {
    for (int32_t i = 0; i < c->body->value_count; i++) {
        const sni_value *v = c->body->values[i];
        const sni_tensor *t;
        if (!v || !v->constant || v->is_input || v->constant->tensor.count != 1) continue;
        if (sni_const_load(v->constant, &t, NULL) != SN_OK) return false;
        if (t->rank > c->p->const_rank) c->p->const_rank = t->rank;
        if (t->dtype != SN_FLOAT32 && t->dtype != SN_BOOL) continue;
        float number =
            t->dtype == SN_BOOL ? (float)(*(const uint8_t *)t->data != 0) : *(const float *)t->data;
        c->slot[i] = (int16_t)add_const(c, number);
        c->dtype[i] = t->dtype;
        if (c->slot[i] < 0) return false;
    }
    return true;
}

/* True if a step after the one that makes `slot` reads an input in place. */
static bool read_later(const sni_group_program *p, int slot) {
    bool made = false;
    for (int i = 0; i < p->n_steps; i++) {
        const sni_group_step *s = &p->steps[i];
        for (int k = 0; k < 3 && made; k++)
            if (s->in[k] < p->n_in && p->in_type[s->in[k]] == SN_FLOAT32) return true;
        made = made || s->to == slot;
    }
    return false;
}

/* Every output gets a slot of its own that a step makes. */
static bool take_outputs(compiler *c) {
    sni_group_program *p = c->p;
    bool taken[SNI_GROUP_SLOTS] = {false};
    for (int i = 0; i < p->n_out; i++) {
        int32_t id = c->body->outputs[i];
        if (i == p->reduction) {
            p->out[i] = p->reduced;
            p->out_type[i] = SN_FLOAT32;
            continue;
        }
        int s = c->slot[id];
        if (s < 0 || (c->dtype[id] != SN_FLOAT32 && c->dtype[id] != SN_BOOL)) return false;
        if (s < p->n_in || p->is_const[s] || taken[s]) s = add_map(c, SNI_ACT_NONE, 0, 0, s);
        if (s < 0) return false;
        taken[s] = true;
        p->out[i] = (int16_t)s;
        p->out_type[i] = c->dtype[id];
    }
    /* The planner may give output 0 the memory of an input: do not store it before all reads. */
    for (int i = 0; i < p->n_out; i++)
        p->late[i] = i == p->reduction || p->out_type[i] != SN_FLOAT32 ||
                     (i == 0 && read_later(p, p->out[0]));
    return true;
}

/* ---- Buffers ---- */

static void find_last_uses(const sni_group_program *p, int *last) {
    for (int i = 0; i < p->n_steps; i++)
        for (int k = 0; k < 3; k++) last[p->steps[i].in[k]] = i;
    for (int i = 0; i < p->n_out; i++)
        if (p->late[i]) last[p->out[i]] = p->n_steps;
}

/* Assigns buffers to results that are not stored directly. A buffer is reused after the last use of
 * its result; a step may write to a buffer that it reads. */
static void place_results(sni_group_program *p) {
    int last[SNI_GROUP_SLOTS] = {0};
    int16_t free_list[SNI_GROUP_STEPS];
    int n_free = 0;
    bool direct[SNI_GROUP_SLOTS] = {false};
    find_last_uses(p, last);
    for (int i = 0; i < p->n_out; i++)
        if (!p->late[i]) direct[p->out[i]] = true;
    for (int i = 0; i < p->n_steps; i++) {
        const sni_group_step *s = &p->steps[i];
        for (int k = 0; k < 3; k++) {
            bool again = (k > 0 && s->in[k] == s->in[0]) || (k > 1 && s->in[k] == s->in[1]);
            if (!again && p->buffer[s->in[k]] >= 0 && last[s->in[k]] == i)
                free_list[n_free++] = p->buffer[s->in[k]];
        }
        if (direct[s->to]) continue;
        p->buffer[s->to] = n_free ? free_list[--n_free] : (int16_t)p->n_buffers++;
    }
}

static bool compile(compiler *c, const sni_choice *choice) {
    for (int32_t i = 0; i < c->body->value_count; i++) c->slot[i] = -1;
    c->p->reduction = -1;
    if (!take_inputs(c, choice) || !take_constants(c)) return false;
    for (const sni_node *n = sni_graph_first(c->body); n; n = sni_graph_next(c->body, n))
        if (!compile_node(c, n)) return false;
    if (!take_outputs(c)) return false;
    place_results(c->p);
    return true;
}

bool sni_group_compile(const sni_choice *choice, sni_group_program *p) {
    compiler c = {
        .p = p, .body = sni_group_body(choice->node), .kernels = sni_cpu_kernels_get()->maps};
    if (!c.body) return false;
    memset(p, 0, sizeof *p);
    c.slot = calloc((size_t)c.body->value_count + 1, sizeof *c.slot);
    c.dtype = calloc((size_t)c.body->value_count + 1, sizeof *c.dtype);
    bool done = c.slot && c.dtype && compile(&c, choice);
    free(c.slot);
    free(c.dtype);
    return done;
}
