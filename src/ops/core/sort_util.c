/* sort_util.c - order of elements, and stable sorting of positions. */
#include "ops/core/sort_util.h"

#include "base/floats.h"

#define BODY "ops/core/sort_util.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

static int compare_narrow(sn_dtype dtype, const void *a, const void *b) {
    float x = sni_narrow_to_f32(dtype, a), y = sni_narrow_to_f32(dtype, b);
    return compare_f32(SN_FLOAT32, &x, &y);
}

static int compare_c64(sn_dtype dtype, const void *a, const void *b) {
    (void)dtype;
    int real = compare_f32(SN_FLOAT32, a, b);
    return real ? real : compare_f32(SN_FLOAT32, (const float *)a + 1, (const float *)b + 1);
}

static int compare_c128(sn_dtype dtype, const void *a, const void *b) {
    (void)dtype;
    int real = compare_f64(SN_FLOAT64, a, b);
    return real ? real : compare_f64(SN_FLOAT64, (const double *)a + 1, (const double *)b + 1);
}

static int compare_text(sn_dtype dtype, const void *a, const void *b) {
    (void)dtype;
    const sni_str *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = n ? memcmp(x->p, y->p, n) : 0;
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

sni_compare_fn sni_compare_of(sn_dtype dtype) {
    static const sni_compare_fn table[SNI_DTYPE_COUNT] = {
        SNI_EACH_NUMBER(compare),   [SN_BOOL] = compare_u8,       [SN_INT4] = compare_i8,
        [SN_INT2] = compare_i8,     [SN_UINT4] = compare_u8,      [SN_UINT2] = compare_u8,
        [SN_STRING] = compare_text, [SN_COMPLEX64] = compare_c64, [SN_COMPLEX128] = compare_c128,
    };
    return table[dtype] ? table[dtype] : compare_narrow;
}

sn_status sni_sort_positions(sni_kernel *k, int64_t *positions, int64_t *spare, int64_t n,
                             int (*compare)(const void *ctx, int64_t p, int64_t q),
                             const void *ctx) {
    int64_t *from = positions, *to = spare;
    for (int64_t run = 1; run < n; run *= 2) {
        SN_TRY(sni_poll(k));
        for (int64_t start = 0; start < n; start += 2 * run) {
            int64_t middle = n - start < run ? n : start + run;
            int64_t end = n - start < 2 * run ? n : start + 2 * run;
            int64_t i = start, j = middle, o = start;
            while (i < middle && j < end)
                to[o++] = compare(ctx, from[j], from[i]) < 0 ? from[j++] : from[i++];
            while (i < middle) to[o++] = from[i++];
            while (j < end) to[o++] = from[j++];
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != positions) memcpy(positions, from, (size_t)n * sizeof *positions);
    return SN_OK;
}
