/* net.h - connections: event loops over epoll, listeners, plain sockets and TLS alike.
 *
 * A protocol (HTTP/1.1, HTTP/2) is a table of functions. Its connection struct begins with an
 * srv_conn; all its functions are called in the thread of the connection's loop, so that it needs
 * no locks. Other threads reach a loop only by srv_loop_post. */
#ifndef SRV_NET_NET_H
#define SRV_NET_NET_H

#include "server/util.h"

#include <sys/uio.h>

typedef struct srv_loop srv_loop;
typedef struct srv_conn srv_conn;
typedef struct srv_listener srv_listener;
typedef struct srv_net srv_net; /* the loops of one server */
typedef struct srv_tls srv_tls; /* certificates and keys, shared by listeners */

typedef struct srv_protocol {
    const char *name; /* "http" */
    const char *alpn; /* offered in TLS, or NULL */
    size_t conn_size; /* of its connection struct, which is zero-filled */
    /* A new connection; false closes it. */
    bool (*open)(srv_conn *conn);
    /* What it watches for has come. Reads and writes until SRV_AGAIN. */
    void (*ready)(srv_conn *conn);
    /* The deadline that it set has passed. */
    void (*late)(srv_conn *conn);
    /* The peer has closed or reset while the protocol was not reading. */
    void (*gone)(srv_conn *conn);
    /* The server stops: finish what is under way, take nothing new, close. */
    void (*drain)(srv_conn *conn);
    /* The socket is closed: give back everything but the struct itself. Work that is still under
     * way in other threads keeps the struct alive by srv_conn_hold. */
    void (*closed)(srv_conn *conn);
} srv_protocol;

struct srv_conn {
    srv_loop *loop;
    const srv_listener *listener;
    int fd;      /* -1 once closed */
    void *tls;   /* the TLS session, or NULL */
    bool secure; /* the TLS handshake is over */
    bool tls_wants_write;
    bool reading, writing; /* watched for */
    bool draining;         /* drain was called */
    int holds;
    uint64_t deadline; /* monotonic; 0: none */
    uint32_t address;  /* which counter of connections it is in */
    char peer[48];     /* its address as text */
    srv_conn *next, *before;
};

enum { SRV_AGAIN = -1, SRV_BROKEN = -2 };

/* Bytes read (0: the end), SRV_AGAIN or SRV_BROKEN. */
ssize_t srv_conn_read(srv_conn *conn, void *buffer, size_t size);
ssize_t srv_conn_write(srv_conn *conn, const struct iovec *pieces, int count);
/* What `ready` is to be called for. While not reading, `gone` tells of a peer that hangs up. */
void srv_conn_watch(srv_conn *conn, bool reading, bool writing);
/* Closes now; `closed` is called, and the struct is freed unless held. */
void srv_conn_close(srv_conn *conn);
/* Keeps the struct (not the socket) until released. */
void srv_conn_hold(srv_conn *conn);
void srv_conn_release(srv_conn *conn);

/* Runs fn in the loop's thread. The task is the caller's and free again when fn is called. */
typedef struct srv_task {
    void (*fn)(struct srv_task *task);
    struct srv_task *next;
} srv_task;
void srv_loop_post(srv_loop *loop, srv_task *task);

/* A socket that connections come from, and what they are given to. */
struct srv_listener {
    const char *name; /* "http" */
    int fd;
    const srv_protocol *protocol;
    srv_server *server;
    srv_tls *tls;     /* NULL: plain */
    int routes;       /* HTTP: which routes are offered, a mask of routes.h */
    int port;         /* the actual one */
    bool unix_socket; /* such connections are not counted by address */
};

/* Listens on host:port (port 0: any free one); `host` is a numeric address. Sets `fd`, `port` and
 * `unix_socket`; on failure `fd` stays as it is. */
sn_status srv_listener_open(srv_listener *listener, const char *host, int port, sn_error *err);
/* The same for a socket that listens already (socket activation); takes it over. */
sn_status srv_listener_adopt(srv_listener *listener, int fd, sn_error *err);

/* Starts `loops` threads that serve the listeners, which stay the caller's and outlive them. On
 * failure nothing runs. */
sn_status srv_net_start(srv_listener *listeners, size_t count, int loops, srv_net **out,
                        sn_error *err);
/* Stops accepting and tells every connection to finish. NULL is fine here and below. */
void srv_net_drain(srv_net *net);
/* Connections that are open. */
int srv_net_connections(const srv_net *net);
/* Closes what is left. The loops go on: work under way in other threads still posts to them. */
void srv_net_cut(srv_net *net);
/* Ends the loops, once nobody can post to them any more, and frees everything. */
void srv_net_stop(srv_net *net);

/* tls.c. A build without GnuTLS has these functions, too: loading fails. */
bool srv_tls_available(void);
sn_status srv_tls_load(const char *certificate, const char *key, const char *client_ca,
                       srv_tls **out, sn_error *err);
/* Reads the files again for connections to come; on failure the old ones stay. */
sn_status srv_tls_reload(srv_tls *tls, sn_error *err);
void srv_tls_free(srv_tls *tls);
/* A session for a new connection; NULL on failure. */
void *srv_tls_open(srv_tls *tls, int fd, const char *alpn);
void srv_tls_close(void *session);
/* The handshake: 1 done, SRV_AGAIN (with *wants_write), SRV_BROKEN. */
int srv_tls_handshake(void *session, bool *wants_write);
ssize_t srv_tls_read(void *session, void *buffer, size_t size);
ssize_t srv_tls_write(void *session, const struct iovec *pieces, int count);

#endif
