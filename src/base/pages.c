/* pages.c - memory straight from the system. */
#include "base/pages.h"

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

void sni_pages_use(void *p, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
    uintptr_t first = (uintptr_t)p & ~(uintptr_t)(SMALL_PAGE - 1);
    if (bytes) madvise((void *)first, (uintptr_t)p + bytes - first, MADV_POPULATE_WRITE);
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
