/* grpc_infer_read.c - inference requests from protobuf (ModelInferRequest).
 *
 * Raw tensors stay where they were received: a request's inputs are parts of its message. */
#include "server/api/grpc.h"
#include "server/engine/repository.h"
#include "server/server.h"

#include <stdlib.h>

/* Where an input's values are in the message. */
typedef struct source {
    const unsigned char *contents; /* an InferTensorContents, or NULL */
    size_t contents_size;
    sni_str raw; /* bytes of raw_input_contents; p NULL: none */
} source;

typedef struct parsing {
    srv_request *request;
    sni_str model, version;
    source *sources; /* one for each input */
    size_t source_capacity, raw_count;
    sni_str *raws;
    size_t raw_capacity;
} parsing;

/* Makes an array of the request's arena large enough for one more; false after the request has
 * failed. */
static bool grow(srv_request *request, void **list, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return true;
    size_t more = *capacity ? *capacity * 2 : 8;
    void *grown = more > 4096 ? NULL : sni_arena_array(&request->arena, more, size);
    if (!grown) {
        srv_request_fail(request, SRV_INVALID, "more than 2048 tensors");
        return false;
    }
    if (count) memcpy(grown, *list, count * size);
    *list = grown;
    *capacity = more;
    return true;
}

static bool read_shape(sni_wire *wire, const sni_field *field, srv_request *request,
                       srv_input *input) {
    sni_values values;
    uint64_t bits;
    if (sni_field_values(wire, field, SNI_WIRE_VARINT, &values) != SN_OK) return false;
    while (sni_values_next(&values, &bits)) {
        if (input->rank == SN_MAX_RANK || (int64_t)bits < 0) {
            srv_request_fail(request, SRV_INVALID,
                             "a shape has more than %d dimensions or one "
                             "below 0",
                             SN_MAX_RANK);
            return false;
        }
        input->dims[input->rank++] = (int64_t)bits;
    }
    if (values.wire.status != SN_OK) wire->status = values.wire.status;
    return values.wire.status == SN_OK;
}

static bool read_input(sni_wire *outer, const sni_field *at, parsing *p) {
    srv_request *request = p->request;
    void *list = p->sources;
    sni_wire wire;
    sni_field field;
    sni_str type = {"", 0};
    if (sni_field_message(outer, at, &wire) != SN_OK) return false;
    if (!grow(request, &list, request->input_count, &p->source_capacity, sizeof *p->sources)) {
        return false;
    }
    p->sources = list;
    source *from = &p->sources[request->input_count];
    *from = (source){0};
    srv_input *input = srv_request_add_input(request);
    if (!input) return false;
    while (sni_wire_next(&wire, &field)) {
        if (field.number == 1) sni_field_str(&wire, &field, &input->name);
        if (field.number == 2) sni_field_str(&wire, &field, &type);
        if (field.number == 3 && !read_shape(&wire, &field, request, input)) break;
        if (field.number == 5 && field.type == SNI_WIRE_LEN) {
            from->contents = field.bytes;
            from->contents_size = field.size;
        }
    }
    if (wire.status != SN_OK) outer->status = wire.status;
    if (wire.status != SN_OK || request->code != SRV_OK) return false;
    input->dtype = srv_type_find(type);
    if (input->dtype == SN_UNDEFINED) {
        srv_request_fail(request, SRV_INVALID, "input '%.*s' has the unknown datatype '%.*s'",
                         SNI_FMT(input->name), SNI_FMT(type));
        return false;
    }
    return true;
}

/* An InferParameter as a number; strings of digits count, too. */
static bool read_number(sni_wire *wire, uint64_t *out) {
    sni_field field;
    sni_str text;
    bool found = false;
    while (sni_wire_next(wire, &field)) {
        if (field.number == 3 && sni_field_str(wire, &field, &text) == SN_OK) {
            found = srv_parse_uint(text, UINT64_MAX / 4000, out);
        } else if (field.type == SNI_WIRE_VARINT && field.number != 3) {
            *out = field.value;
            found = (int64_t)field.value >= 0;
        }
    }
    return found;
}

