/* ImageScaler's loop over one plane for float type T. */
#define OP scale
#define EXPR (p->scale * v + p->bias)
#include "ops/core/unary_loop.inc.c"
