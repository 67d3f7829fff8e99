/* io_binding.c - inputs and outputs bound to a session by name, for runs without lists. */
#include "ort/ort.h"

#include <stdlib.h>
#include <string.h>

typedef struct bound {
    size_t count, capacity;
    char **names;
    OrtValue **values; /* one holder each; NULL: an output that the run makes */
    bool *made;        /* outputs: made anew by every run */
} bound;

struct OrtIoBinding {
    OrtSession *session;
    bound in, out;
};

static void clear(bound *b) {
    for (size_t i = 0; i < b->count; i++) {
        free(b->names[i]);
        ort_ReleaseValue(b->values[i]);
    }
    b->count = 0;
}

static void destroy(bound *b) {
    clear(b);
    free(b->names);
    free(b->values);
    free(b->made);
}

OrtStatusPtr ort_CreateIoBinding(OrtSession *session, OrtIoBinding **out) {
    NEED(session);
    NEED(out);
    OrtIoBinding *b = calloc(1, sizeof *b);
    if (!b) return ort_fail_memory();
    b->session = session;
    *out = b;
    return NULL;
}

void ort_ReleaseIoBinding(OrtIoBinding *input) {
    if (!input) return;
    destroy(&input->in);
    destroy(&input->out);
    free(input);
}

static bool grow(bound *b) {
    if (b->count < b->capacity) return true;
    size_t capacity = b->capacity ? b->capacity * 2 : 8;
    char **names = realloc(b->names, capacity * sizeof *names);
    if (names) b->names = names;
    OrtValue **values = realloc(b->values, capacity * sizeof *values);
    if (values) b->values = values;
    bool *made = realloc(b->made, capacity * sizeof *made);
    if (made) b->made = made;
    if (!names || !values || !made) return false;
    b->capacity = capacity;
    return true;
}

/* Binds a name, or binds it anew; `value` NULL: made by the run. */
static OrtStatus *bind(bound *b, const char *name, const OrtValue *value) {
    size_t i = 0;
    while (i < b->count && strcmp(b->names[i], name) != 0) i++;
    if (i == b->count) {
        char *copy = strdup(name);
        if (!copy || !grow(b)) {
            free(copy);
            return ort_fail_memory();
        }
        b->names[i] = copy;
        b->values[i] = NULL;
        b->count++;
    }
    sn_value_retain(ort_sn(value));
    ort_ReleaseValue(b->values[i]);
    b->values[i] = (OrtValue *)value;
    b->made[i] = value == NULL;
    return NULL;
}

/* Names of outputs are looked at by the run. */
static OrtStatus *check_input(const OrtSession *s, const char *name) {
    sn_value_info info;
    for (size_t i = 0; i < s->input_count + s->initializer_count; i++) {
        sn_status status = sn_model_input(s->model, i, &info, NULL);
        if (status == SN_OK && strcmp(info.name, name) == 0) return NULL;
    }
    return ort_fail(ORT_INVALID_ARGUMENT, "the model has no input '%s'", name);
}

OrtStatusPtr ort_BindInput(OrtIoBinding *binding_ptr, const char *name, const OrtValue *val_ptr) {
    NEED(binding_ptr);
    NEED(name);
    NEED(val_ptr);
    ORT_TRY(check_input(binding_ptr->session, name));
    return bind(&binding_ptr->in, name, val_ptr);
}

OrtStatusPtr ort_BindOutput(OrtIoBinding *binding_ptr, const char *name, const OrtValue *val_ptr) {
    NEED(binding_ptr);
    NEED(name);
    NEED(val_ptr);
    return bind(&binding_ptr->out, name, val_ptr);
}

OrtStatusPtr ort_BindOutputToDevice(OrtIoBinding *binding_ptr, const char *name,
                                    const OrtMemoryInfo *mem_info_ptr) {
    NEED(binding_ptr);
    NEED(name);
    NEED(mem_info_ptr);
    if (mem_info_ptr->device != OrtMemoryInfoDeviceType_CPU)
        return ort_fail(ORT_INVALID_ARGUMENT, "output '%s' can be in 'Cpu' memory, not in '%s'",
                        name, mem_info_ptr->name);
    return bind(&binding_ptr->out, name, NULL);
}

