/* npy.c - numpy's .npy format, versions 1 to 3. */
#include "cli/formats/npy.h"
#include "cli/formats/element.h"

#include "common/utf8.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STRING 65536 /* characters of one fixed-width string element */

/* What the header of a file says. */
typedef struct header {
    char order; /* '<', '>', '=' or '|' */
    char kind;  /* numpy's letter */
    size_t size;
    bool fortran;
    int rank;
    int64_t dims[SN_MAX_RANK];
} header;

static const struct {
    char kind;
    size_t size;
    sn_dtype dtype;
} formats[] = {
    {'f', 4, SN_FLOAT32},   {'f', 8, SN_FLOAT64},     {'f', 2, SN_FLOAT16}, {'i', 8, SN_INT64},
    {'i', 4, SN_INT32},     {'i', 2, SN_INT16},       {'i', 1, SN_INT8},    {'u', 8, SN_UINT64},
    {'u', 4, SN_UINT32},    {'u', 2, SN_UINT16},      {'u', 1, SN_UINT8},   {'b', 1, SN_BOOL},
    {'c', 8, SN_COMPLEX64}, {'c', 16, SN_COMPLEX128},
};
#define FORMATS (sizeof formats / sizeof formats[0])

/* ---- The header, a Python dictionary ------------------------------------------------------ */

typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

static void skip_space(cursor *in) {
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n')) in->at++;
}

static bool accept(cursor *in, char c) {
    skip_space(in);
    if (in->at >= in->end || *in->at != c) return false;
    in->at++;
    return true;
}

static bool accept_word(cursor *in, const char *word) {
    size_t length = strlen(word);
    skip_space(in);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, word, length) != 0) return false;
    in->at += length;
    return true;
}

/* A quoted text without escapes. */
static bool read_quoted(cursor *in, char *text, size_t size) {
    skip_space(in);
    if (in->at >= in->end || (*in->at != '\'' && *in->at != '"')) return false;
    char quote = *in->at++;
    size_t length = 0;
    while (in->at < in->end && *in->at != quote) {
        if (*in->at == '\\' || length + 1 >= size) return false;
        text[length++] = *in->at++;
    }
    text[length] = 0;
    return accept(in, quote);
}

static bool read_size(cursor *in, int64_t *out) {
    skip_space(in);
    int64_t number = 0;
    const char *start = in->at;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9') {
        if (number > (INT64_MAX - 9) / 10) return false;
        number = number * 10 + (*in->at++ - '0');
    }
    *out = number;
    return in->at > start;
}

static bool read_shape(cursor *in, header *out) {
    if (!accept(in, '(')) return false;
    out->rank = 0;
    while (!accept(in, ')')) {
        if (out->rank >= SN_MAX_RANK || !read_size(in, &out->dims[out->rank])) return false;
        accept_word(in, "L"); /* numpy under Python 2 */
        out->rank++;
        if (!accept(in, ',')) return accept(in, ')');
    }
    return true;
}

static bool read_descr(cursor *in, header *out) {
    char text[32];
    if (!read_quoted(in, text, sizeof text) || strlen(text) < 3) return false;
    if (!strchr("<>=|", text[0])) return false;
    out->order = text[0];
    out->kind = text[1];
    cursor digits = {text + 2, text + strlen(text)};
    int64_t size;
    if (!read_size(&digits, &size) || digits.at != digits.end || size > (1 << 20)) return false;
    out->size = (size_t)size;
    return true;
}

static bool read_entry(cursor *in, header *out, unsigned *seen) {
    char key[32];
    if (!read_quoted(in, key, sizeof key) || !accept(in, ':')) return false;
    if (strcmp(key, "descr") == 0) {
        *seen |= 1;
        return read_descr(in, out);
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= 2;
        return read_shape(in, out);
    }
    if (strcmp(key, "fortran_order") != 0) return false;
    *seen |= 4;
    out->fortran = accept_word(in, "True");
    return out->fortran || accept_word(in, "False");
}

