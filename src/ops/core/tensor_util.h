/* tensor_util.h - helpers of kernels: indices, strides, walks over positions, copies. Unless a
 * comment says otherwise, counts may be 0 and pointers may then be NULL. */
#ifndef SNI_OPS_CORE_TENSOR_UTIL_H
#define SNI_OPS_CORE_TENSOR_UTIL_H

#include "ops/core/op.h"

/* Element i of an int32 or int64 tensor. */
static inline int64_t sni_index_at(const sni_tensor *t, int64_t i) {
    return t->dtype == SN_INT32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

/* Element i of any tensor of numbers or bools, as a double (64-bit integers are rounded). */
double sni_number_at(const sni_tensor *t, int64_t i);

/* *out = an axis or index in [0, n) for one that may be negative. SN_BAD_DATA if it is out of
 * range; the message names `what`. */
sn_status sni_wrap_index(sni_kernel *k, const char *what, int64_t index, int64_t n, int64_t *out);

/* Scratch (sni_scratch) for `count` integers. Fails with SN_NO_MEMORY or SN_LIMIT. */
sn_status sni_scratch_i64(sni_kernel *k, int64_t count, int64_t **out);

/* Row-major strides, in elements, of a dense tensor. */
void sni_strides(int rank, const int64_t *dims, int64_t *strides);

/* Strides of `t` broadcast to the shape `dims`: 0 along repeated axes. t's shape must broadcast. */
void sni_broadcast_strides(const sni_tensor *t, int rank, const int64_t *dims, int64_t *strides);

/* A walk over all positions of a shape in row-major order with up to 4 running offsets:
 *
 *     sni_walk w;
 *     sni_walk_init(&w, rank, dims, 2, (const int64_t *[]){sa, sb});
 *     do { ... w.offset[0] ... w.offset[1] ... } while (sni_walk_next(&w));
 *
 * The shape must have elements. Positions go through the axes as an odometer does; each operand has
 * its own strides. */
typedef struct sni_walk {
    int rank, operands;
    int64_t dims[SN_MAX_RANK];
    int64_t position[SN_MAX_RANK];
    int64_t strides[4][SN_MAX_RANK];
    int64_t offset[4];
} sni_walk;
void sni_walk_init(sni_walk *w, int rank, const int64_t *dims, int operands,
                   const int64_t *const *strides);
bool sni_walk_next(sni_walk *w);

/* Moving one element by its index takes about as long as copying so many bytes (sni_share). */
enum { SNI_ELEMENT_COST = 8 };

/* sni_parallel_for() over n items of `bytes` each that are copied, filled or moved. Uses as many
 * parts as there are threads, or a multiple, and fewer threads where a part would be too small to
 * be worth one. All operators that move elements share their work through this function. */
void sni_share(int threads, int64_t n, int64_t bytes,
               void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

/* Copies n elements of `width` bytes (1, 2, 4, 8 or 16) with a stride in elements on both sides. */
void sni_copy_strided(void *dst, int64_t dst_stride, const void *src, int64_t src_stride, int64_t n,
                      size_t width);

/* A box of elements that is copied between two arrays with strides of their own: in elements, of
 * any sign; a source stride of 0 repeats. dst and src point to the box's first element and must not
 * overlap. */
typedef struct sni_box {
    int rank;
    const int64_t *dims;
    void *dst;
    const int64_t *dst_strides;
    const void *src;
    const int64_t *src_strides;
    size_t width; /* bytes of an element: 1, 2, 4, 8 or 16 */
} sni_box;

/* Copies all elements of a box with the kernel's threads: merges axes, and transposes in tiles
 * where the two sides have different fastest axes. */
void sni_copy_box(sni_kernel *k, const sni_box *box);

/* Copies positions [at, at + length) of one axis of `whole`, which must be in range, from the dense
 * tensor at `from`, or to the one at `to`. */
void sni_put_part(sni_kernel *k, const sni_tensor *whole, int axis, int64_t at, const void *from,
                  int64_t length);
void sni_get_part(sni_kernel *k, const sni_tensor *whole, int axis, int64_t at, void *to,
                  int64_t length);

/* Fills n elements of `width` bytes with the one at `value`. */
void sni_fill(void *dst, const void *value, int64_t n, size_t width);
/* The same on several threads. */
void sni_fill_shared(int threads, void *dst, const void *value, int64_t n, size_t width);

/* The address of element i of an array with elements of `width` bytes. */
static inline void *sni_element(const void *data, int64_t i, size_t width) {
    return (unsigned char *)(uintptr_t)data + i * (int64_t)width;
}

/* Copies one element of a width that is 1, 2, 4, 8 or 16. */
static inline void sni_copy_element(void *dst, const void *src, size_t width) {
    switch (width) {
    case 1:
        memcpy(dst, src, 1);
        break;
    case 2:
        memcpy(dst, src, 2);
        break;
    case 4:
        memcpy(dst, src, 4);
        break;
    case 8:
        memcpy(dst, src, 8);
        break;
    default:
        memcpy(dst, src, 16);
    }
}

/* memmove() that accepts NULL for 0 bytes, and does nothing where both are the same. */
static inline void sni_copy_bytes(void *dst, const void *src, size_t bytes) {
    if (bytes && dst != src) memmove(dst, src, bytes);
}
/* The same on several threads. */
void sni_copy_shared(int threads, void *dst, const void *src, size_t bytes);

#endif
