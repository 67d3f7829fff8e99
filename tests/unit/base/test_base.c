/* test_base.c - arenas, checked sizes, element types, errors, budgets and values. */
#include "unit.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/tensor.h"

/* ---- Arenas ---- */

static void arena_memory_is_zero_and_aligned(void **state) {
    (void)state;
    sni_arena arena;
    sni_arena_init(&arena, 0);
    for (size_t size = 0; size < 5000; size += 37) {
        unsigned char *p = sni_arena_alloc(&arena, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    sni_str text = sni_arena_printf(&arena, "%s %d", "a", 7);
    assert_true(sni_str_is(text, "a 7"));
    assert_int_equal(sni_arena_str(&arena, SNI_STR("xy")).p[2], 0);
    sni_arena_free(&arena);
    assert_non_null(sni_arena_alloc(&arena, 1));
    sni_arena_free(&arena);
}

static void arena_keeps_its_limit(void **state) {
    (void)state;
    sni_arena arena;
    sni_arena_init(&arena, 1000);
    assert_non_null(sni_arena_alloc(&arena, 900));
    assert_false(arena.over_limit);
    assert_null(sni_arena_alloc(&arena, 200));
    assert_true(arena.over_limit);
    assert_null(sni_arena_alloc(&arena, SIZE_MAX));
    assert_null(sni_arena_array(&arena, SIZE_MAX / 2, 4));
    sni_arena_free(&arena);
}

/* ---- Sizes ---- */

static void shapes_are_counted_with_care(void **state) {
    (void)state;
    int64_t count;
    assert_true(sni_shape_count(3, (int64_t[]){2, 3, 4}, &count) && count == 24);
    assert_true(sni_shape_count(0, NULL, &count) && count == 1);
    assert_true(sni_shape_count(2, (int64_t[]){0, 5}, &count) && count == 0);
    assert_false(sni_shape_count(2, (int64_t[]){-1, 5}, &count));
    int64_t huge = (int64_t)1 << 40;
    assert_false(sni_shape_count(2, (int64_t[]){huge, huge}, &count));
    assert_false(sni_shape_count(3, (int64_t[]){huge, 0, huge}, &count));
}

/* ---- Element types ---- */

static void types_by_name(void **state) {
    (void)state;
    assert_int_equal(sni_dtype_find(SNI_STR("float")), SN_FLOAT32);
    assert_int_equal(sni_dtype_find(SNI_STR("float64")), SN_FLOAT64);
    assert_int_equal(sni_dtype_find(SNI_STR("double")), SN_FLOAT64);
    assert_int_equal(sni_dtype_find(SNI_STR("floaty")), SN_UNDEFINED);
    assert_string_equal(sn_dtype_name(SN_INT4), "int4");
    assert_string_equal(sn_dtype_name((sn_dtype)999), "undefined");
    assert_int_equal(sn_dtype_bytes(SN_INT4, 3), 2);
    assert_int_equal(sn_dtype_bytes(SN_UINT2, 5), 2);
    assert_int_equal(sn_dtype_bytes(SN_FLOAT64, 3), 24);
    assert_int_equal(sn_dtype_bytes(SN_FLOAT64, SIZE_MAX), SIZE_MAX);
    assert_int_equal(sn_dtype_bytes(SN_STRING, 3), 0);
    for (int i = 1; i < SNI_DTYPE_COUNT; i++) assert_true(sni_dtype_valid((sn_dtype)i));
    assert_false(sni_dtype_valid(SN_UNDEFINED));
}

static void small_types_pack(void **state) {
    (void)state;
    const uint8_t packed4[] = {0x8f, 0x07}; /* 15 8 7 */
    const uint8_t packed2[] = {0x9c, 0x01}; /* 0 3 1 2 1 */
    uint8_t out[5], back[2];
    sni_subbyte_unpack(SN_UINT4, packed4, out, 3);
    assert_memory_equal(out, ((uint8_t[]){15, 8, 7}), 3);
    sni_subbyte_unpack(SN_INT4, packed4, out, 3);
    assert_memory_equal(out, ((int8_t[]){-1, -8, 7}), 3);
    sni_subbyte_pack(SN_INT4, out, back, 3);
    assert_memory_equal(back, packed4, 2);
    sni_subbyte_unpack(SN_UINT2, packed2, out, 5);
    assert_memory_equal(out, ((uint8_t[]){0, 3, 1, 2, 1}), 5);
    sni_subbyte_unpack(SN_INT2, packed2, out, 5);
    assert_memory_equal(out, ((int8_t[]){0, -1, 1, -2, 1}), 5);
    sni_subbyte_pack(SN_INT2, out, back, 5);
    assert_memory_equal(back, packed2, 2);
}

/* ---- Errors ---- */

static void errors_gain_context(void **state) {
    (void)state;
    sn_error err;
    assert_int_equal(sni_fail(&err, SN_BAD_DATA, "index %d", 5), SN_BAD_DATA);
    assert_int_equal(sni_fail_context(&err, SN_BAD_DATA, "node '%s'", "x"), SN_BAD_DATA);
    assert_string_equal(err.message, "node 'x': index 5");
    assert_int_equal(err.status, SN_BAD_DATA);
    for (int i = 0; i < 100; i++) sni_fail_context(&err, SN_IO, "0123456789");
    assert_true(strlen(err.message) < sizeof err.message);
    assert_int_equal(sni_fail(NULL, SN_IO, "x"), SN_IO);
    assert_int_equal(sni_fail_context(NULL, SN_IO, "x"), SN_IO);
    assert_string_equal(sn_status_name(SN_TIMEOUT), "timed out");
    assert_string_equal(sn_status_name((sn_status)99), "unknown status");
}

/* ---- Budgets and values ---- */

static void budgets_bound_memory(void **state) {
    (void)state;
    sni_budget budget = {.limit = 1000};
    sni_tensor t;
    sn_error err;
    int64_t dims[] = {10, 10};
    assert_int_equal(sni_tensor_new(&t, SN_FLOAT32, 2, dims, &budget, &err), SN_OK);
    assert_int_equal(budget.used, 400);
    assert_int_equal((uintptr_t)t.data % SNI_ALIGN, 0);
    sni_tensor more;
    assert_int_equal(sni_tensor_new(&more, SN_FLOAT64, 2, dims, &budget, &err), SN_LIMIT);
    assert_int_equal(budget.used, 400);
    sni_buffer_release(t.buffer);
    assert_int_equal(budget.used, 0);
    assert_int_equal(sni_budget_take(&budget, SIZE_MAX, NULL), SN_LIMIT);
    assert_int_equal(sni_budget_take(NULL, SIZE_MAX, NULL), SN_OK);
}

static void bad_shapes_are_refused(void **state) {
    (void)state;
    sni_tensor t = {0};
    int64_t many[SN_MAX_RANK + 1] = {0}, huge = (int64_t)1 << 50;
    assert_int_equal(sni_tensor_shape(&t, SN_FLOAT32, SN_MAX_RANK + 1, many, NULL), SN_LIMIT);
    assert_int_equal(sni_tensor_shape(&t, SN_FLOAT32, 1, (int64_t[]){-3}, NULL), SN_BAD_DATA);
    assert_int_equal(sni_tensor_shape(&t, SN_FLOAT32, 1, &huge, NULL), SN_LIMIT);
    assert_int_equal(t.dtype, SN_UNDEFINED);
}

static void values_are_shared(void **state) {
    (void)state;
    sni_budget budget = {0};
    float numbers[] = {1, 2, 3};
    int64_t three = 3;
    sni_datum borrowed = {.kind = SN_KIND_TENSOR}, copy = {0}, again = {0};
    assert_int_equal(sni_tensor_shape(&borrowed.tensor, SN_FLOAT32, 1, &three, NULL), SN_OK);
    borrowed.tensor.data = numbers;
    assert_int_equal(sni_datum_share(&copy, &borrowed, &budget, NULL), SN_OK);
    assert_ptr_not_equal(copy.tensor.data, numbers);
    assert_int_equal(sni_datum_share(&again, &copy, &budget, NULL), SN_OK);
    assert_ptr_equal(again.tensor.data, copy.tensor.data);
    assert_int_equal(budget.used, 12);

    sni_datum list = {.kind = SN_KIND_SEQUENCE}, other = {0};
    assert_int_equal(sni_sequence_new(2, SN_FLOAT32, &list.seq, NULL), SN_OK);
    list.seq->items[0] = copy;
    list.seq->items[1] = again;
    assert_int_equal(sni_datum_share(&other, &list, &budget, NULL), SN_OK);
    sni_datum_clear(&list);
    assert_int_equal(list.kind, SN_KIND_NONE);
    assert_int_equal(((const float *)other.seq->items[1].tensor.data)[2], 3);
    assert_int_equal(budget.used, 12);
    sni_datum_clear(&other);
    assert_int_equal(budget.used, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_memory_is_zero_and_aligned),
        cmocka_unit_test(arena_keeps_its_limit),
        cmocka_unit_test(shapes_are_counted_with_care),
        cmocka_unit_test(types_by_name),
        cmocka_unit_test(small_types_pack),
        cmocka_unit_test(errors_gain_context),
        cmocka_unit_test(budgets_bound_memory),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(values_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
