/* deform_conv.inc.c - template by type (typed.h): samples of DeformConv. Instances: deform_conv.c,
 * for float and double. */

/* The gathered operand of a deformable convolution for one type. */

/* Multilinear interpolation of a plane at `at`; elements outside it are 0. */
static T FN(sample)(const sni_window *w, const T *plane, const T *at) {
    int64_t base[SN_MAX_RANK];
    T part[SN_MAX_RANK], sum = 0;
    for (int i = 0; i < w->rank; i++) {
        if (!(at[i] > -1 && at[i] < (T)w->in[i])) return 0;
        T low = MATH(floor)(at[i]);
        base[i] = (int64_t)low;
        part[i] = at[i] - low;
    }
    for (int corner = 0; corner < 1 << w->rank; corner++) {
        int64_t offset = 0;
        T weight = 1;
        for (int i = 0; i < w->rank && weight != 0; i++) {
            int up = corner >> i & 1;
            int64_t p = base[i] + up;
            weight *= up ? part[i] : 1 - part[i];
            if (p < 0 || p >= w->in[i]) weight = 0;
            offset = offset * w->in[i] + p;
        }
        if (weight != 0) sum += weight * plane[offset];
    }
    return sum;
}

static void FN(deform)(const void *ctx, int64_t product, int64_t k0, int64_t rows, int64_t n0,
                       int64_t cols, void *panel, int64_t stride) {
    const deform *d = ctx;
    const sni_window *w = &d->window;
    int64_t image = product / d->groups, group = product % d->groups;
    int64_t per_group = d->channels / d->groups, per_offset = d->channels / d->offset_groups;
    for (int64_t r = 0; r < rows; r++) {
        int64_t channel = group * per_group + (k0 + r) / d->taps, tap = (k0 + r) % d->taps;
        int64_t field = (image * d->offset_groups + channel / per_offset) * d->taps + tap;
        const T *plane = (const T *)d->x + (image * d->channels + channel) * d->in_plane;
        const T *shifts = (const T *)d->offset + field * w->rank * d->out_plane;
        const T *mask = d->mask ? (const T *)d->mask + field * d->out_plane : NULL;
        T *dst = (T *)panel + r * stride;
        for (int64_t j = 0; j < cols; j++) {
            int64_t position = n0 + j, rest = position, rest_tap = tap;
            T at[SN_MAX_RANK];
            for (int i = w->rank - 1; i >= 0; i--) {
                int64_t o = rest % w->out[i], t = rest_tap % w->kernel[i];
                rest /= w->out[i];
                rest_tap /= w->kernel[i];
                at[i] = (T)(o * w->stride[i] - w->begin[i] + t * w->dilation[i]) +
                        shifts[i * d->out_plane + position];
            }
            T v = FN(sample)(w, plane, at);
            dst[j] = mask ? v * mask[position] : v;
        }
    }
}
