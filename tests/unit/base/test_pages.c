/* test_pages.c - memory straight from the system: what is made, and what is not yet. */
#include "unit.h"

#include "base/pages.h"
#include "base/threadpool.h"

#include <stdint.h>
#include <sys/mman.h>

enum { SMALL = 4096, LARGE = SNI_LARGE_PAGE, WHOLE = 4 * LARGE };

/* Bytes from p on that are in memory, in small pages. */
static size_t bytes_there(void *p, size_t bytes) {
    static unsigned char there[WHOLE / SMALL];
    size_t count = 0;
    assert_int_equal(mincore(p, bytes, there), 0);
    for (size_t i = 0; i < bytes / SMALL; i++) count += there[i] & 1;
    return count * SMALL;
}

static bool makes_pages(void) {
#ifdef MADV_POPULATE_WRITE
    void *p = mmap(NULL, SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool makes = madvise(p, SMALL, MADV_POPULATE_WRITE) == 0;
    munmap(p, SMALL);
    return makes;
#else
    return false;
#endif
}

static void what_is_used_is_there(void **state) {
    (void)state;
    const size_t sizes[] = {1,         SMALL,         SMALL + 1,      LARGE / 2, LARGE - 1, LARGE,
                            LARGE + 1, LARGE * 3 / 2, LARGE * 15 / 8, 3 * LARGE, WHOLE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = sni_pages_map(WHOLE);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % LARGE, 0);
        assert_int_equal(bytes_there(p, WHOLE), 0);
        sni_pages_use(p, sizes[i]);
        size_t whole = (sizes[i] + SMALL - 1) / SMALL * SMALL;
        if (makes_pages()) assert_int_equal(bytes_there(p, whole), whole);
        for (size_t at = 0; at < WHOLE; at += SMALL) assert_int_equal(p[at], 0);
        sni_pages_unmap(p, WHOLE);
    }
}

/* The last page that is hardly wanted begins as small ones; what follows it is not made. */
static void a_rest_takes_what_it_needs(void **state) {
    (void)state;
    unsigned char *p = sni_pages_map(WHOLE);
    assert_non_null(p);
    sni_pages_use(p, LARGE + LARGE / 2);
    if (makes_pages()) assert_int_equal(bytes_there(p + LARGE, LARGE), LARGE / 2);
    assert_int_equal(bytes_there(p + 2 * LARGE, 2 * LARGE), 0);
    p[LARGE + LARGE / 2 - 1] = 7;
    sni_pages_use(p + LARGE + LARGE / 2, LARGE); /* it grows, across the next page's beginning */
    if (makes_pages()) {
        assert_int_equal(bytes_there(p, 2 * LARGE + LARGE / 2), 2 * LARGE + LARGE / 2);
        assert_int_equal(bytes_there(p + 2 * LARGE, 2 * LARGE), LARGE / 2);
    }
    assert_int_equal(p[LARGE + LARGE / 2 - 1], 7);
    sni_pages_unmap(p, WHOLE);
}

static void parts_may_begin_anywhere(void **state) {
    (void)state;
    for (size_t from = 0; from < 2 * LARGE; from += 333333) {
        unsigned char *p = sni_pages_map(WHOLE);
        assert_non_null(p);
        sni_pages_use(p + from, LARGE + 77);
        size_t first = from / SMALL * SMALL, end = (from + LARGE + 77 + SMALL - 1) / SMALL * SMALL;
        if (makes_pages()) assert_int_equal(bytes_there(p + first, end - first), end - first);
        sni_pages_use(p + from, 0);
        sni_pages_unmap(p, WHOLE);
    }
}

static void any_number_of_threads(void **state) {
    for (int threads = 1; threads <= 4; threads++) {
        sni_threads_limit(threads);
        what_is_used_is_there(state);
        a_rest_takes_what_it_needs(state);
    }
    sni_threads_limit(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_used_is_there), cmocka_unit_test(a_rest_takes_what_it_needs),
        cmocka_unit_test(parts_may_begin_anywhere), cmocka_unit_test(any_number_of_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
