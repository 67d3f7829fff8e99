/* util.h - what every part of the server shares: growing text, the clock, aligned memory. */
#ifndef SRV_UTIL_H
#define SRV_UTIL_H

#include "base/status.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>

/* Nanoseconds of a clock that never goes back, and of the wall clock since 1970. */
uint64_t srv_now_ns(void);
uint64_t srv_wall_ns(void);

/* Text that grows. When memory runs out it stays as it is and `failed` is set: whoever uses the
 * whole looks there once at the end. `data` is NULL or followed by a NUL. */
typedef struct srv_text {
    char *data;
    size_t length;
    size_t capacity;
    bool failed;
} srv_text;

void srv_text_free(srv_text *text);
void srv_text_clear(srv_text *text); /* keeps the memory */
/* Room for `more` bytes and a NUL at data + length; NULL when there is none. */
char *srv_text_room(srv_text *text, size_t more);
void srv_text_add(srv_text *text, const void *bytes, size_t length);
void srv_text_adds(srv_text *text, const char *string);
void srv_text_addf(srv_text *text, const char *fmt, ...) SNI_PRINTF(2, 3);
void srv_text_vaddf(srv_text *text, const char *fmt, va_list args) SNI_PRINTF(2, 0);
void srv_text_add_uint(srv_text *text, uint64_t number);
void srv_text_add_int(srv_text *text, int64_t number);
sni_str srv_text_str(const srv_text *text);
/* An sn_write_fn whose `ctx` is the text. */
int srv_text_write(void *text, const void *bytes, size_t size);

/* Memory of at least `size` bytes, aligned for any kernel (64 bytes), not zero-filled; NULL when
 * there is none. Blocks of the sizes used most are kept for the next request. */
void *srv_memory_take(size_t size);
void srv_memory_give(void *memory, size_t size); /* `size` as taken; NULL is fine */

/* A copy with a NUL; NULL when there is no memory. free() it. */
char *srv_strndup(const char *text, size_t length);

/* A decimal number over the whole of `text`, at most `most`. */
bool srv_parse_uint(sni_str text, uint64_t most, uint64_t *out);

/* Equal without regard to ASCII case. */
bool srv_str_equal_nocase(sni_str a, const char *b);

#endif
