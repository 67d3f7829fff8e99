/* each_int.inc.h - BODY for the eight integer types (typed.h). The user undefines BODY. */
#include "ops/core/each_sint.inc.h"
#include "ops/core/each_uint.inc.h"
