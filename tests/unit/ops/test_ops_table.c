/* test_ops_table.c - the table of operators is in order, and every entry is found and whole. */
#include "unit.h"

#include "ops/core/op.h"

#include <stdlib.h>

static const char *domain_of(const sni_op *op) {
    return op->domain ? op->domain : "";
}

static void in_order(void **state) {
    (void)state;
    assert_true(sni_op_count() > 100);
    for (size_t i = 1; i < sni_op_count(); i++) {
        const sni_op *a = sni_op_at(i - 1), *b = sni_op_at(i);
        int order = strcmp(domain_of(a), domain_of(b));
        if (order == 0) order = strcmp(a->name, b->name);
        if (order >= 0) fail_msg("ops.def: %s stands before %s", a->name, b->name);
    }
}

static void found_by_name(void **state) {
    (void)state;
    for (size_t i = 0; i < sni_op_count(); i++) {
        const sni_op *op = sni_op_at(i);
        assert_ptr_equal(sni_op_find(sni_str_of(domain_of(op)), sni_str_of(op->name)), op);
    }
    assert_null(sni_op_find(SNI_STR(""), SNI_STR("NoSuchOperator")));
    assert_null(sni_op_find(SNI_STR("no.domain"), SNI_STR("Relu")));
}

static void whole(void **state) {
    (void)state;
    for (size_t i = 0; i < sni_op_count(); i++) {
        const sni_op *op = sni_op_at(i);
        if (!op->versions || !op->versions[0] || !op->outputs ||
            !(op->ref || op->body || op->upgrade))
            fail_msg("%s lacks versions, outputs or a kernel", op->name);
        for (const int16_t *v = op->versions; v[0] && v[1]; v++)
            if (v[0] >= v[1]) fail_msg("%s: versions do not rise", op->name);
        if (op->params && !op->params_size) fail_msg("%s: params without a size", op->name);
    }
}

static bool has_type(const sni_op *op, const char *name) {
    for (const sni_type_var *v = op->types; v && v->name; v++)
        if (strcmp(v->name, name) == 0) return true;
    return sni_dtype_find(sni_str_of(name)) != SN_UNDEFINED;
}

static void formals_have_types(void **state) {
    (void)state;
    for (size_t i = 0; i < sni_op_count(); i++) {
        const sni_op *op = sni_op_at(i);
        for (const sni_formal *f = op->inputs; f && f->name; f++)
            if (!has_type(op, f->type))
                fail_msg("%s: input %s is '%s'", op->name, f->name, f->type);
        for (const sni_formal *f = op->outputs; f && f->name; f++)
            if (!has_type(op, f->type))
                fail_msg("%s: output %s is '%s'", op->name, f->name, f->type);
    }
}

static void parameters_fit_their_struct(void **state) {
    (void)state;
    for (size_t i = 0; i < sni_op_count(); i++) {
        const sni_op *op = sni_op_at(i);
        for (const sni_param *p = op->params; p && p->name; p++) {
            if (p->offset >= op->params_size || p->present > op->params_size)
                fail_msg("%s: '%s' lies outside its %zu bytes", op->name, p->name, op->params_size);
        }
    }
}

/* The text of a file below src/ops, for free(). */
static char *read_source(const char *file) {
    char path[1024];
    snprintf(path, sizeof path, "%s/src/ops/%s", SINTER_SOURCE_DIR, file);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    rewind(f);
    char *text = calloc((size_t)size + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, f), (size_t)size);
    fclose(f);
    return text;
}

/* True if the text defines the operator: by itself, by NAME for a template, or by a family's macro.
 */
static bool defines(const char *text, const char *symbol) {
    const char *name = symbol + strlen("sni_op_");
    char by_itself[128], by_name[128], by_macro[128];
    snprintf(by_itself, sizeof by_itself, "const sni_op %s = {", symbol);
    snprintf(by_name, sizeof by_name, "#define NAME %s\n", name);
    snprintf(by_macro, sizeof by_macro, "_OP(%s,", name);
    return strstr(text, by_itself) || strstr(text, by_name) || strstr(text, by_macro);
}

static void stand_where_the_table_says(void **state) {
    static const struct {
        const char *symbol, *file;
    } entries[] = {
#define SNI_OP(symbol, file) {#symbol, file},
#include "ops/core/ops.def"
#undef SNI_OP
    };
    (void)state;
    assert_int_equal(sizeof entries / sizeof *entries, sni_op_count());
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char *text = read_source(entries[i].file);
        if (!text) fail_msg("%s: there is no src/ops/%s", entries[i].symbol, entries[i].file);
        if (!defines(text, entries[i].symbol))
            fail_msg("%s is not defined in src/ops/%s", entries[i].symbol, entries[i].file);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(found_by_name),
        cmocka_unit_test(whole),
        cmocka_unit_test(formals_have_types),
        cmocka_unit_test(parameters_fit_their_struct),
        cmocka_unit_test(stand_where_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
