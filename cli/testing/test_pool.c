/* test_pool.c - runs test cases in processes of their own, several at once, each with a deadline.
 */
#include "cli/testing/test_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE_LIMIT 65536
#define STDERR_SHOWN 4000

/* One running case. Its process sends a byte (the verdict) and the message through a pipe, which
 * ends when the process does. */
typedef struct job {
    cli_test *test; /* NULL: free */
    pid_t pid;
    int pipe;
    int log; /* memory file with what the case wrote to stderr */
    double start;
    bool killed;
    cli_text received;
} job;

static void write_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        bytes += wrote;
        size -= (size_t)wrote;
    }
}

/* The child's whole life. Ends through exit() so that leak checkers have their say. */
_Noreturn static void run_child(const cli_test *test, const cli_case_options *options, int result,
                                int log, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CLI_RUN_FAILED);
    setpgid(0, 0);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (log >= 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
    }
    cli_text message = {0};
    char verdict = (char)cli_case_run(test->folder, options, &message);
    if (message.length > MESSAGE_LIMIT) message.length = MESSAGE_LIMIT;
    write_all(result, &verdict, 1);
    write_all(result, cli_text_str(&message), message.length);
    cli_text_free(&message);
    exit(0);
}

static sn_status start_case(job *slot, cli_test *test, const cli_case_options *options,
                            sn_error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return cli_fail(err, SN_IO, "cannot make a pipe: %s", strerror(errno));
    }
    int log = memfd_create("sinter-test-log", MFD_CLOEXEC);
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_child(test, options, ends[1], log, parent);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        if (log >= 0) close(log);
        return cli_fail(err, SN_IO, "cannot start a process: %s", strerror(errno));
    }
    slot->test = test;
    slot->pid = pid;
    slot->pipe = ends[0];
    slot->log = log;
    slot->start = cli_now_ms();
    slot->killed = false;
    return SN_OK;
}

/* Adds the first part of what the case wrote to stderr. */
static void add_log(int log, cli_text *message) {
    char text[STDERR_SHOWN];
    ssize_t got = log >= 0 ? pread(log, text, sizeof text, 0) : 0;
    for (ssize_t at = 0; at < got;) {
        char *end = memchr(text + at, '\n', (size_t)(got - at));
        size_t length = end ? (size_t)(end - text - at) : (size_t)(got - at);
        cli_text_add(message, "\n", 1);
        cli_text_add_safe(message, text + at, length);
        at += (ssize_t)length + 1;
    }
}

/* Decides the verdict of a case whose process has ended. */
static void judge(job *slot, int status, const cli_pool_options *options) {
    cli_test *test = slot->test;
    cli_text message = {0};
    test->verdict = CLI_FAILED_CASE;
    if (slot->killed) {
        cli_text_addf(&message, "timeout: not done after %g s", options->timeout_ms / 1e3);
    } else if (WIFSIGNALED(status)) {
        cli_text_addf(&message, "crashed: signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
        add_log(slot->log, &message);
    } else if (WEXITSTATUS(status) != 0 || slot->received.length == 0) {
        cli_text_addf(&message, "the test process ended with exit code %d", WEXITSTATUS(status));
        add_log(slot->log, &message);
    } else {
        test->verdict = (cli_verdict)slot->received.data[0];
        cli_text_add(&message, slot->received.data + 1, slot->received.length - 1);
    }
    if (test->verdict != CLI_PASSED) test->message = cli_strdup(cli_text_str(&message));
    cli_text_free(&message);
}

static void end_case(job *slot, const cli_pool_options *options) {
    int status = 0;
    while (waitpid(slot->pid, &status, 0) < 0 && errno == EINTR) {
    }
    slot->test->milliseconds = cli_now_ms() - slot->start;
    judge(slot, status, options);
    slot->test->done = true;
    close(slot->pipe);
    if (slot->log >= 0) close(slot->log);
    cli_text_clear(&slot->received);
    cli_test *test = slot->test;
    slot->test = NULL;
    options->on_done(options->ctx, test);
}

/* Takes what the case sent; true when its process has closed the pipe by ending. */
static bool receive(job *slot) {
    char bytes[4096];
    ssize_t got = read(slot->pipe, bytes, sizeof bytes);
    if (got < 0) return errno != EINTR && errno != EAGAIN;
    if (got > 0 && slot->received.length <= MESSAGE_LIMIT) {
        cli_text_add(&slot->received, bytes, (size_t)got);
    }
    return got == 0;
}

/* Waits for any running case to say something or to pass its deadline. */
static void wait_for_news(job *slots, int jobs, const cli_pool_options *options) {
    struct pollfd *polled = cli_alloc((size_t)jobs, sizeof *polled);
    double now = cli_now_ms(), nearest = 1000;
    for (int i = 0; i < jobs; i++) {
        polled[i] = (struct pollfd){.fd = slots[i].test ? slots[i].pipe : -1, .events = POLLIN};
        if (!slots[i].test || slots[i].killed) continue;
        double left = slots[i].start + options->timeout_ms - now;
        if (left < nearest) nearest = left > 0 ? left : 0;
    }
    poll(polled, (nfds_t)jobs, (int)nearest + 1);
    now = cli_now_ms();
    for (int i = 0; i < jobs; i++) {
        if (!slots[i].test) continue;
        if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) && receive(&slots[i])) {
            end_case(&slots[i], options);
        } else if (!slots[i].killed && now - slots[i].start > options->timeout_ms) {
            slots[i].killed = true;
            kill(slots[i].pid, SIGKILL);
        }
    }
    free(polled);
}

sn_status cli_pool_run(cli_test *tests, size_t count, const cli_pool_options *options,
                       sn_error *err) {
    int jobs = options->jobs;
    job *slots = cli_alloc((size_t)jobs, sizeof *slots);
    size_t started = 0;
    sn_status status = SN_OK;
    for (;;) {
        int running = 0;
        for (int i = 0; i < jobs; i++) {
            if (!slots[i].test && started < count && status == SN_OK) {
                status = start_case(&slots[i], &tests[started], &options->case_options, err);
                if (status == SN_OK) started++;
            }
            running += slots[i].test != NULL;
        }
        if (running == 0) break;
        wait_for_news(slots, jobs, options);
    }
    for (int i = 0; i < jobs; i++) cli_text_free(&slots[i].received);
    free(slots);
    return status;
}
