/* interrupt.c - Ctrl-C (SIGINT) and SIGTERM. */
#include "cli/interrupt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char half[4096]; /* the file to be removed; "": none */
static sn_cancel *token;
static volatile sig_atomic_t came;

static void clean(void) {
    if (half[0]) unlink(half);
}

static void end(int number) {
    clean();
    signal(number, SIG_DFL);
    raise(number);
}

static void stop(int number) {
    if (came) end(number);
    came = 1;
    sn_cancel_trigger(token);
    alarm(1); /* whatever does not hear ends by the default of SIGALRM */
}

/* A signal that is ignored, as nohup does it, stays so. */
static void handle(void (*handler)(int)) {
    static const int numbers[] = {SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = handler}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
    }
}

void cli_interrupt_removes(const char *path) {
    static bool registered;
    if (!registered) registered = atexit(clean) == 0;
    handle(SIG_DFL); /* while the name changes */
    half[0] = 0;
    if (!path || strlen(path) >= sizeof half) return;
    strcpy(half, path);
    handle(end);
}

sn_cancel *cli_interrupt_catch(void) {
    came = 0;
    if (sn_cancel_create(&token, NULL) != SN_OK) return NULL;
    handle(stop);
    return token;
}

bool cli_interrupt_release(void) {
    handle(SIG_DFL);
    alarm(0);
    sn_cancel_destroy(token);
    token = NULL;
    return came;
}
