/* inputs.c - values for a model's inputs, from files and random numbers. */
#include "cli/cmd/inputs.h"
#include "cli/formats/file.h"
#include "cli/formats/make_tensor.h"
#include "cli/formats/npy.h"
#include "cli/formats/npz.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The operators of every --op-library; NULL: there is none. */
static sn_status load_operators(const cli_model_args *m, sn_operators **out, sn_error *err) {
    sn_operators *set = NULL;
    if (!m->library_count) return SN_OK;
    sn_status status = sn_operators_create(&set, err);
    for (size_t i = 0; i < m->library_count && status == SN_OK; i++)
        status = sn_operators_load(set, m->libraries[i], err);
    if (status == SN_OK)
        *out = set;
    else
        sn_operators_destroy(set);
    return status;
}

int cli_open_model(const cli_model_args *m, sn_model **model) {
    sn_error err = {0};
    sn_operators *operators = NULL;
    if (load_operators(m, &operators, &err) != SN_OK)
        return cli_complain_error("--op-library", &err, CLI_UNREADABLE);
    sn_load_options options;
    sn_load_options_init(&options, sizeof options);
    options.operators = operators;
    options.strict = m->strict;
    options.memory_limit = m->memory_limit;
    sn_status status = sn_model_load(m->model, &options, model, &err);
    sn_operators_destroy(operators);
    if (status == SN_OK) return CLI_OK;
    return cli_complain_error(m->model, &err, CLI_UNREADABLE);
}

void cli_show_warnings(const sn_model *model) {
    const char *text;
    for (size_t i = 0; (text = sn_model_warning(model, i)); i++) cli_complain("%s", text);
}

static void show_warning(void *ctx, sn_log_level level, const char *text) {
    (void)ctx;
    if (level <= SN_LOG_WARNING) cli_complain("%s", text);
}

int cli_open_session(const cli_model_args *m, const sn_model *model, sn_session **session) {
    sn_error err = {0};
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.threads = m->threads;
    options.optimize = m->optimize;
    options.portable = m->portable;
    options.disabled_rules = m->disabled.names;
    options.disabled_rule_count = m->disabled.count;
    options.precision = m->precision;
    options.cache_folder = m->cache;
    options.cache_limit = m->cache_limit;
    options.providers = m->providers.uses;
    options.provider_count = m->providers.count;
    options.time_limit_ns = options.prepare_limit_ns = m->time_limit_ns;
    options.memory_limit = m->memory_limit;
    options.log = m->log ? m->log : show_warning;
    if (sn_session_create(model, &options, session, &err) == SN_OK) return CLI_OK;
    return cli_complain_error(m->model, &err,
                              err.status == SN_TIMEOUT ? CLI_RUN_FAILED : CLI_UNREADABLE);
}

static bool names_it(const cli_shape_arg *arg, const char *name) {
    return strlen(name) == arg->name_length && memcmp(arg->text, name, arg->name_length) == 0;
}

/* ---- Shapes ------------------------------------------------------------------------------- */

/* The shape of an input as the model and the options give it: what stays free is -1. */
static sn_status shape_of(const cli_model_args *m, const sn_value_info *info, int *rank,
                          int64_t *dims, sn_error *err) {
    for (size_t i = 0; i < m->shape_count; i++) {
        const cli_shape_arg *given = &m->shapes[i];
        if (!names_it(given, info->name)) continue;
        if (info->has_shape && info->rank != given->rank) {
            return cli_fail(err, SN_INVALID_ARGUMENT,
                            "--shape %s has %d dimensions, but the input has %d", given->text,
                            given->rank, info->rank);
        }
        *rank = given->rank;
        memcpy(dims, given->dims, sizeof given->dims);
        return SN_OK;
    }
    if (!info->has_shape) {
        return cli_fail(err, SN_INVALID_ARGUMENT,
                        "the model does not say the rank of input '%s'; give --shape", info->name);
    }
    *rank = info->rank;
    for (int i = 0; i < info->rank; i++) {
        dims[i] = info->dims[i];
        for (size_t j = 0; dims[i] < 0 && j < m->symbol_count; j++) {
            const char *symbol = info->symbols[i];
            if (symbol && names_it(&m->symbols[j], symbol)) dims[i] = m->symbols[j].dims[0];
        }
    }
    return SN_OK;
}

static bool is_input(const sn_model *model, const cli_shape_arg *arg) {
    for (size_t i = 0; i < sn_model_input_count(model); i++) {
        sn_value_info info;
        if (sn_model_input(model, i, &info, NULL) == SN_OK && names_it(arg, info.name)) {
            return true;
        }
    }
    return false;
}

