/* Compiling regular expressions: a recursive-descent parser that writes the matcher's program as
 * it reads. A repeated part is read again for each copy. */
#include "ops/text/regex_impl.h"

#include "ops/text/unicode.h"

#include <stdlib.h>

enum {
    DEPTH_LIMIT = 200,    /* of nested groups */
    STEP_LIMIT = 1 << 15, /* of the program */
    WORK_LIMIT = 1 << 20, /* parts read, copies included */
    REPEAT_LIMIT = 1000   /* as RE2 */
};

typedef struct parser {
    sni_str text;
    size_t at;
    sni_regex *out;
    int depth, work;
    bool fold, multi_line, dot_all; /* flags in force */
    bool quoted;                    /* between \Q and \E */
    sn_error *err;
} parser;

static sn_status parse_alternatives(parser *p);

static sn_status bad(parser *p, const char *what) {
    return sni_fail(p->err, SN_INVALID_MODEL, "pattern, byte %zu: %s", p->at, what);
}

static bool more(const parser *p) {
    return p->at < p->text.n;
}

static char peek(const parser *p) {
    return more(p) ? p->text.p[p->at] : '\0';
}

static bool take(parser *p, const char *literal) {
    size_t n = strlen(literal);
    if (p->text.n - p->at < n || memcmp(p->text.p + p->at, literal, n) != 0) return false;
    p->at += n;
    return true;
}

/* ---- Program ---- */

/* Room for one more element of `size` bytes. */
static sn_status grow(parser *p, void **array, int32_t count, int32_t *room, size_t size) {
    if (count < *room) return SN_OK;
    if (count >= STEP_LIMIT)
        return sni_fail(p->err, SN_LIMIT, "the pattern needs more than %d steps", STEP_LIMIT);
    int32_t wanted = *room ? 2 * *room : 64;
    void *bigger = realloc(*array, (size_t)wanted * size);
    if (!bigger) return sni_fail_memory(p->err);
    *array = bigger;
    *room = wanted;
    return SN_OK;
}

static sn_status emit(parser *p, sni_regex_code code, int32_t x, int32_t y) {
    sni_regex *r = p->out;
    void *steps = r->steps;
    sn_status status = grow(p, &steps, r->n_steps, &r->steps_room, sizeof *r->steps);
    r->steps = steps;
    if (status == SN_OK) r->steps[r->n_steps++] = (sni_regex_step){code, x, y};
    return status;
}

/* Inserts a step before step `at`, and moves the targets of jumps from there on. */
static sn_status insert_split(parser *p, int32_t at) {
    SN_TRY(emit(p, SNI_REGEX_SPLIT, 0, 0));
    sni_regex *r = p->out;
    for (int32_t i = r->n_steps - 1; i > at; i--) {
        r->steps[i] = r->steps[i - 1];
        sni_regex_step *s = &r->steps[i];
        if (s->code == SNI_REGEX_SPLIT || s->code == SNI_REGEX_JUMP) {
            s->x += s->x >= at;
            s->y += s->y >= at;
        }
    }
    r->steps[at] = (sni_regex_step){SNI_REGEX_SPLIT, at + 1, at + 1};
    return SN_OK;
}

static sn_status add_range(parser *p, int32_t low, int32_t high) {
    sni_regex *r = p->out;
    void *ranges = r->ranges;
    sn_status status = grow(p, &ranges, r->n_ranges, &r->ranges_room, sizeof *r->ranges);
    r->ranges = ranges;
    if (status == SN_OK) r->ranges[r->n_ranges++] = (sni_regex_range){low, high};
    return status;
}

/* A step for a set whose ranges are those added since `first`. */
static sn_status emit_set(parser *p, int32_t first, bool negated, bool fold) {
    sni_regex *r = p->out;
    void *sets = r->sets;
    sn_status status = grow(p, &sets, r->n_sets, &r->sets_room, sizeof *r->sets);
    r->sets = sets;
    SN_TRY(status);
    r->sets[r->n_sets++] = (sni_regex_set){first, r->n_ranges - first, negated, fold};
    return emit(p, SNI_REGEX_SET, r->n_sets - 1, 0);
}

static sn_status emit_char(parser *p, int32_t c) {
    int32_t first = p->out->n_ranges;
    SN_TRY(add_range(p, c, c));
    return emit_set(p, first, false, p->fold);
}

/* ---- Characters and classes ---- */

