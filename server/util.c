/* util.c - what every part of the server shares: growing text, the clock, aligned buffers. */
#include "server/util.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t srv_now_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t srv_wall_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

void srv_init_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void srv_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns) {
    if (!until_ns) {
        pthread_cond_wait(condition, lock);
        return;
    }
    struct timespec when = {.tv_sec = (time_t)(until_ns / 1000000000u),
                            .tv_nsec = (long)(until_ns % 1000000000u)};
    pthread_cond_timedwait(condition, lock, &when);
}

/* ---- Growing text ------------------------------------------------------------------------- */

void srv_text_free(srv_text *text) {
    free(text->data);
    *text = (srv_text){0};
}

void srv_text_clear(srv_text *text) {
    text->length = 0;
    text->failed = false;
    if (text->data) text->data[0] = 0;
}

char *srv_text_reserve(srv_text *text, size_t more) {
    size_t need;
    if (text->failed || !sni_add_size(text->length, more, &need) || need > SIZE_MAX / 4) {
        text->failed = true;
        return NULL;
    }
    if (need + 1 > text->capacity) {
        size_t capacity = text->capacity ? text->capacity : 256;
        while (capacity < need + 1) capacity *= 2;
        char *data = realloc(text->data, capacity);
        if (!data) {
            text->failed = true;
            return NULL;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return text->data + text->length;
}

void srv_text_add(srv_text *text, const void *bytes, size_t length) {
    char *to = srv_text_reserve(text, length);
    if (!to) return;
    if (length) memcpy(to, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

void srv_text_adds(srv_text *text, const char *string) {
    srv_text_add(text, string, strlen(string));
}

void srv_text_vaddf(srv_text *text, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *to = length < 0 ? NULL : srv_text_reserve(text, (size_t)length);
    if (!to) return;
    vsnprintf(to, (size_t)length + 1, fmt, args);
    text->length += (size_t)length;
}

void srv_text_addf(srv_text *text, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    srv_text_vaddf(text, fmt, args);
    va_end(args);
}

void srv_text_add_uint(srv_text *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    srv_text_add(text, digits + at, sizeof digits - at);
}

void srv_text_add_int(srv_text *text, int64_t number) {
    if (number < 0) srv_text_add(text, "-", 1);
    srv_text_add_uint(text, number < 0 ? (uint64_t)(-(number + 1)) + 1 : (uint64_t)number);
}

sni_str srv_text_str(const srv_text *text) {
    return (sni_str){text->data, text->length};
}

int srv_text_write(void *text, const void *bytes, size_t size) {
    srv_text_add(text, bytes, size);
    return ((const srv_text *)text)->failed;
}

/* ---- Aligned buffers ---------------------------------------------------------------------- */

/* Sizes are rounded up to a power of two, or three quarters of one, from 4 KiB on; smaller buffers
 * go to the allocator. */
#define MIN_BITS 12
#define MAX_KEPT_BYTES ((size_t)64 << 20)

void srv_buffers_init(srv_buffers *buffers) {
    *buffers = (srv_buffers){.bytes = 0};
    pthread_mutex_init(&buffers->lock, NULL);
}

void srv_buffers_destroy(srv_buffers *buffers) {
    for (int class = 0; class < SRV_BUFFER_CLASSES; class ++) {
        while (buffers->count[class] > 0) free(buffers->kept[class][--buffers->count[class]]);
    }
    pthread_mutex_destroy(&buffers->lock);
}

/* The class of a size and what a buffer of that class holds; -1: not kept. */
static int class_of(size_t size, size_t *rounded) {
    if (size <= (size_t)1 << (MIN_BITS - 1) || size > (size_t)1 << 34) {
        *rounded = size < 64 ? 64 : (size + 63) & ~(size_t)63;
        return -1;
    }
    int bits = MIN_BITS;
    while ((size_t)1 << bits < size) bits++;
    size_t three = (size_t)3 << (bits - 2);
    *rounded = size <= three ? three : (size_t)1 << bits;
    return (bits - MIN_BITS) * 2 + (size <= three ? 0 : 1);
}

void *srv_buffer_take(srv_buffers *buffers, size_t size) {
    size_t rounded;
    int class = class_of(size, &rounded);
    void *buffer = NULL;
    if (size > SIZE_MAX / 2) return NULL;
    if (class >= 0) {
        pthread_mutex_lock(&buffers->lock);
        if (buffers->count[class] > 0) {
            buffer = buffers->kept[class][--buffers->count[class]];
            buffers->bytes -= rounded;
        }
        pthread_mutex_unlock(&buffers->lock);
    }
    return buffer ? buffer : aligned_alloc(64, rounded);
}

void srv_buffer_give(srv_buffers *buffers, void *buffer, size_t size) {
    size_t rounded;
    int class = class_of(size, &rounded);
    if (buffer && class >= 0) {
        pthread_mutex_lock(&buffers->lock);
        if (buffers->count[class] < SRV_BUFFERS_PER_CLASS &&
            rounded <= MAX_KEPT_BYTES - buffers->bytes) {
            buffers->kept[class][buffers->count[class]++] = buffer;
            buffers->bytes += rounded;
            buffer = NULL;
        }
        pthread_mutex_unlock(&buffers->lock);
    }
    free(buffer);
}

/* ---- Strings ------------------------------------------------------------------------------ */

char *srv_strndup(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    if (length) memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

bool srv_parse_uint(sni_str text, uint64_t max, uint64_t *out) {
    uint64_t number = 0;
    if (text.n == 0 || text.n > 20) return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9') return false;
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.p[i] - '0'), &number)) {
            return false;
        }
    }
    if (number > max) return false;
    *out = number;
    return true;
}

bool srv_str_equal_nocase(sni_str a, const char *b) {
    return a.n == strlen(b) && (a.n == 0 || strncasecmp(a.p, b, a.n) == 0);
}
