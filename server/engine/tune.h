/* tune.h - what runs of a model have cost, by the shape of their rows and the size of the batch:
 * how many rows are worth gathering, and which requests are over sooner than another thread wakes
 * up.
 *
 * More rows in a run are cheaper as long as weights are read once for all of them, and dearer once
 * what lies between two operators no longer fits the cache. Where that is depends on model, shape
 * and machine, so it is measured while serving. The scheduler's lock guards everything here. */
#ifndef SRV_ENGINE_TUNE_H
#define SRV_ENGINE_TUNE_H

#include "server/util.h"

#define SRV_TUNE_SIZES 8   /* batches of 1, 2 to 3, 4 to 7, ... 128 and more rows */
#define SRV_TUNE_SHAPES 16 /* kept at once */

/* Of one shape of row. */
typedef struct srv_costs {
    uint64_t signature;            /* of the requests */
    double row_ns[SRV_TUNE_SIZES]; /* of one row on one thread; running averages */
    uint32_t runs[SRV_TUNE_SIZES];
    uint32_t choices;
    double single_ns; /* the same in runs for one request alone */
    uint32_t singles;
} srv_costs;

typedef struct srv_tuning {
    srv_costs shapes[SRV_TUNE_SHAPES];
    uint32_t pause; /* requests that are not called short after one was much longer than expected */
    uint32_t surprises;
} srv_tuning;

/* A run has ended. `busy`: as many ran as can at once, so that its time says what a row costs when
 * it matters. */
void srv_tune_add(srv_tuning *tuning, uint64_t signature, size_t requests, int64_t rows,
                  int threads, bool busy, uint64_t ns);

/* How many of `there` waiting rows of that shape to take: a power of two, as each number of rows is
 * a shape that the library prepares a plan for. */
int64_t srv_tune_rows(srv_tuning *tuning, uint64_t signature, int64_t there);

/* Whether a run of one such request can be expected to take `ns` at most on one thread. */
bool srv_tune_is_short(srv_tuning *tuning, uint64_t signature, int64_t rows, uint64_t ns);
/* It was not so. */
void srv_tune_was_long(srv_tuning *tuning);

#endif
