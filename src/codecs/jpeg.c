/* jpeg.c - JPEG, by libjpeg (or libjpeg-turbo). */
#include "codecs/codec.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

enum { SCANS = 500 }; /* most scans of a progressive file: each is work on the whole picture */

/* libjpeg jumps back to `guarded` from under our callbacks and steps, which own nothing. */
typedef struct state {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    sni_image_bytes in;
    jmp_buf back;
    char message[JMSG_LENGTH_MAX];
    uint8_t *rgb;
    uint8_t *line; /* of a picture in cyan, magenta, yellow and black */
    size_t charged;
} state;

static void on_error(j_common_ptr info) {
    state *s = info->client_data;
    info->err->format_message(info, s->message);
    longjmp(s->back, 1);
}

/* Damaged data goes on with a guess, as it does elsewhere; data that end too early do not. */
static void on_message(j_common_ptr info, int level) {
    if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) on_error(info);
}

static void on_progress(j_common_ptr info) {
    if (((j_decompress_ptr)info)->input_scan_number <= SCANS) return;
    state *s = info->client_data;
    snprintf(s->message, sizeof s->message, "more than %d scans", SCANS);
    longjmp(s->back, 1);
}

static bool guarded(state *s, void (*step)(state *)) {
    if (setjmp(s->back)) return false;
    step(s);
    return true;
}

static void read_header(state *s) {
    jpeg_create_decompress(&s->info);
    s->info.progress = &s->progress;
    jpeg_mem_src(&s->info, s->in.p, (unsigned long)s->in.n);
    jpeg_read_header(&s->info, TRUE);
}

static bool is_cmyk(const state *s) {
    return s->info.jpeg_color_space == JCS_CMYK || s->info.jpeg_color_space == JCS_YCCK;
}

/* Adobe's files hold the opposite of the amount of ink. */
static void cmyk_row(const uint8_t *cmyk, bool adobe, int64_t width, uint8_t *rgb) {
    for (int64_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        int ink[4];
        for (int i = 0; i < 4; i++) ink[i] = adobe ? 255 - cmyk[i] : cmyk[i];
        int light = 255 - ink[3];
        for (int i = 0; i < 3; i++) rgb[i] = (uint8_t)(light - (ink[i] * light + 127) / 255);
    }
}

static void read_pixels(state *s) {
    struct jpeg_decompress_struct *info = &s->info;
    info->out_color_space = s->line ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        uint8_t *rgb = s->rgb + (size_t)info->output_scanline * info->output_width * 3;
        JSAMPROW row = s->line ? s->line : rgb;
        jpeg_read_scanlines(info, &row, 1);
        if (s->line) cmyk_row(row, info->saw_Adobe_marker, info->output_width, rgb);
    }
}

/* What libjpeg keeps of a file whose scans have to be collected: all coefficients, 2 bytes each. */
static sn_status charge(state *s, sni_budget *budget, sn_error *err) {
    struct jpeg_decompress_struct *info = &s->info;
    size_t bytes = 1 << 20;
    if (jpeg_has_multiple_scans(info))
        bytes += ((size_t)info->image_width + 64) * ((size_t)info->image_height + 64) * 2 *
                 (size_t)info->num_components;
    SN_TRY(sni_budget_take(budget, bytes, err));
    s->charged = bytes;
    info->mem->max_memory_to_use = (long)(bytes + (64 << 20));
    return SN_OK;
}

sn_status sni_image_jpeg(sni_image_bytes in, const sni_image_target *target, sn_error *err) {
    state s = {.in = in};
    sni_buffer *line = NULL;
    sn_status status;
    s.info.err = jpeg_std_error(&s.errors);
    s.info.client_data = &s;
    s.errors.error_exit = on_error;
    s.errors.emit_message = on_message;
    s.progress.progress_monitor = on_progress;
    if (!guarded(&s, read_header)) {
        status = sni_fail(err, SN_MALFORMED, "%s", s.message);
        goto done;
    }
    status = sni_image_begin(target, s.info.image_width, s.info.image_height, &s.rgb, err);
    if (status == SN_OK) status = charge(&s, target->budget, err);
    if (status == SN_OK && is_cmyk(&s))
        status = sni_buffer_new((size_t)s.info.image_width * 4, target->budget, &line, err);
    if (status != SN_OK) goto done;
    s.line = line ? line->data : NULL;
    if (!guarded(&s, read_pixels)) status = sni_fail(err, SN_MALFORMED, "%s", s.message);
done:
    jpeg_destroy_decompress(&s.info);
    if (s.charged) sni_budget_give(target->budget, s.charged);
    sni_buffer_release(line);
    return status;
}
