/* progress.c - a bar on stderr while long work goes on; nothing when stderr is no terminal. */
#include "cli/report/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR 30

void cli_progress_start(cli_progress *progress) {
    const char *term = getenv("TERM");
    *progress = (cli_progress){.shown = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0};
}

void cli_progress_update(cli_progress *progress, double done, double total, const char *note) {
    double now = cli_now_ms();
    if (!progress->shown || now - progress->last_ms < 100) return;
    progress->last_ms = now;
    double part = total > 0 ? done / total : 0;
    if (part > 1) part = 1;
    int filled = (int)(part * BAR);
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++) bar[i] = i < filled ? '#' : '.';
    bar[BAR] = 0;
    int width = fprintf(stderr, "\r[%s] %3d%% %.40s", bar, (int)(part * 100), note) - 1;
    if (progress->width > width) fprintf(stderr, "%*s", progress->width - width, "");
    progress->width = width;
    fflush(stderr);
}

void cli_progress_clear(cli_progress *progress) {
    if (!progress->shown || progress->width == 0) return;
    fprintf(stderr, "\r%*s\r", progress->width, "");
    fflush(stderr);
    progress->width = 0;
    progress->last_ms = 0;
}
