/* conv_layers.c - convolution layers of well-known networks: what is expected of the direct sums
 * and of each variant of Winograd's method, beside what they take.
 *
 *     bench_conv [--cold] [threads] [milliseconds per measurement] [images] [network]
 *     bench_conv --costs [milliseconds per measurement]
 *
 * --cold has weights leave the caches before each run, as they do in a large model.
 * Expected times are in cycles of one thread; "x" columns are ratios to the direct way, expected
 * and measured, so that both can be read side by side. --costs measures cold layers and prints the
 * coefficients (cpu/costs) whose estimates come closest to that. */
#include "layers.h"

#include "cpu/conv/blocked.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_costs.h"
#include "cpu/conv/winograd/winograd.h"
#include "graph/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    const char *network;
    int64_t in, out, size, kernel_h, kernel_w; /* size: of the output */
    int64_t stride;                            /* 0: 1 */
} layer;

static const layer layers[] = {
    {"resnet18/50", 64, 64, 56, 3, 3},
    {"resnet18/50", 128, 128, 28, 3, 3},
    {"resnet18/50", 256, 256, 14, 3, 3},
    {"resnet18/50", 512, 512, 7, 3, 3},
    {"vgg16", 64, 64, 224, 3, 3},
    {"vgg16", 64, 128, 112, 3, 3},
    {"vgg16", 128, 128, 112, 3, 3},
    {"vgg16", 256, 256, 56, 3, 3},
    {"vgg16", 512, 512, 28, 3, 3},
    {"vgg16", 512, 512, 14, 3, 3},
    {"yolov8n", 16, 16, 160, 3, 3},
    {"yolov8n", 32, 32, 80, 3, 3},
    {"yolov8n", 64, 64, 40, 3, 3},
    {"yolov8n", 128, 128, 20, 3, 3},
    {"yolov8n", 80, 80, 80, 3, 3},
    {"unet", 32, 32, 256, 3, 3},
    {"unet", 64, 64, 128, 3, 3},
    {"unet", 128, 64, 128, 3, 3},
    {"unet", 256, 256, 32, 3, 3},
    {"super-resolution", 64, 32, 224, 3, 3},
    {"densenet", 128, 32, 28, 3, 3},
    {"densenet", 128, 32, 14, 3, 3},
    {"inception", 64, 96, 35, 3, 3},
    {"inception", 48, 64, 35, 5, 5},
    {"inception", 192, 192, 17, 1, 7},
    {"inception", 160, 160, 17, 7, 1},
    {"inception", 384, 384, 8, 1, 3},
    {"squeezenet", 16, 64, 55, 3, 3},
    {"squeezenet", 64, 256, 13, 3, 3},
    {"dcgan, a phase", 512, 256, 4, 2, 2},
    {"dcgan, a phase", 256, 128, 8, 2, 2},
    {"dcgan, a phase", 128, 64, 16, 2, 2},
    {"pose, a phase", 256, 256, 16, 2, 2},
    {"pose, a phase", 256, 256, 32, 2, 2},
    {"resnet18/50 strided", 64, 128, 28, 3, 3, 2},
    {"resnet18/50 strided", 128, 128, 28, 3, 3, 2},
    {"resnet18/50 strided", 128, 256, 14, 3, 3, 2},
    {"resnet18/50 strided", 256, 256, 14, 3, 3, 2},
    {"resnet18/50 strided", 512, 512, 7, 3, 3, 2},
    {"yolov8n strided", 16, 32, 160, 3, 3, 2},
    {"yolov8n strided", 32, 64, 80, 3, 3, 2},
    {"yolov8n strided", 64, 128, 40, 3, 3, 2},
    {"yolov8n strided", 64, 64, 40, 3, 3, 2},
    {"yolov8n strided", 128, 256, 20, 3, 3, 2},
    {"yolov8n strided", 128, 128, 20, 3, 3, 2},
};

static bool cold;

/* What the layer before has left in the caches: the picture, and the memory that all layers use. */
enum { WARM = 3 };
static struct {
    const float *data;
    int64_t count;
} warm[WARM];

static float sum_of(const float *data, int64_t count) {
    float s = 0;
    for (int64_t i = 0; i < count; i += 16) s += data[i];
    return s;
}

/* Reads more than the caches hold, and then what stays warm: weights come from memory. */
static void wipe(void) {
    enum { WIPED = 40 << 20 }; /* floats */
    static float *room;
    if (!room) room = floats(WIPED);
    float s = sum_of(room, WIPED);
    for (int i = WARM - 1; i >= 0; i--) s += sum_of(warm[i].data, warm[i].count);
    if (s > 1e30f) exit(1); /* the sum must be computed */
}

