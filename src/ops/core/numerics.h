/* numerics.h - families of algorithms that compute an operator otherwise than by its plain sums. A
 * session has one mask of those that it allows. */
#ifndef SNI_OPS_CORE_NUMERICS_H
#define SNI_OPS_CORE_NUMERICS_H

#include <stddef.h>
#include <stdint.h>

/* A bit each. All but SNI_NUMERICS_COMPRESSED round otherwise than plain sums. */
enum {
    SNI_NUMERICS_WINOGRAD = 1u << 0,      /* convolutions with fewer products */
    SNI_NUMERICS_STRASSEN = 1u << 1,      /* matrix products with seven products for eight */
    SNI_NUMERICS_INNER_PRODUCT = 1u << 2, /* Winograd's inner product */
    SNI_NUMERICS_EMULATED = 1u << 3,      /* float products emulated on int8 tiles */
    SNI_NUMERICS_COMPRESSED = 1u << 4,    /* weights with compressed exponents: every bit is kept */
    SNI_NUMERICS_BF16 = 1u << 5,          /* products of bfloat16, where weights are of that type */
    /* Weights in float32 are rounded: to the 11 bits of TF32 where float16 has them, to float16, or
     * to bfloat16. The session's precision allows one of these, no level does. */
    SNI_NUMERICS_TO_TF32 = 1u << 6,
    SNI_NUMERICS_TO_FP16 = 1u << 7,
    SNI_NUMERICS_TO_BF16 = 1u << 8,
    /* No family but a limit, which a compiled model has to keep as well: weights of the model are
     * narrow floats, and forms of them that are much larger are not worth their memory. */
    SNI_NUMERICS_NARROW = 1u << 9
};

/* Levels of optimisation end below this one. */
enum { SNI_NUMERICS_NO_LEVEL = 100 };

typedef struct sni_numerics_family {
    const char *name; /* as in `disabled_rules` */
    uint32_t bit;
    int level; /* lowest optimisation level that allows it */
} sni_numerics_family;

/* By index; NULL past the end. */
const sni_numerics_family *sni_numerics_get(size_t index);

#endif
