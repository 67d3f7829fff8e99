/* image.h - the pixels of encoded pictures. BMP and PNM are always there; PNG, JPEG, WebP, TIFF
 * and JPEG 2000 where the library was built with the libraries that decode them. */
#ifndef SNI_CODECS_IMAGE_H
#define SNI_CODECS_IMAGE_H

#include "base/tensor.h"

/* Max pixels of a picture, and of one row or column. */
#define SNI_IMAGE_PIXELS ((int64_t)1 << 27)
#define SNI_IMAGE_SIDE 65535

/* Where the pixels go. `begin` is called at most once, when the size is known and within the
 * limits, and gives memory for height * width pixels of 3 bytes: red, green, blue. */
typedef struct sni_image_target {
    sn_status (*begin)(void *ctx, int64_t width, int64_t height, uint8_t **rgb, sn_error *err);
    void *ctx;
    sni_budget *budget; /* charged for what a decoder needs besides; NULL: no limit */
} sni_image_target;

/* Decodes a picture of any format, told by its first bytes. Grey is given as equal red, green and
 * blue; transparency is dropped; more than 8 bits are cut to 8; of several pictures the first is
 * taken. SN_MALFORMED if the bytes are no picture or a broken one, SN_UNSUPPORTED if this build
 * cannot decode its kind, SN_LIMIT if it is too large. What was given by `begin` may be written
 * in part when it fails. */
sn_status sni_image_decode(const uint8_t *bytes, size_t size, const sni_image_target *target,
                           sn_error *err);

#endif
