/* test_model_body.c - an operator that is given by a function body in text is replaced by it. */
#include "unit.h"

#include "model/model.h"
#include "ops/core/op.h"

typedef struct bodied_params {
    float alpha;
} bodied_params;

static const sni_op bodied = {
    .name = "Bodied",
    .versions = SNI_VERSIONS(12),
    .inputs = SNI_FORMALS({"X", "T"}, {"B", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}, {"Z", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"alpha", SNI_ATTR_FLOAT, offsetof(bodied_params, alpha), .number = 1.5}),
    .params_size = sizeof(bodied_params),
    .body = "Bodied <alpha> (X, B) => (Y, X) {"
            "  a = Constant <value_float : float = @alpha> ()"
            "  t = Relu (X)"
            "  Y = Mul (t, a)"
            "}",
};

/* The linker sends the library's look-ups here (--wrap), so that the table has one more. */
const sni_op *__real_sni_op_find(sni_str domain, sni_str name);
const sni_op *__wrap_sni_op_find(sni_str domain, sni_str name);

const sni_op *__wrap_sni_op_find(sni_str domain, sni_str name) {
    return sni_str_is(name, bodied.name) ? &bodied : __real_sni_op_find(domain, name);
}

static sni_model *import_text(const char *text) {
    sni_model *model = NULL;
    sn_error err = {0};
    if (sni_model_import_text(text, strlen(text), &model, &err) != SN_OK)
        fail_msg("%s", err.message);
    return model;
}

static sni_value *named(const sni_graph *g, const char *name) {
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i] && sni_str_is(g->values[i]->name, name)) return g->values[i];
    fail_msg("there is no value '%s'", name);
    return NULL;
}

static float scalar(const sni_value *v) {
    const sni_tensor *t;
    assert_non_null(v->constant);
    assert_int_equal(sni_const_load(v->constant, &t, NULL), SN_OK);
    return *(const float *)t->data;
}

static void test_body(void **state) {
    (void)state;
    sni_model *model = import_text("<ir_version: 8, opset_import: [\"\" : 18]>"
                                   "g (float[2] x) => (float[2] y, float[2] z) {"
                                   "  a = Bodied <alpha = 3.0> (x)"
                                   "  y, z = Bodied (a)"
                                   "}");
    const sni_graph *g = model->graph;
    static const char *const types[] = {"Relu", "Mul", "Relu", "Mul", "Identity"};
    size_t i = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n), i++) {
        assert_true(i < sizeof types / sizeof *types && sni_str_is(n->type, types[i]));
        assert_non_null(n->op);
    }
    assert_int_equal(i, 5);
    assert_true(scalar(named(g, "a/a")) == 3);
    assert_true(scalar(named(g, "y/a")) == 1.5f);
    assert_int_equal(g->outputs[0], named(g, "y")->id);
    assert_int_equal(g->outputs[1], named(g, "z")->id);
    assert_true(named(g, "y")->type.has_shape);
    sni_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_body)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
