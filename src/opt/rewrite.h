/* rewrite.h - rules: a piece of graph, written as text, and what takes its place.
 *
 *     {"gelu-div", "Mul(Mul(x, Add(Erf(Div(x, 1.4142135)), 1)), 0.5)", "Gelu(x)"}
 *
 * In a pattern
 *   x           any value; the same name means the same value
 *   %w          a constant
 *   #e          a constant of one element, whose number can be used
 *   1.4142135   a constant of one element with that number: exactly if it is written with fewer
 * than five digits, within 0.1 % if with more; inputs of integers, too [0, -1]     a constant list
 * of integers; negative ones also count from the rank of input 0 b?          an input that may be
 * left out; _ one that is left out Op(...)     the output of a node; Op|Other(...) of either;
 * "com.microsoft.Op" with its domain {a | b}     either s:Op(...)   the same with a name, by which
 * it can be meant again; Op(...)[1] output 1 Op<a = 1, b = "text", c = [1, 2], d = @d>(...)
 * attributes must be so; @d takes whatever it is Operands of commutative operators may stand in
 * either order.
 *
 * The nodes of a pattern other than its root, which is the whole text's operator, must be used by
 * the pattern alone and make no output of the graph. In a replacement
 *   Op<a = @d, b = #e, *s>(...)  uses captured attributes and numbers, and all attributes of node s
 *   (root, _, s) = Op(...)       a node of several outputs: s, a node of the pattern, may be used
 *                                elsewhere as well and is replaced by output 2; s[1] means its
 *                                output 1, if it has one
 *   x                            a value alone: the pattern does nothing
 *
 * Types and shapes of what is replaced never change: a match whose replacement would come out
 * otherwise is left alone. */
#ifndef SNI_OPT_REWRITE_H
#define SNI_OPT_REWRITE_H

#include "opt/opt.h"

enum {
    SNI_RULE_NAMES = 24, /* names of one rule */
    SNI_RULE_NODES = 24, /* nodes of one pattern */
    SNI_PAT_OPS = 12,    /* alternatives of a node */
    SNI_PAT_INPUTS = 16, /* of a node */
    SNI_PAT_ATTRS = 8,   /* of a node */
    SNI_PAT_NUMBERS = 8, /* of a list */
    SNI_PAT_OUTPUTS = 4, /* of a replacement */
    SNI_TEXT_DEPTH_MAX = 32
};

typedef struct sni_match sni_match;

struct sni_rule {
    const char *name;
    const char *pattern, *replacement;
    /* Conditions that text cannot state. NULL: none. Called with everything bound; false makes the
     * matcher look for another way to match. */
    bool (*where)(sni_match *m);
    /* Binds names of the replacement that the pattern does not bind: constants, attributes,
     * numbers. Called once the match is final. NULL: nothing to do. */
    sn_status (*build)(sni_match *m);
    /* For the test: shapes and values of captures, "x=[N,3,8] %w=[8] #e=1e-5 @axis=-1"; cases are
     * divided by ';'. +[8] is positive, 1[8] all ones, 2x[8] the same 8 numbers twice, x2[1,1,1,8]
     * each of them twice, int64{0,1} a constant list, Op(x) a node's result. What is not named is
     * float[2,3,8], 0.7 or the attribute's default. */
    const char *sample;
    int level; /* lowest optimisation level; 0 stands for 2 */
    /* Quantised results may differ from those of the pattern by so many steps, because the pattern
     * rounds on its way there and the replacement does not. */
    int steps;
};

/* ---- Tables of rules: each ends with a rule without a name ---- */

typedef struct sni_rule_table {
    const char *theme;
    sni_stage stage;
    const sni_rule *rules;
} sni_rule_table;

extern const sni_rule_table sni_rule_tables[]; /* ends with an entry without rules */

/* ---- Compiled text (rewrite_text.c) ---- */

