/* each_int.inc.h - includes BODY once for the eight integer types. The user undefines BODY. */
#include "ops/each_sint.inc.h"
#include "ops/each_uint.inc.h"
