/* typed.h - templates: one body of code for many element types, without macros of many lines that
 * no debugger can step through.
 *
 * A template is a file NAME.inc.c. It uses parameters, which are macros, and is included once per
 * instance. Its head says what the parameters are and who instantiates it. The parameters of a
 * template by element type are always the same:
 *   T            the C type
 *   FN(name)     name_SUFFIX: a function's name for this type
 *   SUFFIX       f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 b8
 *   T_FLOAT, T_SIGNED, T_UNSIGNED, T_BOOL   one of them is defined: the class of T (bool is
 * uint8_t) MATH(name)   float types: the libm function, expf or exp for MATH(exp)
 *
 *     static void FN(relu)(const void *x, void *y, int64_t n, const void *params) { ... T ... }
 *
 * Whoever needs instances defines BODY and includes the list of types, and gets functions for
 * tables that are indexed by sn_dtype:
 *
 *     #define BODY "ops/math/relu.inc.c"
 *     #include "ops/core/each_number.inc.h"
 *     #undef BODY
 *     static const sni_unary_fn relu_fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(relu)};
 *
 * Lists: each_float, each_sint, each_uint, each_int (both), each_number (floats and ints). A single
 * type is an instance of one_type.inc.h:
 *
 *     #define TYPE SNI_TYPE_B8
 *     #include "ops/core/one_type.inc.h"
 *
 * Templates by other parameters (the width of elements, a pair of types) define T and SUFFIX
 * themselves and are undefined by the template or its user, as the head says. Narrow floats
 * (float16, bfloat16, float8, ...) have no instances: drivers convert blocks of them to float and
 * back. */
#ifndef SNI_OPS_CORE_TYPED_H
#define SNI_OPS_CORE_TYPED_H

#define SNI_PASTE_(a, b) a##_##b
#define SNI_PASTE(a, b) SNI_PASTE_(a, b)
#define FN(name) SNI_PASTE(name, SUFFIX)

/* What TYPE may be. */
#define SNI_TYPE_F32 1
#define SNI_TYPE_F64 2
#define SNI_TYPE_I8 3
#define SNI_TYPE_I16 4
#define SNI_TYPE_I32 5
#define SNI_TYPE_I64 6
#define SNI_TYPE_U8 7
#define SNI_TYPE_U16 8
#define SNI_TYPE_U32 9
#define SNI_TYPE_U64 10
#define SNI_TYPE_B8 11

/* Entries of a table by sn_dtype for all types of a list. */
#define SNI_EACH_FLOAT(f) [SN_FLOAT32] = f##_f32, [SN_FLOAT64] = f##_f64
#define SNI_EACH_SINT(f) \
    [SN_INT8] = f##_i8, [SN_INT16] = f##_i16, [SN_INT32] = f##_i32, [SN_INT64] = f##_i64
#define SNI_EACH_UINT(f) \
    [SN_UINT8] = f##_u8, [SN_UINT16] = f##_u16, [SN_UINT32] = f##_u32, [SN_UINT64] = f##_u64
#define SNI_EACH_INT(f) SNI_EACH_SINT(f), SNI_EACH_UINT(f)
#define SNI_EACH_NUMBER(f) SNI_EACH_FLOAT(f), SNI_EACH_INT(f)

#endif
