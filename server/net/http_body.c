/* http_body.c - the body of a request: framing, unpacking, and the way into text and tensors.
 *
 * Bytes of a plain body with a length are read from the socket straight to where they belong.
 * Chunked and packed ones go through the connection's buffer. */
#include "server/net/http.h"
#include "server/api/routes.h"
#include "server/server.h"

#include <stdlib.h>

#ifdef SINTER_HAVE_ZLIB
#include <zlib.h>
#endif

#define TEXT_STEP ((size_t)256 << 10) /* by which the text grows at most at a time */
#define TEXT_KEPT 16384               /* memory that a connection keeps between requests */
#define MAX_LINE_LENGTH 1024          /* of a chunk's framing or a trailer */
#define MAX_DISCARDED (1 << 20)       /* a body that is read only to be forgotten */

enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER };

static const srv_limits_table *limits_of(const srv_http *http) {
    return &srv_http_server(http)->limits;
}

static int refuse(srv_http *http, srv_code code, const char *why) {
    http->close = true;
    srv_http_error(http, code, "%s", why);
    return -1;
}

/* ---- Where bytes go ----------------------------------------------------------------------- */

/* Goes on to the segment that is to be filled; false when there is none left. */
static bool next_segment(srv_body *body) {
    while (body->segment < body->segment_count &&
           body->filled == body->segments[body->segment].size) {
        body->segment++;
        body->filled = 0;
    }
    return body->segment < body->segment_count;
}

/* Where the next decoded bytes go, and how many may; NULL when none may come any more (answered).
 */
static char *sink_space(srv_http *http, size_t hint, size_t *size) {
    srv_body *body = &http->body;
    if (body->received >= limits_of(http)->body) {
        refuse(http, SRV_TOO_LARGE, "the body is too large");
        return NULL;
    }
    size_t allowed = limits_of(http)->body - body->received;
    if (body->received < body->text_size) {
        size_t step = hint && hint < TEXT_STEP ? hint : TEXT_STEP;
        if (step > allowed) step = allowed;
        if (step > body->text_size - body->received) step = body->text_size - body->received;
        size_t before = http->text.capacity;
        char *space = srv_text_reserve(&http->text, step);
        size_t grown = http->text.capacity - before;
        if (!space || !srv_budget_take(&srv_http_server(http)->budget, grown)) {
            refuse(http, SRV_UNAVAILABLE, "the requests under way leave no memory for this one");
            return NULL;
        }
        http->charged += grown;
        *size = http->text.capacity - http->text.length - 1;
        if (*size > allowed) *size = allowed;
        if (*size > body->text_size - body->received) *size = body->text_size - body->received;
        return space;
    }
    if (!next_segment(body)) {
        refuse(http, SRV_INVALID, "the body is longer than the tensors that it announces");
        return NULL;
    }
    const srv_segment *segment = &body->segments[body->segment];
    *size = segment->size - body->filled;
    return (char *)segment->at + body->filled;
}

/* `size` bytes were put where sink_space said. False: answered. */
static bool sink_commit(srv_http *http, size_t size) {
    srv_body *body = &http->body;
    bool text = body->received < body->text_size;
    body->received += size;
    if (!text) {
        body->filled += size;
        return true;
    }
    http->text.length += size;
    http->text.data[http->text.length] = 0;
    if (body->received < body->text_size) return true;
    return http->route->text_there(http);
}

static bool sink_copy(srv_http *http, const char *bytes, size_t size) {
    if (http->body.discard) return true;
    while (size) {
        size_t space;
        char *to = sink_space(http, size, &space);
        if (!to) return false;
        if (space > size) space = size;
        memcpy(to, bytes, space);
        if (!sink_commit(http, space)) return false;
        bytes += space;
        size -= space;
    }
    return true;
}

/* ---- Unpacking ---------------------------------------------------------------------------- */

#ifdef SINTER_HAVE_ZLIB

static bool inflate_begin(srv_http *http) {
    z_stream *stream = calloc(1, sizeof *stream);
    /* 47: the gzip or zlib header tells which it is */
    if (!stream || inflateInit2(stream, 47) != Z_OK) {
        free(stream);
        refuse(http, SRV_UNAVAILABLE, "out of memory");
        return false;
    }
    http->body.inflater = stream;
    return true;
}

static void inflate_free(srv_body *body) {
    if (!body->inflater) return;
    inflateEnd(body->inflater);
    free(body->inflater);
    body->inflater = NULL;
}

