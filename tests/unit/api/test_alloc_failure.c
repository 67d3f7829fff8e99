/* test_alloc_failure.c - every allocation of loading, planning and running a model fails once:
 * each time the library says so, and gives back all it had taken. */
#include "unit.h"

#include "cpu/gemm/gemm.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/gemm/matmul_algorithms.h"
#include "sinter.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The linker sends the library's allocations here (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);

static atomic_long allocations; /* asked for since the count began */
static atomic_long live;        /* given and not freed */
static atomic_long fail_at;     /* the number of the one that fails; 0: none */
static atomic_bool fail_on;     /* those after it fail, too */

static bool refused(void) {
    long number = atomic_fetch_add(&allocations, 1) + 1, at = fail_at;
    return at && (number == at || (fail_on && number > at));
}

static void *given(void *p) {
    if (p) atomic_fetch_add(&live, 1);
    return p;
}

void *__wrap_malloc(size_t size) {
    return refused() ? NULL : given(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return refused() ? NULL : given(__real_calloc(count, size));
}

void *__wrap_aligned_alloc(size_t align, size_t size) {
    return refused() ? NULL : given(__real_aligned_alloc(align, size));
}

void *__wrap_realloc(void *p, size_t size) {
    if (refused()) return NULL;
    void *larger = __real_realloc(p, size);
    return p ? larger : given(larger);
}

void __wrap_free(void *p) {
    if (p) atomic_fetch_sub(&live, 1);
    __real_free(p);
}

char *__wrap_strndup(const char *text, size_t most) {
    size_t n = strnlen(text, most);
    char *copy = __wrap_malloc(n + 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

char *__wrap_strdup(const char *text) {
    return __wrap_strndup(text, strlen(text));
}

/* A model with most kinds of things in it, as text. */
static const char text_model[] =
    "<ir_version: 9, opset_import: [\"\" : 18, \"local\" : 1], producer_name: \"a \\\"b\\\"\">"
    "g (float[N,2] X) => (float[N,2] Y, string[1] S, float[] L)"
    "<float[2,2] W = {1, 2, 3, 4}, string[1] T = {\"text\"}, int64 M = {3}, bool C = {true}> {"
    "  A = MatMul(X, W)"
    "  B = local.Scale <factor = 2.0> (A)"
    "  D = Shape(B)"
    "  E = Reshape(B, D)"
    "  Y = Softmax <axis = -1> (E)"
    "  S = Identity(T)"
    "  L = Loop (M, C, Y) <"
    "    body = b (int64 i, bool c, float[] s) => (bool c2, float[] s2) {"
    "      c2 = Identity(c)"
    "      s2 = If (c) <"
    "        then_branch = t () => (float[] p) { p = Concat <axis = 0> (s, X) },"
    "        else_branch = e () => (float[] q) { q = Add(s, A) }"
    "      >"
    "    }"
    "  >"
    "}"
    "<domain: \"local\", opset_import: [\"\" : 18]>"
    "Scale <factor> (P) => (Q) { F = Constant <value_float : float = @factor> () Q = Mul(P, F) }";

static int count_bytes(void *ctx, const void *bytes, size_t size) {
    (void)bytes;
    *(size_t *)ctx += size;
    return 0;
}

/* Loads the model (NULL: the one above), runs it on zeros of its input's shape (unknown dimensions
 * are 1), writes it, and takes everything down again. */
static sn_status whole_life(const char *path, sn_error *err) {
    sn_model *model = NULL;
    sn_session *session = NULL;
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.threads = 1;
    sn_binding in = {NULL, NULL}, out[3] = {{NULL, NULL}};
    sn_value_info info;
    size_t written = 0;
    sn_status status = path ? sn_model_load(path, NULL, &model, err)
                            : sn_model_load_text(text_model, strlen(text_model), &model, err);
    if (status == SN_OK) status = sn_model_input(model, 0, &info, err);
    for (int i = 0; status == SN_OK && i < info.rank; i++)
        if (info.dims[i] < 0) info.dims[i] = 1;
    if (status == SN_OK) status = sn_session_create(model, &options, &session, err);
    if (status == SN_OK)
        status = sn_tensor_create(info.dtype, info.rank, info.dims, &in.value, err);
    if (status == SN_OK)
        status = sn_session_run(session, NULL, &in, 1, out, sn_model_output_count(model), err);
    if (status == SN_OK) status = sn_model_write(model, SN_FORMAT_TEXT, count_bytes, &written, err);
    if (status == SN_OK) status = sn_model_write(model, SN_FORMAT_ONNX, count_bytes, &written, err);
    sn_value_destroy(in.value);
    for (int i = 0; i < 3; i++) sn_value_destroy(out[i].value);
    sn_session_destroy(session);
    sn_model_destroy(model);
    return status;
}

/* `step` above 1 leaves some out, to save time. */
static void fail_each(const char *path, bool all_after, long step) {
    sn_error err = {0};
    fail_at = 0;
    assert_int_equal(whole_life(path, &err), SN_OK); /* what is made once is made now */
    allocations = 0;
    assert_int_equal(whole_life(path, &err), SN_OK);
    long needed = allocations, before = live;
    assert_true(needed > 10);
    fail_on = all_after;
    for (long n = 1; n <= needed; n += step) {
        allocations = 0;
        fail_at = n;
        err = (sn_error){0};
        sn_status status = whole_life(path, &err);
        fail_at = 0;
        if (status != SN_NO_MEMORY && (status != SN_OK || all_after))
            fail_msg("allocation %ld of %ld: %s: %s", n, needed, sn_status_name(status),
                     err.message);
        if (live != before)
            fail_msg("allocation %ld of %ld: %ld blocks were lost", n, needed, live - before);
    }
}

static void digits_once(void **state) {
    (void)state;
    fail_each(SINTER_SOURCE_DIR "/demo/digits.onnx", false, 1);
}

static void digits_from_then_on(void **state) {
    (void)state;
    fail_each(SINTER_SOURCE_DIR "/demo/digits.onnx", true, 7);
}

static void text_once(void **state) {
    (void)state;
    fail_each(NULL, false, 1);
}

static void text_from_then_on(void **state) {
    (void)state;
    fail_each(NULL, true, 3);
}

/* Weights that cannot be measured for inner products (cpu/gemm/inner_product.h), which nobody is
 * told: the products are right all the same. */
static void inner_products_without_memory(void **state) {
    (void)state;
    enum { M = 40, N = 96, K = 128, ROOM = 4096 };
    static _Alignas(64) float a[M * K], b[K * N], c[M * N], packed[2 * K * N], numbers[ROOM];
    static uint8_t tame[ROOM];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i * 37 % 101) - 50;
    for (int i = 0; i < K * N; i++) b[i] = (float)(i * 53 % 103) - 51;
    for (int scaled = 0; scaled < 2; scaled++) {
        assert_true(sni_gemm_packed_b_size(K, N) <= 2 * K * N);
        assert_true(sni_inner_product_numbers(K, N, scaled) <= ROOM &&
                    sni_inner_product_flags(N) <= ROOM);
        sni_gemm_pack_b(b, N, 1, K, N, packed);
        memset(numbers, 0, sizeof numbers); /* as packed weights begin */
        allocations = 0;
        fail_at = 1;
        sni_inner_product_measure(packed, K, N, scaled, numbers, tame);
        fail_at = 0;
        sni_inner_product_b inner_product = {K, N, packed, numbers, tame, scaled};
        sni_gemm_f32 g = {
            .m = M, .n = N, .k = K, .a = a, .a_row = K, .a_col = 1, .c = c, .c_row = N};
        g.packed_b = packed;
        g.inner_product = &inner_product;
        g.use = sni_gemm_algorithm_named("inner-product"); /* whatever it costs here */
        size_t size = (sni_gemm_scratch_size(&g, 1) * sizeof(float) + 63) / 64 * 64;
        float *scratch = aligned_alloc(64, size);
        assert_non_null(scratch);
        sni_gemm_f32_run(&g, 1, scratch);
        free(scratch);
        for (int i = 0; i < M * N; i++) {
            double sum = 0;
            for (int p = 0; p < K; p++) sum += (double)a[i / N * K + p] * (double)b[p * N + i % N];
            if (!(fabs((double)c[i] - sum) <= 0.1))
                fail_msg("element %d is %g, not %g (scaled: %d)", i, (double)c[i], sum, scaled);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_once),
        cmocka_unit_test(text_from_then_on),
        cmocka_unit_test(digits_once),
        cmocka_unit_test(digits_from_then_on),
        cmocka_unit_test(inner_products_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
