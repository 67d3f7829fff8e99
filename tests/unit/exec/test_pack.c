/* test_pack.c - memory of packed weights: zeros, side by side on shelves, what is given back, and
 * what is charged. */
#include "unit.h"

#include "ep/ep.h"
#include "graph/store.h"

enum { PIECE = 300000, PIECES = 200, HUGE_PIECE = 9 << 20 };

static unsigned char *alloc(sni_pack *pack, size_t bytes) {
    sni_choice c = {.pack = pack};
    void *data = NULL;
    bool filled = true;
    sn_error err = {0};
    if (sni_pack_alloc(&c, bytes, &data, &filled, &err) != SN_OK) fail_msg("%s", err.message);
    assert_false(filled);
    assert_int_equal((uintptr_t)data % SNI_ALIGN, 0);
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char *)data)[i]) fail_msg("byte %zu of a new piece is not 0", i);
    return data;
}

/* Pieces are zeros of their own, whether a slab holds them or not. */
static void pieces_are_apart(void **state) {
    (void)state;
    sni_slab slab = {0};
    sni_budget budget = {0};
    sni_pack pack = {.slab = &slab, .budget = &budget};
    for (int i = 0; i < PIECES; i++)
        memset(alloc(&pack, PIECE + (size_t)i), i + 1, PIECE + (size_t)i);
    memset(alloc(&pack, HUGE_PIECE), 0xff, HUGE_PIECE);
    for (int i = 0; i < PIECES; i++)
        for (size_t at = 0; at < pack.blobs[i].bytes; at++)
            if (((unsigned char *)pack.blobs[i].data)[at] != i + 1)
                fail_msg("byte %zu of piece %d was overwritten", at, i);
    assert_false(pack.blobs[0].in_slab); /* few bytes so far */
    assert_true(pack.blobs[PIECES - 1].in_slab);
    assert_false(pack.blobs[PIECES].in_slab);
    assert_true(slab.count >= 2);
    assert_true(budget.used > (size_t)PIECE * PIECES + HUGE_PIECE);
    sni_pack_clear(&pack);
    assert_int_equal(budget.used, 0);
    sni_slab_free(&slab);
}

/* What fails again and again takes the same place, zeroed, and no more memory. */
static void room_comes_back(void **state) {
    (void)state;
    sni_slab slab = {0};
    sni_pack kept = {.slab = &slab};
    for (int i = 0; i < 8; i++) alloc(&kept, PIECE);
    int32_t spaces = slab.count;
    size_t used = slab.used;
    for (int round = 0; round < 100; round++) {
        sni_pack failing = {.slab = &slab};
        memset(alloc(&failing, PIECE + 1), 0xaa, PIECE + 1);
        memset(alloc(&failing, PIECE), 0xbb, PIECE);
        sni_pack_clear(&failing);
        assert_int_equal(slab.used, used);
        assert_int_equal(slab.count, spaces);
    }
    sni_pack_clear(&kept);
    sni_slab_free(&slab);
}

static void works_without_a_slab(void **state) {
    (void)state;
    sni_pack pack = {0};
    for (int i = 0; i < 20; i++) memset(alloc(&pack, PIECE), 0xff, PIECE);
    for (int i = 0; i < 20; i++) assert_false(pack.blobs[i].in_slab);
    sni_pack_clear(&pack);
}

/* The copy in which subnormal weights are 0 counts against the limit for as long as it is borrowed.
 */
static void copies_of_weights_are_charged(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    const int64_t count = COUNT;
    sni_store *store;
    sni_const *weights;
    sn_error err = {0};
    assert_int_equal(sni_store_new(NULL, 0, &store, &err), SN_OK);
    assert_int_equal(sni_const_new(store, SN_FLOAT32, 1, &count, &weights, &err), SN_OK);
    for (int i = 0; i < COUNT; i++) ((float *)weights->tensor.data)[i] = i % 2 ? 1e-40f : 1;
    for (size_t limit = COUNT * sizeof(float) - 1; limit <= COUNT * sizeof(float); limit++) {
        sni_budget budget = {.limit = limit};
        sni_pack pack = {.budget = &budget};
        sni_borrows borrows = {.count = 0};
        sni_choice c = {.constants = &weights, .n_in = 1, .pack = &pack, .borrows = &borrows};
        const sni_borrow *borrow;
        bool fits = limit == COUNT * sizeof(float);
        assert_int_equal(sni_pack_borrow(&c, 0, false, &borrow, &err), fits ? SN_OK : SN_LIMIT);
        assert_int_equal(budget.used, fits ? limit : 0);
        for (int i = 0; fits && i < COUNT; i++)
            assert_true(((const float *)borrow->tensor.data)[i] == (i % 2 ? 0 : 1));
        for (int i = 0; i < borrows.count; i++) sni_borrow_end(&borrows.of[i]);
        assert_int_equal(budget.used, 0);
    }
    sni_store_release(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_apart),
        cmocka_unit_test(room_comes_back),
        cmocka_unit_test(works_without_a_slab),
        cmocka_unit_test(copies_of_weights_are_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
