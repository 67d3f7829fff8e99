/* json_read.c - a small strict JSON reader: RFC 8259, depth-limited, no duplicate keys. */
#include "cli/formats/json_read.h"

#include "common/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *bytes;
    size_t size;
    size_t at;
    char *store; /* where the next text goes; texts never take more than the document */
    cli_json_doc *doc;
    sn_error *err;
} reader;

static sn_status wrong(reader *in, const char *what) {
    return cli_fail(in->err, SN_MALFORMED, "JSON: %s at byte %zu", what, in->at);
}

static void skip_space(reader *in) {
    while (in->at < in->size && memchr(" \t\r\n", in->bytes[in->at], 4)) in->at++;
}

static bool accept(reader *in, char c) {
    skip_space(in);
    if (in->at >= in->size || in->bytes[in->at] != c) return false;
    in->at++;
    return true;
}

static sn_status add_node(reader *in, cli_json_kind kind, size_t *index) {
    cli_json_doc *doc = in->doc;
    if (doc->count == doc->capacity) {
        size_t capacity = doc->capacity ? doc->capacity * 2 : 16;
        cli_json_node *nodes = realloc(doc->nodes, capacity * sizeof *nodes);
        if (!nodes)
            return cli_fail(in->err, SN_NO_MEMORY, "JSON: no memory for %zu values", capacity);
        doc->nodes = nodes;
        doc->capacity = capacity;
    }
    *index = doc->count++;
    doc->nodes[*index] = (cli_json_node){.kind = kind, .next = *index + 1};
    return SN_OK;
}

/* The escape whose backslash has just been passed. */
static sn_status read_escape(reader *in) {
    size_t used = 0, length = 0;
    char bytes[4];
    const char *bad = co_json_escape(in->bytes + in->at, in->size - in->at, &used, bytes, &length);
    if (bad) return wrong(in, bad);
    in->at += used;
    memcpy(in->store, bytes, length);
    in->store += length;
    return SN_OK;
}

static sn_status read_string(reader *in) {
    size_t index;
    sn_status status = add_node(in, CLI_JSON_STRING, &index);
    if (status != SN_OK) return status;
    char *start = in->store;
    for (;;) {
        if (in->at >= in->size) return wrong(in, "unfinished string");
        unsigned char c = (unsigned char)in->bytes[in->at];
        if (c == '"') break;
        if (c < 0x20) return wrong(in, "control character in a string");
        if (c == '\\') {
            in->at++;
            status = read_escape(in);
            if (status != SN_OK) return status;
            continue;
        }
        size_t step = co_utf8_length(in->bytes + in->at, in->size - in->at);
        if (step == 0) return wrong(in, "invalid UTF-8");
        memcpy(in->store, in->bytes + in->at, step);
        in->store += step;
        in->at += step;
    }
    in->at++;
    in->doc->nodes[index].text = start;
    in->doc->nodes[index].length = (size_t)(in->store - start);
    *in->store++ = 0;
    return SN_OK;
}

static size_t skip_digits(reader *in) {
    size_t start = in->at;
    while (in->at < in->size && isdigit((unsigned char)in->bytes[in->at])) in->at++;
    return in->at - start;
}

static sn_status read_number(reader *in) {
    size_t start = in->at, index;
    if (in->bytes[in->at] == '-') in->at++;
    size_t first = in->at, digits = skip_digits(in);
    if (digits == 0 || (digits > 1 && in->bytes[first] == '0')) return wrong(in, "bad number");
    if (in->at < in->size && in->bytes[in->at] == '.') {
        in->at++;
        if (skip_digits(in) == 0) return wrong(in, "bad number");
    }
    if (in->at < in->size && (in->bytes[in->at] | 32) == 'e') {
        in->at++;
        if (in->at < in->size && memchr("+-", in->bytes[in->at], 2)) in->at++;
        if (skip_digits(in) == 0) return wrong(in, "bad number");
    }
    sn_status status = add_node(in, CLI_JSON_NUMBER, &index);
    if (status != SN_OK) return status;
    cli_json_node *node = &in->doc->nodes[index];
    node->text = in->store;
    node->length = in->at - start;
    memcpy(in->store, in->bytes + start, node->length);
    in->store += node->length;
    *in->store++ = 0;
    return SN_OK;
}

static sn_status read_word(reader *in) {
    static const struct {
        const char *word;
        cli_json_kind kind;
    } words[] = {{"null", CLI_JSON_NULL}, {"true", CLI_JSON_TRUE}, {"false", CLI_JSON_FALSE}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word), index;
        if (in->size - in->at < length || memcmp(in->bytes + in->at, words[i].word, length) != 0) {
            continue;
        }
        in->at += length;
        return add_node(in, words[i].kind, &index);
    }
    return wrong(in, "unexpected character");
}

static bool has_key_twice(const cli_json_doc *doc, size_t object, size_t key) {
    for (size_t at = object + 1; at < key; at = doc->nodes[at + 1].next) {
        if (doc->nodes[at].length == doc->nodes[key].length &&
            memcmp(doc->nodes[at].text, doc->nodes[key].text, doc->nodes[key].length) == 0) {
            return true;
        }
    }
    return false;
}

