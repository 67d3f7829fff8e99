/* axes.c - kept and reduced axes in the order of memory. */
#include "ops/core/axes.h"

sni_axes sni_axes_lay_out(const sni_tensor *x, const bool reduced[SN_MAX_RANK]) {
    sni_axes a = {.count = 1, .run = 1};
    int64_t dims[SN_MAX_RANK], strides[SN_MAX_RANK], stride = 1;
    bool gone[SN_MAX_RANK];
    int n = 0; /* merged axes, innermost first */
    for (int i = x->rank - 1; i >= 0; i--) {
        if (reduced[i]) a.count *= x->dims[i];
        if (x->dims[i] == 1) continue;
        if (n && gone[n - 1] == reduced[i]) {
            dims[n - 1] *= x->dims[i];
        } else {
            dims[n] = x->dims[i];
            strides[n] = stride;
            gone[n++] = reduced[i];
        }
        stride *= x->dims[i];
    }
    if (n) a.run = dims[0];
    a.run_kept = n && !gone[0];
    for (int i = n - 1; i > 0; i--) {
        int *rank = gone[i] ? &a.red_rank : &a.kept_rank;
        (gone[i] ? a.red_dims : a.kept_dims)[*rank] = dims[i];
        (gone[i] ? a.red_strides : a.kept_strides)[*rank] = strides[i];
        ++*rank;
    }
    return a;
}

int64_t sni_axes_offset(const sni_axes *a, int64_t index) {
    int64_t offset = 0;
    for (int d = a->kept_rank - 1; d >= 0; d--) {
        offset += index % a->kept_dims[d] * a->kept_strides[d];
        index /= a->kept_dims[d];
    }
    return offset;
}

void sni_axes_walk(const sni_axes *a, int64_t offset,
                   void (*fn)(void *ctx, int64_t at, int64_t rows, int64_t step), void *ctx) {
    int64_t position[SN_MAX_RANK] = {0};
    int last = a->red_rank - 1;
    for (;;) {
        fn(ctx, offset, last < 0 ? 1 : a->red_dims[last], last < 0 ? 0 : a->red_strides[last]);
        int d = last - 1;
        for (; d >= 0; d--) {
            offset += a->red_strides[d];
            if (++position[d] < a->red_dims[d]) break;
            offset -= a->red_strides[d] * a->red_dims[d];
            position[d] = 0;
        }
        if (d < 0) return;
    }
}
