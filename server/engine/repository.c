/* repository.c - the folder of models: what is there, what is loaded, what takes its place. */
#include "server/engine/repository_table.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

srv_entry *srv_find_entry(const srv_repository *repo, sni_str name) {
    for (srv_entry *e = repo->entries; e; e = e->next) {
        if (sni_str_is(name, e->name)) return e;
    }
    return NULL;
}

static srv_entry *find_entry(srv_repository *repo, sni_str name) {
    pthread_rwlock_rdlock(&repo->lock);
    srv_entry *e = srv_find_entry(repo, name);
    pthread_rwlock_unlock(&repo->lock);
    return e;
}

static srv_version *find_version(const srv_entry *e, int64_t number) {
    for (srv_version *v = e->versions; v; v = v->next) {
        if (v->number == number) return v;
    }
    return NULL;
}

/* ---- Changing the table ------------------------------------------------------------------- */

static srv_entry *new_entry(sni_str name) {
    srv_entry *e = calloc(1, sizeof *e);
    if (e) e->name = srv_strndup(name.p, name.n);
    if (e && e->name) return e;
    free(e);
    return NULL;
}

srv_entry *srv_add_entry(srv_repository *repo, sni_str name, bool wanted) {
    pthread_rwlock_wrlock(&repo->lock);
    srv_entry *e = srv_find_entry(repo, name);
    if (!e && repo->count < repo->server->limits.models && (e = new_entry(name)) != NULL) {
        srv_entry **at = &repo->entries;
        while (*at && strcmp((*at)->name, e->name) < 0) at = &(*at)->next;
        e->wanted = wanted;
        e->next = *at;
        *at = e;
        repo->count++;
    }
    pthread_rwlock_unlock(&repo->lock);
    return e;
}

void srv_entry_want(srv_repository *repo, srv_entry *e, bool wanted) {
    pthread_rwlock_wrlock(&repo->lock);
    e->wanted = wanted;
    if (!wanted) e->reason[0] = 0;
    pthread_rwlock_unlock(&repo->lock);
}

/* Logs a reason once, not at every look at the folder. */
static void set_reason(srv_repository *repo, srv_entry *e, const char *reason) {
    char text[SN_ERROR_MESSAGE_SIZE];
    snprintf(text, sizeof text, "%s", reason);
    srv_repository_hide_paths(repo, text);
    pthread_rwlock_wrlock(&repo->lock);
    bool changed = strcmp(e->reason, text) != 0;
    memcpy(e->reason, text, sizeof text);
    pthread_rwlock_unlock(&repo->lock);
    if (changed && text[0]) {
        srv_log(&repo->server->log, SRV_LOG_ERROR, "a model is not served", "model", e->name,
                "reason", text, NULL);
    }
}

static srv_version *add_version(srv_repository *repo, srv_entry *e, int64_t number) {
    srv_version *v = find_version(e, number);
    if (v) return v;
    v = calloc(1, sizeof *v);
    if (!v) return NULL;
    v->number = number;
    pthread_rwlock_wrlock(&repo->lock);
    srv_version **at = &e->versions;
    while (*at && (*at)->number > number) at = &(*at)->next;
    v->next = *at;
    *at = v;
    pthread_rwlock_unlock(&repo->lock);
    return v;
}

/* Puts `model` (NULL: none) in a version's place; the old one lives on in its requests. */
static void replace(srv_repository *repo, srv_version *v, srv_model *model, const char *reason) {
    pthread_rwlock_wrlock(&repo->lock);
    srv_model *old = v->model;
    v->model = model;
    v->loading = false;
    snprintf(v->reason, sizeof v->reason, "%s", reason);
    pthread_rwlock_unlock(&repo->lock);
    srv_model_release(old);
}

static void drop_version(srv_repository *repo, srv_entry *e, srv_version *v) {
    pthread_rwlock_wrlock(&repo->lock);
    srv_version **at = &e->versions;
    while (*at != v) at = &(*at)->next;
    *at = v->next;
    pthread_rwlock_unlock(&repo->lock);
    srv_model_release(v->model);
    free(v);
}

/* ---- Loading ------------------------------------------------------------------------------ */

static sn_status read_config(const srv_repository *repo, const srv_entry *e, srv_config *config,
                             sn_error *err) {
    srv_config_init(config);
    if (e->override) return srv_config_json(config, e->override, strlen(e->override), err);
    srv_text text = {0};
    bool json = false;
    sn_status status = srv_folder_config(&repo->folder, e->name, &text, &json, err);
    if (status == SN_OK && text.data) {
        status = json ? srv_config_json(config, text.data, text.length, err)
                      : srv_config_pbtxt(config, text.data, text.length, err);
        if (status != SN_OK) sni_fail_context(err, status, "its configuration");
    }
    srv_text_free(&text);
    return status;
}

