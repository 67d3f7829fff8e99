/* test_symbol.c - dimensions: equal expressions are one number, texts are readable, and every
 * simplification agrees with arithmetic on numbers. */
#include "unit.h"

#include "graph/symbol.h"

#include <stdio.h>
#include <stdlib.h>

static sni_symbols *table;
static sni_dim n, h, s;

static int setup(void **state) {
    (void)state;
    table = sni_symbols_new();
    n = sni_dim_named(table, SNI_STR("N"));
    h = sni_dim_named(table, SNI_STR("H"));
    s = sni_dim_named(table, SNI_STR("S"));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    sni_symbols_free(table);
    return 0;
}

static sni_dim add(sni_dim a, sni_dim b) {
    return sni_dim_add(table, a, b);
}
static sni_dim sub(sni_dim a, sni_dim b) {
    return sni_dim_sub(table, a, b);
}
static sni_dim mul(sni_dim a, sni_dim b) {
    return sni_dim_mul(table, a, b);
}
static sni_dim quot(sni_dim a, sni_dim b) {
    return sni_dim_floordiv(table, a, b);
}
static sni_dim ceil_(sni_dim a, sni_dim b) {
    return sni_dim_ceildiv(table, a, b);
}

#define TEXT(d, expected) assert_string_equal(sni_dim_text(table, d), expected)

static void numbers_stay_numbers(void **state) {
    (void)state;
    assert_int_equal(add(2, 3), 5);
    assert_int_equal(mul(7, 6), 42);
    assert_int_equal(quot(7, 2), 3);
    assert_int_equal(ceil_(7, 2), 4);
    assert_int_equal(sni_dim_max(table, 3, 9), 9);
    assert_int_equal(sni_dim_min(table, 3, 9), 3);
    assert_int_equal(sub(2, 3), -1);
    assert_int_equal(quot(7, sub(0, 2)), -4);
    assert_int_equal(ceil_(sub(0, 7), 2), -3);
    assert_true(sni_dim_is_symbol(mul(INT64_MAX, 2)));
    assert_true(mul(INT64_MAX, 2) != mul(INT64_MAX, 2));
    assert_true(sni_dim_is_symbol(quot(1, 0)));
    assert_true(sni_dim_is_symbol(quot(n, 0)));
    TEXT(-1, "-1");
    TEXT(17, "17");
}

static void interned(void **state) {
    (void)state;
    assert_int_equal(sni_dim_named(table, SNI_STR("N")), n);
    assert_int_not_equal(sni_dim_fresh(table), sni_dim_fresh(table));
    assert_int_equal(add(n, h), add(h, n));
    assert_int_equal(mul(add(n, 1), add(n, 2)), add(add(mul(n, n), mul(3, n)), 2));
    assert_int_equal(sub(add(n, h), h), n);
    assert_int_equal(sub(n, n), 0);
    assert_int_equal(mul(n, 0), 0);
    assert_int_equal(mul(n, 1), n);
}

static void quotients(void **state) {
    (void)state;
    assert_int_equal(quot(mul(2, n), 2), n);
    assert_int_equal(quot(add(mul(4, n), 2), 4), n);
    assert_int_equal(quot(mul(mul(n, s), 64), mul(s, 64)), n);
    assert_int_equal(quot(mul(add(n, 1), add(s, 2)), add(s, 2)), add(n, 1));
    assert_int_equal(quot(quot(n, 2), 3), quot(n, 6));
    assert_int_equal(quot(mul(6, n), 4), quot(mul(3, n), 2));
    /* A convolution with padding 1, kernel 3, stride 2 halves upwards, as SAME padding does. */
    assert_int_equal(add(quot(sub(add(h, 2), 3), 2), 1), ceil_(h, 2));
    assert_int_equal(ceil_(mul(3, n), n), 3);
    assert_int_equal(quot(n, n), 1);
    assert_int_equal(quot(n, 1), n);
}

