/* h2_header.h - a header line as nghttp2 takes it. */
#ifndef SRV_NET_H2_HEADER_H
#define SRV_NET_H2_HEADER_H

#include <nghttp2/nghttp2.h>
#include <string.h>

/* nghttp2 copies both when it is given the line. */
static inline nghttp2_nv srv_header(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

#endif
