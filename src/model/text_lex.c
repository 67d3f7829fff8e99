/* text_lex.c - the tokens of ONNX text: names, numbers, strings and marks. */
#include "model/text_lex.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_MAX = 400 }; /* bytes of one number: no double needs more */

static bool is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* True for inf, infinity and nan in any case, with or without a minus. */
static bool special_float(sni_str text, double *out) {
    char low[10];
    bool negative = text.n && text.p[0] == '-';
    size_t n = text.n - negative;
    if (n >= sizeof(low)) return false;
    for (size_t i = 0; i < n; i++) low[i] = (char)(text.p[i + negative] | 0x20);
    low[n] = 0;
    double v;
    if (strcmp(low, "inf") == 0 || strcmp(low, "infinity") == 0) {
        v = INFINITY;
    } else if (strcmp(low, "nan") == 0) {
        v = NAN;
    } else {
        return false;
    }
    *out = negative ? -v : v;
    return true;
}

bool sni_text_is_id(sni_str s) {
    if (s.n == 0 || !is_alpha(s.p[0])) return false;
    for (size_t i = 1; i < s.n; i++)
        if (!is_alpha(s.p[i]) && !is_digit(s.p[i])) return false;
    double v;
    return !special_float(s, &v);
}

sn_status sni_lex_fail(const sni_lexer *lex, sn_status status, const char *format, ...) {
    char text[SN_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return sni_fail(lex->err, status, "line %zu, column %zu: %s", lex->token.line,
                    lex->token.column, text);
}

sn_status sni_lex_expected(const sni_lexer *lex, const char *what) {
    const sni_token *t = &lex->token;
    if (t->kind == SNI_TOKEN_END)
        return sni_lex_fail(lex, SN_MALFORMED, "expected %s, found the end of the text", what);
    char shown[41];
    size_t n = 0;
    for (; n < t->text.n && n < sizeof(shown) - 1; n++) {
        unsigned char c = (unsigned char)t->text.p[n];
        shown[n] = c < 32 || c == 127 ? '?' : (char)c;
    }
    shown[n] = 0;
    return sni_lex_fail(lex, SN_MALFORMED, "expected %s, found %s'%s'%s", what,
                        t->kind == SNI_TOKEN_STRING ? "string " : "", shown,
                        n < t->text.n ? "..." : "");
}

static void skip_space(sni_lexer *lex) {
    while (lex->p < lex->end) {
        char c = *lex->p;
        if (c == '\n') {
            lex->line++;
            lex->line_start = lex->p + 1;
        } else if (c == '#') {
            while (lex->p + 1 < lex->end && lex->p[1] != '\n') lex->p++;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
        lex->p++;
    }
}

static int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Resolves the escapes of `raw`, the text between the quotes, into `out`, which is large enough.
 * The scan for the closing quote saw to it that a byte follows every backslash. */
static sn_status unescape(const sni_lexer *lex, sni_str raw, char *out, size_t *n) {
    size_t k = 0;
    for (size_t i = 0; i < raw.n; i++) {
        char c = raw.p[i];
        if (c != '\\') {
            out[k++] = c;
            continue;
        }
        c = raw.p[++i];
        if (c == 'x') {
            int high = i + 2 < raw.n ? hex_digit(raw.p[i + 1]) : -1;
            int low = high < 0 ? -1 : hex_digit(raw.p[i + 2]);
            if (low < 0)
                return sni_lex_fail(lex, SN_MALFORMED, "\\x in a string needs two hex digits");
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == 'n') {
            c = '\n';
        } else if (c == 't') {
            c = '\t';
        } else if (c == 'r') {
            c = '\r';
        }
        out[k++] = c;
    }
    *n = k;
    return SN_OK;
}

static sn_status lex_string(sni_lexer *lex) {
    const char *from = ++lex->p;
    bool escapes = false;
    while (lex->p < lex->end && *lex->p != '"') {
        if (*lex->p == '\\') {
            escapes = true;
            lex->p++;
            if (lex->p == lex->end) break;
        }
        if (*lex->p == '\n') {
            lex->line++;
            lex->line_start = lex->p + 1;
        }
        lex->p++;
    }
    if (lex->p == lex->end) return sni_lex_fail(lex, SN_MALFORMED, "a string has no closing quote");
    sni_str raw = {from, (size_t)(lex->p - from)};
    lex->p++;
    lex->token.kind = SNI_TOKEN_STRING;
    lex->token.text = raw;
    if (!escapes) return SN_OK;
    char *out = sni_arena_alloc(lex->arena, raw.n);
    if (!out) return sni_fail_memory(lex->err);
    lex->token.text.p = out;
    return unescape(lex, raw, out, &lex->token.text.n);
}

static void take_digits(sni_lexer *lex) {
    while (lex->p < lex->end && is_digit(*lex->p)) lex->p++;
}

/* -?digits[.digits][e[+-]digits], or - followed by letters. */
static sn_status lex_number(sni_lexer *lex) {
    const char *from = lex->p;
    lex->token.kind = SNI_TOKEN_INT;
    if (*lex->p == '-') lex->p++;
    if (lex->p < lex->end && is_alpha(*lex->p)) {
        while (lex->p < lex->end && is_alpha(*lex->p)) lex->p++;
        lex->token.kind = SNI_TOKEN_FLOAT;
    } else {
        const char *digits = lex->p;
        take_digits(lex);
        if (lex->p == digits) return sni_lex_fail(lex, SN_MALFORMED, "a '-' without a number");
        if (lex->p < lex->end && *lex->p == '.') {
            lex->token.kind = SNI_TOKEN_FLOAT;
            lex->p++;
            take_digits(lex);
        }
        if (lex->p < lex->end && (*lex->p == 'e' || *lex->p == 'E')) {
            lex->token.kind = SNI_TOKEN_FLOAT;
            lex->p++;
            if (lex->p < lex->end && (*lex->p == '+' || *lex->p == '-')) lex->p++;
            const char *exponent = lex->p;
            take_digits(lex);
            if (lex->p == exponent)
                return sni_lex_fail(lex, SN_MALFORMED, "a number has no digits in its exponent");
        }
    }
    lex->token.text = (sni_str){from, (size_t)(lex->p - from)};
    if (lex->token.text.n > NUMBER_MAX)
        return sni_lex_fail(lex, SN_MALFORMED, "a number is longer than %d bytes", NUMBER_MAX);
    return SN_OK;
}

static bool starts_with(const sni_lexer *lex, const char *text) {
    size_t n = strlen(text);
    return (size_t)(lex->end - lex->p) >= n && memcmp(lex->p, text, n) == 0;
}

static void lex_fixed(sni_lexer *lex, sni_token_kind kind, size_t n) {
    lex->token.kind = kind;
    lex->token.mark = *lex->p;
    lex->token.text = (sni_str){lex->p, n};
    lex->p += n;
}

sn_status sni_lex_next(sni_lexer *lex) {
    skip_space(lex);
    lex->token = (sni_token){
        .kind = SNI_TOKEN_END, .line = lex->line, .column = (size_t)(lex->p - lex->line_start) + 1};
    if (lex->p == lex->end) return SN_OK;
    char c = *lex->p;
    if (c == '"') return lex_string(lex);
    if (is_digit(c) || c == '-') return lex_number(lex);
    if (is_alpha(c)) {
        const char *from = lex->p;
        while (lex->p < lex->end && (is_alpha(*lex->p) || is_digit(*lex->p))) lex->p++;
        lex->token.kind = SNI_TOKEN_ID;
        lex->token.text = (sni_str){from, (size_t)(lex->p - from)};
        return SN_OK;
    }
    if (starts_with(lex, "=>")) {
        lex_fixed(lex, SNI_TOKEN_ARROW, 2);
    } else if (starts_with(lex, "...")) {
        lex_fixed(lex, SNI_TOKEN_ELLIPSIS, 3);
    } else if (memchr("()[]{}<>,=:.@?", c, 14)) {
        lex_fixed(lex, SNI_TOKEN_MARK, 1);
    } else {
        unsigned char byte = (unsigned char)c;
        return sni_lex_fail(lex, SN_MALFORMED,
                            byte > 32 && byte < 127 ? "unexpected '%c'" : "unexpected byte %d",
                            byte);
    }
    return SN_OK;
}

sn_status sni_lex_start(sni_lexer *lex, sni_str text, sni_arena *arena, sn_error *err) {
    const char *p = text.n ? text.p : "";
    *lex = (sni_lexer){
        .p = p, .end = p + text.n, .line_start = p, .line = 1, .arena = arena, .err = err};
    return sni_lex_next(lex);
}

sn_status sni_lex_accept(sni_lexer *lex, char mark, bool *found) {
    *found = sni_lex_is(lex, mark);
    return *found ? sni_lex_next(lex) : SN_OK;
}

sn_status sni_lex_expect(sni_lexer *lex, char mark) {
    if (sni_lex_is(lex, mark)) return sni_lex_next(lex);
    return sni_lex_expected(lex, (const char[]){'\'', mark, '\'', 0});
}

static sn_status take_text(sni_lexer *lex, sni_str *out) {
    *out = lex->token.text;
    return sni_lex_next(lex);
}

sn_status sni_lex_id(sni_lexer *lex, sni_str *out) {
    if (lex->token.kind != SNI_TOKEN_ID) return sni_lex_expected(lex, "an identifier");
    return take_text(lex, out);
}

sn_status sni_lex_name(sni_lexer *lex, sni_str *out) {
    if (lex->token.kind != SNI_TOKEN_ID && lex->token.kind != SNI_TOKEN_STRING)
        return sni_lex_expected(lex, "a name");
    return take_text(lex, out);
}

sn_status sni_lex_string(sni_lexer *lex, sni_str *out) {
    if (lex->token.kind != SNI_TOKEN_STRING) return sni_lex_expected(lex, "a string");
    return take_text(lex, out);
}

/* The digits of an INT token; false if they do not fit. */
static bool magnitude(sni_str text, bool *negative, uint64_t *out) {
    *negative = text.p[0] == '-';
    uint64_t v = 0;
    for (size_t i = *negative; i < text.n; i++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(text.p[i] - '0'), &v))
            return false;
    *out = v;
    return true;
}

static sn_status out_of_range(const sni_lexer *lex) {
    return sni_lex_fail(lex, SN_MALFORMED, "%.*s is out of range here", SNI_FMT(lex->token.text));
}

sn_status sni_lex_int(sni_lexer *lex, int64_t min, int64_t max, int64_t *out) {
    if (lex->token.kind != SNI_TOKEN_INT) return sni_lex_expected(lex, "an integer");
    bool negative;
    uint64_t m;
    if (!magnitude(lex->token.text, &negative, &m) || m > (uint64_t)INT64_MAX + negative)
        return out_of_range(lex);
    int64_t v = !negative ? (int64_t)m : m > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)m;
    if (v < min || v > max) return out_of_range(lex);
    *out = v;
    return sni_lex_next(lex);
}

