/* test_image.c - the picture decoders: exact pixels, and broken, cut and oversized files. */
#include "unit.h"

#include "codecs/image.h"

#include <stdio.h>
#include <stdlib.h>
#ifdef SNI_HAVE_PNG
#include <png.h>
#endif
#ifdef SNI_HAVE_JPEG
#include <jpeglib.h>
#endif
#ifdef SNI_HAVE_WEBP
#include <webp/encode.h>
#endif
#ifdef SNI_HAVE_JP2
#include <openjpeg.h>
#endif

enum { W = 7, H = 5, ROOM = 1 << 16 };

typedef struct bytes {
    uint8_t p[ROOM];
    size_t n;
} bytes;

typedef struct picture {
    int64_t width, height;
    uint8_t *rgb;
    sn_status status;
    sn_error err;
} picture;

static sn_status begin(void *ctx, int64_t width, int64_t height, uint8_t **rgb, sn_error *err) {
    picture *p = ctx;
    assert_null(p->rgb);
    p->width = width;
    p->height = height;
    size_t n = (size_t)(width * height) * 3;
    if (n > 64 << 20) return sni_fail(err, SN_LIMIT, "%zu bytes", n);
    p->rgb = malloc(n);
    assert_non_null(p->rgb);
    *rgb = p->rgb;
    return SN_OK;
}

/* Decodes a copy that ends where the bytes end, with a budget; the caller frees rgb. */
static picture decode_within(const uint8_t *data, size_t n, size_t limit) {
    picture p = {0};
    sni_budget budget = {.limit = limit};
    sni_image_target target = {begin, &p, &budget};
    uint8_t *copy = malloc(n + !n);
    assert_non_null(copy);
    memcpy(copy, data, n);
    p.status = sni_image_decode(copy, n, &target, &p.err);
    free(copy);
    assert_int_equal(atomic_load(&budget.used), 0);
    return p;
}

static picture decode(const uint8_t *data, size_t n) {
    return decode_within(data, n, 0);
}

static void add(bytes *b, const void *data, size_t n) {
    assert_true(b->n + n <= ROOM);
    memcpy(b->p + b->n, data, n);
    b->n += n;
}

static void add_text(bytes *b, const char *text) {
    add(b, text, strlen(text));
}

static void add_little(bytes *b, uint64_t v, int width) {
    for (int i = 0; i < width; i++) {
        uint8_t byte = (uint8_t)(v >> (8 * i));
        add(b, &byte, 1);
    }
}

/* The picture that every format is given: no two pixels alike. */
static void sample_pixels(uint8_t rgb[W * H * 3]) {
    for (int i = 0; i < W * H; i++) {
        rgb[i * 3] = (uint8_t)(i * 7);
        rgb[i * 3 + 1] = (uint8_t)(255 - i * 5);
        rgb[i * 3 + 2] = (uint8_t)(i * i);
    }
}

static void expect_pixels(const bytes *b, int64_t width, int64_t height, const uint8_t *rgb,
                          int off) {
    picture p = decode(b->p, b->n);
    if (p.status != SN_OK) fail_msg("%s", p.err.message);
    assert_int_equal(p.width, width);
    assert_int_equal(p.height, height);
    for (int64_t i = 0; i < width * height * 3; i++) {
        int d = p.rgb[i] - rgb[i];
        if (d > off || -d > off)
            fail_msg("byte %d is %d, not %d", (int)i, (int)p.rgb[i], (int)rgb[i]);
    }
    free(p.rgb);
}

static void expect_status(const bytes *b, sn_status status) {
    picture p = decode(b->p, b->n);
    free(p.rgb);
    if (p.status != status) fail_msg("status %d: %s", (int)p.status, p.err.message);
}

/* ---- Files of the sample ---- */

static void make_ppm(bytes *b) {
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    add_text(b, "P6\n# a remark\n7 5\n255\n");
    add(b, rgb, sizeof rgb);
}

/* Headers of a bitmap; `used` colours follow. */
static void bmp_header(bytes *b, int64_t w, int64_t h, unsigned bits, unsigned storage,
                       unsigned used) {
    add_text(b, "BM");
    add_little(b, 0, 4);
    add_little(b, 0, 4);
    add_little(b, 54 + used * 4 + (storage == 3 ? 12 : 0), 4);
    add_little(b, 40, 4);
    add_little(b, (uint64_t)w, 4);
    add_little(b, (uint64_t)h, 4);
    add_little(b, 1, 2);
    add_little(b, bits, 2);
    add_little(b, storage, 4);
    for (int i = 0; i < 3; i++) add_little(b, 0, 4);
    add_little(b, used, 4);
    add_little(b, 0, 4);
}

