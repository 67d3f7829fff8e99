/* codec.h - what the decoders share. */
#ifndef SNI_CODECS_CODEC_H
#define SNI_CODECS_CODEC_H

#include "codecs/image.h"

typedef struct sni_image_bytes {
    const uint8_t *p;
    size_t n;
} sni_image_bytes;

typedef sn_status (*sni_image_fn)(sni_image_bytes in, const sni_image_target *target,
                                  sn_error *err);

/* One for each format, which sni_image_decode() has recognised; see there for what they return. One
 * whose library is not there fails with SN_UNSUPPORTED. */
sn_status sni_image_bmp(sni_image_bytes in, const sni_image_target *target, sn_error *err);
sn_status sni_image_pnm(sni_image_bytes in, const sni_image_target *target, sn_error *err);
sn_status sni_image_png(sni_image_bytes in, const sni_image_target *target, sn_error *err);
sn_status sni_image_jpeg(sni_image_bytes in, const sni_image_target *target, sn_error *err);
sn_status sni_image_webp(sni_image_bytes in, const sni_image_target *target, sn_error *err);
sn_status sni_image_tiff(sni_image_bytes in, const sni_image_target *target, sn_error *err);
sn_status sni_image_jp2(sni_image_bytes in, const sni_image_target *target, sn_error *err);

/* Checks a size against the limits and asks the target for memory. Every decoder calls it before
 * it takes memory that grows with the picture. */
sn_status sni_image_begin(const sni_image_target *target, int64_t width, int64_t height,
                          uint8_t **rgb, sn_error *err);

/* One pixel. */
static inline void sni_put_rgb(uint8_t *to, unsigned r, unsigned g, unsigned b) {
    to[0] = (uint8_t)r;
    to[1] = (uint8_t)g;
    to[2] = (uint8_t)b;
}

#endif
