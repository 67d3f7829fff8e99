/* json_in.c - JSON input: a strict pull reader over text in memory, without a tree. */
#include "server/api/json_in.h"

#include "common/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <math.h>

void srv_json_open(srv_json_in *in, const char *text, size_t size, sni_arena *arena,
                   sn_error *err) {
    *in = (srv_json_in){.start = text,
                        .at = text,
                        .end = text + size,
                        .arena = arena,
                        .err = err,
                        .max_depth = SRV_JSON_DEPTH,
                        .first = true};
}

void srv_json_limit_depth(srv_json_in *in, uint64_t depth) {
    in->max_depth = depth < SRV_JSON_MAX_DEPTH ? (int)depth : SRV_JSON_MAX_DEPTH;
}

sn_status srv_json_fail(srv_json_in *in, const char *fmt, ...) {
    if (in->status != SN_OK) return in->status;
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    in->status =
        sni_fail(in->err, SN_MALFORMED, "JSON: %s at byte %zu", what, (size_t)(in->at - in->start));
    return in->status;
}

static bool wrong(srv_json_in *in, const char *what) {
    srv_json_fail(in, "%s", what);
    return false;
}

/* The text ends with a NUL, which is no space: no look at `end` is needed. */
static inline void skip_space(srv_json_in *in) {
    while (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' || *in->at == '\r') in->at++;
}

sn_status srv_json_close(srv_json_in *in) {
    if (in->status != SN_OK) return in->status;
    skip_space(in);
    if (in->at != in->end) srv_json_fail(in, "more text after the end");
    return in->status;
}

srv_json_kind srv_json_peek(srv_json_in *in) {
    if (in->status != SN_OK) return SRV_JSON_NONE;
    skip_space(in);
    switch (*in->at) {
    case '{':
        return SRV_JSON_OBJECT;
    case '[':
        return SRV_JSON_ARRAY;
    case '"':
        return SRV_JSON_STRING;
    case 't':
    case 'f':
        return SRV_JSON_BOOL;
    case 'n':
        return SRV_JSON_NULL;
    case '-':
        return SRV_JSON_NUMBER_KIND;
    default:
        if (*in->at >= '0' && *in->at <= '9') return SRV_JSON_NUMBER_KIND;
        wrong(in, in->at == in->end ? "a value is missing" : "unexpected character");
        return SRV_JSON_NONE;
    }
}

static bool enter(srv_json_in *in, srv_json_kind kind, const char *what) {
    if (srv_json_peek(in) != kind) return wrong(in, what);
    if (in->depth >= in->max_depth) return wrong(in, "nested too deeply");
    in->at++;
    in->depth++;
    in->first = true;
    return true;
}

bool srv_json_array(srv_json_in *in) {
    return enter(in, SRV_JSON_ARRAY, "an array is expected");
}

bool srv_json_object(srv_json_in *in) {
    return enter(in, SRV_JSON_OBJECT, "an object is expected");
}

/* Passes the comma before a next member, or the closing bracket. */
static bool another(srv_json_in *in, char close) {
    if (in->status != SN_OK) return false;
    skip_space(in);
    bool first = in->first;
    in->first = false;
    if (*in->at == close) {
        in->at++;
        in->depth--;
        return false;
    }
    if (!first) {
        if (*in->at != ',') return wrong(in, "',' or the end is missing");
        in->at++;
    }
    return true;
}

bool srv_json_element(srv_json_in *in) {
    return another(in, ']');
}

bool srv_json_member(srv_json_in *in, sni_str *key) {
    if (!another(in, '}')) return false;
    skip_space(in);
    if (*in->at != '"') return wrong(in, "a key is missing");
    if (!srv_json_string(in, key)) return false;
    skip_space(in);
    if (*in->at != ':') return wrong(in, "':' is missing");
    in->at++;
    return true;
}

/* ---- Strings ------------------------------------------------------------------------------ */

/* Past the closing quote of the string whose first character is at `at`; says whether it has
 * escapes. */
static const char *string_end(srv_json_in *in, bool *escaped) {
    const char *p = in->at;
    *escaped = false;
    for (;;) {
        unsigned char c = (unsigned char)*p;
        if (c == '"') return p;
        if (c < 0x20) {
            in->at = p;
            wrong(in, p == in->end ? "unfinished string" : "control character in a string");
            return NULL;
        }
        if (c == '\\') {
            *escaped = true;
            p += p + 1 < in->end ? 2 : 1;
            continue;
        }
        size_t step = c < 0x80 ? 1 : co_utf8_length(p, (size_t)(in->end - p));
        if (step == 0) {
            in->at = p;
            wrong(in, "invalid UTF-8");
            return NULL;
        }
        p += step;
    }
}

bool srv_json_string(srv_json_in *in, sni_str *out) {
    if (srv_json_peek(in) != SRV_JSON_STRING) return wrong(in, "a string is expected");
    in->at++;
    bool escaped;
    const char *start = in->at, *end = string_end(in, &escaped);
    if (!end) return false;
    *out = (sni_str){start, (size_t)(end - start)};
    if (escaped) {
        char *text = sni_arena_alloc(in->arena, out->n + 1);
        size_t length = 0;
        if (!text) {
            in->status = sni_fail_memory(in->err);
            return false;
        }
        const char *bad = co_json_unescape(start, out->n, text, &length);
        if (bad) return wrong(in, bad);
        *out = (sni_str){text, length};
    }
    in->at = end + 1;
    return true;
}

/* ---- Words -------------------------------------------------------------------------------- */

static bool word(srv_json_in *in, const char *text) {
    size_t length = strlen(text);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, text, length) != 0) {
        return wrong(in, "unexpected character");
    }
    in->at += length;
    return true;
}

