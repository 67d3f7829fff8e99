/* npz.c - numpy's .npz: a ZIP archive of .npy members, stored or deflated. */
#include "cli/formats/npz.h"
#include "cli/formats/npy.h"

#include <stdlib.h>
#include <string.h>
#ifdef SINTER_HAVE_ZLIB
#include <zlib.h>
#endif

#define MAX_MEMBERS 65536
#define MAX_RATIO 1040 /* deflate never grows more than about 1032 times */

static uint64_t little(const char *at, int bytes) {
    uint64_t number = 0;
    for (int i = bytes - 1; i >= 0; i--) number = number << 8 | (unsigned char)at[i];
    return number;
}

/* Where the central directory lies. */
typedef struct directory {
    uint64_t offset;
    uint64_t size;
    uint64_t count;
} directory;

/* The 64-bit end record that lies before the plain one at `end`, if there is one. */
static void widen_directory(const char *bytes, size_t size, size_t end, directory *out) {
    if (end < 20 || memcmp(bytes + end - 20, "PK\x06\x07", 4) != 0) return;
    uint64_t at = little(bytes + end - 12, 8);
    if (at > size || size - at < 56 || memcmp(bytes + at, "PK\x06\x06", 4) != 0) return;
    out->count = little(bytes + at + 32, 8);
    out->size = little(bytes + at + 40, 8);
    out->offset = little(bytes + at + 48, 8);
}

static sn_status find_directory(const char *bytes, size_t size, directory *out, sn_error *err) {
    size_t lowest = size > 65557 ? size - 65557 : 0;
    for (size_t end = size < 22 ? 0 : size - 22; size >= 22; end--) {
        if (memcmp(bytes + end, "PK\x05\x06", 4) == 0 &&
            little(bytes + end + 20, 2) == size - end - 22) {
            out->count = little(bytes + end + 10, 2);
            out->size = little(bytes + end + 12, 4);
            out->offset = little(bytes + end + 16, 4);
            widen_directory(bytes, size, end, out);
            if (out->offset > end || out->size > end - out->offset || out->count > MAX_MEMBERS) {
                return cli_fail(err, SN_MALFORMED, ".npz directory lies outside the file");
            }
            return SN_OK;
        }
        if (end == lowest) break;
    }
    return cli_fail(err, SN_MALFORMED, "not a .npz file: no ZIP directory at its end");
}

/* Sizes that do not fit 32 bits stand in an extra field, in this order. */
static void widen_sizes(const char *extra, size_t length, uint64_t *size, uint64_t *packed,
                        uint64_t *offset) {
    for (size_t at = 0; length - at >= 4;) {
        size_t id = little(extra + at, 2), bytes = little(extra + at + 2, 2);
        if (bytes > length - at - 4) return;
        if (id == 1) {
            uint64_t *const fields[] = {size, packed, offset};
            size_t from = at + 4, end = from + bytes;
            for (int i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX || end - from < 8) continue;
                *fields[i] = little(extra + from, 8);
                from += 8;
            }
        }
        at += 4 + bytes;
    }
}

/* Where the bytes of the member whose local header is at `at` begin; 0 when nowhere. */
static size_t data_start(const char *bytes, size_t size, uint64_t at) {
    if (at > size || size - at < 30 || memcmp(bytes + at, "PK\x03\x04", 4) != 0) return 0;
    uint64_t start = at + 30 + little(bytes + at + 26, 2) + little(bytes + at + 28, 2);
    return start <= size ? (size_t)start : 0;
}

static char *member_name(const char *text, size_t length) {
    if (length >= 4 && memcmp(text + length - 4, ".npy", 4) == 0) length -= 4;
    char *name = cli_alloc(length + 1, 1);
    if (length) memcpy(name, text, length);
    return name;
}

/* Reads the directory entry at `*at` and moves on to the next. */
static sn_status read_entry(cli_npz *npz, size_t *at, size_t end, sn_error *err) {
    const char *entry = npz->bytes + *at;
    if (end - *at < 46 || memcmp(entry, "PK\x01\x02", 4) != 0) {
        return cli_fail(err, SN_MALFORMED, ".npz directory entry %zu is broken", npz->count);
    }
    size_t name = little(entry + 28, 2), extra = little(entry + 30, 2);
    size_t length = 46 + name + extra + little(entry + 32, 2);
    if (length > end - *at) {
        return cli_fail(err, SN_MALFORMED, ".npz directory entry %zu is cut short", npz->count);
    }
    uint64_t packed = little(entry + 20, 4), size = little(entry + 24, 4);
    uint64_t offset = little(entry + 42, 4);
    widen_sizes(entry + 46 + name, extra, &size, &packed, &offset);
    if (memchr(entry + 46, 0, name)) {
        return cli_fail(err, SN_MALFORMED, ".npz member name holds NUL");
    }
    *at += length;
    if (name > 0 && entry[46 + name - 1] == '/') return SN_OK; /* a folder */
    if (little(entry + 8, 2) & 1) return cli_fail(err, SN_UNSUPPORTED, ".npz member is encrypted");
    size_t start = data_start(npz->bytes, npz->size, offset);
    if (start == 0 || packed > npz->size - start) {
        return cli_fail(err, SN_MALFORMED, ".npz member %zu lies outside the file", npz->count);
    }
    npz->members[npz->count++] = (cli_npz_member){.name = member_name(entry + 46, name),
                                                  .offset = start,
                                                  .packed = (size_t)packed,
                                                  .size = (size_t)size,
                                                  .crc = (uint32_t)little(entry + 16, 4),
                                                  .method = (unsigned)little(entry + 10, 2)};
    return SN_OK;
}

