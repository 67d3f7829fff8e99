/* image_decode.h - the pixels of PNG and JPEG files. */
#ifndef CLI_FORMATS_IMAGE_DECODE_H
#define CLI_FORMATS_IMAGE_DECODE_H

#include "cli/cli.h"

#define CLI_IMAGE_PIXELS ((size_t)1 << 27) /* the most that are decoded */

typedef struct cli_pixels {
    size_t width, height;
    unsigned char *data; /* height * width * 3, red green blue; free() */
} cli_pixels;

bool cli_is_png(const char *bytes, size_t size);
bool cli_is_jpeg(const char *bytes, size_t size);

/* Decodes either format; transparency is dropped. */
sn_status cli_pixels_decode(const char *bytes, size_t size, cli_pixels *out, sn_error *err);

#endif
