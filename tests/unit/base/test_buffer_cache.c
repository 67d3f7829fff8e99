/* test_buffer_cache.c - large memory that comes back. */
#include "unit.h"

#include "base/buffer_cache.h"

#include <stdint.h>
#include <string.h>

enum { LARGE = 400 << 10 };

static void what_was_put_is_taken_again(void **state) {
    (void)state;
    size_t size, again, other;
    sni_buffer_cache_clear();
    char *p = sni_buffer_cache_take(LARGE, &size);
    assert_non_null(p);
    assert_true(size >= LARGE && size <= LARGE + LARGE / 8 && (uintptr_t)p % 64 == 0);
    memset(p, 1, size);
    sni_buffer_cache_put(p, size);
    size_t kept = sni_buffer_cache_clear();
    assert_true(kept == size || kept == 0); /* nothing under a sanitizer */
    assert_int_equal(sni_buffer_cache_clear(), 0);
    p = sni_buffer_cache_take(LARGE, &size);
    sni_buffer_cache_put(p, size);
    char *q = sni_buffer_cache_take(LARGE + 100, &again); /* a little more finds the same room */
    assert_int_equal(again, size);
    if (kept) assert_ptr_equal(q, p);
    sni_buffer_cache_put(q, again);
    q = sni_buffer_cache_take(LARGE / 3 * 2, &again); /* and so does less, */
    if (kept) assert_ptr_equal(q, p);
    char *small = sni_buffer_cache_take(LARGE / 3, &other);
    assert_ptr_not_equal(small, q);
    sni_buffer_cache_put(small, other);
    sni_buffer_cache_put(q, again);
    small = sni_buffer_cache_take(LARGE / 3, &other); /* if nothing fits better */
    if (kept) assert_true(other < LARGE / 2);
    sni_buffer_cache_put(small, other);
    q = sni_buffer_cache_take(LARGE, &again);
    if (kept) assert_ptr_equal(q, p);
    char *r = sni_buffer_cache_take(LARGE, &other); /* that is in use */
    assert_ptr_not_equal(r, q);
    memset(q, 2, again);
    memset(r, 3, other);
    sni_buffer_cache_put(q, again);
    sni_buffer_cache_put(r, other);
    sni_buffer_cache_clear();
}

static void small_memory_is_freed(void **state) {
    (void)state;
    size_t size;
    sni_buffer_cache_clear();
    void *p = sni_buffer_cache_take(1000, &size);
    assert_int_equal(size, 1024);
    sni_buffer_cache_put(p, size);
    assert_int_equal(sni_buffer_cache_clear(), 0);
    sni_buffer_cache_put(NULL, 0);
    assert_null(sni_buffer_cache_take(SIZE_MAX - 5, &size));
}

/* Of many pieces some are kept; those that nobody wants go. */
static void it_is_bounded(void **state) {
    (void)state;
    enum { MANY = 100 };
    void *pieces[MANY];
    size_t sizes[MANY];
    sni_buffer_cache_clear();
    for (int i = 0; i < MANY; i++) pieces[i] = sni_buffer_cache_take(4 << 20, &sizes[i]);
    for (int i = 0; i < MANY; i++) sni_buffer_cache_put(pieces[i], sizes[i]);
    assert_true(sni_buffer_cache_clear() <= 64 << 20);
    pieces[0] = sni_buffer_cache_take(8 << 20, &sizes[0]);
    sni_buffer_cache_put(pieces[0], sizes[0]);
    for (int i = 0; i < 1000; i++) {
        pieces[1] = sni_buffer_cache_take(LARGE, &sizes[1]);
        sni_buffer_cache_put(pieces[1], sizes[1]);
    }
    assert_true(sni_buffer_cache_clear() < 8 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_taken_again),
        cmocka_unit_test(small_memory_is_freed),
        cmocka_unit_test(it_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
