/* h2_message.h - gRPC's messages inside a stream: five bytes of prefix, then the message. */
#ifndef SRV_NET_H2_MESSAGE_H
#define SRV_NET_H2_MESSAGE_H

#include "server/net/h2.h"

/* Bytes of the stream, in any pieces; hands whole messages to the call's method. */
void srv_call_receive(srv_call *call, const unsigned char *data, size_t size);

/* Puts the prefix in front and makes the pieces final; false without memory. */
bool srv_reply_seal(srv_reply *reply);
/* Takes a sealed reply's bytes from the budget until it is freed; false if they are not left. */
bool srv_reply_charge(srv_reply *reply, srv_budget *budget);
/* Appends a reply to those that the call sends, or frees the first. */
void srv_reply_push(srv_call *call, srv_reply *reply);
void srv_reply_pop(srv_call *call);
/* Copies up to `length` bytes of what is to be sent; messages that are out are released. */
size_t srv_reply_read(srv_call *call, unsigned char *buffer, size_t length);

/* "100m" and the like, in nanoseconds. */
bool srv_timeout_parse(const char *text, uint64_t *ns);
/* Text for a header, cut to `size`: what is not printable ASCII, and %, becomes %XX. */
void srv_status_text(const char *message, char *out, size_t size);

#endif
