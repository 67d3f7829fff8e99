/* model_args.c - the options that name a model and its inputs. */
#include "cli/cmd/commands.h"
#include "cli/cmd/inputs.h"
#include "cli/formats/file.h"

#include <stdlib.h>
#include <string.h>

void cli_model_args_init(cli_model_args *m, const cli_args *args) {
    size_t most = (size_t)args->count;
    *m = (cli_model_args){.optimize = 3,
                          .libraries = cli_alloc(most, sizeof *m->libraries),
                          .files = cli_alloc(most, sizeof *m->files),
                          .shapes = cli_alloc(most, sizeof *m->shapes),
                          .symbols = cli_alloc(most, sizeof *m->symbols)};
    cli_image_options_init(&m->image);
}

void cli_model_args_free(cli_model_args *m) {
    free(m->libraries);
    free(m->files);
    free(m->shapes);
    free(m->symbols);
    co_providers_free(&m->providers);
    *m = (cli_model_args){0};
}

int cli_session_arg_take(int *threads, int *optimize, cli_rule_names *disabled, cli_args *args,
                         int id, const char *value) {
    int64_t number = 0;
    if (id == OPT_THREADS) {
        if (!cli_args_int(args, value, 0, 1024, &number)) return -1;
        *threads = (int)number;
        return 1;
    }
    if (id == OPT_OPTIMIZE) {
        if (!cli_args_int(args, value, 0, 3, &number)) return -1;
        *optimize = (int)number;
        return 1;
    }
    if (id == OPT_DISABLE_RULE) {
        if (disabled->count == CLI_MAX_RULES) {
            cli_complain("%s: --disable-rule is given more than %d times", args->command->name,
                         CLI_MAX_RULES);
            return -1;
        }
        disabled->names[disabled->count++] = value;
        return 1;
    }
    return 0;
}

static bool load_provider(const char *value, sn_error *err) {
    char *path = strchr(value, '/') ? cli_strdup(value) : cli_path_join(".", value);
    sn_status status = sn_provider_load(path, NULL, err);
    free(path);
    return status == SN_OK;
}

int cli_provider_take(co_providers *p, cli_args *args, int id, const char *value) {
    sn_error err = {0};
    if (id == OPT_PROVIDER) {
        const char *wrong = co_provider_add(p, value);
        if (!wrong) return 1;
        cli_complain("%s: --provider %s: %s", args->command->name, value, wrong);
        return -1;
    }
    if (id != OPT_PROVIDER_LIBRARY) return 0;
    if (load_provider(value, &err)) return 1;
    cli_complain_error("--provider-library", &err, CLI_UNREADABLE);
    return -1;
}

static bool wrong_value(const cli_args *args, const char *wanted, const char *value) {
    cli_complain("%s: --%s wants %s, not '%s'", args->command->name, args->option->name, wanted,
                 value);
    return false;
}

bool cli_precision_take(const cli_args *args, const char *value, sn_precision *out) {
    static const char *const names[] = {[SN_PRECISION_EXACT] = "exact",
                                        [SN_PRECISION_TF32_LIKE] = "tf32-like",
                                        [SN_PRECISION_BF16] = "bf16",
                                        [SN_PRECISION_FP16] = "fp16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        *out = (sn_precision)i;
        return true;
    }
    return wrong_value(args, "exact, tf32-like, bf16 or fp16", value);
}

/* "name=1x3x224x224"; an empty shape is a scalar. The last '=' divides. */
static bool read_shape(const cli_args *args, const char *value, cli_shape_arg *out) {
    const char *equals = strrchr(value, '=');
    if (!equals) return wrong_value(args, "NAME=1x3x224x224", value);
    *out = (cli_shape_arg){.text = value, .name_length = (size_t)(equals - value)};
    char *copy = cli_strdup(equals + 1), *rest = copy[0] ? copy : NULL;
    bool ok = true;
    for (char *part; ok && (part = strsep(&rest, "x,")) != NULL;) {
        int64_t dim = 0;
        ok = out->rank < SN_MAX_RANK && cli_parse_int(part, &dim) && dim >= 0;
        if (ok) out->dims[out->rank++] = dim;
    }
    free(copy);
    return ok || wrong_value(args, "NAME=1x3x224x224", value);
}

