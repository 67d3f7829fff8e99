/* rounding.inc.c - loops that the compiler turns into the tier's rounding instructions. */

static void floor_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    for (int64_t i = 0; i < n; i++) ((float *)y)[i] = floorf(((const float *)x)[i]);
}

static void ceil_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    for (int64_t i = 0; i < n; i++) ((float *)y)[i] = ceilf(((const float *)x)[i]);
}

static void round_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    for (int64_t i = 0; i < n; i++) ((float *)y)[i] = nearbyintf(((const float *)x)[i]);
}
