/* net.c - connections: event loops over epoll, listeners, plain sockets and TLS alike. */
#include "server/net/net.h"
#include "server/server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define TICK_MS 250 /* how often deadlines are looked at */
#define ACCEPT_AT_ONCE 32
#define ADDRESSES 4096 /* counters of connections by address; a power of two */

/* What a loop is told to do; each order stays. */
enum { ORDER_DRAIN = 1, ORDER_CUT = 2, ORDER_STOP = 4 };

struct srv_loop {
    srv_net *net;
    int epoll, wake;
    pthread_t thread;
    srv_conn *conns;
    srv_conn *dead; /* closed in this round: freed when no event can name them */
    pthread_mutex_t lock;
    srv_task *first, *last;
    atomic_uint orders;
    bool accepting;
    uint64_t next_tick;
};

struct srv_net {
    srv_listener *listeners;
    size_t listener_count;
    srv_loop *loops;
    int count;
    atomic_int connections;
    atomic_int by_address[ADDRESSES];
};

int srv_net_connections(const srv_net *net) {
    return net ? atomic_load(&net->connections) : 0;
}

/* ---- Connections -------------------------------------------------------------------------- */

static int handshake(srv_conn *conn) {
    if (!conn->tls || conn->secure) return 1;
    int result = srv_tls_handshake(conn->tls, &conn->tls_wants_write);
    if (result == 1) {
        conn->secure = true;
        conn->tls_wants_write = false;
    }
    if (conn->fd >= 0) srv_conn_watch(conn, conn->reading, conn->writing);
    return result;
}

ssize_t srv_conn_read(srv_conn *conn, void *buffer, size_t size) {
    int secure = handshake(conn);
    if (secure != 1) return secure;
    if (conn->tls) return srv_tls_read(conn->tls, buffer, size);
    ssize_t got;
    do {
        got = recv(conn->fd, buffer, size, 0);
    } while (got < 0 && errno == EINTR);
    if (got >= 0) return got;
    return errno == EAGAIN || errno == EWOULDBLOCK ? SRV_AGAIN : SRV_BROKEN;
}

ssize_t srv_conn_write(srv_conn *conn, const struct iovec *pieces, int count) {
    int secure = handshake(conn);
    if (secure != 1) return secure;
    if (conn->tls) return srv_tls_write(conn->tls, pieces, count);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = (size_t)count};
    ssize_t put;
    do {
        put = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    if (put >= 0) return put;
    return errno == EAGAIN || errno == EWOULDBLOCK ? SRV_AGAIN : SRV_BROKEN;
}

static uint32_t events_of(const srv_conn *conn) {
    uint32_t events = EPOLLRDHUP;
    if (conn->reading) events |= EPOLLIN;
    if (conn->writing || conn->tls_wants_write) events |= EPOLLOUT;
    return events;
}

void srv_conn_watch(srv_conn *conn, bool reading, bool writing) {
    uint32_t before = events_of(conn);
    conn->reading = reading;
    conn->writing = writing;
    uint32_t events = events_of(conn);
    if (conn->fd < 0 || (events == before && !conn->tls)) return;
    struct epoll_event event = {.events = events, .data.ptr = conn};
    epoll_ctl(conn->loop->epoll, EPOLL_CTL_MOD, conn->fd, &event);
}

void srv_conn_hold(srv_conn *conn) {
    conn->holds++;
}

static void bury(srv_conn *conn) {
    conn->next = conn->loop->dead;
    conn->loop->dead = conn;
}

void srv_conn_release(srv_conn *conn) {
    assert(conn->holds > 0);
    if (--conn->holds == 0 && conn->fd < 0) bury(conn);
}

