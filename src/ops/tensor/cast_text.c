/* cast_text.c - see cast_text.h. The C library's number formats are used in the "C" locale. */
#include "ops/tensor/cast_text.h"

#include "ops/core/tensor_util.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TEXT = 40,     /* bytes that hold any number's text */
    CHUNK = 1024,  /* numbers whose texts are allocated at once */
    LONGEST = 400, /* most bytes of a string that is read as a number */
};

/* ---- The thread's locale ---- */

typedef struct c_locale {
    locale_t own, before;
} c_locale;

static sn_status enter_c_locale(c_locale *l, sn_error *err) {
    l->own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!l->own) return sni_fail_memory(err);
    l->before = uselocale(l->own);
    return SN_OK;
}

static void leave_c_locale(c_locale *l) {
    uselocale(l->before);
    freelocale(l->own);
}

/* ---- Numbers to text ---- */

/* True if the text, read again, gives the same element. */
static bool reads_back(const char *text, sn_dtype dtype, const void *element) {
    unsigned char again[8];
    if (dtype == SN_FLOAT32) {
        float f = strtof(text, NULL);
        memcpy(again, &f, sizeof f);
    } else {
        double d = strtod(text, NULL);
        sni_convert(SN_FLOAT64, &d, dtype, again, 1, NULL);
    }
    return memcmp(again, element, sni_dtype_width(dtype)) == 0;
}

/* From "d.ddde+xx" to plain notation, or scientific for exponents far from 0. */
static int lay_out(const char *scientific, char *out) {
    char digits[TEXT];
    int n = 0, exponent = atoi(strchr(scientific, 'e') + 1);
    bool negative = *scientific == '-';
    for (const char *c = scientific; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    while (n > 1 && digits[n - 1] == '0') n--;
    int at = 0;
    if (negative) out[at++] = '-';
    if (exponent < -4 || exponent >= 16) {
        out[at++] = digits[0];
        if (n > 1) out[at++] = '.';
        for (int i = 1; i < n; i++) out[at++] = digits[i];
        return at + snprintf(out + at, 8, "e%+03d", exponent);
    }
    if (exponent < 0) {
        out[at++] = '0';
        out[at++] = '.';
        for (int i = -1; i > exponent; i--) out[at++] = '0';
    }
    for (int i = 0; i < n || i <= exponent; i++) {
        if (i > 0 && i == exponent + 1) out[at++] = '.';
        out[at++] = i < n ? digits[i] : '0';
    }
    out[at] = '\0';
    return at;
}

static int format_float(sn_dtype dtype, const void *element, char *out) {
    double v;
    char scientific[TEXT];
    sni_convert(dtype, element, SN_FLOAT64, &v, 1, NULL);
    if (isnan(v)) return snprintf(out, TEXT, "NaN");
    if (isinf(v)) return snprintf(out, TEXT, v < 0 ? "-INF" : "INF");
    int most = dtype == SN_FLOAT64 ? 17 : 9;
    for (int precision = 1; precision <= most; precision++) {
        snprintf(scientific, sizeof scientific, "%.*e", precision - 1, v);
        if (reads_back(scientific, dtype, element)) break;
    }
    return lay_out(scientific, out);
}

static int format_element(sn_dtype dtype, const void *element, char *out) {
    int64_t i;
    uint64_t u;
    switch (sni_dtype_get(dtype)->cls) {
    case SNI_CLASS_I:
        sni_convert(dtype, element, SN_INT64, &i, 1, NULL);
        return snprintf(out, TEXT, "%" PRId64, i);
    case SNI_CLASS_U:
    case SNI_CLASS_B:
        sni_convert(dtype, element, SN_UINT64, &u, 1, NULL);
        return snprintf(out, TEXT, "%" PRIu64, u);
    default:
        return format_float(dtype, element, out);
    }
}

sn_status sni_numbers_to_text(sni_kernel *k, const sni_tensor *x, sni_tensor *y) {
    c_locale locale = {0};
    SN_TRY(enter_c_locale(&locale, k->err));
    sn_status status = SN_OK;
    size_t width = sni_dtype_width(x->dtype);
    sni_str *dst = y->data;
    char *buffer = NULL;
    for (int64_t i = 0; i < x->count; i++) {
        if (i % CHUNK == 0) {
            int64_t left = x->count - i;
            buffer = sni_text(k, (size_t)(left < CHUNK ? left : CHUNK) * TEXT);
            if (!buffer) {
                status = k->err ? k->err->status : SN_NO_MEMORY;
                goto done;
            }
        }
        int n = format_element(x->dtype, sni_element(x->data, i, width), buffer);
        dst[i] = (sni_str){buffer, (size_t)n};
        buffer += n + 1;
    }
done:
    leave_c_locale(&locale);
    return status;
}

/* ---- Text to numbers ---- */

/* True if only blanks follow what was read. */
static bool at_end(const char *start, const char *end) {
    if (end == start) return false;
    return end[strspn(end, " \t\r\n")] == '\0';
}

static bool parse_integer(const char *text, sn_dtype to, void *element) {
    char *end;
    if (sni_dtype_get(to)->cls == SNI_CLASS_U && !strchr(text, '-')) {
        unsigned long long u = strtoull(text, &end, 10);
        sni_convert(SN_UINT64, &(uint64_t){u}, to, element, 1, NULL);
    } else {
        long long i = strtoll(text, &end, 10);
        sni_convert(SN_INT64, &(int64_t){i}, to, element, 1, NULL);
    }
    return at_end(text, end);
}

static bool parse_float(const char *text, sn_dtype to, void *element,
                        const sni_convert_mode *mode) {
    char *end;
    if (to == SN_FLOAT32) {
        float f = strtof(text, &end);
        memcpy(element, &f, sizeof f);
    } else {
        double d = strtod(text, &end);
        sni_convert(SN_FLOAT64, &d, to, element, 1, mode);
    }
    return at_end(text, end);
}

static sn_status parse_element(sni_kernel *k, sni_str s, sn_dtype to, void *element,
                               const sni_convert_mode *mode) {
    char text[LONGEST + 1];
    if (s.n <= LONGEST && !(s.n && memchr(s.p, '\0', s.n))) {
        if (s.n) memcpy(text, s.p, s.n);
        text[s.n] = '\0';
        sni_class cls = sni_dtype_get(to)->cls;
        bool whole = cls == SNI_CLASS_I || cls == SNI_CLASS_U || cls == SNI_CLASS_B;
        if (whole && parse_integer(text, to, element)) return SN_OK;
        if (parse_float(text, to, element, mode)) return SN_OK;
    }
    return SNI_KERNEL_FAIL(k, "'%.*s' is not a number", SNI_FMT(s));
}

sn_status sni_text_to_numbers(sni_kernel *k, const sni_tensor *x, sni_tensor *y,
                              const sni_convert_mode *mode) {
    c_locale locale = {0};
    SN_TRY(enter_c_locale(&locale, k->err));
    sn_status status = SN_OK;
    const sni_str *src = x->data;
    size_t width = sni_dtype_width(y->dtype);
    for (int64_t i = 0; i < x->count && status == SN_OK; i++)
        status = parse_element(k, src[i], y->dtype, sni_element(y->data, i, width), mode);
    leave_c_locale(&locale);
    return status;
}
