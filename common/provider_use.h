/* provider_use.h - providers as users write them: "NAME[:DEVICE][?][,key=value...]". */
#ifndef COMMON_PROVIDER_USE_H
#define COMMON_PROVIDER_USE_H

#include "sinter.h"

enum { CO_PROVIDERS = 16, CO_PROVIDER_SETTINGS = 32 };

typedef struct co_providers {
    sn_provider_use uses[CO_PROVIDERS];
    size_t count;
    char *texts[CO_PROVIDERS]; /* what the strings of `uses` are parts of */
    sn_provider_setting settings[CO_PROVIDERS][CO_PROVIDER_SETTINGS];
} co_providers;

/* Adds one. NULL, or what is wrong with it; static. The struct must stay where it is. */
const char *co_provider_add(co_providers *p, const char *text);
/* Adds a list divided by ';'. */
const char *co_provider_add_list(co_providers *p, const char *text);
void co_providers_free(co_providers *p);

#endif