static sn_status read_value(reader *in, int depth);

static sn_status read_object_key(reader *in, size_t object) {
    if (in->doc->nodes[object].count >= 4096) return wrong(in, "more than 4096 keys in an object");
    if (!accept(in, '"')) return wrong(in, "a key is missing");
    size_t key = in->doc->count;
    sn_status status = read_string(in);
    if (status != SN_OK) return status;
    if (has_key_twice(in->doc, object, key)) return wrong(in, "the same key twice");
    if (!accept(in, ':')) return wrong(in, "':' is missing");
    return SN_OK;
}

static sn_status read_members(reader *in, cli_json_kind kind, int depth) {
    if (depth >= CLI_JSON_DEPTH) return wrong(in, "nested too deeply");
    size_t index;
    char close = kind == CLI_JSON_ARRAY ? ']' : '}';
    sn_status status = add_node(in, kind, &index);
    if (status != SN_OK) return status;
    bool more = !accept(in, close);
    while (more) {
        if (kind == CLI_JSON_OBJECT) {
            status = read_object_key(in, index);
            if (status != SN_OK) return status;
        }
        status = read_value(in, depth + 1);
        if (status != SN_OK) return status;
        if (in->doc->nodes[index].count == UINT32_MAX) return wrong(in, "too many members");
        in->doc->nodes[index].count++;
        more = accept(in, ',');
        if (!more && !accept(in, close)) return wrong(in, "',' or the end is missing");
    }
    in->doc->nodes[index].next = in->doc->count;
    return SN_OK;
}

static sn_status read_value(reader *in, int depth) {
    skip_space(in);
    if (in->at >= in->size) return wrong(in, "a value is missing");
    char c = in->bytes[in->at];
    if (c == '-' || isdigit((unsigned char)c)) return read_number(in);
    if (c != '"' && c != '[' && c != '{') return read_word(in);
    in->at++;
    if (c == '"') return read_string(in);
    return read_members(in, c == '[' ? CLI_JSON_ARRAY : CLI_JSON_OBJECT, depth);
}

sn_status cli_json_parse(const char *bytes, size_t size, cli_json_doc *out, sn_error *err) {
    cli_json_doc doc = {0};
    if (size > SIZE_MAX / 4) return cli_fail(err, SN_LIMIT, "JSON: too large");
    /* a number of one digit takes two bytes of store: itself and its NUL */
    doc.strings = malloc(size * 2 + 1);
    if (!doc.strings) return cli_fail(err, SN_NO_MEMORY, "JSON: no memory for %zu bytes", size);
    reader in = {.bytes = bytes, .size = size, .store = doc.strings, .doc = &doc, .err = err};
    sn_status status = read_value(&in, 0);
    if (status == SN_OK) {
        skip_space(&in);
        if (in.at != size) status = wrong(&in, "more text after the end");
    }
    if (status != SN_OK) {
        cli_json_free(&doc);
        return status;
    }
    *out = doc;
    return SN_OK;
}

void cli_json_free(cli_json_doc *doc) {
    free(doc->nodes);
    free(doc->strings);
    *doc = (cli_json_doc){0};
}

const cli_json_node *cli_json_get(const cli_json_doc *doc, size_t object, const char *key) {
    if (doc->nodes[object].kind != CLI_JSON_OBJECT) return NULL;
    size_t at = object + 1;
    for (uint32_t i = 0; i < doc->nodes[object].count; i++) {
        const cli_json_node *node = &doc->nodes[at];
        if (node->length == strlen(key) && memcmp(node->text, key, node->length) == 0) {
            return node + 1;
        }
        at = doc->nodes[at + 1].next;
    }
    return NULL;
}

bool cli_json_real(const cli_json_node *node, double *out) {
    if (!node || node->kind != CLI_JSON_NUMBER) return false;
    double number = strtod(node->text, NULL);
    if (!isfinite(number)) return false;
    *out = number;
    return true;
}

/* Whether a number is written without fraction and exponent. */
static bool is_plain(const cli_json_node *node) {
    return node && node->kind == CLI_JSON_NUMBER && !strpbrk(node->text, ".eE");
}

bool cli_json_int(const cli_json_node *node, int64_t *out) {
    double real;
    if (is_plain(node)) {
        char *end;
        errno = 0;
        long long number = strtoll(node->text, &end, 10);
        if (*end || errno == ERANGE) return false;
        *out = number;
        return true;
    }
    if (!cli_json_real(node, &real) || real != floor(real) || fabs(real) > 9007199254740992.0) {
        return false;
    }
    *out = (int64_t)real;
    return true;
}

bool cli_json_uint(const cli_json_node *node, uint64_t *out) {
    int64_t small;
    if (cli_json_int(node, &small)) {
        if (small < 0) return false;
        *out = (uint64_t)small;
        return true;
    }
    if (!is_plain(node) || node->text[0] == '-') return false;
    errno = 0;
    unsigned long long number = strtoull(node->text, NULL, 10);
    if (errno == ERANGE) return false;
    *out = number;
    return true;
}
