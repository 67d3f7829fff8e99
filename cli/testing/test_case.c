/* test_case.c - one folder of an ONNX backend test: loads, runs and compares it. */
#include "cli/testing/test_case.h"
#include "cli/formats/file.h"
#include "cli/formats/json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_VALUES 4096
#define MAX_DATA_SETS 4096

typedef struct values {
    sn_value **items;
    size_t count;
} values;

static void free_values(values *list) {
    for (size_t i = 0; i < list->count; i++) sn_value_destroy(list->items[i]);
    free(list->items);
    *list = (values){0};
}

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* The path of "STEM_INDEX.pb" in a folder; the caller frees it. */
static char *numbered_path(const char *folder, const char *stem, size_t index) {
    char name[64];
    snprintf(name, sizeof name, "%s_%zu.pb", stem, index);
    return cli_path_join(folder, name);
}

static sn_status read_value(const char *path, sn_kind kind, sn_value **out, sn_error *err) {
    char *bytes;
    size_t size;
    sn_status status = cli_read_file(path, CLI_FILE_LIMIT, &bytes, &size, err);
    if (status != SN_OK) return status;
    status = sn_value_decode(kind, bytes, size, out, err);
    if (status != SN_OK) cli_fail_context(err, "%s", path);
    free(bytes);
    return status;
}

static sn_kind kind_in_file(const sn_model *model, bool is_input, size_t index) {
    sn_value_info info;
    sn_status status = is_input ? sn_model_input(model, index, &info, NULL)
                                : sn_model_output(model, index, &info, NULL);
    bool known = status == SN_OK && (info.kind == SN_KIND_SEQUENCE || info.kind == SN_KIND_MAP ||
                                     info.kind == SN_KIND_OPTIONAL);
    return known ? info.kind : SN_KIND_TENSOR;
}

/* True if a data set has a file for an output behind number `index`: that one is left out because
 * chance decides it. */
static bool is_gap(const char *folder, const char *stem, size_t index, size_t most) {
    bool found = false;
    for (size_t i = index + 1; i < most && !found; i++) {
        char *path = numbered_path(folder, stem, i);
        found = exists(path);
        free(path);
    }
    return found;
}

/* Reads STEM_0.pb, STEM_1.pb and so on; `list` is the caller's to free even on failure. Outputs
 * that are left out between others are NULL. */
static sn_status read_values(const sn_model *model, const char *folder, bool is_input, values *list,
                             sn_error *err) {
    const char *stem = is_input ? "input" : "output";
    size_t most = is_input ? sn_model_input_count(model) : sn_model_output_count(model);
    for (size_t i = 0; i < MAX_VALUES; i++) {
        char *path = numbered_path(folder, stem, i);
        bool missing = !exists(path);
        if (missing && (is_input || !is_gap(folder, stem, i, most))) {
            free(path);
            break;
        }
        if (i >= most) {
            sn_status status =
                cli_fail(err, SN_INVALID_ARGUMENT, "there is a file %s but the model has %zu %ss",
                         path, most, stem);
            free(path);
            return status;
        }
        sn_value **items = realloc(list->items, (i + 1) * sizeof *items);
        if (!items) {
            free(path);
            return cli_fail(err, SN_NO_MEMORY, "out of memory");
        }
        list->items = items;
        items[i] = NULL;
        sn_status status = SN_OK;
        if (!missing) status = read_value(path, kind_in_file(model, is_input, i), &items[i], err);
        free(path);
        if (status != SN_OK) return status;
        list->count = i + 1;
    }
    return SN_OK;
}

static bool compare_outputs(const sn_model *model, const sn_binding *got, size_t got_count,
                            const values *want, cli_tolerance tolerance, cli_text *message) {
    if (got_count != want->count) {
        cli_text_addf(message, "got %zu outputs, want %zu", got_count, want->count);
        return false;
    }
    for (size_t i = 0; i < want->count; i++) {
        if (!want->items[i]) continue;
        cli_text why = {0};
        bool same = cli_values_match(got[i].value, want->items[i], tolerance, &why);
        if (!same) {
            sn_value_info info;
            bool named = sn_model_output(model, i, &info, NULL) == SN_OK;
            cli_text_addf(message, "output %zu '", i);
            cli_text_add_name(message, named ? info.name : "");
            cli_text_addf(message, "': %s", cli_text_str(&why));
        }
        cli_text_free(&why);
        if (!same) return false;
    }
    return true;
}

static sn_status run_session(const sn_model *model, sn_session *session, const values *inputs,
                             sn_binding *outputs, size_t output_count, sn_error *err) {
    sn_binding *bound = cli_alloc(inputs->count, sizeof *bound);
    for (size_t i = 0; i < inputs->count; i++) {
        sn_value_info info;
        sn_status status = sn_model_input(model, i, &info, err);
        if (status != SN_OK) {
            free(bound);
            return status;
        }
        bound[i] = (sn_binding){.name = info.name, .value = inputs->items[i]};
    }
    sn_status status =
        sn_session_run(session, NULL, bound, inputs->count, outputs, output_count, err);
    free(bound);
    return status;
}

