/* element.c - elements of tensors of any type, one at a time: read, write, print. */
#include "cli/formats/element.h"

#include <math.h>
#include <string.h>

/* The formats narrower than float: sign, exponent and mantissa bits, exponent bias, and which
 * codes are special. */
typedef struct narrow {
    int sign, exponent, mantissa, bias;
    enum { IEEE, FINITE_NAN, UNSIGNED_ZERO, FINITE, SCALE } special;
} narrow;
/* IEEE: the top exponent is infinity and NaN. FINITE_NAN: all ones is NaN. UNSIGNED_ZERO: minus
 * zero is NaN. FINITE: none. SCALE: a bare exponent, all ones is NaN, no zero. */

static const struct {
    unsigned char class;
    unsigned char bits;
    narrow format;
} types[] = {
    [SN_FLOAT32] = {CLI_CLASS_FLOAT, 32, {0}},
    [SN_UINT8] = {CLI_CLASS_UNSIGNED, 8, {0}},
    [SN_INT8] = {CLI_CLASS_SIGNED, 8, {0}},
    [SN_UINT16] = {CLI_CLASS_UNSIGNED, 16, {0}},
    [SN_INT16] = {CLI_CLASS_SIGNED, 16, {0}},
    [SN_INT32] = {CLI_CLASS_SIGNED, 32, {0}},
    [SN_INT64] = {CLI_CLASS_SIGNED, 64, {0}},
    [SN_STRING] = {CLI_CLASS_STRING, 0, {0}},
    [SN_BOOL] = {CLI_CLASS_BOOL, 8, {0}},
    [SN_FLOAT16] = {CLI_CLASS_FLOAT, 16, {1, 5, 10, 15, IEEE}},
    [SN_FLOAT64] = {CLI_CLASS_FLOAT, 64, {0}},
    [SN_UINT32] = {CLI_CLASS_UNSIGNED, 32, {0}},
    [SN_UINT64] = {CLI_CLASS_UNSIGNED, 64, {0}},
    [SN_COMPLEX64] = {CLI_CLASS_COMPLEX, 64, {0}},
    [SN_COMPLEX128] = {CLI_CLASS_COMPLEX, 128, {0}},
    [SN_BFLOAT16] = {CLI_CLASS_FLOAT, 16, {1, 8, 7, 127, IEEE}},
    [SN_FLOAT8E4M3FN] = {CLI_CLASS_FLOAT, 8, {1, 4, 3, 7, FINITE_NAN}},
    [SN_FLOAT8E4M3FNUZ] = {CLI_CLASS_FLOAT, 8, {1, 4, 3, 8, UNSIGNED_ZERO}},
    [SN_FLOAT8E5M2] = {CLI_CLASS_FLOAT, 8, {1, 5, 2, 15, IEEE}},
    [SN_FLOAT8E5M2FNUZ] = {CLI_CLASS_FLOAT, 8, {1, 5, 2, 16, UNSIGNED_ZERO}},
    [SN_UINT4] = {CLI_CLASS_UNSIGNED, 4, {0}},
    [SN_INT4] = {CLI_CLASS_SIGNED, 4, {0}},
    [SN_FLOAT4E2M1] = {CLI_CLASS_FLOAT, 4, {1, 2, 1, 1, FINITE}},
    [SN_FLOAT8E8M0] = {CLI_CLASS_FLOAT, 8, {0, 8, 0, 127, SCALE}},
    [SN_UINT2] = {CLI_CLASS_UNSIGNED, 2, {0}},
    [SN_INT2] = {CLI_CLASS_SIGNED, 2, {0}},
};

static bool known(sn_dtype dtype) {
    return (int)dtype > 0 && (size_t)dtype < sizeof types / sizeof types[0];
}

cli_class cli_dtype_class(sn_dtype dtype) {
    return known(dtype) ? (cli_class)types[dtype].class : CLI_CLASS_NONE;
}

int cli_dtype_bits(sn_dtype dtype) {
    return known(dtype) ? types[dtype].bits : 0;
}

/* ---- Narrow floating point ---------------------------------------------------------------- */

