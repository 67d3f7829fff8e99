/* compare.h - compares two values by the rule of the ONNX backend tests. */
#ifndef CLI_TESTING_COMPARE_H
#define CLI_TESTING_COMPARE_H

#include "cli/cli.h"

typedef struct cli_tolerance {
    double rtol;
    double atol;
} cli_tolerance;

/* Whether `got` has the kind, type and shape of `want`, and every number satisfies
 * |got - want| <= atol + rtol * |want| (NaN equals NaN, infinities equal themselves, strings are
 * equal byte by byte). When not, adds to `why` what differs first and how much. */
bool cli_values_match(const sn_value *got, const sn_value *want, cli_tolerance tolerance,
                      cli_text *why);

#endif
