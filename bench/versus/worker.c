/* worker.c - one engine, one model, one data set: the process that versus.py measures.
 *
 *     versus_worker LIBRARY THREADS MODEL_FOLDER DATA_SET    LIBRARY "sinter": by sinter.h
 *     versus_worker --peak THREADS                           prints GFLOP/s and GB/s
 *     versus_worker --macs MODEL_FOLDER DATA_SET             prints multiply-accumulates of a run
 *
 * The first form prints "ready LIBRARY_MS SESSION_MS FIRST_RUN_MS PEAK_KB" and then answers
 * commands on standard input until that ends:
 *     run SECONDS MOST   "times" and the microseconds of each run
 *     save FOLDER        runs once, writes outputs as FOLDER/N.bin: "output N TYPE DIMS..." lines
 *     peak               "peak KB": most memory the process ever had */
#include "engine.h"

#include "sinter.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_INPUTS = 256, MOST_SAMPLES = 1 << 16 };

double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

_Noreturn void die(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fputs("failed ", stdout);
    vfprintf(stdout, fmt, args);
    fputs("\n", stdout);
    va_end(args);
    fflush(stdout);
    exit(1);
}

void *allocate(size_t count, size_t size) {
    void *p = calloc(count + 1, size);
    if (!p) die("no memory");
    return p;
}

/* ---- Inputs ---- */

static char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long end = ftell(f);
    rewind(f);
    char *bytes = allocate((size_t)end, 1);
    if (fread(bytes, 1, (size_t)end, f) != (size_t)end) die("cannot read %s", path);
    fclose(f);
    *size = (size_t)end;
    return bytes;
}

/* The name in a TensorProto, field 8; sn_value_decode leaves it out. */
static char *tensor_name(const unsigned char *p, size_t size) {
    size_t at = 0;
    while (at < size) {
        uint64_t key = 0, length = 0;
        for (int shift = 0; at < size && shift < 63; shift += 7) {
            key |= (uint64_t)(p[at] & 127) << shift;
            if (!(p[at++] & 128)) break;
        }
        for (int shift = 0; at < size && shift < 63; shift += 7) {
            length |= (uint64_t)(p[at] & 127) << shift;
            if (!(p[at++] & 128)) break;
        }
        if ((key & 7) != 2) continue; /* a number, read above */
        if (length > size - at) break;
        if (key >> 3 == 8) return strndup((const char *)p + at, length);
        at += length;
    }
    die("a tensor has no name");
}

static int read_inputs(const char *folder, const char *data_set, tensor *in) {
    for (int i = 0; i < MOST_INPUTS; i++) {
        char path[4096];
        size_t size;
        sn_value *value;
        sn_error err;
        snprintf(path, sizeof path, "%s/test_data_set_%s/input_%d.pb", folder, data_set, i);
        char *bytes = read_file(path, &size);
        if (!bytes) return i;
        if (sn_value_decode(SN_KIND_TENSOR, bytes, size, &value, &err) != SN_OK)
            die("%s: %s", path, err.message);
        in[i] = (tensor){.name = tensor_name((unsigned char *)bytes, size),
                         .dtype = (int)sn_tensor_dtype(value),
                         .rank = sn_tensor_rank(value),
                         .data = sn_tensor_data(value),
                         .bytes = sn_tensor_bytes(value)};
        for (int d = 0; d < in[i].rank; d++) in[i].dims[d] = sn_tensor_dims(value)[d];
        free(bytes);
    }
    return MOST_INPUTS;
}

/* ---- Commands ---- */

static long peak_kb(void) {
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1) break;
    if (f) fclose(f);
    return kb;
}

static void run_for(const engine *e, double seconds, int most) {
    double *samples = allocate(MOST_SAMPLES, sizeof *samples), spent = 0;
    int n = 0;
    while (n < MOST_SAMPLES && n < most && (n == 0 || spent < seconds * 1e3)) {
        double start = now_ms();
        e->run();
        samples[n] = now_ms() - start;
        e->drop();
        spent += samples[n++];
    }
    printf("times");
    for (int i = 0; i < n; i++) printf(" %.3f", samples[i] * 1e3);
    printf("\n");
    free(samples);
}