/* The quickest of the runs that fit the time. */
static double fastest(void (*run)(void *), void *ctx, double milliseconds) {
    double best = 1e30, start = now();
    for (int i = 0; i < 3 || now() - start < milliseconds; i++) {
        if (cold) wipe();
        double at = now();
        run(ctx);
        at = now() - at;
        if (at < best) best = at;
    }
    return best;
}

static void run_wino(void *ctx) {
    sni_wino_run(ctx);
}

static double time_wino(const sni_conv_geometry *g, const sni_wino_variant *variant, const float *w,
                        float *x, float *y, int threads, double milliseconds) {
    size_t count = sni_wino_scratch_size(g, variant, threads);
    float *packed = floats((int64_t)sni_wino_packed_size(g, variant));
    sni_wino_call r = {.g = g,
                       .variant = variant,
                       .packed = packed,
                       .x = x,
                       .y = y,
                       .threads = threads,
                       .scratch = floats((int64_t)count),
                       .scratch_floats = count};
    sni_wino_pack(g, variant, w, packed, threads);
    warm[2].data = r.scratch;
    warm[2].count = (int64_t)count;
    double t = fastest(run_wino, &r, milliseconds);
    warm[2].count = 0;
    free(packed);
    free(r.scratch);
    return t;
}

static void quit(const sn_error *err) {
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static sn_status no_poll(const sni_kernel *k, sn_error *err) {
    (void)k, (void)err;
    return SN_OK;
}

/* Scratch of one call: the frame of a small picture. */
static void *lend(sni_kernel *k, size_t bytes) {
    static float *room;
    static size_t size;
    (void)k;
    if (bytes > size) {
        free(room);
        room = floats((int64_t)(bytes / sizeof *room) + 1);
        size = bytes;
    }
    return room;
}

typedef struct direct_run {
    sni_kernel kernel;
    void *state;
} direct_run;

static void run_direct(void *ctx) {
    direct_run *r = ctx;
    sni_conv_direct_run(&r->kernel);
}

static void blocked_datum(sni_datum *d, int64_t n, int64_t channels, int64_t h, int64_t w,
                          float *data) {
    int64_t block = sni_cpu_block();
    *d = (sni_datum){.kind = SN_KIND_TENSOR};
    sni_tensor_shape(&d->tensor, SN_FLOAT32, 5,
                     (int64_t[]){n, sni_blocks(channels, block), h, w, block}, NULL);
    d->tensor.data = data;
}

/* The direct implementation as a plan would call it. */
static double time_direct(const sni_conv_geometry *g, float *w, float *x, float *y, int threads,
                          double milliseconds) {
    static const sni_host host = {.poll = no_poll, .scratch = lend};
    int64_t pads[4] = {g->pad_top, g->pad_left, g->pad_bottom, g->pad_right};
    int64_t strides[2] = {g->stride_h, g->stride_w};
    sni_blocked_conv_params params = {.block = sni_cpu_block(), .fused.conv.group = 1};
    params.fused.conv.window.pads = (sni_ints){.v = pads, .n = 4, .given = true};
    params.fused.conv.window.strides = (sni_ints){.v = strides, .n = 2, .given = true};
    sni_datum dx, dw = {.kind = SN_KIND_TENSOR}, dy;
    blocked_datum(&dx, g->n, g->in_channels, g->in_h, g->in_w, x);
    blocked_datum(&dy, g->n, g->out_channels, g->out_h, g->out_w, y);
    sni_tensor_shape(&dw.tensor, SN_FLOAT32, 4,
                     (int64_t[]){g->out_channels, g->in_channels, g->kernel_h, g->kernel_w}, NULL);
    dw.tensor.data = w;
    sni_type types[2] = {{.kind = SN_KIND_TENSOR,
                          .dtype = SN_FLOAT32,
                          .has_shape = true,
                          .rank = 5,
                          .dims = dx.tensor.dims},
                         {.kind = SN_KIND_TENSOR,
                          .dtype = SN_FLOAT32,
                          .has_shape = true,
                          .rank = 4,
                          .dims = dw.tensor.dims}};
    sni_store *store = NULL;
    sni_const *weight = NULL;
    sn_error err = {0};
    if (sni_store_new(NULL, 0, &store, &err) != SN_OK ||
        sni_const_new(store, SN_FLOAT32, 4, dw.tensor.dims, &weight, &err) != SN_OK)
        quit(&err);
    memcpy(weight->tensor.data, w, sni_tensor_bytes(&dw.tensor));
    sni_pack pack = {0};
    sni_borrows borrows = {0};
    sni_choice choice = {.params = &params,
                         .n_in = 2,
                         .in = (const sni_type *const[]){&types[0], &types[1]},
                         .constants = (sni_const *const[]){weight, weight},
                         .pack = &pack,
                         .borrows = &borrows};
    direct_run r = {0};
    if (sni_conv_direct_prepare(&choice, &r.state, &err) != SN_OK) quit(&err);
    r.kernel = (sni_kernel){.params = &params,
                            .n_in = 2,
                            .n_out = 1,
                            .in = (const sni_datum *const[]){&dx, &dw},
                            .out = (sni_datum *const[]){&dy},
                            .threads = threads,
                            .state = r.state,
                            .host = &host,
                            .err = &err};
    double t = fastest(run_direct, &r, milliseconds);
    sni_conv_direct_release(r.state);
    sni_pack_clear(&pack);
    sni_store_release(store);
    return t;
}

/* ---- Layers ---- */

/* A way to compute a layer, and what it takes. */
typedef struct sample {
    sni_conv_geometry g;
    sni_wino_variant variant; /* t_h 0: direct sums */
    double milliseconds;
} sample;

enum { WAYS = 6 }; /* direct sums, 4 to 10 points, and weights that are transformed in passing */

static sni_conv_geometry geometry_of(const layer *l, int64_t images) {
    int64_t stride = l->stride ? l->stride : 1;
    sni_conv_geometry g = {.n = images,
                           .in_channels = l->in,
                           .out_channels = l->out,
                           .groups = 1,
                           .in_h = l->size * stride,
                           .in_w = l->size * stride,
                           .out_h = l->size,
                           .out_w = l->size,
                           .kernel_h = l->kernel_h,
                           .kernel_w = l->kernel_w,
                           .stride_h = stride,
                           .stride_w = stride,
                           .dilation_h = 1,
                           .dilation_w = 1};
    g.pad_top = g.kernel_h / 2;
    g.pad_left = g.kernel_w / 2;
    g.pad_bottom = (g.kernel_h - 1) / 2;
    g.pad_right = (g.kernel_w - 1) / 2;
    return g;
}

/* Way 0 is direct sums. False: the layer has no such way. */
static bool way_of(const sni_conv_geometry *g, int way, sni_wino_variant *variant) {
    int t = 2 + 2 * way;
    *variant = (sni_wino_variant){0};
    if (way == 0) return true;
    if (way == WAYS - 1) return sni_wino_variant_of_taps(g, variant);
    return sni_wino_variant_of(g, g->kernel_h > 1 ? t : 1, g->kernel_w > 1 ? t : 1, variant);
}

static double cost_of(const sample *s, const sni_costs *costs) {
    return s->variant.t_h ? sni_wino_cost(&s->g, &s->variant, costs)
                          : sni_conv_direct_cost(&s->g, costs);
}

/* Measures a layer by all ways; samples[way].milliseconds is 0 for those that it has not. */
static void measure(const layer *l, int threads, double milliseconds, int64_t images,
                    sample samples[WAYS]) {
    sni_conv_geometry g = geometry_of(l, images);
    int64_t block = sni_cpu_block();
    warm[0].count = g.n * sni_blocks(l->in, block) * block * g.in_h * g.in_w;
    warm[1].count = g.n * sni_blocks(l->out, block) * block * g.out_h * g.out_w;
    float *x = floats(warm[0].count), *y = floats(warm[1].count);
    warm[0].data = x;
    warm[1].data = y;
    float *w = floats(l->out * l->in * l->kernel_h * l->kernel_w);
    for (int way = 0; way < WAYS; way++) {
        sample *s = &samples[way];
        *s = (sample){.g = g};
        if (!way_of(&g, way, &s->variant)) continue;
        s->milliseconds = way ? time_wino(&g, &s->variant, w, x, y, threads, milliseconds)
                              : time_direct(&g, w, x, y, threads, milliseconds);
    }
    free(x);
    free(y);
    free(w);
}

static bool is_same(const sni_wino_variant *a, const sni_wino_variant *b) {
    return a->t_h == b->t_h && a->t_w == b->t_w && a->taps == b->taps;
}

static void print(const layer *l, const sample samples[WAYS]) {
    static const char *const names[WAYS] = {"direct", "4", "6", "8", "10", "taps"};
    const sni_costs *costs = sni_costs_get();
    const sni_conv_geometry *g = &samples[0].g;
    double direct = samples[0].milliseconds, expected = cost_of(&samples[0], costs);
    double macs = (double)(l->in * l->out * l->kernel_h * l->kernel_w * g->n * l->size * l->size);
    sni_wino_variant variant = {0};
    sni_wino_choose(g, false, sni_wino_part * expected, costs, &variant);
    int best = 0, chosen = 0;
    printf("%-19s %3d %3d %3d %dx%d %8.3f ms %5.0f GMAC/s, %4.1f cycles", l->network, (int)l->in,
           (int)l->out, (int)l->size, (int)l->kernel_h, (int)l->kernel_w, direct,
           macs / direct * 1e-6, expected / direct * 1e-6);
    for (int way = 1; way < WAYS; way++) {
        const sample *s = &samples[way];
        if (s->milliseconds == 0) continue;
        printf(" | %s: x%.2f x%.2f", names[way], expected / cost_of(s, costs),
               direct / s->milliseconds);
        if (s->milliseconds < samples[best].milliseconds) best = way;
        if (is_same(&s->variant, &variant)) chosen = way;
    }
    printf(" | chosen %s, best %s, lost %.0f %%\n", names[chosen], names[best],
           (samples[chosen].milliseconds / samples[best].milliseconds - 1) * 100);
}

/* ---- Coefficients ---- */

/* Cycles of a millisecond: additions that wait for one another take one each. */
static double clock_rate(void) {
    enum { ADDITIONS = 1000000, TIMES = 200 }; /* too short to be disturbed each time */
    double best = 1e30;
    for (int i = 0; i < TIMES; i++) {
        double at = now();
        uint64_t sum = 0;
        for (int64_t j = 0; j < ADDITIONS; j++) {
            sum += (uint64_t)j;
            __asm__ volatile("" : "+r"(sum));
        }
        at = now() - at;
        if (at < best) best = at;
    }
    return ADDITIONS / best;
}

/* The mean of how far estimates are off, as logarithms: what a few disturbed measurements say does
 * not weigh more than the others. */
static double misfit(const sample *samples, int count, double rate, const sni_costs *costs) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += fabs(log(cost_of(&samples[i], costs) / (samples[i].milliseconds * rate)));
    return sum / count;
}