static bool parse_header(const char *text, size_t length, header *out) {
    cursor in = {text, text + length};
    unsigned seen = 0;
    if (!accept(&in, '{')) return false;
    while (!accept(&in, '}')) {
        if (!read_entry(&in, out, &seen)) return false;
        if (!accept(&in, ',')) {
            if (!accept(&in, '}')) return false;
            break;
        }
    }
    skip_space(&in);
    return in.at == in.end && seen == 7;
}

/* Finds the header; `*data` becomes the offset of the elements. */
static sn_status read_header(const char *bytes, size_t size, header *out, size_t *data,
                             sn_error *err) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return cli_fail(err, SN_MALFORMED, "not a .npy file: its first bytes are others");
    }
    if (b[6] < 1 || b[6] > 3) {
        return cli_fail(err, SN_UNSUPPORTED, ".npy version %d.%d is not known", b[6], b[7]);
    }
    size_t start = b[6] == 1 ? 10 : 12;
    size_t length = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] > 1) {
        if (size < 12) return cli_fail(err, SN_MALFORMED, ".npy header cut short");
        length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    }
    if (length > size - start) {
        return cli_fail(err, SN_MALFORMED, ".npy header of %zu bytes in a file of %zu", length,
                        size);
    }
    *out = (header){0};
    if (!parse_header(bytes + start, length, out)) {
        return cli_fail(err, SN_MALFORMED, ".npy header is not understood: %.*s",
                        (int)(length < 200 ? length : 200), bytes + start);
    }
    *data = start + length;
    return SN_OK;
}

/* ---- Elements ----------------------------------------------------------------------------- */

static sn_status element_type(const header *h, sn_dtype *out, sn_error *err) {
    if (h->kind == 'S' || h->kind == 'U') {
        if (h->size > MAX_STRING) {
            return cli_fail(err, SN_LIMIT, ".npy strings of %zu characters are too long", h->size);
        }
        *out = SN_STRING;
        return SN_OK;
    }
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].kind == h->kind && formats[i].size == h->size) {
            *out = formats[i].dtype;
            return SN_OK;
        }
    }
    return cli_fail(err, SN_UNSUPPORTED, ".npy type '%c%c%zu' cannot be read%s", h->order, h->kind,
                    h->size, h->kind == 'O' ? ": it holds Python objects" : "");
}

/* The position in the file of element `index` of C order. */
static size_t source_index(const header *h, size_t index) {
    if (!h->fortran) return index;
    size_t result = 0, stride = 1;
    size_t coordinates[SN_MAX_RANK] = {0};
    for (int i = h->rank - 1; i >= 0; i--) {
        coordinates[i] = index % (size_t)h->dims[i];
        index /= (size_t)h->dims[i];
    }
    for (int i = 0; i < h->rank; i++) {
        result += coordinates[i] * stride;
        stride *= (size_t)h->dims[i];
    }
    return result;
}

static void swap_units(unsigned char *data, size_t bytes, size_t unit) {
    for (size_t at = 0; at + unit <= bytes; at += unit) {
        for (size_t i = 0; i < unit / 2; i++) {
            unsigned char keep = data[at + i];
            data[at + i] = data[at + unit - 1 - i];
            data[at + unit - 1 - i] = keep;
        }
    }
}

static void copy_numbers(const header *h, const char *source, sn_value *tensor) {
    unsigned char *to = sn_tensor_data(tensor);
    size_t count = sn_tensor_count(tensor);
    if (count == 0) return;
    if (!h->fortran) {
        memcpy(to, source, count * h->size);
    } else {
        for (size_t i = 0; i < count; i++) {
            memcpy(to + i * h->size, source + source_index(h, i) * h->size, h->size);
        }
    }
    if (h->order == '>') swap_units(to, count * h->size, h->kind == 'c' ? h->size / 2 : h->size);
    if (h->kind == 'b') {
        for (size_t i = 0; i < count; i++) to[i] = to[i] != 0;
    }
}

