/* regex_match.c - matches by simulating the program: a set of places moves over the text, every
 * place at most once per code point. Time is at most places x code points, whatever the pattern. */
#include "ops/text/regex_impl.h"

#include "ops/text/unicode.h"

typedef struct places {
    int32_t *list, *position; /* a place is in if list[position[place]] is it */
    int32_t count;
} places;

static bool contains(const places *p, int32_t place) {
    int32_t at = p->position[place];
    return at >= 0 && at < p->count && p->list[at] == place;
}

static bool word(int32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* `before` and `after` are the code points around; -2 at the ends of the text. */
static bool holds(sni_regex_condition condition, int32_t before, int32_t after) {
    switch (condition) {
    case SNI_REGEX_TEXT_START:
        return before == -2;
    case SNI_REGEX_TEXT_END:
        return after == -2;
    case SNI_REGEX_LINE_START:
        return before == -2 || before == '\n';
    case SNI_REGEX_LINE_END:
        return after == -2 || after == '\n';
    case SNI_REGEX_WORD_EDGE:
        return word(before) != word(after);
    case SNI_REGEX_NO_WORD_EDGE:
        return word(before) == word(after);
    }
    return false;
}

/* Adds a place and all that can be reached from it without a code point. */
static void add(const sni_regex *r, places *p, int32_t *stack, int32_t start, int32_t before,
                int32_t after) {
    int32_t depth = 0;
    stack[depth++] = start;
    while (depth) {
        int32_t at = stack[--depth];
        if (contains(p, at)) continue;
        p->position[at] = p->count;
        p->list[p->count++] = at;
        const sni_regex_step *s = &r->steps[at];
        /* A place is pushed by at most two others, so the stack never holds more than twice the
         * number of places. */
        if (s->code == SNI_REGEX_SPLIT && !contains(p, s->y)) stack[depth++] = s->y;
        if ((s->code == SNI_REGEX_SPLIT || s->code == SNI_REGEX_JUMP) && !contains(p, s->x))
            stack[depth++] = s->x;
        if (s->code == SNI_REGEX_ASSERT && holds((sni_regex_condition)s->x, before, after) &&
            !contains(p, at + 1))
            stack[depth++] = at + 1;
    }
}

static bool in_ranges(const sni_regex *r, const sni_regex_set *s, int32_t c) {
    for (int32_t i = s->first; i < s->first + s->count; i++)
        if (c >= r->ranges[i].low && c <= r->ranges[i].high) return true;
    return false;
}

static bool accepts(const sni_regex *r, const sni_regex_set *s, int32_t c) {
    if (c < 0) return false;
    bool in = in_ranges(r, s, c);
    if (!in && s->fold) in = in_ranges(r, s, sni_lower(c)) || in_ranges(r, s, sni_upper(c));
    return in != s->negated;
}

/* The code point that ends at `at`; -2 at the start of the text. */
static int32_t code_point_before(sni_str text, size_t at) {
    size_t length = 0;
    for (size_t back = 1; back <= SNI_UTF8_MAX && back <= at; back++) {
        int32_t c = sni_utf8_decode(text, at - back, &length);
        if (length == back) return c;
    }
    return at ? -1 : -2;
}

bool sni_regex_longest_match(sni_regex *r, sni_str text, size_t from, size_t *end) {
    int32_t n = r->n_steps;
    places now = {r->work, r->work + n, 0}, next = {r->work + 2 * n, r->work + 3 * n, 0};
    int32_t *stack = r->work + 4 * n;
    for (int32_t i = 0; i < n; i++) now.position[i] = next.position[i] = -1;
    size_t length = 0, at = from;
    bool found = false;
    int32_t c = at < text.n ? sni_utf8_decode(text, at, &length) : -2;
    add(r, &now, stack, 0, code_point_before(text, from), c);
    for (;;) {
        if (contains(&now, n - 1)) { /* the last step is MATCH */
            found = true;
            *end = at;
        }
        if (at >= text.n || !now.count) return found;
        at += length;
        int32_t after = at < text.n ? sni_utf8_decode(text, at, &length) : -2;
        next.count = 0;
        for (int32_t i = 0; i < now.count; i++) {
            const sni_regex_step *s = &r->steps[now.list[i]];
            if (s->code == SNI_REGEX_SET && accepts(r, &r->sets[s->x], c))
                add(r, &next, stack, now.list[i] + 1, c, after);
        }
        places swap = now;
        now = next;
        next = swap;
        c = after;
    }
}

bool sni_regex_full_match(sni_regex *r, sni_str text) {
    size_t end = 0;
    return sni_regex_longest_match(r, text, 0, &end) && end == text.n;
}
