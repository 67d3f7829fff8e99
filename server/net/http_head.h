/* http_head.h - the head of an HTTP/1.1 request, strictly: what two readers could understand
 * differently is refused. */
#ifndef SRV_NET_HTTP_HEAD_H
#define SRV_NET_HTTP_HEAD_H

#include "server/api/codes.h"

#define SRV_HEADERS 100 /* header lines of a request */

typedef enum srv_encoding { SRV_IDENTITY, SRV_GZIP, SRV_DEFLATE, SRV_UNKNOWN } srv_encoding;

/* Strings lie in the text that was read. Those not given are empty. */
typedef struct srv_head {
    sni_str method;
    sni_str path;  /* begins with '/', still escaped */
    sni_str query; /* without '?' */
    int minor;     /* HTTP/1.x */
    bool has_length;
    uint64_t length; /* Content-Length */
    bool chunked;
    bool keep_alive;
    bool expect_continue;
    bool bad_expectation;
    srv_encoding encoding; /* of the body */
    srv_encoding accept;   /* what the answer may be packed with */
    bool has_inference_length;
    uint64_t inference_length; /* Inference-Header-Content-Length */
    sni_str content_type;
    sni_str authorization;
    sni_str api_key;
    sni_str traceparent;
    sni_str host;
    sni_str origin;     /* of the page that a browser sends the request for */
    sni_str fetch_site; /* Sec-Fetch-Site */
} srv_head;

/* The bytes of the head at the start of `text`, its empty line included; 0: more must come. An
 * empty line before it is passed over by adding to `*skip`. */
size_t srv_head_end(const char *text, size_t size, size_t *skip);

/* Reads a whole head. SRV_OK, or the code and why. */
srv_code srv_head_parse(const char *text, size_t size, srv_head *out, const char **why);

#endif