/* One fixed-width string, without the NULs that pad it. */
static bool decode_string(const header *h, const char *source, cli_text *out) {
    cli_text_clear(out);
    if (h->kind == 'S') {
        size_t length = h->size;
        while (length > 0 && source[length - 1] == 0) length--;
        cli_text_add(out, source, length);
        return true;
    }
    size_t length = h->size;
    const unsigned char *s = (const unsigned char *)source;
    while (length > 0 && memcmp(s + (length - 1) * 4, "\0\0\0\0", 4) == 0) length--;
    for (size_t i = 0; i < length; i++) {
        const unsigned char *c = s + i * 4;
        uint32_t little = c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24;
        uint32_t big = c[3] | (uint32_t)c[2] << 8 | (uint32_t)c[1] << 16 | (uint32_t)c[0] << 24;
        char bytes[4];
        size_t used = co_utf8_encode(h->order == '>' ? big : little, bytes);
        if (used == 0) return false;
        cli_text_add(out, bytes, used);
    }
    return true;
}

static sn_status copy_strings(const header *h, const char *source, sn_value *tensor,
                              sn_error *err) {
    size_t width = h->kind == 'U' ? h->size * 4 : h->size;
    cli_text text = {0};
    sn_status status = SN_OK;
    for (size_t i = 0; i < sn_tensor_count(tensor) && status == SN_OK; i++) {
        if (decode_string(h, source + source_index(h, i) * width, &text)) {
            status = sn_tensor_set_string(tensor, i, cli_text_str(&text), text.length, err);
        } else {
            status = cli_fail(err, SN_MALFORMED, ".npy string %zu holds no valid character", i);
        }
    }
    cli_text_free(&text);
    return status;
}

/* Whether the elements fill exactly `bytes`. */
static bool sizes_agree(const header *h, size_t bytes) {
    size_t total = h->kind == 'U' ? h->size * 4 : h->size;
    bool empty = false;
    for (int i = 0; i < h->rank; i++) {
        size_t dim = (size_t)h->dims[i];
        if (dim == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(total, dim, &total)) {
            return false;
        }
    }
    return (empty ? 0 : total) == bytes;
}

sn_status cli_npy_read(const char *bytes, size_t size, sn_value **out, sn_error *err) {
    header h;
    size_t data = 0;
    sn_dtype dtype = SN_UNDEFINED;
    sn_value *tensor = NULL;
    sn_status status = read_header(bytes, size, &h, &data, err);
    if (status == SN_OK) status = element_type(&h, &dtype, err);
    if (status != SN_OK) return status;
    /* strings of no width take no bytes, however many the shape claims */
    bool agree = sizes_agree(&h, size - data) && (h.size > 0 || size > data || h.rank == 0);
    if (!agree) {
        return cli_fail(err, SN_MALFORMED, ".npy shape and type do not fit its %zu bytes of data",
                        size - data);
    }
    status = sn_tensor_create(dtype, h.rank, h.dims, &tensor, err);
    if (status != SN_OK) return status;
    if (dtype == SN_STRING) {
        status = copy_strings(&h, bytes + data, tensor, err);
    } else {
        copy_numbers(&h, bytes + data, tensor);
    }
    if (status == SN_OK) {
        *out = tensor;
    } else {
        sn_value_destroy(tensor);
    }
    return status;
}

/* ---- Writing ------------------------------------------------------------------------------ */

sn_dtype cli_npy_dtype(sn_dtype dtype) {
    if (dtype == SN_STRING) return dtype;
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].dtype == dtype) return dtype;
    }
    switch (cli_dtype_class(dtype)) {
    case CLI_CLASS_SIGNED:
        return SN_INT8;
    case CLI_CLASS_UNSIGNED:
        return SN_UINT8;
    default:
        return SN_FLOAT32;
    }
}

