/* regex.h - regular expressions in RE2's syntax, matched in time linear in the text.
 *
 * Taken: literals, . [] with ranges and classes, ^ $ \A \z \b \B, groups of all kinds, flags i m s,
 * * + ? {n,m} greedy or not, |, \d \s \w and their complements, POSIX classes, \Q..\E, octal and
 * hexadecimal escapes. Not taken: Unicode properties (\p), and what RE2 does not take either:
 * back references and looking around. */
#ifndef SNI_OPS_TEXT_REGEX_H
#define SNI_OPS_TEXT_REGEX_H

#include "base/status.h"
#include "base/str.h"

typedef struct sni_regex sni_regex;

/* Compiles a pattern. SN_INVALID_MODEL names the position of what is wrong with it; SN_LIMIT: it
 * is too large. */
sn_status sni_regex_new(sni_str pattern, sni_regex **out, sn_error *err);
void sni_regex_free(sni_regex *regex);

/* True if the whole text matches. Not thread-safe: the regex holds working memory. */
bool sni_regex_full_match(sni_regex *regex, sni_str text);

/* True if a match begins at byte `from` of the text; *end: where the longest one ends. Takes places
 * x code points at the most. Not thread-safe either. */
bool sni_regex_longest_match(sni_regex *regex, sni_str text, size_t from, size_t *end);

#endif
