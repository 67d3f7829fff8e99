/* each_sint.inc.h - BODY for the four signed integer types (typed.h). The user undefines BODY. */
#define TYPE SNI_TYPE_I8
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_I16
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_I32
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_I64
#include "ops/core/one_type.inc.h"
