/* util.h - what every part of the server shares: growing text, the clock, aligned buffers. */
#ifndef SRV_UTIL_H
#define SRV_UTIL_H

#include "base/status.h"
#include "base/str.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>

typedef struct srv_server srv_server; /* server.h */

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
/* Makes the text large enough for `more` bytes and a NUL and returns data + length, where they go;
 * the caller then adds to `length`. NULL (and `failed`) without memory. */
char *srv_text_reserve(srv_text *text, size_t more);
void srv_text_add(srv_text *text, const void *bytes, size_t length);
void srv_text_adds(srv_text *text, const char *string);
void srv_text_addf(srv_text *text, const char *fmt, ...) SNI_PRINTF(2, 3);
void srv_text_vaddf(srv_text *text, const char *fmt, va_list args) SNI_PRINTF(2, 0);
void srv_text_add_uint(srv_text *text, uint64_t number);
void srv_text_add_int(srv_text *text, int64_t number);
sni_str srv_text_str(const srv_text *text);
/* An sn_write_fn whose `ctx` is the text. */
int srv_text_write(void *text, const void *bytes, size_t size);

/* A cache of freed buffers by size class, for the next request. Bounded: see util.c. Any thread. */
#define SRV_BUFFER_CLASSES 48
#define SRV_BUFFERS_PER_CLASS 32

typedef struct srv_buffers {
    pthread_mutex_t lock;
    size_t bytes; /* of all that are kept */
    int count[SRV_BUFFER_CLASSES];
    void *kept[SRV_BUFFER_CLASSES][SRV_BUFFERS_PER_CLASS];
} srv_buffers;

void srv_buffers_init(srv_buffers *buffers);
/* Frees what is kept. Every buffer must have been given back. */
void srv_buffers_destroy(srv_buffers *buffers);
/* A buffer of at least `size` bytes, aligned to 64 bytes as kernels like it, not zero-filled. NULL
 * without memory. The caller gives it back to the same cache. */
void *srv_buffer_take(srv_buffers *buffers, size_t size);
/* `size` is the one that was asked for. NULL is fine. */
void srv_buffer_give(srv_buffers *buffers, void *buffer, size_t size);

/* A condition whose timed waits go by the clock of srv_now_ns. */
void srv_init_condition(pthread_cond_t *condition);
/* Waits until it is signalled, or until that time; 0: as long as it takes. */
void srv_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

/* A copy with a NUL; NULL when there is no memory. free() it. */
char *srv_strndup(const char *text, size_t length);

/* A decimal number from 0 to `max` that is the whole of `text`. False: it is not; `out` is
 * untouched. */
bool srv_parse_uint(sni_str text, uint64_t max, uint64_t *out);

/* Equal without regard to ASCII case. */
bool srv_str_equal_nocase(sni_str a, const char *b);

#endif
