/* json_read.h - a small strict JSON reader: RFC 8259, depth-limited, no duplicate keys. */
#ifndef CLI_FORMATS_JSON_READ_H
#define CLI_FORMATS_JSON_READ_H

#include "cli/cli.h"

#define CLI_JSON_DEPTH 64

typedef enum cli_json_kind {
    CLI_JSON_NULL,
    CLI_JSON_FALSE,
    CLI_JSON_TRUE,
    CLI_JSON_NUMBER,
    CLI_JSON_STRING,
    CLI_JSON_ARRAY,
    CLI_JSON_OBJECT
} cli_json_kind;

/* One value. The members of an array or object follow it: the first at its own index + 1, each
 * next one at `next` of the one before. In an object every member is a string (the key) whose
 * value stands at the key's index + 1. */
typedef struct cli_json_node {
    cli_json_kind kind;
    uint32_t count;   /* members of an array or object */
    size_t next;      /* index just past this value and all it holds */
    const char *text; /* of a number or (unescaped) string; NUL-terminated for numbers */
    size_t length;
} cli_json_node;

typedef struct cli_json_doc {
    cli_json_node *nodes; /* nodes[0] is the whole */
    size_t count;
    size_t capacity;
    char *strings; /* storage of all texts */
} cli_json_doc;

/* Reads `size` bytes. On success the caller frees the document with cli_json_free. */
sn_status cli_json_parse(const char *bytes, size_t size, cli_json_doc *out, sn_error *err);
void cli_json_free(cli_json_doc *doc);

/* The value of a key of the object at `object`; NULL if there is none. */
const cli_json_node *cli_json_get(const cli_json_doc *doc, size_t object, const char *key);

/* A number's value; false when the node is none or the value is not finite. */
bool cli_json_real(const cli_json_node *node, double *out);
/* A number that is a whole one and fits. */
bool cli_json_int(const cli_json_node *node, int64_t *out);
bool cli_json_uint(const cli_json_node *node, uint64_t *out);

#endif
