/* fuzz_load.c - any bytes as a model file: read, plan, write. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_load_options options;
    sn_load_options_init(&options, sizeof options);
    options.memory_limit = 64 << 20;
    sn_model *model = NULL;
    sn_error err;
    if (sn_model_load_memory(data, size, &options, &model, &err) == SN_OK) {
        fuzz_write(model);
        fuzz_model(model, false);
    }
    sn_model_destroy(model);
    return 0;
}
