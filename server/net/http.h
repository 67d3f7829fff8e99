/* http.h - HTTP/1.1 over a connection: one request at a time, strictly read, answered in order.
 *
 * Head, body, answer are three states. What to do with a request is the business of the route that
 * its path names (routes.h); this module knows nothing of models. */
#ifndef SRV_NET_HTTP_H
#define SRV_NET_HTTP_H

#include "server/api/codes.h"
#include "server/net/http_head.h"
#include "server/net/net.h"

#define SRV_PIECES 1100 /* of an answer: its head, its text and one for each output */

typedef struct srv_http srv_http;
typedef struct srv_route srv_route;

/* Where the bytes of a body go that are not text. */
typedef struct srv_segment {
    void *at;
    size_t size;
} srv_segment;

typedef enum srv_http_state {
    SRV_HTTP_HEAD,   /* waiting for a request or inside its head */
    SRV_HTTP_BODY,   /* inside its body */
    SRV_HTTP_WAIT,   /* the route works on it */
    SRV_HTTP_WRITE,  /* the answer is being sent */
    SRV_HTTP_LINGER, /* sent, closed on this side, waiting for the peer's end */
} srv_http_state;

/* How the body comes and how far it is (http_body.c). */
typedef struct srv_body {
    uint64_t left; /* content bytes still to come: of the body, or of this chunk */
    bool chunked;
    int chunk_state;
    size_t overhead; /* bytes of chunk framing so far */
    bool ended;      /* the last byte was read */
    bool discard;    /* an error is known already: read it and forget it */
    void *inflater;  /* zlib's, or NULL */
    bool inflate_ended;
    size_t received;             /* bytes after decoding */
    size_t text_size;            /* decoded bytes that are text; SIZE_MAX: all */
    const srv_segment *segments; /* what follows the text; the route's */
    size_t segment_count, segment, filled;
    uint64_t started_ns;
} srv_body;

struct srv_http {
    srv_conn conn;
    srv_http_state state;
    char *in; /* the head and what has come after it */
    size_t in_capacity, in_from, in_to;
    size_t head_end;     /* in `in` */
    uint64_t started_ns; /* when the first byte of the head was there */
    srv_head head;       /* strings lie in `in` */
    const srv_route *route;
    sni_str model;   /* path variables, decoded; "" when the route has none */
    int64_t version; /* 0: none */
    srv_body body;
    srv_text text;                  /* the text of the body */
    size_t charged;                 /* bytes of `text` taken of the server's budget */
    void *work;                     /* the route's, while it waits; see `cancel` */
    void (*cancel)(srv_http *http); /* the peer is gone while the route works; may be NULL */

    /* The answer. */
    srv_code code;
    bool close; /* the connection ends with it */
    bool replied;
    srv_text out_head, out;
    struct iovec *tail; /* what follows `out`; borrowed from `work` until `finished` */
    size_t tail_count;
    void (*finished)(srv_http *http); /* the answer is out, or never will be; gives `work` back */
    size_t written;
    unsigned turns; /* requests answered without going back to the loop */
    char name_buffer[160];
};

extern const srv_protocol srv_http_protocol;

static inline srv_server *srv_http_server(const srv_http *http) {
    return http->conn.listener->server;
}

/* Answers. The body is `http->out`, then `http->tail`. `type` is its media type; `headers` are more
 * header lines with CRLF, or NULL. */
void srv_http_reply(srv_http *http, srv_code code, const char *type, const char *headers);
/* Answers {"error": text}. */
void srv_http_error(srv_http *http, srv_code code, const char *fmt, ...) SNI_PRINTF(3, 4);
/* The route works on and will answer later, in this loop's thread. */
void srv_http_wait(srv_http *http, void *work, void (*cancel)(srv_http *http));

/* http_body.c: 1: the body is there; 0: more must come; -1: answered with an error or closed. */
int srv_body_begin(srv_http *http);
int srv_body_read(srv_http *http);
void srv_body_reset(srv_http *http);

#endif
