/* engine.c - devices opened for a session: what its options say, and what they came to. */
#include "api/provider/provider.h"

#include "base/cpu.h"

#include "api/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_SHAPES = 16, MAX_SETTINGS = 1024 };

void sni_engine_log(const sni_engine *e, sn_log_level level, const char *format, ...) {
    char line[SN_ERROR_MESSAGE_SIZE + 128];
    int n = snprintf(line, sizeof line, "provider '%s': ", e->provider->name);
    va_list args;
    if (!e->log || n < 0 || (size_t)n >= sizeof line) return;
    va_start(args, format);
    vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    e->log(e->log_ctx, level, line);
}

sni_engine *sni_engine_retain(sni_engine *e) {
    atomic_fetch_add(&e->refs, 1);
    return e;
}

void sni_engine_release(sni_engine *e) {
    if (!e || atomic_fetch_sub(&e->refs, 1) != 1) return;
    sni_engine_trim(e);
    for (sni_idle_queue *q = e->queues, *next; q; q = next) {
        next = q->next;
        e->provider->api.queue_free(q->queue);
        free(q);
    }
    if (e->ep) e->provider->api.close(e->ep);
    sni_provider_release(e->provider);
    pthread_mutex_destroy(&e->lock);
    free(e->device);
    free(e->digest);
    free(e->cache_folder);
    free(e);
}

/* ---- Settings ---- */

static sn_status read_number(const sn_provider_setting *s, int least, int most, int *out,
                             sn_error *err) {
    char *end;
    long v = strtol(s->value, &end, 10);
    if (*end || end == s->value || v < least || v > most)
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "%s is '%.60s' and must be a number from %d to %d", s->key, s->value, least,
                        most);
    *out = (int)v;
    return SN_OK;
}

/* A setting that the library itself takes; *own false: it is the provider's. */
static sn_status take_own(sni_engine *e, const sn_provider_setting *s, bool *own, sn_error *err) {
    int fallback;
    *own = strncmp(s->key, "sinter.", 7) == 0;
    if (!*own) return SN_OK;
    if (strcmp(s->key, "sinter.min_nodes") == 0)
        return read_number(s, 1, 1 << 30, &e->min_nodes, err);
    if (strcmp(s->key, "sinter.shapes") == 0)
        return read_number(s, 1, 1 << 20, &e->max_shapes, err);
    if (strcmp(s->key, "sinter.fallback") != 0)
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "there is no setting '%.60s'; there are sinter.min_nodes, sinter.shapes "
                        "and sinter.fallback",
                        s->key);
    SN_TRY(read_number(s, 0, 1, &fallback, err));
    e->fallback = fallback != 0;
    return SN_OK;
}

/* The provider's own settings into `out`, and all that they say into `e->digest`. */
static sn_status take_settings(sni_engine *e, const sn_provider_use *u, const sn_ep_device *d,
                               sn_ep_setting *out, size_t *count, sn_error *err) {
    sni_arena texts;
    sni_arena_init(&texts, 0);
    sni_str all =
        sni_arena_printf(&texts, "%s|%s|%d|%s|%s", e->provider->api.name, e->provider->api.revision,
                         u->device, d->name ? d->name : "", d->driver ? d->driver : "");
    sn_status status = SN_OK;
    *count = 0;
    for (size_t i = 0; i < u->setting_count && status == SN_OK; i++) {
        const sn_provider_setting *s = &u->settings[i];
        bool own;
        if (!s->key || !s->value)
            status = sni_fail(err, SN_INVALID_ARGUMENT, "setting %zu is NULL", i);
        else
            status = take_own(e, s, &own, err);
        if (status != SN_OK || own) continue;
        out[(*count)++] = (sn_ep_setting){s->key, s->value};
        all = sni_arena_printf(&texts, "%s|%s=%s", all.p ? all.p : "", s->key, s->value);
    }
    if (status == SN_OK) e->digest = strdup(all.p ? all.p : "");
    if (status == SN_OK && !e->digest) status = sni_fail_memory(err);
    sni_arena_free(&texts);
    return status;
}

/* ---- Opening ---- */

static sn_status find_device(sni_engine *e, int index, sn_ep_device *d, sn_error *err) {
    const sni_provider *p = e->provider;
    *d = (sn_ep_device){.size = sizeof *d};
    if (index < 0 || !p->api.device(p->given, (size_t)index, d)) {
        size_t count = 0;
        while (count < 4096 && p->api.device(p->given, count, d)) count++;
        return sni_fail(err, SN_NOT_FOUND, "it has no device %d, but %zu", index, count);
    }
    if (d->unusable)
        return sni_fail(err, SN_UNSUPPORTED, "device %d (%s) cannot be used: %s", index,
                        d->name ? d->name : "", d->unusable);
    e->device = strdup(d->name ? d->name : "");
    return e->device ? SN_OK : sni_fail_memory(err);
}

static sn_status open_device(sni_engine *e, const sn_provider_use *u, sn_error *err) {
    const sni_provider *p = e->provider;
    sn_ep_device d;
    sn_error told = {0};
    size_t count = 0;
    SN_TRY(find_device(e, u->device, &d, err));
    sn_ep_setting *settings = calloc(u->setting_count + 1, sizeof *settings);
    if (!settings) return sni_fail_memory(err);
    sn_status status = take_settings(e, u, &d, settings, &count, err);
    if (status == SN_OK) {
        status = p->api.open(p->given, (size_t)u->device, settings, count, &e->ep, &told);
        if (status != SN_OK) {
            status = sni_provider_failed(err, status, &told);
            e->ep = NULL;
        } else if (!e->ep) {
            status = sni_fail(err, SN_INTERNAL, "it opened its device and gave nothing back");
        }
    }
    free(settings);
    return status;
}