static bool read_output(sni_wire *outer, const sni_field *at, parsing *p) {
    srv_wanted *wanted = srv_request_add_wanted(p->request);
    sni_wire wire, value;
    sni_field field;
    sni_str key;
    uint64_t number;
    if (!wanted || sni_field_message(outer, at, &wire) != SN_OK) return false;
    wanted->binary = true;
    while (sni_wire_next(&wire, &field)) {
        if (field.number == 1) sni_field_str(&wire, &field, &wanted->name);
        if (field.number == 2 && srv_read_entry(&wire, &field, &key, &value) &&
            sni_str_is(key, "classification") && read_number(&value, &number)) {
            wanted->top = number > 10000 ? 10000 : (uint32_t)number;
        }
    }
    if (wire.status != SN_OK) outer->status = wire.status;
    return wire.status == SN_OK;
}

static void read_parameter(sni_wire *wire, const sni_field *field, srv_request *request) {
    sni_wire value;
    sni_str key;
    uint64_t number;
    if (!srv_read_entry(wire, field, &key, &value)) return;
    if (sni_str_is(key, "priority") && read_number(&value, &number)) {
        request->priority = number;
    } else if (sni_str_is(key, "timeout") && read_number(&value, &number)) { /* microseconds */
        uint64_t ns = number < UINT64_MAX / 4000 ? number * 1000 : 0;
        if (ns && (!request->timeout_ns || ns < request->timeout_ns)) request->timeout_ns = ns;
    }
}

static bool read_field(sni_wire *wire, const sni_field *field, parsing *p) {
    void *list = p->raws;
    switch (field->number) {
    case 1:
        return sni_field_str(wire, field, &p->model) == SN_OK;
    case 2:
        return sni_field_str(wire, field, &p->version) == SN_OK;
    case 3:
        return sni_field_str(wire, field, &p->request->id) == SN_OK;
    case 4:
        read_parameter(wire, field, p->request);
        return true;
    case 5:
        return read_input(wire, field, p);
    case 6:
        return read_output(wire, field, p);
    case 7:
        if (!grow(p->request, &list, p->raw_count, &p->raw_capacity, sizeof *p->raws)) return false;
        p->raws = list;
        return sni_field_str(wire, field, &p->raws[p->raw_count++]) == SN_OK;
    default:
        return true;
    }
}

/* ---- Values ------------------------------------------------------------------------------- */

/* Which field of InferTensorContents holds a type; 0: none does. */
static uint32_t contents_field(sn_dtype dtype) {
    switch (dtype) {
    case SN_BOOL:
        return 1;
    case SN_INT8:
    case SN_INT16:
    case SN_INT32:
        return 2;
    case SN_INT64:
        return 3;
    case SN_UINT8:
    case SN_UINT16:
    case SN_UINT32:
        return 4;
    case SN_UINT64:
        return 5;
    case SN_FLOAT32:
        return 6;
    case SN_FLOAT64:
        return 7;
    case SN_STRING:
        return 8;
    default:
        return 0;
    }
}

/* Elements are the low bytes of what the wire has (this runs on little-endian machines alone). */
static size_t fill_numbers(sni_wire *wire, const sni_field *field, srv_input *input, size_t at) {
    sni_wire_type type = field->number == 6   ? SNI_WIRE_I32
                         : field->number == 7 ? SNI_WIRE_I64
                                              : SNI_WIRE_VARINT;
    size_t size = sn_dtype_bytes(input->dtype, 1);
    sni_values values;
    uint64_t bits;
    if (sni_field_values(wire, field, type, &values) != SN_OK) return at;
    while (sni_values_next(&values, &bits)) {
        if (field->number == 1) bits = bits != 0;
        if (at < input->count) memcpy((char *)input->memory + at * size, &bits, size);
        at++;
    }
    if (values.wire.status != SN_OK) wire->status = values.wire.status;
    return at;
}

