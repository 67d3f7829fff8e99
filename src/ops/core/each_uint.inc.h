/* each_uint.inc.h - BODY for the four unsigned integer types (typed.h). The user undefines BODY. */
#define TYPE SNI_TYPE_U8
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_U16
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_U32
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_U64
#include "ops/core/one_type.inc.h"
