/* image.c - which decoder a picture is for, and the limits that all of them keep. */
#include "codecs/codec.h"

#include <string.h>

typedef struct format {
    const char *name;
    const char *library; /* that decodes it */
    size_t at, n;        /* `magic` is n bytes from `at` */
    const char *magic;
    sni_image_fn decode; /* NULL: not in this build */
} format;

#ifdef SNI_HAVE_PNG
#define PNG_FN sni_image_png
#else
#define PNG_FN NULL
#endif
#ifdef SNI_HAVE_JPEG
#define JPEG_FN sni_image_jpeg
#else
#define JPEG_FN NULL
#endif
#ifdef SNI_HAVE_WEBP
#define WEBP_FN sni_image_webp
#else
#define WEBP_FN NULL
#endif
#ifdef SNI_HAVE_TIFF
#define TIFF_FN sni_image_tiff
#else
#define TIFF_FN NULL
#endif
#ifdef SNI_HAVE_JP2
#define JP2_FN sni_image_jp2
#else
#define JP2_FN NULL
#endif

static const format formats[] = {
    {"BMP", "", 0, 2, "BM", sni_image_bmp},
    {"PNG", "libpng", 0, 8, "\x89PNG\r\n\x1a\n", PNG_FN},
    {"JPEG", "libjpeg", 0, 3, "\xff\xd8\xff", JPEG_FN},
    {"WebP", "libwebp", 8, 4, "WEBP", WEBP_FN},
    {"TIFF", "libtiff", 0, 4, "II*\0", TIFF_FN},
    {"TIFF", "libtiff", 0, 4, "MM\0*", TIFF_FN},
    {"TIFF", "libtiff", 0, 4, "II+\0", TIFF_FN},
    {"TIFF", "libtiff", 0, 4, "MM\0+", TIFF_FN},
    {"JPEG 2000", "libopenjp2", 0, 12, "\0\0\0\x0cjP  \r\n\x87\n", JP2_FN},
    {"JPEG 2000", "libopenjp2", 0, 4, "\xff\x4f\xff\x51", JP2_FN},
    {"PNM", "", 0, 2, "P1", sni_image_pnm},
    {"PNM", "", 0, 2, "P2", sni_image_pnm},
    {"PNM", "", 0, 2, "P3", sni_image_pnm},
    {"PNM", "", 0, 2, "P4", sni_image_pnm},
    {"PNM", "", 0, 2, "P5", sni_image_pnm},
    {"PNM", "", 0, 2, "P6", sni_image_pnm},
};

sn_status sni_image_begin(const sni_image_target *target, int64_t width, int64_t height,
                          uint8_t **rgb, sn_error *err) {
    if (width < 1 || height < 1)
        return sni_fail(err, SN_MALFORMED, "a picture of %lld x %lld pixels", (long long)width,
                        (long long)height);
    if (width > SNI_IMAGE_SIDE || height > SNI_IMAGE_SIDE || width * height > SNI_IMAGE_PIXELS)
        return sni_fail(
            err, SN_LIMIT, "a picture of %lld x %lld pixels; the most is %d a side and %lld in all",
            (long long)width, (long long)height, SNI_IMAGE_SIDE, (long long)SNI_IMAGE_PIXELS);
    return target->begin(target->ctx, width, height, rgb, err);
}

sn_status sni_image_decode(const uint8_t *bytes, size_t size, const sni_image_target *target,
                           sn_error *err) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const format *f = &formats[i];
        if (size < f->at + f->n || memcmp(bytes + f->at, f->magic, f->n) != 0) continue;
        if (!f->decode)
            return sni_fail(err, SN_UNSUPPORTED, "this build has no %s decoder (%s)", f->name,
                            f->library);
        sn_status status = f->decode((sni_image_bytes){bytes, size}, target, err);
        return status == SN_OK ? SN_OK : sni_fail_context(err, status, "%s picture", f->name);
    }
    return sni_fail(err, SN_MALFORMED, "the bytes are no picture of a known format");
}
