/* robust.c LIBRARY MODELS [CYCLES [SECONDS]] - wrong calls, many cycles, many threads, fork and
 * exit.
 *
 * Every function of the table is called with nothing but NULL and 0; sessions are made, run and
 * released CYCLES times with a flat memory; sessions keep compiled models in a folder as far as its
 * limit allows; 8 threads share a session for SECONDS; a child runs what its parent loaded; and the
 * process ends while runs are in flight. */
#include "client.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static OrtEnv *env;
static OrtMemoryInfo *cpu;
static OrtAllocator *heap;
static const char *models;

/* ---- NULL for everything ---- */

typedef struct slot {
    const char *name, *ret;
} slot;

static const slot slots[] = {
#define ORT_SLOT(since, ret, name, parameters, arguments) {#name, #ret},
#define ORT_STUB ORT_SLOT
#include "ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB
};

typedef void *(*any_fn)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                        void *, void *, void *);

/* Pointers and numbers alike are 0: that is how they are passed where this test runs. */
static void test_null(void) {
    any_fn functions[ORT_SLOT_COUNT];
    int refused_count = 0, absent = 0;
    memcpy(functions, ort, sizeof functions);
    for (int i = 0; i < ORT_SLOT_COUNT; i++) {
        if (strcmp(slots[i].name, "CreateStatus") == 0) continue;
        void *result = functions[i](0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        if (strcmp(slots[i].ret, "OrtStatusPtr") != 0 || !result) continue;
        OrtErrorCode code = ort->GetErrorCode(result);
        const char *text = ort->GetErrorMessage(result);
        if (!*text) die(slots[i].name, "refused without a word");
        if (code == ORT_NOT_IMPLEMENTED && !strstr(text, slots[i].name))
            die(slots[i].name, "not implemented, but its message does not name it");
        refused_count += code == ORT_INVALID_ARGUMENT;
        absent += code == ORT_NOT_IMPLEMENTED;
        ort->ReleaseStatus(result);
    }
    printf("NULL: %d functions refuse it, %d are not there\n", refused_count, absent);
    CHECK(refused_count > 200);
}

/* ---- Sessions ---- */

static OrtStatus *create_mlp(const OrtSessionOptions *options, OrtSession **session) {
    char path[1024];
    snprintf(path, sizeof path, "%s/mlp.onnx", models);
    return ort->CreateSession(env, path, options, session);
}

static OrtSession *open_mlp(void) {
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    MUST(CreateSessionOptions(&options));
    must(create_mlp(options, &session), "CreateSession");
    ort->ReleaseSessionOptions(options);
    return session;
}

static void run_mlp(OrtSession *session, int64_t rows) {
    float x[8 * 8];
    int64_t dims[2] = {rows, 8};
    for (int i = 0; i < 64; i++) x[i] = (float)((i * 37 + 11) % 17) / 8 - 1;
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    OrtValue *in = NULL, *out = NULL;
    MUST(CreateTensorWithDataAsOrtValue(cpu, x, (size_t)rows * 8 * sizeof *x, dims, 2,
                                        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in));
    must(ort->Run(session, NULL, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out),
         "Run");
    float *y = NULL;
    MUST(GetTensorMutableData(out, (void **)&y));
    CHECK(y[0] > 4.94f && y[0] < 4.95f);
    ort->ReleaseValue(in);
    ort->ReleaseValue(out);
}

/* Wrong kinds of values, where a tensor is wanted, and the other way round. */
static void test_kinds(void) {
    float x[2] = {1, 2};
    int64_t dims[1] = {2};
    OrtValue *tensor = NULL, *sequence = NULL, *out = NULL;
    MUST(CreateTensorWithDataAsOrtValue(cpu, x, sizeof x, dims, 1,
                                        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &tensor));
    MUST(CreateValue((const OrtValue *const *)&tensor, 1, ONNX_TYPE_SEQUENCE, &sequence));
    void *data = NULL;
    size_t n = 0;
    OrtTensorTypeAndShapeInfo *info = NULL;
    const OrtMemoryInfo *memory = NULL;
    OrtStatus *wrong[] = {
        ort->GetTensorMutableData(sequence, &data),
        ort->GetTensorTypeAndShape(sequence, &info),
        ort->GetTensorMemoryInfo(sequence, &memory),
        ort->GetStringTensorDataLength(tensor, &n),
        ort->GetStringTensorElementLength(sequence, 0, &n),
        ort->FillStringTensorElement(tensor, "x", 0),
        ort->GetValueCount(tensor, &n),
        ort->GetValue(sequence, 1, heap, &out),
        ort->GetValue(sequence, -1, heap, &out),
        ort->TensorAt(tensor, dims, 1, &data),
        ort->CreateValue((const OrtValue *const *)&tensor, 1, ONNX_TYPE_MAP, &out),
        ort->CreateValue((const OrtValue *const *)&tensor, 0, ONNX_TYPE_SEQUENCE, &out)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (!wrong[i]) printf("wrong call %zu succeeded\n", i);
        CHECK(wrong[i] && ort->GetErrorMessage(wrong[i])[0]);
        ort->ReleaseStatus(wrong[i]);
    }
    OrtSession *session = open_mlp();
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    OrtStatus *status = ort->Run(session, NULL, in_names, (const OrtValue *const *)&sequence, 1,
                                 out_names, 1, &out);
    CHECK(status && strstr(ort->GetErrorMessage(status), "'x'"));
    ort->ReleaseStatus(status);
    ort->ReleaseSession(session);
    ort->ReleaseValue(sequence);
    ort->ReleaseValue(tensor);
}

static long resident_kb(void) {
    long pages = 0, skip;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%ld %ld", &skip, &pages) == 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_cycles(int cycles) {
    long start = 0, end;
    for (int i = 0; i < cycles; i++) {
        OrtSession *session = open_mlp();
        run_mlp(session, 1 + i % 4);
        ort->ReleaseSession(session);
        if (i == cycles / 5) start = resident_kb();
    }
    end = resident_kb();
    printf("%d cycles: %ld kB resident after a fifth, %ld kB at the end\n", cycles, start, end);
    CHECK(end - start < 1024 || getenv("SINTER_TEST_SANITIZED"));
}

/* ---- Threads ---- */

typedef struct shared {
    OrtSession *session;
    atomic_bool stop;
    atomic_long runs;
} shared;

/* ---- Compiled models in a folder ---- */

/* Compiled models in a folder; their bytes are added to *bytes. */
static int count_compiled(const char *folder, long *bytes) {
    int count = 0;
    DIR *dir = opendir(folder);
    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[2048];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (!strstr(e->d_name, ".sinter") || stat(path, &st) != 0) continue;
        count++;
        *bytes += (long)st.st_size;
    }
    closedir(dir);
    return count;
}

