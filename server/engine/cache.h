/* cache.h - answers of models whose configuration asks for it, kept for equal requests. */
#ifndef SRV_ENGINE_CACHE_H
#define SRV_ENGINE_CACHE_H

#include "server/engine/request.h"

/* Answers `request` from the cache if an equal one was answered before. */
bool srv_cache_find(srv_request *request);
/* Keeps the answer of a request that went well. */
void srv_cache_store(const srv_request *request);
/* Forgets everything. */
void srv_cache_clear(void);

#endif
