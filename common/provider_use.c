/* provider_use.c - providers as users write them. */
#include "common/provider_use.h"

#include <stdlib.h>
#include <string.h>

/* The device behind the name, and the '?' behind that. */
static const char *read_device(sn_provider_use *u, char *name) {
    size_t n = strlen(name);
    if (n && name[n - 1] == '?') {
        u->optional = true;
        name[--n] = 0;
    }
    char *colon = strchr(name, ':');
    if (colon) {
        char *end;
        long device = strtol(colon + 1, &end, 10);
        if (*end || end == colon + 1 || device < 0 || device > 4095)
            return "the device behind ':' must be a number";
        u->device = (int)device;
        *colon = 0;
    }
    if (!*name) return "the provider's name is missing";
    u->name = name;
    return NULL;
}

static const char *read_settings(sn_provider_use *u, sn_provider_setting *settings, char *rest) {
    while (rest) {
        char *key = strsep(&rest, ","), *equals = strchr(key, '=');
        if (!equals || equals == key) return "a setting must be key=value";
        if (u->setting_count == CO_PROVIDER_SETTINGS) return "there are too many settings";
        *equals = 0;
        settings[u->setting_count++] = (sn_provider_setting){key, equals + 1};
    }
    u->settings = settings;
    return NULL;
}

const char *co_provider_add(co_providers *p, const char *text) {
    if (p->count == CO_PROVIDERS) return "there are too many providers";
    char *copy = strdup(text), *rest = copy;
    if (!copy) return "there is no memory";
    sn_provider_use use = {0};
    char *name = strsep(&rest, ",");
    const char *wrong = read_device(&use, name);
    if (!wrong) wrong = read_settings(&use, p->settings[p->count], rest);
    if (wrong) {
        free(copy);
        return wrong;
    }
    p->texts[p->count] = copy;
    p->uses[p->count++] = use;
    return NULL;
}

const char *co_provider_add_list(co_providers *p, const char *text) {
    char *copy = strdup(text), *rest = copy;
    const char *wrong = copy ? NULL : "there is no memory";
    while (rest && !wrong) {
        char *one = strsep(&rest, ";");
        if (*one) wrong = co_provider_add(p, one);
    }
    free(copy);
    return wrong;
}

void co_providers_free(co_providers *p) {
    for (size_t i = 0; i < p->count; i++) free(p->texts[i]);
    p->count = 0;
}
