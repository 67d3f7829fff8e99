/* each_int.inc.h - includes BODY once for the eight integer types. The user undefines BODY. */
#include "ops/core/each_sint.inc.h"
#include "ops/core/each_uint.inc.h"
