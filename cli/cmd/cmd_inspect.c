/* cmd_inspect.c - sinter inspect: what a model is made of, without reading its weights. */
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/cmd/inputs.h"
#include "cli/cmd/providers.h"
#include "cli/formats/json_write.h"
#include "cli/formats/tensor_print.h"

#include <string.h>

typedef struct settings {
    cli_model_args model;
    const char *stage;
    int64_t weights; /* how many of the largest are shown */
    bool json;
} settings;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    int taken = cli_model_args_take(&s->model, args, id, value);
    if (taken) return taken > 0;
    switch (id) {
    case OPT_JSON:
        s->json = true;
        return true;
    case OPT_WEIGHTS:
        return cli_args_int(args, value, 0, 1000000, &s->weights);
    case OPT_STAGE:
        s->stage = value;
        if (strcmp(value, "import") == 0 || strcmp(value, "opt") == 0 ||
            strcmp(value, "plan") == 0) {
            return true;
        }
        cli_complain("inspect: --stage wants import, opt or plan, not '%s'", value);
        return false;
    default:
        return false;
    }
}

static sn_status get_info(const sn_model *model, bool is_input, size_t index, sn_value_info *info) {
    return is_input ? sn_model_input(model, index, info, NULL)
                    : sn_model_output(model, index, info, NULL);
}

static size_t value_count(const sn_model *model, bool is_input) {
    return is_input ? sn_model_input_count(model) : sn_model_output_count(model);
}

/* ---- As text ------------------------------------------------------------------------------ */

static void add_fact(cli_text *out, const char *label, const char *value) {
    if (!value[0]) return;
    cli_text_addf(out, "  %-11s ", label);
    cli_text_add_name(out, value);
    cli_text_add(out, "\n", 1);
}

static void add_values(cli_text *out, const sn_model *model, bool is_input) {
    cli_text_addf(out, is_input ? "inputs\n" : "outputs\n");
    for (size_t i = 0; i < value_count(model, is_input); i++) {
        sn_value_info info;
        if (get_info(model, is_input, i, &info) != SN_OK) continue;
        cli_text_addf(out, "  ");
        cli_text_add_name(out, info.name);
        cli_text_addf(out, "  ");
        cli_print_type(out, &info);
        bool optional = is_input && sn_model_input_is_optional(model, i);
        cli_text_addf(out, optional ? "  (has a default)\n" : "\n");
    }
}

/* Each name of an unknown dimension of the inputs once, with where it first stands. */
static void add_dynamic(cli_text *out, const sn_model *model) {
    cli_text seen = {0}; /* names, each between newlines */
    for (size_t i = 0; i < sn_model_input_count(model); i++) {
        sn_value_info info;
        if (sn_model_input(model, i, &info, NULL) != SN_OK || !info.has_shape) continue;
        for (int axis = 0; axis < info.rank; axis++) {
            const char *symbol = info.symbols[axis];
            if (info.dims[axis] >= 0 || !symbol) continue;
            cli_text key = {0};
            cli_text_addf(&key, "\n%s\n", symbol);
            if (!symbol[0] || !strstr(cli_text_str(&seen), cli_text_str(&key))) {
                if (seen.length == 0) cli_text_addf(out, "dynamic dimensions\n");
                cli_text_add(&seen, cli_text_str(&key), key.length);
                cli_text_addf(out, "  ");
                cli_text_add_name(out, symbol[0] ? symbol : "?");
                cli_text_addf(out, "  axis %d of ", axis);
                cli_text_add_name(out, info.name);
                cli_text_add(out, "\n", 1);
            }
            cli_text_free(&key);
        }
    }
    cli_text_free(&seen);
}

static void add_operators(cli_text *out, const sn_model *model) {
    sn_operator_use use;
    size_t unsupported = 0;
    cli_text_addf(out, "operators\n");
    for (size_t i = 0; sn_model_operator(model, i, &use); i++) {
        cli_text_addf(out, "  %6zu  ", use.count);
        cli_text_add_name(out, use.domain);
        if (use.domain[0]) cli_text_add(out, ".", 1);
        cli_text_add_name(out, use.name);
        cli_text_addf(out, use.supported ? "\n" : "  UNSUPPORTED\n");
        unsupported += !use.supported;
    }
    if (unsupported) {
        cli_text_addf(out, "%zu operator%s of this model cannot be run by this build\n",
                      unsupported, unsupported == 1 ? "" : "s");
    }
}

static void add_weights(cli_text *out, const sn_model *model, int64_t most) {
    sn_value_info info;
    uint64_t bytes;
    for (size_t i = 0; i < (size_t)most && sn_model_weight(model, i, &info, &bytes); i++) {
        if (i == 0) cli_text_addf(out, "largest weights\n");
        cli_text size = {0};
        cli_text_add_bytes(&size, bytes);
        cli_text_addf(out, "  %8s  ", cli_text_str(&size));
        cli_print_type(out, &info);
        cli_text_addf(out, "  ");
        cli_text_add_name(out, info.name);
        cli_text_add(out, "\n", 1);
        cli_text_free(&size);
    }
}

