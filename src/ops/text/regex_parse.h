/* regex_parse.h - the parser of patterns, which regex.c (program, groups, repetition) and
 * regex_class.c (characters and classes) share. Functions that return sn_status fail with a message
 * that names the position in the pattern. */
#ifndef SNI_OPS_TEXT_REGEX_PARSE_H
#define SNI_OPS_TEXT_REGEX_PARSE_H

#include "ops/text/regex_impl.h"

#include <string.h>

typedef struct sni_regex_parser {
    sni_str text;
    size_t at;
    sni_regex *out;
    int depth, work;
    bool fold, multi_line, dot_all; /* flags in force */
    bool quoted;                    /* between \Q and \E */
    sn_error *err;
} sni_regex_parser;

/* Fails: what is wrong at the current position. */
static inline sn_status sni_regex_bad(sni_regex_parser *p, const char *what) {
    return sni_fail(p->err, SN_INVALID_MODEL, "pattern, byte %zu: %s", p->at, what);
}

/* True unless the pattern ends here. */
static inline bool sni_regex_more(const sni_regex_parser *p) {
    return p->at < p->text.n;
}

/* The next character; 0 at the end. */
static inline char sni_regex_peek(const sni_regex_parser *p) {
    return sni_regex_more(p) ? p->text.p[p->at] : '\0';
}

/* Skips `literal` if it is next. */
static inline bool sni_regex_take(sni_regex_parser *p, const char *literal) {
    size_t n = strlen(literal);
    if (p->text.n - p->at < n || memcmp(p->text.p + p->at, literal, n) != 0) return false;
    p->at += n;
    return true;
}

/* ---- regex.c ---- */

/* Adds code points [low, high] to the ranges of the program. */
sn_status sni_regex_add_range(sni_regex_parser *p, int32_t low, int32_t high);

/* ---- regex_class.c ---- */

/* Reads one code point; the pattern must not end here. */
sn_status sni_regex_take_code_point(sni_regex_parser *p, int32_t *c);
/* Adds the ranges of \d, \s, \w or a complement; *found is false for other letters. */
sn_status sni_regex_add_perl_class(sni_regex_parser *p, char letter, bool *found);
/* Reads an escape after the backslash that stands for one code point. */
sn_status sni_regex_take_escape(sni_regex_parser *p, int32_t *c);
/* Adds the ranges of a class after its "["; *negated tells whether it begins with "^". */
sn_status sni_regex_take_class(sni_regex_parser *p, bool *negated);

#endif
