/* scalar_math.h - functions of one number that several operators share: sni_sigmoid_f32(v),
 * sni_sigmoid_f64(v), and so on. */
#ifndef SNI_OPS_CORE_SCALAR_MATH_H
#define SNI_OPS_CORE_SCALAR_MATH_H

#include <math.h>

#define BODY "ops/core/scalar_math.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

#endif
