/* test_cpu_select.c - operators that choose elements against the reference kernels. */
#include "versus.h"

static versus v;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&v.seed) % (uint32_t)n);
}

/* ---- NonMaxSuppression ---- */

enum { CENTERED = 1, SCORE_LIMIT = 2, ODD = 4, TIES = 8, FEW = 16, SPREAD = 32, POINTS = 64 };

enum { MOST_BOXES = 2000 };

static void nms_case(int64_t batches, int64_t classes, int64_t boxes, float threshold, int flags) {
    static float corners[4 * MOST_BOXES], scores[MOST_BOXES];
    versus_start(&v, "", "NonMaxSuppression");
    for (int64_t i = 0; i < batches * boxes; i++) {
        float offset = flags & SPREAD ? 400.0f * (float)draw(20) : 0;
        for (int c = 0; c < 4; c++) corners[4 * i + c] = offset + (float)draw(3000) / 10.0f;
        if (flags & POINTS && draw(3) == 0) corners[4 * i + 2] = corners[4 * i];
        if (flags & ODD && draw(20) == 0) corners[4 * i + draw(4)] = draw(2) ? NAN : INFINITY;
    }
    for (int64_t i = 0; i < batches * classes * boxes; i++) {
        scores[i] = flags & TIES ? (float)draw(5) - 2.0f : (float)draw(100000) / 1e5f - 0.3f;
        if (flags & TIES && draw(4) == 0) scores[i] = -0.0f;
        if (flags & ODD && draw(20) == 0) scores[i] = draw(2) ? NAN : -INFINITY;
    }
    int64_t most = flags & FEW ? 5 : boxes;
    float limit = 0.1f;
    versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){batches, boxes, 4}, corners);
    versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){batches, classes, boxes}, scores);
    versus_tensor(&v, SN_INT64, 1, (int64_t[]){1}, &most);
    versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){1}, &threshold);
    if (flags & SCORE_LIMIT) versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){1}, &limit);
    eval_attr(&v.e, sni_attr_of_int("center_point_box", (flags & CENTERED) != 0));
    versus_run(&v, 1, 0);
}

static void suppression_matches(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},   {1, 1, 7},    {2, 3, 40},
                                        {1, 2, 500}, {1, 1, 1900}, {1, 1, 0}};
    static const float thresholds[] = {0.0f, 0.3f, 0.9f};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int t = 0; t < 3; t++)
            for (int flags = 0; flags<128; flags += s> 2 ? 5 : 1)
                nms_case(shapes[s][0], shapes[s][1], shapes[s][2], thresholds[t], flags);
}

/* ---- TopK ---- */

enum { MOST_KEYS = 9000 };

/* Few values or many (1), odd ones (2), the largest (4), values that rise (8). */
static void topk_fill(sn_dtype dtype, int64_t n, int flags, void *data) {
    for (int64_t i = 0; i < n; i++) {
        int64_t whole = flags & 8 ? i : draw(flags & 1 ? 5 : 100000) - 2;
        double value = (double)whole / 1e4 - 2.0;
        if (flags & 1 && draw(3) == 0) value = draw(2) ? 0.0 : -0.0;
        if (flags & 2 && draw(5) == 0) {
            value = (const double[]){NAN, INFINITY, -INFINITY, 1e-40}[draw(4)];
            whole = (const int64_t[]){INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN}[draw(4)];
        }
        if (dtype == SN_FLOAT32) ((float *)data)[i] = (float)value;
        if (dtype == SN_FLOAT64) ((double *)data)[i] = value;
        if (dtype == SN_INT32) ((int32_t *)data)[i] = (int32_t)(uint32_t)(uint64_t)whole;
        if (dtype == SN_INT64) ((int64_t *)data)[i] = whole * (flags & 2 ? 1 : 1000003);
    }
}

static void topk_case(sn_dtype dtype, int rank, const int64_t *dims, int64_t axis, int64_t take,
                      int flags) {
    int64_t n = 1;
    static double data[MOST_KEYS];
    for (int i = 0; i < rank; i++) n *= dims[i];
    versus_start(&v, "", "TopK");
    topk_fill(dtype, n, flags, data);
    versus_tensor(&v, dtype, rank, dims, data);
    versus_tensor(&v, SN_INT64, 1, (int64_t[]){1}, &take);
    eval_attr(&v.e, sni_attr_of_int("axis", axis));
    eval_attr(&v.e, sni_attr_of_int("largest", (flags & 4) != 0));
    versus_run(&v, 2, 0);
}

