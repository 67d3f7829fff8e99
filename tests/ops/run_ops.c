/* run_ops.c [--provider NAME LIBRARY] FILE|FOLDER... - runs operator tests that are written as
 * text; README.md has the format. Every run is made without the optimiser and with all of it. The
 * last line counts. */
#include "compare.h"

#include "model/text.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_VALUES = 16, MAX_RUNS = 16 };

typedef enum stage { STAGE_NONE, STAGE_LOAD, STAGE_CREATE, STAGE_RUN } stage;
static const char *const stage_names[] = {"none", "load", "create", "run"};

typedef struct named_value {
    char name[64];
    sn_value *value;
} named_value;

/* One set of inputs with what is expected of it. */
typedef struct run {
    named_value in[MAX_VALUES], out[MAX_VALUES];
    int n_in, n_out;
} run;

typedef struct test_case {
    const char *file;
    int line;
    char name[128];
    const char *model; /* its text; needs_header: without the part in <> */
    size_t model_size;
    bool needs_header;
    bool skip;
    bool hostile;   /* anything may come of it, but soon and within the limits */
    bool optimized; /* only with the optimiser */
    tolerance tolerance;
    stage fails; /* where an error is expected */
    sn_status status;
    char message[256]; /* part of the expected error's text */
    char warning[256]; /* part of a warning that loading gives, and of the error where it is strict
                        */
    run runs[MAX_RUNS];
    int n_runs;
} test_case;

static int passed, failed, skipped;
static const char *export_to; /* NULL: run */
static const char *provider;  /* of sessions; NULL: none */
static const char header[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 4, \"com.microsoft\" : 1]>\n";

/* ---- Reading ---- */

typedef struct reader {
    const char *file;
    const char *p, *end;
    int line;
} reader;

static void broken(const reader *r, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", r->file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(2);
}

static sni_str next_line(reader *r) {
    const char *from = r->p;
    while (r->p < r->end && *r->p != '\n') r->p++;
    sni_str line = {from, (size_t)(r->p - from)};
    if (r->p < r->end) r->p++;
    r->line++;
    return line;
}

static bool starts(sni_str s, const char *with) {
    return s.n >= strlen(with) && memcmp(s.p, with, strlen(with)) == 0;
}

static bool at_directive(const reader *r) {
    return r->p == r->end || *r->p == '%' || (r->end - r->p >= 3 && memcmp(r->p, "== ", 3) == 0);
}

/* The rest of a directive: the end of its first line, and lines up to the next directive. */
static sni_str directive_text(reader *r, sni_str line, const char *word) {
    sni_str text = {line.p + strlen(word), line.n - strlen(word)};
    while (!at_directive(r)) {
        next_line(r);
        text.n = (size_t)(r->p - text.p);
    }
    while (text.n && (text.p[0] == ' ' || text.p[0] == '\t')) text.p++, text.n--;
    while (text.n && (unsigned char)text.p[text.n - 1] <= ' ') text.n--;
    return text;
}

/* `NAME = VALUE`. */
static named_value read_value(const reader *r, int line, sni_str text) {
    named_value v = {.value = NULL};
    const char *equals = memchr(text.p, '=', text.n);
    if (!equals) broken(r, line, "expected NAME = VALUE");
    size_t n = (size_t)(equals - text.p);
    while (n && text.p[n - 1] == ' ') n--;
    if (n == 0 || n >= sizeof(v.name)) broken(r, line, "a name is missing or too long");
    memcpy(v.name, text.p, n);
    sni_str value = {equals + 1, (size_t)(text.p + text.n - equals - 1)};
    sni_text_bytes bytes;
    sn_kind kind;
    sn_error err;
    if (sni_text_value(value, &kind, &bytes, &err) != SN_OK)
        broken(r, line, "value of %s: %s", v.name, err.message);
    if (sn_value_decode(kind, bytes.n ? (const void *)bytes.p : "", bytes.n, &v.value, &err))
        broken(r, line, "value of %s: %s", v.name, err.message);
    free(bytes.p);
    return v;
}

static sn_status read_status(const reader *r, int line, const char *word) {
    static const char *const names[] = {
#define SNI_STATUS(code, text) #code,
#include "base/status.def"
#undef SNI_STATUS
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], word) == 0) return (sn_status)i;
    broken(r, line, "%s is no status", word);
    return SN_OK;
}

