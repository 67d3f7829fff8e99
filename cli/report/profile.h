/* profile.h - what was learnt about the steps of some runs, and ways to show it. */
#ifndef CLI_REPORT_PROFILE_H
#define CLI_REPORT_PROFILE_H

#include "cli/cli.h"

/* A step of the model; inside a loop's body all its turns together. Times are of one run: the
 * smallest of all runs, without the steps that ran inside it. */
typedef struct cli_step {
    char *node, *op, *impl, *shapes;
    int depth;
    uint64_t calls; /* in one run */
    uint64_t macs, input_bytes, output_bytes;
    double us;         /* of itself */
    double current_us; /* of the run under way */
    bool called;       /* in the run under way */
} cli_step;

/* One call of a step in the quickest run, for the trace. */
typedef struct cli_call {
    size_t step;
    uint64_t start_ns, end_ns;
    int depth;
} cli_call;

typedef struct cli_profile {
    const char *model;
    sn_machine machine;
    size_t runs;
    double plain_us; /* a run nobody watches, at best */
    double best_us;  /* a watched run, at best */
    cli_step *steps; /* in the order in which they end */
    size_t step_count, step_capacity;
    cli_call *calls; /* of the run under way */
    size_t call_count, call_capacity;
    cli_call *best; /* of the quickest run */
    size_t best_count;
    size_t cursor;      /* where the next step of the run is expected */
    uint64_t *inner_ns; /* by depth: time of steps inside the one under way */
    int inner_depth;
} cli_profile;

void cli_profile_free(cli_profile *profile);
/* An sn_step_fn; `ctx` is the profile. */
void cli_profile_step(void *ctx, const sn_step_event *event);
/* Before and after each watched run, which took `us`. */
void cli_profile_begin(cli_profile *profile);
void cli_profile_end(cli_profile *profile, double us);

double cli_profile_total(const cli_profile *profile); /* microseconds of all steps */

/* Steps put together by operator and implementation, the longest first; the caller frees. */
typedef struct cli_group {
    const char *op, *impl;
    size_t steps;
    uint64_t calls, macs, bytes;
    double us;
} cli_group;
size_t cli_profile_groups(const cli_profile *profile, cli_group **out);

/* Indices of the steps, the longest first; the caller frees. */
size_t *cli_profile_order(const cli_profile *profile);

/* The least time the machine could take: for its arithmetic, or for its bytes if that is more. */
double cli_roof_us(const sn_machine *machine, uint64_t macs, uint64_t bytes);

/* The whole as text (`top` steps), JSON, a trace for chrome://tracing or Perfetto, and a page. */
void cli_profile_text(const cli_profile *profile, size_t top, cli_text *out);
void cli_profile_json(const cli_profile *profile, cli_text *out);
void cli_profile_trace(const cli_profile *profile, cli_text *out);
void cli_profile_html(const cli_profile *profile, cli_text *out);

#endif
