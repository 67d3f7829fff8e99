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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suppression_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
