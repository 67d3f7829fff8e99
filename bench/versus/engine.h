/* engine.h - what a worker asks of an engine: a library with the C table of ONNX Runtime, or Sinter
 * by its own interface. Failures end the process with a message: a worker serves one measurement.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <stddef.h>
#include <stdint.h>

typedef struct tensor {
    const char *name;
    int dtype; /* numbers of ONNX's TensorProto.DataType */
    int rank;
    int64_t dims[16];
    void *data;
    size_t bytes;
} tensor;

typedef struct times {
    double library_ms; /* loading the library and making its environment */
    double session_ms; /* loading the model and making a session */
} times;

typedef struct engine {
    /* Opens the library and the model for so many threads, and binds the inputs. */
    void (*open)(const char *library, const char *model, int threads, const tensor *in, int n_in,
                 times *took);
    /* One run; outputs stay until the next call of `drop`. */
    void (*run)(void);
    void (*drop)(void);
    int (*outputs)(void);
    void (*output)(int index, tensor *out); /* borrowed until `drop` */
} engine;

extern const engine engine_ort, engine_sinter;

double now_ms(void);
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *allocate(size_t count, size_t size); /* zeroed */

#endif