/* `%error STAGE STATUS [part of the message]`. */
static void read_error(const reader *r, int line, sni_str text, test_case *c) {
    char copy[400], where[16], status[32];
    snprintf(copy, sizeof(copy), "%.*s", (int)text.n, text.p);
    int used = 0;
    if (sscanf(copy, "%15s %31s %n", where, status, &used) < 2)
        broken(r, line, "expected %%error STAGE STATUS [TEXT]");
    for (int i = STAGE_LOAD; i <= STAGE_RUN; i++)
        if (strcmp(stage_names[i], where) == 0) c->fails = (stage)i;
    if (c->fails == STAGE_NONE) broken(r, line, "%s is no stage", where);
    c->status = read_status(r, line, status);
    snprintf(c->message, sizeof(c->message), "%s", copy + used);
}

static void read_directive(reader *r, test_case *c) {
    int at = r->line + 1;
    sni_str line = next_line(r);
    run *current = &c->runs[c->n_runs - 1];
    if (starts(line, "%input")) {
        if (current->n_in == MAX_VALUES) broken(r, at, "too many inputs");
        current->in[current->n_in++] = read_value(r, at, directive_text(r, line, "%input"));
    } else if (starts(line, "%output")) {
        if (current->n_out == MAX_VALUES) broken(r, at, "too many outputs");
        current->out[current->n_out++] = read_value(r, at, directive_text(r, line, "%output"));
    } else if (starts(line, "%run")) {
        if (c->n_runs == MAX_RUNS) broken(r, at, "too many runs");
        c->n_runs++;
        directive_text(r, line, "%run");
    } else if (starts(line, "%tolerance")) {
        char copy[100];
        sni_str text = directive_text(r, line, "%tolerance");
        snprintf(copy, sizeof(copy), "%.*s", (int)text.n, text.p);
        if (sscanf(copy, "%lf %lf", &c->tolerance.relative, &c->tolerance.absolute) != 2)
            broken(r, at, "expected %%tolerance RELATIVE ABSOLUTE");
    } else if (starts(line, "%error")) {
        read_error(r, at, directive_text(r, line, "%error"), c);
    } else if (starts(line, "%hostile")) {
        c->hostile = true;
        directive_text(r, line, "%hostile");
    } else if (starts(line, "%warning")) {
        sni_str text = directive_text(r, line, "%warning");
        snprintf(c->warning, sizeof(c->warning), "%.*s", (int)text.n, text.p);
    } else if (starts(line, "%optimized")) {
        c->optimized = true;
        directive_text(r, line, "%optimized");
    } else if (starts(line, "%skip")) {
        c->skip = true;
        directive_text(r, line, "%skip");
    } else {
        broken(r, at, "unknown directive %.*s", (int)line.n, line.p);
    }
}

static test_case read_case(reader *r) {
    test_case c = {.file = r->file, .tolerance = {1e-5, 1e-6}, .n_runs = 1};
    sni_str title = next_line(r);
    c.line = r->line;
    snprintf(c.name, sizeof(c.name), "%.*s", (int)title.n - 3, title.p + 3);
    c.model = r->p;
    while (!at_directive(r)) next_line(r);
    c.model_size = (size_t)(r->p - c.model);
    const char *first = c.model;
    while (first < r->p && (unsigned char)*first <= ' ') first++;
    c.needs_header = first == r->p || *first != '<';
    while (r->p < r->end && *r->p == '%') read_directive(r, &c);
    return c;
}

/* ---- Running ---- */

