/* json_write.h - writes JSON: commas, indentation and escapes are this file's business. */
#ifndef CLI_FORMATS_JSON_WRITE_H
#define CLI_FORMATS_JSON_WRITE_H

#include "cli/cli.h"

#define CLI_JSON_WRITE_DEPTH 16

typedef struct cli_json {
    cli_text *out; /* the caller's */
    int depth;
    bool filled[CLI_JSON_WRITE_DEPTH]; /* whether the level has a member yet */
    bool after_key;
} cli_json;

void cli_json_begin(cli_json *json, char bracket); /* '{' or '[' */
void cli_json_end(cli_json *json, char bracket);   /* '}' or ']'; the last one ends the line */
void cli_json_key(cli_json *json, const char *key);
/* Bytes that are no UTF-8 become U+FFFD, one each. */
void cli_json_string(cli_json *json, const char *text, size_t length);
void cli_json_cstring(cli_json *json, const char *text);
void cli_json_number(cli_json *json, double number); /* null when not finite */
void cli_json_integer(cli_json *json, int64_t number);
void cli_json_unsigned(cli_json *json, uint64_t number);
void cli_json_bool(cli_json *json, bool truth);

#endif