static void make_bmp(bytes *b) {
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    bmp_header(b, W, H, 24, 0, 0);
    for (int y = H - 1; y >= 0; y--) {
        for (int x = 0; x < W; x++)
            for (int c = 2; c >= 0; c--) add(b, &rgb[(y * W + x) * 3 + c], 1);
        add_little(b, 0, 3);
    }
}

static void tiff_tag(bytes *b, unsigned tag, unsigned type, uint64_t count, uint64_t value) {
    add_little(b, tag, 2);
    add_little(b, type, 2);
    add_little(b, count, 4);
    add_little(b, value, 4);
}

static void make_tiff(bytes *b) {
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    add_text(b, "II*");
    add_little(b, 0, 1);
    add_little(b, 8 + 6 + sizeof rgb + 1, 4);
    for (int i = 0; i < 3; i++) add_little(b, 8, 2);
    add(b, rgb, sizeof rgb);
    add_little(b, 0, 1);
    add_little(b, 9, 2);
    tiff_tag(b, 256, 3, 1, W);
    tiff_tag(b, 257, 3, 1, H);
    tiff_tag(b, 258, 3, 3, 8);
    tiff_tag(b, 259, 3, 1, 1);
    tiff_tag(b, 262, 3, 1, 2);
    tiff_tag(b, 273, 4, 1, 14);
    tiff_tag(b, 277, 3, 1, 3);
    tiff_tag(b, 278, 3, 1, H);
    tiff_tag(b, 279, 4, 1, sizeof rgb);
    add_little(b, 0, 4);
}

#ifdef SNI_HAVE_PNG
static void png_of(bytes *b, uint32_t format, const void *pixels) {
    png_image image = {.version = PNG_IMAGE_VERSION, .width = W, .height = H, .format = format};
    png_alloc_size_t n = ROOM;
    assert_true(png_image_write_to_memory(&image, b->p, &n, 0, pixels, 0, NULL));
    b->n = n;
}

static void make_png(bytes *b) {
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    png_of(b, PNG_FORMAT_RGB, rgb);
}
#endif

#ifdef SNI_HAVE_JPEG
static void jpeg_of(bytes *b, J_COLOR_SPACE space, int components, bool progressive,
                    const uint8_t *pixels) {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long n = 0;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &out, &n);
    info.image_width = W;
    info.image_height = H;
    info.input_components = components;
    info.in_color_space = space;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 100, TRUE);
    for (int i = 0; i < info.num_components; i++)
        info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
    if (progressive) jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    for (int y = 0; y < H; y++) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + y * W * components);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    add(b, out, n);
    free(out);
}

static void make_jpeg(bytes *b) {
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    jpeg_of(b, JCS_RGB, 3, false, rgb);
}

static void make_progressive(bytes *b) {
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    jpeg_of(b, JCS_RGB, 3, true, rgb);
}
#endif

#ifdef SNI_HAVE_WEBP
static void make_webp(bytes *b) {
    uint8_t rgb[W * H * 3], *out = NULL;
    sample_pixels(rgb);
    size_t n = WebPEncodeLosslessRGB(rgb, W, H, W * 3, &out);
    add(b, out, n);
    WebPFree(out);
}
#endif

#ifdef SNI_HAVE_JP2
static OPJ_SIZE_T jp2_write(void *from, OPJ_SIZE_T n, void *user) {
    bytes *b = user;
    if (b->n + n > ROOM) return (OPJ_SIZE_T)-1;
    add(b, from, n);
    return n;
}

