/* extremes.inc.c - the greatest and the least of a row of floats, in vectors. */

/* Notes of NaN among the numbers so far. */
#if defined(__AVX512F__)
typedef uint32_t nan_notes;
#else
typedef vi nan_notes;
#endif

static inline nan_notes no_nan(void) {
#if defined(__AVX512F__)
    return 0;
#else
    return (vi){0};
#endif
}

static inline nan_notes note_nan(nan_notes notes, vf a, vf b) {
#if defined(__AVX512F__)
    return notes | _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
#elif defined(__AVX2__)
    return notes | (vi)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#else
    return notes | (a != a) | (b != b);
#endif
}

static inline bool any_nan(nan_notes notes) {
#if defined(__AVX512F__)
    return notes != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)notes) != 0;
#else
    int32_t any = 0;
    for (int i = 0; i < LANES; i++) any |= notes[i];
    return any != 0;
#endif
}

static inline __attribute__((always_inline)) vf pick_vf(vf a, vf b, bool least) {
    return least ? min_vf(a, b) : max_vf(a, b);
}

/* False: the row is too short, or has a NaN. The last vector may overlap the one before. */
static inline __attribute__((always_inline)) bool extreme_row(const float *x, int64_t n, bool least,
                                                              float *best) {
    enum { AT_ONCE = 4 };
    if (n < LANES) return false;
    vf last = load(x + n - LANES), picks[AT_ONCE] = {last, last, last, last};
    nan_notes notes = note_nan(no_nan(), last, last);
    int64_t i = 0;
    for (; i + AT_ONCE * LANES <= n; i += AT_ONCE * LANES) {
        vf a = load(x + i), b = load(x + i + LANES);
        vf c = load(x + i + 2 * LANES), d = load(x + i + 3 * LANES);
        notes = note_nan(note_nan(notes, a, b), c, d);
        picks[0] = pick_vf(picks[0], a, least);
        picks[1] = pick_vf(picks[1], b, least);
        picks[2] = pick_vf(picks[2], c, least);
        picks[3] = pick_vf(picks[3], d, least);
    }
    for (; i + LANES <= n; i += LANES) {
        vf a = load(x + i);
        notes = note_nan(notes, a, a);
        picks[0] = pick_vf(picks[0], a, least);
    }
    if (any_nan(notes)) return false;
    vf all = pick_vf(pick_vf(picks[0], picks[1], least), pick_vf(picks[2], picks[3], least), least);
    *best = least ? -max_lanes(-all) : max_lanes(all);
    return true;
}

static bool most_row(const float *x, int64_t n, float *best) {
    return extreme_row(x, n, false, best);
}

static bool least_row(const float *x, int64_t n, float *best) {
    return extreme_row(x, n, true, best);
}
