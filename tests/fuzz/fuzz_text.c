/* fuzz_text.c - any bytes as ONNX text: read, print, run. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_model *model = NULL;
    sn_error err;
    if (sn_model_load_text((const char *)data, size, &model, &err) == SN_OK) {
        fuzz_write(model);
        fuzz_model(model, true);
    }
    sn_model_destroy(model);
    return 0;
}
