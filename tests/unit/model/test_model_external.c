/* test_model_external.c - external data leads nowhere but to plain files below the model's folder.
 */
#include "model_build.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *at(const char *name) {
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_file(const char *name) {
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite("0123456789abcdef", 1, 16, f), 16);
    fclose(f);
}

static message *external_tensor(const char *key, const char *value, const char *location) {
    int64_t two = 2;
    message *t = b_int(b_tensor("w", SN_FLOAT32, &two, 1), ONNX_TENSOR_LOCATION, 1);
    if (location) b_message(t, ONNX_TENSOR_EXTERNAL, b_entry("location", location));
    if (key) b_message(t, ONNX_TENSOR_EXTERNAL, b_entry(key, value));
    return t;
}

/* The same tensor as an initialiser, in an attribute, as sparse values, in a subgraph, and in a
 * function: every way leads through the same checks. */
static message *external_in(int where, message *t) {
    int64_t indices[2] = {0, 1}, two = 2;
    if (where == 0) return with_tensor(t);
    if (where == 1) return with_attr(b_attr_message("t", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, t));
    if (where == 2) {
        message *s = b_message(b_new(), ONNX_SPARSE_VALUES, t);
        b_message(s, ONNX_SPARSE_INDICES,
                  b_ints(b_tensor("", SN_INT64, &two, 1), ONNX_TENSOR_INT64_DATA, indices, 2));
        b_ints(s, ONNX_SPARSE_DIMS, &two, 1);
        return b_model(b_message(b_graph("", "w"), ONNX_GRAPH_SPARSE_INITIALIZER, s));
    }
    if (where == 3)
        return with_attr(
            b_attr_graph("body", b_message(b_graph("", "w"), ONNX_GRAPH_INITIALIZER, t)));
    message *c = b_message(b_node("Constant", "", "r"), ONNX_NODE_ATTRIBUTE,
                           b_attr_message("value", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, t));
    return calling("f", b_message(b_function("f", "a", "r"), ONNX_FUNCTION_NODE, c));
}

static const struct {
    const char *name;
    const char *location, *key, *value;
    bool good;
} files[] = {
    {"plain", "w.bin", NULL, NULL, true},
    {"offset at the end", "w.bin", "offset", "8", true},
    {"in a folder", "sub/w.bin", NULL, NULL, true},
    {"another runtime's notes", "w.bin", "prepacked_0", "x", true},
    {"missing", "none.bin", NULL, NULL, false},
    {"no location", NULL, NULL, NULL, false},
    {"empty location", "", NULL, NULL, false},
    {"two locations", "w.bin", "location", "w.bin", false},
    {"absolute", "/etc/hostname", NULL, NULL, false},
    {"above", "../w.bin", NULL, NULL, false},
    {"above by a detour", "sub/../../w.bin", NULL, NULL, false},
    {"symbolic link", "link.bin", NULL, NULL, false},
    {"linked folder", "linked/w.bin", NULL, NULL, false},
    {"hard link", "hard.bin", NULL, NULL, false},
    {"pipe", "pipe", NULL, NULL, false},
    {"folder", "sub", NULL, NULL, false},
    {"offset past the end", "w.bin", "offset", "17", false},
    {"reaches past the end", "w.bin", "offset", "9", false},
    {"negative offset", "w.bin", "offset", "-8", false},
    {"offset that wraps", "w.bin", "offset", "18446744073709551615", false},
    {"offset beyond 64 bits", "w.bin", "offset", "99999999999999999999999", false},
    {"hexadecimal offset", "w.bin", "offset", "0x8", false},
    {"offset with a space", "w.bin", "offset", " 8", false},
    {"empty offset", "w.bin", "offset", "", false},
    {"another length", "w.bin", "length", "4", false},
    {"huge length", "w.bin", "length", "9223372036854775807", false},
    {"unknown key", "w.bin", "mode", "rw", false},
};

static int make_files(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sinter-hostile-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(mkdir(at("sub"), 0700), 0);
    make_file("w.bin");
    make_file("sub/w.bin");
    make_file("other.bin");
    char target[160];
    snprintf(target, sizeof target, "%s", at("other.bin"));
    assert_int_equal(link(target, at("hard.bin")), 0);
    assert_int_equal(symlink("w.bin", at("link.bin")), 0);
    assert_int_equal(symlink("sub", at("linked")), 0);
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    static const char *const names[] = {"sub/w.bin", "w.bin",  "other.bin", "hard.bin",
                                        "link.bin",  "linked", "pipe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(at(names[i]));
    rmdir(at("sub"));
    rmdir(folder);
    return 0;
}

static void test_external(void **state) {
    (void)state;
    sni_import_options options = {.base_path = folder};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        for (int where = 0; where < 5; where++) {
            sn_error err = {0};
            sni_model *model = NULL;
            message *t = external_tensor(files[i].key, files[i].value, files[i].location);
            sn_status status = import_message(external_in(where, t), &options, &model, &err);
            if ((status == SN_OK) != files[i].good)
                fail_msg("%s, place %d: %s '%s'", files[i].name, where, sn_status_name(status),
                         err.message);
            sni_model_free(model);
        }
    }
    /* Without a folder there is no external data at all. */
    sn_error err = {0};
    sni_model *model = NULL;
    assert_int_equal(
        import_message(with_tensor(external_tensor(NULL, NULL, "w.bin")), NULL, &model, &err),
        SN_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_external),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
