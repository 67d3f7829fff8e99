/* argminmax.inc.c - template by type (typed.h): positions of extremes. NaN counts as one. Among
 * equal ones the first or the last wins. Instances: argminmax.c, for all numbers. */
#define OP argmax
#define BEATS(v, most) ((v) > (most))
#include "ops/math/argminmax_op.inc.c"
#define OP argmin
#define BEATS(v, most) ((v) < (most))
#include "ops/math/argminmax_op.inc.c"
