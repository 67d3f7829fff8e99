/* state.c - what has been measured, in a file of lines: a key, a tab, numbers. A run that was
 * broken off goes on from there. */
#include "quantize/quantize.h"

#include "exec/compiled_format.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct entry {
    char *key;
    double numbers[SNI_STATE_NUMBERS];
} entry;

typedef struct sni_qstate {
    FILE *file;
    entry *items;
    size_t count, capacity;
} sni_qstate;

static const char *const HEAD = "sinter-quantize 1 ";

static int add_bytes(void *ctx, const void *bytes, size_t size) {
    uint64_t *sum = ctx;
    *sum = sni_checksum(*sum, bytes, size);
    return 0;
}

static sn_status add_samples(const sni_quantizer *q, uint64_t *sum) {
    for (size_t i = 0; i < q->samples.count; i++) {
        sni_qsample s;
        SN_TRY(sni_q_sample(q, i, &s, q->err));
        for (size_t j = 0; j < s.count; j++) {
            const void *data = sn_tensor_const_data(s.inputs[j].value);
            if (data) *sum = sni_checksum(*sum, data, sn_tensor_bytes(s.inputs[j].value));
        }
        sni_q_sample_free(&s);
    }
    return SN_OK;
}

/* Of the models, the samples and the options that measured figures depend on. */
static sn_status sum_up(const sni_quantizer *q, uint64_t *out) {
    const sn_quantize_options *o = &q->o;
    const int64_t numbers[] = {
        (int64_t)o->to, (int64_t)o->target,        (int64_t)o->metric, (int64_t)o->threads,
        o->block_size,  (int64_t)q->samples.count, q->weight_levels,   (int64_t)q->activation};
    uint64_t sum = sni_checksum(0, numbers, sizeof numbers);
    SN_TRY(sn_model_write(q->model, SN_FORMAT_ONNX, add_bytes, &sum, q->err));
    if (o->teacher) SN_TRY(sn_model_write(o->teacher, SN_FORMAT_ONNX, add_bytes, &sum, q->err));
    SN_TRY(add_samples(q, &sum));
    *out = sum;
    return SN_OK;
}

static sn_status add_entry(sni_qstate *s, const char *key, const double *numbers, sn_error *err) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity * 2 + 64;
        entry *grown = realloc(s->items, capacity * sizeof *grown);
        if (!grown) return sni_fail_memory(err);
        s->items = grown;
        s->capacity = capacity;
    }
    entry *e = &s->items[s->count];
    e->key = strdup(key);
    if (!e->key) return sni_fail_memory(err);
    memcpy(e->numbers, numbers, sizeof e->numbers);
    s->count++;
    return SN_OK;
}

/* Reads lines until one is broken, as the last one may be. */
static sn_status read_lines(sni_qstate *s, FILE *f, sn_error *err) {
    char *line = NULL;
    size_t room = 0;
    sn_status status = SN_OK;
    while (status == SN_OK && getline(&line, &room, f) > 0) {
        double v[SNI_STATE_NUMBERS];
        char *tab = strchr(line, '\t'), *at = tab ? tab + 1 : NULL;
        if (!tab || !strchr(line, '\n')) break;
        *tab = 0;
        int n = 0;
        for (char *end; n < SNI_STATE_NUMBERS; n++, at = end) {
            v[n] = strtod(at, &end);
            if (end == at) break;
        }
        if (n < SNI_STATE_NUMBERS) break;
        status = add_entry(s, line, v, err);
    }
    free(line);
    return status;
}

static void write_entry(FILE *f, const entry *e) {
    fprintf(f, "%s\t", e->key);
    for (int i = 0; i < SNI_STATE_NUMBERS; i++) fprintf(f, " %.17g", e->numbers[i]);
    fputc('\n', f);
}

sn_status sni_q_state_open(sni_quantizer *q) {
    const char *path = q->o.state_path;
    char head[64], found[64] = "";
    uint64_t sum;
    if (!path) return SN_OK;
    SN_TRY(sum_up(q, &sum));
    snprintf(head, sizeof head, "%s%016llx\n", HEAD, (unsigned long long)sum);
    sni_qstate *s = calloc(1, sizeof *s);
    if (!s) return sni_fail_memory(q->err);
    q->state = s;
    FILE *old = fopen(path, "r");
    sn_status status = SN_OK;
    if (old && fgets(found, sizeof found, old)) {
        if (strncmp(found, HEAD, strlen(HEAD)) != 0)
            status = sni_fail(q->err, SN_MALFORMED, "%s: is no state of a quantisation", path);
        else if (strcmp(found, head) == 0)
            status = read_lines(s, old, q->err);
    }
    if (old) fclose(old);
    if (status != SN_OK) return status;
    s->file = fopen(path, "w");
    if (!s->file)
        return sni_fail(q->err, SN_IO, "%s: cannot be written: %s", path, strerror(errno));
    fputs(head, s->file);
    for (size_t i = 0; i < s->count; i++) write_entry(s->file, &s->items[i]);
    fflush(s->file);
    return SN_OK;
}

void sni_q_state_close(sni_quantizer *q) {
    sni_qstate *s = q->state;
    if (!s) return;
    if (s->file) fclose(s->file);
    for (size_t i = 0; i < s->count; i++) free(s->items[i].key);
    free(s->items);
    free(s);
    q->state = NULL;
}

bool sni_q_state_get(const sni_quantizer *q, const char *key, double *numbers) {
    const sni_qstate *s = q->state;
    for (size_t i = 0; s && i < s->count; i++) {
        if (strcmp(s->items[i].key, key) != 0) continue;
        memcpy(numbers, s->items[i].numbers, sizeof s->items[i].numbers);
        return true;
    }
    return false;
}

sn_status sni_q_state_put(sni_quantizer *q, const char *key, const double *numbers) {
    sni_qstate *s = q->state;
    if (!s) return SN_OK;
    SN_TRY(add_entry(s, key, numbers, q->err));
    write_entry(s->file, &s->items[s->count - 1]);
    if (fflush(s->file) == 0) return SN_OK;
    return sni_fail(q->err, SN_IO, "%s: cannot be written: %s", q->o.state_path, strerror(errno));
}
