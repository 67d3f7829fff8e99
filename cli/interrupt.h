/* interrupt.h - Ctrl-C (SIGINT) and SIGTERM end a command at once; files half written go, and what
 * was measured so far can be shown. One thread uses this. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include "cli/cli.h"

#include <stdbool.h>

/* The file that a signal, or exit(), removes on its way out; NULL: none. The path is copied; one
 * that is very long is left alone. */
void cli_interrupt_removes(const char *path);

/* From here on the first signal only triggers the token, for runs of a measurement; the process
 * ends all the same if it is there a second later, or at the second signal. NULL without memory:
 * signals end the process at once. */
sn_cancel *cli_interrupt_catch(void);
/* Signals end the process again. Returns whether one came; the token is gone. */
bool cli_interrupt_release(void);

/* The exit code of a command that was interrupted and has shown what there was. */
enum { CLI_INTERRUPTED = 130 };

#endif
