/* fuzz_run.c - any bytes as a model file that is run on made-up inputs. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_load_options options;
    sn_load_options_init(&options, sizeof options);
    options.memory_limit = 64 << 20;
    options.borrow = true;
    sn_model *model = NULL;
    sn_error err;
    if (sn_model_load_memory(data, size, &options, &model, &err) == SN_OK) fuzz_model(model, true);
    sn_model_destroy(model);
    return 0;
}
