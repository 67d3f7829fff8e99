/* registry.c - which providers there are: loading, registering and finding them, and their devices.
 */
#include "api/provider/provider.h"

#include "base/cpu.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#ifndef SINTER_PROVIDER_FOLDER
#define SINTER_PROVIDER_FOLDER "/usr/local/lib/sinter/providers"
#endif

static struct {
    pthread_mutex_t lock;
    sni_provider *first;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- What a provider may call ---- */

static sn_status fail(sn_error *err, sn_status status, const char *format, ...) {
    char text[SN_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sni_fail(err, status, "%s", text);
}

/* Lines that no session is told of. */
static void log_line(const sn_ep_host *host, sn_log_level level, const char *text) {
    (void)host, (void)level;
    if (getenv("SINTER_PROVIDER_LOG")) fprintf(stderr, "sinter: %s\n", text ? text : "");
}

static bool tensor(const sn_value *v, sn_op_tensor *out) {
    if (!v || !out || v->kind != SN_KIND_TENSOR) return false;
    *out = (sn_op_tensor){.dtype = v->dtype,
                          .rank = v->rank,
                          .dims = v->dims,
                          .count = v->count,
                          .bytes = v->bytes,
                          .data = v->data,
                          .value = (sn_value *)v};
    return true;
}

const sn_ep_host sni_ep_host = {.size = sizeof(sn_ep_host),
                                .version = SN_EP_VERSION,
                                .library = "sinter",
                                .node = &sni_op_api,
                                .fail = fail,
                                .log = log_line,
                                .node_count = sni_ep_node_count,
                                .node_at = sni_ep_node_at,
                                .depth = sni_ep_depth,
                                .graph_onnx = sni_ep_graph_onnx,
                                .claim = sni_ep_claim,
                                .refuse = sni_ep_refuse,
                                .cache_get = sni_ep_cache_get,
                                .cache_put = sni_ep_cache_put,
                                .output = sni_ep_output,
                                .stopping = sni_ep_stopping,
                                .tensor = tensor};

const sn_ep_host *sn_provider_host(void) {
    return &sni_ep_host;
}

sn_status sni_provider_failed(sn_error *err, sn_status status, sn_error *told) {
    if (status == SN_OK || (unsigned)status > SN_INTERNAL) status = SN_INTERNAL;
    told->message[sizeof told->message - 1] = 0;
    return sni_fail(err, status, "%s", told->message[0] ? told->message : "it does not say why");
}

/* ---- Registering ---- */

bool sni_provider_is_cpu(const char *name) {
    return strcasecmp(name, "cpu") == 0 || strcasecmp(name, "CPUExecutionProvider") == 0;
}

/* Whether users may mean a provider by `asked`. */
static bool is_called(const sni_provider *p, const char *asked) {
    static const char suffix[] = "ExecutionProvider";
    size_t n = strlen(p->name), extra = sizeof suffix - 1, given = strlen(asked);
    if (strcasecmp(p->name, asked) == 0) return true;
    if (n > extra && strcasecmp(p->name + n - extra, suffix) == 0 && n - extra == given)
        return strncasecmp(p->name, asked, given) == 0;
    return given == n + extra && strncasecmp(p->name, asked, n) == 0 &&
           strcasecmp(asked + n, suffix) == 0;
}

/* With the lock held. */
static sni_provider *find(const char *name) {
    sni_provider *p = registry.first;
    while (p && (p->forgotten || !is_called(p, name))) p = p->next;
    return p;
}

static bool is_name(const char *name) {
    size_t n = 0;
    for (; name && name[n]; n++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", name[n]))
            return false;
    return n > 0 && n < 64;
}

/* Copies a table that may be shorter or longer than ours, and says what it lacks. */
static sn_status read_api(const sn_ep_api *given, sn_ep_api *out, sn_error *err) {
    if (!given) return sni_fail(err, SN_INVALID_ARGUMENT, "it gave no table of functions");
    if (given->size < offsetof(sn_ep_api, prepare) || given->size > 65536)
        return sni_fail(err, SN_INVALID_ARGUMENT, "its table of functions has %zu bytes",
                        given->size);
    *out = (sn_ep_api){0};
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (out->version == 0 || out->version > SN_EP_VERSION)
        return sni_fail(err, SN_UNSUPPORTED,
                        "it is written for version %u of the interface, and this library has "
                        "versions 1 to %d",
                        out->version, SN_EP_VERSION);
    if (!is_name(out->name))
        return sni_fail(err, SN_INVALID_ARGUMENT, "its name is not of letters and digits");
    if (!out->device || !out->open || !out->close || !out->claim || !out->compile ||
        !out->program_free || !out->run)
        return sni_fail(err, SN_INVALID_ARGUMENT, "a function that every provider has is missing");
    if (!out->prepare != !out->ready_free)
        return sni_fail(err, SN_INVALID_ARGUMENT, "it has one of prepare and ready_free alone");
    int memory =
        !out->alloc + !out->free + !out->queue_new + !out->queue_free + !out->copy + !out->wait;
    if (memory != 0 && memory != 6)
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "it has some of alloc, free, queue_new, queue_free, copy and wait, but not "
                        "all");
    if (!out->vendor) out->vendor = "";
    if (!out->revision) out->revision = "";
    return SN_OK;
}

static void free_provider(sni_provider *p) {
    if (p->library) dlclose(p->library);
    free(p->name);
    free(p->path);
    free(p);
}

/* With the lock held. `library` is taken over on success. */
static sn_status add(const sn_ep_api *given, const char *name, const char *path, void *library,
                     sn_error *err) {
    sn_ep_api api;
    SN_TRY(read_api(given, &api, err));
    if (!name) name = api.name;
    if (!is_name(name) || sni_provider_is_cpu(name))
        return sni_fail(err, SN_INVALID_ARGUMENT, "a provider cannot be called '%.60s'", name);
    if (find(name))
        return sni_fail(err, SN_INVALID_ARGUMENT, "there is a provider '%s' already", name);
    sni_provider *p = calloc(1, sizeof *p);
    if (!p) return sni_fail_memory(err);
    *p = (sni_provider){.given = given, .api = api, .name = strdup(name), .path = strdup(path)};
    if (!p->name || !p->path) {
        free_provider(p);
        return sni_fail_memory(err);
    }
    p->library = library;
    sni_provider **at = &registry.first;
    while (*at) at = &(*at)->next;
    *at = p;
    return SN_OK;
}

sn_status sn_provider_register(const sn_ep_api *api, sn_error *err) {
    pthread_mutex_lock(&registry.lock);
    sn_status status = add(api, NULL, "", NULL, err);
    pthread_mutex_unlock(&registry.lock);
    return status == SN_OK ? status : sni_fail_context(err, status, "provider");
}

/* ---- Libraries ---- */

static sn_status load(const char *path, const char *name, sn_error *err) {
    for (sni_provider *p = registry.first; p; p = p->next)
        if (!p->forgotten && strcmp(p->path, path) == 0 && (!name || is_called(p, name)))
            return SN_OK;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return sni_fail(err, SN_NOT_FOUND, "%s", dlerror());
    sn_ep_entry_fn entry = NULL;
    void *symbol = dlsym(library, "sinter_ep_entry");
    memcpy(&entry, &symbol, sizeof entry);
    sn_status status = SN_OK;
    const sn_ep_api *api = NULL;
    if (!entry) {
        bool other = dlsym(library, "CreateEpFactories") != NULL;
        status = sni_fail(err, SN_INVALID_ARGUMENT, "it does not export sinter_ep_entry%s",
                          other ? "; it is a plug-in for ONNX Runtime: use it by way of "
                                  "libonnxruntime.so.1"
                                : "");
    } else {
        sn_error told = {0};
        status = entry(&sni_ep_host, &api, &told);
        if (status != SN_OK) status = sni_provider_failed(err, status, &told);
    }
    if (status == SN_OK) status = add(api, name, path, library, err);
    if (status != SN_OK) dlclose(library);
    return status;
}

sn_status sn_provider_load(const char *path, const char *name, sn_error *err) {
    sn_error unwanted = {0};
    if (!err) err = &unwanted;
    if (!path) return sni_fail(err, SN_INVALID_ARGUMENT, "path is NULL");
    if (!strchr(path, '/'))
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "provider library '%s': write a path with a '/', it is not searched for",
                        path);
    pthread_mutex_lock(&registry.lock);
    sn_status status = load(path, name, err);
    pthread_mutex_unlock(&registry.lock);
    return status == SN_OK ? status : sni_fail_context(err, status, "provider library '%s'", path);
}

static void unlink_provider(sni_provider *p) {
    sni_provider **at = &registry.first;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    free_provider(p);
}

sn_status sn_provider_unload(const char *name, sn_error *err) {
    if (!name) return sni_fail(err, SN_INVALID_ARGUMENT, "name is NULL");
    pthread_mutex_lock(&registry.lock);
    sni_provider *p = find(name);
    if (p) p->forgotten = true;
    if (p && !p->users) unlink_provider(p);
    pthread_mutex_unlock(&registry.lock);
    return p ? SN_OK : sni_fail(err, SN_NOT_FOUND, "there is no provider '%s'", name);
}

void sni_provider_release(sni_provider *p) {
    pthread_mutex_lock(&registry.lock);
    if (--p->users == 0 && p->forgotten) unlink_provider(p);
    pthread_mutex_unlock(&registry.lock);
}

/* ---- Searching ---- */

static int is_library(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 6 && strncmp(e->d_name, "lib", 3) == 0 && strcmp(e->d_name + n - 3, ".so") == 0;
}

static void search_folder(const char *folder, sn_log_fn log, void *log_ctx) {
    struct dirent **found = NULL;
    int count = scandir(folder, &found, is_library, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4096];
        sn_error err = {0};
        int n = snprintf(path, sizeof path, "%s/%s", folder, found[i]->d_name);
        if (n > 0 && (size_t)n < sizeof path && sn_provider_load(path, NULL, &err) != SN_OK && log)
            log(log_ctx, SN_LOG_WARNING, err.message);
        free(found[i]);
    }
    free(found);
}

