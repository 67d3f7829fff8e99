/* attend.inc.c - the parts of attention between its two products. */

/* `most` to subtract from scores: 0 where no key has been seen yet, so that none of them has a
 * part. */
static inline vf above_most(vf most) {
    return select_vf(most == splat(-INFINITY), splat(0), most);
}

static inline vf score_vf(vf x, float scale, float cap) {
    x = x * splat(scale);
    return cap > 0 ? splat(cap) * tanh_vf(x * splat(1 / cap)) : x;
}

/* A key whose bias is minus infinity has no part, whatever its score: even NaN. */
static inline vf biased_vf(vf x, vf bias) {
    return select_vf(bias == splat(-INFINITY), bias, x + bias);
}

static void attend_weigh(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum,
                         float *fade) {
    for (int v = 0; v < NR; v += LANES) {
        vf old = load(most + v), m = old, total = splat(0);
        for (int64_t j = 0; j < keys; j++) {
            vf x = score_vf(load(s + j * NR + v), b->scale, b->cap);
            if (b->key_bias) x = biased_vf(x, splat(b->key_bias[j]));
            if (b->bias) x = biased_vf(x, load(b->bias + j * NR + v));
            store(s + j * NR + v, x);
            m = max_vf(m, x);
        }
        vf safe = above_most(m), f = weight_vf(old - safe);
        for (int64_t j = 0; j < keys; j++) {
            vf p = weight_vf(load(s + j * NR + v) - safe);
            store(s + j * NR + v, p);
            total += p;
        }
        store(most + v, m);
        store(sum + v, load(sum + v) * f + total);
        store(fade + v, f);
    }
}

/* The same for one query along its keys, starting from nothing but `most` and `sum`. */
static void attend_row(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum) {
    int64_t whole = keys / LANES * LANES;
    for (int64_t j = 0; j < keys; j += LANES) {
        bool all = j < whole;
        vf x = score_vf(all ? load(s + j) : load_some(s + j, keys - j, 0), b->scale, b->cap);
        if (b->key_bias)
            x = biased_vf(x, all ? load(b->key_bias + j) : load_some(b->key_bias + j, keys - j, 0));
        if (all)
            store(s + j, x);
        else
            store_some(s + j, keys - j, x);
    }
    float row = max_row(s, keys), m = row > *most ? row : *most;
    float safe = m == -INFINITY ? 0 : m;
    float before[LANES] = {0};
    store(before, weight_vf(splat(*most - safe)));
    *sum = *sum * before[0] + exp_row(s, s, keys, safe);
    *most = m;
}

/* s[j] = q . k[j * step], d elements each. */
static void dot_rows(const float *q, const float *k, int64_t step, int64_t keys, int64_t d,
                     float *s) {
    int64_t whole = d / LANES * LANES;
    for (int64_t j = 0; j < keys; j++, k += step) {
        vf a = splat(0), b = a;
        int64_t i = 0;
        for (; i + 2 * LANES <= d; i += 2 * LANES) {
            a += load(q + i) * load(k + i);
            b += load(q + i + LANES) * load(k + i + LANES);
        }
        if (i < whole) a += load(q + i) * load(k + i);
        float dot = sum_lanes(a + b);
        for (i = whole; i < d; i++) dot += q[i] * k[i];
        s[j] = dot;
    }
}

/* y[i] = factor * sum over j of p[j] v[j * step + i], for d elements. */
static void weigh_rows(const float *p, const float *v, int64_t step, int64_t keys, int64_t d,
                       float factor, float *y) {
    enum { WIDE = 4 };
    int64_t i = 0;
    for (; i + WIDE * LANES <= d; i += WIDE * LANES) {
        vf sum[WIDE];
        UNROLL
        for (int q = 0; q < WIDE; q++) sum[q] = splat(0);
        for (int64_t j = 0; j < keys; j++) {
            vf w = splat(p[j]);
            UNROLL
            for (int q = 0; q < WIDE; q++) sum[q] += w * load(v + j * step + i + q * LANES);
        }
        UNROLL
        for (int q = 0; q < WIDE; q++) store(y + i + q * LANES, sum[q] * splat(factor));
    }
    for (; i + LANES <= d; i += LANES) {
        vf sum = splat(0);
        for (int64_t j = 0; j < keys; j++) sum += splat(p[j]) * load(v + j * step + i);
        store(y + i, sum * splat(factor));
    }
    for (; i < d; i++) {
        float sum = 0;
        for (int64_t j = 0; j < keys; j++) sum += p[j] * v[j * step + i];
        y[i] = sum * factor;
    }
}

/* rows x NR elements, each column times its own factor. */
static void scale_columns(float *c, int64_t rows, const float *factors) {
    for (int v = 0; v < NR; v += LANES) {
        vf f = load(factors + v);
        for (int64_t i = 0; i < rows; i++) store(c + i * NR + v, load(c + i * NR + v) * f);
    }
}
