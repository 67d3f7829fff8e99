/* Pow: z = x ^ y, of x's type.
 *
 * Integers to an integer power wrap, and a negative power truncates the fraction: 1 and -1 stay,
 * all others give 0. Integers to a float power are computed as doubles and saturate. */
#include "ops/core/elementwise.h"

#include <math.h>

#define BODY "ops/math/pow.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* Squares are exact to half an ulp, common, and much faster than pow. */
static void power_fast_f32(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                           const void *params) {
    if (sa && !sb && *(const float *)b == 2) {
        const float *x = a;
        float *z = y;
        for (int64_t i = 0; i < n; i++) z[i] = x[i] * x[i];
        return;
    }
    power_f32(a, b, y, n, sa, sb, params);
}

static int64_t integer_power(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        if (base == 1) return 1;
        if (base == -1) return exponent % 2 ? -1 : 1;
        return 0;
    }
    uint64_t result = 1, square = (uint64_t)base;
    for (uint64_t e = (uint64_t)exponent; e; e >>= 1) {
        if (e & 1) result *= square;
        square *= square;
    }
    return (int64_t)result;
}

#define T int64_t
#define SUFFIX i64
#define OP power
#define EXPR integer_power(u, v)
#include "ops/core/binary_loop.inc.c"
#undef T
#undef SUFFIX

/* Unsigned exponents of 64 bits. The powers of odd bases repeat after 2^62 steps, and those of even
 * bases are 0 long before: bit 62 stands for all higher bits. */
static void power_u64(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                      const void *params) {
    (void)params;
    const int64_t *x = a;
    const uint64_t *e = b;
    int64_t *z = y;
    for (int64_t i = 0; i < n; i++) {
        uint64_t exponent = e[i * sb];
        if (exponent > INT64_MAX) exponent = (exponent & INT64_MAX) | (uint64_t)1 << 62;
        z[i] = integer_power(x[i * sa], (int64_t)exponent);
    }
}

/* Small powers by one number are products, and much faster so. */
static void power_fast_i64(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                           const void *params) {
    const uint64_t *x = a;
    uint64_t *z = y;
    int64_t exponent = *(const int64_t *)b;
    if (!sa || sb || (exponent != 2 && exponent != 3)) {
        power_i64(a, b, y, n, sa, sb, params);
    } else if (exponent == 2) {
        for (int64_t i = 0; i < n; i++) z[i] = x[i] * x[i];
    } else {
        for (int64_t i = 0; i < n; i++) z[i] = x[i] * x[i] * x[i];
    }
}

static sn_status pow_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *y = sni_in(k, 1);
    bool int_x = sni_dtype_get(x->dtype)->cls == SNI_CLASS_I;
    sn_dtype x_as = sni_compute_type(x->dtype), y_as = sni_compute_type(y->dtype);
    sni_binary_fn fn;
    if (int_x && y->dtype == SN_UINT64) {
        x_as = SN_INT64;
        fn = power_u64;
    } else if (int_x && y_as != SN_FLOAT32 && y_as != SN_FLOAT64) {
        x_as = y_as = SN_INT64;
        fn = power_fast_i64;
    } else if (x_as == SN_FLOAT32 && y_as == SN_FLOAT32) {
        fn = power_fast_f32;
    } else {
        x_as = y_as = SN_FLOAT64;
        fn = power_f64;
    }
    sni_elementwise e = {.n_in = 2,
                         .in = {x, y},
                         .in_as = {x_as, y_as},
                         .out = sni_out(k, 0),
                         .out_as = x_as,
                         .binary = fn};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

const sni_op sni_op_Pow = {
    .name = "Pow",
    .versions = SNI_VERSIONS(1, 7, 12, 13, 15),
    .inputs = SNI_FORMALS({"X", "T"}, {"Y", "T1"}),
    .outputs = SNI_FORMALS({"Z", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS | SNI_T_INDEX}, {"T1", SNI_T_NUMBERS}),
    .inplace = 3,
    .upgrade = sni_upgrade_legacy_broadcast,
    .infer = sni_infer_broadcast,
    .ref = pow_ref,
};