/* Makes a session with a folder of at most `limit` bytes and runs it; how many compiled models are
 * in the folder then. */
static int run_cached(const char *folder, int level, const char *limit, long *bytes) {
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    MUST(CreateSessionOptions(&options));
    MUST(AddSessionConfigEntry(options, "sinter.cache_folder", folder));
    MUST(AddSessionConfigEntry(options, "sinter.cache_limit", limit));
    MUST(SetSessionGraphOptimizationLevel(options, (GraphOptimizationLevel)level));
    must(create_mlp(options, &session), "CreateSession");
    run_mlp(session, 2);
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
    *bytes = 0;
    return count_compiled(folder, bytes);
}

static void test_cache(void) {
    static const char *const wrong[] = {"", "-1", "12 MB", "99999999999999999999999"};
    char folder[1024], limit[32];
    long first, sum;
    snprintf(folder, sizeof folder, "%s/cache", models);
    CHECK(mkdir(folder, 0700) == 0);
    CHECK(run_cached(folder, ORT_ENABLE_ALL, "1", &sum) == 0);
    CHECK(run_cached(folder, ORT_ENABLE_ALL, "1000000", &first) == 1);
    CHECK(run_cached(folder, ORT_ENABLE_ALL, "1000000", &sum) == 1 && sum == first);
    CHECK(run_cached(folder, ORT_ENABLE_BASIC, "1000000", &sum) ==
          2); /* other options, another file */
    snprintf(limit, sizeof limit, "%ld", sum);
    CHECK(run_cached(folder, ORT_ENABLE_EXTENDED, limit, &sum) <= 2 &&
          sum <= atol(limit)); /* others gave way */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        OrtSessionOptions *options = NULL;
        OrtSession *session = NULL;
        MUST(CreateSessionOptions(&options));
        MUST(AddSessionConfigEntry(options, "sinter.cache_limit", wrong[i]));
        OrtStatus *status = create_mlp(options, &session);
        CHECK(status && ort->GetErrorCode(status) == ORT_INVALID_ARGUMENT &&
              strstr(ort->GetErrorMessage(status), "sinter.cache_limit"));
        ort->ReleaseStatus(status);
        ort->ReleaseSessionOptions(options);
    }
}

