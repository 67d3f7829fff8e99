/* cache.h - compiled forms of models in a folder: found by what they were made of, written when a
 * session has run for the first time. Nothing that goes wrong here fails a session. */
#ifndef SNI_API_CACHE_H
#define SNI_API_CACHE_H

#include "api/model.h"

/* The path of a model's file in `folder` for sessions with these options, into `path` (`size`
 * bytes). False: such a model is not kept (it is compiled already, depends on what the process
 * brought, or the path is too long). */
bool sni_cache_path(const sn_model *model, const sn_session_options *options, char *path,
                    size_t size);

/* The model of a file that was kept, or NULL. A file that cannot be used is removed. `like` is the
 * model that it must answer for. */
sn_model *sni_cache_open(const char *path, const sn_model *like);

/* Writes a file under a name of its own and puts it in place when it is whole and on the disk.
 * `limit` (0: none) is for the bytes of all such files in the folder: those unused for longest
 * leave before, also while other processes have them mapped. SN_LIMIT if it does not fit alone. */
sn_status sni_cache_write(const char *path, uint64_t limit, sn_session *session, sn_error *err);

#endif