typedef enum sni_pat_kind {
    SNI_PAT_ABSENT,
    SNI_PAT_VALUE,
    SNI_PAT_CONST,
    SNI_PAT_SCALAR,
    SNI_PAT_NUMBER,
    SNI_PAT_INTS,
    SNI_PAT_NODE,
    SNI_PAT_AGAIN, /* a node that has been named before */
    SNI_PAT_CHOICE /* one of `in` */
} sni_pat_kind;

typedef enum sni_pat_attr_kind {
    SNI_PAT_ATTR_NUMBER,
    SNI_PAT_ATTR_STRING,
    SNI_PAT_ATTR_INTS,
    SNI_PAT_ATTR_NAME,   /* @name */
    SNI_PAT_ATTR_SCALAR, /* #name */
    SNI_PAT_ATTR_ALL     /* *name */
} sni_pat_attr_kind;

typedef struct sni_pat_attr {
    sni_str name;
    sni_pat_attr_kind kind;
    int slot;
    double number;
    sni_str text;
    int n_ints;
    int64_t ints[SNI_PAT_NUMBERS];
} sni_pat_attr;

typedef struct sni_pat {
    sni_pat_kind kind;
    int slot; /* of its name; -1: none */
    bool optional, approximate, commutative, shared;
    int out; /* NODE, AGAIN: which output */
    double number;
    int n_ints;
    int64_t ints[SNI_PAT_NUMBERS];
    int n_ops, n_in, n_attrs;
    const sni_op *ops[SNI_PAT_OPS];
    const struct sni_pat *in[SNI_PAT_INPUTS];
    const sni_pat_attr *attrs;
} sni_pat;

/* What a name stands for decides what may be done with it. */
typedef struct sni_rule_name {
    sni_str text;
    char sigil; /* 0 a value, '%', '#', '@', or ':' a node */
} sni_rule_name;

typedef struct sni_compiled_rule {
    const sni_rule *rule;
    sni_stage stage;
    int n_names, n_outputs;
    sni_rule_name names[SNI_RULE_NAMES];
    const sni_pat *pattern, *replacement; /* NULL: not compiled yet */
    /* None listed: the root alone. */
    struct {
        int slot; /* of a node; -1 the root, -2 nothing */
        int out;  /* which output of it */
    } outputs[SNI_PAT_OUTPUTS];
} sni_compiled_rule;

/* Compiles c->rule; c->stage is left as it is. SN_INTERNAL says what is wrong with the text. The
 * result's parts live in `arena`. */
sn_status sni_rule_compile(sni_compiled_rule *c, sni_arena *arena, sn_error *err);

/* The operators that the root of a rule's pattern may be, without compiling the rest: up to
 * SNI_PAT_OPS. */
sn_status sni_rule_roots(const sni_rule *rule, const sni_op **ops, int *count, sn_error *err);

/* ---- All rules, each compiled once for the process (rewrite_table.c) ---- */

typedef struct sni_rule_set {
    const sni_compiled_rule *rules;
    size_t count;
} sni_rule_set;

/* The rules by name and stage, compiled or not. SN_INTERNAL names a rule whose text is wrong. */
sn_status sni_rule_set_get(const sni_rule_set **out, sn_error *err);

/* The same with every rule compiled. */
sn_status sni_rule_set_compile(const sni_rule_set **out, sn_error *err);

/* The rules whose root may be `op`, in the order of the tables, compiled. */
sn_status sni_rules_of(const sni_op *op, const sni_compiled_rule *const **rules, size_t *count,
                       sn_error *err);

/* ---- Matching (rewrite_match.c) ---- */

typedef struct sni_rule_slot {
    int32_t value;  /* SNI_NO_ID: left out */
    sni_node *node; /* of a named node */
    double number;  /* of a scalar */
    sni_attr attr;  /* of a captured attribute; kind NONE: it was not given and has no default */
} sni_rule_slot;

