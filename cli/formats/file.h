/* file.h - whole files, read with a limit and written in one go. */
#ifndef CLI_FORMATS_FILE_H
#define CLI_FORMATS_FILE_H

#include "cli/cli.h"

#include <stdio.h>

/* The largest input file that is read into memory. */
#define CLI_FILE_LIMIT ((size_t)1 << 33)

/* Reads a regular file (or a pipe such as /dev/stdin) of at most `limit` bytes. `*bytes` is the
 * caller's to free(), never NULL, and is followed by a NUL that `*size` does not count. */
sn_status cli_read_file(const char *path, size_t limit, char **bytes, size_t *size, sn_error *err);

/* A file that takes its name only when it is whole. */
typedef struct cli_output {
    FILE *stream;
    char *path;
    char *part; /* the name while it is written */
} cli_output;

sn_status cli_output_open(cli_output *output, const char *path, sn_error *err);
/* Renames the file to its name; removes it when any write failed or `keep` is false. */
sn_status cli_output_close(cli_output *output, bool keep, sn_error *err);

/* An sn_write_fn for a FILE * as `ctx`. */
int cli_stream_write(void *ctx, const void *bytes, size_t size);

/* Writes `size` bytes to a file of this name. */
sn_status cli_write_file(const char *path, const void *bytes, size_t size, sn_error *err);

/* "folder/name"; the caller frees it. */
char *cli_path_join(const char *folder, const char *name);
/* The part after the last dot of the last component, or "". Borrowed. */
const char *cli_path_extension(const char *path);

#endif