static void save(const engine *e, const char *folder) {
    e->run();
    for (int i = 0; i < e->outputs(); i++) {
        tensor t = {0};
        char path[4200];
        e->output(i, &t);
        snprintf(path, sizeof path, "%s/%d.bin", folder, i);
        FILE *f = fopen(path, "wb");
        if (!f || (t.bytes && fwrite(t.data, 1, t.bytes, f) != t.bytes) || fclose(f))
            die("cannot write %s", path);
        printf("output %d %d", i, t.dtype);
        for (int d = 0; d < t.rank; d++) printf(" %lld", (long long)t.dims[d]);
        printf("\n");
    }
    printf("end\n");
    e->drop();
}

static int serve(const engine *e) {
    char line[4096], folder[4096];
    double seconds;
    int most;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %lf %d", &seconds, &most) == 2)
            run_for(e, seconds, most);
        else if (sscanf(line, "save %4095s", folder) == 1)
            save(e, folder);
        else if (strcmp(line, "peak\n") == 0)
            printf("peak %ld\n", peak_kb());
        else
            die("not a command: %s", line);
        fflush(stdout);
    }
    return 0;
}

/* ---- The machine and the model ---- */

static int show_peak(int threads) {
    sn_machine m;
    sn_error err;
    if (sn_machine_measure(threads, &m, &err) != SN_OK) die("%s", err.message);
    printf("%s %.2f %.2f\n", m.isa, m.flops_per_second * 1e-9, m.bytes_per_second * 1e-9);
    return 0;
}

static void add_macs(void *ctx, const sn_step_event *event) {
    *(uint64_t *)ctx += event->macs;
}

/* Of the graph as it came: what an optimiser saves counts for the engine that has it. */
static int show_macs(const char *folder, const char *data_set) {
    static tensor in[MOST_INPUTS];
    static sn_binding inputs[MOST_INPUTS];
    char path[4096];
    sn_error err;
    sn_model *model;
    sn_session *session;
    sn_session_options options;
    sn_run_options run;
    uint64_t macs = 0;
    int n = read_inputs(folder, data_set, in);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    sn_session_options_init(&options, sizeof options);
    sn_run_options_init(&run, sizeof run);
    options.optimize = 0;
    run.on_step = add_macs;
    run.on_step_ctx = &macs;
    if (sn_model_load(path, NULL, &model, &err) != SN_OK ||
        sn_session_create(model, &options, &session, &err) != SN_OK)
        die("%s", err.message);
    for (int i = 0; i < n; i++) {
        inputs[i].name = in[i].name;
        if (sn_tensor_wrap((sn_dtype)in[i].dtype, in[i].rank, in[i].dims, in[i].data, in[i].bytes,
                           &inputs[i].value, &err) != SN_OK)
            die("%s", err.message);
    }
    sn_binding output = {0};
    sn_value_info info;
    sn_model_output(model, 0, &info, NULL);
    output.name = info.name;
    if (sn_session_run(session, &run, inputs, (size_t)n, &output, 1, &err) != SN_OK)
        die("%s", err.message);
    printf("%llu\n", (unsigned long long)macs);
    return 0;
}

int main(int argc, char **argv) {
    static tensor in[MOST_INPUTS];
    char path[4096];
    if (argc == 3 && strcmp(argv[1], "--peak") == 0) return show_peak(atoi(argv[2]));
    if (argc == 4 && strcmp(argv[1], "--macs") == 0) return show_macs(argv[2], argv[3]);
    if (argc != 5) die("usage: versus_worker LIBRARY THREADS MODEL_FOLDER DATA_SET");
    const engine *e = strcmp(argv[1], "sinter") == 0 ? &engine_sinter : &engine_ort;
    int n = read_inputs(argv[3], argv[4], in);
    times took = {0};
    snprintf(path, sizeof path, "%s/model.onnx", argv[3]);
    e->open(argv[1], path, atoi(argv[2]), in, n, &took);
    double start = now_ms();
    e->run();
    e->drop();
    printf("ready %.3f %.3f %.3f %ld\n", took.library_ms, took.session_ms, now_ms() - start,
           peak_kb());
    fflush(stdout);
    return serve(e);
}