static sn_status engine_new(const sn_provider_use *u, const sn_session_options *o, sni_engine **out,
                            sn_error *err) {
    char known[256];
    sni_provider *p = sni_provider_find(u->name, known, sizeof known);
    if (!p)
        return sni_fail(err, SN_NOT_FOUND,
                        "there is no provider '%.60s'; there are %s. Its library must be loaded by "
                        "its path, or be in a folder of SINTER_PROVIDER_PATH",
                        u->name, known);
    sni_engine *e = calloc(1, sizeof *e);
    if (!e || pthread_mutex_init(&e->lock, NULL) != 0) {
        free(e);
        sni_provider_release(p);
        return sni_fail_memory(err);
    }
    e->provider = p;
    e->fallback = true;
    e->max_shapes = DEFAULT_SHAPES;
    e->log = o->log;
    e->log_ctx = o->log_ctx;
    atomic_init(&e->refs, 1);
    atomic_init(&e->told, false);
    sn_status status = SN_OK;
    if (o->cache_folder && !(e->cache_folder = strdup(o->cache_folder)))
        status = sni_fail_memory(err);
    if (status == SN_OK) status = open_device(e, u, err);
    if (status != SN_OK) {
        status = sni_fail_context(err, status, "provider '%s'", p->name);
        sni_engine_release(e);
        return status;
    }
    *out = e;
    return SN_OK;
}

sn_status sni_engines_open(sni_engines *e, const sn_session_options *o, sn_error *err) {
    sni_arena_init(&e->texts, 0);
    if (!o->provider_count) return SN_OK;
    if (!o->providers) return sni_fail(err, SN_INVALID_ARGUMENT, "providers is NULL");
    e->of = calloc(o->provider_count, sizeof(*e->of));
    e->shares = calloc(o->provider_count + 1, sizeof *e->shares);
    if (!e->of || !e->shares) return sni_fail_memory(err);
    for (size_t i = 0; i < o->provider_count; i++) {
        const sn_provider_use *u = &o->providers[i];
        sn_error why = {0};
        if (!u->name || u->setting_count > MAX_SETTINGS || (u->setting_count && !u->settings))
            return sni_fail(err, SN_INVALID_ARGUMENT, "provider %zu has no name or settings", i);
        if (sni_provider_is_cpu(u->name)) break; /* it takes everything */
        sn_status status = engine_new(u, o, &e->of[e->count], &why);
        if (status == SN_OK) {
            e->count++;
        } else if (!u->optional) {
            return sni_fail(err, status, "%s", why.message);
        } else if (o->log) {
            o->log(o->log_ctx, SN_LOG_WARNING, why.message);
        }
    }
    return SN_OK;
}

void sni_engines_close(sni_engines *e) {
    for (size_t i = 0; i < e->count; i++) sni_engine_release(e->of[i]);
    free(e->of);
    free(e->shares);
    free(e->refusals);
    sni_arena_free(&e->texts);
    *e = (sni_engines){0};
}

size_t sni_engines_trim(sni_engines *e) {
    size_t bytes = 0;
    for (size_t i = 0; i < e->count; i++) bytes += sni_engine_trim(e->of[i]);
    return bytes;
}

/* ---- What came of it ---- */

sn_status sni_engines_refuse(sni_engines *e, const sni_engine *engine, const sni_graph *g,
                             const sni_node *n, const char *reason) {
    if (e->reported) return SN_OK;
    if (e->n_refusals == e->refusal_capacity) {
        size_t capacity = e->refusal_capacity ? e->refusal_capacity * 2 : 64;
        sn_provider_refusal *more = realloc(e->refusals, capacity * sizeof *more);
        if (!more) return SN_NO_MEMORY;
        e->refusals = more;
        e->refusal_capacity = capacity;
    }
    sn_provider_refusal *r = &e->refusals[e->n_refusals];
    r->provider = engine->provider->name;
    r->node = sni_arena_str(&e->texts, sni_node_label(g, n)).p;
    r->op = sni_arena_str(&e->texts, n->type).p;
    r->reason = sni_arena_str(&e->texts, sni_str_of(reason)).p;
    if (!r->node || !r->op || !r->reason) return SN_NO_MEMORY;
    e->n_refusals++;
    return SN_OK;
}

bool sn_session_provider(const sn_session *session, size_t index, sn_provider_share *out) {
    if (!session || !out) return false;
    const sni_engines *e = &session->engines;
    if (!e->count || index > e->count) return false;
    const sni_share *s = &e->shares[index];
    const char *name = "cpu", *device = sni_isa_name(sni_cpu_isa());
    if (index < e->count) {
        name = e->of[index]->provider->name;
        device = e->of[index]->device;
    }
    *out = (sn_provider_share){name, device, s->nodes, s->parts, s->refused};
    return true;
}

bool sn_session_refusal(const sn_session *session, size_t index, sn_provider_refusal *out) {
    if (!session || !out || index >= session->engines.n_refusals) return false;
    *out = session->engines.refusals[index];
    return true;
}