/* "0.5" or "0.5,0.5,0.4". */
static bool read_channels(const cli_args *args, const char *value, bool nonzero, double out[3]) {
    char *copy = cli_strdup(value), *rest = copy;
    double numbers[3] = {0};
    int count = 0;
    bool ok = true;
    for (char *part; ok && (part = strsep(&rest, ",")) != NULL;) {
        ok =
            count < 3 && cli_parse_real(part, &numbers[count]) && (numbers[count] != 0 || !nonzero);
        count++;
    }
    free(copy);
    if (!ok || (count != 1 && count != 3)) {
        return wrong_value(args, "one number or three divided by commas", value);
    }
    for (int i = 0; i < 3; i++) out[i] = numbers[count == 1 ? 0 : i];
    return true;
}

/* The position of `value` in `names` (ends with NULL), counted from 1; 0 when it is none. */
static int find_name(const cli_args *args, const char *value, const char *const *names,
                     const char *wanted) {
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], value) == 0) return i + 1;
    }
    wrong_value(args, wanted, value);
    return 0;
}

static int take_image_option(cli_model_args *m, cli_args *args, int id, const char *value) {
    static const char *const layouts[] = {"nchw", "nhwc", NULL};
    static const char *const colors[] = {"rgb", "bgr", "gray", NULL};
    bool ok = true;
    switch (id) {
    case OPT_MEAN:
        ok = read_channels(args, value, false, m->image.mean);
        break;
    case OPT_STD:
        ok = read_channels(args, value, true, m->image.std);
        break;
    case OPT_LAYOUT:
        m->image.layout = (cli_layout)find_name(args, value, layouts, "nchw or nhwc");
        ok = m->image.layout != CLI_LAYOUT_AUTO;
        break;
    case OPT_COLOR:
        m->image.color = (cli_color)find_name(args, value, colors, "rgb, bgr or gray");
        ok = m->image.color != CLI_COLOR_AUTO;
        break;
    case OPT_SCALE:
        ok = cli_args_real(args, value, -1e300, 1e300, &m->image.scale);
        m->image.has_scale = true;
        break;
    default:
        return 0;
    }
    return ok ? 1 : -1;
}

int cli_model_args_take(cli_model_args *m, cli_args *args, int id, const char *value) {
    int64_t number = 0;
    double seconds = 0;
    bool ok = true;
    int taken = cli_session_arg_take(&m->threads, &m->optimize, &m->disabled, args, id, value);
    if (!taken) taken = cli_provider_take(&m->providers, args, id, value);
    if (taken) return taken;
    switch (id) {
    case CLI_ARG_OPERAND:
        if (m->model) {
            cli_args_surplus(args, value);
            return -1;
        }
        m->model = value;
        break;
    case OPT_PRECISION:
        ok = cli_precision_take(args, value, &m->precision);
        break;
    case OPT_CACHE:
        m->cache = value;
        break;
    case OPT_CACHE_LIMIT:
        ok = cli_args_int(args, value, 1, INT64_MAX >> 20, &number);
        m->cache_limit = (uint64_t)number << 20;
        break;
    case OPT_TIME_LIMIT:
        ok = cli_args_real(args, value, 0, 1e9, &seconds);
        m->time_limit_ns = (uint64_t)(seconds * 1e9);
        break;
    case OPT_MEMORY_LIMIT:
        ok = cli_args_int(args, value, 0, INT64_MAX >> 20, &number);
        m->memory_limit = (uint64_t)number << 20;
        break;
    case OPT_OP_LIBRARY:
        m->libraries[m->library_count++] = value;
        break;
    case OPT_INPUT:
        m->files[m->file_count++] = value;
        break;
    case OPT_SHAPE:
        ok = read_shape(args, value, &m->shapes[m->shape_count++]);
        break;
    case OPT_DIM: {
        cli_shape_arg *symbol = &m->symbols[m->symbol_count++];
        ok = read_shape(args, value, symbol);
        if (ok && symbol->rank != 1) ok = wrong_value(args, "SYMBOL=NUMBER", value);
        break;
    }
    case OPT_RANDOM:
        m->random = true;
        break;
    case OPT_CONVERT:
        m->convert = true;
        break;
    case OPT_STRICT:
        m->strict = true;
        break;
    case OPT_SEED:
        ok = cli_args_int(args, value, 0, INT64_MAX, &number);
        m->seed = (uint64_t)number;
        break;
    default:
        return take_image_option(m, args, id, value);
    }
    return ok ? 1 : -1;
}

