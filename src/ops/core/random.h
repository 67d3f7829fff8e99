/* random.h - a Mersenne Twister (MT19937) seeded and read as numpy's RandomState is: a seed gives
 * the same numbers as in ONNX's reference implementation. */
#ifndef SNI_OPS_CORE_RANDOM_H
#define SNI_OPS_CORE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sni_random {
    uint32_t state[624];
    int next; /* of the state; 624: all used */
    double spare;
    bool has_spare; /* a normal number left over */
} sni_random;

void sni_random_seed(sni_random *r, uint32_t seed);

/* A seed that differs from call to call. */
uint32_t sni_random_fresh_seed(void);

double sni_random_uniform(sni_random *r); /* in [0, 1), 53 bits */
double sni_random_normal(sni_random *r);  /* mean 0, deviation 1 */

#endif
