/* compiled_format.h - how a compiled model lies in its file (exec/compiled.h). */
#ifndef SNI_EXEC_COMPILED_FORMAT_H
#define SNI_EXEC_COMPILED_FORMAT_H

#include "plan/plan.h"

enum { SNI_COMPILED_FORMAT = 3 };

#define SNI_COMPILED_MAGIC "SINTERM\n" /* 8 bytes */
#define SNI_COMPILED_ORDER 0x01020304u /* as the machine that wrote the file stores it */

typedef enum sni_compiled_part {
    SNI_PART_TABLE,
    SNI_PART_GRAPH,
    SNI_PART_WEIGHTS,
    SNI_PART_PACKED,
    SNI_PART_TUNED, /* choices by measurement: sni_finished_key, one after the other */
    SNI_PARTS
} sni_compiled_part;

typedef struct sni_section {
    uint64_t offset, size, checksum;
} sni_section;

typedef struct sni_compiled_header {
    char magic[8];
    uint32_t format, order;
    char version[32], isa[32];
    uint32_t pack_version;
    uint32_t numerics; /* families that the session allowed */
    uint64_t file_size;
    sni_section parts[SNI_PARTS];
    uint64_t checksum; /* of all the above */
} sni_compiled_header;

/* An element of the table: a packed blob. They are ordered by graph and node; those of one
 * implementation stand in a row. */
typedef struct sni_compiled_entry {
    sni_finished_key key;
    uint64_t offset, bytes; /* in the packed section */
} sni_compiled_entry;

/* A running checksum over 8 bytes at a time; a short last word is filled with zeros. */
static inline uint64_t sni_checksum(uint64_t sum, const void *bytes, size_t size) {
    const unsigned char *p = bytes;
    for (; size; size -= size < 8 ? size : 8, p += 8) {
        uint64_t word = 0;
        memcpy(&word, p, size < 8 ? size : 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 32;
    }
    return sum;
}

#endif
