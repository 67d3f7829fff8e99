/* typed.h - one body for many element types, without macros that nobody can step through.
 *
 * A body is a file that uses T (the C type) and FN(name) (the function's name for this type):
 *
 *     static void FN(relu)(const void *x, void *y, int64_t n, const void *params) { ... T ... }
 *
 * Its user says which types to make it for, and gets a table indexed by sn_dtype:
 *
 *     #define BODY "ops/math/relu.inc.c"
 *     #include "ops/core/each_number.inc.h"
 *     #undef BODY
 *     static const sni_unary_fn relu_fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(relu)};
 *
 * Bodies for float types may call MATH(exp) to get expf or exp. Narrow floats (class S) have no
 * bodies: drivers convert blocks of them around the float one. */
#ifndef SNI_OPS_CORE_TYPED_H
#define SNI_OPS_CORE_TYPED_H

#define SNI_PASTE_(a, b) a##_##b
#define SNI_PASTE(a, b) SNI_PASTE_(a, b)
#define FN(name) SNI_PASTE(name, SUFFIX)

#define SNI_EACH_FLOAT(f) [SN_FLOAT32] = f##_f32, [SN_FLOAT64] = f##_f64
#define SNI_EACH_SINT(f) \
    [SN_INT8] = f##_i8, [SN_INT16] = f##_i16, [SN_INT32] = f##_i32, [SN_INT64] = f##_i64
#define SNI_EACH_UINT(f) \
    [SN_UINT8] = f##_u8, [SN_UINT16] = f##_u16, [SN_UINT32] = f##_u32, [SN_UINT64] = f##_u64
#define SNI_EACH_INT(f) SNI_EACH_SINT(f), SNI_EACH_UINT(f)
#define SNI_EACH_NUMBER(f) SNI_EACH_FLOAT(f), SNI_EACH_INT(f)

#endif
