/* config_pbtxt.c - protobuf text format to JSON, for the fields of model configurations.
 *
 * Text format does not tell a repeated field from a single one, so those that are repeated in a
 * configuration are listed here, as are its maps (entries with `key` and `value`). */
#include "server/engine/config.h"

#include "common/utf8.h"
#include "server/api/json_out.h"

#define MOST_DEPTH 8    /* each level is gone over twice */
#define MOST_FIELDS 512 /* of one message */

typedef struct reader {
    const char *start, *at, *end;
    sn_status status;
    sn_error *err;
} reader;

static const char *const repeated[] = {
    "input",        "output",   "instance_group", "dims",    "shape", "preferred_batch_size",
    "model_warmup", "versions", "gpus",           "profile", "step"};
static const char *const maps[] = {"parameters", "inputs", "metric_tags", "priority_queue_policy"};

static bool listed(const char *const *names, size_t count, sni_str name) {
    for (size_t i = 0; i < count; i++) {
        if (sni_str_is(name, names[i])) return true;
    }
    return false;
}
#define IS_REPEATED(name) listed(repeated, sizeof repeated / sizeof repeated[0], name)
#define IS_MAP(name) listed(maps, sizeof maps / sizeof maps[0], name)

static bool wrong(reader *in, const char *what) {
    if (in->status == SN_OK) {
        in->status =
            sni_fail(in->err, SN_MALFORMED, "%s at byte %zu", what, (size_t)(in->at - in->start));
    }
    return false;
}

static void skip_space(reader *in) {
    while (in->at < in->end) {
        if (*in->at == '#') {
            while (in->at < in->end && *in->at != '\n') in->at++;
        } else if (memchr(" \t\r\n", *in->at, 4)) {
            in->at++;
        } else {
            return;
        }
    }
}

static bool accept(reader *in, char c) {
    skip_space(in);
    if (in->at >= in->end || *in->at != c) return false;
    in->at++;
    return true;
}

static bool name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '+';
}

static sni_str read_token(reader *in) {
    skip_space(in);
    const char *start = in->at;
    while (in->at < in->end && name_char(*in->at)) in->at++;
    if (in->at == start) wrong(in, "a name or value is missing");
    return (sni_str){start, (size_t)(in->at - start)};
}

/* One or more adjacent quoted strings. */
static bool read_quoted(reader *in, srv_json_out *out) {
    srv_text text = {0};
    for (skip_space(in); in->at < in->end && (*in->at == '"' || *in->at == '\''); skip_space(in)) {
        char quote = *in->at++;
        while (in->at < in->end && *in->at != quote) {
            char bytes[4] = {*in->at++};
            size_t used = 0, length = 1;
            if (bytes[0] == '\\') {
                if (in->at < in->end && *in->at == '\'') {
                    bytes[0] = '\'';
                    used = 1;
                } else if (co_json_escape(in->at, (size_t)(in->end - in->at), &used, bytes,
                                          &length)) {
                    wrong(in, "unknown escape");
                    break;
                }
                in->at += used;
            }
            srv_text_add(&text, bytes, length);
        }
        if (in->status != SN_OK || in->at >= in->end) {
            wrong(in, "unfinished string");
            break;
        }
        in->at++;
    }
    srv_json_put_str(out, srv_text_str(&text));
    srv_text_free(&text);
    return in->status == SN_OK;
}

static bool read_scalar(reader *in, srv_json_out *out) {
    skip_space(in);
    if (in->at < in->end && (*in->at == '"' || *in->at == '\'')) return read_quoted(in, out);
    sni_str token = read_token(in);
    if (in->status != SN_OK) return false;
    bool word = sni_str_is(token, "true") || sni_str_is(token, "false");
    uint64_t number;
    bool minus = token.p[0] == '-';
    sni_str digits = {token.p + minus, token.n - (minus ? 1 : 0)};
    if (word || srv_parse_uint(digits, UINT64_MAX, &number)) {
        char text[32];
        if (token.n >= sizeof text) return wrong(in, "a value too long");
        memcpy(text, token.p, token.n);
        text[token.n] = 0;
        srv_json_put_raw(out, text);
    } else {
        srv_json_put_str(out, token); /* an enumeration's name, or a fraction as text */
    }
    return true;
}

/* A field as it stands in the text: its name, and where its value begins. */
typedef struct field {
    sni_str name;
    const char *value;
    bool done;
} field;

static bool read_message(reader *in, srv_json_out *out, char close, int depth);

static bool read_value(reader *in, srv_json_out *out, int depth) {
    if (accept(in, '{')) return read_message(in, out, '}', depth + 1);
    if (accept(in, '<')) return read_message(in, out, '>', depth + 1);
    return read_scalar(in, out);
}