static void texts(void **state) {
    (void)state;
    TEXT(add(mul(2, s), 1), "2*S + 1");
    TEXT(sub(h, 3), "H - 3");
    TEXT(sub(5, h), "5 - H");
    TEXT(mul(n, mul(n, s)), "N*N*S");
    TEXT(quot(h, 2), "floor(H/2)");
    TEXT(ceil_(h, 2), "ceil(H/2)");
    TEXT(quot(add(h, 1), 4), "floor((H + 1)/4)");
    TEXT(quot(mul(2, h), s), "floor((2*H)/S)");
    TEXT(sni_dim_max(table, n, h), "max(N, H)");
    TEXT(sni_dim_min(table, add(n, h), 7), "min(7, N + H)");
    assert_int_equal(sni_dim_text(table, sni_dim_fresh(table))[0], '?');
}

static void extremes(void **state) {
    (void)state;
    assert_int_equal(sni_dim_max(table, n, n), n);
    assert_int_equal(sni_dim_max(table, n, add(n, 2)), add(n, 2));
    assert_int_equal(sni_dim_min(table, n, sub(n, 2)), sub(n, 2));
    assert_int_equal(sni_dim_max(table, n, 0), n);
    assert_int_equal(sni_dim_min(table, n, INT64_MAX), n);
    assert_int_equal(sni_dim_max(table, h, n), sni_dim_max(table, n, h));
    assert_int_not_equal(sni_dim_max(table, sub(n, 5), 0), sub(n, 5));
}

static void broadcasting(void **state) {
    (void)state;
    bool ok;
    assert_int_equal(sni_dim_broadcast(table, 1, n, &ok), n);
    assert_int_equal(sni_dim_broadcast(table, n, 1, &ok), n);
    assert_int_equal(sni_dim_broadcast(table, n, n, &ok), n);
    assert_int_equal(sni_dim_broadcast(table, n, 4, &ok), 4);
    assert_int_equal(sni_dim_broadcast(table, 0, 1, &ok), 0);
    assert_int_equal(sni_dim_broadcast(table, n, sni_dim_min(table, n, 512), &ok), n);
    assert_int_equal(sni_dim_broadcast(table, sni_dim_min(table, n, 2), n, &ok), n);
    sni_dim one = sni_dim_min(table, n, 1); /* it may be 1 where n is not */
    assert_true(sni_dim_broadcast(table, one, n, &ok) != one);
    assert_true(ok);
    sni_dim both = sni_dim_broadcast(table, n, h, &ok);
    assert_true(ok && sni_dim_is_symbol(both) && both != n && both != h);
    sni_dim_broadcast(table, 3, 4, &ok);
    assert_false(ok);
}

static void clones_agree(void **state) {
    (void)state;
    sni_dim d = quot(add(mul(n, s), 3), 4), top = sni_dim_max(table, d, h);
    sni_symbols *copy = sni_symbols_clone(table), *whole = table;
    assert_non_null(copy);
    assert_string_equal(sni_dim_text(copy, top), sni_dim_text(table, top));
    table = copy;
    assert_int_equal(sni_dim_named(copy, SNI_STR("N")), n);
    assert_int_equal(quot(add(mul(n, s), 3), 4), d);
    assert_int_equal(sni_dim_max(table, d, h), top);
    sni_symbols_free(whole);
    TEXT(add(mul(n, s), 1), "N*S + 1");
}

static void failures_pass_through(void **state) {
    (void)state;
    bool ok;
    assert_true(add(SNI_DIM_FAIL, 1) == SNI_DIM_FAIL);
    assert_true(quot(n, SNI_DIM_FAIL) == SNI_DIM_FAIL);
    assert_true(sni_dim_max(table, SNI_DIM_FAIL, n) == SNI_DIM_FAIL);
    assert_true(sni_dim_broadcast(table, SNI_DIM_FAIL, n, &ok) == SNI_DIM_FAIL);
}

/* ---- Random expressions against their values ---- */

enum { POOL = 40 };

/* Reads a text of this table with N, H and S replaced by numbers. */
typedef struct reader {
    const char *p;
    int64_t n, h, s;
    bool unknown;
} reader;

static int64_t read_sum(reader *r);

