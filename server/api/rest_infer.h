/* rest_infer.h - the text of an inference request over HTTP. */
#ifndef SRV_API_REST_INFER_H
#define SRV_API_REST_INFER_H

#include "server/engine/request.h"

/* What reading the text needs, and what it finds beside the request. */
typedef struct srv_infer_text {
    srv_request *request; /* its model is set */
    bool binary;          /* tensors follow the text */
    bool binary_default;  /* found: outputs are binary unless they say otherwise */
} srv_infer_text;

/* Fills in the request: id, parameters, wanted outputs, and inputs with their elements. Inputs
 * whose bytes follow the text have memory for them and are `awaited`. The outcome is in the
 * request, too. Names point into the text, which must live as long. */
srv_code srv_rest_read_request(srv_infer_text *infer, const srv_text *text);

#endif
