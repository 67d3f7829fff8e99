/* image.c - PNG and JPEG pictures as tensors. */
#include "cli/formats/image.h"
#include "cli/formats/element.h"
#include "cli/formats/image_decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void cli_image_options_init(cli_image_options *options) {
    *options = (cli_image_options){.std = {1, 1, 1}};
}

bool cli_is_image(const char *bytes, size_t size) {
    return cli_is_png(bytes, size) || cli_is_jpeg(bytes, size);
}

/* ---- Resizing ----------------------------------------------------------------------------- */

/* One output sample: the average of input samples under a triangle that is as wide as the larger
 * of the two spacings, centred where the output sample lies in the input. */
static void resample_at(const float *in, size_t in_length, size_t stride, double scale,
                        size_t index, float *out, size_t out_at) {
    double radius = scale > 1 ? scale : 1;
    double centre = ((double)index + 0.5) * scale;
    double low = floor(centre - radius), high = ceil(centre + radius);
    size_t first = low > 0 ? (size_t)low : 0;
    size_t last = high < (double)in_length ? (size_t)high : in_length;
    double sum[3] = {0}, weights = 0;
    for (size_t i = first; i < last; i++) {
        double weight = 1 - fabs((double)i + 0.5 - centre) / radius;
        if (weight <= 0) continue;
        weights += weight;
        for (size_t c = 0; c < 3; c++) sum[c] += weight * (double)in[i * stride + c];
    }
    for (size_t c = 0; c < 3; c++) out[out_at + c] = (float)(sum[c] / weights);
}

/* height x in_width x 3 to height x out_width x 3. */
static void resize_rows(const float *in, size_t height, size_t in_width, size_t out_width,
                        float *out) {
    double scale = (double)in_width / (double)out_width;
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < out_width; x++) {
            resample_at(in + y * in_width * 3, in_width, 3, scale, x, out, (y * out_width + x) * 3);
        }
    }
}

/* in_height x width x 3 to out_height x width x 3. */
static void resize_columns(const float *in, size_t in_height, size_t width, size_t out_height,
                           float *out) {
    double scale = (double)in_height / (double)out_height;
    for (size_t y = 0; y < out_height; y++) {
        for (size_t x = 0; x < width; x++) {
            resample_at(in + x * 3, in_height, width * 3, scale, y, out, (y * width + x) * 3);
        }
    }
}

/* The pixels as floats of height x width x 3; NULL when there is no memory. */
static float *resize(const cli_pixels *pixels, size_t height, size_t width) {
    size_t count = pixels->width * pixels->height * 3;
    float *full = malloc(count * sizeof *full);
    float *narrow = malloc(pixels->height * width * 3 * sizeof *narrow);
    float *small = malloc(height * width * 3 * sizeof *small);
    if (full && narrow && small) {
        for (size_t i = 0; i < count; i++) full[i] = (float)pixels->data[i];
        resize_rows(full, pixels->height, pixels->width, width, narrow);
        resize_columns(narrow, pixels->height, width, height, small);
    } else {
        free(small);
        small = NULL;
    }
    free(full);
    free(narrow);
    return small;
}

/* ---- Placing pixels in a tensor ----------------------------------------------------------- */

/* How the picture lies in the tensor. */
typedef struct placement {
    int rank;
    int64_t dims[4];
    int channel_axis, height_axis, width_axis; /* channel -1: none */
    size_t channels;
} placement;

static bool is_channels(int64_t dim) {
    return dim == 1 || dim == 3;
}

