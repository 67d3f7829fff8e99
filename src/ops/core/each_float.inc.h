/* each_float.inc.h - BODY for float and double (typed.h). The user undefines BODY. */
#define TYPE SNI_TYPE_F32
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_F64
#include "ops/core/one_type.inc.h"