static sn_status take_code_point(parser *p, int32_t *c) {
    size_t length;
    *c = sni_utf8_decode(p->text, p->at, &length);
    if (*c < 0) return bad(p, "no valid UTF-8");
    p->at += length;
    return SN_OK;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static sn_status take_hex(parser *p, int32_t *c) { /* after \x */
    bool braces = take(p, "{");
    int32_t v = 0, digits = 0;
    for (; more(p) && hex_digit(peek(p)) >= 0 && (braces || digits < 2); digits++, p->at++) {
        v = v * 16 + hex_digit(peek(p));
        if (v > SNI_REGEX_LAST) return bad(p, "no code point");
    }
    if (digits == 0 || (!braces && digits != 2) || (braces && !take(p, "}")))
        return bad(p, "a hexadecimal escape that does not end");
    *c = v;
    return SN_OK;
}

/* A class by letter, \d \s \w; false if it is none. Adds its ranges, or those of its complement. */
static sn_status add_perl_class(parser *p, char letter, bool *found) {
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
            SN_TRY(add_range(p, ranges[i].low, ranges[i].high));
        } else { /* the gaps */
            if (ranges[i].low > low) SN_TRY(add_range(p, low, ranges[i].low - 1));
            low = ranges[i].high + 1;
        }
    }
    return letter == kind ? SN_OK : add_range(p, low, SNI_REGEX_LAST);
}

/* An escape that stands for one code point, after the backslash. */
static sn_status take_escape(parser *p, int32_t *c) {
    static const char letters[] = "afnrtv", values[] = "\a\f\n\r\t\v";
    char e = peek(p);
    if (!more(p)) return bad(p, "a backslash at the end");
    const char *letter = e ? strchr(letters, e) : NULL;
    if (letter) {
        p->at++;
        *c = values[letter - letters];
        return SN_OK;
    }
    if (take(p, "x")) return take_hex(p, c);
    if (e >= '0' && e <= '7' &&
        (e == '0' ||
         (p->at + 1 < p->text.n && p->text.p[p->at + 1] >= '0' && p->text.p[p->at + 1] <= '7'))) {
        *c = 0;
        for (int i = 0; i < 3 && peek(p) >= '0' && peek(p) <= '7'; i++, p->at++)
            *c = *c * 8 + (peek(p) - '0');
        return SN_OK;
    }
    bool alphanumeric = hex_digit(e) >= 0 || (e >= 'g' && e <= 'z') || (e >= 'G' && e <= 'Z');
    if (alphanumeric) return bad(p, "an escape that is not supported");
    return take_code_point(p, c);
}

static sn_status add_posix_class(parser *p, bool *found) {
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
    if (!take(p, "[:")) return SN_OK;
    bool negated = take(p, "^");
    for (size_t i = 0; i < sizeof classes / sizeof *classes && !*found; i++) {
        size_t start = p->at;
        if (!take(p, classes[i].name) || !take(p, ":]")) {
            p->at = start;
            continue;
        }
        *found = true;
        int32_t low = 0;
        for (int j = 0; j < classes[i].count; j++) {
            const sni_regex_range *r = &classes[i].ranges[j];
            if (!negated) {
                SN_TRY(add_range(p, r->low, r->high));
            } else {
                if (r->low > low) SN_TRY(add_range(p, low, r->low - 1));
                low = r->high + 1;
            }
        }
        if (negated) SN_TRY(add_range(p, low, SNI_REGEX_LAST));
    }
    return *found ? SN_OK : bad(p, "no class of that name");
}

static sn_status class_char(parser *p, int32_t *c) {
    return take(p, "\\") ? take_escape(p, c) : take_code_point(p, c);
}

/* One item of a class: a code point, a range, or a class by name. */
static sn_status parse_class_item(parser *p) {
    bool found = false;
    SN_TRY(add_posix_class(p, &found));
    if (found) return SN_OK;
    if (peek(p) == '\\' && p->at + 1 < p->text.n) {
        SN_TRY(add_perl_class(p, p->text.p[p->at + 1], &found));
        if (found) {
            p->at += 2;
            return SN_OK;
        }
    }
    int32_t low = 0, high;
    SN_TRY(class_char(p, &low));
    high = low;
    if (peek(p) == '-' && p->at + 1 < p->text.n && p->text.p[p->at + 1] != ']') {
        p->at++;
        SN_TRY(class_char(p, &high));
        if (high < low) return bad(p, "a range that runs backwards");
    }
    return add_range(p, low, high);
}

static sn_status parse_class(parser *p) { /* after [ */
    bool negated = take(p, "^");
    int32_t first = p->out->n_ranges;
    for (bool start = true; start || peek(p) != ']'; start = false) {
        if (!more(p)) return bad(p, "a [ without its ]");
        SN_TRY(parse_class_item(p));
    }
    p->at++;
    return emit_set(p, first, negated, p->fold);
}

/* ---- Groups ---- */

