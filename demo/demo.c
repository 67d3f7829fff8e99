/* demo.c - shows what Sinter makes of pictures of digits: demo MODEL PICTURE... */
#include <sinter.h>

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 8, CLASSES = 10, SHOWN = 5, BAR = 24, RUNS = 2000 };

typedef struct guess {
    int digit;
    float probability;
} guess;

static bool colour; /* the terminal understands colours */

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Reads an 8x8 picture as grey values from 0 to 1. */
static bool read_picture(const char *path, float *pixels) {
    png_byte grey[SIDE * SIDE];
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_file(&image, path)) {
        fprintf(stderr, "%s: %s\n", path, image.message);
        return false;
    }
    image.format = PNG_FORMAT_GRAY;
    if (image.width != SIDE || image.height != SIDE) {
        fprintf(stderr, "%s is not %d x %d pixels\n", path, SIDE, SIDE);
        png_image_free(&image);
        return false;
    }
    if (!png_image_finish_read(&image, NULL, grey, 0, NULL)) {
        fprintf(stderr, "%s: %s\n", path, image.message);
        return false;
    }
    for (int i = 0; i < SIDE * SIDE; i++) pixels[i] = (float)grey[i] / 255;
    return true;
}

/* One row of pixels, each two columns wide and so about square. */
static void print_pixels(const float *row) {
    static const char *const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    for (int i = 0; i < SIDE; i++) {
        if (colour)
            printf("\033[48;5;%dm  ", 232 + (int)(row[i] * 23));
        else
            fputs(shades[(int)(row[i] * 4 + 0.5f)], stdout);
    }
    if (colour) fputs("\033[0m", stdout);
}

static void print_bar(const guess *g, bool best) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int units = (int)(g->probability * BAR * 8 + 0.5f);
    printf("  %s%d%s  %5.1f %% ", colour && best ? "\033[1m" : "", g->digit,
           colour && best ? "\033[0m" : "", 100 * (double)g->probability);
    if (colour) fputs(best ? "\033[38;5;208m" : "\033[38;5;244m", stdout);
    for (int i = 0; i < units / 8; i++) fputs("█", stdout);
    fputs(eighths[units % 8], stdout);
    if (colour) fputs("\033[0m", stdout);
}

static int by_probability(const void *a, const void *b) {
    float x = ((const guess *)a)->probability, y = ((const guess *)b)->probability;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void show(const float *pixels, const float *probabilities, double microseconds) {
    guess guesses[CLASSES];
    for (int i = 0; i < CLASSES; i++) guesses[i] = (guess){i, probabilities[i]};
    qsort(guesses, CLASSES, sizeof *guesses, by_probability);
    putchar('\n');
    for (int row = 0; row < SIDE; row++) {
        fputs("    ", stdout);
        print_pixels(pixels + row * SIDE);
        fputs("   ", stdout);
        if (row >= 1 && row <= SHOWN) print_bar(&guesses[row - 1], row == 1);
        if (row == SHOWN + 1) printf("  %.1f µs per run", microseconds);
        putchar('\n');
    }
}

static sn_status classify(sn_session *session, float *pixels, sn_error *err) {
    sn_binding in = {"image", NULL}, out = {"probabilities", NULL};
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
    options.threads = 1;
    size_t bytes = SIDE * SIDE * sizeof *pixels;
    sn_status status =
        sn_tensor_wrap(SN_FLOAT32, 4, (int64_t[]){1, 1, SIDE, SIDE}, pixels, bytes, &in.value, err);
    if (status == SN_OK) status = sn_session_run(session, &options, &in, 1, &out, 1, err);
    double start = now_us(), best = 1e30;
    for (int i = 0; i < RUNS && status == SN_OK; i++) {
        status = sn_session_run(session, &options, &in, 1, &out, 1, err);
        double end = now_us();
        if (end - start < best) best = end - start;
        start = end;
    }
    if (status == SN_OK) show(pixels, sn_tensor_const_data(out.value), best);
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
    return status;
}

static void show_optimiser(const sn_session *session, const char *path) {
    size_t before, after, count;
    const char *name;
    sn_session_node_counts(session, &before, &after);
    printf("\n  %s: %zu nodes became %zu\n", path, before, after);
    for (size_t i = 0; sn_session_rule(session, i, &name, &count); i++)
        if (count) printf("    %2zu x %s\n", count, name);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL PICTURE...\n", argv[0]);
        return 2;
    }
    const char *term = getenv("TERM");
    colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && term && strcmp(term, "dumb") != 0;
    sn_error err = {0};
    sn_model *model = NULL;
    sn_session *session = NULL;
    sn_status status = sn_model_load(argv[1], NULL, &model, &err);
    if (status == SN_OK) status = sn_session_create(model, NULL, &session, &err);
    for (int i = 2; i < argc && status == SN_OK; i++) {
        float pixels[SIDE * SIDE];
        if (!read_picture(argv[i], pixels)) {
            status = SN_IO;
            break;
        }
        status = classify(session, pixels, &err);
    }
    if (status == SN_OK) show_optimiser(session, argv[1]);
    if (status != SN_OK && err.message[0]) fprintf(stderr, "%s\n", err.message);
    sn_session_destroy(session);
    sn_model_destroy(model);
    return status == SN_OK ? 0 : 1;
}
