/* Positions of extremes for one type; NaN counts as one. Of equal ones the first, or the last. */
#define OP argmax
#define BEATS(v, most) ((v) > (most))
#include "ops/math/argminmax_op.inc.c"
#define OP argmin
#define BEATS(v, most) ((v) < (most))
#include "ops/math/argminmax_op.inc.c"