static void log_load(srv_logger *log, const srv_entry *e, int64_t number, const srv_model *model,
                     const char *reason) {
    char text[32], batch[32], took[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    if (!model) {
        srv_log(log, SRV_LOG_ERROR, "could not load a model", "model", e->name, "version", text,
                "reason", reason, NULL);
        return;
    }
    snprintf(batch, sizeof batch, "%lld", (long long)model->max_batch);
    snprintf(took, sizeof took, "%.1f", (double)model->loaded_ns / 1e6);
    srv_log(log, SRV_LOG_INFO, "loaded a model", "model", e->name, "version", text, "max_batch",
            batch, "ms", took, NULL);
}

static void begin_load(srv_repository *repo, srv_version *v) {
    pthread_rwlock_wrlock(&repo->lock);
    v->loading = true;
    if (!v->model) v->reason[0] = 0;
    pthread_rwlock_unlock(&repo->lock);
}

static void keep_old(srv_repository *repo, srv_version *v) {
    pthread_rwlock_wrlock(&repo->lock);
    v->loading = false;
    pthread_rwlock_unlock(&repo->lock);
}

/* Loads one version and lets it take over. A load that fails leaves the old one serving. */
static sn_status load_version(srv_repository *repo, srv_entry *e, const srv_found_version *found) {
    sn_error err = {0};
    srv_config config;
    srv_model *model = NULL;
    srv_version *v = add_version(repo, e, found->number);
    if (!v) return SN_NO_MEMORY;
    begin_load(repo, v);
    char *path = srv_folder_model_path(&repo->folder, e->name, found);
    sn_status status = path ? read_config(repo, e, &config, &err) : sni_fail_memory(&err);
    if (path && status == SN_OK) {
        status = srv_model_load(repo->server, path, e->name, found->number, &config, &model, &err);
    }
    if (path) srv_config_free(&config);
    free(path);
    srv_repository_hide_paths(repo, err.message);
    v->print = found->print;
    log_load(&repo->server->log, e, found->number, model, err.message);
    if (status == SN_OK) {
        replace(repo, v, model, "");
    } else if (v->model) {
        keep_old(repo, v);
    } else {
        replace(repo, v, NULL, err.message);
    }
    return status;
}

/* ---- What should be loaded ---------------------------------------------------------------- */

/* Whether the policy asks for the version at `index` of `found`, largest first. */
static bool in_policy(const srv_config *config, const srv_found_version *found, size_t index) {
    if (config->policy == SRV_VERSIONS_ALL) return true;
    if (config->policy == SRV_VERSIONS_LATEST) return (int64_t)index < config->versions[0];
    for (int i = 0; i < config->version_count; i++) {
        if (config->versions[i] == found[index].number) return true;
    }
    return false;
}

static bool is_found(const srv_found_version *found, size_t count, int64_t number) {
    for (size_t i = 0; i < count; i++) {
        if (found[i].number == number && found[i].chosen) return true;
    }
    return false;
}

bool srv_entry_update(srv_repository *repo, srv_entry *e, bool force, sn_error *err) {
    srv_found_versions there;
    srv_config config;
    if (!srv_folder_versions(&repo->folder, e->name, &there)) { /* what is loaded stays */
        sni_fail(err, SN_IO, "its folder cannot be read at the moment");
        if (!e->versions) set_reason(repo, e, err->message);
        return false;
    }
    srv_found_version *found = there.items;
    size_t count = there.count;
    sn_status status = read_config(repo, e, &config, err);
    for (size_t i = 0; i < count; i++) {
        found[i].chosen = status != SN_OK || in_policy(&config, found, i);
    }
    srv_config_free(&config);
    bool changed = force || memcmp(&there.config, &e->config_print, sizeof there.config) != 0;
    e->config_print = there.config;
    bool ok = true;
    for (size_t i = count; i-- > 0;) { /* oldest first: the newest takes over last */
        if (!found[i].chosen) continue;
        srv_version *v = find_version(e, found[i].number);
        if (v && !changed && memcmp(&v->print, &found[i].print, sizeof v->print) == 0) continue;
        if (load_version(repo, e, &found[i]) != SN_OK) {
            v = find_version(e, found[i].number);
            if (ok && v) {
                const char *why = v->reason;
                if (v->model) why = "the new file cannot be loaded; the old one still serves";
                sni_fail(err, SN_INVALID_MODEL, "%s", why);
            }
            ok = false;
        }
    }
    for (srv_version *v = e->versions, *next; v; v = next) {
        next = v->next;
        if (!is_found(found, count, v->number)) drop_version(repo, e, v);
    }
    if (count == 0) {
        sni_fail(err, SN_NOT_FOUND,
                 "there is no %s.onnx, and in its folder neither model.onnx nor N/model.onnx with "
                 "a version N",
                 e->name);
        ok = false;
    } else if (!e->versions) {
        sni_fail(err, SN_NOT_FOUND, "its version_policy names no version that is there");
        ok = false;
    }
    set_reason(repo, e, e->versions ? "" : err->message);
    return ok;
}

void srv_entry_drop(srv_repository *repo, srv_entry *e) {
    while (e->versions) drop_version(repo, e, e->versions);
}

/* ---- Life --------------------------------------------------------------------------------- */

sn_status srv_repository_open(srv_repository *repo, const srv_repository_options *options,
                              sn_error *err) {
    SN_TRY(srv_folder_open(&repo->folder, options->path, err));
    repo->hidden[0] = realpath(repo->folder.root, NULL);
    repo->hidden[1] = strdup(repo->folder.root);
    if (!repo->hidden[1]) return sni_fail_memory(err);
    repo->explicit_only = options->explicit_only || options->startup_count > 0;
    for (size_t i = 0; i < options->startup_count; i++) {
        sni_str name = sni_str_of(options->startup[i]);
        if (!srv_folder_has(&repo->folder, name)) {
            return sni_fail(err, SN_NOT_FOUND, "there is no model '%s'", options->startup[i]);
        }
        if (!srv_add_entry(repo, name, true)) return sni_fail_memory(err);
    }
    return SN_OK;
}

srv_repository *srv_repository_create(srv_server *server) {
    srv_repository *repo = calloc(1, sizeof *repo);
    if (!repo) return NULL;
    repo->server = server;
    pthread_rwlock_init(&repo->lock, NULL);
    return repo;
}

void srv_repository_destroy(srv_repository *repo) {
    if (!repo) return;
    for (srv_entry *e = repo->entries, *next; e; e = next) {
        next = e->next;
        srv_entry_drop(repo, e);
        free(e->override);
        free(e->name);
        free(e);
    }
    srv_folder_close(&repo->folder);
    free(repo->hidden[0]);
    free(repo->hidden[1]);
    pthread_rwlock_destroy(&repo->lock);
    free(repo);
}

/* ---- Loading and unloading by request ----------------------------------------------------- */

srv_code srv_repository_load(srv_repository *repo, sni_str name, const char *config, char *why,
                             size_t why_size) {
    sn_error err = {0};
    if (!srv_folder_has(&repo->folder, name)) {
        snprintf(why, why_size, "there is no model '%.*s'", SNI_FMT(name));
        return SRV_NOT_FOUND;
    }
    char *override = NULL;
    if (config) {
        srv_config parsed;
        srv_config_init(&parsed);
        sn_status status = srv_config_json(&parsed, config, strlen(config), &err);
        srv_config_free(&parsed);
        override = status == SN_OK ? strdup(config) : NULL;
        if (!override) {
            snprintf(why, why_size, "its configuration: %s", err.message);
            return SRV_INVALID;
        }
    }
    srv_entry *e = srv_add_entry(repo, name, true);
    if (!e) {
        free(override);
        snprintf(why, why_size, "%d models are known already", repo->server->limits.models);
        return SRV_UNAVAILABLE;
    }
    free(e->override);
    e->override = override;
    srv_entry_want(repo, e, true);
    if (srv_entry_update(repo, e, true, &err)) return SRV_OK;
    srv_repository_hide_paths(repo, err.message);
    snprintf(why, why_size, "failed to load '%.*s': %s", SNI_FMT(name), err.message);
    return SRV_INVALID;
}

srv_code srv_repository_unload(srv_repository *repo, sni_str name, char *why, size_t why_size) {
    srv_entry *e = find_entry(repo, name);
    if (!e || !e->versions) {
        snprintf(why, why_size, "model '%.*s' is not loaded", SNI_FMT(name));
        return SRV_NOT_FOUND;
    }
    srv_entry_want(repo, e, false);
    srv_entry_drop(repo, e);
    srv_log(&repo->server->log, SRV_LOG_INFO, "unloaded a model", "model", e->name, NULL);
    return SRV_OK;
}
