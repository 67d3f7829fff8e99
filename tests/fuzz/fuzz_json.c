/* fuzz_json.c - any bytes as a JSON request and as a model configuration, in both its forms. */
#include "server/engine/config.h"
#include "server/api/json_in.h"
#include "server/api/tensor_json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads one array into a tensor of each type in turn. */
static void read_tensor(const char *text, size_t size, sn_dtype dtype) {
    sni_arena arena;
    sn_error err;
    srv_json_in in;
    char memory[64 * 16];
    srv_input input = {.dtype = dtype, .rank = 1, .dims = {4}, .count = 4, .memory = memory};
    sni_arena_init(&arena, 1 << 20);
    srv_json_open(&in, text, size, &arena, &err);
    if (dtype == SN_STRING) {
        int64_t dims[1] = {4};
        sn_tensor_create(SN_STRING, 1, dims, &input.value, NULL);
    }
    srv_tensor_read(&in, &input);
    srv_json_close(&in);
    sn_value_destroy(input.value);
    sni_arena_free(&arena);
}

static void read_config(const char *text, size_t size, bool json) {
    srv_config config;
    sn_error err;
    srv_config_init(&config);
    if (json) {
        srv_config_json(&config, text, size, &err);
    } else {
        srv_config_pbtxt(&config, text, size, &err);
    }
    srv_config_free(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > 1 << 16) return 0;
    char *text = srv_strndup((const char *)data + 1, size - 1);
    if (!text) return 0;
    static const sn_dtype types[] = {SN_FLOAT32, SN_FLOAT64, SN_FLOAT16, SN_INT8,
                                     SN_UINT64,  SN_BOOL,    SN_STRING,  SN_BFLOAT16};
    switch (data[0] % 3) {
    case 0:
        read_config(text, size - 1, true);
        break;
    case 1:
        read_config(text, size - 1, false);
        break;
    default:
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
            read_tensor(text, size - 1, types[i]);
        }
    }
    free(text);
    return 0;
}