/* ---- The common course of commands ---------------------------------------------------------- */

int cli_load(const cli_model_args *m, cli_loaded *out) {
    int code = cli_open_model(m, &out->model);
    return code == CLI_OK ? cli_open_session(m, out->model, &out->session) : code;
}

void cli_loaded_free(cli_loaded *loaded) {
    cli_inputs_free(&loaded->inputs);
    cli_inputs_free(&loaded->outputs);
    sn_session_destroy(loaded->session);
    sn_model_destroy(loaded->model);
    *loaded = (cli_loaded){0};
}

int cli_convert(cli_args *args, const cli_conversion *c) {
    cli_loaded l = {0};
    cli_model_args_init(c->model, args);
    c->model->random = true;
    c->model->portable = c->portable;
    int code = cli_args_read(args, c->take, c->settings);
    if (code < 0 && !c->model->model) code = cli_args_missing(args, "model");
    if (code < 0 && !*c->path) code = cli_args_missing(args, "-o FILE");
    if (code < 0) code = cli_load(c->model, &l);
    if (l.session) code = c->run(c->settings, &l);
    cli_loaded_free(&l);
    cli_model_args_free(c->model);
    return code;
}

/* Complains of a run that failed, and of sizes that nobody asked for if they may be why. */
static int complain_of_run(const char *what, const cli_inputs *inputs, const sn_error *err) {
    cli_complain_error(what, err, CLI_RUN_FAILED);
    bool sizes = err->status == SN_BAD_DATA || err->status == SN_INVALID_ARGUMENT;
    if (sizes && inputs->ones.length)
        cli_complain("%s: the run took 1 for the free dimensions %s; --dim SYMBOL=N and --shape "
                     "give other sizes",
                     what, inputs->ones.data);
    return CLI_RUN_FAILED;
}

int cli_run_once(const char *what, const cli_model_args *m, const sn_model *model,
                 sn_session *session, cli_inputs *inputs, cli_inputs *outputs) {
    sn_error err = {0};
    sn_status status = cli_inputs_make(m, model, inputs, &err);
    if (status != SN_OK)
        return cli_complain_error(what, &err,
                                  status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_UNREADABLE);
    status = cli_outputs_make(model, outputs, &err);
    if (status != SN_OK) return cli_complain_error(what, &err, CLI_UNREADABLE);
    status = sn_session_run(session, NULL, inputs->items, inputs->count, outputs->items,
                            outputs->count, &err);
    return status == SN_OK ? CLI_OK : complain_of_run(what, inputs, &err);
}

int cli_measuring_take(cli_measuring *m, cli_args *args, int id, const char *value) {
    switch (id) {
    case OPT_RUNS:
        return cli_args_int(args, value, 1, CLI_MAX_RUNS, &m->runs) ? 1 : -1;
    case OPT_SECONDS:
        return cli_args_real(args, value, 0.001, 1e6, &m->seconds) ? 1 : -1;
    case OPT_JSON:
        m->json = true;
        return 1;
    default:
        return 0;
    }
}
