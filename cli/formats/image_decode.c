/* image_decode.c - the pixels of PNG and JPEG files, by libpng and libjpeg. */
#include "cli/formats/image_decode.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef SINTER_HAVE_PNG
#include <png.h>
#endif
#ifdef SINTER_HAVE_JPEG
#include <jpeglib.h>
#endif

bool cli_is_png(const char *bytes, size_t size) {
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

bool cli_is_jpeg(const char *bytes, size_t size) {
    return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

#if defined(SINTER_HAVE_PNG) || defined(SINTER_HAVE_JPEG)
static sn_status check_size(size_t width, size_t height, sn_error *err) {
    if (width == 0 || height == 0 || width > CLI_IMAGE_PIXELS / height) {
        return cli_fail(err, SN_LIMIT, "picture of %zu x %zu pixels; the most is %zu in all", width,
                        height, CLI_IMAGE_PIXELS);
    }
    return SN_OK;
}
#endif

#ifdef SINTER_HAVE_PNG
static void drop_alpha(unsigned char *pixels, size_t count) {
    for (size_t i = 0; i < count; i++) memmove(pixels + i * 3, pixels + i * 4, 3);
}

static sn_status decode_png(const char *bytes, size_t size, cli_pixels *out, sn_error *err) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, bytes, size)) {
        return cli_fail(err, SN_MALFORMED, "PNG: %s", image.message);
    }
    sn_status status = check_size(image.width, image.height, err);
    unsigned char *pixels = NULL;
    if (status == SN_OK) {
        image.format = PNG_FORMAT_RGBA;
        pixels = malloc((size_t)image.width * image.height * 4);
        if (!pixels) status = cli_fail(err, SN_NO_MEMORY, "no memory for the picture");
    }
    if (status == SN_OK && !png_image_finish_read(&image, NULL, pixels, 0, NULL)) {
        status = cli_fail(err, SN_MALFORMED, "PNG: %s", image.message);
    }
    png_image_free(&image);
    if (status != SN_OK) {
        free(pixels);
        return status;
    }
    drop_alpha(pixels, (size_t)image.width * image.height);
    *out = (cli_pixels){.width = image.width, .height = image.height, .data = pixels};
    return SN_OK;
}
#else
static sn_status decode_png(const char *bytes, size_t size, cli_pixels *out, sn_error *err) {
    (void)bytes, (void)size, (void)out;
    return cli_fail(err, SN_UNSUPPORTED, "this build has no PNG reader");
}
#endif

#ifdef SINTER_HAVE_JPEG
/* libjpeg's errors come back to `back`. */
typedef struct jpeg_state {
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct info;
    jmp_buf back;
    unsigned char *pixels;
    char message[JMSG_LENGTH_MAX];
} jpeg_state;

static void on_jpeg_error(j_common_ptr info) {
    jpeg_state *state = info->client_data;
    info->err->format_message(info, state->message);
    longjmp(state->back, 1);
}

static void ignore_jpeg_message(j_common_ptr info) {
    (void)info;
}

static void read_jpeg(jpeg_state *state, const char *bytes, size_t size, sn_status *status,
                      sn_error *err) {
    struct jpeg_decompress_struct *info = &state->info;
    jpeg_mem_src(info, (const unsigned char *)bytes, (unsigned long)size);
    jpeg_read_header(info, TRUE);
    *status = check_size(info->image_width, info->image_height, err);
    if (*status != SN_OK) return;
    info->out_color_space = JCS_RGB;
    jpeg_start_decompress(info);
    size_t row = (size_t)info->output_width * 3;
    state->pixels = malloc(row * info->output_height);
    if (!state->pixels) {
        *status = cli_fail(err, SN_NO_MEMORY, "no memory for the picture");
        return;
    }
    while (info->output_scanline < info->output_height) {
        JSAMPROW line = state->pixels + row * info->output_scanline;
        jpeg_read_scanlines(info, &line, 1);
    }
    jpeg_finish_decompress(info);
}

static sn_status decode_jpeg(const char *bytes, size_t size, cli_pixels *out, sn_error *err) {
    jpeg_state *state = cli_alloc(1, sizeof *state);
    sn_status *status = cli_alloc(1, sizeof *status); /* kept off the stack that longjmp cuts */
    state->info.err = jpeg_std_error(&state->errors);
    state->info.client_data = state;
    state->errors.error_exit = on_jpeg_error;
    state->errors.output_message = ignore_jpeg_message;
    if (setjmp(state->back) == 0) {
        jpeg_create_decompress(&state->info);
        state->info.client_data = state;
        read_jpeg(state, bytes, size, status, err);
    } else {
        *status = cli_fail(err, SN_MALFORMED, "JPEG: %s", state->message);
    }
    sn_status result = *status;
    if (result == SN_OK) {
        *out = (cli_pixels){.width = state->info.output_width,
                            .height = state->info.output_height,
                            .data = state->pixels};
    } else {
        free(state->pixels);
    }
    jpeg_destroy_decompress(&state->info);
    free(state);
    free(status);
    return result;
}
#else
static sn_status decode_jpeg(const char *bytes, size_t size, cli_pixels *out, sn_error *err) {
    (void)bytes, (void)size, (void)out;
    return cli_fail(err, SN_UNSUPPORTED, "this build has no JPEG reader");
}
#endif

sn_status cli_pixels_decode(const char *bytes, size_t size, cli_pixels *out, sn_error *err) {
    if (cli_is_png(bytes, size)) return decode_png(bytes, size, out, err);
    if (cli_is_jpeg(bytes, size)) return decode_jpeg(bytes, size, out, err);
    return cli_fail(err, SN_MALFORMED, "neither a PNG nor a JPEG file");
}
