/* cache.c - compiled forms of models in a folder. */
#include "api/cache.h"

#include "base/cpu.h"
#include "base/mapping.h"
#include "exec/compiled_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Names ---- */

/* Two running sums that start apart: 128 bits together. */
typedef struct digest {
    uint64_t a, b;
} digest;

static void add(digest *d, const void *bytes, size_t size) {
    uint64_t length = size; /* so that neighbours cannot trade bytes */
    d->a = sni_checksum(sni_checksum(d->a, &length, sizeof length), bytes, size);
    d->b = sni_checksum(sni_checksum(d->b ^ d->a, &length, sizeof length), bytes, size);
}

static void add_text(digest *d, const char *text) {
    add(d, text, strlen(text));
}

static void add_number(digest *d, uint64_t number) {
    add(d, &number, sizeof number);
}

static void add_files(digest *d, const sni_model *m) {
    for (size_t i = 0; i < m->n_mappings; i++) {
        sni_file_identity id = sni_mapping_identity(m->mappings[i]);
        add(d, &id, sizeof id);
    }
}

bool sni_cache_path(const sn_model *model, const sn_session_options *options, char *path,
                    size_t size) {
    const sn_session_options *o = options;
    digest d = {1, 2};
    if (!model->cacheable || model->is_compiled) return false;
    add_number(&d, SNI_COMPILED_FORMAT);
    add_number(&d, SNI_PACK_VERSION);
    add_text(&d, sn_version());
    add_text(&d, sni_isa_name(sni_cpu_isa()));
    for (int level = 1; level <= 2; level++) add_number(&d, sni_cpu_cache(level));
    add_number(&d, (uint64_t)o->optimize);
    add_number(&d, o->portable);
    for (size_t i = 0; i < o->disabled_rule_count; i++) add_text(&d, o->disabled_rules[i]);
    add_number(&d, model->sizes);
    if (model->bytes)
        add(&d, model->bytes, model->byte_count);
    else
        add_files(&d, model->model);
    int n = snprintf(path, size, "%s/%016llx%016llx.sinter", o->cache_folder,
                     (unsigned long long)d.a, (unsigned long long)d.b);
    return n > 0 && (size_t)n < size;
}

/* ---- Reading ---- */

static bool same_ports(const sni_port *a, size_t n_a, const sni_port *b, size_t n_b) {
    if (n_a != n_b) return false;
    for (size_t i = 0; i < n_a; i++)
        if (strcmp(a[i].info.name, b[i].info.name) != 0 || a[i].graph_index != b[i].graph_index ||
            a[i].info.dtype != b[i].info.dtype || a[i].info.kind != b[i].info.kind ||
            a[i].optional != b[i].optional)
            return false;
    return true;
}

/* Inputs that callers must give; the others, which come behind them, are constants once compiled.
 */
static size_t required_inputs(const sn_model *m) {
    size_t n = 0;
    while (n < m->n_inputs && !m->inputs[n].optional) n++;
    return n;
}

sn_model *sni_cache_open(const char *path, const sn_model *like) {
    sn_model *m;
    sn_status status = sn_model_load(path, NULL, &m, NULL);
    if (status == SN_OK && m->is_compiled &&
        same_ports(m->inputs, m->n_inputs, like->inputs, required_inputs(like)) &&
        same_ports(m->outputs, m->n_outputs, like->outputs, like->n_outputs))
        return m;
    if (status == SN_OK) sn_model_destroy(m);
    if (status != SN_NOT_FOUND && status != SN_NO_MEMORY) unlink(path);
    return NULL;
}

/* ---- Writing ---- */

static int write_some(void *ctx, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, ctx) != size;
}

static sn_status fail_write(const char *path, sn_error *err) {
    char text[64];
    return sni_fail(err, SN_IO, "cannot write %s: %s", path, strerror_r(errno, text, sizeof text));
}

sn_status sni_cache_write(const char *path, sn_session *session, sn_error *err) {
    size_t length = strlen(path);
    char *temporary = malloc(length + 8);
    if (!temporary) return sni_fail_memory(err);
    memcpy(temporary, path, length);
    memcpy(temporary + length, ".XXXXXX", 8);
    int fd = mkstemp(temporary);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (f) setvbuf(f, NULL, _IONBF, 0); /* it comes in large pieces, which should stay whole */
    sn_status status = f ? sn_session_compile(session, write_some, f, err) : fail_write(path, err);
    if (fd >= 0 && !f) close(fd);
    if (status == SN_OK && (fflush(f) != 0 || fdatasync(fd) != 0)) status = fail_write(path, err);
    if (f && fclose(f) != 0 && status == SN_OK) status = fail_write(path, err);
    if (status == SN_OK && rename(temporary, path) != 0) status = fail_write(path, err);
    if (status != SN_OK && fd >= 0) unlink(temporary);
    free(temporary);
    return status;
}
