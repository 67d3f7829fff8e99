/* unicode.h - UTF-8 and simple case mapping, for the operators on strings. */
#ifndef SNI_OPS_TEXT_UNICODE_H
#define SNI_OPS_TEXT_UNICODE_H

#include "base/str.h"

#include <stdint.h>

#define SNI_UTF8_MAX 4 /* bytes of one code point */

/* The code point at `at` (below s.n) and, in *length, its bytes. A byte that is no valid UTF-8
 * gives -1 and length 1. */
int32_t sni_utf8_decode(sni_str s, size_t at, size_t *length);

/* Writes a code point; returns its bytes, at most SNI_UTF8_MAX. */
size_t sni_utf8_encode(int32_t c, char *out);

/* Simple (one to one) mappings of Latin, Greek, Cyrillic, Armenian and fullwidth letters; others
 * are returned as they are. */
int32_t sni_lower(int32_t c);
int32_t sni_upper(int32_t c);

#endif
