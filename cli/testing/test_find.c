/* test_find.c - finds test folders, and reads lists of expected failures. */
#include "cli/testing/test_find.h"
#include "cli/formats/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH 32

static void add_test(cli_test_list *list, const char *name, const char *folder) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        cli_test *items = cli_alloc(capacity, sizeof *items);
        if (list->count) memcpy(items, list->items, list->count * sizeof *items);
        free(list->items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (cli_test){.name = cli_strdup(name), .folder = cli_strdup(folder)};
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.' && strncmp(entry->d_name, "test_data_set_", 14) != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool holds_model(const char *folder) {
    char *path = cli_path_join(folder, "model.onnx");
    struct stat info;
    bool found = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    free(path);
    return found;
}

/* `name` is the folder's path from the root, "" for the root itself. */
static sn_status walk(const char *folder, const char *name, const char *match, int depth,
                      cli_test_list *list, sn_error *err) {
    if (holds_model(folder)) {
        if (!match || strstr(name, match)) add_test(list, name, folder);
        return SN_OK;
    }
    if (depth >= MAX_DEPTH) {
        return cli_fail(err, SN_LIMIT, "%s: folders nested deeper than %d", folder, MAX_DEPTH);
    }
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, by_bytes);
    if (count < 0) {
        return cli_fail(err, errno == ENOENT ? SN_NOT_FOUND : SN_IO, "%s: cannot list: %s", folder,
                        strerror(errno));
    }
    sn_status status = SN_OK;
    for (int i = 0; i < count; i++) {
        char *path = cli_path_join(folder, entries[i]->d_name);
        if (status == SN_OK && is_folder(path)) {
            char *inner =
                depth ? cli_path_join(name, entries[i]->d_name) : cli_strdup(entries[i]->d_name);
            status = walk(path, inner, match, depth + 1, list, err);
            free(inner);
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

sn_status cli_find_tests(const char *root, const char *match, cli_test_list *list, sn_error *err) {
    char *folder = cli_strdup(root);
    for (size_t length = strlen(folder); length > 1 && folder[length - 1] == '/'; length--) {
        folder[length - 1] = 0;
    }
    const char *slash = strrchr(folder, '/');
    sn_status status = walk(folder, slash && slash[1] ? slash + 1 : folder, match, 0, list, err);
    free(folder);
    return status;
}

void cli_test_list_free(cli_test_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].folder);
        free(list->items[i].message);
    }
    free(list->items);
    *list = (cli_test_list){0};
}

/* ---- Expected failures -------------------------------------------------------------------- */

/* The line without its comment and the spaces around; changed in place. */
static char *trim_line(char *line) {
    line[strcspn(line, "#\r")] = 0;
    while (*line == ' ' || *line == '\t') line++;
    size_t length = strlen(line);
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t')) {
        line[--length] = 0;
    }
    return line;
}

sn_status cli_expected_read(const char *path, cli_expected *out, sn_error *err) {
    char *bytes;
    size_t size;
    sn_status status = cli_read_file(path, 1 << 24, &bytes, &size, err);
    if (status != SN_OK) return status;
    size_t lines = 1;
    for (size_t i = 0; i < size; i++) lines += bytes[i] == '\n';
    cli_expected list = {.names = cli_alloc(lines, sizeof *list.names),
                         .seen = cli_alloc(lines, sizeof *list.seen)};
    char *rest = bytes;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *name = trim_line(line);
        if (name[0]) list.names[list.count++] = cli_strdup(name);
    }
    free(bytes);
    *out = list;
    return SN_OK;
}

void cli_expected_free(cli_expected *list) {
    for (size_t i = 0; i < list->count; i++) free(list->names[i]);
    free(list->names);
    free(list->seen);
    *list = (cli_expected){0};
}

static bool ends_with_path(const char *path, const char *tail) {
    size_t length = strlen(path), size = strlen(tail);
    if (size > length || strcmp(path + length - size, tail) != 0) return false;
    return size == length || path[length - size - 1] == '/';
}

cli_expectation cli_expected_of(cli_expected *list, const cli_test *test) {
    for (size_t i = 0; i < list->count; i++) {
        bool any = list->names[i][0] == '?';
        const char *name = list->names[i] + any;
        if (strcmp(name, test->name) == 0 || ends_with_path(test->folder, name)) {
            list->seen[i] = true;
            return any ? CLI_EXPECT_ANY : CLI_EXPECT_FAIL;
        }
    }
    return CLI_EXPECT_PASS;
}