void sn_provider_search(const char *folder, sn_log_fn log, void *log_ctx) {
    if (folder) {
        search_folder(folder, log, log_ctx);
        return;
    }
    const char *list = getenv("SINTER_PROVIDER_PATH");
    while (list && *list) {
        size_t n = strcspn(list, ":");
        char *one = n ? strndup(list, n) : NULL;
        if (one) search_folder(one, log, log_ctx);
        free(one);
        list += n + (list[n] == ':');
    }
    search_folder(SINTER_PROVIDER_FOLDER, log, log_ctx);
}

sni_provider *sni_provider_find(const char *name, char *known, size_t size) {
    for (int again = 0; again < 2; again++) {
        pthread_mutex_lock(&registry.lock);
        sni_provider *p = find(name);
        if (p) p->users++;
        int at = p ? 0 : snprintf(known, size, "cpu");
        for (sni_provider *o = registry.first; o && !p && at > 0 && (size_t)at < size; o = o->next)
            if (!o->forgotten) at += snprintf(known + at, size - (size_t)at, ", %s", o->name);
        pthread_mutex_unlock(&registry.lock);
        if (p) return p;
        if (!again) sn_provider_search(NULL, NULL, NULL);
    }
    return NULL;
}

/* ---- Devices ---- */

static const char *kind_name(sn_device_kind kind) {
    static const char *const names[] = {"cpu", "gpu", "npu", "other"};
    return (unsigned)kind < 4 ? names[kind] : "other";
}

