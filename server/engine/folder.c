/* folder.c - where models lie on disk. */
#include "server/engine/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_NAMES 4096
#define MOST_CONFIG (1 << 16)

static sni_str stem_of(const char *path) {
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    size_t length = strlen(base);
    if (length > 5 && strcmp(base + length - 5, ".onnx") == 0) length -= 5;
    return (sni_str){base, length};
}

sn_status srv_folder_open(srv_folder *folder, const char *path, sn_error *err) {
    struct stat info;
    *folder = (srv_folder){0};
    if (stat(path, &info) != 0) {
        return sni_fail(err, errno == ENOENT ? SN_NOT_FOUND : SN_IO, "%s: %s", path,
                        strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        DIR *dir = opendir(path);
        if (!dir) return sni_fail(err, SN_IO, "%s: %s", path, strerror(errno));
        closedir(dir);
        folder->root = strdup(path);
        return folder->root ? SN_OK : sni_fail_memory(err);
    }
    sni_str stem = stem_of(path);
    if (!srv_folder_valid_name(stem)) {
        return sni_fail(err, SN_INVALID_ARGUMENT, "'%.*s' cannot be a model's name", SNI_FMT(stem));
    }
    const char *slash = strrchr(path, '/');
    folder->single = srv_strndup(stem.p, stem.n);
    folder->file = strdup(path);
    folder->root = slash ? srv_strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    if (folder->single && folder->file && folder->root) return SN_OK;
    srv_folder_close(folder);
    return sni_fail_memory(err);
}

void srv_folder_close(srv_folder *folder) {
    free(folder->root);
    free(folder->single);
    free(folder->file);
    *folder = (srv_folder){0};
}

bool srv_folder_valid_name(sni_str name) {
    if (name.n == 0 || name.n > 128 || name.p[0] == '.') return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.';
        if (!good) return false;
    }
    return true;
}

static char *join(const char *a, const char *b, const char *c) {
    size_t size = strlen(a) + strlen(b) + strlen(c) + 3;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s%s%s", a, b, c[0] ? "/" : "", c);
    return path;
}

