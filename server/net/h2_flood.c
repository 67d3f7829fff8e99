/* h2_flood.c - frames that cost a server work and a client nothing. */
#include "server/net/h2_flood.h"

#define RESETS_AT_ONCE 400 /* streams that a client may reset before it is cut off ... */
#define RESETS_A_SECOND 50 /* ... and how fast it may go on doing so */
#define IDLE_AT_ONCE 10000
#define IDLE_A_SECOND 1000
#define IDLE_FOR_WORK 4 /* windows of stream and connection, and some */

static bool fill(srv_bucket *bucket, double a_second, double most) {
    uint64_t now = srv_now_ns();
    if (bucket->ns) bucket->level -= (double)(now - bucket->ns) * 1e-9 * a_second;
    if (bucket->level < 0) bucket->level = 0;
    bucket->ns = now;
    return ++bucket->level <= most;
}

bool srv_floods_reset(srv_floods *floods) {
    return fill(&floods->resets, RESETS_A_SECOND, RESETS_AT_ONCE);
}

/* Whether a frame brings nothing by itself. */
static bool is_idle(const nghttp2_frame_hd *head) {
    switch (head->type) {
    case NGHTTP2_DATA:
        return head->length == 0 && !(head->flags & NGHTTP2_FLAG_END_STREAM);
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_GOAWAY:
        return false;
    default:
        return true;
    }
}

bool srv_floods_frame(srv_floods *floods, const nghttp2_frame_hd *head) {
    if (!is_idle(head)) {
        srv_floods_work(floods);
        return true;
    }
    return fill(&floods->idle, IDLE_A_SECOND, IDLE_AT_ONCE);
}

void srv_floods_work(srv_floods *floods) {
    floods->idle.level -= IDLE_FOR_WORK;
    if (floods->idle.level < 0) floods->idle.level = 0;
}
