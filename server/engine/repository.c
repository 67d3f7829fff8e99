/* repository.c - the folder of models: what is there, what is loaded, what takes its place. */
#include "server/engine/repository.h"
#include "server/engine/folder.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

#define REASON SN_ERROR_MESSAGE_SIZE

/* A version that is loaded or could not be. */
typedef struct version {
    int64_t number;
    srv_model *model; /* NULL: unavailable */
    srv_fingerprint print;
    char reason[REASON];
    bool loading;
    struct version *next; /* smaller numbers */
} version;

typedef struct entry {
    char *name;
    bool wanted;    /* should be loaded */
    char *override; /* a configuration given by a load request, or NULL */
    srv_fingerprint config_print;
    version *versions; /* largest first */
    struct entry *next;
} entry;

struct srv_repository {
    srv_server *server;
    pthread_rwlock_t lock; /* guards what is below; held for writing only to change pointers */
    srv_folder folder;
    char *hidden[2]; /* ways to write the folder's path; set once by srv_repository_open */
    entry *entries;
    int count;
    bool explicit_only;
    bool scanned;
};

static entry *find_entry(const srv_repository *repo, sni_str name) {
    for (entry *e = repo->entries; e; e = e->next) {
        if (sni_str_is(name, e->name)) return e;
    }
    return NULL;
}

static version *find_version(const entry *e, int64_t number) {
    for (version *v = e->versions; v; v = v->next) {
        if (v->number == number) return v;
    }
    return NULL;
}

/* ---- Changing the table ------------------------------------------------------------------- */

static entry *add_entry(srv_repository *repo, sni_str name) {
    entry *e = find_entry(repo, name);
    if (e) return e;
    if (repo->count >= repo->server->limits.models) return NULL;
    e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->name = srv_strndup(name.p, name.n);
    if (!e->name) {
        free(e);
        return NULL;
    }
    pthread_rwlock_wrlock(&repo->lock);
    entry **at = &repo->entries;
    while (*at && strcmp((*at)->name, e->name) < 0) at = &(*at)->next;
    e->next = *at;
    *at = e;
    repo->count++;
    pthread_rwlock_unlock(&repo->lock);
    return e;
}

static version *add_version(srv_repository *repo, entry *e, int64_t number) {
    version *v = find_version(e, number);
    if (v) return v;
    v = calloc(1, sizeof *v);
    if (!v) return NULL;
    v->number = number;
    pthread_rwlock_wrlock(&repo->lock);
    version **at = &e->versions;
    while (*at && (*at)->number > number) at = &(*at)->next;
    v->next = *at;
    *at = v;
    pthread_rwlock_unlock(&repo->lock);
    return v;
}

/* Puts `model` (NULL: none) in a version's place; the old one lives on in its requests. */
static void replace(srv_repository *repo, version *v, srv_model *model, const char *reason) {
    pthread_rwlock_wrlock(&repo->lock);
    srv_model *old = v->model;
    v->model = model;
    v->loading = false;
    snprintf(v->reason, sizeof v->reason, "%s", reason);
    pthread_rwlock_unlock(&repo->lock);
    srv_model_release(old);
}

static void drop_version(srv_repository *repo, entry *e, version *v) {
    pthread_rwlock_wrlock(&repo->lock);
    version **at = &e->versions;
    while (*at != v) at = &(*at)->next;
    *at = v->next;
    pthread_rwlock_unlock(&repo->lock);
    srv_model_release(v->model);
    free(v);
}

/* ---- Loading ------------------------------------------------------------------------------ */