bool srv_json_bool(srv_json_in *in, bool *out) {
    if (srv_json_peek(in) != SRV_JSON_BOOL) return wrong(in, "true or false is expected");
    bool truth = *in->at == 't';
    if (!word(in, truth ? "true" : "false")) return false;
    *out = truth;
    return true;
}

bool srv_json_null(srv_json_in *in) {
    if (srv_json_peek(in) != SRV_JSON_NULL) return wrong(in, "null is expected");
    return word(in, "null");
}

/* ---- Numbers ------------------------------------------------------------------------------ */

/* A number taken apart: value = mantissa * 10^exponent, exactly unless `cut` (more than 19
 * significant digits). */
typedef struct number {
    const char *text;
    bool negative;
    bool whole; /* written without fraction and exponent */
    bool cut;
    uint64_t mantissa;
    int exponent;
} number;

static inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *read_exponent(srv_json_in *in, const char *p, number *n) {
    bool down = *p == '-';
    if (*p == '+' || *p == '-') p++;
    if (!is_digit(*p)) {
        wrong(in, "bad number");
        return NULL;
    }
    int exponent = 0;
    for (; is_digit(*p); p++) {
        if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
    }
    n->exponent += down ? -exponent : exponent;
    n->whole = false;
    return p;
}

/* Takes the number at `at` apart and passes it. */
static bool scan(srv_json_in *in, number *n) {
    const char *p = in->at;
    *n = (number){.text = p, .whole = true};
    if (*p == '-') {
        n->negative = true;
        p++;
    }
    if (!is_digit(*p) || (*p == '0' && is_digit(p[1]))) return wrong(in, "bad number");
    uint64_t mantissa = 0;
    const char *digits = p;
    while (is_digit(*p)) mantissa = mantissa * 10 + (uint64_t)(*p++ - '0');
    ptrdiff_t count = p - digits;
    if (*p == '.') {
        const char *fraction = ++p;
        while (is_digit(*p)) mantissa = mantissa * 10 + (uint64_t)(*p++ - '0');
        if (p == fraction) return wrong(in, "bad number");
        count += p - fraction;
        n->exponent = count < 1000 ? (int)(fraction - p) : 0;
        n->whole = false;
    }
    n->mantissa = mantissa;
    n->cut = count > 19; /* leading zeros count, too: those go the slow way and come out right */
    if ((*p | 32) == 'e') {
        p = read_exponent(in, p + 1, n);
        if (!p) return false;
    }
    if (p - n->text > SRV_JSON_NUMBER) return wrong(in, "a number of too many digits");
    in->at = p;
    return true;
}

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Where mantissa and power of ten are both exact in a double, one operation rounds once. */
static inline bool quick(const number *n, double *out) {
    if (n->cut || n->mantissa > (uint64_t)1 << 53 || n->exponent < -22 || n->exponent > 22) {
        return false;
    }
    double value = (double)n->mantissa;
    value = n->exponent < 0 ? value / powers[-n->exponent] : value * powers[n->exponent];
    *out = n->negative ? -value : value;
    return true;
}