static bool unpack(srv_http *http, const char *bytes, size_t size) {
    z_stream *stream = http->body.inflater;
    stream->next_in = (Bytef *)(uintptr_t)bytes;
    stream->avail_in = (uInt)size;
    while (stream->avail_in) {
        size_t space;
        if (http->body.inflate_ended) {
            refuse(http, SRV_INVALID, "bytes after the end of the packed body");
            return false;
        }
        char unused;
        char *to = &unused;
        /* all that may come is there: only the end of the packed stream is left */
        bool full = http->body.received >= http->body.text_size && !next_segment(&http->body);
        space = 1;
        if (!full) to = sink_space(http, 0, &space);
        if (!to) return false;
        if (space > (1u << 30)) space = 1u << 30;
        stream->next_out = (Bytef *)to;
        stream->avail_out = (uInt)space;
        int code = inflate(stream, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
            refuse(http, SRV_INVALID, "the packed body is damaged");
            return false;
        }
        http->body.inflate_ended = code == Z_STREAM_END;
        size_t put = space - stream->avail_out;
        if (full && put) {
            refuse(http, SRV_INVALID, "the body is longer than the tensors that it announces");
            return false;
        }
        if (put && !sink_commit(http, put)) return false;
    }
    return true;
}

#else

static bool inflate_begin(srv_http *http) {
    refuse(http, SRV_BAD_ENCODING, "this build cannot unpack bodies: zlib was not there");
    return false;
}

static void inflate_free(srv_body *body) {
    (void)body;
}

static bool unpack(srv_http *http, const char *bytes, size_t size) {
    (void)http, (void)bytes, (void)size;
    return false;
}

#endif