static void add_opsets(cli_text *out, const sn_model *model) {
    const char *domain;
    int64_t version;
    cli_text_addf(out, "  %-11s ", "opsets");
    for (size_t i = 0; sn_model_opset(model, i, &domain, &version); i++) {
        if (i) cli_text_addf(out, ", ");
        cli_text_add_name(out, domain[0] ? domain : "ai.onnx");
        cli_text_addf(out, " %lld", (long long)version);
    }
    cli_text_add(out, "\n", 1);
}

static void add_sizes(cli_text *out, const sn_model_info *info) {
    cli_text_addf(out, "  %-11s %zu\n  %-11s ", "nodes", info->node_count, "parameters");
    cli_text_add_count(out, info->parameter_count);
    cli_text_addf(out, " in %zu weights, ", info->weight_count);
    cli_text_add_bytes(out, info->weight_bytes);
    cli_text_addf(out, "\n  %-11s ", "MACs");
    cli_text_add_count(out, info->macs);
    if (info->macs_unknown) {
        cli_text_addf(out, " and %zu nodes that depend on the shapes of a run", info->macs_unknown);
    }
    cli_text_add(out, "\n", 1);
}

static void show_text(const settings *s, const sn_model *model) {
    sn_model_info info;
    cli_text out = {0}, producer = {0};
    sn_model_get_info(model, &info);
    cli_text_add_name(&out, s->model.model);
    cli_text_add(&out, "\n", 1);
    cli_text_addf(&producer, "%s%s%s", info.producer_name, info.producer_version[0] ? " " : "",
                  info.producer_version);
    add_fact(&out, "producer", cli_text_str(&producer));
    add_fact(&out, "domain", info.domain);
    add_fact(&out, "graph", info.graph_name);
    add_fact(&out, "doc", info.doc);
    cli_text_addf(&out, "  %-11s %lld\n", "IR version", (long long)info.ir_version);
    add_opsets(&out, model);
    add_sizes(&out, &info);
    const char *key, *value;
    for (size_t i = 0; sn_model_metadata(model, i, &key, &value); i++) {
        cli_text_addf(&out, i ? "  %-11s " : "  metadata    ", "");
        cli_text_add_name(&out, key);
        cli_text_addf(&out, " = ");
        cli_text_add_safe(&out, value, strnlen(value, 200));
        cli_text_add(&out, "\n", 1);
    }
    add_values(&out, model, true);
    add_values(&out, model, false);
    add_dynamic(&out, model);
    add_operators(&out, model);
    add_weights(&out, model, s->weights);
    cli_text_print(&out);
    cli_text_free(&out);
    cli_text_free(&producer);
}

/* ---- As JSON ------------------------------------------------------------------------------ */

static void json_text(cli_json *json, const char *key, const char *value) {
    cli_json_key(json, key);
    cli_json_cstring(json, value);
}

static void json_count(cli_json *json, const char *key, uint64_t value) {
    cli_json_key(json, key);
    cli_json_unsigned(json, value);
}

/* The members that describe a value, without the braces. */
static void json_value(cli_json *json, const sn_value_info *info) {
    json_text(json, "name", info->name);
    json_text(json, "type", info->type_text ? info->type_text : "");
    json_text(json, "dtype", sn_dtype_name(info->dtype));
    if (!info->has_shape) return;
    cli_json_key(json, "shape");
    cli_json_begin(json, '[');
    for (int i = 0; i < info->rank; i++) {
        if (info->dims[i] >= 0) {
            cli_json_integer(json, info->dims[i]);
        } else {
            cli_json_cstring(json, info->symbols[i] ? info->symbols[i] : "");
        }
    }
    cli_json_end(json, ']');
}

