/* cgroup.c - limits that the system puts on groups of processes, versions 1 and 2. */
#include "base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a file below /sys/fs/cgroup, in `line`. */
static bool cgroup_line(const char *folder, const char *file, char *line, int size) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", folder, file);
    FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
    if (!f) return false;
    bool ok = fgets(line, size, f) != NULL;
    fclose(f);
    return ok;
}

/* Lowers *most to the quota of one group; quotas are in time of all processors per period. */
static void cpu_limit(const char *folder, bool v2, void *ctx) {
    int *most = ctx;
    char line[64];
    int64_t quota = -1, period = -1;
    if (v2) {
        if (!cgroup_line(folder, "cpu.max", line, sizeof line) ||
            sscanf(line, "%" SCNd64 " %" SCNd64, &quota, &period) != 2)
            return;
    } else {
        if (!cgroup_line(folder, "cpu.cfs_quota_us", line, sizeof line)) return;
        quota = strtoll(line, NULL, 10);
        if (!cgroup_line(folder, "cpu.cfs_period_us", line, sizeof line)) return;
        period = strtoll(line, NULL, 10);
    }
    if (quota <= 0 || period <= 0) return;
    int64_t whole = quota / period + (quota % period != 0);
    if (whole < *most) *most = (int)whole;
}

static void memory_limit(const char *folder, bool v2, void *ctx) {
    char line[64], *end;
    uint64_t *most = ctx;
    const char *file = v2 ? "memory.max" : "memory.limit_in_bytes";
    if (!cgroup_line(folder, file, line, sizeof line)) return;
    uint64_t limit = strtoull(line, &end, 10); /* or "max" */
    if (end > line && limit < *most) *most = limit;
}

/* A kind of limit: its controller in version 1, and what lowers *ctx to the limit of one group. */
typedef struct limit {
    const char *controller;
    void (*lower)(const char *folder, bool v2, void *ctx);
    void *ctx;
} limit;

/* The limits of a group and of all that contain it. `folder` is changed. */
static void group_limits(const limit *l, const char *mount, char *folder, bool v2) {
    for (;;) {
        char below[PATH_MAX];
        int n = snprintf(below, sizeof below, "%s%s", mount, folder);
        if (n > 0 && n < (int)sizeof below) l->lower(below, v2, l->ctx);
        char *slash = strrchr(folder, '/');
        if (!slash) return;
        *slash = 0;
    }
}

/* True if a comma-separated list of controllers has this one. */
static bool lists(const char *list, const char *controller) {
    for (const char *p = list; p; p = strchr(p, ',')) {
        if (*p == ',') p++;
        size_t n = strcspn(p, ",");
        if (n == strlen(controller) && memcmp(p, controller, n) == 0) return true;
    }
    return false;
}

static void all_limits(const limit *l) {
    char mount[32];
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return;
    snprintf(mount, sizeof mount, "/%s", l->controller);
    char line[PATH_MAX + 128];
    while (fgets(line, sizeof line, f)) { /* "number:controllers:/folder" */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *folder = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!folder) continue;
        *folder++ = 0;
        controllers++;
        if (*controllers == 0)
            group_limits(l, "", folder, true);
        else if (lists(controllers, l->controller))
            group_limits(l, mount, folder, false);
    }
    fclose(f);
}

void sni_cgroup_cpus(int *most) {
    all_limits(&(limit){"cpu", cpu_limit, most});
}

void sni_cgroup_memory(uint64_t *most) {
    all_limits(&(limit){"memory", memory_limit, most});
}
