/* profile.c - files of run events in the trace format that browsers show. */
#include "ort/ort.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct ort_profile {
    pthread_mutex_t lock; /* guards the file */
    FILE *file;           /* NULL: closed */
    bool first;
    uint64_t start_ns;
    uint64_t in_use,
        peak; /* bytes of values that steps of the run under way have made, and the most */
    char *name;
};

uint64_t ort_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ort_wall_clock(uint64_t at_ns) {
    struct timespec t;
    uint64_t now = ort_now_ns();
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - (now - at_ns);
}

/* "PREFIX_2026-01-31_23-59-59_N.json" */
static char *file_name(const char *prefix) {
    static atomic_uint serial;
    char stamp[64] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts)) strftime(stamp, sizeof stamp, "%Y-%m-%d_%H-%M-%S", &parts);
    unsigned n = atomic_fetch_add(&serial, 1);
    size_t size = strlen(prefix) + sizeof stamp + 64;
    char *name = malloc(size);
    if (name) snprintf(name, size, "%s_%s_%ld_%u.json", prefix, stamp, (long)getpid(), n);
    return name;
}

OrtStatus *ort_profile_open(const char *prefix, ort_profile **out) {
    ort_profile *p = calloc(1, sizeof *p);
    if (!p) return ort_fail_memory();
    p->name = file_name(prefix);
    p->file = p->name ? fopen(p->name, "w") : NULL;
    if (!p->file) {
        OrtStatus *status = ort_fail(ORT_FAIL, "profile '%s' cannot be written", p->name);
        free(p->name);
        free(p);
        return status;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->first = true;
    p->start_ns = ort_now_ns();
    fputs("[", p->file);
    *out = p;
    return NULL;
}

/* A string of JSON. Bytes above 127 go out as they are. */
static void put_text(FILE *f, const char *text) {
    fputc('"', f);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(f, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(f, "\\u%04x", *c);
        else
            fputc(*c, f);
    }
    fputc('"', f);
}

/* The fields in which clients look for memory. Values stand in an arena that is planned as a whole:
 * what a step holds is what it makes. */
static void put_memory(ort_profile *p, uint64_t made) {
    p->in_use += made;
    uint64_t grown = p->in_use > p->peak ? p->in_use - p->peak : 0;
    p->peak += grown;
    fprintf(p->file,
            ",\"mem_bytes_in_use\":\"%" PRIu64 "\",\"mem_bytes_requested_in_use\":\"%" PRIu64
            "\",\"mem_in_use_delta\":\"%" PRIu64 "\",\"mem_requested_in_use_delta\":\"%" PRIu64
            "\",\"mem_in_use_peak\":\"%" PRIu64 "\",\"mem_arena_held\":\"%" PRIu64
            "\",\"mem_arena_held_delta\":\"%" PRIu64 "\"",
            p->in_use, p->in_use, made, made, p->peak, p->peak, grown);
}

/* One complete event ("ph":"X") with times in microseconds since the file began; `op` NULL: not of
 * a node. Any thread may call. A closed file gets nothing. */
static void put_event(ort_profile *p, const char *category, const char *name, const char *op,
                      uint64_t start_ns, uint64_t end_ns, uint64_t bytes) {
    pthread_mutex_lock(&p->lock);
    if (p->file) {
        uint64_t start = start_ns > p->start_ns ? start_ns - p->start_ns : 0;
        fprintf(p->file,
                "%s\n{\"cat\":\"%s\",\"pid\":%ld,\"tid\":%lu,\"ph\":\"X\",\"ts\":%" PRIu64
                ".%03u,\"dur\":%" PRIu64 ".%03u,\"name\":",
                p->first ? "" : ",", category, (long)getpid(), (unsigned long)pthread_self(),
                start / 1000, (unsigned)(start % 1000), (end_ns - start_ns) / 1000,
                (unsigned)((end_ns - start_ns) % 1000));
        p->first = false;
        put_text(p->file, name);
        fputs(",\"args\":{", p->file);
        if (op) {
            fputs("\"op_name\":", p->file);
            put_text(p->file, op);
            fprintf(p->file, ",\"output_size\":\"%" PRIu64 "\"", bytes);
            put_memory(p, bytes);
        }
        fputs("}}", p->file);
    }
    pthread_mutex_unlock(&p->lock);
}

void ort_profile_step(void *profile, const sn_step_event *event) {
    put_event(profile, "Node", event->node, event->op, event->start_ns, event->end_ns,
              event->output_bytes);
}

void ort_profile_run(ort_profile *profile, const char *what, uint64_t start_ns, uint64_t end_ns) {
    put_event(profile, "Session", what, NULL, start_ns, end_ns, 0);
    pthread_mutex_lock(&profile->lock);
    profile->in_use = 0;
    pthread_mutex_unlock(&profile->lock);
}

const char *ort_profile_close(ort_profile *profile) {
    pthread_mutex_lock(&profile->lock);
    if (profile->file) {
        fputs("\n]\n", profile->file);
        fclose(profile->file);
        profile->file = NULL;
    }
    pthread_mutex_unlock(&profile->lock);
    return profile->name;
}

void ort_profile_free(ort_profile *profile) {
    if (!profile) return;
    ort_profile_close(profile);
    pthread_mutex_destroy(&profile->lock);
    free(profile->name);
    free(profile);
}
