/* ImageDecoder: the pixels of an encoded image, (height, width, channels). Bytes that cannot be
 * decoded give an image without pixels, as the specification demands. A format that this build
 * cannot decode, or an image that is too large, is an error. */
#include "codecs/image.h"

#include "ops/core/tensor_util.h"

enum { RGB, BGR, GREYSCALE };

typedef struct decoder_params {
    int32_t format;
} decoder_params;

static int64_t channels(const decoder_params *p) {
    return p->format == GREYSCALE ? 1 : 3;
}

static sn_status decoder_infer(sni_infer *c) {
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) != 1)
        return SNI_INFER_FAIL(c, "the encoded bytes have rank %d, not 1", sni_infer_rank(c, 0));
    return sni_infer_set_shape(
        c, 0, 3,
        (sni_dim[]){sni_dim_fresh(c->symbols), sni_dim_fresh(c->symbols), channels(c->params)});
}

typedef struct work {
    sni_kernel *k;
    uint8_t *rgb; /* the output's own memory, or scratch of which grey is made */
} work;

/* The output gets its memory when the size is known. */
static sn_status begin(void *ctx, int64_t width, int64_t height, uint8_t **rgb, sn_error *err) {
    work *w = ctx;
    sni_kernel *k = w->k;
    int64_t n = channels(k->params), dims[3] = {height, width, n};
    sn_error *outer = k->err;
    k->err = err;
    sn_status status = sni_out_alloc(k, 0, SN_UINT8, 3, dims);
    if (status == SN_OK) {
        w->rgb = n == 3 ? sni_out(k, 0)->data : sni_scratch(k, (size_t)(width * height) * 3);
        if (!w->rgb) status = err->status;
    }
    k->err = outer;
    *rgb = w->rgb;
    return status;
}

static void swap_ends(uint8_t *p, int64_t pixels) {
    for (int64_t i = 0; i < pixels; i++, p += 3) {
        uint8_t first = p[0];
        p[0] = p[2];
        p[2] = first;
    }
}

/* Luma of ITU-R 601 in 16 bits of fraction, to the nearest. */
static void to_grey(const uint8_t *rgb, uint8_t *grey, int64_t pixels) {
    for (int64_t i = 0; i < pixels; i++, rgb += 3)
        grey[i] = (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* The result for bytes that are no image: one without pixels, in the memory there is. */
static sn_status give_none(sni_kernel *k) {
    int64_t dims[3] = {0, 0, channels(k->params)};
    if (k->out[0]->kind == SN_KIND_TENSOR && sni_out(k, 0)->buffer)
        return sni_tensor_shape(sni_out(k, 0), SN_UINT8, 3, dims, k->err);
    return sni_out_alloc(k, 0, SN_UINT8, 3, dims);
}

static sn_status decoder_ref(sni_kernel *k) {
    const decoder_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    if (!sni_out(k, 0)) return SN_OK;
    work w = {.k = k};
    sni_image_target target = {begin, &w, k->budget};
    sn_error error = {0};
    sn_status status = sni_image_decode(x->data, (size_t)x->count, &target, &error);
    if (status == SN_MALFORMED) return give_none(k);
    if (status != SN_OK) {
        if (k->err) *k->err = error;
        return status;
    }
    sni_tensor *y = sni_out(k, 0);
    int64_t pixels = y->dims[0] * y->dims[1];
    if (p->format == BGR) swap_ends(y->data, pixels);
    if (p->format == GREYSCALE) to_grey(w.rgb, y->data, pixels);
    return SN_OK;
}

const sni_op sni_op_ImageDecoder = {
    .name = "ImageDecoder",
    .versions = SNI_VERSIONS(20),
    .inputs = SNI_FORMALS({"encoded_stream", "T1"}),
    .outputs = SNI_FORMALS({"image", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T(SN_UINT8)}, {"T2", SNI_T(SN_UINT8)}),
    .params = SNI_PARAMS({"pixel_format", SNI_ATTR_STRING, offsetof(decoder_params, format),
                          .text = "RGB", .choices = "RGB|BGR|Grayscale"}),
    .params_size = sizeof(decoder_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = decoder_infer,
    .ref = decoder_ref,
};