static void json_values(cli_json *json, const sn_model *model, bool is_input) {
    cli_json_key(json, is_input ? "inputs" : "outputs");
    cli_json_begin(json, '[');
    for (size_t i = 0; i < value_count(model, is_input); i++) {
        sn_value_info info;
        if (get_info(model, is_input, i, &info) != SN_OK) continue;
        cli_json_begin(json, '{');
        json_value(json, &info);
        if (is_input) {
            cli_json_key(json, "optional");
            cli_json_bool(json, sn_model_input_is_optional(model, i));
        }
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void json_lists(cli_json *json, const sn_model *model, int64_t weights) {
    const char *domain, *key, *value;
    int64_t version;
    cli_json_key(json, "opsets");
    cli_json_begin(json, '{');
    for (size_t i = 0; sn_model_opset(model, i, &domain, &version); i++) {
        cli_json_key(json, domain[0] ? domain : "ai.onnx");
        cli_json_integer(json, version);
    }
    cli_json_end(json, '}');
    cli_json_key(json, "metadata");
    cli_json_begin(json, '[');
    for (size_t i = 0; sn_model_metadata(model, i, &key, &value); i++) {
        cli_json_begin(json, '{');
        json_text(json, "key", key);
        json_text(json, "value", value);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    cli_json_key(json, "operators");
    cli_json_begin(json, '[');
    sn_operator_use use;
    for (size_t i = 0; sn_model_operator(model, i, &use); i++) {
        cli_json_begin(json, '{');
        json_text(json, "domain", use.domain);
        json_text(json, "name", use.name);
        json_count(json, "count", use.count);
        cli_json_key(json, "supported");
        cli_json_bool(json, use.supported);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    cli_json_key(json, "weights");
    cli_json_begin(json, '[');
    sn_value_info info;
    uint64_t bytes;
    for (size_t i = 0; i < (size_t)weights && sn_model_weight(model, i, &info, &bytes); i++) {
        cli_json_begin(json, '{');
        json_value(json, &info);
        json_count(json, "bytes", bytes);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void show_json(const settings *s, const sn_model *model) {
    sn_model_info info;
    cli_text out = {0};
    cli_json json = {.out = &out};
    sn_model_get_info(model, &info);
    cli_json_begin(&json, '{');
    json_text(&json, "path", s->model.model);
    json_text(&json, "producer_name", info.producer_name);
    json_text(&json, "producer_version", info.producer_version);
    json_text(&json, "domain", info.domain);
    json_text(&json, "graph", info.graph_name);
    json_text(&json, "doc", info.doc);
    cli_json_key(&json, "ir_version");
    cli_json_integer(&json, info.ir_version);
    cli_json_key(&json, "model_version");
    cli_json_integer(&json, info.model_version);
    json_count(&json, "node_count", info.node_count);
    json_count(&json, "weight_count", info.weight_count);
    json_count(&json, "weight_bytes", info.weight_bytes);
    json_count(&json, "parameter_count", info.parameter_count);
    json_count(&json, "macs", info.macs);
    json_count(&json, "macs_unknown", info.macs_unknown);
    json_values(&json, model, true);
    json_values(&json, model, false);
    json_lists(&json, model, s->weights);
    cli_json_end(&json, '}');
    cli_text_print(&out);
    cli_text_free(&out);
}

/* ---- Stages ------------------------------------------------------------------------------- */

/* Runs once with random inputs, so that there is a plan. */
static int run_for_plan(const settings *s, const sn_model *model, sn_session *session) {
    cli_inputs inputs = {0}, outputs = {0};
    sn_error err = {0};
    int code = CLI_OK;
    sn_status status = cli_inputs_make(&s->model, model, &inputs, &err);
    if (status != SN_OK) {
        code = status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_UNREADABLE;
    } else {
        status = cli_outputs_make(model, &outputs, &err);
        if (status == SN_OK) {
            status = sn_session_run(session, NULL, inputs.items, inputs.count, outputs.items,
                                    outputs.count, &err);
        }
        if (status != SN_OK) code = CLI_RUN_FAILED;
    }
    if (status != SN_OK) cli_complain_error("inspect", &err, code);
    cli_inputs_free(&inputs);
    cli_inputs_free(&outputs);
    return code;
}

/* What providers took, and why not the rest. */
static void show_providers(const sn_session *session) {
    cli_text out = {0};
    cli_add_providers(&out, session);
    cli_add_refusals(&out, session);
    cli_text_print(&out);
    cli_text_free(&out);
}

static int show_stage(const settings *s, const sn_model *model) {
    sn_session *session = NULL;
    sn_error err = {0};
    int code = CLI_OK;
    sn_status status = SN_OK;
    if (strcmp(s->stage, "import") == 0) {
        status = sn_model_write(model, SN_FORMAT_TEXT, cli_stream_write, stdout, &err);
    } else {
        bool plan = strcmp(s->stage, "plan") == 0;
        code = cli_open_session(&s->model, model, &session);
        if (code == CLI_OK && plan) code = run_for_plan(s, model, session);
        if (code == CLI_OK) {
            status = sn_session_write(session, plan ? SN_STAGE_PLAN : SN_STAGE_OPT, SN_FORMAT_TEXT,
                                      cli_stream_write, stdout, &err);
            show_providers(session);
        }
    }
    sn_session_destroy(session);
    return status == SN_OK ? code : cli_complain_error("inspect", &err, CLI_RUN_FAILED);
}

int cli_cmd_inspect(cli_args *args) {
    settings s = {.weights = 5};
    sn_model *model = NULL;
    cli_model_args_init(&s.model, args);
    s.model.random = true;
    int code = cli_args_read(args, take_option, &s);
    if (code < 0 && !s.model.model) code = cli_args_missing(args, "model");
    if (code < 0) {
        code = cli_open_model(&s.model, &model);
        if (code == CLI_OK && s.stage) {
            code = show_stage(&s, model);
        } else if (code == CLI_OK && s.json) {
            cli_show_warnings(model);
            show_json(&s, model);
        } else if (code == CLI_OK) {
            cli_show_warnings(model);
            show_text(&s, model);
        }
    }
    sn_model_destroy(model);
    cli_model_args_free(&s.model);
    return code;
}
