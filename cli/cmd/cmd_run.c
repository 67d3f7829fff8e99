/* cmd_run.c - sinter run: runs a model once and shows or saves its outputs. */
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/cmd/inputs.h"
#include "cli/formats/npy.h"
#include "cli/formats/tensor_print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef struct settings {
    cli_model_args model;
    const char *folder; /* -o */
    int top;
    bool as_pb;
} settings;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    int64_t number = 0;
    int taken = cli_model_args_take(&s->model, args, id, value);
    if (taken) return taken > 0;
    switch (id) {
    case OPT_OUTPUT:
        s->folder = value;
        return true;
    case OPT_TOP:
        if (!cli_args_int(args, value, 1, 1000, &number)) return false;
        s->top = (int)number;
        return true;
    case OPT_FORMAT:
        if (strcmp(value, "npy") != 0 && strcmp(value, "pb") != 0) {
            cli_complain("run: --format wants npy or pb, not '%s'", value);
            return false;
        }
        s->as_pb = strcmp(value, "pb") == 0;
        return true;
    default:
        return false;
    }
}

/* ---- Saving ------------------------------------------------------------------------------- */

/* A file name made of an output's name: letters, digits and a few signs stay. The caller frees. */
static char *file_name(const char *name, size_t index, const sn_binding *all,
                       const char *extension) {
    char numbered[32];
    snprintf(numbered, sizeof numbered, "output_%zu", index);
    bool twice = false;
    for (size_t i = 0; i < index; i++) twice = twice || strcasecmp(all[i].name, name) == 0;
    if (!name[0] || twice || strlen(name) > 100) name = numbered;
    size_t length = strlen(name), size = length + strlen(extension) + 2;
    char *file = cli_alloc(size, 1);
    snprintf(file, size, "%s.%s", name, extension);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)file[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
                     c == '-' || (c == '.' && i > 0);
        if (!plain) file[i] = '_';
    }
    return file;
}

static sn_status save_value(const settings *s, const sn_binding *outputs, size_t index,
                            sn_error *err) {
    const sn_value *value = outputs[index].value;
    if (!s->as_pb && sn_value_kind(value) != SN_KIND_TENSOR) {
        return cli_fail(err, SN_UNSUPPORTED,
                        "output '%s' is no tensor: .npy cannot hold it; use "
                        "--format pb",
                        outputs[index].name);
    }
    char *name = file_name(outputs[index].name, index, outputs, s->as_pb ? "pb" : "npy");
    char *path = cli_path_join(s->folder, name);
    cli_output file;
    sn_status status = cli_output_open(&file, path, err);
    if (status == SN_OK) {
        status = s->as_pb ? sn_value_encode(value, outputs[index].name, cli_stream_write,
                                            file.stream, err)
                          : cli_npy_write(value, file.stream, err);
        sn_status closed = cli_output_close(&file, status == SN_OK, status == SN_OK ? err : NULL);
        if (status == SN_OK) status = closed;
    }
    free(path);
    free(name);
    return status;
}

static sn_status save_all(const settings *s, const cli_inputs *outputs, sn_error *err) {
    if (!s->folder) return SN_OK;
    if (mkdir(s->folder, 0777) != 0 && errno != EEXIST) {
        return cli_fail(err, SN_IO, "%s: cannot make the folder: %s", s->folder, strerror(errno));
    }
    for (size_t i = 0; i < outputs->count; i++) {
        sn_status status = save_value(s, outputs->items, i, err);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}

/* ---- Running ------------------------------------------------------------------------------ */

static int run_and_show(const settings *s, const sn_model *model, sn_session *session,
                        cli_inputs *inputs, cli_inputs *outputs) {
    sn_error err = {0};
    sn_status status = cli_inputs_make(&s->model, model, inputs, &err);
    if (status != SN_OK) {
        return cli_complain_error("run", &err,
                                  status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_UNREADABLE);
    }
    status = cli_outputs_make(model, outputs, &err);
    if (status != SN_OK) return cli_complain_error("run", &err, CLI_UNREADABLE);
    double start = cli_now_ms();
    status = sn_session_run(session, NULL, inputs->items, inputs->count, outputs->items,
                            outputs->count, &err);
    double elapsed = cli_now_ms() - start;
    if (status != SN_OK) return cli_complain_error("run", &err, CLI_RUN_FAILED);
    cli_text out = {0};
    for (size_t i = 0; i < outputs->count; i++) {
        cli_print_value(&out, outputs->items[i].name, outputs->items[i].value, s->top);
    }
    cli_text_addf(&out, "ran in %.3f ms\n", elapsed);
    cli_text_print(&out);
    cli_text_free(&out);
    status = save_all(s, outputs, &err);
    return status == SN_OK ? CLI_OK : cli_complain_error("run", &err, CLI_RUN_FAILED);
}

int cli_cmd_run(cli_args *args) {
    settings s = {0};
    sn_model *model = NULL;
    sn_session *session = NULL;
    cli_inputs inputs = {0}, outputs = {0};
    cli_model_args_init(&s.model, args);
    int code = cli_args_read(args, take_option, &s);
    if (code < 0 && !s.model.model) code = cli_args_missing(args, "model");
    if (code < 0) {
        code = cli_open_model(&s.model, &model);
        if (code == CLI_OK) code = cli_open_session(&s.model, model, &session);
    }
    if (session) code = run_and_show(&s, model, session, &inputs, &outputs);
    cli_inputs_free(&inputs);
    cli_inputs_free(&outputs);
    sn_session_destroy(session);
    sn_model_destroy(model);
    cli_model_args_free(&s.model);
    return code;
}
