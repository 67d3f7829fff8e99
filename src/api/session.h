/* session.h - what a session is made of, for the files that are about it. */
#ifndef SNI_API_SESSION_H
#define SNI_API_SESSION_H

#include "api/model.h"
#include "api/provider/provider.h"
#include "exec/run.h"
#include "opt/opt.h"

#include <pthread.h>

/* An optimised graph and what runs it. */
typedef struct sni_session_variant {
    sni_store *store;
    sni_graph *graph;
    sni_program *program;
} sni_session_variant;

struct sn_session {
    sn_model *model;          /* retained */
    sni_session_variant main; /* inputs with a default are constants in it */
    /* They are inputs in this one, and inputs may have shapes that sni_infer_any_inputs() allows:
     * made for the first run that asks for it, guarded by `lock`. */
    sni_session_variant open;
    pthread_mutex_t lock;
    sni_pool pool; /* valid if has_pool */
    bool has_pool;
    sn_session_options options; /* names of rules are the optimiser's; other strings not kept */
    sn_model *kept;             /* the compiled variant of the model from the cache; NULL: none */
    char *cache_path;           /* where to write it after the first run; NULL: nowhere */
    atomic_bool cached;         /* that has been seen to */
    sni_opt_report report;
    sni_engines engines;     /* of providers */
    sni_finished_key *tuned; /* the pool's choices by measurement, if they are its own (tune.c) */
};

/* Tells the caller's function, if there is one. */
void sni_session_log(const sn_session *s, sn_log_level level, const char *text);

/* The variant for a run: `given` says that an input with a default has a value, that one declared
 * as a scalar is none, or that dimensions of one name differ. The first such run makes the open
 * variant, and others wait meanwhile. Thread-safe; `*out` is the session's. */
sn_status sni_session_choose_variant(sn_session *s, bool given, const sni_session_variant **out,
                                     sn_error *err);

/* After a run of the main variant: what it packed goes to the cache, once. A failure is only
 * logged. Thread-safe. */
void sni_session_fill_cache(sn_session *s);

/* Fails as a run with these inputs does before it begins: a NULL session, inputs that are missing,
 * of another type or shape, or given twice. */
sn_status sni_session_check_inputs(sn_session *s, const sn_binding *inputs, size_t count,
                                   sn_error *err);

#endif
