/* test_mapping.c - opening what may be opened, refusing the rest, and living through a file that
 * shrinks. */
#include "unit.h"

#include "base/mapping.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The guard's signal handler. cmocka puts its own in its place for every test. */
static struct sigaction guard;

static char folder[64];
static char where[4][128];

/* The path of a file in the test's folder; good for four at a time. */
static const char *at(const char *name) {
    static unsigned transpose;
    char *p = where[transpose++ % 4];
    snprintf(p, sizeof where[0], "%s/%s", folder, name);
    return p;
}

static void write_file(const char *name, size_t size, int byte) {
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    for (size_t i = 0; i < size; i++) fputc(byte, f);
    fclose(f);
}

static int setup(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sinter-mapping-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    mkdir(at("sub"), 0700);
    write_file("data", 3 * 4096 + 5, 7);
    write_file("sub/weights", 10, 9);
    write_file("empty", 0, 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void maps_and_copies(void **state) {
    (void)state;
    for (int flags = 0; flags <= SNI_OPEN_COPY; flags++) {
        sni_mapping *m = NULL;
        assert_int_equal(sni_mapping_open(at("data"), flags, &m, NULL), SN_OK);
        assert_int_equal(sni_mapping_size(m), 3 * 4096 + 5);
        assert_int_equal(sni_mapping_bytes(m)[3 * 4096 + 4], 7);
        assert_int_equal(sni_mapping_intact(m, NULL), SN_OK);
        sni_mapping_close(m);
        assert_int_equal(sni_mapping_open(at("empty"), flags, &m, NULL), SN_OK);
        assert_int_equal(sni_mapping_size(m), 0);
        assert_non_null(sni_mapping_bytes(m));
        sni_mapping_close(m);
    }
    sni_mapping_close(NULL);
}

static void refuses_what_is_no_file(void **state) {
    (void)state;
    sn_error err;
    sni_mapping *m = NULL;
    assert_int_equal(sni_mapping_open(at("missing"), 0, &m, &err), SN_NOT_FOUND);
    assert_non_null(strstr(err.message, "missing"));
    assert_int_equal(sni_mapping_open(folder, 0, &m, &err), SN_IO);
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(sni_mapping_open(at("pipe"), 0, &m, &err), SN_IO);
    assert_int_equal(sni_mapping_open("/dev/zero", 0, &m, &err), SN_IO);
    assert_int_equal(sni_mapping_open_beneath(folder, "pipe", 0, &m, &err), SN_IO);
    assert_null(m);
}

static void stays_beneath(void **state) {
    (void)state;
    sn_error err;
    sni_mapping *m = NULL;
    const char *good[] = {"data", "sub/weights", "./sub/./weights", "sub//weights"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(sni_mapping_open_beneath(folder, good[i], 0, &m, &err), SN_OK);
        sni_mapping_close(m);
        m = NULL;
    }
    const char *bad[] = {"/etc/passwd", "../data", "sub/../data", "sub/..", "", ".", "//x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sni_mapping_open_beneath(folder, bad[i], 0, &m, &err), SN_INVALID_MODEL);
    assert_int_equal(sni_mapping_open_beneath(folder, "sub", 0, &m, &err), SN_IO);
    assert_int_equal(sni_mapping_open_beneath(folder, "none", 0, &m, &err), SN_NOT_FOUND);
    assert_null(m);
}

static void links_only_when_allowed(void **state) {
    (void)state;
    sn_error err;
    sni_mapping *m = NULL;
    assert_int_equal(symlink("data", at("soft")), 0);
    assert_int_equal(symlink("sub", at("softdir")), 0);
    assert_int_equal(symlink("/etc/passwd", at("out")), 0);
    const char *soft[] = {"soft", "softdir/weights", "out"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sni_mapping_open_beneath(folder, soft[i], 0, &m, &err), SN_IO);
        assert_non_null(strstr(err.message, "symbolic link"));
        assert_int_equal(sni_mapping_open_beneath(folder, soft[i], SNI_OPEN_ALLOW_LINKS, &m, &err),
                         SN_OK);
        sni_mapping_close(m);
        m = NULL;
    }
    assert_int_equal(link(at("data"), at("hard")), 0);
    assert_int_equal(sni_mapping_open_beneath(folder, "hard", 0, &m, &err), SN_IO);
    assert_non_null(strstr(err.message, "2 names"));
    assert_int_equal(sni_mapping_open_beneath(folder, "hard", SNI_OPEN_ALLOW_LINKS, &m, &err),
                     SN_OK);
    sni_mapping_close(m);
}

static void notices_changes(void **state) {
    (void)state;
    sni_mapping *m = NULL;
    assert_int_equal(sni_mapping_open(at("data"), 0, &m, NULL), SN_OK);
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 2}};
    assert_int_equal(utimensat(AT_FDCWD, at("data"), times, 0), 0);
    assert_int_equal(sni_mapping_intact(m, NULL), SN_IO);
    sni_mapping_close(m);
}

