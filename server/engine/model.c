/* model.c - one loaded version of a model: its session, its inputs and outputs. */
#include "server/engine/model.h"
#include "server/engine/scheduler.h"
#include "server/server.h"
#include "common/provider_use.h"

#include <stdio.h>
#include <stdlib.h>

#define AUTO_BATCH 32 /* rows gathered for a model whose configuration does not say */

/* ---- Texts -------------------------------------------------------------------------------- */

void srv_dims_text(int rank, const int64_t *dims, char *out, size_t size) {
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < rank && at < size; i++) {
        int n = snprintf(out + at, size - at, i ? ",%lld" : "[%lld", (long long)dims[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    if (at < size) snprintf(out + at, size - at, rank ? "]" : "[]");
}

/* ---- Inputs and outputs ------------------------------------------------------------------- */

int srv_io_find(const srv_io *list, size_t count, sni_str name) {
    for (size_t i = 0; i < count; i++) {
        if (list[i].dtype != SN_UNDEFINED && sni_str_is(name, list[i].name)) return (int)i;
    }
    return -1;
}

static void free_io(srv_io *list, size_t count) {
    for (size_t i = 0; list && i < count; i++) {
        free(list[i].name);
        for (int j = 0; j < SN_MAX_RANK; j++) free(list[i].symbols[j]);
    }
    free(list);
}

static bool copy_io(srv_io *io, const sn_value_info *info) {
    *io = (srv_io){.name = strdup(info->name), .has_shape = info->has_shape, .rank = info->rank};
    if (info->kind == SN_KIND_TENSOR) io->dtype = info->dtype;
    if (!io->name) return false;
    for (int i = 0; i < info->rank; i++) {
        io->dims[i] = info->dims[i];
        if (info->symbols[i] && info->symbols[i][0]) {
            io->symbols[i] = strdup(info->symbols[i]);
            if (!io->symbols[i]) return false;
        }
    }
    return true;
}

static sn_status read_ios(srv_model *model, const sn_model *source, sn_error *err) {
    size_t inputs = sn_model_input_count(source), outputs = sn_model_output_count(source);
    model->inputs = calloc(inputs ? inputs : 1, sizeof *model->inputs);
    model->outputs = calloc(outputs ? outputs : 1, sizeof *model->outputs);
    if (!model->inputs || !model->outputs) return sni_fail_memory(err);
    sn_value_info info;
    for (size_t i = 0; i < inputs; i++) {
        SN_TRY(sn_model_input(source, i, &info, err));
        model->input_count++;
        if (!copy_io(&model->inputs[i], &info)) return sni_fail_memory(err);
        model->inputs[i].optional = sn_model_input_is_optional(source, i);
        if (info.kind != SN_KIND_TENSOR && !model->inputs[i].optional) {
            return sni_fail(err, SN_UNSUPPORTED, "input '%s' is %s, not a tensor", info.name,
                            info.type_text);
        }
    }
    for (size_t i = 0; i < outputs; i++) {
        SN_TRY(sn_model_output(source, i, &info, err));
        model->output_count++;
        if (!copy_io(&model->outputs[i], &info)) return sni_fail_memory(err);
    }
    return SN_OK;
}

static sn_status check_declared(const srv_io *ios, size_t count, const srv_config_io *declared,
                                size_t declared_count, const char *what, sn_error *err) {
    for (size_t i = 0; i < declared_count; i++) {
        int index = srv_io_find(ios, count, sni_str_of(declared[i].name));
        if (index < 0) {
            return sni_fail(err, SN_INVALID_MODEL,
                            "its configuration names an %s '%s', which the model does not have",
                            what, declared[i].name);
        }
        if (declared[i].dtype != SN_UNDEFINED && declared[i].dtype != ios[index].dtype) {
            return sni_fail(err, SN_INVALID_MODEL, "%s '%s' is %s in its configuration but %s",
                            what, declared[i].name, srv_type_name(declared[i].dtype),
                            srv_type_name(ios[index].dtype));
        }
    }
    return SN_OK;
}

/* ---- Batching ----------------------------------------------------------------------------- */

/* The first input or output whose first dimension is not free; NULL when all are. */
static const srv_io *fixed_rows(const srv_io *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (list[i].optional || list[i].dtype == SN_UNDEFINED || !list[i].has_shape) continue;
        if (list[i].rank == 0 || list[i].dims[0] >= 0) return &list[i];
    }
    return NULL;
}

/* Whether the model may be batched without anybody having said so: every input and output has a
 * known rank and the inputs' first dimension goes by one name. */
static bool looks_batched(const srv_model *model) {
    if (model->input_count == 0 || fixed_rows(model->inputs, model->input_count) ||
        fixed_rows(model->outputs, model->output_count)) {
        return false;
    }
    const char *symbol = NULL;
    for (size_t i = 0; i < model->input_count; i++) {
        const srv_io *io = &model->inputs[i];
        if (io->optional) continue;
        if (!io->has_shape || io->dtype == SN_STRING) return false;
        const char *name = io->symbols[0] ? io->symbols[0] : "";
        if (symbol && strcmp(symbol, name) != 0) return false;
        symbol = name;
    }
    for (size_t i = 0; i < model->output_count; i++) {
        if (!model->outputs[i].has_shape || model->outputs[i].dtype == SN_UNDEFINED) return false;
    }
    return symbol != NULL;
}

static sn_status choose_batch(srv_model *model, sn_error *err) {
    int64_t asked = model->config.max_batch_size;
    if (asked > 0) {
        const srv_io *fixed = fixed_rows(model->inputs, model->input_count);
        if (!fixed) fixed = fixed_rows(model->outputs, model->output_count);
        if (fixed) {
            return sni_fail(err, SN_INVALID_MODEL,
                            "max_batch_size is %lld, but the first dimension of '%s' is not free",
                            (long long)asked, fixed->name);
        }
        model->max_batch = asked;
        model->batch_declared = true;
    } else if (asked < 0 && !model->config.batching_off && looks_batched(model)) {
        model->max_batch = AUTO_BATCH;
    }
    return SN_OK;
}

/* ---- Life --------------------------------------------------------------------------------- */

static void destroy(srv_model *model) {
    sn_session_destroy(model->session);
    free_io(model->inputs, model->input_count);
    free_io(model->outputs, model->output_count);
    srv_config_free(&model->config);
    pthread_mutex_destroy(&model->stats_lock);
    free(model->name);
    free(model);
}

srv_model *srv_model_retain(srv_model *model) {
    atomic_fetch_add(&model->refs, 1);
    return model;
}

void srv_model_release(srv_model *model) {
    if (model && atomic_fetch_sub(&model->refs, 1) == 1) destroy(model);
}

/* What is left until `deadline` for something that may take `limit` (0: any time); 0: no limit. A
 * deadline that is past leaves a moment. */
static uint64_t time_left(uint64_t deadline, uint64_t limit) {
    uint64_t now = srv_now_ns();
    if (!deadline) return limit;
    uint64_t left = deadline > now ? deadline - now : 1;
    return limit && limit < left ? limit : left;
}

/* Providers of a model: those that its configuration names, or else the server's. */
static sn_status read_providers(const srv_model *model, co_providers *out, sn_error *err) {
    const srv_options *o = &model->server->options;
    const char *given = model->config.providers, *wrong = NULL;
    if (given) wrong = co_provider_add_list(out, given);
    for (size_t i = 0; i < o->provider_count && !given && !wrong; i++)
        wrong = co_provider_add(out, given = o->providers[i]);
    if (!wrong) return SN_OK;
    return sni_fail(err, SN_INVALID_ARGUMENT, "providers '%.200s': %s", given, wrong);
}

/* Lines of a session that say that something is not as asked for. */
static void log_session(void *ctx, sn_log_level level, const char *text) {
    srv_model *model = ctx;
    if (level <= SN_LOG_WARNING)
        srv_log(&model->server->log, SRV_LOG_WARNING, "provider", "model", model->name, "says",
                text, NULL);
}

static sn_status make_session(srv_model *model, const char *path, uint64_t deadline,
                              sn_error *err) {
    sn_model *source = NULL;
    co_providers providers = {0};
    sn_session_options options;
    sn_status status = sn_model_load(path, NULL, &source, err);
    if (status != SN_OK) return status;
    sn_session_options_init(&options, sizeof options);
    const srv_config *config = &model->config;
    const srv_limits_table *limits = &model->server->limits;
    options.memory_limit = config->memory_limit ? config->memory_limit : limits->run_memory;
    options.time_limit_ns = config->time_limit_ns ? config->time_limit_ns : limits->time_ns;
    options.threads = config->threads;
    if (config->optimize >= 0) options.optimize = config->optimize;
    status = read_providers(model, &providers, err);
    options.providers = providers.uses;
    options.provider_count = providers.count;
    if (providers.count) {
        options.log = log_session;
        options.log_ctx = model;
    }
    if (status == SN_OK) status = read_ios(model, source, err);
    if (status == SN_OK) {
        status = check_declared(model->inputs, model->input_count, config->inputs,
                                config->input_count, "input", err);
    }
    if (status == SN_OK) {
        status = check_declared(model->outputs, model->output_count, config->outputs,
                                config->output_count, "output", err);
    }
    if (status == SN_OK) status = choose_batch(model, err);
    options.prepare_limit_ns = time_left(deadline, 0);
    if (status == SN_OK) status = sn_session_create(source, &options, &model->session, err);
    co_providers_free(&providers);
    sn_model_destroy(source);
    return status;
}

sn_status srv_model_load(srv_server *server, const char *path, const char *name, int64_t version,
                         srv_config *config, srv_model **out, sn_error *err) {
    srv_model *model = calloc(1, sizeof *model);
    if (!model) return sni_fail_memory(err);
    atomic_init(&model->refs, 1);
    pthread_mutex_init(&model->stats_lock, NULL);
    model->server = server;
    model->name = strdup(name);
    model->version = version;
    model->serial = atomic_fetch_add(&server->loads, 1) + 1;
    srv_config given = *config;
    model->config = given;
    uint64_t start = srv_now_ns(), limit = server->limits.load_ns;
    uint64_t deadline = limit ? start + limit : 0;
    sn_status status =
        model->name ? make_session(model, path, deadline, err) : sni_fail_memory(err);
    if (status != SN_OK) {
        model->config = (srv_config){0}; /* still the caller's */
        srv_model_release(model);
        return status;
    }
    *config = (srv_config){0};
    model->instances =
        given.instances > 0 ? given.instances : srv_scheduler_threads(server->scheduler);
    srv_model_warm(model, deadline);
    model->queue.busy = srv_now_ns();
    model->loaded_ns = model->queue.busy - start;
    *out = model;
    return SN_OK;
}
