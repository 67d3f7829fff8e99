/* mapping.c - files as bytes, safe against links, special files and files that shrink. */
#include "base/mapping.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct guard_slot;

struct sni_mapping {
    const unsigned char *bytes;
    size_t size;
    bool mapped; /* false: `bytes` is on the heap, or static if the file is empty */
    int fd;      /* kept to notice changes; -1 if not mapped */
    struct timespec mtime;
    uint64_t device, inode, names;
    atomic_bool damaged;
    _Atomic(int64_t) looked; /* tick of the clock at which sni_mapping_watch() last examined it */
    struct guard_slot *slot;
    char path[]; /* for messages */
};

/* ---- The SIGBUS guard: which addresses are ours ---- */

/* A range that the handler may repair. Slots are never freed, only reused; `version` is odd while
 * one changes, so that the handler sees a range whole or not at all, without a lock. */
typedef struct guard_slot {
    atomic_bool taken;
    atomic_uint version;
    atomic_uintptr_t begin, end;
    _Atomic(atomic_bool *) damaged;
} guard_slot;

enum { CHUNK_SLOTS = 32 };

typedef struct guard_chunk {
    guard_slot slots[CHUNK_SLOTS];
    _Atomic(struct guard_chunk *) next;
} guard_chunk;

static guard_chunk guards;
static struct sigaction previous_action;
static pthread_once_t guard_once = PTHREAD_ONCE_INIT;
static uintptr_t page_size;

static void guard_set(guard_slot *slot, uintptr_t begin, uintptr_t end, atomic_bool *damaged) {
    atomic_fetch_add(&slot->version, 1);
    atomic_store(&slot->begin, begin);
    atomic_store(&slot->end, end);
    atomic_store(&slot->damaged, damaged);
    atomic_fetch_add(&slot->version, 1);
}

/* Puts zeros from the page of `address` to the end of its mapping, and marks it damaged. False if
 * no mapping holds the address. Runs inside the signal handler. */
static bool guard_repair(uintptr_t address) {
    for (guard_chunk *chunk = &guards; chunk; chunk = atomic_load(&chunk->next)) {
        for (int i = 0; i < CHUNK_SLOTS; i++) {
            guard_slot *slot = &chunk->slots[i];
            unsigned version = atomic_load(&slot->version);
            uintptr_t begin = atomic_load(&slot->begin), end = atomic_load(&slot->end);
            atomic_bool *damaged = atomic_load(&slot->damaged);
            if (version % 2 || version != atomic_load(&slot->version)) continue;
            if (address < begin || address >= end) continue;
            uintptr_t page = address & ~(page_size - 1);
            /* By its number: a plain system call is safe in a signal handler. */
            if (syscall(SYS_mmap, page, end - page, PROT_READ,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == -1)
                return false;
            atomic_store(damaged, true);
            return true;
        }
    }
    return false;
}

static void on_sigbus(int number, siginfo_t *info, void *context) {
    int saved = errno;
    bool fault = info->si_code > 0; /* not sent by a process */
    bool repaired = fault && guard_repair((uintptr_t)info->si_addr);
    errno = saved;
    if (repaired) return;
    if (previous_action.sa_flags & SA_SIGINFO) {
        previous_action.sa_sigaction(number, info, context);
    } else if (previous_action.sa_handler == SIG_DFL ||
               (previous_action.sa_handler == SIG_IGN && fault)) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(SIGBUS, &standard, NULL);
        if (!fault) raise(SIGBUS); /* a fault comes again by itself on return */
    } else if (previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(number);
    }
}

static void guard_install(void) {
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, NULL, &previous_action);
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

/* A free slot; NULL when memory runs out. */
static guard_slot *guard_take(void) {
    pthread_once(&guard_once, guard_install);
    for (guard_chunk *chunk = &guards;;) {
        for (int i = 0; i < CHUNK_SLOTS; i++)
            if (!atomic_exchange(&chunk->slots[i].taken, true)) return &chunk->slots[i];
        guard_chunk *next = atomic_load(&chunk->next);
        if (!next) {
            guard_chunk *fresh = calloc(1, sizeof *fresh);
            if (!fresh) return NULL;
            if (atomic_compare_exchange_strong(&chunk->next, &next, fresh))
                next = fresh;
            else
                free(fresh);
        }
        chunk = next;
    }
}

static void guard_drop(guard_slot *slot) {
    guard_set(slot, 0, 0, NULL);
    atomic_store(&slot->taken, false);
}

/* ---- From a file descriptor to bytes ---- */

static sn_status fail_errno(sn_error *err, const char *doing, const char *path) {
    int number = errno;
    char text[64];
    return sni_fail(err, number == ENOENT ? SN_NOT_FOUND : SN_IO, "%s %s: %s", doing, path,
                    strerror_r(number, text, sizeof text));
}

