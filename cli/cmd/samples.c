/* samples.c - a folder of inputs, one sample at a time in memory. */
#include "cli/cmd/samples.h"
#include "cli/formats/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *e) {
    return e->d_name[0] != '.';
}

/* Names of a folder in order; -1 with the error set. */
static int list(const char *folder, struct dirent ***out, sn_error *err) {
    int count = scandir(folder, out, is_shown, by_name);
    if (count < 0)
        cli_fail(err, errno == ENOENT ? SN_NOT_FOUND : SN_IO, "%s: %s", folder, strerror(errno));
    return count;
}

sn_status cli_samples_open(cli_samples *s, const cli_model_args *args, const sn_model *model,
                           const char *folder, size_t most, sn_error *err) {
    struct dirent **entries;
    int found = list(folder, &entries, err);
    if (found < 0) return err->status;
    *s = (cli_samples){.args = args, .model = model, .folder = cli_strdup(folder)};
    size_t n = (size_t)found, wanted = most && most < n ? most : n;
    s->names = cli_alloc(wanted + 1, sizeof *s->names);
    for (size_t i = 0; i < wanted; i++)
        s->names[s->count++] = cli_strdup(entries[i * n / wanted]->d_name);
    for (size_t i = 0; i < n; i++) free(entries[i]);
    free(entries);
    if (s->count) return SN_OK;
    cli_samples_free(s);
    return cli_fail(err, SN_INVALID_ARGUMENT, "%s: the folder is empty", folder);
}

void cli_samples_free(cli_samples *s) {
    for (size_t i = 0; i < s->count; i++) free(s->names[i]);
    free(s->names);
    free(s->folder);
    cli_inputs_free(&s->current);
    *s = (cli_samples){0};
}

/* The name of the input that a file of a sample's folder is for; NULL: none. */
static const char *input_of(const sn_model *model, const char *file) {
    const char *dot = strrchr(file, '.');
    size_t length = dot ? (size_t)(dot - file) : strlen(file), number;
    char end;
    sn_value_info info;
    for (size_t i = 0; i < sn_model_input_count(model); i++)
        if (sn_model_input(model, i, &info, NULL) == SN_OK && strlen(info.name) == length &&
            memcmp(info.name, file, length) == 0)
            return info.name;
    if (sscanf(file, "input_%zu.p%c", &number, &end) != 2 || end != 'b') return NULL;
    return sn_model_input(model, number, &info, NULL) == SN_OK ? info.name : NULL;
}

/* Adds "NAME=FILE" for each file of a sample's folder. */
static sn_status add_folder(const cli_samples *s, const char *path, cli_model_args *m,
                            char ***texts, sn_error *err) {
    struct dirent **entries;
    int count = list(path, &entries, err);
    if (count < 0) return err->status;
    *texts = cli_alloc((size_t)count + 1, sizeof **texts);
    for (int i = 0; i < count; i++) {
        const char *input = input_of(s->model, entries[i]->d_name);
        cli_text text = {0};
        if (input) {
            char *file = cli_path_join(path, entries[i]->d_name);
            cli_text_addf(&text, "%s=%s", input, file);
            free(file);
            (*texts)[m->file_count++] = text.data;
        }
        free(entries[i]);
    }
    free(entries);
    m->files = (const char **)*texts;
    if (m->file_count) return SN_OK;
    return cli_fail(err, SN_INVALID_ARGUMENT, "%s: no file has the name of an input", path);
}

sn_status cli_samples_get(void *ctx, size_t index, sn_binding *inputs, size_t *count,
                          sn_error *err) {
    cli_samples *s = ctx;
    cli_model_args m = *s->args;
    struct stat st;
    char *path = cli_path_join(s->folder, s->names[index]), **texts = NULL;
    const char *one = path;
    sn_status status = SN_OK;
    m.random = false;
    m.file_count = 0;
    cli_inputs_free(&s->current);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        status = add_folder(s, path, &m, &texts, err);
    } else {
        m.files = &one;
        m.file_count = 1;
    }
    if (status == SN_OK) status = cli_inputs_make(&m, s->model, &s->current, err);
    if (status == SN_OK) {
        *count = s->current.count;
        for (size_t i = 0; i < *count; i++) {
            inputs[i] = s->current.items[i];
            s->current.items[i].value = NULL; /* the library's from now on */
        }
    } else {
        cli_fail_context(err, "%s", s->names[index]);
    }
    for (size_t i = 0; texts && i < m.file_count; i++) free(texts[i]);
    free(texts);
    free(path);
    return status;
}
