/* text_lex.h - the tokens of ONNX text. */
#ifndef SNI_MODEL_TEXT_LEX_H
#define SNI_MODEL_TEXT_LEX_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

typedef enum sni_token_kind {
    SNI_TOKEN_END,
    SNI_TOKEN_ID,
    SNI_TOKEN_INT,
    SNI_TOKEN_FLOAT, /* has a point or an exponent, or is -inf or -nan */
    SNI_TOKEN_STRING,
    SNI_TOKEN_ARROW,    /* => */
    SNI_TOKEN_ELLIPSIS, /* ... */
    SNI_TOKEN_MARK      /* one of ( ) [ ] { } < > , = : . @ ? */
} sni_token_kind;

typedef struct sni_token {
    sni_token_kind kind;
    char mark;           /* MARK: which */
    sni_str text;        /* as written; STRING: its contents, escapes resolved */
    size_t line, column; /* of its first byte, from 1 */
} sni_token;

/* A plain struct: a copy remembers a place to return to. */
typedef struct sni_lexer {
    const char *p, *end;
    const char *line_start;
    size_t line;
    sni_token token;  /* the one to look at */
    sni_arena *arena; /* for strings with escapes */
    sn_error *err;
} sni_lexer;

/* Starts at the first token of `text`, which must outlive the lexer. */
sn_status sni_lex_start(sni_lexer *lex, sni_str text, sni_arena *arena, sn_error *err);

/* Moves on to the next token. */
sn_status sni_lex_next(sni_lexer *lex);

/* SN_MALFORMED at the current token: "line 3, column 7: expected WHAT, found 'x'". */
sn_status sni_lex_expected(const sni_lexer *lex, const char *what);

/* `status` with a message of one's own, after the current token's place. */
sn_status sni_lex_fail(const sni_lexer *lex, sn_status status, const char *format, ...)
    SNI_PRINTF(3, 4);

static inline bool sni_lex_is(const sni_lexer *lex, char mark) {
    return lex->token.kind == SNI_TOKEN_MARK && lex->token.mark == mark;
}

/* If the current token is `mark`, moves past it and sets *found. */
sn_status sni_lex_accept(sni_lexer *lex, char mark, bool *found);

/* Moves past `mark`, or fails. */
sn_status sni_lex_expect(sni_lexer *lex, char mark);

/* Moves past a name, quoted or not, or a plain identifier, and gives its text. */
sn_status sni_lex_name(sni_lexer *lex, sni_str *out);
sn_status sni_lex_id(sni_lexer *lex, sni_str *out);

/* Moves past a string. */
sn_status sni_lex_string(sni_lexer *lex, sni_str *out);

/* Moves past an integer in [min, max], or in [0, max]. */
sn_status sni_lex_int(sni_lexer *lex, int64_t min, int64_t max, int64_t *out);
sn_status sni_lex_uint(sni_lexer *lex, uint64_t max, uint64_t *out);

/* True if the current token is a number of any kind, inf and nan included. */
bool sni_lex_at_number(const sni_lexer *lex);

/* True if it is not written as an integer. */
bool sni_lex_at_float(const sni_lexer *lex);

/* Move past a number of either kind. Finite text whose value does not fit is refused. */
sn_status sni_lex_f32(sni_lexer *lex, float *out);
sn_status sni_lex_f64(sni_lexer *lex, double *out);

/* True if `s` reads back as one plain identifier; if it is the name of a type. */
bool sni_text_is_id(sni_str s);
bool sni_text_is_type(sni_str s);

#endif
