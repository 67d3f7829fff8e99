/* test_fold.c - folding constants is bounded over a whole session, not only node by node. */
#include "unit.h"

#include "sinter.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECES = 60 }; /* of 60 MB each */

static char *bomb_text(void) {
    char *text = malloc(PIECES * 128 + 512), *at = text;
    assert_non_null(text);
    at +=
        sprintf(at, "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1] X) => (float[15000000] "
                    "Y) <int64[1] S = {15000000}> {");
    for (int i = 0; i < PIECES; i++) {
        at += sprintf(at, " C%d = ConstantOfShape <value = float[1] {%d}> (S) T%d = Add(C%d, ", i,
                      i, i, i);
        at += i ? sprintf(at, "T%d)", i - 1) : sprintf(at, "X)");
    }
    sprintf(at, " Y = Identity(T%d) }", PIECES - 1);
    return text;
}

static void many_large_constants_are_not_all_folded(void **state) {
    (void)state;
    char *text = bomb_text();
    sn_model *model;
    sn_session *session;
    sn_error err;
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_session_create(model, NULL, &session, &err) != SN_OK) fail_msg("%s", err.message);
    const char *name;
    size_t count = 0, folded = SIZE_MAX;
    for (size_t i = 0; sn_session_rule(session, i, &name, &count); i++)
        if (strcmp(name, "fold-constants") == 0) folded = count;
    assert_in_range(folded, 1, 10);
    sn_session_destroy(session);
    sn_model_destroy(model);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_large_constants_are_not_all_folded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