static sn_status parse_flags(parser *p, bool *scoped) { /* after (? */
    bool value = true;
    for (;;) {
        char c = peek(p);
        if (!more(p)) return bad(p, "a group that does not end");
        p->at++;
        if (c == 'i')
            p->fold = value;
        else if (c == 'm')
            p->multi_line = value;
        else if (c == 's')
            p->dot_all = value;
        else if (c == '-' && value)
            value = false;
        else if (c == ':' || c == ')') {
            *scoped = c == ':';
            return SN_OK;
        } else if (c != 'U') /* swaps greedy and not: all the same for a full match */
            return bad(p, "a kind of group that is not supported");
    }
}

static sn_status parse_group(parser *p) { /* after ( */
    bool fold = p->fold, multi_line = p->multi_line, dot_all = p->dot_all, scoped = true;
    if (take(p, "?P<") ||
        (p->text.n - p->at > 2 && memcmp(p->text.p + p->at, "?<", 2) == 0 &&
         p->text.p[p->at + 2] != '=' && p->text.p[p->at + 2] != '!' && take(p, "?<"))) {
        while (more(p) && peek(p) != '>') p->at++;
        if (!take(p, ">")) return bad(p, "a group name that does not end");
    } else if (take(p, "?")) {
        SN_TRY(parse_flags(p, &scoped));
        if (!scoped) return SN_OK; /* flags to the end of the enclosing group */
    }
    if (++p->depth > DEPTH_LIMIT)
        return sni_fail(p->err, SN_LIMIT, "the pattern nests deeper than %d groups", DEPTH_LIMIT);
    SN_TRY(parse_alternatives(p));
    p->depth--;
    if (!take(p, ")")) return bad(p, "a ( without its )");
    p->fold = fold;
    p->multi_line = multi_line;
    p->dot_all = dot_all;
    return SN_OK;
}

/* ---- Atoms ---- */

/* One literal between \Q and \E; the last one takes the \E too, so that a repetition after it is
 * that of the literal. */
static sn_status parse_quoted(parser *p) {
    int32_t c = 0;
    SN_TRY(take_code_point(p, &c));
    if (take(p, "\\E")) p->quoted = false;
    return emit_char(p, c);
}

static sn_status parse_backslash(parser *p) {
    if (take(p, "A")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_TEXT_START, 0);
    if (take(p, "z")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_TEXT_END, 0);
    if (take(p, "b")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_WORD_EDGE, 0);
    if (take(p, "B")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_NO_WORD_EDGE, 0);
    if (take(p, "Q")) {
        p->quoted = more(p) && !take(p, "\\E");
        return SN_OK;
    }
    bool found = false;
    int32_t first = p->out->n_ranges, c = 0;
    if (more(p)) SN_TRY(add_perl_class(p, peek(p), &found));
    if (found) {
        p->at++;
        return emit_set(p, first, false, false);
    }
    SN_TRY(take_escape(p, &c));
    return emit_char(p, c);
}

static sn_status parse_atom(parser *p) {
    if (++p->work > WORK_LIMIT)
        return sni_fail(p->err, SN_LIMIT, "the pattern is too large when written out");
    if (p->quoted) return parse_quoted(p);
    if (take(p, "(")) return parse_group(p);
    if (take(p, "[")) return parse_class(p);
    if (take(p, "\\")) return parse_backslash(p);
    if (take(p, "^"))
        return emit(p, SNI_REGEX_ASSERT,
                    p->multi_line ? SNI_REGEX_LINE_START : SNI_REGEX_TEXT_START, 0);
    if (take(p, "$"))
        return emit(p, SNI_REGEX_ASSERT, p->multi_line ? SNI_REGEX_LINE_END : SNI_REGEX_TEXT_END,
                    0);
    if (take(p, ".")) {
        int32_t first = p->out->n_ranges;
        if (!p->dot_all) SN_TRY(add_range(p, '\n', '\n'));
        return emit_set(p, first, true, false);
    }
    if (peek(p) == '*' || peek(p) == '+' || peek(p) == '?')
        return bad(p, "a repetition of nothing");
    int32_t c = 0;
    SN_TRY(take_code_point(p, &c));
    return emit_char(p, c);
}

/* ---- Repetition ---- */

static bool take_number(parser *p, int *out) {
    int v = 0;
    size_t start = p->at;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++)
        if (v <= REPEAT_LIMIT) v = v * 10 + (peek(p) - '0');
    *out = v;
    return p->at > start;
}

/* {n}, {n,} or {n,m}; anything else in braces is literal, as in RE2. */
static bool take_braces(parser *p, int *least, int *most) {
    size_t start = p->at;
    if (take(p, "{") && take_number(p, least)) {
        *most = *least;
        if (take(p, ",") && !take_number(p, most)) *most = -1;
        if (take(p, "}")) return true;
    }
    p->at = start;
    return false;
}

