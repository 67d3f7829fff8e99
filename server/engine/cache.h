/* cache.h - answers of models whose configuration asks for it, kept for equal requests. */
#ifndef SRV_ENGINE_CACHE_H
#define SRV_ENGINE_CACHE_H

#include "server/engine/request.h"

typedef struct srv_cache srv_cache;

/* A cache of so many bytes of answers with their questions; NULL without memory. The functions
 * below may be called in any thread. */
srv_cache *srv_cache_create(size_t max_bytes);
void srv_cache_destroy(srv_cache *cache); /* NULL is fine */
/* Answers a checked request from the cache if an equal one was answered before: fills in outputs,
 * which it shares with the cache. Always false for a model that does not ask for a cache. */
bool srv_cache_find(srv_cache *cache, srv_request *request);
/* Keeps the answer of a request that went well; does nothing with others, or without memory. */
void srv_cache_store(srv_cache *cache, const srv_request *request);

#endif
