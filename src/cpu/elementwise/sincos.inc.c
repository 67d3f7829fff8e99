/* circle.inc.c - sine, cosine and arc tangent on vectors: within 3 units in the last place of the
 * larger of the result and 2^-23. */

enum { TURNS_LIMIT = 8192 }; /* angles beyond are left to libm */

/* Half pi in three parts, of which the first two leave room for a factor below 2^14. */
static inline vf quarter_turns(vf x, vi *quadrant) {
    const vf magic = splat(12582912.0f);
    vf transposed = x * splat(0.636619772367581343f) + magic, n = transposed - magic;
    *quadrant = (vi)transposed;
    return x - n * splat(1.5703125f) - n * splat(4.837512969970703125e-4f) -
           n * splat(7.54978995489188216e-8f);
}

static inline vf sine_part(vf r) { /* for |r| <= pi / 4; a zero keeps its sign */
    vf z = r * r, p = splat(-1.9515295891e-4f);
    p = p * z + splat(8.3321608736e-3f);
    p = p * z + splat(-1.6666654611e-1f);
    return select_vf(r == splat(0), r, p * z * r + r);
}

static inline vf cosine_part(vf r) {
    vf z = r * r, p = splat(2.443315711809948e-5f);
    p = p * z + splat(-1.388731625493765e-3f);
    p = p * z + splat(4.166664568298827e-2f);
    return p * z * z - z * splat(0.5f) + splat(1.0f);
}

/* sin(x + shift * pi / 2) for |x| <= TURNS_LIMIT. */
static inline vf circle_vf(vf x, int shift) {
    vi quadrant;
    vf r = quarter_turns(x, &quadrant);
    quadrant += shift;
    vf v = select_vf((quadrant & 1) == 1, cosine_part(r), sine_part(r));
    return (vf)((vi)v ^ (quadrant & 2) << 30);
}

static inline __attribute__((always_inline)) void circle_row(const float *x, float *y, int64_t n,
                                                             int shift) {
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t count = n - i < LANES ? n - i : LANES;
        vf v = count < LANES ? load_some(x + i, count, 0) : load(x + i);
        /* Lanes that are too far out, or NaN, one by one: what stands beside them must not tell. */
        vi near = (vf)((vi)v & 0x7fffffff) <= splat((float)TURNS_LIMIT);
        vf r = circle_vf(select_vf(near, v, splat(0)), shift);
        int far = 0;
        for (int j = 0; j < LANES; j++) far |= ~near[j];
        for (int j = 0; far && j < LANES; j++)
            if (!near[j]) r[j] = shift ? cosf(v[j]) : sinf(v[j]);
        if (count < LANES)
            store_some(y + i, count, r);
        else
            store(y + i, r);
    }
}

static void sin_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    circle_row(x, y, n, 0);
}

static void cos_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    circle_row(x, y, n, 1);
}

static inline vf atan_vf(vf x) {
    vf size = (vf)((vi)x & 0x7fffffff);
    vi large = size > splat(2.414213562373095f), middle = size > splat(0.4142135623730950f);
    vf base = select_vf(large, splat(1.57079632679489662f),
                        select_vf(middle, splat(0.785398163397448310f), splat(0)));
    vf over = select_vf(large, splat(-1.0f), select_vf(middle, size - splat(1.0f), size));
    vf under = select_vf(large, size, select_vf(middle, size + splat(1.0f), splat(1.0f)));
    vf t = over / under, z = t * t, p = splat(8.05374449538e-2f);
    p = p * z + splat(-1.38776856032e-1f);
    p = p * z + splat(1.99777106478e-1f);
    p = p * z + splat(-3.33329491539e-1f);
    vf r = base + (p * z * t + t);
    return (vf)((vi)r | ((vi)x & (int32_t)0x80000000));
}

static void atan_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    const float *from = x;
    float *to = y;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, atan_vf(load(from + i)));
    if (i < n) store_some(to + i, n - i, atan_vf(load_some(from + i, n - i, 0)));
}
