/* custom_op.c - domains and libraries of custom operators, and their way into a session. */
#include "ort/ort.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Domains ---- */

OrtStatusPtr ort_CreateCustomOpDomain(const char *domain, OrtCustomOpDomain **out) {
    NEED(domain);
    NEED(out);
    OrtCustomOpDomain *d = calloc(1, sizeof *d);
    if (!d || !ort_replace_text(&d->name, domain)) {
        free(d);
        return ort_fail_memory();
    }
    atomic_init(&d->refs, 1);
    *out = d;
    return NULL;
}

void ort_ReleaseCustomOpDomain(OrtCustomOpDomain *input) {
    if (!input || atomic_fetch_sub(&input->refs, 1) != 1) return;
    free(input->name);
    free(input->ops);
    free(input);
}

OrtStatusPtr ort_CustomOpDomain_Add(OrtCustomOpDomain *custom_op_domain, const OrtCustomOp *op) {
    NEED(custom_op_domain);
    NEED(op);
    if (!op->GetName || !op->GetInputTypeCount || !op->GetOutputTypeCount || !op->GetInputType ||
        !op->GetOutputType)
        return ort_fail(ORT_INVALID_ARGUMENT, "a custom operator lacks a function it must have");
    const OrtCustomOp **place =
        ort_append((void **)&custom_op_domain->ops, &custom_op_domain->count, sizeof *place);
    if (!place) return ort_fail_memory();
    *place = op;
    return NULL;
}

OrtStatusPtr ort_AddCustomOpDomain(OrtSessionOptions *options,
                                   OrtCustomOpDomain *custom_op_domain) {
    NEED(options);
    NEED(custom_op_domain);
    return ort_add_domain(options, custom_op_domain) ? NULL : ort_fail_memory();
}

/* ---- Libraries ---- */

static OrtStatus *call_register(void *symbol, const char *what, OrtSessionOptions *options) {
    OrtRegisterCustomOpsFn add;
    memcpy(&add, &symbol, sizeof add);
    if (!add)
        return ort_fail(ORT_FAIL,
                        "Failed to get symbol RegisterCustomOps with error: %s does not export it",
                        what);
    return add(options, &ort_api_base);
}

static OrtStatus *load_library(OrtSessionOptions *options, const char *path, void **handle) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return ort_fail(ORT_FAIL, "Failed to load library %s with error: %s", path, why ? why : "");
    }
    OrtStatus *status = call_register(dlsym(library, "RegisterCustomOps"), path, options);
    if (status)
        dlclose(library);
    else if (handle)
        *handle = library; /* the caller's to close; otherwise it stays */
    return status;
}

OrtStatusPtr ort_RegisterCustomOpsLibrary(OrtSessionOptions *options, const char *library_path,
                                          void **library_handle) {
    NEED(options);
    NEED(library_path);
    NEED(library_handle);
    return load_library(options, library_path, library_handle);
}

OrtStatusPtr ort_RegisterCustomOpsLibrary_V2(OrtSessionOptions *options, const char *library_name) {
    NEED(options);
    NEED(library_name);
    return load_library(options, library_name, NULL);
}

OrtStatusPtr ort_RegisterCustomOpsUsingFunction(OrtSessionOptions *options,
                                                const char *registration_func_name) {
    NEED(options);
    NEED(registration_func_name);
    void *symbol = dlsym(RTLD_DEFAULT, registration_func_name);
    if (!symbol)
        return ort_fail(ORT_INVALID_ARGUMENT, "there is no function '%s' in this process",
                        registration_func_name);
    return call_register(symbol, registration_func_name, options);
}

/* The library of ONNX Runtime's own extensions, if it lies where the system looks. */
OrtStatusPtr ort_EnableOrtCustomOps(OrtSessionOptions *options) {
    NEED(options);
    return load_library(options, "libortextensions.so", NULL);
}

/* ---- From OrtCustomOp to sn_op ---- */