static int64_t floor_of(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

static int64_t read_atom(reader *r) {
    if (*r->p == '(') {
        r->p++;
        int64_t v = read_sum(r);
        r->p++;
        return v;
    }
    if (*r->p >= '0' && *r->p <= '9') return strtoll(r->p, (char **)&r->p, 10);
    char kind = *r->p;
    if (kind == '?') {
        r->unknown = true;
        r->p++;
        return strtoll(r->p, (char **)&r->p, 10);
    }
    if (kind == 'N' || kind == 'H' || kind == 'S') {
        r->p++;
        return kind == 'N' ? r->n : kind == 'H' ? r->h : r->s;
    }
    bool largest = strncmp(r->p, "max", 3) == 0, up = kind == 'c';
    bool extreme = kind == 'm';
    r->p = strchr(r->p, '(') + 1;
    int64_t a = extreme ? read_sum(r) : read_atom(r);
    while (*r->p == ',' || *r->p == '/' || *r->p == ' ') r->p++;
    int64_t b = extreme ? read_sum(r) : read_atom(r);
    r->p++;
    if (extreme) return largest == (a > b) ? a : b;
    return b == 0 ? 0 : up ? -floor_of(-a, b) : floor_of(a, b);
}

static int64_t read_sum(reader *r) {
    int64_t sum = 0, sign = 1;
    if (*r->p == '-') {
        sign = -1;
        r->p++;
    }
    for (;;) {
        int64_t product = read_atom(r);
        while (*r->p == '*') {
            r->p++;
            product *= read_atom(r);
        }
        sum += sign * product;
        if (r->p[0] != ' ') return sum;
        sign = r->p[1] == '-' ? -1 : 1;
        r->p += 3;
    }
}

static void agrees_with_arithmetic(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 400; round++) {
        int64_t value[3] = {1 + unit_random(&seed) % 9, 1 + unit_random(&seed) % 50,
                            1 + unit_random(&seed) % 7};
        sni_dim dims[POOL] = {n, h, s};
        int64_t values[POOL] = {value[0], value[1], value[2]};
        for (int i = 3; i < POOL; i++) {
            int a = (int)(unit_random(&seed) % (unsigned)i), b = (int)(unit_random(&seed) % 4);
            sni_dim other = b == 3 ? (int64_t)(unit_random(&seed) % 6 + 1) : dims[b];
            int64_t v = b == 3 ? other : values[b], x = values[a];
            unsigned op = unit_random(&seed) % 7;
            dims[i] = op == 0   ? add(dims[a], other)
                      : op == 1 ? sub(dims[a], other)
                      : op == 2 ? mul(dims[a], other)
                      : op == 3 ? quot(dims[a], other)
                      : op == 4 ? ceil_(dims[a], other)
                      : op == 5 ? sni_dim_max(table, dims[a], other)
                                : sni_dim_min(table, dims[a], other);
            values[i] = op == 0   ? x + v
                        : op == 1 ? x - v
                        : op == 2 ? x * v
                        : op == 3 ? floor_of(x, v)
                        : op == 4 ? -floor_of(-x, v)
                        : op == 5 ? (x > v ? x : v)
                                  : (x < v ? x : v);
            if (values[i] > 1000000 || values[i] < -1000000) {
                dims[i] = n;
                values[i] = value[0];
            }
            reader r = {sni_dim_text(table, dims[i]), value[0], value[1], value[2], false};
            int64_t got = read_sum(&r);
            if (r.unknown) { /* gave up: nothing to compare */
                dims[i] = h;
                values[i] = value[1];
            } else {
                assert_int_equal(*r.p, 0);
                assert_int_equal(got, values[i]);
            }
        }
    }
}

static void long_expressions_give_up(void **state) {
    (void)state;
    sni_dim d = n;
    for (int i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        sni_dim x = sni_dim_named(table, sni_str_of(name));
        d = i % 3 == 0 ? mul(d, add(x, 1)) : i % 3 == 1 ? quot(add(d, x), h) : add(d, x);
        assert_true(sni_dim_is_symbol(d) && d != SNI_DIM_FAIL);
    }
    assert_true(strlen(sni_dim_text(table, d)) <= 400);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_stay_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(interned, setup, teardown),
        cmocka_unit_test_setup_teardown(quotients, setup, teardown),
        cmocka_unit_test_setup_teardown(texts, setup, teardown),
        cmocka_unit_test_setup_teardown(extremes, setup, teardown),
        cmocka_unit_test_setup_teardown(broadcasting, setup, teardown),
        cmocka_unit_test_setup_teardown(clones_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_pass_through, setup, teardown),
        cmocka_unit_test_setup_teardown(agrees_with_arithmetic, setup, teardown),
        cmocka_unit_test_setup_teardown(long_expressions_give_up, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
