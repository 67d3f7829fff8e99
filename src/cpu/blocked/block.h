/* block.h - one block of channels of a blocked tensor (cpu/conv/conv.h) as a vector: one register,
 * or two where registers are short. */
#ifndef SNI_CPU_BLOCKED_BLOCK_H
#define SNI_CPU_BLOCKED_BLOCK_H

#include "cpu/core/simd.h"

#if LANES == 16
#define BLOCK 16
#else
#define BLOCK 8
#endif

typedef float vb __attribute__((vector_size(BLOCK * sizeof(float))));
typedef float vb_anywhere
    __attribute__((vector_size(BLOCK * sizeof(float)), aligned(4), may_alias));
typedef int32_t vbi __attribute__((vector_size(BLOCK * sizeof(int32_t))));

/* Vectors wider than registers do not go through parameters: functions on them are inlined. */
#define INLINE static inline __attribute__((always_inline))

/* The block at a pointer to float. */
#define VB(p) (*(vb_anywhere *)(p))
#define VB_CONST(p) (*(const vb_anywhere *)(p))
/* A block with x everywhere. */
#define VB_SPLAT(x) ((x) - (vb){0})

/* *v to least at the least; NaN stays. */
INLINE void raise_vb(vb *v, const vb *least) {
#if LANES != 4
    *v = max_vf(*v, *least);
#else
    vbi low = *v < *least;
    *v = (vb)((low & (vbi)*least) | (~low & (vbi)*v));
#endif
}

/* *v to [least, most]; NaN stays. */
INLINE void clamp_vb(vb *v, const vb *least, const vb *most) {
    raise_vb(v, least);
#if LANES != 4
    *v = min_vf(*v, *most);
#else
    vbi high = *v > *most;
    *v = (vb)((high & (vbi)*most) | (~high & (vbi)*v));
#endif
}

#endif
