/* regex_impl.h - what the compiler (regex.c) and the matcher (regex_match.c) share. */
#ifndef SNI_OPS_TEXT_REGEX_IMPL_H
#define SNI_OPS_TEXT_REGEX_IMPL_H

#include "ops/text/regex.h"

#include <stdint.h>

#define SNI_REGEX_LAST 0x10FFFF /* code point */

typedef enum sni_regex_code {
    SNI_REGEX_SET,    /* one code point of set `x` */
    SNI_REGEX_SPLIT,  /* go on at `x` and at `y` */
    SNI_REGEX_JUMP,   /* go on at `x` */
    SNI_REGEX_ASSERT, /* if condition `x` holds */
    SNI_REGEX_MATCH
} sni_regex_code;

typedef enum sni_regex_condition {
    SNI_REGEX_TEXT_START,
    SNI_REGEX_TEXT_END,
    SNI_REGEX_LINE_START,
    SNI_REGEX_LINE_END,
    SNI_REGEX_WORD_EDGE,
    SNI_REGEX_NO_WORD_EDGE
} sni_regex_condition;

typedef struct sni_regex_step {
    sni_regex_code code;
    int32_t x, y;
} sni_regex_step;

typedef struct sni_regex_range {
    int32_t low, high;
} sni_regex_range;

typedef struct sni_regex_set {
    int32_t first, count; /* ranges */
    bool negated, fold;   /* fold: a letter's other case counts too */
} sni_regex_set;

struct sni_regex {
    sni_regex_step *steps;
    sni_regex_set *sets;
    sni_regex_range *ranges;
    int32_t n_steps, n_sets, n_ranges;
    int32_t steps_room, sets_room, ranges_room;
    int32_t *work; /* 6 * n_steps + 1 */
};

#endif
