/* test_cache.c - compiled models in a folder: found again, made anew when they do not fit, and
 * never a reason to fail. */
#include "unit.h"

#include "sinter.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 64 };

static char folder[64], model_path[128];
static int found, written, refused;
static uint64_t limit; /* of the sessions that follow */

static void note(void *ctx, sn_log_level level, const char *text) {
    (void)ctx;
    (void)level;
    found += strstr(text, "found in the cache") != NULL;
    written += strstr(text, "written to the cache") != NULL;
    refused += strstr(text, "not cached") != NULL;
}

static int to_file(void *ctx, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, ctx) != size;
}

/* y = relu(x * W) with weights that depend on `seed`, as a file. */
static void write_model(int seed) {
    static char text[WIDTH * WIDTH * 8 + 1024];
    char *at = text;
    at += sprintf(at,
                  "<ir_version: 8, opset_import: [\"\": 17]>\n"
                  "g (float[N,%d] X) => (float[N,%d] Y) <float[%d,%d] W = {",
                  WIDTH, WIDTH, WIDTH, WIDTH);
    for (int i = 0; i < WIDTH * WIDTH; i++)
        at += sprintf(at, "%s%d", i ? "," : "", (i * seed) % 19 - 9);
    sprintf(at, "}> {\n  a = MatMul(X, W)\n  Y = Relu(a)\n}\n");
    sn_model *model;
    sn_error err = {0};
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    unlink(model_path);
    FILE *f = fopen(model_path, "wb");
    assert_int_equal(sn_model_write(model, SN_FORMAT_ONNX, to_file, f, &err), SN_OK);
    fclose(f);
    sn_model_destroy(model);
}

static sn_model *load(bool from_memory) {
    sn_model *model;
    sn_error err = {0};
    sn_status status;
    if (from_memory) {
        static char bytes[WIDTH * WIDTH * 8];
        FILE *f = fopen(model_path, "rb");
        size_t size = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        status = sn_model_load_memory(bytes, size, NULL, &model, &err);
    } else {
        status = sn_model_load(model_path, NULL, &model, &err);
    }
    if (status != SN_OK) fail_msg("%s", err.message);
    return model;
}

static void run(sn_session *s, float *y) {
    float x[2 * WIDTH];
    sn_error err = {0};
    sn_binding in = {0}, out = {0};
    for (int i = 0; i < 2 * WIDTH; i++) x[i] = (float)(i % 5) - 2;
    sn_tensor_wrap(SN_FLOAT32, 2, (int64_t[]){2, WIDTH}, x, sizeof x, &in.value, &err);
    if (sn_session_run(s, NULL, &in, 1, &out, 1, &err) != SN_OK) fail_msg("%s", err.message);
    memcpy(y, sn_tensor_const_data(out.value), sizeof x);
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
}

/* A session with the cache, run twice; its results are those without. */
static void use(bool from_memory, const char *where, const char *rule) {
    sn_session_options o;
    sn_error err = {0};
    sn_session *plain, *cached;
    float want[2 * WIDTH], got[2 * WIDTH];
    found = written = refused = 0;
    sn_model *model = load(from_memory);
    sn_session_options_init(&o, sizeof o);
    o.disabled_rules = &rule;
    o.disabled_rule_count = rule != NULL;
    assert_int_equal(sn_session_create(model, &o, &plain, &err), SN_OK);
    o.log = note;
    o.cache_folder = where;
    o.cache_limit = limit;
    if (sn_session_create(model, &o, &cached, &err) != SN_OK) fail_msg("%s", err.message);
    run(plain, want);
    for (int i = 0; i < 2; i++) {
        run(cached, got);
        assert_memory_equal(got, want, sizeof got);
    }
    sn_session_destroy(plain);
    sn_session_destroy(cached);
    sn_model_destroy(model);
}

/* Files in the folder; `each` (may be NULL) is called with their paths. */
static int files(void (*each)(const char *path)) {
    int count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[400];
        if (e->d_name[0] == '.' || strcmp(e->d_name, "model.onnx") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (each) each(path);
        count++;
    }
    closedir(d);
    return count;
}

