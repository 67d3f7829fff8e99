/* cli.h - what every part of the command-line program shares: exit codes, errors, text. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "sinter.h"

#include <stdarg.h>

/* Exit codes of every command. */
enum {
    CLI_OK = 0,         /* done */
    CLI_FAILED = 1,     /* a test or a comparison failed */
    CLI_USAGE = 2,      /* wrong options or operands */
    CLI_UNREADABLE = 3, /* the model or an input could not be read */
    CLI_RUN_FAILED = 4  /* the run itself failed, or its results could not be written */
};

/* Prints "sinter: message" on stderr, control characters and broken UTF-8 escaped. */
void cli_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Complains with the error's message and its status name; returns `exit_code`. */
int cli_complain_error(const char *what, const sn_error *err, int exit_code);

/* Fills `err` (may be NULL) and returns `status`. */
sn_status cli_fail(sn_error *err, sn_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "fmt...: " before the message of `err` (may be NULL). */
void cli_fail_context(sn_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Zeroed memory for small things; ends the program with CLI_RUN_FAILED when there is none. */
void *cli_alloc(size_t count, size_t size);
char *cli_strdup(const char *text);

/* ---- Growing text ------------------------------------------------------------------------- */

/* A string that grows; `data` is NUL-terminated or NULL when nothing was ever added. */
typedef struct cli_text {
    char *data;
    size_t length;
    size_t capacity;
} cli_text;

void cli_text_free(cli_text *text);
void cli_text_clear(cli_text *text);
const char *cli_text_str(const cli_text *text); /* "" when empty */
void cli_text_add(cli_text *text, const char *bytes, size_t length);
void cli_text_addf(cli_text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_text_vaddf(cli_text *text, const char *fmt, va_list args);

/* Adds foreign text so that it is safe on a terminal: control characters and bytes that are no
 * UTF-8 become \n, \t or \xNN. */
void cli_text_add_safe(cli_text *text, const char *bytes, size_t length);
void cli_text_add_name(cli_text *text, const char *name); /* the same, of a C string */

/* "1.2 kB", "12 MB"; 1 kB = 1000 bytes. */
void cli_text_add_bytes(cli_text *text, uint64_t bytes);
/* "1,234,567" */
void cli_text_add_count(cli_text *text, uint64_t count);

/* "[1,3,224,224]" */
void cli_text_add_dims(cli_text *text, int rank, const int64_t *dims);

/* An sn_write_fn that appends to the cli_text `ctx`. */
int cli_text_write(void *ctx, const void *bytes, size_t size);

/* Writes text to stdout and empties it; false when stdout refuses. */
bool cli_text_print(cli_text *text);

/* What /proc/self/status says of this process's memory, in bytes: "VmRSS" now, "VmHWM" the most
 * ever; 0 when the system does not tell. */
uint64_t cli_process_bytes(const char *field);

/* Milliseconds of a clock that never goes back. */
double cli_now_ms(void);

#endif
