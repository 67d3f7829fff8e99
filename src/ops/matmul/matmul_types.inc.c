/* matmul_types.inc.c - instances of matmul_core.inc.c for every type but float, which tiers have
 * kernels of their own for. Included by matmul_core.c and, with the tier's flags and tiles, by
 * cpu/core/loops.isa.c. Integers are computed as unsigned: products and sums wrap. */
#define BODY "ops/matmul/matmul_core.inc.c"
#define TYPE SNI_TYPE_F64
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_U32
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_U64
#include "ops/core/one_type.inc.h"
#undef BODY