/* A value or a bracketed list of them, written one after the other. */
static bool read_values(reader *in, srv_json_out *out, int depth) {
    if (!accept(in, '[')) return read_value(in, out, depth);
    if (accept(in, ']')) return true;
    do {
        if (!read_value(in, out, depth)) return false;
    } while (accept(in, ','));
    return accept(in, ']') || wrong(in, "']' is missing");
}

/* The entry { key: "k" value: v } as a member "k": v. */
static bool read_entry(reader *in, srv_json_out *out, int depth) {
    if (!accept(in, '{') && !accept(in, '<')) return wrong(in, "'{' is missing");
    srv_text key = {0}, value = {0};
    srv_json_out key_out = {.text = &key}, value_out = {.text = &value};
    while (in->status == SN_OK && !accept(in, '}') && !accept(in, '>')) {
        sni_str name = read_token(in);
        accept(in, ':');
        bool is_key = sni_str_is(name, "key");
        read_value(in, is_key ? &key_out : &value_out, depth + 1);
        if (!accept(in, ',')) accept(in, ';');
    }
    if (in->status == SN_OK && (!key.length || !value.length)) wrong(in, "an entry without a key");
    if (in->status == SN_OK) {
        if (out->comma) srv_text_add(out->text, ",", 1);
        if (key.data[0] != '"') srv_text_add(out->text, "\"", 1);
        srv_text_add(out->text, key.data, key.length);
        if (key.data[0] != '"') srv_text_add(out->text, "\"", 1);
        srv_text_add(out->text, ":", 1);
        srv_text_add(out->text, value.data, value.length);
        out->comma = true;
    }
    srv_text_free(&key);
    srv_text_free(&value);
    return in->status == SN_OK;
}

static bool read_entries(reader *in, srv_json_out *out, int depth) {
    if (!accept(in, '[')) return read_entry(in, out, depth);
    if (accept(in, ']')) return true;
    do {
        if (!read_entry(in, out, depth)) return false;
    } while (accept(in, ','));
    return accept(in, ']') || wrong(in, "']' is missing");
}

/* Writes every field of one name as one member, going over the text again for each. */
static bool write_field(reader *in, srv_json_out *out, field *fields, size_t count, size_t first,
                        int depth) {
    sni_str name = fields[first].name;
    char key[64];
    if (name.n >= sizeof key) return wrong(in, "a field's name is too long");
    memcpy(key, name.p, name.n);
    key[name.n] = 0;
    bool map = IS_MAP(name), list = IS_REPEATED(name);
    const char *resume = in->at;
    srv_json_key(out, key);
    if (map || list) srv_json_begin(out, map ? '{' : '[');
    for (size_t i = first; i < count; i++) {
        if (!sni_str_eq(fields[i].name, name)) continue;
        if (i > first && !map && !list) return wrong(in, "a field twice");
        fields[i].done = true;
        in->at = fields[i].value;
        if (!(map ? read_entries(in, out, depth) : read_values(in, out, depth))) return false;
    }
    if (map || list) srv_json_end(out, map ? '}' : ']');
    in->at = resume;
    return true;
}

static bool read_message(reader *in, srv_json_out *out, char close, int depth) {
    if (depth > MOST_DEPTH) return wrong(in, "nested too deeply");
    field fields[MOST_FIELDS];
    size_t count = 0;
    srv_text ignored = {0};
    for (;;) {
        skip_space(in);
        if (close ? accept(in, close) : in->at == in->end) break;
        if (in->at >= in->end) wrong(in, "a message does not end");
        if (count == MOST_FIELDS) wrong(in, "too many fields");
        if (in->status != SN_OK) break;
        fields[count].name = read_token(in);
        accept(in, ':');
        fields[count].value = in->at;
        fields[count++].done = false;
        srv_json_out nothing = {.text = &ignored};
        srv_text_clear(&ignored);
        if (in->status != SN_OK || !read_values(in, &nothing, depth)) break;
        if (!accept(in, ',')) accept(in, ';');
    }
    srv_text_free(&ignored);
    if (in->status != SN_OK) return false;
    srv_json_begin(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].done && !write_field(in, out, fields, count, i, depth)) return false;
    }
    srv_json_end(out, '}');
    return true;
}

sn_status srv_pbtxt_to_json(const char *text, size_t size, srv_text *out, sn_error *err) {
    reader in = {.start = text, .at = text, .end = text + size, .err = err};
    srv_json_out json = {.text = out};
    if (size > 1 << 16) return sni_fail(err, SN_LIMIT, "a configuration of %zu bytes", size);
    read_message(&in, &json, 0, 0);
    if (in.status == SN_OK && out->failed) return sni_fail_memory(err);
    return in.status;
}
