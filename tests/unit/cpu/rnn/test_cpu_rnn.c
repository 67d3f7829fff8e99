/* test_cpu_rnn.c - recurrent cells against the reference kernels: every direction and layout, sizes
 * that fill no vector, sequences of different lengths, odd numbers, nothing. */
#include "versus.h"

static versus v;

typedef struct shape {
    int64_t seq, batch, input, hidden;
} shape;

static const shape shapes[] = {{1, 1, 1, 1},  {5, 1, 7, 16},  {3, 2, 20, 33}, {4, 3, 9, 8},
                               {2, 7, 33, 5}, {6, 4, 16, 40}, {1, 5, 3, 65},  {0, 2, 3, 4},
                               {3, 0, 3, 4},  {2, 13, 4, 31}, {130, 1, 5, 6}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

enum { BIAS = 1, STATE = 2, LENGTHS = 4, BATCH_FIRST = 8, LATE = 16, RELU = 32, ODD = 64 };

static int64_t gates_of(const char *cell) {
    return strcmp(cell, "LSTM") == 0 ? 4 : strcmp(cell, "GRU") == 0 ? 3 : 1;
}

static void state_input(const shape *s, int64_t dirs, int flags) {
    int64_t plain[] = {dirs, s->batch, s->hidden}, transposed[] = {s->batch, dirs, s->hidden};
    if (flags & STATE)
        versus_tensor(&v, SN_FLOAT32, 3, flags & BATCH_FIRST ? transposed : plain, NULL);
    else
        versus_without(&v);
}

static void lengths_input(const shape *s, int flags) {
    int32_t lengths[64];
    if (!(flags & LENGTHS)) {
        versus_without(&v);
        return;
    }
    for (int64_t b = 0; b < s->batch; b++)
        lengths[b] = (int32_t)(unit_random(&v.seed) % (uint32_t)(s->seq + 1));
    versus_tensor(&v, SN_INT32, 1, &s->batch, lengths);
}

static void check(const char *cell, const shape *s, const char *direction, int flags) {
    int64_t g = gates_of(cell), dirs = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    int64_t plain[] = {s->seq, s->batch, s->input}, transposed[] = {s->batch, s->seq, s->input};
    versus_start(&v, "", cell);
    if (flags & ODD) v.special = 40;
    versus_tensor(&v, SN_FLOAT32, 3, flags & BATCH_FIRST ? transposed : plain, NULL);
    v.special = 0;
    v.scale = 0.4f;
    versus_weight(&v, SN_FLOAT32, 3, (int64_t[]){dirs, g * s->hidden, s->input}, NULL);
    versus_weight(&v, SN_FLOAT32, 3, (int64_t[]){dirs, g * s->hidden, s->hidden}, NULL);
    if (flags & BIAS)
        versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){dirs, 2 * g * s->hidden}, NULL);
    else
        versus_without(&v);
    lengths_input(s, flags);
    state_input(s, dirs, flags);
    if (g == 4) state_input(s, dirs, flags);
    eval_attr(&v.e, sni_attr_of_int("hidden_size", s->hidden));
    eval_attr(&v.e, sni_attr_of_int("layout", (flags & BATCH_FIRST) != 0));
    eval_attr(&v.e, sni_attr_of_string("direction", direction));
    if (g == 3) eval_attr(&v.e, sni_attr_of_int("linear_before_reset", (flags & LATE) != 0));
    if (flags & RELU) {
        static const sni_str names[] = {{"Relu", 4}, {"Relu", 4}};
        eval_attr(&v.e, (sni_attr){.name = sni_str_of("activations"),
                                   .kind = SNI_ATTR_STRINGS,
                                   .u.strings = names,
                                   .count = (size_t)dirs});
    }
    versus_run(&v, g == 4 ? 3 : 2, flags & RELU ? 1e-4 : 2e-5);
}

static const char *const directions[] = {"forward", "reverse", "bidirectional"};

static void check_all(const char *cell, int more) {
    for (int i = 0; i < SHAPES; i++)
        for (int d = 0; d < 3; d++)
            for (int flags = 0; flags < 16; flags++)
                check(cell, &shapes[i], directions[d], flags | more);
}

static void lstm_matches(void **state) {
    (void)state;
    check_all("LSTM", 0);
}

static void gru_matches(void **state) {
    (void)state;
    check_all("GRU", 0);
    check_all("GRU", LATE);
}

static void rnn_matches(void **state) {
    (void)state;
    check_all("RNN", 0);
    for (int d = 0; d < 3; d++) check("RNN", &shapes[2], directions[d], BIAS | RELU);
}

static void large_steps_are_shared(void **state) {
    (void)state;
    const shape large = {3, 2, 40, 200};
    check("LSTM", &large, "forward", BIAS | STATE);
    check("GRU", &large, "reverse", BIAS);
    check("GRU", &large, "forward", BIAS | LATE);
}

static void odd_numbers_stay(void **state) {
    (void)state;
    const shape s = {4, 3, 5, 20};
    check("LSTM", &s, "bidirectional", ODD | BIAS);
    check("GRU", &s, "forward", ODD | LATE);
    check("RNN", &s, "forward", ODD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_matches),     cmocka_unit_test(gru_matches),
        cmocka_unit_test(rnn_matches),      cmocka_unit_test(large_steps_are_shared),
        cmocka_unit_test(odd_numbers_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
