/* h2_message.c - gRPC's messages inside a stream: five bytes of prefix, then the message. */
#include "server/net/h2_message.h"
#include "server/server.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SINTER_HAVE_ZLIB
#include <zlib.h>
#endif

#define PREFIX 5
#define MAX_TIMEOUT_NS ((uint64_t)1 << 62) /* ns */
#define REPLY_OVERHEAD 4096                /* what a message to be sent costs besides its bytes */

void srv_message_free(srv_message *message) {
    if (message->server) {
        srv_buffer_give(&message->server->buffers, message->bytes, message->capacity);
        srv_budget_give(&message->server->budget, message->charged);
    }
    *message = (srv_message){0};
}

/* ---- Messages in -------------------------------------------------------------------------- */

/* Gives an empty message a buffer; false, and nothing taken, when memory is not left. */
static bool allocate(srv_server *server, srv_message *message, size_t size) {
    if (!srv_budget_take(&server->budget, size)) return false;
    size_t capacity = size ? size : 1;
    void *bytes = srv_buffer_take(&server->buffers, capacity);
    if (!bytes) {
        srv_budget_give(&server->budget, size);
        return false;
    }
    *message = (srv_message){server, bytes, 0, capacity, size};
    return true;
}

static bool begin_message(srv_call *call) {
    const unsigned char *p = call->prefix;
    size_t size = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | (size_t)p[4];
    srv_server *server = srv_call_server(call);
    size_t max = server->limits.body;
    char text[120];
    if (p[0] > 1) {
        srv_call_end(call, SRV_INVALID, "a message's prefix is wrong");
        return false;
    }
    if (size > max) {
        snprintf(text, sizeof text, "a message of %zu bytes; %zu may be", size, max);
        srv_call_end(call, SRV_TOO_LARGE, text);
        return false;
    }
    if (!allocate(server, &call->message, size)) {
        srv_call_end(call, SRV_UNAVAILABLE, "the requests under way leave no memory");
        return false;
    }
    call->message.size = size;
    call->packed = p[0] == 1;
    call->filled = 0;
    call->receiving = true;
    return true;
}

#ifdef SINTER_HAVE_ZLIB
/* Unpacks into memory that grows with what comes out, up to the limit of a body. */
static srv_code unpack(srv_server *server, const char *encoding, srv_message *message) {
    bool gzip = strcmp(encoding, "gzip") == 0;
    if (!gzip && strcmp(encoding, "deflate") != 0) return SRV_BAD_ENCODING;
    z_stream stream = {.next_in = message->bytes, .avail_in = (uInt)message->size};
    if (inflateInit2(&stream, gzip ? 31 : 15) != Z_OK) return SRV_UNAVAILABLE;
    srv_message out = {0};
    srv_code code = SRV_OK;
    size_t max = server->limits.body;
    for (int state = Z_OK; state != Z_STREAM_END && code == SRV_OK;) {
        if (out.size == out.capacity) {
            size_t capacity = out.capacity ? out.capacity * 2 : message->size * 3 + 256;
            srv_message grown = {0};
            if (out.capacity > max) {
                code = SRV_TOO_LARGE;
            } else if (!allocate(server, &grown, capacity > max ? max + 1 : capacity)) {
                code = SRV_UNAVAILABLE;
            }
            if (code != SRV_OK) break;
            if (out.size) memcpy(grown.bytes, out.bytes, out.size);
            grown.size = out.size;
            srv_message_free(&out);
            out = grown;
        }
        size_t left = out.capacity - out.size;
        uInt space = left < UINT_MAX ? (uInt)left : UINT_MAX;
        stream.next_out = out.bytes + out.size;
        stream.avail_out = space;
        state = inflate(&stream, Z_NO_FLUSH);
        out.size += space - stream.avail_out;
        bool stuck = state == Z_BUF_ERROR && out.size < out.capacity;
        if ((state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) || stuck) {
            code = SRV_INVALID;
        }
    }
    inflateEnd(&stream);
    if (code == SRV_OK && out.size > max) code = SRV_TOO_LARGE;
    srv_message_free(code == SRV_OK ? message : &out);
    if (code == SRV_OK) *message = out;
    return code;
}
#else
static srv_code unpack(srv_server *server, const char *encoding, srv_message *message) {
    (void)server, (void)encoding, (void)message;
    return SRV_BAD_ENCODING;
}
#endif

/* The message is whole: to the method with it. */
static void end_message(srv_call *call) {
    srv_code code =
        call->packed ? unpack(srv_call_server(call), call->encoding, &call->message) : SRV_OK;
    call->receiving = false;
    call->prefix_size = 0;
    call->messages++;
    if (code != SRV_OK) {
        srv_call_end(call, code,
                     code == SRV_BAD_ENCODING ? "the message's encoding is unknown"
                     : code == SRV_TOO_LARGE  ? "the message is too large"
                                              : "the message cannot be unpacked");
        return;
    }
    if (call->messages > 1 && !call->method->streams) {
        srv_call_end(call, SRV_INVALID, "the call takes one message");
        return;
    }
    srv_message message = call->message;
    call->message = (srv_message){0};
    call->method->message(call, &message);
}