struct sni_match {
    sni_rewrite *r;
    sni_graph *g;
    const sni_compiled_rule *rule;
    sni_node *root;
    uint32_t bound; /* bit i: slots[i] is set */
    sni_rule_slot slots[SNI_RULE_NAMES];
    int n_nodes;
    sni_node *nodes[SNI_RULE_NODES]; /* root first */
    bool shared[SNI_RULE_NODES];     /* it may have other users */
    int32_t place;                   /* for `build`: the node before which new ones go */
    sni_node *made;                  /* after sni_rule_apply: the first new node; NULL: none */
};

/* True if the rule matches at `root`; m->r must be set. */
bool sni_rule_match(sni_match *m, const sni_compiled_rule *rule, sni_node *root);

/* Lookups for callbacks, by the name without its sigil. */
int32_t sni_match_value(const sni_match *m, const char *name); /* SNI_NO_ID: left out or unknown */
sni_node *sni_match_node(const sni_match *m, const char *name);
/* 0 if it is not bound. */
double sni_match_number(const sni_match *m, const char *name);
const sni_attr *sni_match_attr(const sni_match *m, const char *name); /* NULL: not given */
const sni_type *sni_match_type(const sni_match *m, const char *name); /* of a value; not NULL */
/* The contents of a constant; NULL if it is none or cannot be read. */
const sni_tensor *sni_match_const(const sni_match *m, const char *name);

/* Constants in general. */
sni_const *sni_value_const(const sni_graph *g, int32_t id); /* NULL: none, or may be overridden */
bool sni_value_scalar(const sni_graph *g, int32_t id, double *out); /* one element, any real type */
bool sni_types_equal(const sni_type *a, const sni_type *b); /* element type and every dimension */

/* ---- Building (rewrite_build.c) ---- */

/* Replaces a match; sets *done to false if types or shapes would not stay as they are. */
sn_status sni_rule_apply(sni_match *m, bool *done);

/* For `build`: binds a name of the replacement. */
sn_status sni_match_set_value(sni_match *m, const char *name, int32_t value);
sn_status sni_match_set_number(sni_match *m, const char *name, double number);
sn_status sni_match_set_attr(sni_match *m, const char *name, sni_attr attr);
/* A constant of float32 with memory for its contents. */
sn_status sni_match_new_floats(sni_match *m, const char *name, int rank, const int64_t *dims,
                               float **data);
/* A constant of any type with memory for its contents, which are zeros at first. */
sn_status sni_match_new_const(sni_match *m, const char *name, sn_dtype dtype, int rank,
                              const int64_t *dims, void **data);
/* A constant of the element type and shape of `shape` whose contents `decode` works out from
 * `source` when somebody needs them. */
sn_status sni_match_new_lazy(sni_match *m, const char *name, const sni_tensor *shape,
                             sni_decode_fn decode, const void *source);
/* Binds a name to a constant that is part of no graph yet. */
sn_status sni_match_bind_const(sni_match *m, const char *name, sni_const *c);
/* A constant list of int64. */
sn_status sni_match_new_ints(sni_match *m, const char *name, int64_t count, const int64_t *v);
/* A constant list without a name. */
sn_status sni_match_list(sni_match *m, int64_t count, const int64_t *v, int32_t *out);
/* A node of ai.onnx in front of the replacement, for what its text cannot say; *out is its first
 * output. SN_INTERNAL if it does not fit its inputs, which must be made before m->place. */
sn_status sni_match_new_node(sni_match *m, const char *op, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int n_attrs, int32_t *out);

/* ---- Applying (rewrite.c) ---- */

/* Which rules take part, by index into the rule set, and what they did. */
typedef struct sni_rule_run {
    sni_stage stage; /* rules of this stage and those before it */
    const bool *off;
    size_t *counts;
    sni_opt_report *report; /* where events go */
} sni_rule_run;

/* One sweep over a graph; adds to r->count. */
sn_status sni_apply_rules(sni_rewrite *r, const sni_rule_run *run);

#endif