static void best_match(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_FLOAT32, SN_FLOAT64, SN_INT32, SN_INT64};
    for (int at = 0; at < 4 * 16; at++) {
        sn_dtype dtype = types[at % 4];
        int flags = at / 4;
        static const int64_t takes[] = {1, 3, 5, 10, 24, 100, 900, 3999, 4000};
        topk_case(dtype, 1, (int64_t[]){1}, 0, 1, flags);
        for (size_t t = 0; t < sizeof takes / sizeof *takes; t++)
            topk_case(dtype, 1, (int64_t[]){4000}, 0, takes[t], flags);
        for (int64_t n = 2; n < 70; n += 7) topk_case(dtype, 1, (int64_t[]){n}, 0, n / 2, flags);
        topk_case(dtype, 1, (int64_t[]){333}, -1, 333, flags);
        topk_case(dtype, 1, (int64_t[]){8999}, -1, 21, flags);
        topk_case(dtype, 1, (int64_t[]){33}, 0, 0, flags);
        topk_case(dtype, 3, (int64_t[]){3, 50, 7}, 1, 20, flags);
        topk_case(dtype, 3, (int64_t[]){2, 90, 37}, 1, 4, flags);
        topk_case(dtype, 3, (int64_t[]){3, 50, 7}, -1, 7, flags);
        topk_case(dtype, 2, (int64_t[]){70, 33}, 0, 2, flags);
        topk_case(dtype, 2, (int64_t[]){0, 9}, 1, 4, flags);
    }
}

/* ---- NonZero ---- */

static void nonzero_case(sn_dtype dtype, int rank, const int64_t *dims, int one_in) {
    static unsigned char data[8 * 2000];
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    memset(data, 0, sizeof data);
    versus_start(&v, "", "NonZero");
    for (int64_t i = 0; i < n; i++) {
        bool set = draw(one_in) == 0;
        if (dtype == SN_FLOAT32)
            ((float *)data)[i] = set ? versus_float(&v) : -0.0f;
        else if (dtype == SN_INT64)
            ((int64_t *)data)[i] = set ? (int64_t)1 << draw(63) : 0;
        else if (dtype == SN_INT32)
            ((int32_t *)data)[i] = set ? -7 : 0;
        else
            data[i] = set;
    }
    versus_tensor(&v, dtype, rank, dims, data);
    versus_run(&v, 1, 0);
}

static void positions_match(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_BOOL, SN_UINT8, SN_INT32, SN_INT64, SN_FLOAT32};
    for (int t = 0; t < 5; t++)
        for (int one_in = 1; one_in < 5; one_in += 2) {
            nonzero_case(types[t], 1, (int64_t[]){1}, one_in);
            nonzero_case(types[t], 1, (int64_t[]){1500}, one_in);
            nonzero_case(types[t], 3, (int64_t[]){5, 7, 11}, one_in);
            nonzero_case(types[t], 2, (int64_t[]){13, 1}, one_in);
            nonzero_case(types[t], 2, (int64_t[]){3, 0}, one_in);
            nonzero_case(types[t], 0, NULL, one_in);
        }
}

/* ---- GatherND ---- */

static void rows_case(sn_dtype dtype, int rank, const int64_t *dims, int64_t n) {
    int64_t index[200];
    versus_start(&v, "", "GatherND");
    versus_tensor(&v, dtype, rank, dims, NULL);
    for (int64_t i = 0; i < n; i++) index[i] = draw(2 * dims[0]) - dims[0];
    versus_tensor(&v, SN_INT64, 3, (int64_t[]){n / 2, 2, 1}, index);
    versus_run(&v, 1, 0);
}

static void rows_match(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_FLOAT32, SN_BOOL, SN_INT64};
    for (int t = 0; t < 3; t++)
        for (int64_t n = 0; n < 200; n += 66) {
            rows_case(types[t], 1, (int64_t[]){40}, n);
            rows_case(types[t], 2, (int64_t[]){9, 2}, n);
            rows_case(types[t], 2, (int64_t[]){7, 4}, n);
            rows_case(types[t], 3, (int64_t[]){5, 3, 7}, n);
            rows_case(types[t], 2, (int64_t[]){5, 0}, n);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suppression_matches),
        cmocka_unit_test(best_match),
        cmocka_unit_test(positions_match),
        cmocka_unit_test(rows_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
