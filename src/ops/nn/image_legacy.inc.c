/* image_legacy.inc.c - template by type (typed.h): ImageScaler's loop over one plane for float
 * type T. Instances: image_legacy.c, for float and double. */
#define OP scale
#define EXPR (p->scale * v + p->bias)
#include "ops/core/unary_loop.inc.c"
