/* file.c - whole files, read with a limit and written in one go. */
#include "cli/formats/file.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sn_status read_all(int fd, size_t limit, size_t guess, char **bytes, size_t *size,
                          sn_error *err) {
    size_t capacity = guess + 1, length = 0;
    char *data = malloc(capacity);
    while (data) {
        ssize_t got = read(fd, data + length, capacity - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(data);
            return cli_fail(err, SN_IO, "cannot read: %s", strerror(errno));
        }
        length += (size_t)got;
        if (length > limit) {
            free(data);
            return cli_fail(err, SN_LIMIT, "is larger than %zu bytes", limit);
        }
        if (got == 0 && length < capacity) {
            data[length] = 0;
            *bytes = data;
            *size = length;
            return SN_OK;
        }
        if (length == capacity) {
            char *bigger = realloc(data, capacity * 2);
            if (!bigger) free(data);
            data = bigger;
            capacity *= 2;
        }
    }
    return cli_fail(err, SN_NO_MEMORY, "no memory for %zu bytes", capacity);
}

sn_status cli_read_file(const char *path, size_t limit, char **bytes, size_t *size, sn_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return cli_fail(err, errno == ENOENT ? SN_NOT_FOUND : SN_IO, "%s: cannot open: %s", path,
                        strerror(errno));
    }
    struct stat info;
    sn_status status = SN_OK;
    if (fstat(fd, &info) != 0) {
        status = cli_fail(err, SN_IO, "%s", strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        status = cli_fail(err, SN_IO, "is a folder, not a file");
    } else if (info.st_size > 0 && (uint64_t)info.st_size > limit) {
        status = cli_fail(err, SN_LIMIT, "has %lld bytes, more than the limit of %zu",
                          (long long)info.st_size, limit);
    } else {
        status = read_all(fd, limit, (size_t)info.st_size, bytes, size, err);
    }
    if (status != SN_OK) cli_fail_context(err, "%s", path);
    close(fd);
    return status;
}

sn_status cli_output_open(cli_output *output, const char *path, sn_error *err) {
    size_t size = strlen(path) + 32;
    char *part = cli_alloc(size, 1);
    snprintf(part, size, "%s.part%ld", path, (long)getpid());
    char *kept = cli_strdup(path);
    FILE *stream = fopen(part, "wbe");
    if (!stream) {
        int reason = errno;
        free(kept);
        free(part);
        return cli_fail(err, SN_IO, "%s: cannot write: %s", path, strerror(reason));
    }
    *output = (cli_output){.stream = stream, .path = kept, .part = part};
    cli_interrupt_removes(part);
    return SN_OK;
}

sn_status cli_output_close(cli_output *output, bool keep, sn_error *err) {
    bool good = !ferror(output->stream);
    if (fclose(output->stream) != 0) good = false;
    sn_status status = SN_OK;
    if (keep && (!good || rename(output->part, output->path) != 0)) {
        status = cli_fail(err, SN_IO, "%s: cannot write: %s", output->path, strerror(errno));
    }
    if (!keep || status != SN_OK) unlink(output->part);
    cli_interrupt_removes(NULL);
    free(output->path);
    free(output->part);
    *output = (cli_output){0};
    return status;
}

int cli_stream_write(void *ctx, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, ctx) == size ? 0 : -1;
}

sn_status cli_write_file(const char *path, const void *bytes, size_t size, sn_error *err) {
    cli_output output;
    sn_status status = cli_output_open(&output, path, err);
    if (status != SN_OK) return status;
    bool whole = cli_stream_write(output.stream, bytes, size) == 0;
    if (!whole) status = cli_fail(err, SN_IO, "%s: cannot write: %s", path, strerror(errno));
    sn_status closed = cli_output_close(&output, whole, whole ? err : NULL);
    return whole ? closed : status;
}

char *cli_path_join(const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    size_t size = length + strlen(name) + 2;
    char *path = cli_alloc(size, 1);
    snprintf(path, size, "%s%s%s", folder, slash, name);
    return path;
}

const char *cli_path_extension(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot + 1 : "";
}
