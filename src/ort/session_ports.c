/* session_ports.c - what a session takes and gives: its inputs and outputs, and initialisers that
 * may be overridden. */
#include "ort/ort.h"

#include <string.h>

typedef enum port { INPUT, INITIALIZER, OUTPUT } port;

/* What the model says of a port; `out` borrows from the model. */
static OrtStatus *port_info(const OrtSession *s, port which, size_t index, sn_value_info *out) {
    static const char *const names[] = {"input", "overridable initialiser", "output"};
    size_t count = which == INPUT         ? s->input_count
                   : which == INITIALIZER ? s->initializer_count
                                          : s->output_count;
    if (index >= count)
        return ort_fail(ORT_INVALID_ARGUMENT, "the model has no %s %zu, it has %zu of them",
                        names[which], index, count);
    sn_error err;
    size_t at = which == INITIALIZER ? s->input_count + index : index;
    sn_status status = which == OUTPUT ? sn_model_output(s->model, at, out, &err)
                                       : sn_model_input(s->model, at, out, &err);
    return status == SN_OK ? NULL : ort_fail_sn(&err);
}

OrtStatusPtr ort_SessionGetInputCount(const OrtSession *session, size_t *out) {
    NEED(session);
    NEED(out);
    *out = session->input_count;
    return NULL;
}

OrtStatusPtr ort_SessionGetOutputCount(const OrtSession *session, size_t *out) {
    NEED(session);
    NEED(out);
    *out = session->output_count;
    return NULL;
}

OrtStatusPtr ort_SessionGetOverridableInitializerCount(const OrtSession *session, size_t *out) {
    NEED(session);
    NEED(out);
    *out = session->initializer_count;
    return NULL;
}

/* The type of a port. The caller releases it. */
static OrtStatus *port_type(const OrtSession *s, port which, size_t index, OrtTypeInfo **out) {
    sn_value_info info;
    ORT_TRY(port_info(s, which, index, &info));
    return ort_type_of_info(&info, out);
}

OrtStatusPtr ort_SessionGetInputTypeInfo(const OrtSession *session, size_t index,
                                         OrtTypeInfo **type_info) {
    NEED(session);
    NEED(type_info);
    return port_type(session, INPUT, index, type_info);
}

OrtStatusPtr ort_SessionGetOutputTypeInfo(const OrtSession *session, size_t index,
                                          OrtTypeInfo **type_info) {
    NEED(session);
    NEED(type_info);
    return port_type(session, OUTPUT, index, type_info);
}

OrtStatusPtr ort_SessionGetOverridableInitializerTypeInfo(const OrtSession *session, size_t index,
                                                          OrtTypeInfo **type_info) {
    NEED(session);
    NEED(type_info);
    return port_type(session, INITIALIZER, index, type_info);
}

/* The name of a port, in memory of the caller's allocator. */
static OrtStatus *port_name(const OrtSession *s, port which, size_t index, OrtAllocator *allocator,
                            char **out) {
    sn_value_info info;
    ORT_TRY(port_info(s, which, index, &info));
    return ort_copy_text(allocator, info.name, out);
}

OrtStatusPtr ort_SessionGetInputName(const OrtSession *session, size_t index,
                                     OrtAllocator *allocator, char **value) {
    NEED(session);
    NEED(allocator);
    NEED(value);
    return port_name(session, INPUT, index, allocator, value);
}

OrtStatusPtr ort_SessionGetOutputName(const OrtSession *session, size_t index,
                                      OrtAllocator *allocator, char **value) {
    NEED(session);
    NEED(allocator);
    NEED(value);
    return port_name(session, OUTPUT, index, allocator, value);
}

OrtStatusPtr ort_SessionGetOverridableInitializerName(const OrtSession *session, size_t index,
                                                      OrtAllocator *allocator, char **value) {
    NEED(session);
    NEED(allocator);
    NEED(value);
    return port_name(session, INITIALIZER, index, allocator, value);
}

OrtStatus *ort_fill_all(size_t count, const void *entry, void *out, size_t room) {
    if (room != count)
        return ort_fail(ORT_INVALID_ARGUMENT, "room for %zu entries, but there are %zu", room,
                        count);
    for (size_t i = 0; i < count; i++) memcpy((char *)out + i * sizeof entry, &entry, sizeof entry);
    return NULL;
}

OrtStatusPtr ort_SessionGetMemoryInfoForInputs(const OrtSession *session,
                                               const OrtMemoryInfo **inputs_memory_info,
                                               size_t num_inputs) {
    NEED(session);
    NEED(inputs_memory_info);
    return ort_fill_all(session->input_count, &ort_cpu_memory, inputs_memory_info, num_inputs);
}

OrtStatusPtr ort_SessionGetMemoryInfoForOutputs(const OrtSession *session,
                                                const OrtMemoryInfo **outputs_memory_info,
                                                size_t num_outputs) {
    NEED(session);
    NEED(outputs_memory_info);
    return ort_fill_all(session->output_count, &ort_cpu_memory, outputs_memory_info, num_outputs);
}
