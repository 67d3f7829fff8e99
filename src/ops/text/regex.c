/* regex.c - compiles regular expressions: a recursive-descent parser that writes the matcher's
 * program while it reads. A repeated part is read again for each copy. */
#include "ops/text/regex_parse.h"

#include <stdlib.h>

enum {
    DEPTH_LIMIT = 200,    /* of nested groups */
    STEP_LIMIT = 1 << 15, /* of the program */
    WORK_LIMIT = 1 << 20, /* parts read, copies included */
    REPEAT_LIMIT = 1000   /* as RE2 */
};

static sn_status parse_alternatives(sni_regex_parser *p);

/* ---- Program ---- */

/* Room for one more element of `size` bytes. */
static sn_status grow(sni_regex_parser *p, void **array, int32_t count, int32_t *room,
                      size_t size) {
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

static sn_status emit(sni_regex_parser *p, sni_regex_code code, int32_t x, int32_t y) {
    sni_regex *r = p->out;
    void *steps = r->steps;
    sn_status status = grow(p, &steps, r->n_steps, &r->steps_room, sizeof *r->steps);
    r->steps = steps;
    if (status == SN_OK) r->steps[r->n_steps++] = (sni_regex_step){code, x, y};
    return status;
}

/* Inserts a step before step `at`, and moves the targets of jumps from there on. */
static sn_status insert_split(sni_regex_parser *p, int32_t at) {
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

sn_status sni_regex_add_range(sni_regex_parser *p, int32_t low, int32_t high) {
    sni_regex *r = p->out;
    void *ranges = r->ranges;
    sn_status status = grow(p, &ranges, r->n_ranges, &r->ranges_room, sizeof *r->ranges);
    r->ranges = ranges;
    if (status == SN_OK) r->ranges[r->n_ranges++] = (sni_regex_range){low, high};
    return status;
}

/* A step for a set whose ranges are those added since `first`. */
static sn_status emit_set(sni_regex_parser *p, int32_t first, bool negated, bool fold) {
    sni_regex *r = p->out;
    void *sets = r->sets;
    sn_status status = grow(p, &sets, r->n_sets, &r->sets_room, sizeof *r->sets);
    r->sets = sets;
    SN_TRY(status);
    r->sets[r->n_sets++] = (sni_regex_set){first, r->n_ranges - first, negated, fold};
    return emit(p, SNI_REGEX_SET, r->n_sets - 1, 0);
}

static sn_status emit_char(sni_regex_parser *p, int32_t c) {
    int32_t first = p->out->n_ranges;
    SN_TRY(sni_regex_add_range(p, c, c));
    return emit_set(p, first, false, p->fold);
}

static sn_status parse_class(sni_regex_parser *p) { /* after [ */
    bool negated;
    int32_t first = p->out->n_ranges;
    SN_TRY(sni_regex_take_class(p, &negated));
    return emit_set(p, first, negated, p->fold);
}

/* ---- Groups ---- */

static sn_status parse_flags(sni_regex_parser *p, bool *scoped) { /* after (? */
    bool value = true;
    for (;;) {
        char c = sni_regex_peek(p);
        if (!sni_regex_more(p)) return sni_regex_bad(p, "a group that does not end");
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
            return sni_regex_bad(p, "a kind of group that is not supported");
    }
}

static sn_status parse_group(sni_regex_parser *p) { /* after ( */
    bool fold = p->fold, multi_line = p->multi_line, dot_all = p->dot_all, scoped = true;
    if (sni_regex_take(p, "?P<") ||
        (p->text.n - p->at > 2 && memcmp(p->text.p + p->at, "?<", 2) == 0 &&
         p->text.p[p->at + 2] != '=' && p->text.p[p->at + 2] != '!' && sni_regex_take(p, "?<"))) {
        while (sni_regex_more(p) && sni_regex_peek(p) != '>') p->at++;
        if (!sni_regex_take(p, ">")) return sni_regex_bad(p, "a group name that does not end");
    } else if (sni_regex_take(p, "?")) {
        SN_TRY(parse_flags(p, &scoped));
        if (!scoped) return SN_OK; /* flags to the end of the enclosing group */
    }
    if (++p->depth > DEPTH_LIMIT)
        return sni_fail(p->err, SN_LIMIT, "the pattern nests deeper than %d groups", DEPTH_LIMIT);
    SN_TRY(parse_alternatives(p));
    p->depth--;
    if (!sni_regex_take(p, ")")) return sni_regex_bad(p, "a ( without its )");
    p->fold = fold;
    p->multi_line = multi_line;
    p->dot_all = dot_all;
    return SN_OK;
}

/* ---- Atoms ---- */

/* One literal between \Q and \E; the last one takes the \E too, so that a repetition after it is
 * that of the literal. */
static sn_status parse_quoted(sni_regex_parser *p) {
    int32_t c = 0;
    SN_TRY(sni_regex_take_code_point(p, &c));
    if (sni_regex_take(p, "\\E")) p->quoted = false;
    return emit_char(p, c);
}

static sn_status parse_backslash(sni_regex_parser *p) {
    if (sni_regex_take(p, "A")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_TEXT_START, 0);
    if (sni_regex_take(p, "z")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_TEXT_END, 0);
    if (sni_regex_take(p, "b")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_WORD_EDGE, 0);
    if (sni_regex_take(p, "B")) return emit(p, SNI_REGEX_ASSERT, SNI_REGEX_NO_WORD_EDGE, 0);
    if (sni_regex_take(p, "Q")) {
        p->quoted = sni_regex_more(p) && !sni_regex_take(p, "\\E");
        return SN_OK;
    }
    bool found = false;
    int32_t first = p->out->n_ranges, c = 0;
    if (sni_regex_more(p)) SN_TRY(sni_regex_add_perl_class(p, sni_regex_peek(p), &found));
    if (found) {
        p->at++;
        return emit_set(p, first, false, false);
    }
    SN_TRY(sni_regex_take_escape(p, &c));
    return emit_char(p, c);
}

static sn_status parse_atom(sni_regex_parser *p) {
    if (++p->work > WORK_LIMIT)
        return sni_fail(p->err, SN_LIMIT, "the pattern is too large when written out");
    if (p->quoted) return parse_quoted(p);
    if (sni_regex_take(p, "(")) return parse_group(p);
    if (sni_regex_take(p, "[")) return parse_class(p);
    if (sni_regex_take(p, "\\")) return parse_backslash(p);
    if (sni_regex_take(p, "^"))
        return emit(p, SNI_REGEX_ASSERT,
                    p->multi_line ? SNI_REGEX_LINE_START : SNI_REGEX_TEXT_START, 0);
    if (sni_regex_take(p, "$"))
        return emit(p, SNI_REGEX_ASSERT, p->multi_line ? SNI_REGEX_LINE_END : SNI_REGEX_TEXT_END,
                    0);
    if (sni_regex_take(p, ".")) {
        int32_t first = p->out->n_ranges;
        if (!p->dot_all) SN_TRY(sni_regex_add_range(p, '\n', '\n'));
        return emit_set(p, first, true, false);
    }
    if (sni_regex_peek(p) == '*' || sni_regex_peek(p) == '+' || sni_regex_peek(p) == '?')
        return sni_regex_bad(p, "a repetition of nothing");
    int32_t c = 0;
    SN_TRY(sni_regex_take_code_point(p, &c));
    return emit_char(p, c);
}

/* ---- Repetition ---- */

static bool take_number(sni_regex_parser *p, int *out) {
    int v = 0;
    size_t start = p->at;
    for (; sni_regex_peek(p) >= '0' && sni_regex_peek(p) <= '9'; p->at++)
        if (v <= REPEAT_LIMIT) v = v * 10 + (sni_regex_peek(p) - '0');
    *out = v;
    return p->at > start;
}

/* {n}, {n,} or {n,m}; anything else in braces is literal, as in RE2. */
static bool take_braces(sni_regex_parser *p, int *least, int *most) {
    size_t start = p->at;
    if (sni_regex_take(p, "{") && take_number(p, least)) {
        *most = *least;
        if (sni_regex_take(p, ",") && !take_number(p, most)) *most = -1;
        if (sni_regex_take(p, "}")) return true;
    }
    p->at = start;
    return false;
}

/* *least < 0: there is no quantifier. *most < 0: no upper bound. */
static sn_status take_repeat(sni_regex_parser *p, int *least, int *most) {
    *least = -1;
    *most = -1;
    if (p->quoted) return SN_OK;
    if (sni_regex_take(p, "*"))
        *least = 0;
    else if (sni_regex_take(p, "+"))
        *least = 1;
    else if (sni_regex_take(p, "?"))
        *least = 0, *most = 1;
    else if (!take_braces(p, least, most))
        *least = -1;
    if (*least < 0) return SN_OK;
    sni_regex_take(p, "?"); /* not greedy: all the same for a full match */
    if (*least > REPEAT_LIMIT || *most > REPEAT_LIMIT || (*most >= 0 && *most < *least))
        return sni_regex_bad(p, "a count that is not possible");
    return SN_OK;
}

/* The steps since `start` become optional, or repeat any number of times. */
static sn_status make_optional(sni_regex_parser *p, int32_t start, bool loop) {
    SN_TRY(insert_split(p, start));
    if (loop) SN_TRY(emit(p, SNI_REGEX_JUMP, start, 0));
    p->out->steps[start].y = p->out->n_steps;
    return SN_OK;
}

/* Writes the part at `from` again. */
static sn_status repeat_part(sni_regex_parser *p, const sni_regex_parser *from) {
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

static sn_status parse_repeated(sni_regex_parser *p) {
    sni_regex_parser from = *p;
    int32_t start = p->out->n_steps;
    SN_TRY(parse_atom(p));
    int least, most;
    for (bool first = true;; first = false) {
        SN_TRY(take_repeat(p, &least, &most));
        if (least < 0) return SN_OK;
        bool counted = least > 1 || most > 1 || most == 0 || (least == 1 && most == 1);
        if (!first && counted) return sni_regex_bad(p, "a count after a repetition");
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
static sn_status parse_alternatives(sni_regex_parser *p) {
    int32_t start = p->out->n_steps, jumps = -1; /* jumps to the end are chained by their y */
    for (;;) {
        while (sni_regex_more(p) &&
               (p->quoted || (sni_regex_peek(p) != '|' && sni_regex_peek(p) != ')')))
            SN_TRY(parse_repeated(p));
        if (!sni_regex_take(p, "|")) break;
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
    sni_regex_parser p = {.text = pattern, .out = r, .err = err};
    sn_status status = parse_alternatives(&p);
    if (status == SN_OK && sni_regex_more(&p)) status = sni_regex_bad(&p, "a ) without its (");
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
