/* text.c - growing text, safe printing of foreign names, and errors. */
#include "cli/cli.h"

#include "common/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *cli_alloc(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory) {
        fputs("sinter: out of memory\n", stderr);
        exit(CLI_RUN_FAILED);
    }
    return memory;
}

char *cli_strdup(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(cli_alloc(size, 1), text, size);
}

double cli_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- Growing text ------------------------------------------------------------------------- */

static void reserve(cli_text *text, size_t more) {
    if (more < text->capacity - text->length) return;
    size_t capacity = text->capacity ? text->capacity : 128;
    while (capacity && capacity - text->length <= more) capacity *= 2;
    char *data = capacity ? realloc(text->data, capacity) : NULL;
    if (!data) {
        fputs("sinter: out of memory\n", stderr);
        exit(CLI_RUN_FAILED);
    }
    text->data = data;
    text->capacity = capacity;
}

void cli_text_free(cli_text *text) {
    free(text->data);
    *text = (cli_text){0};
}

void cli_text_clear(cli_text *text) {
    text->length = 0;
    if (text->data) text->data[0] = 0;
}

const char *cli_text_str(const cli_text *text) {
    return text->data ? text->data : "";
}

void cli_text_add(cli_text *text, const char *bytes, size_t length) {
    reserve(text, length);
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

void cli_text_vaddf(cli_text *text, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (length < 0) return;
    reserve(text, (size_t)length);
    vsnprintf(text->data + text->length, (size_t)length + 1, fmt, args);
    text->length += (size_t)length;
}

void cli_text_addf(cli_text *text, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    cli_text_vaddf(text, fmt, args);
    va_end(args);
}

void cli_text_add_safe(cli_text *text, const char *bytes, size_t length) {
    for (size_t at = 0; at < length;) {
        size_t step = co_utf8_length(bytes + at, length - at);
        unsigned char c = (unsigned char)bytes[at];
        bool c1 = step == 2 && c == 0xC2 && (unsigned char)bytes[at + 1] < 0xA0;
        if (step > 0 && c >= 0x20 && c != 0x7F && !c1) {
            cli_text_add(text, bytes + at, step);
            at += step;
            continue;
        }
        if (c == '\n') {
            cli_text_add(text, "\\n", 2);
        } else if (c == '\t') {
            cli_text_add(text, "\\t", 2);
        } else {
            cli_text_addf(text, "\\x%02x", c);
        }
        at++;
    }
}

void cli_text_add_name(cli_text *text, const char *name) {
    cli_text_add_safe(text, name, strlen(name));
}

void cli_text_add_bytes(cli_text *text, uint64_t bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double amount = (double)bytes;
    int unit = 0;
    while (amount >= 999.5) {
        amount /= 1000;
        unit++;
    }
    cli_text_addf(text, unit > 0 && amount < 9.95 ? "%.1f %s" : "%.0f %s", amount, units[unit]);
}

void cli_text_add_count(cli_text *text, uint64_t count) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) cli_text_add(text, ",", 1);
        cli_text_add(text, &digits[i], 1);
    }
}

void cli_text_add_dims(cli_text *text, int rank, const int64_t *dims) {
    cli_text_add(text, "[", 1);
    for (int i = 0; i < rank; i++) {
        cli_text_addf(text, i ? ",%lld" : "%lld", (long long)dims[i]);
    }
    cli_text_add(text, "]", 1);
}

int cli_text_write(void *ctx, const void *bytes, size_t size) {
    cli_text_add(ctx, bytes, size);
    return 0;
}

bool cli_text_print(cli_text *text) {
    bool ok = fwrite(cli_text_str(text), 1, text->length, stdout) == text->length;
    cli_text_clear(text);
    return ok;
}

/* ---- Errors ------------------------------------------------------------------------------- */

void cli_complain(const char *fmt, ...) {
    cli_text raw = {0}, safe = {0};
    va_list args;
    va_start(args, fmt);
    cli_text_vaddf(&raw, fmt, args);
    va_end(args);
    cli_text_add_safe(&safe, cli_text_str(&raw), raw.length);
    fprintf(stderr, "sinter: %s\n", cli_text_str(&safe));
    cli_text_free(&raw);
    cli_text_free(&safe);
}

int cli_complain_error(const char *what, const sn_error *err, int exit_code) {
    const char *message = err->message[0] ? err->message : sn_status_name(err->status);
    if (what) {
        cli_complain("%s: %s", what, message);
    } else {
        cli_complain("%s", message);
    }
    return exit_code;
}

sn_status cli_fail(sn_error *err, sn_status status, const char *fmt, ...) {
    if (!err) return status;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    err->status = status;
    return status;
}

void cli_fail_context(sn_error *err, const char *fmt, ...) {
    if (!err) return;
    cli_text whole = {0};
    va_list args;
    va_start(args, fmt);
    cli_text_vaddf(&whole, fmt, args);
    va_end(args);
    cli_text_addf(&whole, ": %s", err->message);
    snprintf(err->message, sizeof err->message, "%s", cli_text_str(&whole));
    cli_text_free(&whole);
}

uint64_t cli_process_bytes(const char *field) {
    FILE *file = fopen("/proc/self/status", "re");
    unsigned long long kilobytes = 0;
    char line[256];
    size_t length = strlen(field);
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, field, length) == 0 && line[length] == ':' &&
            sscanf(line + length + 1, "%llu", &kilobytes) == 1) {
            break;
        }
    }
    if (file) fclose(file);
    return kilobytes * 1024;
}
