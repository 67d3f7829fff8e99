/* progress.h - a bar on stderr while long work goes on; nothing when stderr is no terminal. */
#ifndef CLI_REPORT_PROGRESS_H
#define CLI_REPORT_PROGRESS_H

#include "cli/cli.h"

typedef struct cli_progress {
    bool shown;
    double last_ms; /* when it was drawn last */
    int width;      /* columns of what stands there now */
} cli_progress;

void cli_progress_start(cli_progress *progress);
/* `done` of `total`, and a short note; draws at most ten times a second. */
void cli_progress_update(cli_progress *progress, double done, double total, const char *note);
/* Wipes the bar, so that other lines may be printed. */
void cli_progress_clear(cli_progress *progress);

#endif