static bool has(const OrtCustomOp *op, uint32_t version) {
    return op->version >= version;
}

static bool runs_here(const OrtCustomOp *op) {
    const char *provider = op->GetExecutionProviderType ? op->GetExecutionProviderType(op) : NULL;
    return !provider || strcmp(provider, "CPUExecutionProvider") == 0;
}

static void fill_input(const OrtCustomOp *op, size_t i, sn_op_port *port) {
    sn_dtype dtype = ort_dtype_in(op->GetInputType(op, i));
    port->types = dtype ? SN_OP_TYPE(dtype) : 0;
    OrtCustomOpInputOutputCharacteristic c = has(op, 8) && op->GetInputCharacteristic
                                                 ? op->GetInputCharacteristic(op, i)
                                                 : INPUT_OUTPUT_REQUIRED;
    if (c == INPUT_OUTPUT_OPTIONAL) port->flags |= SN_OP_OPTIONAL;
    if (c != INPUT_OUTPUT_VARIADIC) return;
    /* How many there must be, and that they are alike, is told by ort_custom_infer(). */
    port->flags |= SN_OP_VARIADIC | SN_OP_HETEROGENEOUS;
    if (has(op, 14)) port->flags |= SN_OP_NONE_ALLOWED;
}

static void fill_output(const OrtCustomOp *op, size_t i, sn_op_port *port) {
    sn_dtype dtype = ort_dtype_in(op->GetOutputType(op, i));
    port->types = dtype ? SN_OP_TYPE(dtype) : 0;
    OrtCustomOpInputOutputCharacteristic c = has(op, 8) && op->GetOutputCharacteristic
                                                 ? op->GetOutputCharacteristic(op, i)
                                                 : INPUT_OUTPUT_REQUIRED;
    if (c == INPUT_OUTPUT_OPTIONAL) port->flags |= SN_OP_OPTIONAL;
    if (c == INPUT_OUTPUT_VARIADIC) port->flags |= SN_OP_VARIADIC | SN_OP_HETEROGENEOUS;
}

/* Only the last input and the last output may be any number of values. */
static OrtStatus *check_variadic(const OrtCustomOp *op) {
    for (size_t i = 0; i + 1 < op->GetInputTypeCount(op); i++) {
        sn_op_port p = {0};
        fill_input(op, i, &p);
        if (p.flags & SN_OP_VARIADIC)
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "Only the last input to a custom op may be marked variadic. '%s' has "
                            "one at %zu",
                            op->GetName(op), i);
    }
    for (size_t i = 0; i + 1 < op->GetOutputTypeCount(op); i++) {
        sn_op_port p = {0};
        fill_output(op, i, &p);
        if (p.flags & SN_OP_VARIADIC)
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "Only the last output to a custom op may be marked variadic. '%s' has "
                            "one at %zu",
                            op->GetName(op), i);
    }
    return NULL;
}

/* Ports of operators that share a name take what any of them takes. */
static void merge_ports(const ort_custom *c, sn_op_port *in, size_t n_in, sn_op_port *out,
                        size_t n_out) {
    for (size_t k = 0; k < c->count; k++) {
        for (size_t i = 0; i < n_in; i++) {
            sn_op_port p = {0};
            fill_input(c->ops[k], i, &p);
            in[i].types = k == 0 || (in[i].types && p.types) ? in[i].types | p.types : 0;
            in[i].flags |= p.flags;
        }
        for (size_t i = 0; i < n_out; i++) {
            sn_op_port p = {0};
            fill_output(c->ops[k], i, &p);
            out[i].types = k == 0 || (out[i].types && p.types) ? out[i].types | p.types : 0;
            out[i].flags |= p.flags;
        }
    }
}