static sn_status read_all(sni_mapping *m, int fd, sn_error *err) {
    unsigned char *copy = malloc(m->size);
    if (!copy)
        return sni_fail(err, SN_NO_MEMORY, "out of memory reading %s (%zu bytes)", m->path,
                        m->size);
    for (size_t done = 0; done < m->size;) {
        ssize_t n = read(fd, copy + done, m->size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            sn_status status =
                n < 0 ? fail_errno(err, "cannot read", m->path)
                      : sni_fail(err, SN_IO, "%s: file shrank while it was read", m->path);
            free(copy);
            return status;
        }
        done += (size_t)n;
    }
    m->bytes = copy;
    return SN_OK;
}

static sn_status map_all(sni_mapping *m, int fd, sn_error *err) {
    guard_slot *slot = guard_take();
    if (!slot) return sni_fail_memory(err);
    void *p = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        sn_status status = fail_errno(err, "cannot map", m->path);
        guard_drop(slot);
        return status;
    }
    m->bytes = p;
    m->mapped = true;
    m->fd = fd;
    m->slot = slot;
    uintptr_t begin = (uintptr_t)p;
    size_t whole = (m->size + page_size - 1) & ~(page_size - 1);
    guard_set(slot, begin, begin + whole, &m->damaged);
    return SN_OK;
}

/* Takes `fd` over. */
static sn_status mapping_from_fd(int fd, const char *path, int flags, bool one_name,
                                 sni_mapping **out, sn_error *err) {
    static const unsigned char nothing[1];
    struct stat st;
    sni_mapping *m = NULL;
    sn_status status = SN_OK;
    size_t length = strlen(path);
    if (fstat(fd, &st) != 0)
        status = fail_errno(err, "cannot examine", path);
    else if (!S_ISREG(st.st_mode))
        status = sni_fail(err, SN_IO, "%s is not a regular file", path);
    else if (one_name && st.st_nlink != 1)
        status = sni_fail(err, SN_IO, "%s has %lu names (hard links); only one is accepted", path,
                          (unsigned long)st.st_nlink);
    else if (!(m = calloc(1, sizeof *m + length + 1)))
        status = sni_fail_memory(err);
    if (status == SN_OK) {
        m->bytes = nothing;
        m->fd = -1;
        m->size = (size_t)st.st_size;
        m->mtime = st.st_mtim;
        m->names = (uint64_t)st.st_nlink;
        m->device = st.st_dev;
        m->inode = st.st_ino;
        memcpy(m->path, path, length + 1);
        if (m->size && (flags & SNI_OPEN_COPY))
            status = read_all(m, fd, err);
        else if (m->size)
            status = map_all(m, fd, err);
    }
    if (!m || m->fd != fd) close(fd);
    if (status == SN_OK)
        *out = m;
    else
        free(m);
    return status;
}

/* ---- Opening ---- */

