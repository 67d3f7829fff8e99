/* mapping.h - the bytes of a file, mapped read-only or read into memory.
 *
 * If a mapped file shrinks while it is in use, reads past its end give zeros and `damaged` is set
 * instead of the process dying of SIGBUS: whoever uses the bytes checks sni_mapping_intact() when
 * done and fails cleanly. */
#ifndef SNI_BASE_MAPPING_H
#define SNI_BASE_MAPPING_H

#include "base/status.h"

typedef struct sni_mapping sni_mapping;

typedef enum sni_open_flags {
    SNI_OPEN_COPY = 1, /* read the file instead of mapping it */
    SNI_OPEN_ALLOW_LINKS =
        2, /* sni_mapping_open_beneath: follow symbolic links, accept hard links */
    SNI_OPEN_ALLOW_HARD_LINKS = 4 /* sni_mapping_open_beneath: accept hard links */
} sni_open_flags;

/* Opens a regular file; the caller closes it. The path may go through links: it is the caller's
 * own. */
sn_status sni_mapping_open(const char *path, int flags, sni_mapping **out, sn_error *err);

/* Opens a regular file below `folder` for data that a model names: `relative` may not be absolute,
 * leave the folder, or pass through a symbolic link, and the file may have one name only. */
sn_status sni_mapping_open_beneath(const char *folder, const char *relative, int flags,
                                   sni_mapping **out, sn_error *err);

/* The bytes, which stay until the mapping is closed, and how many there are. Not NULL, even of an
 * empty file. */
const unsigned char *sni_mapping_bytes(const sni_mapping *mapping);
size_t sni_mapping_size(const sni_mapping *mapping);

/* How many names (hard links) the file had when it was opened. */
uint64_t sni_mapping_names(const sni_mapping *mapping);

/* What tells the file from others and from itself before a change: device, inode, bytes and the
 * time of its last change in nanoseconds. */
typedef struct sni_file_identity {
    uint64_t device, inode, size, changed;
} sni_file_identity;
sni_file_identity sni_mapping_identity(const sni_mapping *mapping);

/* SN_OK, or SN_IO if the file shrank or was changed since it was opened. */
sn_status sni_mapping_intact(const sni_mapping *mapping, sn_error *err);

/* The same for whoever asks often: that bytes were missing is told at once, but the file itself is
 * examined only once per tick of the system's coarse clock (some milliseconds). Thread-safe. */
sn_status sni_mapping_watch(sni_mapping *mapping, sn_error *err);

/* Takes bytes of the file out of memory, as far as they fill pages: they are read again when they
 * are used again. For whoever is done with something large. Nothing happens if they are not part of
 * the mapping, or it is a copy. Thread-safe. */
void sni_mapping_drop(const sni_mapping *mapping, const void *bytes, size_t size);

/* Asks the system to keep the file in large pages where it comes from the disk from now on, for
 * what is used all over. A hint. */
void sni_mapping_use_large(const sni_mapping *mapping);

/* NULL is fine. Nobody may use the bytes any more. */
void sni_mapping_close(sni_mapping *mapping);

#endif
