/* act.inc.c - activations on rows of results. */

/* e^x by 2^n * e^r with |r| <= ln(2)/2 and a polynomial of degree 6 for e^r: within 2 ULP from -87
 * to 88, 0 below and infinity above; NaN stays. */
static inline vf exp_vf(vf x) {
    const vf log2e = splat(1.44269504088896341f), magic = splat(12582912.0f);
    const vf ln2_high = splat(0.693145751953125f), ln2_low = splat(1.42860682030941723e-6f);
    vf clamped = min_vf(max_vf(x, splat(-104.0f)), splat(104.0f));
    vf shifted = clamped * log2e + magic;
    vf n = shifted - magic;
    vf r = clamped - n * ln2_high - n * ln2_low;
    vf p = splat(1.38888889e-3f);
    p = p * r + splat(8.33333333e-3f);
    p = p * r + splat(4.16666667e-2f);
    p = p * r + splat(1.66666667e-1f);
    p = p * r + splat(0.5f);
    p = p * r + splat(1.0f);
    p = p * r + splat(1.0f);
    /* 2^n in two factors, so that results near the ends of the range keep their bits. */
    vi whole = __builtin_convertvector(n, vi);
    vi half = whole >> 1, rest = whole - half;
    vf result = p * (vf)((half + 127) << 23) * (vf)((rest + 127) << 23);
    return select_vf(x == x, result, x);
}

static inline vf sigmoid_vf(vf x) {
    return splat(1.0f) / (splat(1.0f) + exp_vf(-x));
}

/* By e^2x for large |x|, by an odd polynomial where that would cancel. */
static inline vf tanh_vf(vf x) {
    vf size = select_vf(x < 0, -x, x), square = x * x;
    vf p = splat(-5.70498872745e-3f);
    p = p * square + splat(2.06390887954e-2f);
    p = p * square + splat(-5.37397155531e-2f);
    p = p * square + splat(1.33314422036e-1f);
    p = p * square + splat(-3.33332819422e-1f);
    vf small = p * square * x + x;
    vf large = splat(1.0f) - splat(2.0f) / (exp_vf(size + size) + splat(1.0f));
    large = select_vf(x < 0, -large, large);
    return select_vf(size < splat(0.625f), small, large);
}

static inline vf act_vf(sni_act act, vf p0, vf p1, vf x) {
    switch (act) {
    case SNI_ACT_RELU:
        return max_vf(x, splat(0));
    case SNI_ACT_CLIP:
        return min_vf(max_vf(x, p0), p1);
    case SNI_ACT_LEAKY_RELU:
        return select_vf(x < 0, x * p0, x);
    case SNI_ACT_HARD_SIGMOID:
        return min_vf(max_vf(x * p0 + p1, splat(0)), splat(1));
    case SNI_ACT_HARD_SWISH:
        return x * min_vf(max_vf(x * splat(1.0f / 6.0f) + splat(0.5f), splat(0)), splat(1));
    case SNI_ACT_SIGMOID:
        return sigmoid_vf(x);
    case SNI_ACT_SILU:
        return x * sigmoid_vf(x);
    case SNI_ACT_TANH:
        return tanh_vf(x);
    default:
        return x;
    }
}

/* The loop of finish_row for one activation, which is a constant at every call. */
static inline __attribute__((always_inline)) void finish(sni_act act, const sni_epilogue *e,
                                                         float *y, float bias, const float *columns,
                                                         const float *more, int64_t n) {
    vf p0 = splat(e->p0), p1 = splat(e->p1), b = splat(bias);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf x = load(y + i) + b;
        if (columns) x += load(columns + i);
        if (more) x += load(more + i);
        store(y + i, act_vf(act, p0, p1, x));
    }
    if (i == n) return;
    float tail[LANES] = {0};
    for (int64_t j = i; j < n; j++)
        tail[j - i] = y[j] + bias + (columns ? columns[j] : 0) + (more ? more[j] : 0);
    store(tail, act_vf(act, p0, p1, load(tail)));
    memcpy(y + i, tail, (size_t)(n - i) * sizeof *y);
}

static void finish_row(const sni_epilogue *e, float *y, float bias, const float *columns,
                       const float *more, int64_t n) {
    switch (e->act) {
    case SNI_ACT_NONE:
        finish(SNI_ACT_NONE, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_RELU:
        finish(SNI_ACT_RELU, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_CLIP:
        finish(SNI_ACT_CLIP, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_LEAKY_RELU:
        finish(SNI_ACT_LEAKY_RELU, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_HARD_SIGMOID:
        finish(SNI_ACT_HARD_SIGMOID, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_HARD_SWISH:
        finish(SNI_ACT_HARD_SWISH, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_SIGMOID:
        finish(SNI_ACT_SIGMOID, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_SILU:
        finish(SNI_ACT_SILU, e, y, bias, columns, more, n);
        break;
    case SNI_ACT_TANH:
        finish(SNI_ACT_TANH, e, y, bias, columns, more, n);
        break;
    }
}

static void axpy(float w, const float *x, float *y, int64_t n) {
    vf weight = splat(w);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(y + i) + weight * load(x + i));
    for (; i < n; i++) y[i] += w * x[i];
}
