/* webp.c - WebP without animation, by libwebp. */
#include "codecs/codec.h"

#include <webp/decode.h>

sn_status sni_image_webp(sni_image_bytes in, const sni_image_target *target, sn_error *err) {
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(in.p, in.n, &features);
    if (code != VP8_STATUS_OK) return sni_fail(err, SN_MALFORMED, "libwebp says %d", (int)code);
    if (features.has_animation)
        return sni_fail(err, SN_UNSUPPORTED, "animations cannot be decoded");
    uint8_t *rgb;
    SN_TRY(sni_image_begin(target, features.width, features.height, &rgb, err));
    size_t pixels = (size_t)features.width * (size_t)features.height;
    size_t work = pixels * 4 + (1 << 20); /* what libwebp takes for a lossless picture */
    SN_TRY(sni_budget_take(target->budget, work, err));
    bool good = WebPDecodeRGBInto(in.p, in.n, rgb, pixels * 3, features.width * 3) != NULL;
    sni_budget_give(target->budget, work);
    return good ? SN_OK : sni_fail(err, SN_MALFORMED, "the data are broken or end early");
}