static bool is_symbol(const sn_model *model, const cli_shape_arg *arg) {
    for (size_t i = 0; i < sn_model_input_count(model); i++) {
        sn_value_info info;
        if (sn_model_input(model, i, &info, NULL) != SN_OK) continue;
        for (int j = 0; info.has_shape && j < info.rank; j++) {
            if (info.symbols[j] && names_it(arg, info.symbols[j])) return true;
        }
    }
    return false;
}

/* Every --shape must name an input and every --dim a symbol. */
static sn_status check_shape_args(const cli_model_args *m, const sn_model *model, sn_error *err) {
    for (size_t i = 0; i < m->shape_count; i++) {
        if (!is_input(model, &m->shapes[i])) {
            return cli_fail(err, SN_INVALID_ARGUMENT, "--shape %s: the model has no such input",
                            m->shapes[i].text);
        }
    }
    for (size_t i = 0; i < m->symbol_count; i++) {
        if (!is_symbol(model, &m->symbols[i])) {
            return cli_fail(err, SN_INVALID_ARGUMENT,
                            "--dim %s: no input has a dimension of this name", m->symbols[i].text);
        }
    }
    return SN_OK;
}

/* ---- Files -------------------------------------------------------------------------------- */

static bool has_extension(const char *path, const char *const *extensions) {
    for (; *extensions; extensions++) {
        if (strcasecmp(cli_path_extension(path), *extensions) == 0) return true;
    }
    return false;
}

/* Takes over `tensor` and gives back one of the input's type. */
static sn_status fit_type(const cli_model_args *m, const sn_value_info *info, sn_value *tensor,
                          sn_value **out, sn_error *err) {
    sn_dtype dtype = sn_tensor_dtype(tensor);
    sn_status status = SN_OK;
    if (info->kind != SN_KIND_TENSOR) {
        status = cli_fail(err, SN_BAD_DATA, "input '%s' is a %s; give it as an ONNX .pb file",
                          info->name, info->type_text);
    } else if (dtype == info->dtype || info->dtype == SN_UNDEFINED) {
        *out = tensor;
        return SN_OK;
    } else if (!m->convert) {
        status = cli_fail(err, SN_BAD_DATA,
                          "has %s, but input '%s' takes %s; --convert converts numbers that fit",
                          sn_dtype_name(dtype), info->name, sn_dtype_name(info->dtype));
    } else {
        status = cli_tensor_convert(tensor, info->dtype, out, err);
    }
    sn_value_destroy(tensor);
    return status;
}

static sn_status read_npz_member(const cli_model_args *m, const sn_value_info *info,
                                 const char *bytes, size_t size, sn_value **out, sn_error *err) {
    cli_npz npz;
    sn_value *tensor = NULL;
    sn_status status = cli_npz_open(bytes, size, &npz, err);
    if (status != SN_OK) return status;
    const cli_npz_member *member = cli_npz_find(&npz, info->name);
    if (!member && npz.count == 1) member = npz.members;
    if (member) {
        status = cli_npz_read(&npz, member, &tensor, err);
    } else {
        status = cli_fail(err, SN_NOT_FOUND, "has no member '%s'", info->name);
    }
    cli_npz_close(&npz);
    return status == SN_OK ? fit_type(m, info, tensor, out, err) : status;
}

/* Pictures and raw bytes take their shape and type from the input. */
static sn_status read_shaped(const cli_model_args *m, const sn_value_info *info, const char *bytes,
                             size_t size, bool image, sn_value **out, sn_error *err) {
    int64_t dims[SN_MAX_RANK];
    cli_tensor_type type = {.dtype = info->dtype, .dims = dims};
    if (info->kind != SN_KIND_TENSOR) {
        return cli_fail(err, SN_BAD_DATA, "input '%s' is a %s; give it as an ONNX .pb file",
                        info->name, info->type_text);
    }
    sn_status status = shape_of(m, info, &type.rank, dims, err);
    if (status != SN_OK) return status;
    return image ? cli_image_read(bytes, size, &type, &m->image, out, err)
                 : cli_tensor_from_bytes(bytes, size, &type, out, err);
}

/* The kind of proto in which a value of this input is written. */
static sn_kind proto_kind(const sn_value_info *info) {
    bool plain = info->kind == SN_KIND_NONE || info->kind == SN_KIND_TENSOR;
    return plain ? SN_KIND_TENSOR : info->kind;
}

