/* faults.c - a library to preload: the n-th call of a kind fails, or one hangs.
 *
 * FAULTS names a file that the test maps, too. It counts the calls of each kind and says which one
 * fails, and it can be changed while the program runs. Calls inside libc itself are not seen, so
 * functions of stdio are counted where programs call them. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* In the order of `KINDS` in faults.py. */
enum { ALLOC, READ, WRITE, MMAP, OPEN, SYNC, THREAD, SOCKET, KINDS };

typedef struct control {
    atomic_int_least64_t seen[KINDS];
    atomic_int_least64_t fail[KINDS]; /* the number, from 1, of the call that fails; 0: none */
    atomic_int_least64_t slow_bytes;  /* allocating so much or more waits until it is 0 */
    char hang[64]; /* a part of a path; opening such a file waits until it is "" */
} control;

static control *shared;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS");
    long file = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    long at = syscall(SYS_mmap, NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (at > 0)
        shared = (control *)at; /* errors are small negative numbers, which syscall() makes -1 */
}

static int fails(int kind, int error) {
    if (!shared) return 0;
    int64_t number = atomic_fetch_add(&shared->seen[kind], 1) + 1;
    if (number != atomic_load(&shared->fail[kind])) return 0;
    errno = error;
    return 1;
}

static void wait_while_hanging(const char *path) {
    const struct timespec moment = {.tv_nsec = 10000000};
    while (shared && shared->hang[0] && strstr(path, shared->hang)) nanosleep(&moment, NULL);
}

static void wait_while_slow(size_t bytes) {
    const struct timespec moment = {.tv_nsec = 10000000};
    for (int64_t most;
         shared && (most = atomic_load(&shared->slow_bytes)) && bytes >= (size_t)most;) {
        nanosleep(&moment, NULL);
    }
}

/* The function that a name stands for behind this library. */
#define NEXT(name)                             \
    static __typeof__(name) *next;             \
    if (!next) {                               \
        void *found = dlsym(RTLD_NEXT, #name); \
        memcpy(&next, &found, sizeof next);    \
    }

/* ---- Memory ------------------------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    wait_while_slow(size);
    return fails(ALLOC, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails(ALLOC, ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return fails(ALLOC, ENOMEM) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    wait_while_slow(size);
    return fails(ALLOC, ENOMEM) ? NULL : __libc_memalign(alignment, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    NEXT(mmap)
    wait_while_slow(size);
    return fails(MMAP, ENOMEM) ? MAP_FAILED : next(at, size, protection, flags, file, offset);
}

/* ---- Files -------------------------------------------------------------------------------- */

static mode_t mode_of(int flags, va_list args) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    wait_while_hanging(path);
    if (fails(OPEN, EMFILE)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    wait_while_hanging(path);
    if (fails(OPEN, EMFILE)) return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) {
    NEXT(fopen)
    return fails(OPEN, EMFILE) ? NULL : next(path, mode);
}

ssize_t read(int file, void *bytes, size_t size) {
    return fails(READ, EIO) ? -1 : syscall(SYS_read, file, bytes, size);
}

ssize_t pread(int file, void *bytes, size_t size, off_t offset) {
    return fails(READ, EIO) ? -1 : syscall(SYS_pread64, file, bytes, size, offset);
}

size_t fread(void *bytes, size_t size, size_t count, FILE *file) {
    NEXT(fread)
    return fails(READ, EIO) ? 0 : next(bytes, size, count, file);
}

ssize_t write(int file, const void *bytes, size_t size) {
    return fails(WRITE, ENOSPC) ? -1 : syscall(SYS_write, file, bytes, size);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
    return fails(WRITE, ENOSPC) ? -1 : syscall(SYS_pwrite64, file, bytes, size, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return fails(WRITE, ENOSPC) ? -1 : syscall(SYS_writev, file, parts, count);
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file) {
    NEXT(fwrite)
    return fails(WRITE, ENOSPC) ? 0 : next(bytes, size, count, file);
}

int fflush(FILE *file) {
    NEXT(fflush)
    return fails(WRITE, ENOSPC) ? EOF : next(file);
}

/* The stream is closed all the same, as libc does it. */
int fclose(FILE *file) {
    NEXT(fclose)
    int failed = fails(WRITE, ENOSPC), error = errno, code = next(file);
    if (!failed) return code;
    errno = error;
    return EOF;
}

int fsync(int file) {
    return fails(SYNC, EIO) ? -1 : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    return fails(SYNC, EIO) ? -1 : (int)syscall(SYS_fdatasync, file);
}

int rename(const char *from, const char *to) {
    return fails(SYNC, EIO) ? -1 : (int)syscall(SYS_rename, from, to);
}

/* ---- Threads and sockets ------------------------------------------------------------------ */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *),
                   void *ctx) {
    NEXT(pthread_create)
    return fails(THREAD, EAGAIN) ? EAGAIN : next(thread, attributes, main, ctx);
}

int socket(int domain, int type, int protocol) {
    return fails(SOCKET, EMFILE) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int file, const struct sockaddr *address, socklen_t size) {
    return fails(SOCKET, EADDRINUSE) ? -1 : (int)syscall(SYS_bind, file, address, size);
}

int listen(int file, int backlog) {
    return fails(SOCKET, EADDRINUSE) ? -1 : (int)syscall(SYS_listen, file, backlog);
}

int accept4(int file, struct sockaddr *address, socklen_t *size, int flags) {
    return fails(SOCKET, EMFILE) ? -1 : (int)syscall(SYS_accept4, file, address, size, flags);
}

int setsockopt(int file, int level, int name, const void *value, socklen_t size) {
    return fails(SOCKET, ENOBUFS) ? -1
                                  : (int)syscall(SYS_setsockopt, file, level, name, value, size);
}

int getsockname(int file, struct sockaddr *address, socklen_t *size) {
    return fails(SOCKET, ENOBUFS) ? -1 : (int)syscall(SYS_getsockname, file, address, size);
}

int epoll_create1(int flags) {
    return fails(SOCKET, EMFILE) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int epoll_ctl(int epoll, int what, int file, struct epoll_event *event) {
    return fails(SOCKET, ENOMEM) ? -1 : (int)syscall(SYS_epoll_ctl, epoll, what, file, event);
}

int eventfd(unsigned value, int flags) {
    return fails(SOCKET, EMFILE) ? -1 : (int)syscall(SYS_eventfd2, value, flags);
}

ssize_t recv(int file, void *bytes, size_t size, int flags) {
    return fails(SOCKET, ECONNRESET) ? -1
                                     : syscall(SYS_recvfrom, file, bytes, size, flags, NULL, NULL);
}

ssize_t send(int file, const void *bytes, size_t size, int flags) {
    return fails(SOCKET, EPIPE) ? -1 : syscall(SYS_sendto, file, bytes, size, flags, NULL, 0);
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    return fails(SOCKET, EPIPE) ? -1 : syscall(SYS_sendmsg, file, message, flags);
}
