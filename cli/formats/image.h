/* image.h - PNG and JPEG pictures as tensors. */
#ifndef CLI_FORMATS_IMAGE_H
#define CLI_FORMATS_IMAGE_H

#include "cli/formats/make_tensor.h"

typedef enum cli_layout { CLI_LAYOUT_AUTO, CLI_LAYOUT_NCHW, CLI_LAYOUT_NHWC } cli_layout;
typedef enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_RGB, CLI_COLOR_BGR, CLI_COLOR_GRAY } cli_color;

/* A tensor's element is (pixel * scale - mean) / std, pixel from 0 to 255. */
typedef struct cli_image_options {
    cli_layout layout;
    cli_color color;
    bool has_scale; /* else 1/255 for floating-point inputs and 1 for others */
    double scale;
    double mean[3]; /* per channel, in the order of the tensor */
    double std[3];
} cli_image_options;

/* No mean, a deviation of 1, the rest by the model's input. */
void cli_image_options_init(cli_image_options *options);

/* Whether the bytes begin like a PNG or JPEG file. */
bool cli_is_image(const char *bytes, size_t size);

/* Decodes a picture and resizes it (bilinear, averaging when it shrinks) to the height and width
 * of the type, of which -1 is free and becomes the picture's. Rank 4 is a batch of one, 3 has no
 * batch, 2 is one channel. */
sn_status cli_image_read(const char *bytes, size_t size, const cli_tensor_type *type,
                         const cli_image_options *options, sn_value **out, sn_error *err);

#endif
