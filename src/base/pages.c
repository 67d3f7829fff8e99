/* pages.c - memory straight from the system. */
#include "base/pages.h"

#include "base/threadpool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
    SMALL_PAGE = 4096,
    PIECE = 64 * SMALL_PAGE,             /* what a thread makes at once of small ones */
    WORTH_LARGE = SNI_LARGE_PAGE / 4 * 3 /* bytes of a large page that have to be wanted */
};

void *sni_pages_map(size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t whole = bytes + SNI_LARGE_PAGE;
    unsigned char *p =
        mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t before = (SNI_LARGE_PAGE - (uintptr_t)p % SNI_LARGE_PAGE) % SNI_LARGE_PAGE;
    size_t end = (before + bytes + SMALL_PAGE - 1) & ~(size_t)(SMALL_PAGE - 1);
    if (before) munmap(p, before);
    if (end < whole) munmap(p + end, whole - end);
#ifdef MADV_HUGEPAGE
    madvise(p + before, bytes, MADV_HUGEPAGE);
#endif
    return p + before;
}

void sni_pages_unmap(void *p, size_t bytes) {
    if (p) munmap(p, bytes);
}

#ifdef MADV_POPULATE_WRITE
/* What is to be used: on large pages up to `small`, on small ones from there on. */
typedef struct stretch {
    uintptr_t from, small, to; /* addresses */
    int64_t large_pages;
} stretch;

static uintptr_t rounded_down(uintptr_t address, uintptr_t unit) {
    return address - address % unit;
}

static stretch stretch_of(const void *p, size_t bytes) {
    uintptr_t large = SNI_LARGE_PAGE, end = (uintptr_t)p + bytes;
    stretch s = {.from = rounded_down((uintptr_t)p, SMALL_PAGE), .to = end + SMALL_PAGE - 1};
    s.to = rounded_down(s.to, SMALL_PAGE);
    uintptr_t last = rounded_down(s.to, large);
    s.small = last >= s.from && s.to - last < WORTH_LARGE ? last : s.to;
    s.large_pages = (int64_t)((s.small + large - 1) / large - s.from / large);
    return s;
}

/* Some of its units: large pages, then pieces of what is on small ones. */
static void use_some(void *ctx, int64_t begin, int64_t end) {
    const stretch *s = ctx;
    for (int64_t unit = begin; unit < end; unit++) {
        bool large = unit < s->large_pages;
        uintptr_t base = large ? rounded_down(s->from, SNI_LARGE_PAGE) : s->small;
        uintptr_t size = large ? SNI_LARGE_PAGE : PIECE, limit = large ? s->small : s->to;
        uintptr_t from = base + (uintptr_t)(large ? unit : unit - s->large_pages) * size;
        uintptr_t to = from + size < limit ? from + size : limit;
        if (from < s->from) from = s->from;
        madvise((void *)from, to - from, MADV_POPULATE_WRITE);
    }
}

void sni_pages_use(void *p, size_t bytes) {
    if (!bytes) return;
    stretch s = stretch_of(p, bytes);
    size_t rest = s.to - s.small;
    if (rest) madvise((void *)s.small, rest, MADV_NOHUGEPAGE);
    int64_t pieces = (int64_t)((rest + PIECE - 1) / PIECE);
    sni_parallel_for(0, s.large_pages + pieces, 1, use_some, &s);
    if (rest) madvise((void *)s.small, rest, MADV_HUGEPAGE);
}
#else
void sni_pages_use(void *p, size_t bytes) {
    (void)p;
    (void)bytes;
}
#endif

void sni_pages_fetch(const void *p, size_t bytes) {
#ifdef MADV_POPULATE_READ
    uintptr_t first = (uintptr_t)p & ~(uintptr_t)(SMALL_PAGE - 1);
    madvise((void *)first, (uintptr_t)p + bytes - first, MADV_POPULATE_READ);
#else
    (void)p;
    (void)bytes;
#endif
}

void sni_pages_enlarge(void *p, size_t bytes) {
#ifdef MADV_HUGEPAGE
    uintptr_t large = SNI_LARGE_PAGE, first = ((uintptr_t)p + large - 1) / large * large;
    uintptr_t end = ((uintptr_t)p + bytes) / large * large;
    if (first < end) madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)p;
    (void)bytes;
#endif
}
