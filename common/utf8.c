/* utf8.c - UTF-8 and the escapes of JSON strings, for the program and the server. */
#include "common/utf8.h"

#include <string.h>

size_t co_utf8_length(const char *bytes, size_t length) {
    const unsigned char *s = (const unsigned char *)bytes;
    if (length == 0) return 0;
    if (s[0] < 0x80) return 1;
    size_t need = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || need > length) return 0;
    for (size_t i = 1; i < need; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
    }
    if (s[0] == 0xE0 && s[1] < 0xA0) return 0; /* overlong */
    if (s[0] == 0xED && s[1] > 0x9F) return 0; /* surrogate */
    if (s[0] == 0xF0 && s[1] < 0x90) return 0; /* overlong */
    if (s[0] == 0xF4 && s[1] > 0x8F) return 0; /* past U+10FFFF */
    return need;
}

size_t co_utf8_encode(uint32_t code, char bytes[4]) {
    if ((code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return 0;
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    bytes[0] = (char)(lead[more] | (code >> (6 * more)));
    for (size_t i = 1; i <= more; i++) {
        bytes[i] = (char)(0x80 | ((code >> (6 * (more - i))) & 0x3F));
    }
    return more + 1;
}

static bool hex4(const char *text, size_t size, uint32_t *out) {
    uint32_t code = 0;
    if (size < 4) return false;
    for (size_t i = 0; i < 4; i++) {
        char c = text[i];
        uint32_t digit;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
            digit = (uint32_t)((c | 32) - 'a' + 10);
        } else {
            return false;
        }
        code = code * 16 + digit;
    }
    *out = code;
    return true;
}

const char *co_json_escape(const char *text, size_t size, size_t *used, char bytes[4],
                           size_t *length) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    static const char half[] = "half a surrogate pair";
    if (size == 0) return "unfinished string";
    const char *found = text[0] ? strchr(names, text[0]) : NULL;
    *used = 1;
    *length = 1;
    if (found) {
        bytes[0] = values[found - names];
        return NULL;
    }
    uint32_t code = 0, low = 0;
    if (text[0] != 'u' || !hex4(text + 1, size - 1, &code)) return "unknown escape";
    *used = 5;
    if (code >= 0xD800 && code < 0xDC00) {
        bool pair = size >= 11 && memcmp(text + 5, "\\u", 2) == 0 &&
                    hex4(text + 7, size - 7, &low) && low >= 0xDC00 && low < 0xE000;
        if (!pair) return half;
        *used = 11;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    *length = co_utf8_encode(code, bytes);
    return *length ? NULL : half;
}

const char *co_json_unescape(const char *text, size_t size, char *out, size_t *length) {
    size_t filled = 0;
    for (size_t at = 0; at < size;) {
        if (text[at] != '\\') {
            out[filled++] = text[at++];
            continue;
        }
        size_t used, count;
        char bytes[4];
        const char *wrong = co_json_escape(text + at + 1, size - at - 1, &used, bytes, &count);
        if (wrong) return wrong;
        memcpy(out + filled, bytes, count);
        filled += count;
        at += 1 + used;
    }
    out[filled] = 0;
    *length = filled;
    return NULL;
}
