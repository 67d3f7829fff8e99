/* pages.c - memory straight from the system. */
#include "base/pages.h"

#include "base/threadpool.h"

#include <stdint.h>
#include <sys/mman.h>

enum { SMALL_PAGE = 4096 };

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
typedef struct stretch {
    uintptr_t from, to; /* addresses */
} stretch;

/* Large pages [begin, end) that a stretch is in, as far as it is. */
static void use_some(void *ctx, int64_t begin, int64_t end) {
    const stretch *s = ctx;
    uintptr_t large = SNI_LARGE_PAGE, base = s->from / large * large;
    uintptr_t from = base + (uintptr_t)begin * large, to = base + (uintptr_t)end * large;
    if (from < s->from) from = s->from;
    if (to > s->to) to = s->to;
    madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

void sni_pages_use(void *p, size_t bytes) {
    uintptr_t large = SNI_LARGE_PAGE;
    stretch s = {(uintptr_t)p & ~(uintptr_t)(SMALL_PAGE - 1), (uintptr_t)p + bytes};
    int64_t pages = (int64_t)((s.to + large - 1) / large - s.from / large);
    if (bytes) sni_parallel_for(0, pages, 1, use_some, &s);
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
