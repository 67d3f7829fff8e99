/* element.h - elements of tensors of any type, one at a time: read, write, print. */
#ifndef CLI_FORMATS_ELEMENT_H
#define CLI_FORMATS_ELEMENT_H

#include "cli/cli.h"

typedef enum cli_class {
    CLI_CLASS_NONE,
    CLI_CLASS_SIGNED,
    CLI_CLASS_UNSIGNED,
    CLI_CLASS_BOOL,
    CLI_CLASS_FLOAT,
    CLI_CLASS_COMPLEX,
    CLI_CLASS_STRING
} cli_class;

cli_class cli_dtype_class(sn_dtype dtype);
/* Bits of one element; 0 for strings and unknown types. */
int cli_dtype_bits(sn_dtype dtype);

/* A number as wide as any element: which member counts is the class's matter. */
typedef struct cli_number {
    cli_class class; /* SIGNED, UNSIGNED (bool too) or FLOAT (complex too) */
    int64_t i;
    uint64_t u;
    double re, im;
} cli_number;

/* A tensor's elements. Borrowed from the value; strings are read through the value. */
typedef struct cli_view {
    sn_dtype dtype;
    cli_class class;
    int bits;
    size_t count;
    unsigned char *data; /* NULL for strings */
    const sn_value *value;
} cli_view;

cli_view cli_view_of(const sn_value *tensor);
/* A view of bare memory in the layout of a tensor's data. */
cli_view cli_view_memory(sn_dtype dtype, void *data, size_t count);

/* The element at `index`, which must be below the count; not for strings. */
cli_number cli_view_get(const cli_view *view, size_t index);
/* Its real part as a double. */
double cli_view_real(const cli_view *view, size_t index);

/* Stores a number; false, and nothing stored, when the type cannot hold it: out of range, or a
 * fraction for a whole-number type. Floating-point types round; an infinity or NaN that the type
 * does not have is refused. */
bool cli_view_set(const cli_view *view, size_t index, cli_number number);

cli_number cli_number_real(double value);
cli_number cli_number_int(int64_t value);
cli_number cli_number_uint(uint64_t value);
double cli_number_as_real(cli_number number);

/* Adds the element as text; strings quoted, escaped and cut to about `most` bytes. */
void cli_view_print(const cli_view *view, size_t index, size_t most, cli_text *out);

#endif
