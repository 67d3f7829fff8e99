/* http_head.c - the head of an HTTP/1.1 request, strictly. */
#include "server/net/http_head.h"

#include <strings.h>

size_t srv_head_end(const char *text, size_t size, size_t *skip) {
    *skip = 0;
    while (size - *skip >= 2 && text[*skip] == '\r' && text[*skip + 1] == '\n') *skip += 2;
    const char *at = text + *skip, *end = text + size;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (!line) return 0;
        /* a bare LF is left for the parser to refuse */
        if (line == at || (line == at + 1 && *at == '\r')) return (size_t)(line + 1 - text) - *skip;
        at = line + 1;
    }
    return 0;
}

/* Characters of a header's name or a method. */
static bool is_token(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool all_token(sni_str text) {
    for (size_t i = 0; i < text.n; i++) {
        if (!is_token(text.p[i])) return false;
    }
    return text.n > 0;
}

static bool is_printable(sni_str text, bool tabs) {
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == 0x7F || (c < 0x20 && !(tabs && c == '\t'))) return false;
    }
    return true;
}

/* Takes the next line, which must end with CRLF and hold no other CR or LF. */
static bool next_line(sni_str *text, sni_str *line) {
    const char *end = memchr(text->p, '\n', text->n);
    if (!end || end == text->p || end[-1] != '\r') return false;
    *line = (sni_str){text->p, (size_t)(end - text->p) - 1};
    text->n -= (size_t)(end + 1 - text->p);
    text->p = end + 1;
    return !memchr(line->p, '\r', line->n);
}

