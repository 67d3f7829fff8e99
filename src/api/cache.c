/* cache.c - compiled forms of models in a folder. */
#include "api/cache.h"

#include "base/cpu.h"
#include "base/mapping.h"
#include "exec/compiled_format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Names ---- */

/* Two running sums that start apart: 128 bits together. */
typedef struct digest {
    uint64_t a, b;
} digest;

/* Adds something to what the name is made of. */
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

/* The identity of every mapped file: device, inode, size, time of change. Contents are not read. */
static void add_files(digest *d, const sni_model *m) {
    for (size_t i = 0; i < m->n_mappings; i++) {
        sni_file_identity id = sni_mapping_identity(m->mappings[i]);
        add(d, &id, sizeof id);
    }
}

/* Everything that decides what a compiled model holds goes into its name: so a file found under it
 * needs no further comparison but that of the ports. */
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
    add_number(&d, (uint64_t)o->precision);
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

/* Whether a compiled model can be called as the original is. */
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

/* Sets the time of the last access, which evict() goes by. That of the last change stays: those
 * who have the file mapped watch it. */
static void note_use(const char *path) {
    const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    utimensat(AT_FDCWD, path, now, 0);
}

sn_model *sni_cache_open(const char *path, const sn_model *like) {
    sn_model *m;
    sn_status status = sn_model_load(path, NULL, &m, NULL);
    if (status == SN_OK && m->is_compiled &&
        same_ports(m->inputs, m->n_inputs, like->inputs, required_inputs(like)) &&
        same_ports(m->outputs, m->n_outputs, like->outputs, like->n_outputs)) {
        note_use(path);
        return m;
    }
    if (status == SN_OK) sn_model_destroy(m);
    if (status != SN_NOT_FOUND && status != SN_NO_MEMORY) unlink(path);
    return NULL;
}

/* ---- Evicting ---- */

enum {
    NAME_DIGITS = 32,    /* of a file's name, before ".sinter" */
    STALE_SECONDS = 3600 /* after which a file that is not whole yet will never be */
};

typedef struct kept_file {
    char name[64];
    uint64_t bytes;
    struct timespec used;
} kept_file;

typedef struct kept_files {
    kept_file *of;
    size_t count, capacity;
} kept_files;

/* True if the name is one of ours; *whole: not that of a file being written. */
static bool is_ours(const char *name, bool *whole) {
    size_t digits = strspn(name, "0123456789abcdef"), length = strlen(name);
    if (digits != NAME_DIGITS || strncmp(name + digits, ".sinter", 7) != 0) return false;
    *whole = length == NAME_DIGITS + 7;
    return *whole || (length == NAME_DIGITS + 14 && name[NAME_DIGITS + 7] == '.');
}

/* False: out of memory. */
static bool keep_in_list(kept_files *list, const char *name, const struct stat *st) {
    if (list->count == list->capacity) {
        size_t more = list->capacity ? list->capacity * 2 : 32;
        kept_file *bigger = realloc(list->of, more * sizeof *bigger);
        if (!bigger) return false;
        list->of = bigger;
        list->capacity = more;
    }
    kept_file *f = &list->of[list->count++];
    bool read =
        st->st_atim.tv_sec > st->st_mtim.tv_sec ||
        (st->st_atim.tv_sec == st->st_mtim.tv_sec && st->st_atim.tv_nsec > st->st_mtim.tv_nsec);
    *f = (kept_file){.bytes = (uint64_t)st->st_size, .used = read ? st->st_atim : st->st_mtim};
    memcpy(f->name, name, strlen(name) + 1); /* is_ours() has seen its length */
    return true;
}

/* The whole files of a folder but `except`. What a process that died left half written goes. */
static bool list_files(DIR *folder, const char *except, kept_files *list) {
    int fd = dirfd(folder);
    time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        struct stat st;
        bool whole;
        if (!is_ours(e->d_name, &whole) || strcmp(e->d_name, except) == 0 ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (!whole && now - st.st_mtim.tv_sec > STALE_SECONDS) unlinkat(fd, e->d_name, 0);
        if (whole && !keep_in_list(list, e->d_name, &st)) return false;
    }
    return true;
}

