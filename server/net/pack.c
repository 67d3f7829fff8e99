/* pack.c - packs answers for clients that ask for it. */
#include "server/net/pack.h"

#define MIN_BYTES 1024 /* of an answer that is worth packing */

#ifdef SINTER_HAVE_ZLIB
#include <zlib.h>

static bool pack_piece(z_stream *stream, srv_text *out, const void *bytes, size_t size, int flush) {
    stream->next_in = (Bytef *)(uintptr_t)bytes;
    stream->avail_in = (uInt)size;
    do {
        char *space = srv_text_reserve(out, 65536);
        if (!space) return false;
        stream->next_out = (Bytef *)space;
        stream->avail_out = 65536;
        int code = deflate(stream, flush);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return false;
        out->length += 65536 - stream->avail_out;
    } while (stream->avail_in || stream->avail_out == 0);
    return true;
}

const char *srv_pack_reply(srv_http *http) {
    srv_encoding encoding = http->head.accept;
    size_t total = http->out.length;
    for (size_t i = 0; i < http->tail_count; i++) total += http->tail[i].iov_len;
    if (encoding == SRV_IDENTITY || total < MIN_BYTES || total > (1u << 30)) return NULL;
    z_stream stream = {0};
    if (deflateInit2(&stream, 1, Z_DEFLATED, encoding == SRV_GZIP ? 31 : 15, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return NULL;
    }
    srv_text packed = {0};
    bool ok = pack_piece(&stream, &packed, http->out.data, http->out.length, Z_NO_FLUSH);
    for (size_t i = 0; i < http->tail_count && ok; i++) {
        ok =
            pack_piece(&stream, &packed, http->tail[i].iov_base, http->tail[i].iov_len, Z_NO_FLUSH);
    }
    ok = ok && pack_piece(&stream, &packed, "", 0, Z_FINISH);
    deflateEnd(&stream);
    if (!ok || packed.failed) {
        srv_text_free(&packed);
        return NULL;
    }
    srv_text_free(&http->out);
    http->out = packed;
    http->tail_count = 0;
    return encoding == SRV_GZIP ? "gzip" : "deflate";
}

#else

const char *srv_pack_reply(srv_http *http) {
    (void)http;
    return NULL;
}

#endif
