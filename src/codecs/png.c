/* png.c - PNG, by libpng. */
#include "codecs/codec.h"

#include <png.h>
#include <setjmp.h>

/* libpng jumps back to `guarded` from under our callbacks and steps, which own nothing. */
typedef struct state {
    png_structp png;
    png_infop info;
    sni_image_bytes in;
    jmp_buf back;
    char message[128];
    uint8_t *rgb;
} state;

static void on_error(png_structp png, png_const_charp message) {
    state *s = png_get_error_ptr(png);
    size_t n = strlen(message);
    if (n >= sizeof s->message) n = sizeof s->message - 1;
    memcpy(s->message, message, n);
    s->message[n] = 0;
    longjmp(s->back, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    (void)png, (void)message;
}

static void on_read(png_structp png, png_bytep to, size_t n) {
    state *s = png_get_io_ptr(png);
    if (n > s->in.n) png_error(png, "the file ends early");
    memcpy(to, s->in.p, n);
    s->in.p += n;
    s->in.n -= n;
}

static bool guarded(state *s, void (*step)(state *)) {
    if (setjmp(s->back)) return false;
    step(s);
    return true;
}

static void read_header(state *s) {
    png_set_user_limits(s->png, SNI_IMAGE_SIDE, SNI_IMAGE_SIDE);
    png_set_chunk_cache_max(s->png, 64);
    png_set_chunk_malloc_max(s->png, 4 << 20);
    png_set_read_fn(s->png, s, on_read);
    png_read_info(s->png, s->info);
}

static void read_pixels(state *s) {
    int type = png_get_color_type(s->png, s->info);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(s->png);
    if (!(type & PNG_COLOR_MASK_COLOR)) {
        png_set_expand_gray_1_2_4_to_8(s->png);
        png_set_gray_to_rgb(s->png);
    }
    png_set_strip_16(s->png);
    png_set_strip_alpha(s->png);
    int passes = png_set_interlace_handling(s->png);
    png_read_update_info(s->png, s->info);
    size_t row = png_get_rowbytes(s->png, s->info);
    png_uint_32 width = png_get_image_width(s->png, s->info);
    png_uint_32 height = png_get_image_height(s->png, s->info);
    if (row != (size_t)width * 3) png_error(s->png, "rows of an unknown layout");
    for (int pass = 0; pass < passes; pass++)
        for (png_uint_32 y = 0; y < height; y++)
            png_read_row(s->png, s->rgb + (size_t)y * row, NULL);
}

sn_status sni_image_png(sni_image_bytes in, const sni_image_target *target, sn_error *err) {
    state s = {.in = in};
    sn_status status = SN_OK;
    s.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning);
    if (s.png) s.info = png_create_info_struct(s.png);
    if (!s.info) {
        status = sni_fail_memory(err);
        goto done;
    }
    if (!guarded(&s, read_header)) {
        status = sni_fail(err, SN_MALFORMED, "%s", s.message);
        goto done;
    }
    status = sni_image_begin(target, png_get_image_width(s.png, s.info),
                             png_get_image_height(s.png, s.info), &s.rgb, err);
    if (status == SN_OK && !guarded(&s, read_pixels))
        status = sni_fail(err, SN_MALFORMED, "%s", s.message);
done:
    png_destroy_read_struct(&s.png, &s.info, NULL);
    return status;
}
