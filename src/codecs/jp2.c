/* jp2.c - JPEG 2000, as a file (JP2) or a bare code stream, by OpenJPEG. */
#include "codecs/codec.h"

#include <openjpeg.h>
#include <stdio.h>
#include <string.h>

typedef struct source {
    sni_image_bytes in;
    size_t at;
    char message[160]; /* the first that OpenJPEG gave */
} source;

static OPJ_SIZE_T on_read(void *to, OPJ_SIZE_T n, void *user) {
    source *s = user;
    size_t left = s->in.n - s->at, take = n < left ? n : left;
    if (!take) return (OPJ_SIZE_T)-1;
    memcpy(to, s->in.p + s->at, take);
    s->at += take;
    return take;
}

static OPJ_OFF_T on_skip(OPJ_OFF_T n, void *user) {
    source *s = user;
    if (n < 0 || (uint64_t)n > s->in.n - s->at) return -1;
    s->at += (size_t)n;
    return n;
}

static OPJ_BOOL on_seek(OPJ_OFF_T to, void *user) {
    source *s = user;
    if (to < 0 || (uint64_t)to > s->in.n) return OPJ_FALSE;
    s->at = (size_t)to;
    return OPJ_TRUE;
}

static void on_error(const char *message, void *user) {
    source *s = user;
    if (s->message[0]) return;
    snprintf(s->message, sizeof s->message, "%s", message);
    s->message[strcspn(s->message, "\r\n")] = 0;
}

static void on_message(const char *message, void *user) {
    (void)message, (void)user;
}

static sn_status fail(const source *s, sn_error *err) {
    return sni_fail(err, SN_MALFORMED, "%s",
                    s->message[0] ? s->message : "the data are broken or end early");
}

/* ---- What the code stream says of itself ---- */

enum { TILES = 16384, TILE_BYTES = 12288 }; /* most tiles, and what OpenJPEG takes for each */

static uint64_t big(const uint8_t *p, int width) {
    uint64_t v = 0;
    for (int i = 0; i < width; i++) v = v << 8 | p[i];
    return v;
}

/* The code stream: all of it, or what is in a file's box of that name. */
static sni_image_bytes find_stream(sni_image_bytes in) {
    if (in.p[0] == 0xff) return in;
    while (in.n >= 8) {
        uint64_t length = big(in.p, 4), head = 8;
        if (length == 1) {
            if (in.n < 16) break;
            length = big(in.p + 8, 8);
            head = 16;
        }
        if (length == 0) length = in.n;
        if (length < head || length > in.n) length = in.n;
        if (length < head) break;
        if (!memcmp(in.p + 4, "jp2c", 4))
            return (sni_image_bytes){in.p + head, (size_t)(length - head)};
        in.p += length;
        in.n -= (size_t)length;
    }
    return (sni_image_bytes){0};
}

/* Bytes that OpenJPEG will take when it reads the header. It takes them for every tile that is
 * announced, so they are bounded before. */
static sn_status header_bytes(sni_image_bytes in, size_t *bytes, sn_error *err) {
    sni_image_bytes c = find_stream(in);
    if (c.n < 42 || memcmp(c.p, "\xff\x4f\xff\x51", 4) != 0)
        return sni_fail(err, SN_MALFORMED, "there is no code stream");
    uint64_t tiles = 1, components = big(c.p + 40, 2);
    for (int axis = 0; axis < 2; axis++) {
        const uint8_t *p = c.p + 8 + axis * 4;
        uint64_t end = big(p, 4), tile = big(p + 16, 4), from = big(p + 24, 4);
        if (!tile || from >= end) return sni_fail(err, SN_MALFORMED, "tiles without pixels");
        tiles *= (end - from + tile - 1) / tile;
        if (tiles > TILES) return sni_fail(err, SN_LIMIT, "more than %d tiles", TILES);
    }
    if (components < 1 || components > 4)
        return sni_fail(err, SN_UNSUPPORTED, "%u components", (unsigned)components);
    *bytes = (size_t)tiles * TILE_BYTES;
    return SN_OK;
}

/* ---- Pixels ---- */