static double decode_narrow(const narrow *f, uint64_t code) {
    uint64_t mantissa = code & ((1u << f->mantissa) - 1);
    int exponent = (int)((code >> f->mantissa) & ((1u << f->exponent) - 1));
    int top = (1 << f->exponent) - 1;
    bool negative = f->sign && (code >> (f->exponent + f->mantissa)) & 1;
    bool full = exponent == top && mantissa == (1u << f->mantissa) - 1;
    if (f->special == IEEE && exponent == top) {
        if (mantissa) return NAN;
        return negative ? -INFINITY : INFINITY;
    }
    if (full && (f->special == FINITE_NAN || f->special == SCALE)) return NAN;
    if (f->special == UNSIGNED_ZERO && negative && exponent == 0 && mantissa == 0) return NAN;
    double magnitude;
    if (exponent == 0 && f->special != SCALE) {
        magnitude = ldexp((double)mantissa, 1 - f->bias - f->mantissa);
    } else {
        magnitude =
            ldexp((double)(mantissa + (1u << f->mantissa)), exponent - f->bias - f->mantissa);
    }
    return negative ? -magnitude : magnitude;
}

/* The code of NaN (`nan`) or infinity; false when the format has none. */
static bool encode_special(const narrow *f, bool nan, bool negative, uint64_t *code) {
    uint64_t sign = (uint64_t)1 << (f->exponent + f->mantissa);
    uint64_t all = sign - 1;
    uint64_t top = all & ~(((uint64_t)1 << f->mantissa) - 1);
    switch (f->special) {
    case IEEE:
        *code = nan ? top | ((uint64_t)1 << (f->mantissa - 1)) : top;
        if (!nan && negative) *code |= sign;
        return true;
    case FINITE_NAN:
    case SCALE:
        *code = all;
        return nan;
    case UNSIGNED_ZERO:
        *code = sign;
        return nan;
    default:
        return false;
    }
}

/* Rounds to nearest, ties to even; false when the value does not fit. */
static bool encode_narrow(const narrow *f, double value, uint64_t *code) {
    bool negative = signbit(value);
    if (!isfinite(value)) return encode_special(f, isnan(value), negative, code);
    if (negative && !f->sign) return false;
    int lowest = f->special == SCALE ? -f->bias : 1 - f->bias;
    int exponent = lowest;
    double magnitude = fabs(value);
    if (magnitude > 0) {
        frexp(magnitude, &exponent);
        exponent -= 1; /* magnitude = 1.x * 2^exponent */
        if (exponent < lowest) exponent = lowest;
    }
    double scaled = rint(ldexp(magnitude, f->mantissa - exponent));
    uint64_t bits = (uint64_t)scaled; /* below 2^(mantissa+1) + 1 */
    uint64_t one = (uint64_t)1 << f->mantissa;
    if (f->special == SCALE && bits == 0) return false;
    uint64_t result =
        bits < one ? bits : ((uint64_t)(exponent + f->bias) << f->mantissa) + (bits - one);
    if (result >> (f->exponent + f->mantissa)) return false;
    if (negative && result) result |= (uint64_t)1 << (f->exponent + f->mantissa);
    if (negative && !result && f->special != UNSIGNED_ZERO) {
        result |= (uint64_t)1 << (f->exponent + f->mantissa);
    }
    if (!isfinite(decode_narrow(f, result))) return false;
    *code = result;
    return true;
}

/* ---- Views -------------------------------------------------------------------------------- */

cli_view cli_view_of(const sn_value *tensor) {
    sn_dtype dtype = sn_tensor_dtype(tensor);
    return (cli_view){.dtype = dtype,
                      .class = cli_dtype_class(dtype),
                      .bits = cli_dtype_bits(dtype),
                      .count = sn_tensor_count(tensor),
                      .data = (unsigned char *)(uintptr_t)sn_tensor_const_data(tensor),
                      .value = tensor};
}

cli_view cli_view_memory(sn_dtype dtype, void *data, size_t count) {
    return (cli_view){.dtype = dtype,
                      .class = cli_dtype_class(dtype),
                      .bits = cli_dtype_bits(dtype),
                      .count = count,
                      .data = data};
}

