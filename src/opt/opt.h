/* opt.h - rewriting a graph before the first run. */
#ifndef SNI_OPT_OPT_H
#define SNI_OPT_OPT_H

#include "ops/core/numerics.h"
#include "ops/core/op.h"

typedef struct sni_pass sni_pass;
typedef struct sni_rule sni_rule;

/* When passes and rules apply: a stage is repeated, with all that belongs to it and to those before
 * it, until nothing fires; then the next one begins. */
typedef enum sni_stage {
    SNI_STAGE_CLEAN,     /* what does nothing goes */
    SNI_STAGE_RECOGNISE, /* chains become the operator that they spell out */
    SNI_STAGE_FUSE,      /* neighbours become one node */
    SNI_STAGE_LAYOUT,    /* how tensors lie in memory */
    SNI_STAGE_GROUP,     /* what is left over is put together */
    SNI_STAGE_COUNT
} sni_stage;

/* What a pass is given. */
typedef struct sni_rewrite {
    sni_graph *graph;
    sni_stage stage;
    sni_store *store;       /* owns what passes make; the graph's own */
    size_t fold_limit;      /* bytes of one constant that folding may make */
    size_t *fold_left;      /* bytes that folding may still read and write, over all passes */
    size_t *made_left;      /* bytes of constants above fold_limit that may wait until needed */
    uint64_t *fold_ns_left; /* time that folding may still take, over all passes */
    uint64_t deadline_ns;   /* when the session must be made; 0: no such moment */
    size_t count;           /* times the pass fired: it adds to this */
    sn_error *err;
} sni_rewrite;

struct sni_pass {
    const char *name;
    int level; /* lowest optimisation level that runs it */
    sn_status (*run)(sni_rewrite *r);
    sni_stage stage; /* the first that runs it */
};

/* One application of a rule. */
typedef struct sni_opt_event {
    const char *rule;
    sni_str node; /* label of the node where the pattern ended */
    struct sni_opt_event *next;
} sni_opt_event;

/* What the optimiser did. Everything is owned by the graph's store. */
typedef struct sni_opt_report {
    size_t nodes_before, nodes_after;
    size_t *counts;        /* by the index of sni_opt_name(); NULL: all 0 */
    sni_opt_event *events; /* of rules, in order of time */
    sni_opt_event **last;  /* where the next one goes */
} sni_opt_report;

/* Names of what a session can leave out: passes in the order of the pipeline, families of numerics
 * (ops/core/numerics.h), then rules in the order of their tables; NULL past the end. */
const char *sni_opt_name(size_t index);

/* The bit of the family of numerics that stands at this index; 0: a pass or a rule does. */
uint32_t sni_opt_family(size_t index);

/* The name that a name of an earlier version stands for, or the name itself. */
const char *sni_opt_current_name(const char *name);

/* Checks that every name is one of these, or of an earlier version. SN_INVALID_ARGUMENT tells the
 * nearest ones. */
sn_status sni_opt_check_names(const char *const *names, size_t count, sn_error *err);

typedef struct sni_opt_options {
    int level;                   /* 0: as it is, to 3 */
    const char *const *disabled; /* names of passes and rules that are left out */
    size_t n_disabled;
    bool portable;        /* without passes and rules that make operators of ai.sinter */
    uint64_t deadline_ns; /* of sni_now_ns(): SN_TIMEOUT after it; 0: none */
    size_t
        memory_limit; /* bytes of constants that folding may make; 0: the optimiser's own limit */
    sn_precision precision;
    /* Called once, at every level, when the graph has been cleaned up and before anything suits it
     * to the CPU: may replace nodes by others (ops/sinter/part.h). NULL: nobody is. */
    sn_status (*partition)(void *ctx, sni_graph *g, sn_error *err);
    void *partition_ctx;
} sni_opt_options;

/* The families of numerics that a session with these options allows: the mask by which everything
 * is chosen. Portable graphs are computed as they are written. */
uint32_t sni_opt_numerics(const sni_opt_options *options);

/* Runs the passes and rules of a level over a graph and its subgraphs until none fires any more.
 * The graph is changed in place; after a failure it is valid but only good to be thrown away. The
 * report lives as long as the graph's store. One thread per graph; different graphs may be
 * optimised at once. */
sn_status sni_optimize(sni_graph *g, const sni_opt_options *options, sni_opt_report *report,
                       sn_error *err);

/* ---- Passes: sni_pass.run; pipeline.c has their table ---- */
sn_status sni_pass_dead_code(sni_rewrite *r);
sn_status sni_pass_fold_constants(sni_rewrite *r);
sn_status sni_pass_identity(sni_rewrite *r);
sn_status sni_pass_common_subexpressions(sni_rewrite *r);
sn_status sni_pass_widen_floats(sni_rewrite *r);
sn_status sni_pass_layout(sni_rewrite *r);
sn_status sni_pass_expand(sni_rewrite *r);
sn_status sni_pass_conv_factors(sni_rewrite *r);
sn_status sni_pass_depthwise_means(sni_rewrite *r);
sn_status sni_pass_squeeze_excite(sni_rewrite *r);
sn_status sni_pass_indirect(sni_rewrite *r);
sn_status sni_pass_layout_last(sni_rewrite *r);
sn_status sni_pass_layout_bytes(sni_rewrite *r);
sn_status sni_pass_byte_tables(sni_rewrite *r);
sn_status sni_pass_group(sni_rewrite *r);
sn_status sni_pass_shape_values(sni_rewrite *r);
sn_status sni_pass_duplicate_constants(sni_rewrite *r);

/* True if two constants have the same type, shape and contents. */
bool sni_const_same(sni_const *a, sni_const *b);

#endif
