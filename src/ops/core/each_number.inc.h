/* each_number.inc.h - BODY for float, double and the eight integer types (typed.h). The user
 * undefines BODY. */
#include "ops/core/each_float.inc.h"
#include "ops/core/each_int.inc.h"
