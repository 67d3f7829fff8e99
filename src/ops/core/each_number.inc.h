/* each_number.inc.h - includes BODY once for float, double and the eight integer types. The user
 * undefines BODY. */
#include "ops/core/each_float.inc.h"
#include "ops/core/each_int.inc.h"
