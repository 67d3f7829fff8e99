/* run.h - one run of a program. */
#ifndef SNI_EXEC_RUN_H
#define SNI_EXEC_RUN_H

#include "base/clock.h"
#include "exec/program.h"

/* What holds for a whole run, subgraphs included. */
typedef struct sni_run {
    sni_budget budget;
    sni_arena text;            /* text of strings that kernels make */
    const atomic_bool *cancel; /* NULL: cannot be cancelled */
    uint64_t deadline_ns;      /* CLOCK_MONOTONIC; 0: none */
    int threads;
    sn_step_fn on_step;
    void *on_step_ctx;
    /* Told of each value of the main graph that a step makes, before anything overwrites it. NULL:
     * nobody is. */
    void (*on_value)(void *ctx, const char *name, const char *op, const sni_datum *value);
    void *on_value_ctx;
    sni_run_extra extra; /* of providers; sni_run_end() frees it */
} sni_run;

/* Frees what a run has left: its text and extra. */
void sni_run_end(sni_run *run);

/* Runs a program; any number of threads may, each with an sni_run and outputs of its own. `in` has
 * the graph's inputs and then its captures; NULL: left to its default. `out` has one entry per
 * graph output: NONE receives a value the caller clears; a tensor with borrowed memory is filled if
 * type and shape fit, and refused if not. `depth`: subgraphs around it, 0 for the main graph. After
 * a failure outputs that were made are the caller's to clear all the same. */
sn_status sni_run_program(sni_run *run, sni_program *program, const sni_datum *const *in,
                          int32_t n_in, sni_datum *out, int depth, sn_error *err);

#endif
