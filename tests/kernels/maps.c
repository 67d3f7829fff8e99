/* maps.c - kernels that groups of elementwise operators are made of. */
#include "check.h"
#include "cpu/elementwise/map.h"

#include <math.h>

/* Comparisons of numbers of which many are the same; NaN among them. */
static void compare(check *c) {
    static const sni_binary fns[] = {SNI_BINARY_EQUAL, SNI_BINARY_NOT_EQUAL, SNI_BINARY_LESS,
                                     SNI_BINARY_LESS_OR_EQUAL};
    int64_t n = size_of(c, 1, 150, 1024), sa = c->bench || below(c, 3), sb = below(c, 3) != 0;
    float *a = random_floats(c, n), *b = random_floats(c, n), *y = unset_floats(c, n);
    double *want = zero_doubles(c, n);
    int which = (int)below(c, 4);
    for (int64_t i = 0; i < n; i++) {
        a[i] = below(c, 20) ? roundf(a[i] * 2) : NAN;
        b[i] = roundf(b[i] * 2);
    }
    for (int64_t i = 0; i < n; i++) {
        float x = a[i * sa], z = b[i * sb];
        want[i] = which == 0 ? x == z : which == 1 ? x != z : which == 2 ? x < z : x <= z;
    }
    CALL(c, n, 12 * n) c->k->maps->binary[fns[which]](a, b, y, n, sa, sb, NULL);
    expect(c, "y", y, want, n, 0);
}

static void choose(check *c) {
    int64_t n = size_of(c, 1, 150, 1024), sa = below(c, 3) != 0, sb = c->bench || below(c, 3);
    float *by = random_floats(c, n), *a = random_floats(c, n), *b = random_floats(c, n);
    float *y = unset_floats(c, n);
    double *want = zero_doubles(c, n);
    for (int64_t i = 0; i < n; i++) by[i] = (float)below(c, 2);
    for (int64_t i = 0; i < n; i++) want[i] = (double)(by[i] != 0 ? a[i * sa] : b[i * sb]);
    CALL(c, n, 16 * n) c->k->maps->choose_row(by, a, b, y, n, sa, sb);
    expect(c, "y", y, want, n, 0);
}

/* To floats from what `bytes` of memory mean, and of bools back. */
static void convert(check *c) {
    int64_t n = size_of(c, 1, 150, 1024);
    float *memory = unset_floats(c, 2 * n), *y = unset_floats(c, n), *back = unset_floats(c, n);
    double *want = zero_doubles(c, n);
    int which = (int)below(c, 3);
    for (int64_t i = 0; i < n; i++) {
        int64_t v = which == 0 ? below(c, 2) : below(c, 1 << 24) - (1 << 23);
        if (which == 0) ((uint8_t *)memory)[i] = (uint8_t)(v * 255);
        if (which == 1) ((int32_t *)memory)[i] = (int32_t)v;
        if (which == 2) ((int64_t *)(void *)memory)[i] = v;
        want[i] = (double)v;
    }
    CALL(c, n, 8 * n)
    (which == 0   ? c->k->maps->from_bools
     : which == 1 ? c->k->maps->from_int32
                  : c->k->maps->from_int64)(memory, y, n);
    expect(c, "floats", y, want, n, 0);
    c->k->maps->to_bools(y, (uint8_t *)back, n);
    for (int64_t i = 0; i < n; i++)
        if (((uint8_t *)back)[i] != (want[i] != 0)) fail(c, "a bool");
}

const kernel_test map_tests[] = {
    {"binary compare", compare}, {"choose_row", choose}, {"from_*, to_bools", convert}, {0}};