/* The bits of an element of up to 64 bits, in the low bits. */
static uint64_t load_bits(const cli_view *view, size_t index) {
    if (view->bits < 8) {
        size_t per_byte = 8 / (size_t)view->bits;
        unsigned shift = (unsigned)(index % per_byte) * (unsigned)view->bits;
        return (view->data[index / per_byte] >> shift) & ((1u << view->bits) - 1);
    }
    size_t width = (size_t)view->bits / 8;
    const unsigned char *from = view->data + index * width;
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (width) {
    case 1:
        memcpy(&b, from, 1);
        return b;
    case 2:
        memcpy(&h, from, 2);
        return h;
    case 4:
        memcpy(&w, from, 4);
        return w;
    default:
        memcpy(&d, from, 8);
        return d;
    }
}

static void store_bits(const cli_view *view, size_t index, uint64_t bits) {
    if (view->bits < 8) {
        size_t per_byte = 8 / (size_t)view->bits;
        unsigned shift = (unsigned)(index % per_byte) * (unsigned)view->bits;
        unsigned mask = ((1u << view->bits) - 1) << shift;
        unsigned char *byte = &view->data[index / per_byte];
        *byte = (unsigned char)((*byte & ~mask) | ((unsigned)(bits << shift) & mask));
        return;
    }
    size_t width = (size_t)view->bits / 8;
    unsigned char *to = view->data + index * width;
    uint8_t b = (uint8_t)bits;
    uint16_t h = (uint16_t)bits;
    uint32_t w = (uint32_t)bits;
    switch (width) {
    case 1:
        memcpy(to, &b, 1);
        break;
    case 2:
        memcpy(to, &h, 2);
        break;
    case 4:
        memcpy(to, &w, 4);
        break;
    default:
        memcpy(to, &bits, 8);
        break;
    }
}

static double load_float(const cli_view *view, size_t index) {
    float f;
    double d;
    if (view->dtype == SN_FLOAT32) {
        memcpy(&f, view->data + index * 4, 4);
        return (double)f;
    }
    if (view->dtype == SN_FLOAT64) {
        memcpy(&d, view->data + index * 8, 8);
        return d;
    }
    return decode_narrow(&types[view->dtype].format, load_bits(view, index));
}

static cli_number load_complex(const cli_view *view, size_t index) {
    float f[2];
    double d[2];
    if (view->dtype == SN_COMPLEX64) {
        memcpy(f, view->data + index * 8, 8);
        return (cli_number){.class = CLI_CLASS_FLOAT, .re = (double)f[0], .im = (double)f[1]};
    }
    memcpy(d, view->data + index * 16, 16);
    return (cli_number){.class = CLI_CLASS_FLOAT, .re = d[0], .im = d[1]};
}

cli_number cli_view_get(const cli_view *view, size_t index) {
    switch (view->class) {
    case CLI_CLASS_SIGNED: {
        uint64_t bits = load_bits(view, index);
        uint64_t sign = (uint64_t)1 << (view->bits - 1);
        /* two's complement by value: what has the sign bit is 2^bits too large */
        return cli_number_int(bits & sign ? -(int64_t)(sign - 1 - (bits & (sign - 1))) - 1
                                          : (int64_t)bits);
    }
    case CLI_CLASS_UNSIGNED:
        return cli_number_uint(load_bits(view, index));
    case CLI_CLASS_BOOL:
        return cli_number_uint(load_bits(view, index) != 0);
    case CLI_CLASS_FLOAT:
        return cli_number_real(load_float(view, index));
    case CLI_CLASS_COMPLEX:
        return load_complex(view, index);
    default:
        return cli_number_real(NAN);
    }
}

double cli_view_real(const cli_view *view, size_t index) {
    return cli_number_as_real(cli_view_get(view, index));
}

cli_number cli_number_real(double value) {
    return (cli_number){.class = CLI_CLASS_FLOAT, .re = value};
}

cli_number cli_number_int(int64_t value) {
    return (cli_number){.class = CLI_CLASS_SIGNED, .i = value};
}

cli_number cli_number_uint(uint64_t value) {
    return (cli_number){.class = CLI_CLASS_UNSIGNED, .u = value};
}

double cli_number_as_real(cli_number number) {
    if (number.class == CLI_CLASS_SIGNED) return (double)number.i;
    if (number.class == CLI_CLASS_UNSIGNED) return (double)number.u;
    return number.re;
}