static bool content(srv_http *http, const char *bytes, size_t size) {
    if (http->body.inflater && !http->body.discard) return unpack(http, bytes, size);
    return sink_copy(http, bytes, size);
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* More bytes for the buffer: 1 some, 0 none yet, -1 closed. The head stays where it is; what
 * follows it moves down to it when space is short. */
static int fill(srv_http *http) {
    size_t there = http->in_to - http->in_from;
    if (there == 0 || http->in_to == http->in_capacity) {
        if (there) memmove(http->in + http->head_end, http->in + http->in_from, there);
        http->in_from = http->head_end;
        http->in_to = http->head_end + there;
    }
    ssize_t got =
        srv_conn_read(&http->conn, http->in + http->in_to, http->in_capacity - http->in_to);
    if (got == SRV_AGAIN) return 0;
    if (got <= 0) {
        srv_conn_close(&http->conn);
        return -1;
    }
    http->in_to += (size_t)got;
    return 1;
}

static void progress(srv_http *http) {
    uint64_t now = srv_now_ns();
    const srv_limits_table *limits = limits_of(http);
    uint64_t allowed = limits->body_ns;
    if (limits->body_rate) {
        allowed += (uint64_t)http->body.received / limits->body_rate * 1000000000u;
    }
    uint64_t last = http->body.started_ns + allowed, next = now + limits->body_ns;
    http->conn.deadline = next < last ? next : last;
}

/* Content of which `body->left` bytes are still to come; straight into place where possible. */
static int read_content(srv_http *http) {
    srv_body *body = &http->body;
    size_t there = http->in_to - http->in_from;
    if (there) {
        size_t take = there < body->left ? there : (size_t)body->left;
        const char *bytes = http->in + http->in_from;
        http->in_from += take;
        body->left -= take;
        return content(http, bytes, take) ? 1 : -1;
    }
    bool direct = !body->inflater && !body->discard;
    size_t space = 0;
    char scratch[16384];
    char *to = scratch;
    if (direct) {
        to = sink_space(http, body->left < SIZE_MAX ? (size_t)body->left : SIZE_MAX, &space);
        if (!to) return -1;
    } else {
        space = sizeof scratch;
    }
    if (space > body->left) space = (size_t)body->left;
    ssize_t got = srv_conn_read(&http->conn, to, space);
    if (got == SRV_AGAIN) return 0;
    if (got <= 0) {
        srv_conn_close(&http->conn);
        return -1;
    }
    body->left -= (uint64_t)got;
    if (direct) return sink_commit(http, (size_t)got) ? 1 : -1;
    return content(http, to, (size_t)got) ? 1 : -1;
}

/* ---- Chunks ------------------------------------------------------------------------------- */

/* Takes a line of framing out of the buffer, its CRLF included: 1, 0 more must come, -1. */
static int take_line(srv_http *http, sni_str *line) {
    for (;;) {
        const char *start = http->in + http->in_from;
        size_t there = http->in_to - http->in_from;
        const char *end = there ? memchr(start, '\n', there) : NULL;
        if ((end ? (size_t)(end - start) : there) > MAX_LINE_LENGTH) {
            return refuse(http, SRV_INVALID, "a line of the chunked body is too long");
        }
        if (end) {
            size_t length = (size_t)(end - start);
            if (length == 0 || end[-1] != '\r') {
                return refuse(http, SRV_INVALID, "a line of the chunked body lacks its CR");
            }
            *line = (sni_str){start, length - 1};
            http->in_from += length + 1;
            http->body.overhead += length + 1;
            if (http->body.overhead > limits_of(http)->body) {
                return refuse(http, SRV_TOO_LARGE, "the chunks are too many");
            }
            return 1;
        }
        int more = fill(http);
        if (more != 1) return more;
    }
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return -1;
}

static bool chunk_size(sni_str line, uint64_t *out) {
    uint64_t size = 0;
    size_t i = 0;
    for (; i < line.n && hex_digit(line.p[i]) >= 0; i++) {
        if (i >= 15) return false;
        size = size * 16 + (uint64_t)hex_digit(line.p[i]);
    }
    if (i == 0) return false;
    for (size_t j = i; j < line.n; j++) {
        if ((unsigned char)line.p[j] < 0x20 && line.p[j] != '\t') return false;
    }
    *out = size;
    return i == line.n || line.p[i] == ';';
}

/* One step of a chunked body: 1 go on, 0 more must come, -1. */
static int read_chunked(srv_http *http) {
    srv_body *body = &http->body;
    sni_str line;
    int result;
    if (body->chunk_state == CHUNK_DATA) {
        if (body->left) return read_content(http);
        body->chunk_state = CHUNK_END;
    }
    result = take_line(http, &line);
    if (result != 1) return result;
    switch (body->chunk_state) {
    case CHUNK_SIZE:
        if (!chunk_size(line, &body->left)) return refuse(http, SRV_INVALID, "a bad chunk size");
        body->chunk_state = body->left ? CHUNK_DATA : CHUNK_TRAILER;
        return 1;
    case CHUNK_END:
        if (line.n) return refuse(http, SRV_INVALID, "a chunk is longer than its size");
        body->chunk_state = CHUNK_SIZE;
        return 1;
    default:
        if (body->overhead > limits_of(http)->header + limits_of(http)->body / 2) {
            return refuse(http, SRV_LARGE_HEADERS, "too many trailers");
        }
        body->ended = line.n == 0;
        return 1;
    }
}

/* ---- The whole ---------------------------------------------------------------------------- */

static int finish(srv_http *http) {
    srv_body *body = &http->body;
    http->conn.deadline = 0;
    if (body->discard) return 1;
    if (body->inflater && !body->inflate_ended) {
        return refuse(http, SRV_INVALID, "the packed body is not complete");
    }
    if (body->text_size != SIZE_MAX && body->received < body->text_size) {
        return refuse(http, SRV_INVALID, "the body is shorter than its inference header");
    }
    if (next_segment(body)) {
        return refuse(http, SRV_INVALID, "the body is shorter than the tensors that it announces");
    }
    return 1;
}

int srv_body_begin(srv_http *http) {
    srv_body *body = &http->body;
    const srv_head *head = &http->head;
    bool discard = body->discard;
    *body = (srv_body){.chunked = head->chunked, .left = head->has_length ? head->length : 0};
    body->discard = discard;
    body->text_size = SIZE_MAX;
    body->started_ns = srv_now_ns();
    if (!head->chunked && body->left == 0) {
        body->ended = true;
        if (head->has_inference_length && head->inference_length && !discard) {
            return refuse(http, SRV_INVALID, "the body is shorter than its inference header");
        }
        return 1;
    }
    if (discard) {
        if (head->chunked || head->length > MAX_DISCARDED) {
            http->close = true;
            body->ended = true;
            return 1;
        }
        return srv_body_read(http);
    }
    size_t max = http->route->body == SRV_BODY_INFER ? limits_of(http)->body : (size_t)1 << 20;
    if (head->length > max) return refuse(http, SRV_TOO_LARGE, "the body is too large");
    if (head->has_inference_length && http->route->body == SRV_BODY_INFER) {
        uint64_t length = head->inference_length;
        bool more = head->has_length && head->encoding == SRV_IDENTITY && length > head->length;
        if (more || length > max || length == 0) {
            return refuse(http, SRV_INVALID,
                          "Inference-Header-Content-Length does not fit the body");
        }
        body->text_size = (size_t)length;
    }
    if (head->encoding != SRV_IDENTITY && !inflate_begin(http)) return -1;
    if (head->expect_continue && http->in_from == http->in_to) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        struct iovec piece = {(void *)(uintptr_t)go_on, sizeof go_on - 1};
        srv_conn_write(&http->conn, &piece, 1);
    }
    return srv_body_read(http);
}

int srv_body_read(srv_http *http) {
    srv_body *body = &http->body;
    progress(http);
    while (!body->ended) {
        int result;
        if (body->chunked) {
            result = read_chunked(http);
        } else if (body->left == 0) {
            body->ended = true;
            continue;
        } else {
            result = read_content(http);
        }
        if (result != 1) return result;
    }
    return finish(http);
}

void srv_body_reset(srv_http *http) {
    inflate_free(&http->body);
    http->body = (srv_body){0};
    srv_budget_give(&srv_http_server(http)->budget, http->charged);
    http->charged = 0;
    if (http->text.capacity > TEXT_KEPT) {
        srv_text_free(&http->text);
    } else {
        srv_text_clear(&http->text);
    }
}
