/* rnn.c - steps of recurrent cells. */
#include "check.h"

#include "cpu/rnn/rnn.h"

#include <math.h>

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

typedef struct cell_case {
    sni_rnn_step s;
    int64_t gates, blocks, lanes;
    double *want, *want_cell;
} cell_case;

/* Arrays of a random step; states are padded to whole blocks. */
static cell_case new_case(check *c, int64_t gates) {
    cell_case a = {.gates = gates, .lanes = c->k->rnn->lanes};
    int64_t hidden = size_of(c, 1, 70, 256), rows = size_of(c, 1, 9, 1);
    a.blocks = (hidden + a.lanes - 1) / a.lanes;
    int64_t units = a.blocks * a.lanes;
    a.s = (sni_rnn_step){.rows = rows,
                         .hidden = hidden,
                         .weights = random_floats(c, units * hidden * gates),
                         .state = random_floats(c, rows * units),
                         .gates_x = random_floats(c, rows * units * gates),
                         .gates_row = units * gates,
                         .old = random_floats(c, rows * units),
                         .late = random_floats(c, units),
                         .cell = random_floats(c, rows * units),
                         .update = random_floats(c, rows * units),
                         .to = unset_floats(c, rows * units),
                         .row = units};
    a.want = zero_doubles(c, rows * units);
    a.want_cell = zero_doubles(c, rows * units);
    return a;
}

/* The sum of gate g of unit u for a row, without the input's part. */
static double sum_of(const cell_case *a, int64_t row, int64_t u, int64_t g) {
    double sum = 0;
    const float *w = a->s.weights + u / a->lanes * a->s.hidden * a->gates * a->lanes;
    for (int64_t k = 0; k < a->s.hidden; k++)
        sum += (double)a->s.state[row * a->s.row + k] *
               (double)w[(k * a->gates + g) * a->lanes + u % a->lanes];
    return sum;
}

static double gate_x(const cell_case *a, int64_t row, int64_t u, int64_t g) {
    return (double)a->s
        .gates_x[row * a->s.gates_row + (u / a->lanes * a->gates + g) * a->lanes + u % a->lanes];
}

static double whole(const cell_case *a, int64_t row, int64_t u, int64_t g) {
    return sum_of(a, row, u, g) + gate_x(a, row, u, g);
}

static double work(const cell_case *a, int64_t gates) {
    return 2.0 * (double)(a->s.rows * a->s.hidden) * (double)(a->s.row * gates);
}

/* Calls `fn` in two parts, as two threads would. */
static void call(check *c, const cell_case *a, int64_t gates, sni_rnn_fn fn) {
    int64_t middle = c->bench ? 0 : below(c, a->blocks + 1);
    CALL(c, work(a, gates), 0) {
        fn(&a->s, 0, middle);
        fn(&a->s, middle, a->blocks);
    }
}

static const double tolerance = 1e-4;

static void lstm(check *c) {
    cell_case a = new_case(c, 4);
    for (int64_t i = 0; i < a.s.rows * a.s.row && !c->bench; i++) {
        int64_t row = i / a.s.row, u = i % a.s.row;
        double in = sigmoid(whole(&a, row, u, 0)), out = sigmoid(whole(&a, row, u, 1));
        double keep = sigmoid(whole(&a, row, u, 2)), fresh = tanh(whole(&a, row, u, 3));
        a.want_cell[i] = keep * (double)a.s.cell[i] + in * fresh;
        a.want[i] = out * tanh(a.want_cell[i]);
    }
    call(c, &a, 4, c->k->rnn->lstm);
    expect(c, "the cell", a.s.cell, a.want_cell, a.s.rows * a.s.row, tolerance);
    expect(c, "the state", a.s.to, a.want, a.s.rows * a.s.row, tolerance);
}

static void gru(check *c) {
    cell_case a = new_case(c, 3);
    for (int64_t i = 0; i < a.s.rows * a.s.row && !c->bench; i++) {
        int64_t row = i / a.s.row, u = i % a.s.row;
        double update = sigmoid(whole(&a, row, u, 0)), open = sigmoid(whole(&a, row, u, 1));
        double state = sum_of(&a, row, u, 2) + (double)a.s.late[u];
        double fresh = tanh(gate_x(&a, row, u, 2) + open * state);
        a.want[i] = (1 - update) * fresh + update * (double)a.s.old[i];
    }
    call(c, &a, 3, c->k->rnn->gru);
    expect(c, "the state", a.s.to, a.want, a.s.rows * a.s.row, tolerance);
}

static void gru_reset(check *c) {
    cell_case a = new_case(c, 3);
    for (int64_t i = 0; i < a.s.rows * a.s.row && !c->bench; i++) {
        int64_t row = i / a.s.row, u = i % a.s.row;
        a.want_cell[i] = sigmoid(whole(&a, row, u, 0));
        a.want[i] = sigmoid(whole(&a, row, u, 1)) * (double)a.s.old[i];
    }
    call(c, &a, 2, c->k->rnn->gru_reset);
    expect(c, "the update gate", a.s.update, a.want_cell, a.s.rows * a.s.row, tolerance);
    expect(c, "the reset state", a.s.to, a.want, a.s.rows * a.s.row, tolerance);
}

static void gru_mix(check *c) {
    cell_case a = new_case(c, 3);
    for (int64_t i = 0; i < a.s.rows * a.s.row && !c->bench; i++) {
        double update = (double)a.s.update[i], fresh = tanh(whole(&a, i / a.s.row, i % a.s.row, 2));
        a.want[i] = (1 - update) * fresh + update * (double)a.s.old[i];
    }
    call(c, &a, 1, c->k->rnn->gru_mix);
    expect(c, "the state", a.s.to, a.want, a.s.rows * a.s.row, tolerance);
}

static void rnn(check *c) {
    cell_case a = new_case(c, 1);
    a.s.relu = below(c, 2);
    for (int64_t i = 0; i < a.s.rows * a.s.row && !c->bench; i++) {
        double x = whole(&a, i / a.s.row, i % a.s.row, 0);
        a.want[i] = a.s.relu ? fmax(x, 0) : tanh(x);
    }
    call(c, &a, 1, c->k->rnn->rnn);
    expect(c, "the state", a.s.to, a.want, a.s.rows * a.s.row, tolerance);
}

const kernel_test rnn_tests[] = {
    {"lstm 256", lstm},       {"gru 256", gru}, {"gru_reset 256", gru_reset},
    {"gru_mix 256", gru_mix}, {"rnn 256", rnn}, {0},
};
