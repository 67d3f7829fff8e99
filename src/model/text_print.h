/* text_print.h - the words of ONNX text, for the printer of graphs. */
#ifndef SNI_MODEL_TEXT_PRINT_H
#define SNI_MODEL_TEXT_PRINT_H

#include "graph/graph.h"
#include "model/wire_write.h"

#define SNI_PRINT_ELEMENTS 32 /* tensors with more are printed without their contents */

/* All of them append to the output, whose outcome sni_out_finish() tells. */

void sni_print(sni_out *out, const char *text);
void sni_print_number(sni_out *out, int64_t v);
/* Reads back to the same float, and as a float. */
void sni_print_float(sni_out *out, float v);
/* With quotes; escapes what is not printable UTF-8. */
void sni_print_quoted(sni_out *out, sni_str s);
/* Quoted if it would not read back as a name otherwise. */
void sni_print_name(sni_out *out, sni_str s);
void sni_print_operator(sni_out *out, sni_str domain, sni_str type);

/* False if parts of a type are not known that text cannot leave open. */
bool sni_type_printable(const sni_type *type);
/* "float[N,3]"; the type must be printable. */
void sni_print_type(sni_out *out, const sni_type *type, const sni_symbols *symbols);

bool sni_const_printable(const sni_const *c); /* with its contents */
/* "float[2]" and " {1, 2}", or " {...}" for a large one. */
void sni_print_const_type(sni_out *out, const sni_const *c);
void sni_print_contents(sni_out *out, sni_const *c);

#endif