static sn_status place(int rank, const int64_t *dims, const cli_image_options *options,
                       placement *out, sn_error *err) {
    if (rank < 2 || rank > 4) {
        return cli_fail(err, SN_BAD_DATA, "a picture needs an input of rank 2, 3 or 4, not %d",
                        rank);
    }
    *out = (placement){.rank = rank,
                       .channel_axis = -1,
                       .width_axis = rank - 1,
                       .height_axis = rank - 2,
                       .channels = 1};
    memcpy(out->dims, dims, (size_t)rank * sizeof *dims);
    if (rank == 2) return SN_OK;
    bool last = options->layout == CLI_LAYOUT_NHWC;
    if (options->layout == CLI_LAYOUT_AUTO) {
        last = !is_channels(dims[rank - 3]) && is_channels(dims[rank - 1]);
    }
    out->channel_axis = last ? rank - 1 : rank - 3;
    if (last) {
        out->height_axis = rank - 3;
        out->width_axis = rank - 2;
    }
    if (rank == 4) {
        if (dims[0] > 1) {
            return cli_fail(err, SN_BAD_DATA, "a picture is a batch of 1, the input wants %lld",
                            (long long)dims[0]);
        }
        out->dims[0] = 1;
    }
    int64_t *channels = &out->dims[out->channel_axis];
    if (*channels < 0) *channels = options->color == CLI_COLOR_GRAY ? 1 : 3;
    if (!is_channels(*channels)) {
        return cli_fail(err, SN_BAD_DATA, "a picture has 1 or 3 channels, the input wants %lld",
                        (long long)*channels);
    }
    out->channels = (size_t)*channels;
    return SN_OK;
}

static double channel_of(const float *pixel, cli_color color, size_t channels, size_t c) {
    if (channels == 1 || color == CLI_COLOR_GRAY) {
        return 0.299 * (double)pixel[0] + 0.587 * (double)pixel[1] + 0.114 * (double)pixel[2];
    }
    return (double)pixel[color == CLI_COLOR_BGR ? 2 - c : c];
}

static sn_status fill(sn_value *tensor, const placement *at, const float *pixels,
                      const cli_image_options *options, sn_error *err) {
    cli_view view = cli_view_of(tensor);
    bool real = view.class == CLI_CLASS_FLOAT;
    double scale = options->has_scale ? options->scale : real ? 1.0 / 255 : 1.0;
    size_t height = (size_t)at->dims[at->height_axis], width = (size_t)at->dims[at->width_axis];
    bool last = at->channel_axis == at->rank - 1;
    for (size_t i = 0; i < height * width; i++) {
        for (size_t c = 0; c < at->channels; c++) {
            double value = channel_of(pixels + i * 3, options->color, at->channels, c);
            value = (value * scale - options->mean[c]) / options->std[c];
            if (!real) value = rint(value);
            size_t index = last ? i * at->channels + c : c * height * width + i;
            if (!cli_view_set(&view, index, cli_number_real(value))) {
                return cli_fail(err, SN_BAD_DATA, "pixel value %g does not fit %s", value,
                                sn_dtype_name(view.dtype));
            }
        }
    }
    return SN_OK;
}

sn_status cli_image_read(const char *bytes, size_t size, const cli_tensor_type *type,
                         const cli_image_options *options, sn_value **out, sn_error *err) {
    placement at;
    cli_pixels pixels = {0};
    sn_value *tensor = NULL;
    float *resized = NULL;
    sn_status status = place(type->rank, type->dims, options, &at, err);
    if (status == SN_OK) status = cli_pixels_decode(bytes, size, &pixels, err);
    if (status != SN_OK) return status;
    int64_t *height = &at.dims[at.height_axis], *width = &at.dims[at.width_axis];
    if (*height < 0) *height = (int64_t)pixels.height;
    if (*width < 0) *width = (int64_t)pixels.width;
    int64_t max = (int64_t)CLI_IMAGE_PIXELS;
    if (*height < 1 || *width < 1 || *height > max / *width ||
        (int64_t)pixels.height > max / *width) {
        status = cli_fail(err, SN_LIMIT, "cannot resize a picture to %lld x %lld",
                          (long long)*width, (long long)*height);
    }
    if (status == SN_OK) {
        resized = resize(&pixels, (size_t)*height, (size_t)*width);
        if (!resized) status = cli_fail(err, SN_NO_MEMORY, "no memory to resize the picture");
    }
    if (status == SN_OK) status = sn_tensor_create(type->dtype, type->rank, at.dims, &tensor, err);
    if (status == SN_OK) status = fill(tensor, &at, resized, options, err);
    if (status == SN_OK) {
        *out = tensor;
    } else {
        sn_value_destroy(tensor);
    }
    free(resized);
    free(pixels.data);
    return status;
}
