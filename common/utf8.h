/* utf8.h - UTF-8 and the escapes of JSON strings, for the program and the server. */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the valid UTF-8 sequence at `bytes`, 0 when there is none. */
size_t co_utf8_length(const char *bytes, size_t length);
/* Writes a character as UTF-8 and returns its bytes; 0 for a surrogate and past U+10FFFF. */
size_t co_utf8_encode(uint32_t code, char bytes[4]);

/* Decodes the JSON escape whose backslash stands before `text`: `*used` characters of it become
 * `*length` bytes. NULL, or what is wrong with it. */
const char *co_json_escape(const char *text, size_t size, size_t *used, char bytes[4],
                           size_t *length);

/* Decodes the inside of a JSON string into `out`, which holds `size` bytes and a NUL. NULL,
 * or what is wrong with it. */
const char *co_json_unescape(const char *text, size_t size, char *out, size_t *length);

#endif