static inline bool next_number(srv_json_in *in, number *n) {
    if (in->status != SN_OK) return false;
    skip_space(in);
    return scan(in, n);
}

bool srv_json_double(srv_json_in *in, double *out) {
    number n;
    double value;
    if (!next_number(in, &n)) return false;
    if (!quick(&n, &value)) {
        value = strtod(n.text, NULL);
        if (!isfinite(value)) return wrong(in, "a number too large");
    }
    *out = value;
    return true;
}

bool srv_json_float(srv_json_in *in, float *out) {
    number n;
    double value;
    if (!next_number(in, &n)) return false;
    if (quick(&n, &value)) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        /* not in the middle between two floats, and no subnormal: rounding twice is harmless */
        double size = fabs(value);
        if ((bits & 0x1FFFFFFF) != 0x10000000 && size < 3e38 && (size > 1e-37 || size == 0)) {
            *out = (float)value;
            return true;
        }
    }
    float narrow = strtof(n.text, NULL);
    if (!isfinite(narrow)) return wrong(in, "a number too large");
    *out = narrow;
    return true;
}

/* A whole number as sign and magnitude; 1e3 and 5.0 are whole, too. */
static bool whole(srv_json_in *in, number *n, uint64_t *magnitude) {
    if (!next_number(in, n)) return false;
    if (n->whole && !n->cut) {
        *magnitude = n->mantissa;
        return true;
    }
    if (n->whole) {
        size_t length = (size_t)(in->at - n->text) - (n->negative ? 1 : 0);
        return srv_parse_uint((sni_str){n->text + (n->negative ? 1 : 0), length}, UINT64_MAX,
                              magnitude) ||
               wrong(in, "a number out of range");
    }
    double value = strtod(n->text, NULL);
    if (!(fabs(value) <= 9007199254740992.0)) return wrong(in, "a number out of range");
    if (value != trunc(value)) return wrong(in, "a whole number is expected");
    *magnitude = (uint64_t)fabs(value);
    return true;
}

bool srv_json_int(srv_json_in *in, int64_t *out) {
    number n;
    uint64_t magnitude = 0;
    if (!whole(in, &n, &magnitude)) return false;
    if (magnitude > (uint64_t)INT64_MAX + (n.negative ? 1 : 0)) {
        return wrong(in, "a number out of range");
    }
    *out = n.negative && magnitude ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude;
    return true;
}

bool srv_json_uint(srv_json_in *in, uint64_t *out) {
    number n;
    uint64_t magnitude = 0;
    if (!whole(in, &n, &magnitude)) return false;
    if (n.negative && magnitude) return wrong(in, "a number out of range");
    *out = magnitude;
    return true;
}

/* ---- Anything ----------------------------------------------------------------------------- */

static bool skip_scalar(srv_json_in *in, srv_json_kind kind) {
    number n;
    bool truth, escaped;
    const char *end;
    switch (kind) {
    case SRV_JSON_NULL:
        return srv_json_null(in);
    case SRV_JSON_BOOL:
        return srv_json_bool(in, &truth);
    case SRV_JSON_NUMBER_KIND:
        return scan(in, &n);
    case SRV_JSON_STRING:
        in->at++;
        end = string_end(in, &escaped);
        if (end) in->at = end + 1;
        return end != NULL;
    default:
        return false;
    }
}

/* Walks open arrays and objects with a stack of their kinds instead of recursion. */
bool srv_json_skip(srv_json_in *in) {
    bool object[SRV_JSON_MAX_DEPTH + 1];
    int base = in->depth;
    for (;;) {
        srv_json_kind kind = srv_json_peek(in);
        if (kind == SRV_JSON_ARRAY || kind == SRV_JSON_OBJECT) {
            if (!(kind == SRV_JSON_ARRAY ? srv_json_array(in) : srv_json_object(in))) return false;
            object[in->depth] = kind == SRV_JSON_OBJECT;
        } else if (!skip_scalar(in, kind)) {
            return false;
        }
        for (;;) {
            if (in->status != SN_OK) return false;
            if (in->depth == base) return true;
            sni_str key;
            int depth = in->depth;
            if (object[depth] ? srv_json_member(in, &key) : srv_json_element(in)) break;
        }
    }
}