static sn_status decode(const cli_model_args *m, const sn_value_info *info, const char *path,
                        const char *bytes, size_t size, sn_value **out, sn_error *err) {
    static const char *const raw[] = {"bin", "raw", NULL}, *const pb[] = {"pb", "onnx", NULL};
    static const char *const json[] = {"json", NULL}, *const npy[] = {"npy", NULL};
    static const char *const npz[] = {"npz", NULL};
    static const char *const image[] = {"png", "jpg", "jpeg", NULL};
    sn_value *tensor = NULL;
    if (has_extension(path, raw)) return read_shaped(m, info, bytes, size, false, out, err);
    if (has_extension(path, image)) return read_shaped(m, info, bytes, size, true, out, err);
    if (has_extension(path, npz)) return read_npz_member(m, info, bytes, size, out, err);
    if (has_extension(path, json)) {
        sn_status status = cli_tensor_from_json(bytes, size, info->dtype, &tensor, err);
        return status == SN_OK ? fit_type(m, info, tensor, out, err) : status;
    }
    if (has_extension(path, npy)) {
        sn_status status = cli_npy_read(bytes, size, &tensor, err);
        return status == SN_OK ? fit_type(m, info, tensor, out, err) : status;
    }
    if (has_extension(path, pb)) {
        sn_status status = sn_value_decode(proto_kind(info), bytes, size, &tensor, err);
        if (status != SN_OK || sn_value_kind(tensor) != SN_KIND_TENSOR ||
            info->kind != SN_KIND_TENSOR) {
            if (status == SN_OK) *out = tensor;
            return status;
        }
        return fit_type(m, info, tensor, out, err);
    }
    return cli_fail(err, SN_INVALID_ARGUMENT,
                    "the name says no format: npy, npz, pb, json, png, jpg, bin and raw are known");
}

static sn_status read_input(const cli_model_args *m, const sn_value_info *info, const char *path,
                            sn_value **out, sn_error *err) {
    char *bytes;
    size_t size;
    sn_status status = cli_read_file(path, CLI_FILE_LIMIT, &bytes, &size, err);
    if (status != SN_OK) return status;
    status = decode(m, info, path, bytes, size, out, err);
    if (status != SN_OK) cli_fail_context(err, "%s", path);
    free(bytes);
    return status;
}

/* ---- Binding ------------------------------------------------------------------------------ */

/* The index of the input that a "name=file" names; `*path` is the part after it. A model with one
 * input needs no name. */
static sn_status find_target(const sn_model *model, const char *text, size_t *index,
                             const char **path, sn_error *err) {
    size_t required = 0;
    for (size_t i = 0; i < sn_model_input_count(model); i++) {
        sn_value_info info;
        sn_status status = sn_model_input(model, i, &info, err);
        if (status != SN_OK) return status;
        size_t length = strlen(info.name);
        if (strncmp(text, info.name, length) == 0 && text[length] == '=') {
            *index = i;
            *path = text + length + 1;
            return SN_OK;
        }
        required += !sn_model_input_is_optional(model, i);
    }
    if (strchr(text, '=') || required != 1) {
        return cli_fail(err, SN_INVALID_ARGUMENT,
                        "-i %s: no input of this name; write NAME=FILE (sinter inspect shows the "
                        "names)",
                        text);
    }
    *index = 0;
    *path = text;
    return SN_OK;
}

static sn_status bind_input(const cli_model_args *m, const sn_model *model, size_t index,
                            const char *path, cli_inputs *out, sn_error *err) {
    sn_value_info info;
    sn_status status = sn_model_input(model, index, &info, err);
    if (status != SN_OK) return status;
    if (out->items[index].value) {
        return cli_fail(err, SN_INVALID_ARGUMENT, "input '%s' is given twice", info.name);
    }
    return read_input(m, &info, path, &out->items[index].value, err);
}

/* All members of an archive, each to the input of its name. */
static sn_status bind_archive(const cli_model_args *m, const sn_model *model, const char *path,
                              cli_inputs *out, sn_error *err) {
    char *bytes = NULL;
    size_t size;
    cli_npz npz = {0};
    sn_status status = cli_read_file(path, CLI_FILE_LIMIT, &bytes, &size, err);
    if (status != SN_OK) return status;
    status = cli_npz_open(bytes, size, &npz, err);
    for (size_t i = 0; i < npz.count && status == SN_OK; i++) {
        cli_shape_arg name = {.text = npz.members[i].name,
                              .name_length = strlen(npz.members[i].name)};
        if (!is_input(model, &name)) {
            status = cli_fail(err, SN_INVALID_ARGUMENT, "member '%s' is no input of the model",
                              npz.members[i].name);
        }
        for (size_t j = 0; j < out->count && status == SN_OK; j++) {
            sn_value_info info;
            sn_value *tensor = NULL;
            status = sn_model_input(model, j, &info, err);
            if (status != SN_OK || !names_it(&name, info.name)) continue;
            if (out->items[j].value) {
                status = cli_fail(err, SN_INVALID_ARGUMENT, "input '%s' is given twice", info.name);
            }
            if (status == SN_OK) status = cli_npz_read(&npz, &npz.members[i], &tensor, err);
            if (status == SN_OK) status = fit_type(m, &info, tensor, &out->items[j].value, err);
        }
    }
    if (status != SN_OK) cli_fail_context(err, "%s", path);
    cli_npz_close(&npz);
    free(bytes);
    return status;
}

