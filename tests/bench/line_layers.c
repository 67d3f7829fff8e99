/* line_layers.c - convolutions along one axis, of speech encoders, temporal networks, vocoders and
 * audio front ends: what every row of the table of algorithms takes that supports them, and what
 * direct sums take in blocked layout with and without the conversions into it and back.
 *
 *     bench_line [threads] [milliseconds per measurement] [images] [network]
 *
 * "*" marks the row that is chosen for a node by itself, outside of a region in blocked layout. */
#include "layers.h"

#include "cpu/conv/conv_algorithms.h"
#include "cpu/core/kernels.h"
#include "cpu/core/cpu_ep.h"
#include "graph/store.h"
#include "ops/sinter/blocked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    const char *network;
    int64_t in, out, width, kernel, stride, dilation, groups;
} layer;

static const layer layers[] = {
    {"whisper", 80, 384, 3000, 3, 1, 1, 1},
    {"whisper", 384, 384, 3000, 3, 2, 1, 1},
    {"wav2vec2", 1, 512, 16000, 10, 5, 1, 1},
    {"wav2vec2", 512, 512, 3199, 3, 2, 1, 1},
    {"wav2vec2", 512, 512, 199, 2, 2, 1, 1},
    {"wav2vec2 position", 768, 768, 99, 128, 1, 1, 16},
    {"tcn", 25, 25, 400, 7, 1, 4, 1},
    {"tcn", 64, 64, 1000, 3, 1, 8, 1},
    {"tcn", 256, 256, 100, 3, 1, 2, 1},
    {"conv-tasnet", 128, 512, 3200, 1, 1, 1, 1},
    {"conv-tasnet", 512, 512, 3200, 3, 1, 4, 512},
    {"conv-tasnet", 512, 128, 3200, 1, 1, 1, 1},
    {"encodec", 1, 32, 24000, 7, 1, 1, 1},
    {"encodec", 32, 16, 24000, 3, 1, 1, 1},
    {"encodec", 32, 64, 24000, 4, 2, 1, 1},
    {"encodec", 256, 512, 600, 16, 8, 1, 1},
    {"hifigan", 32, 32, 16000, 11, 1, 5, 1},
    {"hifigan", 64, 64, 8000, 3, 1, 1, 1},
    {"hifigan", 32, 1, 16000, 7, 1, 1, 1},
    {"silero vad", 1, 258, 576, 256, 128, 1, 1},
    {"silero vad", 129, 128, 4, 3, 1, 1, 1},
    {"silero vad", 128, 64, 2, 3, 2, 1, 1},
    {"spectrogram", 1, 514, 160000, 512, 160, 1, 1},
    {"spectrogram", 1, 258, 16000, 256, 128, 1, 1},
    {"spectrogram", 2, 64, 16000, 400, 160, 1, 1},
    {"pointwise", 256, 256, 1, 1, 1, 1, 1},
    {"pointwise", 96, 24, 8, 1, 1, 1, 1},
    {"pointwise", 64, 64, 3200, 1, 1, 1, 1},
    {"pointwise", 32, 128, 1000, 1, 1, 1, 1},
    {"pointwise", 128, 100, 300, 1, 1, 1, 1},
    {"odd", 20, 40, 1000, 3, 1, 1, 1},
    {"odd", 10, 100, 2000, 5, 1, 1, 1},
    {"odd", 50, 90, 300, 3, 1, 1, 1},
    {"odd", 20, 20, 100, 5, 2, 1, 1},
    {"grouped", 64, 64, 1000, 3, 1, 1, 2},
    {"grouped", 48, 96, 500, 5, 1, 1, 4},
    {"few outputs", 64, 2, 4000, 5, 1, 1, 1},
    {"few outputs", 128, 4, 2000, 3, 1, 1, 1},
    {"few outputs", 64, 8, 4000, 3, 1, 1, 1},
    {"keywords", 40, 160, 100, 3, 1, 1, 1},
    {"keywords", 160, 160, 50, 9, 1, 1, 160},
    {"ecg", 1, 16, 5000, 15, 1, 1, 1},
    {"ecg", 12, 32, 1000, 7, 1, 1, 1},
    {"ecg", 8, 8, 5000, 15, 1, 1, 1},
};