sn_status cli_npz_open(const char *bytes, size_t size, cli_npz *out, sn_error *err) {
    directory where = {0};
    sn_status status = find_directory(bytes, size, &where, err);
    if (status != SN_OK) return status;
    cli_npz npz = {.bytes = bytes, .size = size};
    npz.members = cli_alloc((size_t)where.count, sizeof *npz.members);
    size_t at = (size_t)where.offset, end = at + (size_t)where.size;
    for (uint64_t i = 0; i < where.count && status == SN_OK; i++) {
        status = read_entry(&npz, &at, end, err);
    }
    if (status != SN_OK) {
        cli_npz_close(&npz);
        return status;
    }
    *out = npz;
    return SN_OK;
}

void cli_npz_close(cli_npz *npz) {
    for (size_t i = 0; i < npz->count; i++) free(npz->members[i].name);
    free(npz->members);
    *npz = (cli_npz){0};
}

const cli_npz_member *cli_npz_find(const cli_npz *npz, const char *name) {
    for (size_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->members[i].name, name) == 0) return &npz->members[i];
    }
    return NULL;
}

#ifdef SINTER_HAVE_ZLIB
static sn_status inflate_member(const char *source, const cli_npz_member *member, char *to,
                                sn_error *err) {
    z_stream stream = {0};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return cli_fail(err, SN_NO_MEMORY, "no memory to unpack");
    }
    size_t in_left = member->packed, out_left = member->size;
    int result = Z_OK;
    stream.next_in = (Bytef *)(uintptr_t)source;
    stream.next_out = (Bytef *)to;
    while (result == Z_OK) {
        uInt in_now = in_left < (1u << 30) ? (uInt)in_left : 1u << 30;
        uInt out_now = out_left < (1u << 30) ? (uInt)out_left : 1u << 30;
        stream.avail_in = in_now;
        stream.avail_out = out_now;
        result = inflate(&stream, Z_NO_FLUSH);
        in_left -= in_now - stream.avail_in;
        out_left -= out_now - stream.avail_out;
    }
    inflateEnd(&stream);
    if (result != Z_STREAM_END || out_left != 0 || in_left != 0) {
        return cli_fail(err, SN_MALFORMED, "deflated data is broken");
    }
    return SN_OK;
}

static bool checksum_fits(const char *bytes, const cli_npz_member *member) {
    uLong crc = crc32(0, NULL, 0);
    for (size_t at = 0; at < member->size;) {
        size_t left = member->size - at;
        uInt step = left < (1u << 30) ? (uInt)left : 1u << 30;
        crc = crc32(crc, (const Bytef *)bytes + at, step);
        at += step;
    }
    return crc == member->crc;
}
#else
static sn_status inflate_member(const char *source, const cli_npz_member *member, char *to,
                                sn_error *err) {
    (void)source, (void)member, (void)to;
    return cli_fail(err, SN_UNSUPPORTED, "this build cannot unpack deflated members");
}

static bool checksum_fits(const char *bytes, const cli_npz_member *member) {
    (void)bytes, (void)member;
    return true;
}
#endif

static sn_status unpack(const cli_npz *npz, const cli_npz_member *member, char **out,
                        sn_error *err) {
    const char *source = npz->bytes + member->offset;
    if (member->method != 0 && member->method != 8) {
        return cli_fail(err, SN_UNSUPPORTED, "packing method %u is not known", member->method);
    }
    bool sane = member->method == 0 ? member->size == member->packed
                                    : member->size / MAX_RATIO <= member->packed;
    if (!sane) {
        return cli_fail(err, SN_MALFORMED, "claims %zu bytes but is packed in %zu", member->size,
                        member->packed);
    }
    char *bytes = malloc(member->size + 1);
    if (!bytes) return cli_fail(err, SN_NO_MEMORY, "no memory for %zu bytes", member->size);
    sn_status status = SN_OK;
    if (member->method == 0) {
        memcpy(bytes, source, member->size);
    } else {
        status = inflate_member(source, member, bytes, err);
    }
    if (status == SN_OK && !checksum_fits(bytes, member)) {
        status = cli_fail(err, SN_MALFORMED, "checksum does not fit");
    }
    if (status == SN_OK) {
        *out = bytes;
    } else {
        free(bytes);
    }
    return status;
}

sn_status cli_npz_read(const cli_npz *npz, const cli_npz_member *member, sn_value **out,
                       sn_error *err) {
    char *bytes = NULL;
    sn_status status = unpack(npz, member, &bytes, err);
    if (status == SN_OK) status = cli_npy_read(bytes, member->size, out, err);
    if (status != SN_OK) cli_fail_context(err, "member '%s'", member->name);
    free(bytes);
    return status;
}
