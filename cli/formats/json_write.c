/* json_write.c - writes JSON: commas, indentation and escapes are this file's business. */
#include "cli/formats/json_write.h"

#include "common/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static void new_line(cli_json *json) {
    cli_text_addf(json->out, "\n%*s", json->depth * 2, "");
}

static void before_value(cli_json *json) {
    if (!json->after_key && json->depth > 0) {
        if (json->filled[json->depth - 1]) cli_text_add(json->out, ",", 1);
        json->filled[json->depth - 1] = true;
        new_line(json);
    }
    json->after_key = false;
}

void cli_json_begin(cli_json *json, char bracket) {
    before_value(json);
    cli_text_add(json->out, &bracket, 1);
    if (json->depth >= CLI_JSON_WRITE_DEPTH) abort();
    json->filled[json->depth++] = false;
}

void cli_json_end(cli_json *json, char bracket) {
    bool filled = json->filled[--json->depth];
    if (filled) new_line(json);
    cli_text_add(json->out, &bracket, 1);
    if (json->depth == 0) cli_text_add(json->out, "\n", 1);
}

static void add_quoted(cli_text *out, const char *text, size_t length) {
    cli_text_add(out, "\"", 1);
    for (size_t at = 0; at < length;) {
        size_t step = co_utf8_length(text + at, length - at);
        unsigned char c = (unsigned char)text[at];
        if (step == 0) {
            cli_text_add(out, "\\ufffd", 6);
            step = 1;
        } else if (c == '"' || c == '\\') {
            cli_text_addf(out, "\\%c", c);
        } else if (c == '\n') {
            cli_text_add(out, "\\n", 2);
        } else if (c < 0x20 || c == 0x7F) {
            cli_text_addf(out, "\\u%04x", c);
        } else {
            cli_text_add(out, text + at, step);
        }
        at += step;
    }
    cli_text_add(out, "\"", 1);
}

void cli_json_key(cli_json *json, const char *key) {
    before_value(json);
    add_quoted(json->out, key, strlen(key));
    cli_text_add(json->out, ": ", 2);
    json->after_key = true;
}

void cli_json_string(cli_json *json, const char *text, size_t length) {
    before_value(json);
    add_quoted(json->out, text, length);
}

void cli_json_cstring(cli_json *json, const char *text) {
    cli_json_string(json, text, strlen(text));
}

void cli_json_number(cli_json *json, double number) {
    before_value(json);
    if (isfinite(number)) {
        cli_text_addf(json->out, "%.9g", number);
    } else {
        cli_text_add(json->out, "null", 4);
    }
}

void cli_json_integer(cli_json *json, int64_t number) {
    before_value(json);
    cli_text_addf(json->out, "%lld", (long long)number);
}

void cli_json_unsigned(cli_json *json, uint64_t number) {
    before_value(json);
    cli_text_addf(json->out, "%llu", (unsigned long long)number);
}

void cli_json_bool(cli_json *json, bool truth) {
    before_value(json);
    cli_text_addf(json->out, truth ? "true" : "false");
}