static sni_str trim(sni_str text) {
    while (text.n && (text.p[0] == ' ' || text.p[0] == '\t')) {
        text.p++;
        text.n--;
    }
    while (text.n && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t')) text.n--;
    return text;
}

/* Takes the next element of a comma-separated list. */
static bool next_item(sni_str *list, sni_str *item) {
    if (list->n == 0) return false;
    const char *comma = memchr(list->p, ',', list->n);
    size_t length = comma ? (size_t)(comma - list->p) : list->n;
    *item = trim((sni_str){list->p, length});
    size_t used = comma ? length + 1 : length;
    list->p += used;
    list->n -= used;
    return true;
}

static bool has_prefix(sni_str text, const char *prefix) {
    size_t n = strlen(prefix);
    return text.n >= n && strncasecmp(text.p, prefix, n) == 0;
}

/* ---- The request line --------------------------------------------------------------------- */

static srv_code read_target(sni_str target, srv_head *out, const char **why) {
    if (has_prefix(target, "http://") || has_prefix(target, "https://")) {
        const char *host = (const char *)memchr(target.p, ':', target.n) + 3;
        size_t left = target.n - (size_t)(host - target.p);
        const char *slash = memchr(host, '/', left);
        target = slash ? (sni_str){slash, left - (size_t)(slash - host)} : SNI_STR("/");
    }
    if (target.n == 0 || target.p[0] != '/') {
        *why = "the target is no path";
        return SRV_INVALID;
    }
    const char *question = memchr(target.p, '?', target.n);
    out->path = target;
    if (question) {
        out->path.n = (size_t)(question - target.p);
        out->query = (sni_str){question + 1, target.n - out->path.n - 1};
    }
    return SRV_OK;
}

static srv_code read_request_line(sni_str line, srv_head *out, const char **why) {
    const char *first = memchr(line.p, ' ', line.n);
    const char *second =
        first ? memchr(first + 1, ' ', line.n - (size_t)(first + 1 - line.p)) : NULL;
    *why = "the request line is not understood";
    if (!second) return SRV_INVALID;
    out->method = (sni_str){line.p, (size_t)(first - line.p)};
    sni_str target = {first + 1, (size_t)(second - first - 1)};
    sni_str version = {second + 1, line.n - (size_t)(second + 1 - line.p)};
    if (!all_token(out->method) || !is_printable(target, false)) return SRV_INVALID;
    if (version.n != 8 || memcmp(version.p, "HTTP/", 5) != 0 || version.p[6] != '.') {
        return SRV_INVALID;
    }
    if (version.p[5] != '1' || version.p[7] < '0' || version.p[7] > '1') {
        *why = "only HTTP/1.1 and HTTP/1.0 are spoken here";
        return SRV_BAD_VERSION;
    }
    out->minor = version.p[7] - '0';
    out->keep_alive = out->minor == 1;
    return read_target(target, out, why);
}

/* ---- Headers ------------------------------------------------------------------------------ */

/* What must not come twice. */
typedef struct seen {
    bool length, transfer, host, encoding, inference, authorization, key, origin, site;
} seen;

static bool once(bool *flag) {
    bool first = !*flag;
    *flag = true;
    return first;
}

static srv_encoding encoding_of(sni_str name) {
    if (name.n == 0 || srv_str_equal_nocase(name, "identity")) return SRV_IDENTITY;
    if (srv_str_equal_nocase(name, "gzip") || srv_str_equal_nocase(name, "x-gzip")) return SRV_GZIP;
    if (srv_str_equal_nocase(name, "deflate")) return SRV_DEFLATE;
    return SRV_UNKNOWN;
}

/* gzip is preferred to deflate; "gzip;q=0" is a refusal. */
static srv_encoding accepted(sni_str list) {
    srv_encoding best = SRV_IDENTITY;
    for (sni_str item; next_item(&list, &item);) {
        const char *weight = memchr(item.p, ';', item.n);
        sni_str name = item;
        if (weight) {
            name = trim((sni_str){item.p, (size_t)(weight - item.p)});
            sni_str q = trim((sni_str){weight + 1, item.n - (size_t)(weight + 1 - item.p)});
            if (sni_str_is(q, "q=0") || has_prefix(q, "q=0.0")) continue;
        }
        srv_encoding encoding = encoding_of(name);
        if (encoding == SRV_GZIP || (encoding == SRV_DEFLATE && best == SRV_IDENTITY)) {
            best = encoding;
        }
    }
    return best;
}

static void read_connection(sni_str list, srv_head *out) {
    for (sni_str item; next_item(&list, &item);) {
        if (srv_str_equal_nocase(item, "close")) out->keep_alive = false;
        if (srv_str_equal_nocase(item, "keep-alive") && out->minor == 0) out->keep_alive = true;
    }
}

static srv_code read_framing(sni_str name, sni_str value, srv_head *out, seen *given,
                             const char **why) {
    if (srv_str_equal_nocase(name, "content-length")) {
        *why = "Content-Length is not one number";
        out->has_length = true;
        if (!once(&given->length)) return SRV_INVALID;
        return srv_parse_uint(value, INT64_MAX, &out->length) ? SRV_OK : SRV_INVALID;
    }
    *why = "Transfer-Encoding must be chunked alone";
    if (!once(&given->transfer) || out->minor == 0) return SRV_INVALID;
    out->chunked = srv_str_equal_nocase(value, "chunked");
    return out->chunked ? SRV_OK : SRV_UNIMPLEMENTED;
}

static srv_code read_header(sni_str name, sni_str value, srv_head *out, seen *given,
                            const char **why) {
    if (srv_str_equal_nocase(name, "content-length") ||
        srv_str_equal_nocase(name, "transfer-encoding")) {
        return read_framing(name, value, out, given, why);
    }
    *why = "a header is given twice";
    if (srv_str_equal_nocase(name, "host")) {
        out->host = value;
        return once(&given->host) ? SRV_OK : SRV_INVALID;
    }
    if (srv_str_equal_nocase(name, "content-encoding")) {
        out->encoding = encoding_of(value);
        return once(&given->encoding) ? SRV_OK : SRV_INVALID;
    }
    if (srv_str_equal_nocase(name, "inference-header-content-length")) {
        out->has_inference_length = true;
        if (!once(&given->inference)) return SRV_INVALID;
        *why = "Inference-Header-Content-Length is not one number";
        return srv_parse_uint(value, INT64_MAX, &out->inference_length) ? SRV_OK : SRV_INVALID;
    }
    if (srv_str_equal_nocase(name, "connection")) {
        read_connection(value, out);
    } else if (srv_str_equal_nocase(name, "accept-encoding")) {
        out->accept = accepted(value);
    } else if (srv_str_equal_nocase(name, "content-type")) {
        out->content_type = value;
    } else if (srv_str_equal_nocase(name, "authorization")) {
        out->authorization = value;
        return once(&given->authorization) ? SRV_OK : SRV_INVALID;
    } else if (srv_str_equal_nocase(name, "x-api-key")) {
        out->api_key = value;
        return once(&given->key) ? SRV_OK : SRV_INVALID;
    } else if (srv_str_equal_nocase(name, "origin")) {
        out->origin = value;
        return once(&given->origin) ? SRV_OK : SRV_INVALID;
    } else if (srv_str_equal_nocase(name, "sec-fetch-site")) {
        out->fetch_site = value;
        return once(&given->site) ? SRV_OK : SRV_INVALID;
    } else if (srv_str_equal_nocase(name, "traceparent")) {
        out->traceparent = value;
    } else if (srv_str_equal_nocase(name, "expect")) {
        out->expect_continue = srv_str_equal_nocase(value, "100-continue");
        out->bad_expectation = !out->expect_continue;
    }
    return SRV_OK;
}

static srv_code check_whole(const srv_head *out, const seen *given, const char **why) {
    if (out->chunked && out->has_length) {
        *why = "Content-Length and Transfer-Encoding together";
        return SRV_INVALID;
    }
    if (out->minor == 1 && !given->host) {
        *why = "there is no Host";
        return SRV_INVALID;
    }
    if (out->encoding == SRV_UNKNOWN) {
        *why = "Content-Encoding must be gzip, deflate or identity";
        return SRV_BAD_ENCODING;
    }
    if (out->bad_expectation) {
        *why = "only 100-continue can be expected";
        return SRV_EXPECTATION;
    }
    return SRV_OK;
}

srv_code srv_head_parse(const char *text, size_t size, srv_head *out, const char **why) {
    sni_str left = {text, size}, line;
    seen given = {0};
    int count = 0;
    *out = (srv_head){.method = SNI_STR("")};
    *why = "a line does not end with CRLF";
    if (!next_line(&left, &line)) return SRV_INVALID;
    srv_code code = read_request_line(line, out, why);
    while (code == SRV_OK) {
        *why = "a line does not end with CRLF";
        if (!next_line(&left, &line)) return SRV_INVALID;
        if (line.n == 0) break;
        *why = "too many header lines";
        if (++count > SRV_HEADERS) return SRV_LARGE_HEADERS;
        const char *colon = memchr(line.p, ':', line.n);
        sni_str name = {line.p, colon ? (size_t)(colon - line.p) : 0};
        *why = "a header line is not understood";
        if (!colon || !all_token(name)) return SRV_INVALID;
        sni_str value = trim((sni_str){colon + 1, line.n - name.n - 1});
        if (!is_printable(value, true)) return SRV_INVALID;
        code = read_header(name, value, out, &given, why);
    }
    return code == SRV_OK ? check_whole(out, &given, why) : code;
}