/* *least < 0: there is no quantifier. *most < 0: no upper bound. */
static sn_status take_repeat(parser *p, int *least, int *most) {
    *least = -1;
    *most = -1;
    if (p->quoted) return SN_OK;
    if (take(p, "*"))
        *least = 0;
    else if (take(p, "+"))
        *least = 1;
    else if (take(p, "?"))
        *least = 0, *most = 1;
    else if (!take_braces(p, least, most))
        *least = -1;
    if (*least < 0) return SN_OK;
    take(p, "?"); /* not greedy: all the same for a full match */
    if (*least > REPEAT_LIMIT || *most > REPEAT_LIMIT || (*most >= 0 && *most < *least))
        return bad(p, "a count that is not possible");
    return SN_OK;
}

/* The steps since `start` become optional, or repeat any number of times. */
static sn_status make_optional(parser *p, int32_t start, bool loop) {
    SN_TRY(insert_split(p, start));
    if (loop) SN_TRY(emit(p, SNI_REGEX_JUMP, start, 0));
    p->out->steps[start].y = p->out->n_steps;
    return SN_OK;
}

/* Writes the part at `from` again. */
static sn_status repeat_part(parser *p, const parser *from) {
    size_t end = p->at;
    p->at = from->at;
    p->fold = from->fold;
    p->multi_line = from->multi_line;
    p->dot_all = from->dot_all;
    p->quoted = from->quoted;
    SN_TRY(parse_atom(p));
    p->at = end;
    return SN_OK;
}

static sn_status parse_repeated(parser *p) {
    parser from = *p;
    int32_t start = p->out->n_steps;
    SN_TRY(parse_atom(p));
    int least, most;
    for (bool first = true;; first = false) {
        SN_TRY(take_repeat(p, &least, &most));
        if (least < 0) return SN_OK;
        bool counted = least > 1 || most > 1 || most == 0 || (least == 1 && most == 1);
        if (!first && counted) return bad(p, "a count after a repetition");
        if (!counted) {
            if (least == 1 && most < 0) { /* x+: back to the start, or on */
                SN_TRY(emit(p, SNI_REGEX_SPLIT, start, p->out->n_steps + 1));
            } else {
                SN_TRY(make_optional(p, start, most < 0));
            }
            continue;
        }
        if (most == 0) {
            p->out->n_steps = start;
            continue;
        }
        if (least == 0) SN_TRY(make_optional(p, start, false));
        for (int i = 1; i < (most < 0 ? least : most); i++) {
            int32_t copy = p->out->n_steps;
            SN_TRY(repeat_part(p, &from));
            if (i >= least) SN_TRY(make_optional(p, copy, false));
        }
        if (most < 0) { /* one more, any number of times */
            int32_t copy = p->out->n_steps;
            SN_TRY(repeat_part(p, &from));
            SN_TRY(make_optional(p, copy, true));
        }
    }
}

/* a|b|c up to a closing bracket or the end. */
static sn_status parse_alternatives(parser *p) {
    int32_t start = p->out->n_steps, jumps = -1; /* jumps to the end are chained by their y */
    for (;;) {
        while (more(p) && (p->quoted || (peek(p) != '|' && peek(p) != ')')))
            SN_TRY(parse_repeated(p));
        if (!take(p, "|")) break;
        if (++p->work > WORK_LIMIT)
            return sni_fail(p->err, SN_LIMIT, "the pattern is too large when written out");
        SN_TRY(insert_split(p, start));
        SN_TRY(emit(p, SNI_REGEX_JUMP, 0, jumps));
        jumps = p->out->n_steps - 1;
        p->out->steps[start].y = p->out->n_steps;
        start = p->out->n_steps;
    }
    while (jumps >= 0) {
        int32_t before = p->out->steps[jumps].y;
        p->out->steps[jumps] = (sni_regex_step){SNI_REGEX_JUMP, p->out->n_steps, 0};
        jumps = before;
    }
    return SN_OK;
}

sn_status sni_regex_new(sni_str pattern, sni_regex **out, sn_error *err) {
    sni_regex *r = calloc(1, sizeof *r);
    if (!r) return sni_fail_memory(err);
    parser p = {.text = pattern, .out = r, .err = err};
    sn_status status = parse_alternatives(&p);
    if (status == SN_OK && more(&p)) status = bad(&p, "a ) without its (");
    if (status == SN_OK) status = emit(&p, SNI_REGEX_MATCH, 0, 0);
    if (status == SN_OK) {
        r->work = malloc(((size_t)r->n_steps * 6 + 1) * sizeof *r->work);
        if (!r->work) status = sni_fail_memory(err);
    }
    if (status == SN_OK)
        *out = r;
    else
        sni_regex_free(r);
    return status;
}

void sni_regex_free(sni_regex *r) {
    if (!r) return;
    free(r->steps);
    free(r->sets);
    free(r->ranges);
    free(r->work);
    free(r);
}