/* Changes one coefficient at a time by a step that shrinks, as long as that comes closer. */
static double fit(const sample *samples, int count, double rate, sni_costs *costs) {
    sni_conv_costs *p = &costs->conv;
    double *const coefficients[] = {&p->direct_rate,   &p->product_rate, &p->transform_in,
                                    &p->transform_out, &p->stream,       &p->reread,
                                    &p->overlap};
    double best = misfit(samples, count, rate, costs);
    for (double step = 1.3; step > 1.01; step = sqrt(step)) {
        bool closer = true;
        while (closer) {
            closer = false;
            for (size_t i = 0; i < 2 * sizeof coefficients / sizeof *coefficients; i++) {
                double *v = coefficients[i / 2], old = *v;
                *v = i % 2 ? old * step : old / step;
                double now_off = misfit(samples, count, rate, costs);
                if (now_off < best * 0.9999) {
                    best = now_off;
                    closer = true;
                } else {
                    *v = old;
                }
            }
        }
    }
    return best;
}

/* Layers that take so long are disturbed too often, and say nothing that others do not. */
static bool is_short(const layer *l) {
    return l->in * l->out * l->kernel_h * l->kernel_w * l->size * l->size < 400000000;
}

static void print_costs(double milliseconds) {
    static sample all[sizeof layers / sizeof *layers * WAYS];
    int count = 0;
    double rate = clock_rate();
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        sample samples[WAYS];
        if (!is_short(&layers[i])) continue;
        measure(&layers[i], 1, milliseconds, 1, samples);
        for (int way = 0; way < WAYS; way++)
            if (samples[way].milliseconds != 0) all[count++] = samples[way];
    }
    sni_costs costs = *sni_costs_get();
    double before = misfit(all, count, rate, &costs), after = fit(all, count, rate, &costs);
    const sni_conv_costs *p = &costs.conv;
    printf("/* %s: %d measurements at %.2f GHz; estimates are off by %.0f %% in the mean, %.0f %% "
           "with these. */\n",
           costs.name, count, rate * 1e-6, (exp(before) - 1) * 100, (exp(after) - 1) * 100);
    printf(".conv =\n    {\n        .direct_rate = %.2f,\n        .inner_rate = %.2f,\n"
           "        .product_rate = %.2f,\n        .transform_in = %.1f,\n"
           "        .transform_out = %.1f,\n        .stream = %.1f,\n        .reread = %.1f,\n"
           "        .overlap = %.2f,\n    },\n",
           p->direct_rate, p->inner_rate, p->product_rate, p->transform_in, p->transform_out,
           p->stream, p->reread, p->overlap);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--costs")) {
        cold = true;
        print_costs(argc > 2 ? atof(argv[2]) : 300);
        return 0;
    }
    cold = argc > 1 && !strcmp(argv[1], "--cold");
    argc -= cold;
    argv += cold;
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double milliseconds = argc > 2 ? atof(argv[2]) : 40;
    int64_t images = argc > 3 ? atoi(argv[3]) : 1;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        sample samples[WAYS];
        if (argc > 4 && !strstr(layers[i].network, argv[4])) continue;
        measure(&layers[i], threads, milliseconds, images, samples);
        print(&layers[i], samples);
        fflush(stdout);
    }
    return 0;
}