void srv_conn_close(srv_conn *conn) {
    if (conn->fd < 0) return;
    srv_tls_close(conn->tls);
    conn->tls = NULL;
    /* closing alone leaves it watched while a child that was just forked has the socket, too */
    epoll_ctl(conn->loop->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
    close(conn->fd);
    conn->fd = -1;
    if (conn->before) {
        conn->before->next = conn->next;
    } else {
        conn->loop->conns = conn->next;
    }
    if (conn->next) conn->next->before = conn->before;
    srv_net *net = conn->loop->net;
    atomic_fetch_sub(&net->connections, 1);
    if (!conn->listener->unix_socket) atomic_fetch_sub(&net->by_address[conn->address], 1);
    conn->holds++;
    conn->listener->protocol->closed(conn);
    srv_conn_release(conn);
}

/* ---- New connections ---------------------------------------------------------------------- */

/* The counter of an address: of an IPv6 address its /64, which one client may own whole. */
static uint32_t address_of(const struct sockaddr_storage *from, char *text, size_t size) {
    const unsigned char *bytes = NULL;
    size_t count = 0;
    text[0] = 0;
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        inet_ntop(AF_INET, &v4->sin_addr, text, (socklen_t)size);
        bytes = (const unsigned char *)&v4->sin_addr;
        count = 4;
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
        inet_ntop(AF_INET6, &v6->sin6_addr, text, (socklen_t)size);
        bytes = (const unsigned char *)&v6->sin6_addr;
        count = 8;
    }
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 16777619u;
    return (hash ^ hash >> 15) & (ADDRESSES - 1);
}

static void admit(srv_loop *loop, const srv_listener *listener, int fd,
                  const struct sockaddr_storage *from) {
    srv_server *server = listener->server;
    srv_net *net = loop->net;
    srv_conn *conn = calloc(1, listener->protocol->conn_size);
    if (!conn) {
        close(fd);
        return;
    }
    conn->loop = loop;
    conn->listener = listener;
    conn->fd = fd;
    conn->address = address_of(from, conn->peer, sizeof conn->peer);
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (listener->tls) conn->tls = srv_tls_open(listener->tls, fd, listener->protocol->alpn);
    bool full = atomic_fetch_add(&net->connections, 1) >= server->limits.connections;
    bool crowd = !listener->unix_socket && atomic_fetch_add(&net->by_address[conn->address], 1) >=
                                               server->limits.connections_per_address;
    conn->next = loop->conns;
    if (loop->conns) loop->conns->before = conn;
    loop->conns = conn;
    conn->reading = true;
    struct epoll_event event = {.events = events_of(conn), .data.ptr = conn};
    bool ok = !full && !crowd && (!listener->tls || conn->tls) &&
              epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
    if (full || crowd) {
        srv_log(&server->log, SRV_LOG_VERBOSE, "too many connections", "peer", conn->peer, NULL);
    }
    if (!ok || !listener->protocol->open(conn)) srv_conn_close(conn);
}

static void accept_some(srv_loop *loop, const srv_listener *listener) {
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        int fd =
            accept4(listener->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) usleep(1000); /* no busy loop */
            return;
        }
        admit(loop, listener, fd, &from);
    }
}

/* ---- The loop ----------------------------------------------------------------------------- */

/* The loop of this thread while it serves events, after which it runs its tasks. */
static _Thread_local srv_loop *looking;

void srv_loop_post(srv_loop *loop, srv_task *task) {
    task->next = NULL;
    pthread_mutex_lock(&loop->lock);
    bool first = !loop->first;
    if (loop->last) {
        loop->last->next = task;
    } else {
        loop->first = task;
    }
    loop->last = task;
    pthread_mutex_unlock(&loop->lock);
    if (loop == looking) return; /* its own thread, which is about to look */
    uint64_t one = 1;
    if (first && write(loop->wake, &one, sizeof one) < 0) {
        /* the counter is full: the loop is awake */
    }
}

static void run_tasks(srv_loop *loop) {
    pthread_mutex_lock(&loop->lock);
    srv_task *task = loop->first;
    loop->first = loop->last = NULL;
    pthread_mutex_unlock(&loop->lock);
    while (task) {
        srv_task *next = task->next;
        task->fn(task);
        task = next;
    }
}

static void look_at_deadlines(srv_loop *loop, uint64_t now) {
    srv_conn *next;
    for (srv_conn *conn = loop->conns; conn; conn = next) {
        next = conn->next; /* `late` may close this one, no other */
        if (conn->deadline && now >= conn->deadline) {
            conn->deadline = 0;
            conn->listener->protocol->late(conn);
        }
    }
}