/* Sample of component c for the pixel at (x, y), as one of [0, 255]. */
static int sample(const opj_image_comp_t *c, int64_t x, int64_t y) {
    int64_t w = c->w, h = c->h, cx = x / c->dx, cy = y / c->dy;
    if (cx >= w) cx = w - 1;
    if (cy >= h) cy = h - 1;
    int64_t v = c->data[cy * w + cx];
    if (c->sgnd) v += (int64_t)1 << (c->prec - 1);
    v = c->prec > 8 ? v >> (c->prec - 8) : v * 255 / (((int64_t)1 << c->prec) - 1);
    return v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

static unsigned clamp(double v) {
    return v <= 0 ? 0 : v >= 255 ? 255 : (unsigned)(v + 0.5);
}

static void write_pixels(const opj_image_t *image, int64_t width, int64_t height, uint8_t *rgb) {
    const opj_image_comp_t *c = image->comps;
    bool grey = image->numcomps < 3, luma = image->color_space == OPJ_CLRSPC_SYCC;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++, rgb += 3) {
            int a = sample(&c[0], x, y);
            int b = grey ? a : sample(&c[1], x, y), d = grey ? a : sample(&c[2], x, y);
            if (grey || !luma)
                sni_put_rgb(rgb, (unsigned)a, (unsigned)b, (unsigned)d);
            else
                sni_put_rgb(rgb, clamp(a + 1.402 * (d - 128)),
                            clamp(a - 0.344136 * (b - 128) - 0.714136 * (d - 128)),
                            clamp(a + 1.772 * (b - 128)));
        }
}

/* The components must be there, of a size and depth that `sample` can take. */
static sn_status check_components(const opj_image_t *image, bool decoded, sn_error *err) {
    if (image->numcomps < 1 || image->numcomps > 4)
        return sni_fail(err, SN_UNSUPPORTED, "%u components", (unsigned)image->numcomps);
    for (unsigned i = 0; i < image->numcomps; i++) {
        const opj_image_comp_t *c = &image->comps[i];
        if (c->prec < 1 || c->prec > 31 || c->dx < 1 || c->dy < 1 || c->w < 1 || c->h < 1 ||
            (decoded && !c->data))
            return sni_fail(err, SN_MALFORMED, "component %u of %u x %u samples of %u bits", i,
                            (unsigned)c->w, (unsigned)c->h, (unsigned)c->prec);
    }
    return SN_OK;
}

static sn_status read_pixels(opj_codec_t *codec, opj_stream_t *stream, opj_image_t *image,
                             const source *s, const sni_image_target *target, sn_error *err) {
    int64_t width = (int64_t)image->x1 - image->x0, height = (int64_t)image->y1 - image->y0;
    uint8_t *rgb;
    SN_TRY(check_components(image, false, err));
    SN_TRY(sni_image_begin(target, width, height, &rgb, err));
    /* OpenJPEG holds 4 bytes a sample twice: of the picture and of its tiles. */
    size_t work = (size_t)(width * height) * image->numcomps * 8;
    SN_TRY(sni_budget_take(target->budget, work, err));
    bool good = opj_decode(codec, stream, image) && opj_end_decompress(codec, stream);
    sn_status status = good ? check_components(image, true, err) : fail(s, err);
    if (status == SN_OK) write_pixels(image, width, height, rgb);
    sni_budget_give(target->budget, work);
    return status;
}

sn_status sni_image_jp2(sni_image_bytes in, const sni_image_target *target, sn_error *err) {
    source s = {.in = in};
    opj_image_t *image = NULL;
    opj_dparameters_t parameters;
    sn_status status;
    size_t charged = 0;
    SN_TRY(header_bytes(in, &charged, err));
    SN_TRY(sni_budget_take(target->budget, charged, err));
    opj_codec_t *codec = opj_create_decompress(in.p[0] == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_create(64 << 10, OPJ_TRUE);
    if (!codec || !stream) {
        status = sni_fail_memory(err);
        goto done;
    }
    opj_set_error_handler(codec, on_error, &s);
    opj_set_warning_handler(codec, on_message, NULL);
    opj_set_info_handler(codec, on_message, NULL);
    opj_stream_set_user_data(stream, &s, NULL);
    opj_stream_set_user_data_length(stream, in.n);
    opj_stream_set_read_function(stream, on_read);
    opj_stream_set_skip_function(stream, on_skip);
    opj_stream_set_seek_function(stream, on_seek);
    opj_set_default_decoder_parameters(&parameters);
    if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, &image) || !image)
        status = fail(&s, err);
    else
        status = read_pixels(codec, stream, image, &s, target, err);
done:
    if (image) opj_image_destroy(image);
    if (stream) opj_stream_destroy(stream);
    if (codec) opj_destroy_codec(codec);
    sni_budget_give(target->budget, charged);
    return status;
}