static uint32_t inplace_of(const OrtCustomOp *op) {
    uint32_t bits = 0;
    int *in = NULL, *out = NULL;
    if (!has(op, 18) || !op->GetMayInplace) return 0;
    size_t count = op->GetMayInplace(&in, &out);
    for (size_t i = 0; i < count && in && out; i++)
        if (out[i] == 0 && in[i] >= 0 && in[i] < 32) bits |= 1u << in[i];
    if (op->ReleaseMayInplace) op->ReleaseMayInplace(in, out);
    return bits;
}

static void set_versions(const OrtCustomOp *op, sn_op *out) {
    if (!has(op, 17)) return;
    int since = op->GetStartVersion ? op->GetStartVersion(op) : 1;
    int until = op->GetEndVersion ? op->GetEndVersion(op) : INT_MAX;
    out->since = since > 1 ? since : 0;
    out->until = until < INT16_MAX ? until : 0;
}

static OrtStatus *add_custom(sn_operators *set, const char *domain, ort_custom *c) {
    const OrtCustomOp *op = c->ops[0];
    size_t n_in = op->GetInputTypeCount(op), n_out = op->GetOutputTypeCount(op);
    sn_op_port *ports = calloc(n_in + n_out + 1, sizeof *ports);
    if (!ports) {
        free(c);
        return ort_fail_memory();
    }
    merge_ports(c, ports, n_in, ports + n_in, n_out);
    sn_op made = {.size = sizeof made,
                  .domain = domain,
                  .name = op->GetName(op),
                  .inputs = ports,
                  .input_count = n_in,
                  .outputs = ports + n_in,
                  .output_count = n_out,
                  .inplace = inplace_of(op),
                  .ctx = c,
                  .infer = ort_custom_infer,
                  .create = ort_custom_create,
                  .run = ort_custom_run,
                  .destroy = ort_custom_destroy,
                  .release = free};
    set_versions(op, &made);
    sn_error err;
    sn_status status = sn_operators_add(set, &made, &err);
    free(ports);
    if (status == SN_OK) return NULL;
    free(c);
    return ort_fail_sn(&err);
}

static bool same_group(const OrtCustomOp *a, const OrtCustomOp *b) {
    sn_op x = {0}, y = {0};
    set_versions(a, &x);
    set_versions(b, &y);
    return strcmp(a->GetName(a), b->GetName(b)) == 0 && x.since == y.since &&
           a->GetInputTypeCount(a) == b->GetInputTypeCount(b) &&
           a->GetOutputTypeCount(a) == b->GetOutputTypeCount(b);
}

/* The operators of a domain from number `first` on that go with it; NULL if it went with another.
 */
static OrtStatus *add_group(sn_operators *set, const OrtCustomOpDomain *d, size_t first,
                            const ort_log *log) {
    const OrtCustomOp *op = d->ops[first];
    if (!runs_here(op)) return NULL;
    ORT_TRY(check_variadic(op));
    for (size_t i = 0; i < first; i++)
        if (runs_here(d->ops[i]) && same_group(d->ops[i], op)) return NULL;
    ort_custom *c = calloc(1, sizeof *c + (d->count - first) * sizeof *c->ops);
    if (!c) return ort_fail_memory();
    c->logger.log = *log;
    for (size_t i = first; i < d->count; i++)
        if (runs_here(d->ops[i]) && same_group(d->ops[i], op)) c->ops[c->count++] = d->ops[i];
    return add_custom(set, d->name, c);
}

OrtStatus *ort_custom_set(const OrtSessionOptions *options, const ort_log *log,
                          sn_operators **out) {
    if (!options || !options->domain_count) return NULL;
    sn_operators *set;
    sn_error err;
    if (sn_operators_create(&set, &err) != SN_OK) return ort_fail_sn(&err);
    OrtStatus *status = NULL;
    for (size_t i = 0; i < options->domain_count && !status; i++) {
        const OrtCustomOpDomain *d = options->domains[i];
        for (size_t k = 0; k < d->count && !status; k++) status = add_group(set, d, k, log);
    }
    if (status)
        sn_operators_destroy(set);
    else
        *out = set;
    return status;
}