enum { FILE_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

sn_status sni_mapping_open(const char *path, int flags, sni_mapping **out, sn_error *err) {
    int fd = open(path, FILE_FLAGS);
    if (fd < 0) return fail_errno(err, "cannot open", path);
    return mapping_from_fd(fd, path, flags, false, out, err);
}

/* The next component of a path that starts at *p; empty ones and "." are skipped. */
static sni_str next_component(const char **p) {
    for (;;) {
        const char *start = *p + strspn(*p, "/");
        size_t n = strcspn(start, "/");
        *p = start + n;
        if (n != 1 || *start != '.') return (sni_str){start, n};
    }
}

static sn_status check_relative(const char *relative, sn_error *err) {
    if (relative[0] == '/')
        return sni_fail(err, SN_INVALID_MODEL,
                        "External data path '%.200s' escapes model directory: it is absolute",
                        relative);
    const char *p = relative;
    bool any = false;
    for (sni_str c = next_component(&p); c.n; c = next_component(&p)) {
        any = true;
        if (sni_str_is(c, ".."))
            return sni_fail(
                err, SN_INVALID_MODEL,
                "External data path '%.200s' escapes model directory: it goes up a folder",
                relative);
        if (c.n > 255)
            return sni_fail(err, SN_INVALID_MODEL,
                            "external data path has a component of %zu bytes", c.n);
    }
    if (!any) return sni_fail(err, SN_INVALID_MODEL, "external data path is empty");
    return SN_OK;
}

/* Opens one component after the other without following links: for kernels without openat2.
 * -1 with errno set on failure. */
static int open_by_component(int folder, const char *relative) {
    int at = folder;
    const char *p = relative;
    for (sni_str c = next_component(&p); c.n;) {
        char name[256];
        memcpy(name, c.p, c.n);
        name[c.n] = 0;
        c = next_component(&p);
        int flags = c.n ? O_PATH | O_DIRECTORY | O_CLOEXEC : FILE_FLAGS;
        int next = openat(at, name, flags | O_NOFOLLOW);
        int saved = errno;
        if (at != folder) close(at);
        errno = saved;
        if (next < 0) return -1;
        at = next;
    }
    return at;
}

static int open_without_links(int folder, const char *relative) {
    struct open_how how = {.flags = FILE_FLAGS,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, folder, relative, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
        return open_by_component(folder, relative);
    return (int)fd;
}

sn_status sni_mapping_open_beneath(const char *folder, const char *relative, int flags,
                                   sni_mapping **out, sn_error *err) {
    SN_TRY(check_relative(relative, err));
    bool links = flags & SNI_OPEN_ALLOW_LINKS;
    int dir = open(folder[0] ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return fail_errno(err, "cannot open folder", folder);
    int fd = links ? openat(dir, relative, FILE_FLAGS) : open_without_links(dir, relative);
    sn_status status = SN_OK;
    if (fd < 0 && errno == ELOOP)
        status = sni_fail(err, SN_IO, "External data path '%.200s' passes through a symbolic link",
                          relative);
    else if (fd < 0)
        status = fail_errno(err, "cannot open external data", relative);
    close(dir);
    SN_TRY(status);
    bool one_name = !links && !(flags & SNI_OPEN_ALLOW_HARD_LINKS);
    return mapping_from_fd(fd, relative, flags, one_name, out, err);
}

/* ---- Use ---- */

const unsigned char *sni_mapping_bytes(const sni_mapping *mapping) {
    return mapping->bytes;
}

size_t sni_mapping_size(const sni_mapping *mapping) {
    return mapping->size;
}

uint64_t sni_mapping_names(const sni_mapping *mapping) {
    return mapping->names;
}

sni_file_identity sni_mapping_identity(const sni_mapping *mapping) {
    return (sni_file_identity){.device = mapping->device,
                               .inode = mapping->inode,
                               .size = mapping->size,
                               .changed = (uint64_t)mapping->mtime.tv_sec * 1000000000u +
                                          (uint64_t)mapping->mtime.tv_nsec};
}

sn_status sni_mapping_intact(const sni_mapping *mapping, sn_error *err) {
    if (!mapping->mapped) return SN_OK;
    struct stat st;
    if (atomic_load(&mapping->damaged))
        return sni_fail(err, SN_IO, "%s shrank while it was in use", mapping->path);
    if (fstat(mapping->fd, &st) != 0) return fail_errno(err, "cannot examine", mapping->path);
    if ((size_t)st.st_size != mapping->size || st.st_mtim.tv_sec != mapping->mtime.tv_sec ||
        st.st_mtim.tv_nsec != mapping->mtime.tv_nsec)
        return sni_fail(err, SN_IO, "%s was changed while it was in use", mapping->path);
    return SN_OK;
}

sn_status sni_mapping_watch(sni_mapping *mapping, sn_error *err) {
    if (!mapping->mapped) return SN_OK;
    if (!atomic_load_explicit(&mapping->damaged, memory_order_relaxed)) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        int64_t tick = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        if (atomic_exchange_explicit(&mapping->looked, tick, memory_order_relaxed) == tick)
            return SN_OK;
    }
    return sni_mapping_intact(mapping, err);
}

void sni_mapping_drop(const sni_mapping *mapping, const void *bytes, size_t size) {
    if (!mapping || !mapping->mapped || !size) return;
    uintptr_t begin = (uintptr_t)mapping->bytes, at = (uintptr_t)bytes;
    if (at < begin || at - begin > mapping->size || size > mapping->size - (at - begin)) return;
    uintptr_t first = at & ~(page_size - 1), end = (at + size + page_size - 1) & ~(page_size - 1);
    madvise((void *)first, end - first, MADV_DONTNEED); /* clean pages of a file: only dropped */
}

void sni_mapping_use_large(const sni_mapping *mapping) {
#ifdef MADV_HUGEPAGE
    if (mapping->mapped) madvise((void *)(uintptr_t)mapping->bytes, mapping->size, MADV_HUGEPAGE);
#else
    (void)mapping;
#endif
}

void sni_mapping_close(sni_mapping *mapping) {
    if (!mapping) return;
    if (mapping->mapped) {
        guard_drop(mapping->slot);
        munmap((void *)(uintptr_t)mapping->bytes, mapping->size);
        close(mapping->fd);
    } else if (mapping->size) {
        free((void *)(uintptr_t)mapping->bytes);
    }
    free(mapping);
}