static const char *text_or_empty(const char *text) {
    return text ? text : "";
}

static void describe_cpu(sn_device_info *out) {
    *out = (sn_device_info){.provider = "cpu",
                            .kind = "cpu",
                            .name = sni_isa_name(sni_cpu_isa()),
                            .vendor = "",
                            .driver = "",
                            .revision = sn_version(),
                            .library = "",
                            .types = UINT32_MAX & ~1u};
}

bool sn_device(size_t index, sn_device_info *out) {
    if (!out) return false;
    if (index == 0) {
        describe_cpu(out);
        return true;
    }
    bool found = false;
    index--;
    pthread_mutex_lock(&registry.lock);
    for (const sni_provider *p = registry.first; p && !found; p = p->next) {
        sn_ep_device d = {.size = sizeof d};
        for (size_t i = 0; !p->forgotten && !found && p->api.device(p->given, i, &d); i++) {
            found = index-- == 0;
            if (found)
                *out =
                    (sn_device_info){.provider = p->name,
                                     .index = (int)i,
                                     .kind = kind_name(d.kind),
                                     .name = text_or_empty(d.name),
                                     .vendor = text_or_empty(d.vendor ? d.vendor : p->api.vendor),
                                     .driver = text_or_empty(d.driver),
                                     .revision = p->api.revision,
                                     .library = p->path,
                                     .memory_bytes = d.memory_bytes,
                                     .types = d.types,
                                     .unusable = d.unusable};
            d = (sn_ep_device){.size = sizeof d};
        }
    }
    pthread_mutex_unlock(&registry.lock);
    return found;
}
