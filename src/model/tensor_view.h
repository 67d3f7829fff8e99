/* tensor_view.h - a TensorProto or SparseTensorProto, checked but not yet decoded. */
#ifndef SNI_MODEL_TENSOR_VIEW_H
#define SNI_MODEL_TENSOR_VIEW_H

#include "base/tensor.h"
#include "model/wire.h"

/* Where external data lies, as the file says it. */
typedef struct sni_external {
    sni_str location;
    uint64_t offset, length;
    bool has_length;
} sni_external;

typedef struct sni_tensor_view {
    sni_str name;
    sni_tensor shape;            /* type and shape; no data */
    const unsigned char *raw;    /* contents in packed storage; NULL: in typed fields or external */
    size_t raw_size;             /* exactly what the shape needs */
    const unsigned char *data;   /* typed contents: from the first field that holds some ... */
    size_t data_size;            /* ... to the end of the last */
    uint32_t data_field;         /* their field number; 0: none */
    size_t text_size;            /* strings: bytes of all elements with a NUL after each */
    const unsigned char *origin; /* of the file, for messages */
    bool is_external;
    sni_external external;
} sni_tensor_view;

/* Reads the message that `w` stands at the start of. The number of elements is checked against the
 * shape; no byte of raw data is touched. With `is_external`, `raw` is for the caller to set. */
sn_status sni_tensor_view_read(sni_wire *w, sni_tensor_view *out);

/* Bytes that the contents take in packed storage; 0 for strings. */
size_t sni_tensor_view_bytes(const sni_tensor_view *v);

/* True if `raw` can be used as run-time memory as it stands. */
bool sni_tensor_view_in_place(const sni_tensor_view *v);

/* Decodes into `data`, which is large enough for the run-time form; `text` (strings only) is for
 * text_size bytes. */
sn_status sni_tensor_view_fill(const sni_tensor_view *v, void *data, char *text, sn_error *err);

typedef struct sni_sparse_view {
    sni_tensor_view values;  /* [n] */
    sni_tensor_view indices; /* int64 [n], positions in row-major order, or [n, rank] */
    sni_tensor shape;        /* of the dense tensor */
} sni_sparse_view;

sn_status sni_sparse_view_read(sni_wire *w, sni_sparse_view *out);

/* Decodes into dense run-time form; text as above, of values.text_size bytes. */
sn_status sni_sparse_view_fill(const sni_sparse_view *v, void *data, char *text, sn_error *err);

#endif