/* A whole number as sign and magnitude; false for fractions and what no 64 bits hold. */
static bool to_whole(cli_number number, bool *negative, uint64_t *magnitude) {
    *negative = false;
    switch (number.class) {
    case CLI_CLASS_SIGNED:
        *negative = number.i < 0;
        *magnitude = *negative ? (uint64_t)(-(number.i + 1)) + 1 : (uint64_t)number.i;
        return true;
    case CLI_CLASS_UNSIGNED:
        *magnitude = number.u;
        return true;
    default:
        if (!(fabs(number.re) < 18446744073709551616.0) || number.re != trunc(number.re) ||
            number.im != 0) {
            return false;
        }
        *negative = number.re < 0;
        *magnitude = (uint64_t)fabs(number.re);
        return true;
    }
}

static bool set_whole(const cli_view *view, size_t index, cli_number number) {
    bool negative;
    uint64_t magnitude;
    if (!to_whole(number, &negative, &magnitude)) return false;
    uint64_t most = UINT64_MAX >> (64 - view->bits);
    if (view->class == CLI_CLASS_BOOL) most = 1;
    if (view->class == CLI_CLASS_SIGNED) most = (most >> 1) + (negative ? 1 : 0);
    if (magnitude > most) return false;
    if (negative && magnitude && view->class != CLI_CLASS_SIGNED) return false;
    store_bits(view, index, negative ? ~magnitude + 1 : magnitude);
    return true;
}

static bool set_real(const cli_view *view, size_t index, cli_number number) {
    double value = cli_number_as_real(number);
    float f = (float)value;
    if (number.im != 0) return false;
    if (view->dtype == SN_FLOAT32) {
        if (isinf(f) && !isinf(value)) return false;
        memcpy(view->data + index * 4, &f, 4);
        return true;
    }
    if (view->dtype == SN_FLOAT64) {
        memcpy(view->data + index * 8, &value, 8);
        return true;
    }
    uint64_t code;
    if (!encode_narrow(&types[view->dtype].format, value, &code)) return false;
    store_bits(view, index, code);
    return true;
}

bool cli_view_set(const cli_view *view, size_t index, cli_number number) {
    switch (view->class) {
    case CLI_CLASS_SIGNED:
    case CLI_CLASS_UNSIGNED:
    case CLI_CLASS_BOOL:
        return set_whole(view, index, number);
    case CLI_CLASS_FLOAT:
        return set_real(view, index, number);
    case CLI_CLASS_COMPLEX: {
        sn_dtype part = view->dtype == SN_COMPLEX64 ? SN_FLOAT32 : SN_FLOAT64;
        cli_view parts = cli_view_memory(part, view->data, view->count * 2);
        return set_real(&parts, index * 2, cli_number_real(cli_number_as_real(number))) &&
               set_real(&parts, index * 2 + 1, cli_number_real(number.im));
    }
    default:
        return false;
    }
}

/* ---- Printing ----------------------------------------------------------------------------- */

static void print_string(const cli_view *view, size_t index, size_t most, cli_text *out) {
    const char *text = "";
    size_t length = 0;
    sn_error err;
    if (sn_tensor_get_string(view->value, index, &text, &length, &err) != SN_OK) {
        cli_text_addf(out, "<%s>", err.message);
        return;
    }
    cli_text_add(out, "\"", 1);
    cli_text_add_safe(out, text, length < most ? length : most);
    cli_text_addf(out, length < most ? "\"" : "\"...");
}

void cli_view_print(const cli_view *view, size_t index, size_t most, cli_text *out) {
    if (view->class == CLI_CLASS_STRING) {
        print_string(view, index, most, out);
        return;
    }
    cli_number number = cli_view_get(view, index);
    int digits = view->dtype == SN_FLOAT64 || view->dtype == SN_COMPLEX128 ? 15 : 7;
    if (view->class == CLI_CLASS_COMPLEX) {
        cli_text_addf(out, "%.*g%+.*gi", digits, number.re, digits, number.im);
    } else if (view->class == CLI_CLASS_BOOL) {
        cli_text_addf(out, number.u ? "true" : "false");
    } else if (number.class == CLI_CLASS_SIGNED) {
        cli_text_addf(out, "%lld", (long long)number.i);
    } else if (number.class == CLI_CLASS_UNSIGNED) {
        cli_text_addf(out, "%llu", (unsigned long long)number.u);
    } else {
        cli_text_addf(out, "%.*g", digits, number.re);
    }
}