static void remove_file(const char *path) {
    unlink(path);
}

static void cut_file(const char *path) {
    assert_int_equal(truncate(path, 5000), 0);
}

static void break_file(const char *path) {
    FILE *f = fopen(path, "r+b");
    fseek(f, 4096 + 20, SEEK_SET);
    fputc(0x5a, f);
    fclose(f);
}

static uint64_t bytes_seen;

static void add_size(const char *path) {
    struct stat st;
    if (stat(path, &st) == 0) bytes_seen += (uint64_t)st.st_size;
}

static uint64_t total_bytes(void) {
    bytes_seen = 0;
    files(add_size);
    return bytes_seen;
}

static int setup(void **state) {
    (void)state;
    limit = 0;
    strcpy(folder, "/tmp/sinter-cache-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(model_path, sizeof model_path, "%s/model.onnx", folder);
    write_model(7);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    files(remove_file);
    unlink(model_path);
    return rmdir(folder);
}

static void is_written_once_and_found(void **state) {
    (void)state;
    use(false, folder, NULL);
    assert_int_equal(written, 1);
    assert_int_equal(files(NULL), 1);
    use(false, folder, NULL);
    assert_int_equal(found, 1);
    assert_int_equal(written, 0);
    assert_int_equal(files(NULL), 1);
}

static void other_options_and_models_are_others(void **state) {
    (void)state;
    use(false, folder, NULL);
    use(false, folder, "fold-constants");
    assert_int_equal(found, 0);
    assert_int_equal(files(NULL), 2);
    use(true, folder, NULL); /* by its bytes */
    assert_int_equal(found, 0);
    use(true, folder, NULL);
    assert_int_equal(found, 1);
    assert_int_equal(files(NULL), 3);
    write_model(5);
    use(false, folder, NULL);
    assert_int_equal(found, 0);
    use(true, folder, NULL);
    assert_int_equal(found, 0);
    assert_int_equal(files(NULL), 5);
}

static void damage_is_made_good(void **state) {
    (void)state;
    use(false, folder, NULL);
    for (int i = 0; i < 2; i++) {
        files(i ? cut_file : break_file);
        use(false, folder, NULL);
        assert_int_equal(found, 0);
        assert_int_equal(written, 1);
        use(false, folder, NULL);
        assert_int_equal(found, 1);
    }
}

static void what_cannot_be_written_is_not(void **state) {
    (void)state;
    use(false, "/nowhere/at all", NULL);
    assert_int_equal(refused, 1);
    assert_int_equal(files(NULL), 0);
}

static void many_processes_at_once(void **state) {
    (void)state;
    pid_t children[6];
    for (int i = 0; i < 6; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int round = 0; round < 5; round++) {
                use(false, folder, NULL);
                if (i == 0 && round % 2) files(remove_file); /* somebody empties the folder */
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 6; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    use(false, folder, NULL);
    use(false, folder, NULL);
    assert_int_equal(found, 1);
    assert_int_equal(files(NULL), 1); /* nothing half done is left */
}

static void unknown_rules_are_refused(void **state) {
    (void)state;
    const char *rule = "no-such-rule";
    sn_session_options o;
    sn_session *session;
    sn_error err = {0};
    sn_model *model = load(false);
    sn_session_options_init(&o, sizeof o);
    o.cache_folder = folder;
    o.disabled_rules = &rule;
    o.disabled_rule_count = 1;
    assert_int_equal(sn_session_create(model, &o, &session, &err), SN_INVALID_ARGUMENT);
    sn_model_destroy(model);
}

/* Rules whose absence makes other files of the same size. */
static const char *const others[] = {"fold-constants", "dead-code", "identity"};

/* Waits for the next step of the clock that files are dated by; they are some milliseconds long. */
static void wait_for_clock(void) {
    struct timespec before, now;
    clock_gettime(CLOCK_REALTIME_COARSE, &before);
    do {
        sched_yield();
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

static void use_later(const char *rule) {
    wait_for_clock();
    use(false, folder, rule);
}

static void least_recently_used_goes(void **state) {
    (void)state;
    use(false, folder, others[0]);
    limit = total_bytes() * 5 / 2;
    use_later(others[1]);
    use_later(others[0]);
    assert_int_equal(found, 1);
    assert_int_equal(files(NULL), 2);
    use_later(others[2]);
    assert_int_equal(written, 1);
    assert_int_equal(files(NULL), 2);
    assert_true(total_bytes() <= limit);
    use_later(others[0]); /* was used after others[1] */
    assert_int_equal(found, 1);
    use_later(others[2]);
    assert_int_equal(found, 1);
    use_later(others[1]);
    assert_int_equal(found, 0);
    assert_int_equal(files(NULL), 2);
    limit = total_bytes() / 4; /* less than one file */
    write_model(3);
    use_later(others[0]);
    assert_int_equal(refused, 1);
    assert_int_equal(files(NULL), 2);
}

/* A file that leaves while a session has it mapped serves it on. */
static void mapped_files_may_go(void **state) {
    (void)state;
    sn_session_options o;
    sn_session *session;
    float before[2 * WIDTH], after[2 * WIDTH];
    use(false, folder, NULL);
    limit = total_bytes();
    sn_model *model = load(false);
    sn_session_options_init(&o, sizeof o);
    o.cache_folder = folder;
    o.log = note;
    found = 0;
    assert_int_equal(sn_session_create(model, &o, &session, NULL), SN_OK);
    assert_int_equal(found, 1);
    run(session, before);
    use_later(others[0]);
    assert_int_equal(written, 1);
    assert_int_equal(files(NULL), 1);
    wait_for_clock();
    run(session, after);
    assert_memory_equal(before, after, sizeof after);
    sn_session_destroy(session);
    sn_model_destroy(model);
}

static void make_file(const char *name, int age) {
    char path[200];
    const struct timespec old[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    fputs("something", f);
    fclose(f);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static bool exists(const char *name) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void only_its_own_files_go(void **state) {
    (void)state;
    static const char dead[] = "0123456789abcdef0123456789abcdef.sinter.AbCdEf";
    static const char busy[] = "0123456789abcdef0123456789abcdef.sinter.GhIjKl";
    static const char old[] = "0123456789abcdef0123456789abcdee.sinter";
    static const char *const foreign[] = {"notes.txt", "mine.sinter", "0123456789abcdef.sinter"};
    make_file(dead, 7200);
    make_file(busy, 60);
    make_file(old, 7200);
    for (int i = 0; i < 3; i++) make_file(foreign[i], 1000000);
    limit = 1 << 20;
    use(false, folder, NULL);
    assert_int_equal(written, 1);
    assert_false(exists(dead));
    assert_true(exists(busy) && exists(old)); /* there is room */
    limit = 8 + total_bytes() - 5 * 9;        /* the file just written, and not quite `old` */
    use_later(NULL);
    use(false, folder, others[0]);
    assert_int_equal(written, 1);
    assert_true(exists(busy) && !exists(old));
    for (int i = 0; i < 3; i++) assert_true(exists(foreign[i]));
    assert_int_equal(files(NULL), 5);
}

static void many_processes_keep_the_limit(void **state) {
    (void)state;
    pid_t children[6];
    use(false, folder, NULL);
    limit = total_bytes() * 5 / 2;
    for (int i = 0; i < 6; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int round = 0; round < 6; round++) use(false, folder, others[(i + round) % 3]);
            _exit(0);
        }
    }
    for (int i = 0; i < 6; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(files(NULL), 2);
    assert_true(total_bytes() <= limit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_written_once_and_found, setup, teardown),
        cmocka_unit_test_setup_teardown(other_options_and_models_are_others, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_made_good, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(many_processes_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_rules_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(least_recently_used_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(mapped_files_may_go, setup, teardown),
        cmocka_unit_test_setup_teardown(only_its_own_files_go, setup, teardown),
        cmocka_unit_test_setup_teardown(many_processes_keep_the_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