static bool run_data_set(const sn_model *model, sn_session *session, const char *folder,
                         cli_tolerance tolerance, cli_text *message) {
    values inputs = {0}, want = {0};
    sn_error err = {0};
    size_t output_count = sn_model_output_count(model);
    sn_binding *outputs = cli_alloc(output_count, sizeof *outputs);
    bool same = false;
    sn_status status = read_values(model, folder, true, &inputs, &err);
    if (status == SN_OK) status = read_values(model, folder, false, &want, &err);
    if (status == SN_OK) {
        status = run_session(model, session, &inputs, outputs, output_count, &err);
    }
    if (status == SN_OK) {
        same = compare_outputs(model, outputs, output_count, &want, tolerance, message);
    } else {
        cli_text_addf(message, "%s: ", sn_status_name(status));
        cli_text_add_name(message, err.message);
    }
    for (size_t i = 0; i < output_count; i++) sn_value_destroy(outputs[i].value);
    free(outputs);
    free_values(&inputs);
    free_values(&want);
    return same;
}

/* Replaces the tolerance by what data.json says, if there is one. */
static sn_status read_tolerance(const char *folder, cli_tolerance *tolerance, sn_error *err) {
    char *path = cli_path_join(folder, "data.json");
    char *bytes = NULL;
    size_t size = 0;
    cli_json_doc doc = {0};
    sn_status status = SN_OK;
    if (exists(path)) status = cli_read_file(path, 1 << 20, &bytes, &size, err);
    if (status == SN_OK && bytes) {
        status = cli_json_parse(bytes, size, &doc, err);
        if (status != SN_OK) cli_fail_context(err, "%s", path);
    }
    if (status == SN_OK && bytes) {
        cli_json_real(cli_json_get(&doc, 0, "rtol"), &tolerance->rtol);
        cli_json_real(cli_json_get(&doc, 0, "atol"), &tolerance->atol);
    }
    cli_json_free(&doc);
    free(bytes);
    free(path);
    return status;
}

static char *data_set_path(const char *folder, size_t index) {
    char name[64];
    snprintf(name, sizeof name, "test_data_set_%zu", index);
    return cli_path_join(folder, name);
}

static size_t count_data_sets(const char *folder) {
    size_t count = 0;
    for (bool more = true; more && count < MAX_DATA_SETS;) {
        char *path = data_set_path(folder, count);
        char *output = numbered_path(path, "output", 0);
        more = exists(output);
        if (more) count++;
        free(output);
        free(path);
    }
    return count;
}

static cli_verdict failed(cli_text *message, const char *what, const sn_error *err) {
    cli_text_addf(message, "%s: %s: ", what, sn_status_name(err->status));
    cli_text_add_name(message, err->message);
    return CLI_FAILED_CASE;
}

static cli_verdict run_data_sets(const sn_model *model, sn_session *session, const char *folder,
                                 size_t sets, cli_tolerance tolerance, cli_text *message) {
    cli_verdict verdict = CLI_PASSED;
    for (size_t i = 0; i < sets; i++) {
        char *path = data_set_path(folder, i);
        cli_text why = {0};
        if (!run_data_set(model, session, path, tolerance, &why)) {
            if (verdict != CLI_PASSED) cli_text_add(message, "\n", 1);
            if (sets > 1) cli_text_addf(message, "data set %zu: ", i);
            cli_text_add(message, cli_text_str(&why), why.length);
            verdict = CLI_FAILED_CASE;
        }
        cli_text_free(&why);
        free(path);
    }
    return verdict;
}

cli_verdict cli_case_run(const char *folder, const cli_case_options *options, cli_text *message) {
    size_t sets = count_data_sets(folder);
    if (sets == 0) {
        cli_text_addf(message, "no data set with an expected output");
        return CLI_SKIPPED;
    }
    sn_model *model = NULL;
    sn_session *session = NULL;
    sn_error err = {0};
    cli_verdict verdict = CLI_FAILED_CASE;
    cli_tolerance tolerance = options->tolerance;
    char *path = cli_path_join(folder, "model.onnx");
    sn_session_options session_options;
    sn_session_options_init(&session_options, sizeof session_options);
    session_options.threads = options->threads;
    session_options.optimize = options->optimize;
    session_options.disabled_rules = options->disabled.names;
    session_options.disabled_rule_count = options->disabled.count;
    session_options.precision = options->precision;
    session_options.providers = options->providers.uses;
    session_options.provider_count = options->providers.count;

    if (read_tolerance(folder, &tolerance, &err) != SN_OK) {
        failed(message, "data.json", &err);
    } else if (sn_model_load(path, NULL, &model, &err) != SN_OK) {
        failed(message, "load", &err);
    } else if (sn_session_create(model, &session_options, &session, &err) != SN_OK) {
        failed(message, "prepare", &err);
    } else {
        verdict = run_data_sets(model, session, folder, sets, tolerance, message);
    }
    sn_session_destroy(session);
    sn_model_destroy(model);
    free(path);
    return verdict;
}