void srv_call_receive(srv_call *call, const unsigned char *data, size_t size) {
    srv_call_retain(call);
    while (size && !call->ended && !call->closed && call->method) {
        if (!call->receiving) {
            if (call->prefix_size == 0) call->message_ns = srv_now_ns();
            size_t take = PREFIX - call->prefix_size < size ? PREFIX - call->prefix_size : size;
            memcpy(call->prefix + call->prefix_size, data, take);
            call->prefix_size += take;
            data += take, size -= take;
            if (call->prefix_size < PREFIX || !begin_message(call)) continue;
        }
        size_t left = call->message.size - call->filled, take = left < size ? left : size;
        if (take) memcpy(call->message.bytes + call->filled, data, take);
        call->filled += take;
        data += take, size -= take;
        if (call->filled == call->message.size) end_message(call);
    }
    srv_call_release(call);
}

/* ---- Messages out ------------------------------------------------------------------------- */

srv_reply *srv_reply_new(void) {
    srv_reply *reply = calloc(1, sizeof *reply);
    if (!reply) return NULL;
    srv_text_add(&reply->text, "\0\0\0\0", PREFIX); /* the NUL behind counts, too */
    return reply;
}

void srv_reply_free(srv_reply *reply) {
    if (!reply) return;
    if (reply->release) reply->release(reply);
    if (reply->budget) srv_budget_give(reply->budget, reply->charged);
    srv_text_free(&reply->text);
    free(reply->pieces);
    free(reply);
}

/* Pieces of the text have no address until the text has stopped growing. */
static bool add_piece(srv_reply *reply, const void *bytes, size_t size) {
    if (reply->count == reply->capacity) {
        size_t more = reply->capacity ? reply->capacity * 2 : 8;
        struct iovec *grown = realloc(reply->pieces, more * sizeof *grown);
        if (!grown) {
            reply->text.failed = true;
            return false;
        }
        reply->pieces = grown;
        reply->capacity = more;
    }
    reply->pieces[reply->count++] = (struct iovec){(void *)(uintptr_t)bytes, size};
    return true;
}

void srv_reply_add(srv_reply *reply, const void *bytes, size_t size) {
    size_t text = reply->text.length - reply->marked;
    if (text && !add_piece(reply, NULL, text)) return;
    reply->marked = reply->text.length;
    if (size) add_piece(reply, bytes, size);
}

bool srv_reply_seal(srv_reply *reply) {
    srv_reply_add(reply, NULL, 0);
    if (reply->text.failed) return false;
    char *text = reply->text.data;
    uint64_t total = 0;
    for (size_t i = 0; i < reply->count; i++) {
        struct iovec *piece = &reply->pieces[i];
        total += piece->iov_len;
        if (piece->iov_base) continue;
        piece->iov_base = text;
        text += piece->iov_len;
    }
    total -= PREFIX;
    if (total > UINT32_MAX) return false;
    for (int i = 0; i < 4; i++) reply->text.data[1 + i] = (char)(total >> (24 - 8 * i));
    return true;
}

bool srv_reply_charge(srv_reply *reply, srv_budget *budget) {
    size_t total = REPLY_OVERHEAD;
    for (size_t i = 0; i < reply->count; i++) total += reply->pieces[i].iov_len;
    if (!srv_budget_take(budget, total)) return false;
    reply->budget = budget;
    reply->charged = total;
    return true;
}

void srv_reply_push(srv_call *call, srv_reply *reply) {
    reply->next = NULL;
    if (call->last_reply) {
        call->last_reply->next = reply;
    } else {
        call->first_reply = reply;
    }
    call->last_reply = reply;
}

void srv_reply_pop(srv_call *call) {
    srv_reply *reply = call->first_reply;
    call->first_reply = reply->next;
    if (!call->first_reply) call->last_reply = NULL;
    srv_reply_free(reply);
}

size_t srv_reply_read(srv_call *call, unsigned char *buffer, size_t length) {
    size_t put = 0;
    while (put < length && call->first_reply) {
        srv_reply *reply = call->first_reply;
        if (reply->piece == reply->count) {
            srv_reply_pop(call);
            continue;
        }
        const struct iovec *piece = &reply->pieces[reply->piece];
        size_t left = piece->iov_len - reply->offset;
        size_t take = left < length - put ? left : length - put;
        memcpy(buffer + put, (const char *)piece->iov_base + reply->offset, take);
        put += take;
        reply->offset += take;
        if (reply->offset == piece->iov_len) {
            reply->piece++;
            reply->offset = 0;
        }
    }
    while (call->first_reply && call->first_reply->piece == call->first_reply->count) {
        srv_reply_pop(call);
    }
    return put;
}

/* ---- Headers ------------------------------------------------------------------------------ */

bool srv_timeout_parse(const char *text, uint64_t *ns) {
    static const struct {
        char unit;
        uint64_t ns;
    } units[] = {{'H', 3600000000000u}, {'M', 60000000000u}, {'S', 1000000000u},
                 {'m', 1000000u},       {'u', 1000u},        {'n', 1u}};
    size_t length = strlen(text);
    uint64_t number;
    if (length < 2 || length > 9 || !srv_parse_uint((sni_str){text, length - 1}, 99999999, &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text[length - 1] != units[i].unit) continue;
        *ns = number < MAX_TIMEOUT_NS / units[i].ns ? number * units[i].ns : MAX_TIMEOUT_NS;
        if (!*ns) *ns = 1;
        return true;
    }
    return false;
}

void srv_status_text(const char *message, char *out, size_t size) {
    size_t at = 0;
    for (const unsigned char *c = (const unsigned char *)message; *c && at + 4 < size; c++) {
        if (*c >= ' ' && *c <= '~' && *c != '%') {
            out[at++] = (char)*c;
        } else {
            at += (size_t)snprintf(out + at, 4, "%%%02X", *c);
        }
    }
    out[at] = 0;
}
