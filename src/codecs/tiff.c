/* tiff.c - TIFF, by libtiff. */
#include "codecs/codec.h"

#include <stdio.h>
#include <string.h>
#include <tiffio.h>

typedef struct source {
    sni_image_bytes in;
    uint64_t at;
    char message[160]; /* the first that libtiff gave */
} source;

static tmsize_t on_read(thandle_t handle, void *to, tmsize_t n) {
    source *s = (source *)handle;
    if (n <= 0 || s->at >= s->in.n) return 0;
    size_t left = s->in.n - (size_t)s->at, take = (size_t)n < left ? (size_t)n : left;
    memcpy(to, s->in.p + s->at, take);
    s->at += take;
    return (tmsize_t)take;
}

static tmsize_t on_write(thandle_t handle, void *from, tmsize_t n) {
    (void)handle, (void)from, (void)n;
    return 0;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
    source *s = (source *)handle;
    s->at = whence == SEEK_SET   ? offset
            : whence == SEEK_CUR ? s->at + offset
                                 : (uint64_t)s->in.n + offset;
    return s->at;
}

static int on_close(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t on_size(thandle_t handle) {
    return ((source *)handle)->in.n;
}

static int on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args) {
    source *s = user;
    (void)tiff, (void)module;
    if (!s->message[0]) vsnprintf(s->message, sizeof s->message, format, args);
    return 1;
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format,
                      va_list args) {
    (void)tiff, (void)user, (void)module, (void)format, (void)args;
    return 1;
}

static TIFF *open_memory(source *s) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)SNI_IMAGE_PIXELS * 4);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, s);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, s);
    TIFF *tiff = TIFFClientOpenExt("picture", "rm", (thandle_t)s, on_read, on_write, on_seek,
                                   on_close, on_size, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

/* libtiff multiplies colours with an alpha that is not marked as already done: so mark it. */
static void ignore_alpha(TIFF *tiff) {
    uint16_t count = 0, *kinds = NULL;
    if (!TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) || count < 1 || !kinds) return;
    uint16_t done[1] = {EXTRASAMPLE_ASSOCALPHA};
    if (count == 1 && kinds[0] == EXTRASAMPLE_UNASSALPHA)
        TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, done);
}

/* Bytes that libtiff takes for one strip or tile. */
static uint64_t piece_bytes(TIFF *tiff) {
    return TIFFIsTiled(tiff) ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
}

static sn_status read_pixels(TIFF *tiff, uint32_t width, uint32_t height, uint8_t *rgb,
                             sni_budget *budget, const source *s, sn_error *err) {
    size_t pixels = (size_t)width * height;
    sni_buffer *buffer = NULL;
    uint64_t piece = piece_bytes(tiff);
    if (piece > (uint64_t)SNI_IMAGE_PIXELS * 4)
        return sni_fail(err, SN_LIMIT, "a strip or tile of %llu bytes", (unsigned long long)piece);
    SN_TRY(sni_budget_take(budget, (size_t)piece, err));
    sn_status status = sni_buffer_new(pixels * 4, budget, &buffer, err);
    if (status != SN_OK) goto done;
    uint32_t *raster = (uint32_t *)(void *)buffer->data;
    if (!TIFFReadRGBAImageOriented(tiff, width, height, raster, ORIENTATION_TOPLEFT, 1)) {
        status = sni_fail(err, SN_MALFORMED, "%s",
                          s->message[0] ? s->message : "the pixels cannot be read");
        goto done;
    }
    for (size_t i = 0; i < pixels; i++)
        sni_put_rgb(rgb + i * 3, TIFFGetR(raster[i]), TIFFGetG(raster[i]), TIFFGetB(raster[i]));
done:
    sni_buffer_release(buffer);
    sni_budget_give(budget, (size_t)piece);
    return status;
}

sn_status sni_image_tiff(sni_image_bytes in, const sni_image_target *target, sn_error *err) {
    source s = {.in = in};
    uint32_t width = 0, height = 0;
    uint8_t *rgb;
    char message[1024] = "";
    sn_status status;
    TIFF *tiff = open_memory(&s);
    if (!tiff)
        return sni_fail(err, SN_MALFORMED, "%s", s.message[0] ? s.message : "it cannot be opened");
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height)) {
        status = sni_fail(err, SN_MALFORMED, "it does not tell its size");
    } else if (!TIFFRGBAImageOK(tiff, message)) {
        status = sni_fail(err, SN_UNSUPPORTED, "%s", message);
    } else {
        status = sni_image_begin(target, width, height, &rgb, err);
        ignore_alpha(tiff);
        if (status == SN_OK)
            status = read_pixels(tiff, width, height, rgb, target->budget, &s, err);
    }
    TIFFClose(tiff);
    return status;
}
