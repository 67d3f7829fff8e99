/* repository.h - the folder of models: what is there, what is loaded, what takes its place.
 * folder.h says how it is laid out. A version that is changed on disk is loaded beside the one in
 * use and takes its place in one step; requests that have the old one keep it until they are
 * done. */
#ifndef SRV_ENGINE_REPOSITORY_H
#define SRV_ENGINE_REPOSITORY_H

#include "server/engine/model.h"

typedef struct srv_repository_options {
    const char *path;
    const char *const *startup; /* names of the models to load at the start; */
    size_t startup_count;       /* 0: all of them */
    bool explicit_only;         /* load nothing unless named in `startup` or asked for */
} srv_repository_options;

typedef struct srv_repository srv_repository;

/* A repository of the server that knows no model yet; NULL without memory. */
srv_repository *srv_repository_create(srv_server *server);
/* Forgets the models; those that requests still hold live on. NULL is fine. */
void srv_repository_destroy(srv_repository *repository);

/* Opens the folder; nothing is loaded before srv_repository_scan. Only a folder that cannot be
 * read, or a model named in the options that is not there, fails. To be called once, before the
 * loader runs. */
sn_status srv_repository_open(srv_repository *repository, const srv_repository_options *options,
                              sn_error *err);

/* The version asked for (0: the newest one that is loaded), retained; otherwise why not. Any
 * thread, as the next one. */
srv_code srv_repository_find(srv_repository *repository, sni_str name, int64_t version,
                             srv_model **out, char *why, size_t why_size);

/* True when every model that should be loaded is. */
bool srv_repository_ready(srv_repository *repository);
/* Which are not, and why: "model 'a': no such file; model 'b': it is loading", cut to `size`. */
void srv_repository_unready(srv_repository *repository, char *text, size_t size);

/* Looks at the folder again: has the loader load what is new, replace what has changed, drop what
 * is gone. Models that cannot be loaded are logged and listed as unavailable. The server counts as
 * loaded once each model of the first scan has been tried. False: the folder could not be read, and
 * should be again. The loader's own thread alone. */
bool srv_repository_scan(srv_repository *repository);
/* Loads (or loads again) a model's versions; `config` is a JSON configuration instead of the
 * file's, or NULL. Not SRV_OK: `why` says what is wrong, without paths. In a job of the loader
 * whose key is the name, as the next one. */
srv_code srv_repository_load(srv_repository *repository, sni_str name, const char *config,
                             char *why, size_t why_size);
srv_code srv_repository_unload(srv_repository *repository, sni_str name, char *why,
                               size_t why_size);
/* The model's load is late; says so where readers ask. Any thread. */
void srv_repository_overdue(srv_repository *repository, sni_str name);

/* Cuts the folder's path out of a text in place: it must not reach clients. Any thread. */
void srv_repository_hide_paths(const srv_repository *repository, char *text);

/* One line of the index. Borrowed for the call. */
typedef struct srv_index_entry {
    const char *name;
    int64_t version;   /* 0: none is known */
    const char *state; /* "READY", "LOADING", "UNAVAILABLE" */
    const char *reason;
    bool wanted;      /* it should be loaded */
    srv_model *model; /* NULL unless READY */
} srv_index_entry;
typedef void (*srv_index_fn)(void *ctx, const srv_index_entry *entry);
/* Calls `fn` for every line, under the repository's lock: it must not call the repository. Any
 * thread. */
void srv_repository_each(srv_repository *repository, srv_index_fn fn, void *ctx);

#endif
