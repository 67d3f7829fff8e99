/* opt.h - rewriting a graph before the first run. */
#ifndef SNI_OPT_OPT_H
#define SNI_OPT_OPT_H

#include "ops/op.h"

typedef struct sni_pass sni_pass;

/* What a pass is given. */
typedef struct sni_rewrite {
    sni_graph *graph;
    sni_store *store;  /* owns what passes make; the graph's own */
    size_t fold_limit; /* bytes of one constant that folding may make */
    size_t *fold_left; /* bytes that folding may still read and write, over all passes */
    size_t count;      /* times the pass fired: it adds to this */
    sn_error *err;
} sni_rewrite;

struct sni_pass {
    const char *name;
    int level; /* lowest optimisation level that runs it */
    sn_status (*run)(sni_rewrite *r);
};

/* How often each pass fired, in the order of the pipeline. */
typedef struct sni_opt_report {
    size_t nodes_before, nodes_after;
    size_t *counts; /* one per pass of sni_passes(); owned by the graph's store */
} sni_opt_report;

/* The pipeline; ends with a pass without a name. */
const sni_pass *sni_passes(void);

/* Runs the passes of a level over a graph and its subgraphs until none fires any more. */
sn_status sni_optimize(sni_graph *g, int level, const char *const *disabled, size_t n_disabled,
                       sni_opt_report *report, sn_error *err);

/* ---- Passes ---- */
sn_status sni_pass_dead_code(sni_rewrite *r);
sn_status sni_pass_fold_constants(sni_rewrite *r);
sn_status sni_pass_identity(sni_rewrite *r);
sn_status sni_pass_conv_batchnorm(sni_rewrite *r);
sn_status sni_pass_common_subexpressions(sni_rewrite *r);
sn_status sni_pass_widen_floats(sni_rewrite *r);
sn_status sni_pass_fuse_conv(sni_rewrite *r);

#endif
