/* tune.c - what runs of a model have cost, and what follows for the next ones. */
#include "server/engine/tune.h"

#define ENOUGH 4                /* runs of a size before its cost is believed */
#define LOOK_AROUND 128         /* one choice in so many tries a size beside the best, */
#define LOOK_FAR 8              /* and one in so many of those any size */
#define WORTH_IT 0.96           /* a larger size must cost less than this part of a smaller one's */
#define LEAST_WEIGHT (1.0 / 16) /* of a new measurement */
#define FIRST_PAUSE 256u        /* requests after a surprise; twice as many after the next */
#define MOST_SURPRISES 20

static int size_of(int64_t rows) {
    int size = 0;
    while (rows >= 2 && size < SRV_TUNE_SIZES - 1) {
        rows /= 2;
        size++;
    }
    return size;
}

/* The first value does not count: the run prepared itself for a new shape. A single one far off
 * (the machine was busy with something else) counts as twice the average. */
static void average(double *mean, uint32_t *count, double value) {
    if (*count < UINT32_MAX) ++*count;
    if (*count <= 2) *mean = value;
    if (value > 2 * *mean) value = 2 * *mean;
    double weight = 1.0 / (*count - (*count > 1 ? 1 : 0));
    *mean += (value - *mean) * (weight > LEAST_WEIGHT ? weight : LEAST_WEIGHT);
}

/* The entry for a shape; it takes the place of another one. */
static srv_costs *costs_of(srv_tuning *tuning, uint64_t signature) {
    srv_costs *costs = &tuning->shapes[signature % SRV_TUNE_SHAPES];
    if (costs->signature != signature) *costs = (srv_costs){.signature = signature};
    return costs;
}

void srv_tune_add(srv_tuning *tuning, uint64_t signature, size_t requests, int64_t rows,
                  int threads, bool busy, uint64_t ns) {
    srv_costs *costs = costs_of(tuning, signature);
    double each = (double)ns * threads / (double)(rows > 0 ? rows : 1);
    int size = size_of(rows);
    if (requests == 1) average(&costs->single_ns, &costs->singles, each);
    if (busy) average(&costs->row_ns[size], &costs->runs[size], each);
}

static int cheapest(const srv_costs *costs, int largest) {
    int best = 0;
    for (int size = 1; size <= largest; size++) {
        if (costs->row_ns[size] < costs->row_ns[best] * WORTH_IT) best = size;
    }
    return best;
}

/* The cheapest size up to `largest`: sizes that are not known yet are tried first, others again now
 * and then. */
static int choose(srv_costs *costs, int largest) {
    for (int size = largest; size >= 0; size--) {
        if (costs->runs[size] < ENOUGH) return size;
    }
    int best = cheapest(costs, largest);
    if (++costs->choices % LOOK_AROUND) return best;
    uint32_t look = costs->choices / LOOK_AROUND;
    if (look % LOOK_FAR == 0) return (int)(look / LOOK_FAR % (uint32_t)(largest + 1));
    if (look % 2) return best < largest ? best + 1 : best;
    return best > 0 ? best - 1 : best;
}

int64_t srv_tune_rows(srv_tuning *tuning, uint64_t signature, int64_t there) {
    int largest = size_of(there);
    if (largest == 0) return there;
    return (int64_t)1 << choose(costs_of(tuning, signature), largest);
}

bool srv_tune_is_short(srv_tuning *tuning, uint64_t signature, int64_t rows, uint64_t ns) {
    const srv_costs *costs = &tuning->shapes[signature % SRV_TUNE_SHAPES];
    if (tuning->pause) {
        tuning->pause--;
        return false;
    }
    return costs->signature == signature && costs->singles >= ENOUGH &&
           costs->single_ns * (double)rows <= (double)ns;
}

void srv_tune_was_long(srv_tuning *tuning) {
    tuning->pause = FIRST_PAUSE << tuning->surprises;
    if (tuning->surprises < MOST_SURPRISES) tuning->surprises++;
}
