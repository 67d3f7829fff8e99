/* repository_table.h - the table behind repository.h, for the files that make it up. */
#ifndef SRV_ENGINE_REPOSITORY_TABLE_H
#define SRV_ENGINE_REPOSITORY_TABLE_H

#include "server/engine/folder.h"
#include "server/engine/repository.h"

/* A version that is loaded or could not be. */
typedef struct srv_version {
    int64_t number;
    srv_model *model; /* NULL: unavailable */
    srv_fingerprint print;
    char reason[SN_ERROR_MESSAGE_SIZE];
    bool loading;
    struct srv_version *next; /* smaller numbers */
} srv_version;

typedef struct srv_entry {
    char *name;
    bool wanted;                        /* should be loaded */
    bool queued;                        /* the loader has a job to look at it again */
    char reason[SN_ERROR_MESSAGE_SIZE]; /* why it has no version, or not those it should; else "" */
    char *override;                     /* a configuration given by a load request, or NULL */
    srv_fingerprint config_print;
    srv_version *versions; /* largest first */
    struct srv_entry *next;
} srv_entry;

/* Entries stay for good. What is in one is changed only by the loader's job that has its name as
 * key; under the lock, held for writing, where other threads look at it. */
struct srv_repository {
    srv_server *server;
    pthread_rwlock_t lock; /* guards what is below; held for writing only to change pointers */
    srv_folder folder;
    char *hidden[2]; /* ways to write the folder's path; set once by srv_repository_open */
    srv_entry *entries;
    int count;
    int first_left; /* models that the first scan found and that have not been tried yet */
    bool explicit_only;
    bool searched; /* the first scan is over */
    bool scanned;  /* and all that it found was tried */
};

/* Under the lock. */
srv_entry *srv_find_entry(const srv_repository *repository, sni_str name);
bool srv_entry_serves(const srv_entry *e);

/* The entry of that name, made with `wanted` if there is none; NULL: no room. */
srv_entry *srv_add_entry(srv_repository *repository, sni_str name, bool wanted);

/* In a job of the loader that has the name as key. */
void srv_entry_want(srv_repository *repository, srv_entry *e, bool wanted);
void srv_entry_drop(srv_repository *repository, srv_entry *e); /* all its versions */
/* Brings an entry's versions into line with the folder; `force` loads unchanged ones, too. */
bool srv_entry_update(srv_repository *repository, srv_entry *e, bool force, sn_error *err);

#endif