/* Those unused for longest first. */
static int by_use(const void *a, const void *b) {
    const kept_file *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Removes files, those unused for longest first, until the others and `bytes` are within `limit`.
 */
static sn_status evict(DIR *folder, const char *name, uint64_t bytes, uint64_t limit,
                       sn_error *err) {
    kept_files list = {0};
    uint64_t total = bytes;
    sn_status status = list_files(folder, name, &list) ? SN_OK : sni_fail_memory(err);
    for (size_t i = 0; i < list.count; i++) total += list.of[i].bytes;
    if (list.count) qsort(list.of, list.count, sizeof *list.of, by_use);
    for (size_t i = 0; i < list.count && status == SN_OK && total > limit; i++) {
        if (unlinkat(dirfd(folder), list.of[i].name, 0) != 0 && errno != ENOENT)
            status = sni_fail(err, SN_IO, "cannot remove %s from the cache", list.of[i].name);
        total -= list.of[i].bytes;
    }
    free(list.of);
    return status;
}

/* ---- Writing ---- */

typedef struct output {
    FILE *f;
    uint64_t written, limit; /* limit 0: none */
} output;

/* An sn_write_fn that stops as soon as the limit is passed. */
static int write_some(void *ctx, const void *bytes, size_t size) {
    output *o = ctx;
    o->written += size;
    if (o->limit && o->written > o->limit) return 1;
    return fwrite(bytes, 1, size, o->f) != size;
}

static sn_status fail_write(const char *path, sn_error *err) {
    char text[64];
    return sni_fail(err, SN_IO, "cannot write %s: %s", path, strerror_r(errno, text, sizeof text));
}

/* The whole file, on the disk when it returns. */
static sn_status write_whole(const char *path, int fd, output *o, sn_session *session,
                             sn_error *err) {
    setvbuf(o->f, NULL, _IONBF, 0); /* it comes in large pieces, which should stay whole */
    sn_status status = sn_session_compile(session, write_some, o, err);
    if (o->limit && o->written > o->limit)
        return sni_fail(err, SN_LIMIT, "the compiled model is larger than the limit of %llu bytes",
                        (unsigned long long)o->limit);
    if (status == SN_OK && (fflush(o->f) != 0 || fdatasync(fd) != 0)) return fail_write(path, err);
    return status;
}

/* Gives a file its name, once it fits into the limit. Processes do so one after the other. */
static sn_status put_in_place(const char *temporary, const char *path, const output *o,
                              sn_error *err) {
    const char *name = strrchr(path, '/'); /* paths are made of folder and name */
    sn_status status = SN_OK;
    DIR *folder = NULL;
    if (o->limit) {
        char *parent = strndup(path, (size_t)(name - path));
        folder = parent ? opendir(parent[0] ? parent : "/") : NULL;
        free(parent);
        if (!folder) return fail_write(path, err);
        flock(dirfd(folder), LOCK_EX); /* where that is not possible, more than needed may go */
        status = evict(folder, name + 1, o->written, o->limit, err);
    }
    if (status == SN_OK && rename(temporary, path) != 0) status = fail_write(path, err);
    if (folder) closedir(folder);
    return status;
}

sn_status sni_cache_write(const char *path, uint64_t limit, sn_session *session, sn_error *err) {
    size_t length = strlen(path);
    char *temporary = malloc(length + 8);
    if (!temporary) return sni_fail_memory(err);
    memcpy(temporary, path, length);
    memcpy(temporary + length, ".XXXXXX", 8);
    int fd = mkstemp(temporary);
    output o = {.f = fd >= 0 ? fdopen(fd, "wb") : NULL, .limit = limit};
    sn_status status = o.f ? write_whole(path, fd, &o, session, err) : fail_write(path, err);
    if (fd >= 0 && !o.f) close(fd);
    if (o.f && fclose(o.f) != 0 && status == SN_OK) status = fail_write(path, err);
    if (status == SN_OK) status = put_in_place(temporary, path, &o, err);
    if (status != SN_OK && fd >= 0) unlink(temporary);
    free(temporary);
    return status;
}