/* ---- Threads and processes ---- */

static void *run_until(void *arg) {
    shared *s = arg;
    for (int i = 0; !atomic_load(&s->stop); i++) {
        run_mlp(s->session, 1 + i % 4);
        atomic_fetch_add(&s->runs, 1);
    }
    return NULL;
}

static void test_threads(int seconds) {
    shared s = {.session = open_mlp()};
    pthread_t threads[8];
    run_mlp(s.session, 1);
    long before = resident_kb();
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, run_until, &s);
    for (int i = 0; i < seconds; i++) {
        OrtSession *other = open_mlp(); /* others come and go meanwhile */
        run_mlp(other, 2);
        ort->ReleaseSession(other);
        sleep(1);
    }
    atomic_store(&s.stop, true);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    printf("8 threads: %ld runs in %d s, %ld kB resident before, %ld kB after\n",
           atomic_load(&s.runs), seconds, before, resident_kb());
    ort->ReleaseSession(s.session);
}

/* ---- Fork and exit ---- */

static void test_fork(void) {
    OrtSession *session = open_mlp();
    run_mlp(session, 3);
    pid_t child = fork();
    if (child == 0) {
        run_mlp(session, 3);
        run_mlp(session, 4);
        OrtSession *fresh = open_mlp();
        run_mlp(fresh, 2);
        ort->ReleaseSession(fresh);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    run_mlp(session, 1);
    ort->ReleaseSession(session);
    printf("a child runs what its parent loaded\n");
}

/* The leak sanitizer asks this before it looks for leaks at exit. To look it stops all threads and
 * reads their stacks and thread-local blocks, which crashes itself now and then when threads are
 * just being made, and what runs in flight hold is no leak: children of test_exit go without. */
static bool leaks_do_not_count;

int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return leaks_do_not_count;
}

static void test_exit(void) {
    fflush(stdout);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            static shared s;
            leaks_do_not_count = true;
            s.session = open_mlp();
            for (int k = 0; k < 4; k++) {
                pthread_t thread;
                pthread_create(&thread, NULL, run_until, &s);
                pthread_detach(thread);
            }
            while (atomic_load(&s.runs) < 20 + i) usleep(100);
            exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    printf("10 processes ended while runs were in flight\n");
}

int main(int argc, char **argv) {
    if (argc < 3) die(argv[0], "LIBRARY MODELS [CYCLES [SECONDS]]");
    int cycles = argc > 3 ? atoi(argv[3]) : 300, seconds = argc > 4 ? atoi(argv[4]) : 2;
    models = argv[2];
    open_library(argv[1]);
    test_null();
    MUST(CreateEnv(ORT_LOGGING_LEVEL_FATAL, "robust", &env));
    MUST(CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu));
    MUST(GetAllocatorWithDefaultOptions(&heap));
    test_kinds();
    test_cycles(cycles);
    test_cache();
    test_fork();
    test_threads(seconds);
    test_exit();
    ort->ReleaseMemoryInfo(cpu);
    ort->ReleaseEnv(env);
    MUST(EnableTelemetryEvents(env)); /* calls come after the release */
    return 0;
}
