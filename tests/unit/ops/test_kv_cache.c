/* test_kv_cache.c - caches of keys and values: what integers stand for, and a tensor that is both
 * the past and the present one. */
#include "unit.h"

#include "base/floats.h"
#include "ops/attention/kv_cache.h"
#include "sinter.h"

#include <math.h>
#include <stdio.h>

/* ---- What is stored ---- */

/* Halves go to even numbers, what is outside saturates, NaN is the greatest, scale 0 counts as 1.
 */
static void integers_round_and_saturate(void **state) {
    (void)state;
    const float row[9] = {0.5f, 1.5f, -2.5f, 300, -300, NAN, INFINITY, -INFINITY, 3};
    const float scale[9] = {1, 1, 1, 1, 1, 1, 1, 1, 0};
    const int8_t want[9] = {0, 2, -2, 127, -128, 127, 127, -128, 3};
    const int pairs[9] = {0, 2, -2, 7, -8, 7, 7, -8, 3};
    int8_t bytes[9];
    uint8_t packed[5];
    sni_kv_store(SN_INT8, scale, row, 9, bytes);
    assert_memory_equal(bytes, want, sizeof want);
    sni_kv_store(SN_UINT8, scale, row, 9, packed);
    for (int i = 0; i < 9; i++) assert_int_equal((packed[i / 2] >> i % 2 * 4 & 15) - 8, pairs[i]);
    assert_int_equal(packed[4] >> 4, 8); /* of the place that is left over */
}

static void rows_are_read_back(void **state) {
    (void)state;
    const float row[5] = {-8, -1, 0, 1, 7}, scale[5] = {1, 2, 3, 0.5f, 1};
    const float scaled[5] = {-8, -2, 0, 0.5f, 7};
    static const sn_dtype types[] = {SN_UNDEFINED, SN_FLOAT16, SN_BFLOAT16, SN_INT8, SN_UINT8};
    for (int t = 0; t < 5; t++) {
        const bool whole = types[t] == SN_INT8 || types[t] == SN_UINT8;
        float stored[5], back[5];
        sni_heads h = sni_heads_outer(stored, 1, 1, sni_kv_units(types[t], 5));
        h.stored = types[t];
        h.scale = whole ? scale : NULL;
        if (types[t])
            sni_kv_store(types[t], scale, whole ? scaled : row, 5, stored);
        else
            memcpy(stored, row, sizeof row);
        sni_kv_load(&h, 0, 0, 0, 5, back);
        assert_memory_equal(back, whole ? scaled : row, sizeof row);
    }
}

/* ---- Appending in place ---- */

enum { BATCH = 2, HEADS = 4, GROUPS = 2, SIZE = 8, ROWS = 12, TOKENS = 9 };

typedef struct cache_kind {
    const char *element, *attributes, *scales;
    sn_dtype dtype;
    int row;
} cache_kind;

static const cache_kind kinds[] = {
    {"float", "", "", SN_FLOAT32, SIZE},
    {"float16", "", "", SN_FLOAT16, SIZE},
    {"int8",
     ", k_quant_type = \"PER_TENSOR\", v_quant_type = \"PER_TENSOR\", kv_cache_bit_width = 8",
     ", \"\", \"\", \"\", \"\", \"\", KS, VS", SN_INT8, SIZE},
    {"uint8",
     ", k_quant_type = \"PER_TENSOR\", v_quant_type = \"PER_TENSOR\", kv_cache_bit_width = 4",
     ", \"\", \"\", \"\", \"\", \"\", KS, VS", SN_UINT8, SIZE / 2},
};