static void drain_loop(srv_loop *loop) {
    const srv_net *net = loop->net;
    for (size_t i = 0; i < net->listener_count && loop->accepting; i++) {
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, net->listeners[i].fd, NULL);
    }
    loop->accepting = false;
    srv_conn *next;
    for (srv_conn *conn = loop->conns; conn; conn = next) {
        next = conn->next;
        if (conn->draining) continue;
        conn->draining = true;
        conn->listener->protocol->drain(conn);
    }
}

static void serve_conn(srv_conn *conn, uint32_t events) {
    const srv_protocol *protocol = conn->listener->protocol;
    if (conn->fd < 0) return;
    if (events & (EPOLLERR | EPOLLHUP) || (events & EPOLLRDHUP && !conn->reading)) {
        if (!(events & EPOLLIN && conn->reading)) {
            protocol->gone(conn);
            return;
        }
    }
    protocol->ready(conn);
}

/* The listener that an event is of; NULL: it is another's. */
static const srv_listener *listener_of(const srv_net *net, const void *ptr) {
    for (size_t i = 0; i < net->listener_count; i++) {
        if (&net->listeners[i] == ptr) return &net->listeners[i];
    }
    return NULL;
}

static void free_dead(srv_loop *loop) {
    while (loop->dead) {
        srv_conn *conn = loop->dead;
        loop->dead = conn->next;
        free(conn);
    }
}

static void *loop_main(void *ctx) {
    srv_loop *loop = ctx;
    struct epoll_event events[EVENTS];
    while (!(atomic_load(&loop->orders) & ORDER_STOP)) {
        int count = epoll_wait(loop->epoll, events, EVENTS, TICK_MS);
        looking = loop;
        for (int i = 0; i < count; i++) {
            void *ptr = events[i].data.ptr;
            const srv_listener *listener = listener_of(loop->net, ptr);
            uint64_t ignored;
            if (listener) {
                if (loop->accepting) accept_some(loop, listener);
            } else if (ptr == loop) {
                if (read(loop->wake, &ignored, sizeof ignored) < 0) continue;
            } else {
                serve_conn(ptr, events[i].events);
            }
        }
        looking = NULL; /* tasks of tasks wait for the next turn */
        run_tasks(loop);
        unsigned orders = atomic_load(&loop->orders);
        if (orders & ORDER_DRAIN) drain_loop(loop);
        while (orders & ORDER_CUT && loop->conns) srv_conn_close(loop->conns);
        uint64_t now = srv_now_ns();
        if (now >= loop->next_tick) {
            look_at_deadlines(loop, now);
            loop->next_tick = now + TICK_MS * 1000000u;
        }
        free_dead(loop);
    }
    while (loop->conns) srv_conn_close(loop->conns);
    run_tasks(loop);
    free_dead(loop);
    return NULL;
}

/* ---- Listeners ---------------------------------------------------------------------------- */

static void note_port(srv_listener *listener) {
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;
    if (getsockname(listener->fd, (struct sockaddr *)&own, &size) != 0) return;
    if (own.ss_family == AF_INET) listener->port = ntohs(((struct sockaddr_in *)&own)->sin_port);
    if (own.ss_family == AF_INET6) listener->port = ntohs(((struct sockaddr_in6 *)&own)->sin6_port);
    listener->unix_socket = own.ss_family == AF_UNIX;
}

sn_status srv_listener_open(srv_listener *listener, const char *host, int port, sn_error *err) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool six = strchr(host, ':') != NULL;
    void *to = six ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr;
    if (inet_pton(six ? AF_INET6 : AF_INET, host, to) != 1) {
        return sni_fail(err, SN_INVALID_ARGUMENT, "'%s' is no numeric address", host);
    }
    int one = 1;
    listener->fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0) return sni_fail(err, SN_IO, "cannot make a socket: %s", strerror(errno));
    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    const struct sockaddr *address =
        six ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4;
    socklen_t size = six ? sizeof v6 : sizeof v4;
    if (bind(listener->fd, address, size) != 0 || listen(listener->fd, 1024) != 0) {
        int why = errno;
        close(listener->fd);
        listener->fd = -1;
        return sni_fail(err, SN_IO, "cannot listen on %s port %d: %s", host, port, strerror(why));
    }
    note_port(listener);
    return SN_OK;
}

