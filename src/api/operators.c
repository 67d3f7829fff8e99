/* operators.c - the operators of this build, and its version. */
#include "ops/core/op.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *sn_version(void) {
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    return TEXT(SN_VERSION_MAJOR) "." TEXT(SN_VERSION_MINOR) "." TEXT(SN_VERSION_PATCH);
}

/* Descriptions as text, made once for the whole process. */
static sn_operator_info *infos;
static sni_arena texts;

typedef struct line {
    char bytes[2048];
    size_t used;
} line;

static void put(line *l, const char *format, ...) SNI_PRINTF(2, 3);

static void put(line *l, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->bytes + l->used, sizeof l->bytes - l->used, format, args);
    va_end(args);
    if (n > 0) l->used += (size_t)n < sizeof l->bytes - l->used ? (size_t)n : 0;
}

/* A copy for the life of the process; NULL without memory. */
static const char *keep(const line *l) {
    return sni_arena_str(&texts, (sni_str){l->bytes, l->used}).p;
}

static const char *formals_text(const sni_formal *f) {
    line l = {.used = 0};
    l.bytes[0] = 0;
    for (int i = 0; f && f[i].name; i++) {
        bool optional = f[i].flags & SNI_OPTIONAL;
        put(&l, "%s%s%s%s%s: %s", i ? ", " : "", optional ? "[" : "", f[i].name,
            f[i].flags & SNI_VARIADIC ? "..." : "", optional ? "]" : "", f[i].type);
    }
    return keep(&l);
}

static const char *types_text(const sni_type_var *v) {
    line l = {.used = 0};
    for (int i = 0; v && v[i].name; i++) {
        put(&l, "%s%s:", i ? "; " : "", v[i].name);
        if ((v[i].types & SNI_T_ANY) == SNI_T_ANY)
            put(&l, " any");
        else
            for (int d = 1; d < SNI_DTYPE_COUNT; d++)
                if (v[i].types & SNI_T(d)) put(&l, " %s", sn_dtype_name((sn_dtype)d));
        if (v[i].types & SNI_T_SEQ) put(&l, " sequence");
        if (v[i].types & SNI_T_OPTIONAL) put(&l, " optional");
        if (v[i].types & SNI_T_MAP) put(&l, " map");
    }
    return keep(&l);
}

static const char *versions_text(const int16_t *v) {
    line l = {.used = 0};
    for (int i = 0; v[i]; i++) put(&l, "%s%d", i ? "," : "", v[i]);
    return keep(&l);
}

/* Called once. Without memory `infos` stays NULL, and no operator is told of. */
static void make_infos(void) {
    size_t count = sni_op_count();
    sni_arena_init(&texts, 0);
    sn_operator_info *made = SNI_NEW_ARRAY(&texts, sn_operator_info, count);
    for (size_t i = 0; made && i < count; i++) {
        const sni_op *op = sni_op_at(i);
        made[i] = (sn_operator_info){.domain = op->domain ? op->domain : "",
                                     .name = op->name,
                                     .versions = versions_text(op->versions),
                                     .inputs = formals_text(op->inputs),
                                     .outputs = formals_text(op->outputs),
                                     .types = types_text(op->types)};
        if (!made[i].versions || !made[i].inputs || !made[i].outputs || !made[i].types) made = NULL;
    }
    infos = made;
}

bool sn_operator(size_t index, sn_operator_info *out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_infos);
    if (!infos || !out || index >= sni_op_count()) return false;
    *out = infos[index];
    return true;
}
