/* json_out.c - JSON output: commas and escapes are this file's business. */
#include "server/api/json_out.h"

#include "common/utf8.h"
#include "server/api/float_text.h"

#include <math.h>

static void separate(srv_json_out *out) {
    if (out->comma) srv_text_add(out->text, ",", 1);
    out->comma = true;
}

void srv_json_begin(srv_json_out *out, char bracket) {
    separate(out);
    srv_text_add(out->text, &bracket, 1);
    out->comma = false;
}

void srv_json_end(srv_json_out *out, char bracket) {
    srv_text_add(out->text, &bracket, 1);
    out->comma = true;
}

/* Whether a byte stands for itself in a JSON string. */
static bool plain(unsigned char c) {
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

static void quoted(srv_text *text, sni_str value) {
    srv_text_add(text, "\"", 1);
    for (size_t at = 0; at < value.n;) {
        size_t run = at;
        while (run < value.n && plain((unsigned char)value.p[run])) run++;
        if (run > at) srv_text_add(text, value.p + at, run - at);
        at = run;
        if (at == value.n) break;
        unsigned char c = (unsigned char)value.p[at];
        size_t step = co_utf8_length(value.p + at, value.n - at);
        if (step == 0) {
            srv_text_adds(text, "\\ufffd");
            step = 1;
        } else if (c == '"' || c == '\\') {
            srv_text_addf(text, "\\%c", c);
        } else if (c == '\n') {
            srv_text_adds(text, "\\n");
        } else if (c < 0x20 || c == 0x7F) {
            srv_text_addf(text, "\\u%04x", c);
        } else {
            srv_text_add(text, value.p + at, step);
        }
        at += step;
    }
    srv_text_add(text, "\"", 1);
}

void srv_json_key(srv_json_out *out, const char *key) {
    separate(out);
    quoted(out->text, sni_str_of(key));
    srv_text_add(out->text, ":", 1);
    out->comma = false;
}

void srv_json_put_str(srv_json_out *out, sni_str value) {
    separate(out);
    quoted(out->text, value);
}

void srv_json_put_string(srv_json_out *out, const char *value) {
    srv_json_put_str(out, sni_str_of(value));
}

void srv_json_put_int(srv_json_out *out, int64_t value) {
    separate(out);
    srv_text_add_int(out->text, value);
}

void srv_json_put_uint(srv_json_out *out, uint64_t value) {
    separate(out);
    srv_text_add_uint(out->text, value);
}

void srv_json_put_bool(srv_json_out *out, bool value) {
    separate(out);
    srv_text_adds(out->text, value ? "true" : "false");
}

void srv_json_put_double(srv_json_out *out, double value) {
    char digits[SRV_FLOAT_TEXT];
    separate(out);
    if (isfinite(value)) {
        srv_text_add(out->text, digits, srv_double_text(value, digits));
    } else {
        srv_text_adds(out->text, "null");
    }
}

void srv_json_put_raw(srv_json_out *out, const char *json) {
    separate(out);
    srv_text_adds(out->text, json);
}

void srv_json_pair_string(srv_json_out *out, const char *key, const char *value) {
    srv_json_key(out, key);
    srv_json_put_string(out, value);
}

void srv_json_pair_uint(srv_json_out *out, const char *key, uint64_t value) {
    srv_json_key(out, key);
    srv_json_put_uint(out, value);
}

void srv_json_pair_bool(srv_json_out *out, const char *key, bool value) {
    srv_json_key(out, key);
    srv_json_put_bool(out, value);
}