sn_status srv_listener_adopt(srv_listener *listener, int fd, sn_error *err) {
    int listening = 0;
    socklen_t size = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening) {
        return sni_fail(err, SN_INVALID_ARGUMENT, "descriptor %d is no listening socket", fd);
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return sni_fail(err, SN_IO, "descriptor %d: %s", fd, strerror(errno));
    }
    listener->fd = fd;
    note_port(listener);
    return SN_OK;
}

/* ---- Life --------------------------------------------------------------------------------- */

/* What a loop watches from the beginning: tasks that are posted, and the listeners. */
static bool watch_sources(srv_loop *loop) {
    const srv_net *net = loop->net;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = loop};
    bool ok = loop->epoll >= 0 && loop->wake >= 0 &&
              epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) == 0;
    for (size_t i = 0; i < net->listener_count && ok; i++) {
        event = (struct epoll_event){.events = EPOLLIN | EPOLLEXCLUSIVE,
                                     .data.ptr = &net->listeners[i]};
        ok = epoll_ctl(loop->epoll, EPOLL_CTL_ADD, net->listeners[i].fd, &event) == 0;
    }
    return ok;
}

/* Without its thread, which has ended or was never started. */
static void free_loop(srv_loop *loop) {
    if (loop->epoll >= 0) close(loop->epoll);
    if (loop->wake >= 0) close(loop->wake);
    pthread_mutex_destroy(&loop->lock);
}

static sn_status start_loop(srv_loop *loop, srv_net *net, sn_error *err) {
    *loop = (srv_loop){.net = net,
                       .epoll = epoll_create1(EPOLL_CLOEXEC),
                       .wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                       .accepting = true};
    pthread_mutex_init(&loop->lock, NULL);
    sn_status status = SN_OK;
    if (!watch_sources(loop)) {
        status = sni_fail(err, SN_IO, "cannot start an event loop: %s", strerror(errno));
    } else if (pthread_create(&loop->thread, NULL, loop_main, loop) != 0) {
        status = sni_fail(err, SN_NO_MEMORY, "cannot start a thread");
    }
    if (status != SN_OK) free_loop(loop);
    return status;
}

sn_status srv_net_start(srv_listener *listeners, size_t count, int loops, srv_net **out,
                        sn_error *err) {
    srv_net *net = calloc(1, sizeof *net);
    if (!net) return sni_fail_memory(err);
    net->listeners = listeners;
    net->listener_count = count;
    net->loops = calloc((size_t)loops, sizeof *net->loops);
    sn_status status = net->loops ? SN_OK : sni_fail_memory(err);
    for (int i = 0; i < loops && status == SN_OK; i++) {
        status = start_loop(&net->loops[i], net, err);
        if (status == SN_OK) net->count = i + 1;
    }
    if (status != SN_OK) {
        srv_net_stop(net);
        return status;
    }
    *out = net;
    return SN_OK;
}

static void wake(srv_loop *loop) {
    uint64_t one = 1;
    if (write(loop->wake, &one, sizeof one) < 0) {
        /* it is awake */
    }
}

static void order(srv_net *net, unsigned what) {
    for (int i = 0; net && i < net->count; i++) {
        atomic_fetch_or(&net->loops[i].orders, what);
        wake(&net->loops[i]);
    }
}

void srv_net_drain(srv_net *net) {
    order(net, ORDER_DRAIN);
}

void srv_net_cut(srv_net *net) {
    order(net, ORDER_DRAIN | ORDER_CUT);
}

void srv_net_stop(srv_net *net) {
    if (!net) return;
    order(net, ORDER_STOP);
    for (int i = 0; i < net->count; i++) {
        pthread_join(net->loops[i].thread, NULL);
        free_loop(&net->loops[i]);
    }
    free(net->loops);
    free(net);
}
