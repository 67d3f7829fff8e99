/* text.h - ONNX text syntax (docs/TEXT.md): reading it means writing the same thing as protobuf.
 *
 * The reader turns text into the bytes of an ONNX message and knows nothing of graphs: scopes,
 * captures, functions and every check of meaning are the importer's, and exist once. */
#ifndef SNI_MODEL_TEXT_H
#define SNI_MODEL_TEXT_H

#include "base/status.h"
#include "base/str.h"

/* Bytes of a message; `p` is owned by the caller, who frees it with free(). */
typedef struct sni_text_bytes {
    unsigned char *p;
    size_t n;
} sni_text_bytes;

/* A whole model as a ModelProto. SN_MALFORMED says line and column of what is wrong. */
sn_status sni_text_model(sni_str text, sni_text_bytes *out, sn_error *err);

/* One function, `<opset_import: ["" : 18]> Name <attr, other : float = 0.5> (X) => (Y) { ... }`, as
 * a FunctionProto. The part in <> before the name may be left out, as may the attributes. */
sn_status sni_text_function(sni_str text, sni_text_bytes *out, sn_error *err);

/* One value, as sni_datum_decode takes it with the kind that is returned: a tensor `float[2] {1,
 * 2}`, a sequence `[float {1}, float {2}]`, or `none`, an optional that holds nothing. */
sn_status sni_text_value(sni_str text, sn_kind *kind, sni_text_bytes *out, sn_error *err);

#endif
