/* fuzz_compiled.c - any bytes as a compiled model whose header and checksums fit them, as somebody
 * with bad intentions would write it: read, plan, run, verify. */
#include "fuzz.h"

#include "base/cpu.h"
#include "exec/compiled_format.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <sys/mman.h>

/* Makes header and checksums say what stands in the file. */
static void seal(unsigned char *bytes, size_t size) {
    sni_compiled_header h;
    memcpy(&h, bytes, sizeof h);
    memcpy(h.magic, SNI_COMPILED_MAGIC, sizeof h.magic);
    h.format = SNI_COMPILED_FORMAT;
    h.order = SNI_COMPILED_ORDER;
    h.pack_version = SNI_PACK_VERSION;
    snprintf(h.version, sizeof h.version, "%s", sn_version());
    snprintf(h.isa, sizeof h.isa, "%s", sni_isa_name(sni_cpu_isa()));
    h.file_size = size;
    for (int i = 0; i < SNI_PARTS; i++) {
        sni_section *s = &h.parts[i];
        if (s->offset <= size && s->size <= size - s->offset)
            s->checksum = sni_checksum(0, bytes + s->offset, (size_t)s->size);
    }
    h.checksum = sni_checksum(0, &h, offsetof(sni_compiled_header, checksum));
    memcpy(bytes, &h, sizeof h);
}

static void try_out(const unsigned char *bytes, size_t size, bool verify) {
    sn_load_options options;
    sn_load_options_init(&options, sizeof options);
    options.memory_limit = 64 << 20;
    options.verify = verify;
    sn_model *model = NULL;
    sn_error err;
    if (sn_model_load_memory(bytes, size, &options, &model, &err) == SN_OK) {
        fuzz_write(model);
        fuzz_model(model, true);
    }
    sn_model_destroy(model);
}

/* As a mapped file is: pages that can be read and not written, aligned, so that its packed blobs
 * are used where they stand. */
static void try_sealed(const uint8_t *data, size_t size) {
    enum { PAGE = 4096 };
    size_t whole = (size + PAGE - 1) / PAGE * PAGE;
    unsigned char *bytes =
        mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return;
    memcpy(bytes, data, size);
    seal(bytes, size);
    mprotect(bytes, whole, PROT_READ);
    ASAN_POISON_MEMORY_REGION(bytes + size, whole - size);
    try_out(bytes, size, false);
    ASAN_UNPOISON_MEMORY_REGION(bytes, whole);
    munmap(bytes, whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < sizeof(sni_compiled_header)) return 0;
    try_sealed(data, size);
    try_out(data, size, true); /* as it came */
    return 0;
}
