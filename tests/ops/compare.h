/* compare.h - do two values agree? For the operator tests. */
#ifndef OPS_COMPARE_H
#define OPS_COMPARE_H

#include "sinter.h"

typedef struct tolerance {
    double relative, absolute;
} tolerance;

/* True if `got` has the kind, type, shape and elements of `want`: floating-point ones within the
 * tolerance, NaN where NaN is wanted. If not, `why` says where they differ. */
bool values_agree(const sn_value *want, const sn_value *got, tolerance t, char *why, size_t size);

#endif
