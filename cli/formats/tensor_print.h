/* tensor_print.h - values as readable text. */
#ifndef CLI_FORMATS_TENSOR_PRINT_H
#define CLI_FORMATS_TENSOR_PRINT_H

#include "cli/cli.h"

/* Adds "name  float32[1,1000]", its range, its first elements and, when `top` > 0 and it looks
 * like class scores (one row, or rows of a matrix), the `top` largest of each row with bars. */
void cli_print_value(cli_text *out, const char *name, const sn_value *value, int top);

/* "float32[N,3]" of what a model says; unknown dimensions by name or as '?'. */
void cli_print_type(cli_text *out, const sn_value_info *info);

#endif