static sn_session *session_of(const cache_kind *kind) {
    const char *type = kind->dtype == SN_FLOAT16 ? "float16" : "float";
    char text[2048];
    sn_model *model;
    sn_session *session;
    sn_error err = {0};
    int n = snprintf(text, sizeof text,
                     "<ir_version: 8, opset_import: [\"\": 17, \"com.microsoft\": 1]>\n"
                     "g (%s[2,1,32] Q, %s[2,1,16] K, %s[2,1,16] V, %s[2,2,p,%d] PK, "
                     "%s[2,2,p,%d] PV, int32[2] L, int32[1] T, float[1] KS = {0.1}, "
                     "float[1] VS = {0.25}) => (%s[2,1,32] Y, %s[2,2,q,%d] NK, %s[2,2,q,%d] NV) {\n"
                     "  Y, NK, NV = com.microsoft.GroupQueryAttention <num_heads = 4, "
                     "kv_num_heads = 2%s> (Q, K, V, PK, PV, L, T%s)\n}\n",
                     type, type, type, kind->element, kind->row, kind->element, kind->row, type,
                     kind->element, kind->row, kind->element, kind->row, kind->attributes,
                     kind->scales);
    if (sn_model_load_text(text, (size_t)n, &model, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_session_create(model, NULL, &session, &err) != SN_OK) fail_msg("%s", err.message);
    sn_model_destroy(model);
    return session;
}

static sn_value *tensor(sn_dtype dtype, int rank, const int64_t *dims, int filling) {
    sn_value *v;
    sn_error err = {0};
    if (sn_tensor_create(dtype, rank, dims, &v, &err) != SN_OK) fail_msg("%s", err.message);
    memset(sn_tensor_data(v), filling, sn_tensor_bytes(v));
    return v;
}

static sn_value *numbers(sn_dtype dtype, int64_t width, int seed) {
    sn_value *v = tensor(dtype, 3, (int64_t[]){BATCH, 1, width}, 0);
    for (int i = 0; i < BATCH * width; i++) {
        float x = (float)((i * 37 + seed * 91) % 64) / 32 - 1;
        if (dtype == SN_FLOAT32)
            ((float *)sn_tensor_data(v))[i] = x;
        else
            ((uint16_t *)sn_tensor_data(v))[i] = sni_f32_to_f16(x);
    }
    return v;
}

/* Token `t` with the caches past[0] and past[1]; outputs whose values are given are filled. */
static void decode(sn_session *s, const cache_kind *kind, int t, sn_value *const past[2],
                   sn_binding out[3]) {
    const sn_dtype type = kind->dtype == SN_FLOAT16 ? SN_FLOAT16 : SN_FLOAT32;
    static const char *const names[] = {"Q", "K", "V", "PK", "PV", "L", "T"};
    sn_binding in[7];
    sn_error err = {0};
    in[0].value = numbers(type, HEADS * SIZE, 3 * t);
    in[1].value = numbers(type, GROUPS * SIZE, 3 * t + 1);
    in[2].value = numbers(type, GROUPS * SIZE, 3 * t + 2);
    in[3].value = past[0];
    in[4].value = past[1];
    in[5].value = tensor(SN_INT32, 1, (int64_t[]){BATCH}, 0);
    in[6].value = tensor(SN_INT32, 1, (int64_t[]){1}, 0);
    for (int b = 0; b < BATCH; b++) ((int32_t *)sn_tensor_data(in[5].value))[b] = t > 0 ? t - b : t;
    *(int32_t *)sn_tensor_data(in[6].value) = t + 1;
    for (int i = 0; i < 7; i++) in[i].name = names[i];
    if (sn_session_run(s, NULL, in, 7, out, 3, &err) != SN_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 7; i++)
        if (i != 3 && i != 4) sn_value_destroy(in[i].value);
}

/* The same tokens with a copied cache and with one in place give the same; rows behind the last
 * token stay as they are. */
static void one_tensor_is_past_and_present(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const cache_kind *kind = &kinds[i];
        const int64_t dims[4] = {BATCH, GROUPS, ROWS, kind->row};
        sn_session *s = session_of(kind);
        sn_value *copied[2], *kept[2];
        for (int c = 0; c < 2; c++) {
            copied[c] = tensor(kind->dtype, 4, dims, 0);
            kept[c] = tensor(kind->dtype, 4, dims, 0x3c);
        }
        for (int t = 0; t < TOKENS; t++) {
            sn_binding apart[3] = {{"Y", NULL}, {"NK", NULL}, {"NV", NULL}};
            sn_binding same[3] = {{"Y", NULL}, {"NK", kept[0]}, {"NV", kept[1]}};
            decode(s, kind, t, copied, apart);
            decode(s, kind, t, kept, same);
            assert_memory_equal(sn_tensor_data(same[0].value), sn_tensor_data(apart[0].value),
                                sn_tensor_bytes(apart[0].value));
            for (int c = 0; c < 2; c++) {
                sn_value_destroy(copied[c]);
                copied[c] = apart[c + 1].value;
            }
            sn_value_destroy(apart[0].value);
            sn_value_destroy(same[0].value);
        }
        const size_t head = sn_tensor_bytes(kept[0]) / (BATCH * GROUPS),
                     used = head * TOKENS / ROWS;
        for (int c = 0; c < 2; c++)
            for (size_t h = 0; h < BATCH * GROUPS; h++) {
                const unsigned char *got = sn_tensor_data(kept[c]),
                                    *want = sn_tensor_data(copied[c]);
                assert_memory_equal(got + h * head, want + h * head, used);
                for (size_t at = used; at < head; at++) assert_int_equal(got[h * head + at], 0x3c);
            }
        for (int c = 0; c < 2; c++) {
            sn_value_destroy(copied[c]);
            sn_value_destroy(kept[c]);
        }
        sn_session_destroy(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_round_and_saturate),
        cmocka_unit_test(rows_are_read_back),
        cmocka_unit_test(one_tensor_is_past_and_present),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
