/* float_text.h - floating-point numbers as the shortest decimal text that reads back the same. */
#ifndef SRV_API_FLOAT_TEXT_H
#define SRV_API_FLOAT_TEXT_H

#include <stddef.h>

#define SRV_FLOAT_TEXT 32 /* bytes that suffice for any number */

/* The number must be finite. Returns the length; there is no NUL. */
size_t srv_float_text(float value, char *out);
size_t srv_double_text(double value, char *out);

#endif
