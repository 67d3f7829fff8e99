/* str.h - text by pointer and length: what names and string tensors are made of. It may hold any
 * byte. Text kept in an arena is also followed by a NUL, so that it can be shown to C callers. */
#ifndef SNI_BASE_STR_H
#define SNI_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct sni_str {
    const char *p; /* NULL only when n is 0 */
    size_t n;
} sni_str;

#define SNI_STR(literal) ((sni_str){"" literal, sizeof(literal) - 1})

/* For printf: printf("%.*s", SNI_FMT(s)). */
#define SNI_FMT(s) (int)((s).n > 200 ? 200 : (s).n), (s).p ? (s).p : ""

static inline sni_str sni_str_of(const char *c) {
    return (sni_str){c, c ? strlen(c) : 0};
}

static inline bool sni_str_eq(sni_str a, sni_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool sni_str_is(sni_str a, const char *c) {
    return sni_str_eq(a, sni_str_of(c));
}

#endif