static srv_code fill_contents(srv_request *request, srv_input *input, const source *from) {
    uint32_t wanted = contents_field(input->dtype);
    sni_wire_limits limits;
    sni_wire wire;
    sni_field field;
    sn_error err;
    sni_str text;
    size_t at = 0;
    if (!wanted || !from->contents) {
        return srv_request_fail(request, SRV_INVALID, "input '%.*s' has no %s",
                                SNI_FMT(input->name),
                                wanted ? "contents" : "raw contents, which its type needs");
    }
    if (srv_input_allocate(request, input) != SRV_OK) return request->code;
    sni_wire_init(&wire, from->contents, from->contents_size, &limits, &err);
    while (sni_wire_next(&wire, &field)) {
        if (field.number != wanted) {
            return srv_request_fail(request, SRV_INVALID,
                                    "input '%.*s' is %s, but its contents are of another type",
                                    SNI_FMT(input->name), srv_type_name(input->dtype));
        }
        if (wanted != 8) {
            at = fill_numbers(&wire, &field, input, at);
        } else if (sni_field_str(&wire, &field, &text) == SN_OK && at++ < input->count &&
                   sn_tensor_set_string(input->value, at - 1, text.p, text.n, &err) != SN_OK) {
            return srv_request_fail_error(request, &err);
        }
    }
    if (wire.status != SN_OK) return srv_request_fail_error(request, &err);
    if (at != input->count) {
        return srv_request_fail(request, SRV_INVALID,
                                "input '%.*s' has %zu elements, its shape asks for %zu",
                                SNI_FMT(input->name), at, input->count);
    }
    return srv_input_finish(request, input);
}

static srv_code fill_raw(srv_request *request, srv_input *input, sni_str raw) {
    if (input->dtype == SN_STRING) {
        if (srv_input_allocate(request, input) != SRV_OK) return request->code;
        return srv_input_strings(request, input, raw.p, raw.n);
    }
    if (srv_input_borrow(request, input, (void *)(uintptr_t)raw.p, raw.n) != SRV_OK) {
        return request->code;
    }
    return srv_input_finish(request, input);
}

static srv_code fill_inputs(parsing *p) {
    srv_request *request = p->request;
    if (request->input_count == 0) {
        return srv_request_fail(request, SRV_INVALID, "the request has no inputs");
    }
    if (p->raw_count && p->raw_count != request->input_count) {
        return srv_request_fail(request, SRV_INVALID, "%zu raw tensors for %zu inputs",
                                p->raw_count, request->input_count);
    }
    for (size_t i = 0; i < request->input_count; i++) {
        srv_input *input = &request->inputs[i];
        if (p->raw_count && p->sources[i].contents_size) {
            return srv_request_fail(request, SRV_INVALID,
                                    "input '%.*s' has contents and raw contents",
                                    SNI_FMT(input->name));
        }
        srv_code code = p->raw_count ? fill_raw(request, input, p->raws[i])
                                     : fill_contents(request, input, &p->sources[i]);
        if (code != SRV_OK) return code;
    }
    return SRV_OK;
}

srv_code srv_grpc_read_request(srv_request *request, const srv_message *message) {
    parsing p = {.request = request, .model = {"", 0}, .version = {"", 0}};
    srv_reader reader;
    sni_field field;
    int64_t version;
    char why[SRV_MESSAGE];
    srv_reader_open(&reader, message);
    while (request->code == SRV_OK && sni_wire_next(&reader.wire, &field)) {
        if (!read_field(&reader.wire, &field, &p)) break;
    }
    if (request->code != SRV_OK) return request->code;
    if (reader.wire.status != SN_OK) {
        return srv_request_fail(request, SRV_INVALID, "%s", reader.err.message);
    }
    if (srv_version_parse(p.version, &version) != SRV_OK) {
        return srv_request_fail(request, SRV_INVALID, "a version is a positive number");
    }
    srv_code code = srv_repository_find(request->server->repository, p.model, version,
                                        &request->model, why, sizeof why);
    if (code != SRV_OK) return srv_request_fail(request, code, "%s", why);
    if (fill_inputs(&p) != SRV_OK) return request->code;
    return srv_request_check(request);
}
