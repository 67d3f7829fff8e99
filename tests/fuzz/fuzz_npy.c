/* fuzz_npy.c - any bytes as numpy's .npy; what could be read is written and read again. */
#include "cli/formats/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was written must be readable, with as many elements. Strings that .npy cannot hold are
 * refused. */
static void write_again(const sn_value *tensor) {
    char *bytes = NULL;
    size_t size = 0;
    sn_error err;
    sn_value *again = NULL;
    FILE *stream = open_memstream(&bytes, &size);
    if (!stream) return;
    bool written = cli_npy_write(tensor, stream, &err) == SN_OK;
    fclose(stream);
    if (written && cli_npy_read(bytes, size, &again, &err) != SN_OK) abort();
    if (written && sn_tensor_count(again) != sn_tensor_count(tensor)) abort();
    sn_value_destroy(again);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sn_value *tensor = NULL;
    sn_error err;
    if (size > 1 << 16) return 0;
    if (cli_npy_read((const char *)data, size, &tensor, &err) == SN_OK) write_again(tensor);
    sn_value_destroy(tensor);
    return 0;
}