static void make_j2k(bytes *b) {
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    opj_cparameters_t parameters;
    opj_set_default_encoder_parameters(&parameters);
    parameters.numresolution = 2;
    opj_image_cmptparm_t comps[3] = {{0}};
    for (int i = 0; i < 3; i++)
        comps[i] = (opj_image_cmptparm_t){.dx = 1, .dy = 1, .w = W, .h = H, .prec = 8};
    opj_image_t *image = opj_image_create(3, comps, OPJ_CLRSPC_SRGB);
    image->x1 = W;
    image->y1 = H;
    for (int i = 0; i < W * H * 3; i++) image->comps[i % 3].data[i / 3] = rgb[i];
    opj_codec_t *codec = opj_create_compress(OPJ_CODEC_J2K);
    opj_stream_t *stream = opj_stream_create(ROOM, OPJ_FALSE);
    opj_stream_set_user_data(stream, b, NULL);
    opj_stream_set_write_function(stream, jp2_write);
    assert_true(opj_setup_encoder(codec, &parameters, image) &&
                opj_start_compress(codec, image, stream) && opj_encode(codec, stream) &&
                opj_end_compress(codec, stream));
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
}
#endif

typedef struct maker {
    const char *name;
    void (*make)(bytes *b);
    int off; /* most that a byte may be away */
} maker;

static const maker makers[] = {
    {"PNM", make_ppm, 0},       {"BMP", make_bmp, 0},
#ifdef SNI_HAVE_TIFF
    {"TIFF", make_tiff, 0},
#endif
#ifdef SNI_HAVE_PNG
    {"PNG", make_png, 0},
#endif
#ifdef SNI_HAVE_JPEG
    {"JPEG", make_jpeg, 4},     {"progressive JPEG", make_progressive, 4},
#endif
#ifdef SNI_HAVE_WEBP
    {"WebP", make_webp, 0},
#endif
#ifdef SNI_HAVE_JP2
    {"JPEG 2000", make_j2k, 0},
#endif
};
enum { MAKERS = sizeof makers / sizeof *makers };

/* ---- Whole and broken files ---- */

static void whole_files(void **state) {
    (void)state;
    uint8_t rgb[W * H * 3];
    sample_pixels(rgb);
    for (size_t i = 0; i < MAKERS; i++) {
        bytes b = {.n = 0};
        makers[i].make(&b);
        expect_pixels(&b, W, H, rgb, makers[i].off);
    }
}

static void check_answer(const picture *p, const char *name) {
    if (p->status != SN_OK && p->status != SN_MALFORMED && p->status != SN_UNSUPPORTED &&
        p->status != SN_LIMIT)
        fail_msg("%s: status %d: %s", name, (int)p->status, p->err.message);
    if (p->status != SN_OK) assert_true(p->err.message[0] != 0);
}

/* A file without its last byte may still hold all pixels; one of half the length does not. */
static void cut_files(void **state) {
    (void)state;
    for (size_t i = 0; i < MAKERS; i++) {
        bytes b = {.n = 0};
        makers[i].make(&b);
        for (size_t n = 0; n < b.n; n++) {
            picture p = decode(b.p, n);
            free(p.rgb);
            check_answer(&p, makers[i].name);
            if (n <= b.n / 2) assert_int_not_equal(p.status, SN_OK);
        }
    }
}

static void damaged_files(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (size_t i = 0; i < MAKERS; i++) {
        bytes b = {.n = 0};
        makers[i].make(&b);
        for (int round = 0; round < 1500; round++) {
            bytes c = b;
            for (unsigned k = unit_random(&seed) % 4 + 1; k; k--) {
                uint8_t *byte = &c.p[unit_random(&seed) % (round % 2 ? c.n : c.n / 4)];
                unsigned other = unit_random(&seed);
                *byte = (uint8_t)(round % 3 ? other : *byte ^ 1u << other % 8);
            }
            picture p = decode_within(c.p, c.n, 256 << 20);
            free(p.rgb);
            check_answer(&p, makers[i].name);
        }
    }
}

/* Decoders with work memory of their own stop at the run's limit. */
static void budgets(void **state) {
    (void)state;
    for (size_t i = 2; i < MAKERS; i++) {
        bytes b = {.n = 0};
        makers[i].make(&b);
        picture p = decode_within(b.p, b.n, 16);
        free(p.rgb);
        assert_int_equal(p.status, strcmp(makers[i].name, "PNG") ? SN_LIMIT : SN_OK);
    }
}

