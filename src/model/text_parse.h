/* text_parse.h - what the parts of the text reader share. */
#ifndef SNI_MODEL_TEXT_PARSE_H
#define SNI_MODEL_TEXT_PARSE_H

#include "base/dtype.h"
#include "model/text_lex.h"
#include "model/wire_write.h"

#define SNI_TEXT_DEPTH 64 /* of nested graphs and types */

/* A message under construction in memory. `out` puts fields at its end. */
typedef struct sni_msg {
    sni_out out;
    unsigned char *p;
    size_t n, capacity;
    bool no_memory;
} sni_msg;

/* The place where the next field will start. */
size_t sni_msg_mark(sni_msg *m);
/* Drops everything from `mark` on. */
void sni_msg_cut(sni_msg *m, size_t mark);
/* Makes everything from `mark` on the contents of one length-delimited field. */
void sni_msg_wrap(sni_msg *m, size_t mark, uint32_t field);

typedef struct sni_parser {
    sni_lexer lex;
    sni_msg msg;
    int depth;
} sni_parser;

/* Count the levels of nesting. A failure ends the reading and needs no leave. */
sn_status sni_parse_enter(sni_parser *p);
static inline void sni_parse_leave(sni_parser *p) {
    p->depth--;
}

/* True if the current token starts a type. */
bool sni_parse_at_type(const sni_parser *p);

/* Puts the fields of a TypeProto. */
sn_status sni_parse_type(sni_parser *p);

/* Puts the fields of a TensorProto: type, optional name, optional '=', contents. */
sn_status sni_parse_tensor(sni_parser *p);

/* Puts the fields of a GraphProto. */
sn_status sni_parse_graph(sni_parser *p);

/* `<name : kind = value, ...>`, which may be missing: one AttributeProto each under `field`. */
sn_status sni_parse_attrs(sni_parser *p, uint32_t field, size_t *count);
/* The rest of an attribute after its name, as the fields of an AttributeProto. */
sn_status sni_parse_attr(sni_parser *p, sni_str name);

#endif
