/* npz.h - numpy's .npz: a ZIP archive of .npy members, stored or deflated. */
#ifndef CLI_FORMATS_NPZ_H
#define CLI_FORMATS_NPZ_H

#include "cli/cli.h"

typedef struct cli_npz_member {
    char *name; /* without ".npy" */
    size_t offset;
    size_t packed;
    size_t size;
    uint32_t crc;
    unsigned method;
} cli_npz_member;

typedef struct cli_npz {
    const char *bytes; /* the caller's, for as long as the archive is used */
    size_t size;
    cli_npz_member *members;
    size_t count;
} cli_npz;

/* Reads the directory of an archive. The caller frees it with cli_npz_close. */
sn_status cli_npz_open(const char *bytes, size_t size, cli_npz *out, sn_error *err);
void cli_npz_close(cli_npz *npz);
/* The member of this name, or NULL. Borrowed. */
const cli_npz_member *cli_npz_find(const cli_npz *npz, const char *name);
/* Unpacks a member and reads it as a tensor. Owned. */
sn_status cli_npz_read(const cli_npz *npz, const cli_npz_member *member, sn_value **out,
                       sn_error *err);

#endif