static void oversized(void **state) {
    (void)state;
    bytes b = {.n = 0};
    add_text(&b, "P6 100000 100000 255 ");
    expect_status(&b, SN_LIMIT);
    b.n = 0;
    add_text(&b, "P6 99999999999 1 255 ");
    expect_status(&b, SN_MALFORMED);
    b.n = 0;
    add_text(&b, "P6 0 1 255 ");
    expect_status(&b, SN_MALFORMED);
    b.n = 0;
    bmp_header(&b, 60000, 60000, 8, 1, 0);
    expect_status(&b, SN_LIMIT);
    b.n = 0;
    bmp_header(&b, 1, INT32_MIN, 8, 1, 0);
    expect_status(&b, SN_LIMIT);
    b.n = 0;
    expect_status(&b, SN_MALFORMED);
    add_text(&b, "GIF89a");
    expect_status(&b, SN_MALFORMED);
#ifdef SNI_HAVE_TIFF
    b.n = 0;
    make_tiff(&b);
    size_t ifd = 8 + 6 + W * H * 3 + 1 + 2;
    b.p[ifd + 8] = b.p[ifd + 9] = b.p[ifd + 12 + 8] = b.p[ifd + 12 + 9] = 0xfe;
    expect_status(&b, SN_LIMIT);
#endif
}

static void missing_codecs(void **state) {
    (void)state;
    bytes b = {.n = 0};
#ifndef SNI_HAVE_TIFF
    make_tiff(&b);
    expect_status(&b, SN_UNSUPPORTED);
#endif
#ifndef SNI_HAVE_JPEG
    b.n = 0;
    add_text(&b, "\xff\xd8\xff\xe0");
    expect_status(&b, SN_UNSUPPORTED);
#endif
    (void)b;
}

/* ---- Kinds of each format ---- */