static sn_status bind_file(const cli_model_args *m, const sn_model *model, const char *text,
                           cli_inputs *out, sn_error *err) {
    static const char *const npz[] = {"npz", NULL};
    if (!strchr(text, '=') && has_extension(text, npz)) {
        return bind_archive(m, model, text, out, err);
    }
    size_t index = 0;
    const char *path = NULL;
    sn_status status = find_target(model, text, &index, &path, err);
    return status == SN_OK ? bind_input(m, model, index, path, out, err) : status;
}

/* Names a dimension in a list, once. */
static void note_one(cli_text *ones, const char *symbol) {
    cli_text name = {0};
    cli_text_addf(&name, "'%s'", symbol);
    if (!strstr(cli_text_str(ones), name.data))
        cli_text_addf(ones, "%s%s", ones->length ? ", " : "", name.data);
    cli_text_free(&name);
}

static sn_status make_random(const cli_model_args *m, const sn_value_info *info, size_t index,
                             cli_text *ones, sn_value **out, sn_error *err) {
    int rank = 0;
    int64_t dims[SN_MAX_RANK];
    if (info->kind == SN_KIND_OPTIONAL) return sn_none_create(out, err);
    if (info->kind != SN_KIND_TENSOR) {
        return cli_fail(err, SN_INVALID_ARGUMENT, "input '%s' is a %s; give a file for it",
                        info->name, info->type_text);
    }
    sn_status status = shape_of(m, info, &rank, dims, err);
    if (status != SN_OK) return status;
    for (int i = 0; i < rank; i++) {
        if (dims[i] >= 0) continue;
        dims[i] = 1;
        note_one(ones, info->symbols[i]);
    }
    return cli_tensor_random(m->seed + index * 0x5851F42D4C957F2Du, info->dtype, rank, dims, out,
                             err);
}

/* Gives each required input that has no value yet a random one, or complains of it. */
static sn_status fill_rest(const cli_model_args *m, const sn_model *model, cli_inputs *out,
                           sn_error *err) {
    for (size_t i = 0; i < out->count; i++) {
        sn_value_info info;
        sn_status status = sn_model_input(model, i, &info, err);
        if (status != SN_OK) return status;
        out->items[i].name = info.name;
        if (out->items[i].value || sn_model_input_is_optional(model, i)) continue;
        if (!m->random) {
            return cli_fail(err, SN_INVALID_ARGUMENT,
                            "input '%s' (%s) has no value; give -i %s=FILE or --random", info.name,
                            info.type_text, info.name);
        }
        status = make_random(m, &info, i, &out->ones, &out->items[i].value, err);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}

/* Leaves out the optional inputs that got no value. */
static void drop_unbound(cli_inputs *inputs) {
    size_t kept = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->items[i].value) inputs->items[kept++] = inputs->items[i];
    }
    inputs->count = kept;
}

sn_status cli_inputs_make(const cli_model_args *m, const sn_model *model, cli_inputs *out,
                          sn_error *err) {
    size_t count = sn_model_input_count(model);
    cli_inputs inputs = {.items = cli_alloc(count, sizeof *inputs.items), .count = count};
    sn_status status = check_shape_args(m, model, err);
    for (size_t i = 0; i < m->file_count && status == SN_OK; i++) {
        status = bind_file(m, model, m->files[i], &inputs, err);
    }
    if (status == SN_OK) status = fill_rest(m, model, &inputs, err);
    if (status != SN_OK) {
        cli_inputs_free(&inputs);
        return status;
    }
    drop_unbound(&inputs);
    *out = inputs;
    return SN_OK;
}

void cli_inputs_free(cli_inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) sn_value_destroy(inputs->items[i].value);
    free(inputs->items);
    cli_text_free(&inputs->ones);
    *inputs = (cli_inputs){0};
}

sn_status cli_outputs_make(const sn_model *model, cli_inputs *out, sn_error *err) {
    size_t count = sn_model_output_count(model);
    cli_inputs outputs = {.items = cli_alloc(count, sizeof *outputs.items), .count = count};
    for (size_t i = 0; i < count; i++) {
        sn_value_info info;
        sn_status status = sn_model_output(model, i, &info, err);
        if (status != SN_OK) {
            cli_inputs_free(&outputs);
            return status;
        }
        outputs.items[i].name = info.name;
    }
    *out = outputs;
    return SN_OK;
}

void cli_outputs_drop(cli_inputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        sn_value_destroy(outputs->items[i].value);
        outputs->items[i].value = NULL;
    }
}
