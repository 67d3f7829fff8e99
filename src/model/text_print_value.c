/* text_print_value.c - names, numbers, types and tensors as ONNX text. */
#include "base/floats.h"
#include "model/text_lex.h"
#include "model/text_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void sni_print(sni_out *out, const char *text) {
    sni_put_raw(out, text, strlen(text));
}

void sni_print_number(sni_out *out, int64_t v) {
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, v);
    sni_print(out, text);
}

/* The shortest decimal of at most 17 digits that reads back to v. `single`: v is a float, and is
 * read back as one. */
static void print_real(sni_out *out, double v, bool single, bool mark_float) {
    char text[40];
    if (isnan(v)) {
        sni_print(out, signbit(v) ? "-nan" : "nan");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v) break;
    }
    sni_print(out, text);
    if (mark_float && !strpbrk(text, ".en")) sni_print(out, ".0");
}

void sni_print_float(sni_out *out, float v) {
    print_real(out, (double)v, true, true);
}

/* Bytes of the UTF-8 sequence at the start of s; 0 if it is none. */
static size_t utf8_length(const unsigned char *s, size_t n) {
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length == 0 || length > n || s[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0; /* overlong */
    if (s[0] == 0xed && s[1] > 0x9f) return 0; /* surrogates */
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0; /* past U+10FFFF */
    return length;
}

void sni_print_quoted(sni_out *out, sni_str s) {
    const unsigned char *p = (const unsigned char *)s.p;
    sni_print(out, "\"");
    for (size_t i = 0; i < s.n;) {
        size_t n = utf8_length(p + i, s.n - i);
        char escape[8];
        if (p[i] == '"' || p[i] == '\\') {
            snprintf(escape, sizeof(escape), "\\%c", p[i]);
            sni_print(out, escape);
            n = 1;
        } else if (n == 0 || p[i] < 32 || p[i] == 127) {
            snprintf(escape, sizeof(escape), "\\x%02x", p[i]);
            sni_print(out, escape);
            n = 1;
        } else {
            sni_put_raw(out, p + i, n);
        }
        i += n;
    }
    sni_print(out, "\"");
}

void sni_print_name(sni_out *out, sni_str s) {
    if (sni_text_is_id(s) && !sni_text_is_type(s))
        sni_put_raw(out, s.p, s.n);
    else
        sni_print_quoted(out, s);
}

void sni_print_operator(sni_out *out, sni_str domain, sni_str type) {
    bool plain = true;
    for (size_t i = 0; i <= domain.n && plain;) {
        size_t n = 0;
        while (i + n < domain.n && domain.p[i + n] != '.') n++;
        plain = domain.n == 0 || sni_text_is_id((sni_str){domain.p + i, n});
        i += n + 1;
    }
    if (domain.n && plain)
        sni_put_raw(out, domain.p, domain.n);
    else if (domain.n)
        sni_print_quoted(out, domain);
    if (domain.n) sni_print(out, ".");
    if (sni_text_is_id(type))
        sni_put_raw(out, type.p, type.n);
    else
        sni_print_quoted(out, type);
}

bool sni_type_printable(const sni_type *type) {
    switch (type->kind) {
    case SN_KIND_TENSOR:
    case SN_KIND_SPARSE_TENSOR:
        return sni_dtype_valid(type->dtype);
    case SN_KIND_MAP:
        if (!sni_dtype_valid(type->dtype)) return false;
        return type->inner && sni_type_printable(type->inner);
    case SN_KIND_SEQUENCE:
    case SN_KIND_OPTIONAL:
        return type->inner && sni_type_printable(type->inner);
    default:
        return false;
    }
}

static void print_dim(sni_out *out, sni_dim d, const sni_symbols *symbols) {
    if (sni_dim_known(d)) {
        sni_print_number(out, d);
        return;
    }
    const char *text = sni_dim_text(symbols, d);
    if (strchr(text, '?'))
        sni_print(out, "?");
    else
        sni_print_name(out, sni_str_of(text));
}

static void print_tensor_type(sni_out *out, const sni_type *type, const sni_symbols *symbols) {
    sni_print(out, sni_dtype_get(type->dtype)->onnx_name);
    if (type->has_shape && type->rank == 0) return;
    sni_print(out, "[");
    for (int i = 0; type->has_shape && i < type->rank; i++) {
        if (i) sni_print(out, ",");
        print_dim(out, type->dims[i], symbols);
    }
    sni_print(out, "]");
}

void sni_print_type(sni_out *out, const sni_type *type, const sni_symbols *symbols) {
    static const char *const names[] = {[SN_KIND_SEQUENCE] = "seq",
                                        [SN_KIND_MAP] = "map",
                                        [SN_KIND_OPTIONAL] = "optional",
                                        [SN_KIND_SPARSE_TENSOR] = "sparse_tensor"};
    if (type->kind == SN_KIND_TENSOR) {
        print_tensor_type(out, type, symbols);
        return;
    }
    sni_print(out, names[type->kind]);
    sni_print(out, "(");
    if (type->kind == SN_KIND_MAP) {
        sni_print(out, sni_dtype_get(type->dtype)->onnx_name);
        sni_print(out, ", ");
    }
    if (type->kind == SN_KIND_SPARSE_TENSOR)
        print_tensor_type(out, type, symbols);
    else
        sni_print_type(out, type->inner, symbols);
    sni_print(out, ")");
}

bool sni_const_printable(const sni_const *c) {
    return c->tensor.count <= SNI_PRINT_ELEMENTS;
}

void sni_print_const_type(sni_out *out, const sni_const *c) {
    sni_type type = {.kind = SN_KIND_TENSOR,
                     .dtype = c->tensor.dtype,
                     .has_shape = true,
                     .rank = c->tensor.rank,
                     .dims = c->tensor.dims};
    sni_print_type(out, &type, NULL);
}

/* The bits of an element of at most 8 bytes, sign-extended for signed types. */
static uint64_t element_bits(const sni_dtype_facts *f, const unsigned char *element) {
    uint64_t bits = 0;
    memcpy(&bits, element, f->width); /* little-endian */
    unsigned unused = 64 - 8 * f->width;
    if (f->cls == SNI_CLASS_I && unused) return (uint64_t)((int64_t)(bits << unused) >> unused);
    return bits;
}

static void print_element(sni_out *out, sn_dtype dtype, const unsigned char *element) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    char text[24];
    double pair[2];
    float narrow, singles[2];
    sni_str s;
    switch (f->cls) {
    case SNI_CLASS_F:
    case SNI_CLASS_C: {
        bool single = dtype == SN_FLOAT32 || dtype == SN_COMPLEX64;
        memcpy(single ? (void *)singles : (void *)pair, element, f->width);
        for (int i = 0; i < (f->cls == SNI_CLASS_C ? 2 : 1); i++) {
            if (i) sni_print(out, ", ");
            print_real(out, single ? (double)singles[i] : pair[i], single, false);
        }
        return;
    }
    case SNI_CLASS_S:
        narrow = sni_narrow_to_f32(dtype, element);
        if (!isnan(narrow)) {
            sni_print_float(out, narrow);
            return;
        }
        break; /* bits keep which NaN it is */
    case SNI_CLASS_I:
        sni_print_number(out, (int64_t)element_bits(f, element));
        return;
    case SNI_CLASS_T:
        memcpy(&s, element, sizeof(s));
        sni_print_quoted(out, s);
        return;
    default:
        break;
    }
    snprintf(text, sizeof(text), "%" PRIu64, element_bits(f, element));
    sni_print(out, text);
}

void sni_print_contents(sni_out *out, sni_const *c) {
    if (!sni_const_printable(c)) {
        sni_print(out, " {...}");
        return;
    }
    const sni_tensor *t = &c->tensor;
    sn_status status = sni_const_load(c, &t, out->err);
    if (status != SN_OK) {
        sni_out_fail(out, status);
        return;
    }
    sni_print(out, " {");
    const unsigned char *data = t->data;
    for (int64_t i = 0; i < t->count; i++) {
        if (i) sni_print(out, ", ");
        print_element(out, t->dtype, data + (size_t)i * sni_dtype_width(t->dtype));
    }
    sni_print(out, "}");
}