static void report(const test_case *c, int optimize, const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("FAIL %s:%d %s", c->file, c->line, c->name);
    if (optimize >= 0) printf(" (optimize %d)", optimize);
    printf(": ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

/* What is to be said of a stage's outcome. True if the case ends here as expected; *fine is false
 * if it ends otherwise. */
static bool over(const test_case *c, int optimize, stage at, sn_status status, const sn_error *err,
                 bool *fine) {
    if (status == SN_OK) {
        if (at == c->fails) {
            report(c, optimize, "%s succeeded, but an error is expected", stage_names[at]);
            *fine = false;
        }
        return at == c->fails;
    }
    if (at != c->fails || status != c->status) {
        report(c, optimize, "%s: %s: %s", stage_names[at], sn_status_name(status), err->message);
        *fine = false;
    } else if (!strstr(err->message, c->message)) {
        report(c, optimize, "%s: the message is '%s', without '%s'", stage_names[at], err->message,
               c->message);
        *fine = false;
    }
    return true;
}

static bool run_once(const test_case *c, const run *r, int optimize, sn_session *session) {
    sn_binding in[MAX_VALUES], out[MAX_VALUES];
    for (int i = 0; i < r->n_in; i++) in[i] = (sn_binding){r->in[i].name, r->in[i].value};
    for (int i = 0; i < r->n_out; i++) out[i] = (sn_binding){r->out[i].name, NULL};
    sn_error err;
    bool fine = true;
    sn_status status =
        sn_session_run(session, NULL, in, (size_t)r->n_in, out, (size_t)r->n_out, &err);
    bool ends = over(c, optimize, STAGE_RUN, status, &err, &fine);
    for (int i = 0; status == SN_OK && i < r->n_out; i++) {
        char why[500];
        if (!ends && !values_agree(r->out[i].value, out[i].value, c->tolerance, why, sizeof(why))) {
            report(c, optimize, "run %d, output %s: %s", (int)(r - c->runs) + 1, r->out[i].name,
                   why);
            fine = false;
        }
        sn_value_destroy(out[i].value);
    }
    return fine;
}

static bool run_optimized(const test_case *c, int optimize, const sn_model *model) {
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.optimize = optimize;
    options.memory_limit = (uint64_t)1 << 30;
    sn_provider_setting least = {"sinter.min_nodes", "1"};
    sn_provider_use use = {.name = provider, .settings = &least, .setting_count = 1};
    options.providers = &use;
    options.provider_count = provider != NULL;
    sn_session *session = NULL;
    sn_error err;
    bool fine = true;
    sn_status status = sn_session_create(model, &options, &session, &err);
    if (!over(c, optimize, STAGE_CREATE, status, &err, &fine))
        for (int i = 0; i < c->n_runs; i++) fine &= run_once(c, &c->runs[i], optimize, session);
    sn_session_destroy(session);
    return fine;
}

/* The whole text of a case's model; the caller frees it. */
static sni_str model_text(const test_case *c) {
    size_t extra = c->needs_header ? sizeof(header) - 1 : 0;
    char *text = malloc(extra + c->model_size + 1);
    if (!text) abort();
    memcpy(text, header, extra);
    memcpy(text + extra, c->model, c->model_size);
    return (sni_str){text, extra + c->model_size};
}

/* ---- Hostile cases ---- */

enum {
    HOSTILE_MS = 100,   /* what a stage may take */
    SLACK_MS = 400,     /* until it has noticed that, beside whatever else runs */
    HANG_SECONDS = 5,   /* of which it is said that it hangs */
    HOSTILE_MB = 256,   /* the memory limit of a session */
    RESIDENT_MB = 1024, /* of the process, with what is not charged */
};

/* The longest stage; in memory that processes share. */
typedef struct longest {
    double ms;
    char name[160];
} longest;
static longest *slowest;

static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* What is to be said of a stage that began at `start` ms of CPU time. */
static bool held_up(const test_case *c, stage at, double start, sn_status status,
                    const sn_error *err) {
    double taken = cpu_ms() - start;
    bool fine = true;
    if (taken > slowest->ms) {
        slowest->ms = taken;
        snprintf(slowest->name, sizeof slowest->name, "%s of %s", stage_names[at], c->name);
    }
    if (taken > HOSTILE_MS + SLACK_MS) {
        report(c, -1, "%s took %.0f ms where %d are allowed", stage_names[at], taken, HOSTILE_MS);
        fine = false;
    }
    if (status == SN_INTERNAL) {
        report(c, -1, "%s: an internal error: %s", stage_names[at], err->message);
        fine = false;
    }
    return fine;
}

static bool attack_level(const test_case *c, int level, const sn_model *model) {
    const run *r = &c->runs[0];
    sn_binding in[MAX_VALUES], out = {0};
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.optimize = level;
    options.threads = 1;
    options.memory_limit = (uint64_t)HOSTILE_MB << 20;
    options.time_limit_ns = options.prepare_limit_ns = (uint64_t)HOSTILE_MS * 1000000;
    sn_session *session = NULL;
    sn_error err;
    double start = cpu_ms();
    sn_status status = sn_session_create(model, &options, &session, &err);
    bool fine = held_up(c, STAGE_CREATE, start, status, &err);
    if (status == SN_OK) {
        for (int i = 0; i < r->n_in; i++) in[i] = (sn_binding){r->in[i].name, r->in[i].value};
        sn_value_info info;
        if (sn_model_output(model, 0, &info, &err) == SN_OK) out.name = info.name;
        start = cpu_ms();
        status = sn_session_run(session, NULL, in, (size_t)r->n_in, &out, 1, &err);
        fine = held_up(c, STAGE_RUN, start, status, &err) && fine;
        if (status == SN_OK) sn_value_destroy(out.value);
    }
    sn_session_destroy(session);
    return fine;
}

static bool small_enough(const test_case *c) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0 || usage.ru_maxrss <= RESIDENT_MB * 1024L) return true;
    report(c, -1, "the process took %ld MB", usage.ru_maxrss / 1024);
    return false;
}

