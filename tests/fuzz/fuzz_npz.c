/* fuzz_npz.c - any bytes as numpy's .npz. Members are also read as if their checksum were right,
 * which random changes seldom leave it. */
#include "cli/formats/npz.h"

#ifdef SINTER_HAVE_ZLIB
#include <zlib.h>
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_member(const cli_npz *npz, cli_npz_member member) {
    sn_value *tensor = NULL;
    sn_error err;
    if (member.size > 1 << 22) return; /* memory and time of one input */
    cli_npz_read(npz, &member, &tensor, &err);
    sn_value_destroy(tensor);
#ifdef SINTER_HAVE_ZLIB
    if (member.method != 0 || member.size != member.packed) return;
    member.crc = (uint32_t)crc32(0, (const Bytef *)npz->bytes + member.offset, (uInt)member.packed);
    tensor = NULL;
    cli_npz_read(npz, &member, &tensor, &err);
    sn_value_destroy(tensor);
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cli_npz npz;
    sn_error err;
    if (size > 1 << 16 || cli_npz_open((const char *)data, size, &npz, &err) != SN_OK) return 0;
    for (size_t i = 0; i < npz.count && i < 16; i++) read_member(&npz, npz.members[i]);
    cli_npz_find(&npz, "x");
    cli_npz_close(&npz);
    return 0;
}