OrtStatusPtr ort_RunWithBinding(OrtSession *session, const OrtRunOptions *run_options,
                                const OrtIoBinding *binding_ptr) {
    NEED(session);
    NEED(binding_ptr);
    if (binding_ptr->session != session)
        return ort_fail(ORT_INVALID_ARGUMENT, "RunWithBinding: the binding is another session's");
    if (binding_ptr->out.count == 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "RunWithBinding: no outputs are bound");
    const bound *in = &binding_ptr->in, *out = &binding_ptr->out;
    for (size_t i = 0; i < out->count; i++) {
        if (!out->made[i]) continue;
        ort_ReleaseValue(out->values[i]);
        out->values[i] = NULL;
    }
    return ort_run(session, run_options, (const char *const *)in->names,
                   (const OrtValue *const *)in->values, in->count, (const char *const *)out->names,
                   out->count, out->values);
}

/* The names one after the other in one block without ends, and their lengths. */
OrtStatusPtr ort_GetBoundOutputNames(const OrtIoBinding *binding_ptr, OrtAllocator *allocator,
                                     char **buffer, size_t **lengths, size_t *count) {
    NEED(binding_ptr);
    NEED(allocator);
    NEED(buffer);
    NEED(lengths);
    NEED(count);
    const bound *out = &binding_ptr->out;
    size_t total = 0;
    for (size_t i = 0; i < out->count; i++) total += strlen(out->names[i]);
    *buffer = NULL;
    *lengths = NULL;
    *count = out->count;
    if (!out->count) return NULL;
    char *text = allocator->Alloc(allocator, total ? total : 1);
    size_t *sizes = allocator->Alloc(allocator, out->count * sizeof *sizes);
    if (!text || !sizes) {
        if (text) allocator->Free(allocator, text);
        if (sizes) allocator->Free(allocator, sizes);
        return ort_fail_memory();
    }
    char *at = text;
    for (size_t i = 0; i < out->count; i++) {
        sizes[i] = strlen(out->names[i]);
        memcpy(at, out->names[i], sizes[i]);
        at += sizes[i];
    }
    *buffer = text;
    *lengths = sizes;
    return NULL;
}

OrtStatusPtr ort_GetBoundOutputValues(const OrtIoBinding *binding_ptr, OrtAllocator *allocator,
                                      OrtValue ***output, size_t *output_count) {
    NEED(binding_ptr);
    NEED(allocator);
    NEED(output);
    NEED(output_count);
    const bound *out = &binding_ptr->out;
    for (size_t i = 0; i < out->count; i++)
        if (!out->values[i])
            return ort_fail(ORT_FAIL, "output '%s' has no value before the first run",
                            out->names[i]);
    OrtValue **list = NULL;
    if (out->count) {
        list = allocator->Alloc(allocator, out->count * sizeof *list);
        if (!list) return ort_fail_memory();
    }
    for (size_t i = 0; i < out->count; i++)
        list[i] = ort_of_sn(sn_value_retain(ort_sn(out->values[i])));
    *output = list;
    *output_count = out->count;
    return NULL;
}

void ort_ClearBoundInputs(OrtIoBinding *binding_ptr) {
    if (binding_ptr) clear(&binding_ptr->in);
}

void ort_ClearBoundOutputs(OrtIoBinding *binding_ptr) {
    if (binding_ptr) clear(&binding_ptr->out);
}

/* Memory of the CPU is always in step. */
OrtStatusPtr ort_SynchronizeBoundInputs(OrtIoBinding *binding_ptr) {
    NEED(binding_ptr);
    return NULL;
}

OrtStatusPtr ort_SynchronizeBoundOutputs(OrtIoBinding *binding_ptr) {
    NEED(binding_ptr);
    return NULL;
}