static sn_status read_config(const srv_repository *repo, const entry *e, srv_config *config,
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

static void log_load(srv_logger *log, const entry *e, int64_t number, const srv_model *model,
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

/* Loads one version and lets it take over. A load that fails leaves the old one serving. */
static sn_status load_version(srv_repository *repo, entry *e, int64_t number,
                              const srv_fingerprint *print) {
    sn_error err = {0};
    srv_config config;
    srv_model *model = NULL;
    version *v = add_version(repo, e, number);
    if (!v) return SN_NO_MEMORY;
    pthread_rwlock_wrlock(&repo->lock);
    v->loading = true;
    pthread_rwlock_unlock(&repo->lock);
    char *path = srv_folder_model_path(&repo->folder, e->name, number);
    sn_status status = path ? read_config(repo, e, &config, &err) : sni_fail_memory(&err);
    if (path && status == SN_OK) {
        status = srv_model_load(repo->server, path, e->name, number, &config, &model, &err);
    }
    if (path) srv_config_free(&config);
    free(path);
    srv_repository_hide_paths(repo, err.message);
    v->print = *print;
    if (status == SN_OK) {
        replace(repo, v, model, "");
    } else if (v->model) {
        pthread_rwlock_wrlock(&repo->lock);
        v->loading = false;
        pthread_rwlock_unlock(&repo->lock);
    } else {
        replace(repo, v, NULL, err.message);
    }
    log_load(&repo->server->log, e, number, model, err.message);
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

/* Brings an entry's versions into line with the folder; `force` loads unchanged ones, too. */
static bool update_entry(srv_repository *repo, entry *e, bool force, sn_error *err) {
    srv_found_version found[SRV_VERSIONS];
    srv_fingerprint config_print = {0};
    size_t count = srv_folder_versions(&repo->folder, e->name, found, SRV_VERSIONS, &config_print);
    srv_config config;
    sn_status status = read_config(repo, e, &config, err);
    for (size_t i = 0; i < count; i++) {
        found[i].chosen = status != SN_OK || in_policy(&config, found, i);
    }
    srv_config_free(&config);
    bool changed = force || memcmp(&config_print, &e->config_print, sizeof config_print) != 0;
    e->config_print = config_print;
    bool ok = true;
    for (size_t i = count; i-- > 0;) { /* oldest first: the newest takes over last */
        if (!found[i].chosen) continue;
        version *v = find_version(e, found[i].number);
        if (v && !changed && memcmp(&v->print, &found[i].print, sizeof v->print) == 0) continue;
        if (load_version(repo, e, found[i].number, &found[i].print) != SN_OK) {
            v = find_version(e, found[i].number);
            if (ok && v) {
                const char *why = v->reason;
                if (v->model) why = "the new file cannot be loaded; the old one still serves";
                sni_fail(err, SN_INVALID_MODEL, "%s", why);
            }
            ok = false;
        }
    }
    for (version *v = e->versions, *next; v; v = next) {
        next = v->next;
        if (!is_found(found, count, v->number)) drop_version(repo, e, v);
    }
    if (count == 0) {
        sni_fail(err, SN_NOT_FOUND, "it has no version folder with a model.onnx");
        return false;
    }
    return ok;
}

static void drop_all(srv_repository *repo, entry *e) {
    while (e->versions) drop_version(repo, e, e->versions);
}

void srv_repository_scan(srv_repository *repo) {
    srv_name_list names = {0};
    if (!srv_folder_names(&repo->folder, &names)) {
        srv_log(&repo->server->log, SRV_LOG_ERROR, "cannot read the model folder", NULL);
        return;
    }
    for (size_t i = 0; i < names.count; i++) {
        sni_str name = sni_str_of(names.items[i]);
        bool known = find_entry(repo, name) != NULL;
        entry *e = add_entry(repo, name);
        if (!e) continue;
        if (!known) e->wanted = !repo->explicit_only;
        sn_error err = {0};
        if (e->wanted) update_entry(repo, e, false, &err);
    }
    for (entry *e = repo->entries; e; e = e->next) {
        bool there = false;
        for (size_t i = 0; i < names.count && !there; i++) {
            there = strcmp(names.items[i], e->name) == 0;
        }
        if (!there) {
            e->wanted = false;
            drop_all(repo, e);
        }
    }
    srv_name_list_free(&names);
}

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
        entry *e = add_entry(repo, name);
        if (!e) return sni_fail_memory(err);
        e->wanted = true;
    }
    srv_repository_scan(repo);
    repo->scanned = true;
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
    for (entry *e = repo->entries, *next; e; e = next) {
        next = e->next;
        drop_all(repo, e);
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

void srv_repository_hide_paths(const srv_repository *repo, char *text) {
    for (size_t i = 0; i < 2; i++) {
        size_t length = repo->hidden[i] ? strlen(repo->hidden[i]) : 0;
        if (length < 2) continue;
        for (char *at; (at = strstr(text, repo->hidden[i])) != NULL;) {
            size_t cut = length + (at[length] == '/' ? 1 : 0);
            memmove(at, at + cut, strlen(at + cut) + 1);
        }
    }
}

/* ---- Asking ------------------------------------------------------------------------------- */

srv_code srv_repository_find(srv_repository *repo, sni_str name, int64_t number, srv_model **out,
                             char *why, size_t why_size) {
    srv_code code = SRV_NOT_FOUND;
    snprintf(why, why_size, "there is no model '%.*s'", SNI_FMT(name));
    pthread_rwlock_rdlock(&repo->lock);
    entry *e = find_entry(repo, name);
    bool any = false;
    for (version *v = e ? e->versions : NULL; v; v = v->next) {
        if (number && v->number != number) continue;
        any = true;
        if (!v->model) continue;
        *out = srv_model_retain(v->model);
        code = SRV_OK;
        break;
    }
    if (code != SRV_OK && e) {
        if (any || !number) {
            code = any ? SRV_UNAVAILABLE : SRV_NOT_FOUND;
            snprintf(why, why_size, "model '%.*s' is not ready", SNI_FMT(name));
        } else {
            snprintf(why, why_size, "model '%.*s' has no version %lld", SNI_FMT(name),
                     (long long)number);
        }
    }
    pthread_rwlock_unlock(&repo->lock);
    return code;
}

bool srv_repository_ready(srv_repository *repo) {
    bool ready = true;
    pthread_rwlock_rdlock(&repo->lock);
    ready = repo->scanned;
    for (entry *e = repo->entries; e && ready; e = e->next) {
        if (!e->wanted) continue;
        bool serves = false;
        for (version *v = e->versions; v && !serves; v = v->next) serves = v->model != NULL;
        ready = serves;
    }
    pthread_rwlock_unlock(&repo->lock);
    return ready;
}

void srv_repository_each(srv_repository *repo, srv_index_fn fn, void *ctx) {
    pthread_rwlock_rdlock(&repo->lock);
    for (entry *e = repo->entries; e; e = e->next) {
        if (!e->versions) {
            srv_index_entry line = {.name = e->name,
                                    .state = "UNAVAILABLE",
                                    .reason = e->wanted ? "no version could be found" : "unloaded"};
            fn(ctx, &line);
        }
        for (version *v = e->versions; v; v = v->next) {
            srv_index_entry line = {.name = e->name,
                                    .version = v->number,
                                    .state = v->model     ? "READY"
                                             : v->loading ? "LOADING"
                                                          : "UNAVAILABLE",
                                    .reason = v->model ? "" : v->reason,
                                    .model = v->model};
            fn(ctx, &line);
        }
    }
    pthread_rwlock_unlock(&repo->lock);
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
    entry *e = add_entry(repo, name);
    if (!e) {
        free(override);
        snprintf(why, why_size, "%d models are known already", repo->server->limits.models);
        return SRV_UNAVAILABLE;
    }
    free(e->override);
    e->override = override;
    e->wanted = true;
    if (update_entry(repo, e, true, &err)) return SRV_OK;
    srv_repository_hide_paths(repo, err.message);
    snprintf(why, why_size, "failed to load '%.*s': %s", SNI_FMT(name), err.message);
    return SRV_INVALID;
}

srv_code srv_repository_unload(srv_repository *repo, sni_str name, char *why, size_t why_size) {
    entry *e = find_entry(repo, name);
    if (!e || !e->versions) {
        snprintf(why, why_size, "model '%.*s' is not loaded", SNI_FMT(name));
        return SRV_NOT_FOUND;
    }
    e->wanted = false;
    drop_all(repo, e);
    srv_log(&repo->server->log, SRV_LOG_INFO, "unloaded a model", "model", e->name, NULL);
    return SRV_OK;
}