static bool attack(const test_case *c) {
    sni_str text = model_text(c);
    sn_model *model = NULL;
    sn_error err;
    double start = cpu_ms();
    sn_status status = sn_model_load_text(text.p, text.n, &model, &err);
    bool fine = held_up(c, STAGE_LOAD, start, status, &err);
    if (status == SN_OK) {
        fine = attack_level(c, 0, model) && fine;
        fine = attack_level(c, 3, model) && fine;
    }
    sn_model_destroy(model);
    free((char *)text.p);
    return small_enough(c) && fine;
}

/* A process of its own, which an alarm ends if it hangs. */
static bool run_hostile(const test_case *c) {
    if (!slowest)
        slowest =
            mmap(NULL, sizeof *slowest, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    pid_t child = fork();
    if (slowest == MAP_FAILED || child < 0) {
        perror("fork");
        exit(2);
    }
    if (child == 0) {
        alarm(HANG_SECONDS);
        bool fine = attack(c);
        fflush(stdout);
        _exit(fine ? 0 : 1);
    }
    int status;
    if (waitpid(child, &status, 0) != child) exit(2);
    if (WIFSIGNALED(status))
        report(c, -1, WTERMSIG(status) == SIGALRM ? "it hangs" : "it ends with signal %d",
               WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_warned_of(const test_case *c, const sn_model *model) {
    const char *text;
    if (!c->warning[0]) return !sn_model_warning(model, 0);
    for (size_t i = 0; (text = sn_model_warning(model, i)); i++)
        if (strstr(text, c->warning)) return true;
    return false;
}

/* Whether a case's warning is an error where loading is strict. */
static bool is_refused(const test_case *c, sni_str text) {
    sni_text_bytes bytes;
    sn_model *model = NULL;
    sn_error err;
    sn_load_options options;
    sn_load_options_init(&options, sizeof options);
    options.strict = true;
    if (!c->warning[0]) return true;
    if (sni_text_model(text, &bytes, &err) != SN_OK) return false;
    sn_status status = sn_model_load_memory(bytes.p, bytes.n, &options, &model, &err);
    free(bytes.p);
    sn_model_destroy(model);
    return status == SN_INVALID_MODEL && strstr(err.message, c->warning);
}

static bool check_warning(const test_case *c, const sn_model *model, sni_str text) {
    bool warned = is_warned_of(c, model), refused = is_refused(c, text);
    if (!warned) report(c, -1, "its warnings are not '%s'", c->warning);
    if (!refused) report(c, -1, "a strict load does not say '%s'", c->warning);
    return warned && refused;
}

static bool run_case(const test_case *c) {
    if (c->hostile) return run_hostile(c);
    sni_str text = model_text(c);
    sn_model *model = NULL;
    sn_error err;
    bool fine = true;
    sn_status status = sn_model_load_text(text.p, text.n, &model, &err);
    if (!over(c, -1, STAGE_LOAD, status, &err, &fine)) {
        fine = check_warning(c, model, text);
        if (!c->optimized) fine = run_optimized(c, 0, model) && fine;
        fine = run_optimized(c, 3, model) && fine;
    }
    sn_model_destroy(model);
    free((char *)text.p);
    return fine;
}

static void save(const test_case *c, const char *ending, const void *bytes, size_t size) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%.*s-%d.%s", export_to, (int)strcspn(c->file, "."), c->file,
             c->line, ending);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) {
        perror(path);
        exit(2);
    }
}