/* Characters of UTF-8 text; false when it is none or holds NUL. */
static bool count_characters(const char *text, size_t length, size_t *out) {
    size_t count = 0;
    for (size_t at = 0; at < length;) {
        size_t step = co_utf8_length(text + at, length - at);
        if (step == 0 || text[at] == 0) return false;
        at += step;
        count++;
    }
    *out = count;
    return true;
}

static sn_status string_width(const sn_value *tensor, size_t *width, sn_error *err) {
    *width = 1;
    for (size_t i = 0; i < sn_tensor_count(tensor); i++) {
        const char *text;
        size_t length, characters;
        sn_status status = sn_tensor_get_string(tensor, i, &text, &length, err);
        if (status != SN_OK) return status;
        if (!count_characters(text, length, &characters)) {
            return cli_fail(err, SN_UNSUPPORTED,
                            "string %zu is not plain UTF-8, which .npy needs; use --format pb", i);
        }
        if (characters > *width) *width = characters;
    }
    return SN_OK;
}

static void write_header(FILE *stream, const char *descr, const sn_value *tensor) {
    cli_text text = {0};
    cli_text_addf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    int rank = sn_tensor_rank(tensor);
    const int64_t *dims = sn_tensor_dims(tensor);
    for (int i = 0; i < rank; i++) {
        cli_text_addf(&text, i ? " %lld," : "%lld,", (long long)dims[i]);
    }
    cli_text_addf(&text, "), }");
    while ((text.length + 11) % 64 != 0) cli_text_add(&text, " ", 1);
    cli_text_add(&text, "\n", 1);
    fwrite("\x93NUMPY\x01\x00", 1, 8, stream);
    fputc((int)(text.length & 255), stream);
    fputc((int)(text.length >> 8), stream);
    fwrite(cli_text_str(&text), 1, text.length, stream);
    cli_text_free(&text);
}

static sn_status write_strings(const sn_value *tensor, FILE *stream, sn_error *err) {
    size_t width;
    sn_status status = string_width(tensor, &width, err);
    if (status != SN_OK) return status;
    char descr[32];
    snprintf(descr, sizeof descr, "<U%zu", width);
    write_header(stream, descr, tensor);
    for (size_t i = 0; i < sn_tensor_count(tensor); i++) {
        const char *text;
        size_t length, written = 0;
        status = sn_tensor_get_string(tensor, i, &text, &length, err);
        if (status != SN_OK) return status;
        for (size_t at = 0; at < length; written++) {
            size_t step = co_utf8_length(text + at, length - at);
            uint32_t code = (unsigned char)text[at];
            if (step > 1) code &= 0x7Fu >> step;
            for (size_t j = 1; j < step; j++) {
                code = code << 6 | ((unsigned char)text[at + j] & 0x3F);
            }
            for (int shift = 0; shift < 32; shift += 8) fputc((int)(code >> shift & 255), stream);
            at += step;
        }
        for (; written < width; written++) fwrite("\0\0\0\0", 1, 4, stream);
    }
    return SN_OK;
}

sn_status cli_npy_write(const sn_value *tensor, FILE *stream, sn_error *err) {
    sn_dtype dtype = sn_tensor_dtype(tensor), stored = cli_npy_dtype(dtype);
    if (dtype == SN_STRING) return write_strings(tensor, stream, err);
    char descr[16] = "";
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].dtype != stored) continue;
        snprintf(descr, sizeof descr, "%c%c%zu", formats[i].size == 1 ? '|' : '<', formats[i].kind,
                 formats[i].size);
    }
    write_header(stream, descr, tensor);
    cli_view view = cli_view_of(tensor);
    if (stored == dtype) {
        size_t bytes = sn_dtype_bytes(dtype, view.count);
        if (bytes) fwrite(view.data, 1, bytes, stream);
        return SN_OK;
    }
    unsigned char one[8];
    cli_view cell = cli_view_memory(stored, one, 1);
    for (size_t i = 0; i < view.count; i++) {
        cli_view_set(&cell, 0, cli_view_get(&view, i));
        fwrite(one, 1, sn_dtype_bytes(stored, 1), stream);
    }
    return SN_OK;
}