static void quit(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static sn_status no_poll(const sni_kernel *k, sn_error *err) {
    (void)k, (void)err;
    return SN_OK;
}

/* Scratch of one call, which asks for few pieces. */
typedef struct lender {
    void *pieces[16];
    size_t sizes[16];
    int n;
} lender;

static void *lend(sni_kernel *k, size_t bytes) {
    lender *l = k->host_ctx;
    if (l->n == 16) quit("too many pieces of scratch");
    if (l->sizes[l->n] < bytes) {
        free(l->pieces[l->n]);
        l->pieces[l->n] = floats((int64_t)(bytes / sizeof(float)) + 1);
        l->sizes[l->n] = bytes;
    }
    return l->pieces[l->n++];
}

/* A convolution with its tensors, as a plan has it: plain, or a blocked picture one row high. */
typedef struct bench {
    sni_datum x, w, y;
    sni_type types[2];
    sni_store *store;
    sni_const *weights;
    sni_blocked_conv_params params; /* begins with those of Conv */
    int64_t strides[2], dilations[2], pads[4];
} bench;

static void set_datum(sni_datum *d, int rank, const int64_t *dims) {
    *d = (sni_datum){.kind = SN_KIND_TENSOR};
    if (sni_tensor_shape(&d->tensor, SN_FLOAT32, rank, dims, NULL) != SN_OK) quit("a shape");
    d->tensor.data = floats(d->tensor.count);
}

static void set_window(bench *b, const layer *l, int axes) {
    int64_t pad = l->stride == 1 ? (l->kernel - 1) * l->dilation / 2 : 0;
    for (int i = 0; i < axes; i++) {
        bool last = i == axes - 1;
        b->strides[i] = last ? l->stride : 1;
        b->dilations[i] = last ? l->dilation : 1;
        b->pads[i] = b->pads[axes + i] = last ? pad : 0;
    }
    size_t n = (size_t)axes;
    sni_window_params *p = &b->params.fused.conv.window;
    p->strides = (sni_ints){.v = b->strides, .n = n, .given = true};
    p->dilations = (sni_ints){.v = b->dilations, .n = n, .given = true};
    p->pads = (sni_ints){.v = b->pads, .n = 2 * n, .given = true};
    b->params.fused.conv.group = l->groups;
    b->params.block = sni_cpu_block();
}

static int64_t out_width(const layer *l) {
    int64_t reach = (l->kernel - 1) * l->dilation + 1;
    int64_t pads = l->stride == 1 ? (l->kernel - 1) * l->dilation / 2 * 2 : 0;
    return (l->width + pads - reach) / l->stride + 1;
}

static void bench_start(bench *b, const layer *l, int64_t images, bool blocked) {
    int64_t block = sni_cpu_block(), in = (l->in + block - 1) / block,
            out = (l->out + block - 1) / block;
    sn_error err = {0};
    *b = (bench){.store = NULL};
    set_window(b, l, blocked ? 2 : 1);
    if (blocked) {
        set_datum(&b->x, 5, (int64_t[]){images, in, 1, l->width, block});
        set_datum(&b->y, 5, (int64_t[]){images, out, 1, out_width(l), block});
        set_datum(&b->w, 4, (int64_t[]){l->out, l->in / l->groups, 1, l->kernel});
    } else {
        set_datum(&b->x, 3, (int64_t[]){images, l->in, l->width});
        set_datum(&b->y, 3, (int64_t[]){images, l->out, out_width(l)});
        set_datum(&b->w, 3, (int64_t[]){l->out, l->in / l->groups, l->kernel});
    }
    if (sni_store_new(NULL, 0, &b->store, &err) != SN_OK ||
        sni_const_new(b->store, SN_FLOAT32, b->w.tensor.rank, b->w.tensor.dims, &b->weights,
                      &err) != SN_OK)
        quit(err.message);
    memcpy(b->weights->tensor.data, b->w.tensor.data, sni_tensor_bytes(&b->w.tensor));
    const sni_datum *of[2] = {&b->x, &b->w};
    for (int i = 0; i < 2; i++)
        b->types[i] = (sni_type){.kind = SN_KIND_TENSOR,
                                 .dtype = SN_FLOAT32,
                                 .has_shape = true,
                                 .rank = of[i]->tensor.rank,
                                 .dims = of[i]->tensor.dims};
}

static void bench_end(bench *b) {
    free(b->x.tensor.data);
    free(b->w.tensor.data);
    free(b->y.tensor.data);
    sni_store_release(b->store);
}

static double fastest(const sni_impl *row, sni_kernel *k, double milliseconds) {
    double best = 1e30, start = now();
    lender *l = k->host_ctx;
    for (int i = 0; i < 3 || now() - start < milliseconds; i++) {
        l->n = 0;
        double at = now();
        if (row->run(k) != SN_OK) quit(k->err->message);
        at = now() - at;
        if (at < best) best = at;
    }
    return best;
}

/* Milliseconds of a row; negative: it does not support the layer. *chosen: it would be. */
static double time_row(bench *b, const sni_impl *row, int threads, double milliseconds,
                       bool *chosen) {
    static const sni_host host = {.poll = no_poll, .scratch = lend};
    static lender scratch;
    sn_error err = {0};
    sni_pack pack = {0};
    sni_borrows borrows = {0};
    sni_node node = {.type = sni_str_of(row->op),
                     .domain = sni_str_of(row->domain ? row->domain : ""),
                     .n_in = 2,
                     .n_out = 1};
    sni_choice choice = {.node = &node,
                         .params = &b->params,
                         .n_in = 2,
                         .in = (const sni_type *const[]){&b->types[0], &b->types[1]},
                         .constants = (sni_const *const[]){NULL, b->weights},
                         .pack = &pack,
                         .borrows = &borrows};
    if (!row->accepts(&choice) || (row->variant && !row->variant(&choice))) return -1;
    *chosen = sni_ep_find(&choice) == row;
    void *state = NULL;
    if (row->prepare && row->prepare(&choice, &state, &err) != SN_OK) quit(err.message);
    sni_kernel k = {.node = &node,
                    .params = &b->params,
                    .n_in = 2,
                    .n_out = 1,
                    .in = (const sni_datum *const[]){&b->x, &b->w},
                    .out = (sni_datum *const[]){&b->y},
                    .threads = threads,
                    .state = state,
                    .host = &host,
                    .host_ctx = &scratch,
                    .err = &err};
    double t = fastest(row, &k, milliseconds);
    if (row->release) row->release(state);
    for (int i = 0; i < borrows.count; i++) sni_borrow_end(&borrows.of[i]);
    sni_pack_clear(&pack);
    return t;
}

/* Into blocked layout, or back. */
static double time_conversion(const layer *l, int64_t images, bool back, int threads,
                              double milliseconds) {
    static const sni_host host = {.poll = no_poll, .scratch = lend};
    static lender scratch;
    bench plain, blocked;
    sn_error err = {0};
    bench_start(&plain, l, images, false);
    bench_start(&blocked, l, images, true);
    sni_tensor *line = back ? &plain.y.tensor : &plain.x.tensor;
    void *data = line->data;
    sni_tensor_shape(line, SN_FLOAT32, 4,
                     (int64_t[]){line->dims[0], line->dims[1], 1, line->dims[2]}, NULL);
    line->data = data;
    sni_blocked_params params = {.block = sni_cpu_block(), .channels = l->out};
    sni_kernel k = {.params = &params,
                    .n_in = 1,
                    .n_out = 1,
                    .in = (const sni_datum *const[]){back ? &blocked.y : &plain.x},
                    .out = (sni_datum *const[]){back ? &plain.y : &blocked.x},
                    .threads = threads,
                    .host = &host,
                    .host_ctx = &scratch,
                    .err = &err};
    double t = fastest(back ? &sni_cpu_from_blocked : &sni_cpu_to_blocked, &k, milliseconds);
    bench_end(&plain);
    bench_end(&blocked);
    return t;
}

static void measure(const layer *l, int threads, double milliseconds, int64_t images) {
    bool chosen;
    bench b;
    printf("%-18s %3d %3d %5d k%d s%d d%d g%d:", l->network, (int)l->in, (int)l->out, (int)l->width,
           (int)l->kernel, (int)l->stride, (int)l->dilation, (int)l->groups);
    bench_start(&b, l, images, false);
    for (const sni_impl *row = sni_cpu_convolutions; row->op; row++) {
        if (strcmp(row->op, "Conv") != 0) continue;
        double t = time_row(&b, row, threads, milliseconds, &chosen);
        if (t >= 0) printf(" %s%s %.3f", row->name, chosen ? "*" : "", t);
    }
    bench_end(&b);
    bench_start(&b, l, images, true);
    double best = -1;
    for (const sni_impl *row = sni_cpu_convolutions; row->op; row++) {
        if (strcmp(row->op, "BlockedConv") != 0) continue;
        double t = time_row(&b, row, threads, milliseconds, &chosen);
        if (t >= 0 && (best < 0 || t < best)) best = t;
    }
    bench_end(&b);
    double in = time_conversion(l, images, false, threads, milliseconds);
    double out = time_conversion(l, images, true, threads, milliseconds);
    if (best >= 0) printf(" | blocked %.3f, converted %.3f", best, best + in + out);
    printf("\n");
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double milliseconds = argc > 2 ? atof(argv[2]) : 20;
    int64_t images = argc > 3 ? atoi(argv[3]) : 1;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        if (argc > 4 && !strstr(layers[i].network, argv[4])) continue;
        measure(&layers[i], threads, milliseconds, images);
        fflush(stdout);
    }
    return 0;
}