static void pnm_kinds(void **state) {
    (void)state;
    static const struct {
        const char *file;
        size_t n;
        int64_t w, h;
        uint8_t grey[6];
    } cases[] = {
        {"P1 3 2 1 0 1\n# x\n011", 20, 3, 2, {0, 255, 0, 255, 0, 0}},
        {"P2\n2 1\n4\n0 3", 12, 2, 1, {0, 191}},
        {"P4 3 2 \xa0\x60", 9, 3, 2, {0, 255, 0, 255, 0, 0}},
        {"P5 2 1 255 \x10\xff", 13, 2, 1, {16, 255}},
        {"P5 2 1 65535 \xff\xff\x80\x80", 17, 2, 1, {255, 128}},
        {"P5 2 1 15 \x0f\x20", 12, 2, 1, {255, 255}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b = {.n = 0};
        uint8_t rgb[18];
        add(&b, cases[i].file, cases[i].n);
        for (int k = 0; k < 18; k++) rgb[k] = cases[i].grey[k / 3];
        expect_pixels(&b, cases[i].w, cases[i].h, rgb, 0);
        b.n--;
        expect_status(&b, SN_MALFORMED);
    }
    bytes b = {.n = 0};
    add_text(&b, "P3 1 1 255 1 2 3");
    expect_pixels(&b, 1, 1, (const uint8_t[]){1, 2, 3}, 0);
}

static void add_palette(bytes *b) {
    static const uint8_t colors[4][4] = {{0, 0, 0}, {3, 2, 1}, {6, 5, 4}, {9, 8, 7}};
    add(b, colors, sizeof colors);
}

static void bmp_palettes(void **state) {
    (void)state;
    static const uint8_t expected[] = {7, 8, 9, 4, 5, 6, 1, 2, 3, 0, 0, 0};
    bytes b = {.n = 0};
    bmp_header(&b, 2, 2, 8, 0, 4);
    add_palette(&b);
    add(&b, "\1\0\0\0\3\2\0\0", 8);
    expect_pixels(&b, 2, 2, expected, 0);
    b.n = 0;
    bmp_header(&b, 2, -2, 4, 0, 4);
    add_palette(&b);
    add(&b, "\x32\0\0\0\x10\0\0\0", 8);
    expect_pixels(&b, 2, 2, expected, 0);
    b.n = 0;
    bmp_header(&b, 2, 1, 1, 0, 2);
    add(&b, "\3\2\1\0\6\5\4\0\x40\0\0\0", 12);
    expect_pixels(&b, 2, 1, (const uint8_t[]){1, 2, 3, 4, 5, 6}, 0);
}

static void bmp_runs(void **state) {
    (void)state;
    static const uint8_t expected[] = {7, 8, 9, 4, 5, 6, 1, 2, 3, 0, 0, 0};
    bytes b = {.n = 0};
    bmp_header(&b, 2, 2, 8, 1, 4);
    add_palette(&b);
    add(&b, "\1\1\0\0\1\3\1\2\0\1", 10);
    expect_pixels(&b, 2, 2, expected, 0);
    b.n -= 4; /* without the second pixel and the end */
    expect_status(&b, SN_MALFORMED);
    b.n = 0;
    bmp_header(&b, 4, 1, 8, 1, 4);
    add_palette(&b);
    add(&b, "\0\3\3\2\1\0\0\2\0\0\0\1", 12);
    expect_pixels(&b, 4, 1, (const uint8_t[]){7, 8, 9, 4, 5, 6, 1, 2, 3, 0, 0, 0}, 0);
    b.n = 0;
    bmp_header(&b, 4, 1, 4, 2, 4);
    add_palette(&b);
    add(&b, "\4\x32\0\1", 4);
    expect_pixels(&b, 4, 1, (const uint8_t[]){7, 8, 9, 4, 5, 6, 7, 8, 9, 4, 5, 6}, 0);
}

static void bmp_masks(void **state) {
    (void)state;
    bytes b = {.n = 0};
    bmp_header(&b, 2, 1, 16, 0, 0);
    add(&b, "\x00\x7c\x1f\x00", 4);
    expect_pixels(&b, 2, 1, (const uint8_t[]){255, 0, 0, 0, 0, 255}, 0);
    b.n = 0;
    bmp_header(&b, 2, 1, 16, 3, 0);
    add_little(&b, 0xf800, 4);
    add_little(&b, 0x7e0, 4);
    add_little(&b, 0x1f, 4);
    add(&b, "\x00\xf8\xe0\x07", 4);
    expect_pixels(&b, 2, 1, (const uint8_t[]){255, 0, 0, 0, 255, 0}, 0);
    b.n = 0;
    bmp_header(&b, 1, 1, 32, 0, 0);
    add(&b, "\3\2\1\xff", 4);
    expect_pixels(&b, 1, 1, (const uint8_t[]){1, 2, 3}, 0);
}

static void png_kinds(void **state) {
    (void)state;
#ifdef SNI_HAVE_PNG
    uint8_t rgb[W * H * 3], rgba[W * H * 4], grey[W * H], three[W * H * 3];
    sample_pixels(rgb);
    for (int i = 0; i < W * H; i++) {
        memcpy(rgba + i * 4, rgb + i * 3, 3);
        rgba[i * 4 + 3] = (uint8_t)(i * 3);
        grey[i] = (uint8_t)(i * 6);
        memset(three + i * 3, grey[i], 3);
    }
    bytes b = {.n = 0};
    png_of(&b, PNG_FORMAT_RGBA, rgba);
    expect_pixels(&b, W, H, rgb, 0);
    png_of(&b, PNG_FORMAT_GRAY, grey);
    expect_pixels(&b, W, H, three, 0);
#endif
}

static void jpeg_kinds(void **state) {
    (void)state;
#ifdef SNI_HAVE_JPEG
    uint8_t cmyk[W * H * 4], grey[W * H], three[W * H * 3], paper[W * H * 3];
    for (int i = 0; i < W * H; i++) {
        grey[i] = (uint8_t)(i * 6);
        memset(three + i * 3, grey[i], 3);
        /* Stored as the opposite of ink: no ink at all but half of the black. */
        memcpy(cmyk + i * 4, "\xff\xff\xff\x80", 4);
        memset(paper + i * 3, 0x80, 3);
    }
    bytes b = {.n = 0};
    jpeg_of(&b, JCS_GRAYSCALE, 1, false, grey);
    expect_pixels(&b, W, H, three, 3);
    b.n = 0;
    jpeg_of(&b, JCS_CMYK, 4, false, cmyk);
    expect_pixels(&b, W, H, paper, 3);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_files),   cmocka_unit_test(cut_files),
        cmocka_unit_test(damaged_files), cmocka_unit_test(budgets),
        cmocka_unit_test(oversized),     cmocka_unit_test(missing_codecs),
        cmocka_unit_test(pnm_kinds),     cmocka_unit_test(bmp_palettes),
        cmocka_unit_test(bmp_runs),      cmocka_unit_test(bmp_masks),
        cmocka_unit_test(png_kinds),     cmocka_unit_test(jpeg_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