sn_status sni_lex_uint(sni_lexer *lex, uint64_t max, uint64_t *out) {
    if (lex->token.kind != SNI_TOKEN_INT) return sni_lex_expected(lex, "an integer");
    bool negative;
    uint64_t m;
    if (!magnitude(lex->token.text, &negative, &m) || m > max || (negative && m))
        return out_of_range(lex);
    *out = m;
    return sni_lex_next(lex);
}

bool sni_lex_at_float(const sni_lexer *lex) {
    double v;
    return lex->token.kind == SNI_TOKEN_FLOAT ||
           (lex->token.kind == SNI_TOKEN_ID && special_float(lex->token.text, &v));
}

bool sni_lex_at_number(const sni_lexer *lex) {
    return lex->token.kind == SNI_TOKEN_INT || sni_lex_at_float(lex);
}

/* The current number as text that strtod takes, or a value that needs no conversion. */
static sn_status number_text(const sni_lexer *lex, char buffer[NUMBER_MAX + 1], bool *special,
                             double *value) {
    const sni_token *t = &lex->token;
    if (!sni_lex_at_number(lex)) return sni_lex_expected(lex, "a number");
    *special = special_float(t->text, value);
    if (*special) return SN_OK;
    if (is_alpha(t->text.p[t->text.n - 1])) return sni_lex_expected(lex, "a number");
    memcpy(buffer, t->text.p, t->text.n);
    buffer[t->text.n] = 0;
    return SN_OK;
}

sn_status sni_lex_f64(sni_lexer *lex, double *out) {
    char buffer[NUMBER_MAX + 1];
    bool special;
    double v;
    SN_TRY(number_text(lex, buffer, &special, &v));
    if (!special) {
        v = strtod(buffer, NULL);
        if (isinf(v)) return out_of_range(lex);
    }
    *out = v;
    return sni_lex_next(lex);
}

sn_status sni_lex_f32(sni_lexer *lex, float *out) {
    char buffer[NUMBER_MAX + 1];
    bool special;
    double v = 0;
    SN_TRY(number_text(lex, buffer, &special, &v));
    float f = special ? (float)v : strtof(buffer, NULL);
    if (!special && isinf(f)) return out_of_range(lex);
    *out = f;
    return sni_lex_next(lex);
}
