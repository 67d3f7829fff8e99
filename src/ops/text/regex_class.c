/* regex_class.c - characters, escapes and classes of regular expressions. */
#include "ops/text/regex_parse.h"

#include "ops/text/unicode.h"

sn_status sni_regex_take_code_point(sni_regex_parser *p, int32_t *c) {
    size_t length;
    *c = sni_utf8_decode(p->text, p->at, &length);
    if (*c < 0) return sni_regex_bad(p, "no valid UTF-8");
    p->at += length;
    return SN_OK;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static sn_status take_hex(sni_regex_parser *p, int32_t *c) { /* after \x */
    bool braces = sni_regex_take(p, "{");
    int32_t v = 0, digits = 0;
    for (; sni_regex_more(p) && hex_digit(sni_regex_peek(p)) >= 0 && (braces || digits < 2);
         digits++, p->at++) {
        v = v * 16 + hex_digit(sni_regex_peek(p));
        if (v > SNI_REGEX_LAST) return sni_regex_bad(p, "no code point");
    }
    if (digits == 0 || (!braces && digits != 2) || (braces && !sni_regex_take(p, "}")))
        return sni_regex_bad(p, "a hexadecimal escape that does not end");
    *c = v;
    return SN_OK;
}

/* A class by letter, \d \s \w; false if it is none. Adds its ranges, or those of its complement. */
sn_status sni_regex_add_perl_class(sni_regex_parser *p, char letter, bool *found) {
    static const sni_regex_range digit[] = {{'0', '9'}},
                                 space[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
                                 words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    const sni_regex_range *ranges;
    int count;
    char kind = (char)(letter | 0x20);
    *found = kind == 'd' || kind == 's' || kind == 'w';
    if (!*found) return SN_OK;
    ranges = kind == 'd' ? digit : kind == 's' ? space : words;
    count = kind == 'd' ? 1 : kind == 's' ? 3 : 4;
    int32_t low = 0;
    for (int i = 0; i < count; i++) {
        if (letter == kind) {
            SN_TRY(sni_regex_add_range(p, ranges[i].low, ranges[i].high));
        } else { /* the gaps */
            if (ranges[i].low > low) SN_TRY(sni_regex_add_range(p, low, ranges[i].low - 1));
            low = ranges[i].high + 1;
        }
    }
    return letter == kind ? SN_OK : sni_regex_add_range(p, low, SNI_REGEX_LAST);
}

/* An escape that stands for one code point, after the backslash. */
sn_status sni_regex_take_escape(sni_regex_parser *p, int32_t *c) {
    static const char letters[] = "afnrtv", values[] = "\a\f\n\r\t\v";
    char e = sni_regex_peek(p);
    if (!sni_regex_more(p)) return sni_regex_bad(p, "a backslash at the end");
    const char *letter = e ? strchr(letters, e) : NULL;
    if (letter) {
        p->at++;
        *c = values[letter - letters];
        return SN_OK;
    }
    if (sni_regex_take(p, "x")) return take_hex(p, c);
    if (e >= '0' && e <= '7' &&
        (e == '0' ||
         (p->at + 1 < p->text.n && p->text.p[p->at + 1] >= '0' && p->text.p[p->at + 1] <= '7'))) {
        *c = 0;
        for (int i = 0; i < 3 && sni_regex_peek(p) >= '0' && sni_regex_peek(p) <= '7'; i++, p->at++)
            *c = *c * 8 + (sni_regex_peek(p) - '0');
        return SN_OK;
    }
    bool alphanumeric = hex_digit(e) >= 0 || (e >= 'g' && e <= 'z') || (e >= 'G' && e <= 'Z');
    if (alphanumeric) return sni_regex_bad(p, "an escape that is not supported");
    return sni_regex_take_code_point(p, c);
}

static sn_status add_posix_class(sni_regex_parser *p, bool *found) {
    static const struct {
        const char *name;
        sni_regex_range ranges[4];
        int count;
    } classes[] = {
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
        {"ascii", {{0, 127}}, 1},
        {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
        {"cntrl", {{0, 31}, {127, 127}}, 2},
        {"digit", {{'0', '9'}}, 1},
        {"graph", {{'!', '~'}}, 1},
        {"lower", {{'a', 'z'}}, 1},
        {"print", {{' ', '~'}}, 1},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
        {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
        {"upper", {{'A', 'Z'}}, 1},
        {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
    };
    *found = false;
    if (!sni_regex_take(p, "[:")) return SN_OK;
    bool negated = sni_regex_take(p, "^");
    for (size_t i = 0; i < sizeof classes / sizeof *classes && !*found; i++) {
        size_t start = p->at;
        if (!sni_regex_take(p, classes[i].name) || !sni_regex_take(p, ":]")) {
            p->at = start;
            continue;
        }
        *found = true;
        int32_t low = 0;
        for (int j = 0; j < classes[i].count; j++) {
            const sni_regex_range *r = &classes[i].ranges[j];
            if (!negated) {
                SN_TRY(sni_regex_add_range(p, r->low, r->high));
            } else {
                if (r->low > low) SN_TRY(sni_regex_add_range(p, low, r->low - 1));
                low = r->high + 1;
            }
        }
        if (negated) SN_TRY(sni_regex_add_range(p, low, SNI_REGEX_LAST));
    }
    return *found ? SN_OK : sni_regex_bad(p, "no class of that name");
}

static sn_status class_char(sni_regex_parser *p, int32_t *c) {
    return sni_regex_take(p, "\\") ? sni_regex_take_escape(p, c) : sni_regex_take_code_point(p, c);
}

/* One item of a class: a code point, a range, or a class by name. */
static sn_status parse_class_item(sni_regex_parser *p) {
    bool found = false;
    SN_TRY(add_posix_class(p, &found));
    if (found) return SN_OK;
    if (sni_regex_peek(p) == '\\' && p->at + 1 < p->text.n) {
        SN_TRY(sni_regex_add_perl_class(p, p->text.p[p->at + 1], &found));
        if (found) {
            p->at += 2;
            return SN_OK;
        }
    }
    int32_t low = 0, high;
    SN_TRY(class_char(p, &low));
    high = low;
    if (sni_regex_peek(p) == '-' && p->at + 1 < p->text.n && p->text.p[p->at + 1] != ']') {
        p->at++;
        SN_TRY(class_char(p, &high));
        if (high < low) return sni_regex_bad(p, "a range that runs backwards");
    }
    return sni_regex_add_range(p, low, high);
}

sn_status sni_regex_take_class(sni_regex_parser *p, bool *negated) {
    *negated = sni_regex_take(p, "^");
    for (bool start = true; start || sni_regex_peek(p) != ']'; start = false) {
        if (!sni_regex_more(p)) return sni_regex_bad(p, "a [ without its ]");
        SN_TRY(parse_class_item(p));
    }
    p->at++;
    return SN_OK;
}