static void *read_shrunk(void *arg) {
    const sni_mapping *m = arg;
    uintptr_t sum = 0;
    const volatile unsigned char *p = sni_mapping_bytes(m);
    for (size_t i = 0; i < sni_mapping_size(m); i++) sum += p[i];
    return (void *)sum;
}

static void survives_shrinking(void **state) {
    (void)state;
    sigaction(SIGBUS, &guard, NULL);
    enum { READERS = 4 };
    sni_mapping *m = NULL, *other = NULL;
    sn_error err;
    assert_int_equal(sni_mapping_open(at("data"), 0, &m, NULL), SN_OK);
    assert_int_equal(sni_mapping_open(at("sub/weights"), 0, &other, NULL), SN_OK);
    assert_int_equal(truncate(at("data"), 4096), 0);
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++) pthread_create(&threads[i], NULL, read_shrunk, m);
    for (int i = 0; i < READERS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        assert_int_equal((uintptr_t)sum, 4096 * 7);
    }
    assert_int_equal(sni_mapping_intact(m, &err), SN_IO);
    assert_non_null(strstr(err.message, "shrank"));
    assert_int_equal(sni_mapping_intact(other, NULL), SN_OK);
    sni_mapping_close(m);
    sni_mapping_close(other);
}

/* A look at every run: missing bytes are told at once, other changes when the clock has moved on.
 */
static void watches(void **state) {
    (void)state;
    sigaction(SIGBUS, &guard, NULL);
    sni_mapping *m = NULL;
    assert_int_equal(sni_mapping_open(at("sub/weights"), 0, &m, NULL), SN_OK);
    assert_int_equal(sni_mapping_watch(m, NULL), SN_OK);
    assert_int_equal(sni_mapping_watch(m, NULL), SN_OK);
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, at("sub/weights"), times, 0), 0);
    sn_status told;
    while ((told = sni_mapping_watch(m, NULL)) == SN_OK) sched_yield(); /* until the clock has */
    assert_int_equal(told, SN_IO);
    sni_mapping_close(m);
    assert_int_equal(sni_mapping_open(at("data"), 0, &m, NULL), SN_OK);
    assert_int_equal(sni_mapping_watch(m, NULL), SN_OK);
    assert_int_equal(truncate(at("data"), 4096), 0);
    read_shrunk(m);
    assert_int_equal(sni_mapping_watch(m, NULL), SN_IO);
    sni_mapping_close(m);
}

static void many_mappings(void **state) {
    (void)state;
    sigaction(SIGBUS, &guard, NULL);
    enum { COUNT = 100 };
    sni_mapping *m[COUNT];
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(sni_mapping_open(at("data"), 0, &m[i], NULL), SN_OK);
    assert_int_equal(truncate(at("data"), 0), 0);
    assert_int_equal(sni_mapping_bytes(m[COUNT - 1])[5000], 0);
    assert_int_equal(sni_mapping_bytes(m[50])[0], 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(sni_mapping_intact(m[i], NULL), SN_IO);
        sni_mapping_close(m[i]);
    }
}

static volatile char *foreign; /* memory of the test's own that faults; NULL: none */

/* A fault at an address that is not ours goes to whoever handled it before. */
static void foreign_faults_pass_through(void **state) {
    (void)state;
    sigaction(SIGBUS, &guard, NULL);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(at("data"), O_RDWR);
        volatile char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
        if (ftruncate(fd, 0) != 0) _exit(1);
        foreign = p;
        (void)p[4096];
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static int earlier_faults;

static void earlier_handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    if (foreign) _exit(42);
    earlier_faults++;
}

static void earlier_handler_is_kept(void **state) {
    (void)state;
    sigaction(SIGBUS, &guard, NULL);
    raise(SIGBUS);
    assert_int_equal(earlier_faults, 1);
}

/* The guard is installed by the first mapping of the process, above a handler that is there. */
static void install_guard(void) {
    sni_mapping *m = NULL;
    struct sigaction action = {.sa_sigaction = earlier_handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    if (sni_mapping_open("/proc/self/exe", 0, &m, NULL) != SN_OK) abort();
    sni_mapping_close(m);
    sigaction(SIGBUS, NULL, &guard);
}

int main(void) {
    install_guard();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(maps_and_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_is_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(stays_beneath, setup, teardown),
        cmocka_unit_test_setup_teardown(links_only_when_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(notices_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(survives_shrinking, setup, teardown),
        cmocka_unit_test_setup_teardown(watches, setup, teardown),
        cmocka_unit_test_setup_teardown(many_mappings, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_faults_pass_through, setup, teardown),
        cmocka_unit_test(earlier_handler_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