static bool export_case(const test_case *c) {
    sni_str text = model_text(c);
    sni_text_bytes bytes;
    save(c, "txt", text.p, text.n);
    bool fine = sni_text_model(text, &bytes, NULL) == SN_OK;
    if (fine) {
        save(c, "onnx", bytes.p, bytes.n);
        free(bytes.p);
    }
    free((char *)text.p);
    return fine;
}

static void free_case(test_case *c) {
    for (int i = 0; i < c->n_runs; i++) {
        for (int k = 0; k < c->runs[i].n_in; k++) sn_value_destroy(c->runs[i].in[k].value);
        for (int k = 0; k < c->runs[i].n_out; k++) sn_value_destroy(c->runs[i].out[k].value);
    }
}

static void run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(2);
    }
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(size + 1);
    if (!text || fread(text, 1, size, f) != size) exit(2);
    fclose(f);
    const char *base = strrchr(path, '/');
    reader r = {.file = base ? base + 1 : path, .p = text, .end = text + size};
    while (r.p < r.end && !(r.end - r.p >= 3 && memcmp(r.p, "== ", 3) == 0)) next_line(&r);
    while (r.p < r.end) {
        test_case c = read_case(&r);
        if (c.skip)
            skipped++;
        else if (export_to ? export_case(&c) : run_case(&c))
            passed++;
        else
            failed++;
        free_case(&c);
    }
    free(text);
}

static int is_text(const struct dirent *entry) {
    size_t n = strlen(entry->d_name);
    return n > 4 && strcmp(entry->d_name + n - 4, ".txt") == 0;
}

int main(int argc, char **argv) {
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--export") == 0) {
        export_to = argv[2];
        first = 3;
    } else if (argc > 3 && strcmp(argv[1], "--provider") == 0) {
        sn_error err = {0};
        provider = argv[2];
        first = 4;
        if (sn_provider_load(argv[3], NULL, &err) != SN_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 2;
        }
    }
    for (int i = first; i < argc; i++) {
        struct dirent **names;
        int n = scandir(argv[i], &names, is_text, alphasort);
        if (n < 0) run_file(argv[i]);
        for (int k = 0; k < n; k++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], names[k]->d_name);
            run_file(path);
            free(names[k]);
        }
        if (n >= 0) free(names);
    }
    if (export_to) return 0;
    if (slowest) printf("longest: %.1f ms of CPU time, %s\n", slowest->ms, slowest->name);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