static bool look_at(const char *path, srv_fingerprint *print) {
    struct stat info;
    if (!path || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    *print = (srv_fingerprint){
        .device = (uint64_t)info.st_dev,
        .inode = (uint64_t)info.st_ino,
        .size = (uint64_t)info.st_size,
        .mtime_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec,
    };
    return true;
}

/* DIR/NAME.onnx; free() it. */
static char *top_path(const srv_folder *folder, const char *name) {
    size_t size = strlen(folder->root) + strlen(name) + 8;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s.onnx", folder->root, name);
    return path;
}

/* What DIR/NAME and an ending is; needs no memory, whose lack must not look as if it were gone. */
static mode_t kind_of(const srv_folder *folder, const char *name, const char *ending) {
    struct stat info;
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s%s", folder->root, name, ending);
    bool there = n > 0 && n < (int)sizeof path && stat(path, &info) == 0;
    return there ? info.st_mode : 0;
}

static bool is_folder(const srv_folder *folder, const char *name) {
    return S_ISDIR(kind_of(folder, name, ""));
}

bool srv_folder_has(const srv_folder *folder, sni_str name) {
    if (!srv_folder_valid_name(name)) return false;
    if (folder->single) return sni_str_is(name, folder->single);
    char text[200];
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    return is_folder(folder, text) || S_ISREG(kind_of(folder, text, ".onnx"));
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_name(srv_name_list *list, sni_str name) {
    if (list->count == MOST_NAMES) return;
    list->items[list->count] = srv_strndup(name.p, name.n);
    if (list->items[list->count]) list->count++;
}

/* What a name in the folder stands for: a model, or what would be one under another name. */
static void take_name(const srv_folder *folder, const char *text, srv_name_list *out,
                      srv_name_list *unfit) {
    sni_str stem = stem_of(text);
    bool onnx = stem.n < strlen(text), is = is_folder(folder, text);
    if (text[0] == '.' || (!is && !onnx)) return;
    if (is) {
        add_name(srv_folder_valid_name(sni_str_of(text)) ? out : unfit, sni_str_of(text));
    } else if (srv_folder_valid_name(stem)) {
        add_name(out, stem);
    } else {
        add_name(unfit, sni_str_of(text));
    }
}

/* Sorts the names; a folder and a file may have the same one. */
static void sort_names(srv_name_list *list) {
    size_t kept = 0;
    if (list->count) qsort(list->items, list->count, sizeof *list->items, by_text);
    for (size_t i = 0; i < list->count; i++) {
        if (kept && strcmp(list->items[i], list->items[kept - 1]) == 0) {
            free(list->items[i]);
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

bool srv_folder_names(const srv_folder *folder, srv_name_list *out, srv_name_list *unfit) {
    *out = (srv_name_list){.items = calloc(MOST_NAMES, sizeof *out->items)};
    *unfit = (srv_name_list){.items = calloc(MOST_NAMES, sizeof *out->items)};
    DIR *dir = NULL;
    bool ok = out->items && unfit->items;
    if (ok && folder->single) {
        add_name(out, sni_str_of(folder->single));
    } else if (ok) {
        dir = opendir(folder->root);
        ok = dir != NULL;
    }
    for (struct dirent *at; dir && (at = readdir(dir)) != NULL;) {
        take_name(folder, at->d_name, out, unfit);
    }
    if (dir) closedir(dir);
    sort_names(out);
    sort_names(unfit);
    if (ok) return true;
    srv_name_list_free(out);
    srv_name_list_free(unfit);
    return false;
}

void srv_name_list_free(srv_name_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->items[i]);
    free(list->items);
    *list = (srv_name_list){0};
}

char *srv_folder_model_path(const srv_folder *folder, const char *name,
                            const srv_found_version *version) {
    if (folder->single) return strdup(folder->file);
    if (version->layout == SRV_AT_TOP) return top_path(folder, name);
    char inner[64] = "model.onnx";
    if (version->layout == SRV_IN_VERSION) {
        snprintf(inner, sizeof inner, "%lld/model.onnx", (long long)version->number);
    }
    return join(folder->root, name, inner);
}

static void insert(srv_found_version *list, size_t *count, size_t most, srv_found_version found) {
    size_t at = *count;
    while (at > 0 && list[at - 1].number < found.number) at--;
    if (at >= most) return;
    if (*count < most) (*count)++;
    memmove(list + at + 1, list + at, (*count - at - 1) * sizeof *list);
    list[at] = found;
}

static bool config_path(const srv_folder *folder, const char *name, bool json, char **out) {
    srv_fingerprint ignored;
    if (folder->single) return false;
    *out = join(folder->root, name, json ? "config.json" : "config.pbtxt");
    if (look_at(*out, &ignored)) return true;
    free(*out);
    *out = NULL;
    return false;
}

/* False without memory. */
static bool insert_if_there(const srv_folder *folder, const char *name, srv_found_version wanted,
                            srv_found_versions *out) {
    char *path = srv_folder_model_path(folder, name, &wanted);
    bool ok = path != NULL;
    if (ok && look_at(path, &wanted.print)) {
        insert(out->items, &out->count, SRV_VERSIONS, wanted);
    }
    free(path);
    return ok;
}

/* The folders of versions; none if there is no such folder. */
static bool find_versions(const srv_folder *folder, const char *name, srv_found_versions *out) {
    char *inside = join(folder->root, name, "");
    DIR *dir = inside ? opendir(inside) : NULL;
    bool ok = dir || (inside && (errno == ENOENT || errno == ENOTDIR));
    for (struct dirent *at; dir && ok && (at = readdir(dir)) != NULL;) {
        uint64_t number;
        if (at->d_name[0] == '0') continue; /* 01 would be a second name of 1 */
        if (!srv_parse_uint(sni_str_of(at->d_name), INT64_MAX, &number)) continue;
        srv_found_version found = {.number = (int64_t)number, .layout = SRV_IN_VERSION};
        ok = insert_if_there(folder, name, found, out);
    }
    if (dir) closedir(dir);
    free(inside);
    return ok;
}

bool srv_folder_versions(const srv_folder *folder, const char *name, srv_found_versions *out) {
    char *path = NULL;
    *out = (srv_found_versions){0};
    if (config_path(folder, name, true, &path) || config_path(folder, name, false, &path)) {
        look_at(path, &out->config);
        free(path);
    }
    bool ok = folder->single || find_versions(folder, name, out);
    for (srv_layout layout = SRV_IN_MODEL; ok && layout <= SRV_AT_TOP && !out->count; layout++) {
        srv_found_version only = {.number = 1, .layout = layout};
        ok = insert_if_there(folder, name, only, out);
    }
    return ok;
}

sn_status srv_folder_config(const srv_folder *folder, const char *name, srv_text *out, bool *json,
                            sn_error *err) {
    char *path = NULL;
    *json = config_path(folder, name, true, &path);
    if (!*json && !config_path(folder, name, false, &path)) return SN_OK;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (file < 0) return sni_fail(err, SN_IO, "its configuration: %s", strerror(errno));
    sn_status status = SN_OK;
    for (;;) {
        char *space = srv_text_reserve(out, 4096);
        ssize_t got = space ? read(file, space, 4096) : -1;
        if (got < 0) status = sni_fail(err, SN_IO, "its configuration cannot be read");
        if (got <= 0) break;
        out->length += (size_t)got;
        out->data[out->length] = 0;
        if (out->length > MOST_CONFIG) {
            status =
                sni_fail(err, SN_LIMIT, "its configuration has more than %d bytes", MOST_CONFIG);
            break;
        }
    }
    close(file);
    if (status == SN_OK && out->data) out->data[out->length] = 0;
    return status;
}
