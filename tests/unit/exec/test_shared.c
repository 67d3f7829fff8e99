/* test_shared.c - operators that move elements, large enough for threads to share them: the same
 * bits with 1 and 2 threads, and those that scatter against one element at a time. */
#include "versus.h"

#include "ops/core/tensor_util.h"

static versus v;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&v.seed) % (uint32_t)n);
}

static sn_status as_written(sni_kernel *k) {
    return k->node->op->ref(k);
}

static const sni_impl written = {.name = "the reference", .run = as_written};

static const sn_dtype TYPES[] = {SN_UINT8, SN_FLOAT32, SN_INT64};
enum { N_TYPES = 3 };

static void start(const char *type) {
    versus_start(&v, "", type);
    v.use = &written;
}

static void ints(int n, const int64_t *list) {
    versus_tensor(&v, SN_INT64, 1, (int64_t[]){n}, list);
}

/* ---- Shapes and strides ---- */

static void joins_and_cuts(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 90001, 3}, {2, 70003, 1},  {3, 40000, 2},
                                        {700, 31, 9},  {1, 1, 300007}, {70001, 1, 2}};
    for (int t = 0; t < N_TYPES; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int axis = 0; axis < 3; axis++) {
                int64_t other[3] = {shapes[s][0], shapes[s][1], shapes[s][2]};
                start("Concat");
                versus_tensor(&v, TYPES[t], 3, shapes[s], NULL);
                other[axis] = 1 + other[axis] / 2;
                versus_tensor(&v, TYPES[t], 3, other, NULL);
                eval_attr(&v.e, sni_attr_of_int("axis", axis));
                versus_run(&v, 1, 0);
                if (shapes[s][axis] < 2) continue;
                start("Split");
                versus_tensor(&v, TYPES[t], 3, shapes[s], NULL);
                ints(2, (int64_t[]){1 + shapes[s][axis] / 3,
                                    shapes[s][axis] - 1 - shapes[s][axis] / 3});
                eval_attr(&v.e, sni_attr_of_int("axis", axis));
                versus_run(&v, 2, 0);
            }
}

static void slices_and_transposes(void **state) {
    (void)state;
    static const int64_t dims[] = {2, 3, 50021};
    static const int64_t bounds[][6] = {/* start, end, step of the last two axes */
                                        {0, 3, 1, 1, 50020, 1},   {0, 3, 1, 7, 50000, 2},
                                        {2, -9, -1, 0, 99999, 1}, {0, 3, 2, 50020, -60000, -1},
                                        {1, 2, 1, 3, 50021, 1},   {0, 3, 1, 50019, 2, -3}};
    for (int t = 0; t < N_TYPES; t++) {
        for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
            const int64_t *b = bounds[i];
            start("Slice");
            versus_tensor(&v, TYPES[t], 3, dims, NULL);
            ints(2, (int64_t[]){b[0], b[3]});
            ints(2, (int64_t[]){b[1], b[4]});
            ints(2, (int64_t[]){1, 2});
            ints(2, (int64_t[]){b[2], b[5]});
            versus_run(&v, 1, 0);
        }
        start("Transpose");
        versus_tensor(&v, TYPES[t], 4, (int64_t[]){3, 37, 5, 409}, NULL);
        eval_ints(&v.e, "perm", (int64_t[]){2, 0, 1, 3}, 4);
        versus_run(&v, 1, 0);
        start("Transpose");
        versus_tensor(&v, TYPES[t], 3, (int64_t[]){3, 401, 203}, NULL);
        eval_ints(&v.e, "perm", (int64_t[]){0, 2, 1}, 3);
        versus_run(&v, 1, 0);
        start("Expand");
        versus_tensor(&v, TYPES[t], 3, (int64_t[]){7, 1, 613}, NULL);
        ints(3, (int64_t[]){7, 97, 613});
        versus_run(&v, 1, 0);
        start("Expand");
        versus_tensor(&v, TYPES[t], 2, (int64_t[]){3, 1}, NULL);
        ints(2, (int64_t[]){3, 90001});
        versus_run(&v, 1, 0);
        start("DepthToSpace");
        versus_tensor(&v, TYPES[t], 4, (int64_t[]){1, 12, 101, 103}, NULL);
        eval_attr(&v.e, sni_attr_of_int("blocksize", 2));
        versus_run(&v, 1, 0);
    }
}

static void copies_and_fills(void **state) {
    (void)state;
    for (int t = 0; t < N_TYPES; t++)
        for (int64_t n = 131001; n < 131200; n += 66) {
            start("Identity");
            versus_tensor(&v, TYPES[t], 2, (int64_t[]){3, n}, NULL);
            versus_run(&v, 1, 0);
            start("Reshape");
            versus_tensor(&v, TYPES[t], 2, (int64_t[]){3, n}, NULL);
            ints(1, (int64_t[]){-1});
            versus_run(&v, 1, 0);
            start("Tile");
            versus_tensor(&v, TYPES[t], 2, (int64_t[]){2, n / 5}, NULL);
            ints(2, (int64_t[]){3, 2});
            versus_run(&v, 1, 0);
            start("Pad");
            versus_tensor(&v, TYPES[t], 2, (int64_t[]){2, n}, NULL);
            ints(4, (int64_t[]){1, 33, 0, -5});
            versus_run(&v, 1, 0);
            start("ConstantOfShape");
            ints(2, (int64_t[]){2, n});
            versus_run(&v, 1, 0);
        }
    start("OneHot");
    versus_tensor(&v, SN_INT64, 1, (int64_t[]){997}, NULL);
    versus_tensor(&v, SN_INT64, 0, NULL, &(int64_t){101});
    versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){2}, (float[]){-1, 7});
    versus_run(&v, 1, 0);
}

static void gathers(void **state) {
    (void)state;
    static int64_t index[40000];
    for (int64_t i = 0; i < 40000; i++) index[i] = draw(2 * 251) - 251;
    for (int t = 0; t < N_TYPES; t++) {
        for (int own = 0; own < 2; own++) { /* the implementation of GatherND, and the reference */
            for (int64_t row = 1; row < 300; row += row < 3 ? 1 : 250) {
                start("GatherND");
                if (own) v.use = NULL;
                versus_tensor(&v, TYPES[t], 2, (int64_t[]){251, row}, NULL);
                versus_tensor(&v, SN_INT64, 2, (int64_t[]){row < 3 ? 39999 : 1501, 1}, index);
                versus_run(&v, 1, 0);
            }
        }
        start("Gather");
        versus_tensor(&v, TYPES[t], 3, (int64_t[]){3, 251, 77}, NULL);
        versus_tensor(&v, SN_INT64, 1, (int64_t[]){1501}, index);
        eval_attr(&v.e, sni_attr_of_int("axis", 1));
        versus_run(&v, 1, 0);
        for (int axis = 0; axis < 2; axis++) {
            start("GatherElements");
            versus_tensor(&v, TYPES[t], 2, (int64_t[]){251, 251}, NULL);
            versus_tensor(&v, SN_INT64, 2, (int64_t[]){axis ? 151 : 200, axis ? 200 : 151}, index);
            eval_attr(&v.e, sni_attr_of_int("axis", axis));
            versus_run(&v, 1, 0);
        }
    }
}

/* ---- One element at a time ---- */

enum { MOST = 1 << 18 };
static int64_t base[MOST], fresh[MOST], want[MOST], index64[MOST];
static int32_t index32[MOST];

static void draw_all(int64_t length) {
    for (int64_t i = 0; i < MOST; i++) {
        base[i] = want[i] = draw(1000) - 500;
        fresh[i] = draw(1000) - 500;
        index64[i] = draw(2 * length) - length;
        index32[i] = (int32_t)index64[i];
    }
}

static void put(int64_t at, int64_t update, bool add) {
    want[at] = add ? want[at] + update : update;
}

/* Runs the node with 1 and 2 threads and compares with `want`. */
static void wanted(void) {
    sni_datum out[1];
    versus_add_node(&v, 1);
    eval *e = &v.e;
    const sni_datum *in[EVAL_MOST];
    for (int i = 0; i < e->n_in; i++) in[i] = e->in_ids[i] == SNI_NO_ID ? NULL : &e->in[i];
    assert_int_equal(sni_eval(sni_graph_first(e->graph), in, e->out, NULL, &e->text, &e->err),
                     SN_OK);
    for (int threads = 1; threads < 4; threads++) {
        versus_run_impl(&v, &written, NULL, 1, threads, out);
        assert_memory_equal(out[0].tensor.data, want, sni_tensor_bytes(&out[0].tensor));
        free((unsigned char *)out[0].tensor.data - VERSUS_GUARD);
    }
    eval_end(e);
}

static void elements_case(const int64_t *dims, const int64_t *some, int axis, bool wide, bool add) {
    int64_t steps[3] = {dims[1] * dims[2], dims[2], 1}, at[3], i = 0;
    draw_all(dims[axis]);
    for (at[0] = 0; at[0] < some[0]; at[0]++)
        for (at[1] = 0; at[1] < some[1]; at[1]++)
            for (at[2] = 0; at[2] < some[2]; at[2]++, i++) {
                int64_t place = 0;
                for (int a = 0; a < 3; a++) {
                    int64_t j = a != axis ? at[a] : index64[i];
                    place += (j < 0 ? j + dims[a] : j) * steps[a];
                }
                put(place, fresh[i], add);
            }
    start("ScatterElements");
    versus_tensor(&v, SN_INT64, 3, dims, base);
    versus_tensor(&v, wide ? SN_INT64 : SN_INT32, 3, some,
                  wide ? (const void *)index64 : (const void *)index32);
    versus_tensor(&v, SN_INT64, 3, some, fresh);
    eval_attr(&v.e, sni_attr_of_int("axis", axis));
    eval_attr(&v.e, sni_attr_of_string("reduction", add ? "add" : "none"));
    wanted();
}

static void scattered_elements(void **state) {
    (void)state;
    static const int64_t dims[][3] = {{5, 101, 203}, {1, 1, 70001}, {70001, 1, 1}, {3, 40, 7}};
    for (size_t s = 0; s < sizeof dims / sizeof *dims; s++)
        for (int axis = 0; axis < 3; axis++)
            for (int flags = 0; flags < 4; flags++) {
                const int64_t *d = dims[s];
                elements_case(d, d, axis, flags & 1, flags & 2);
                elements_case(d, (int64_t[]){(d[0] + 1) / 2, d[1], (2 * d[2] + 2) / 3}, axis,
                              flags & 1, flags & 2);
            }
}

static void nd_case(int64_t rows, int64_t length, int64_t n, int tuple, bool add) {
    int64_t row = tuple == 1 ? length : 1;
    draw_all(rows < length && tuple == 2 ? rows : tuple == 2 ? length : rows);
    for (int64_t i = 0; i < n; i++) {
        int64_t first = index64[i * tuple], second = tuple == 2 ? index64[i * tuple + 1] : 0;
        int64_t to = (first < 0 ? first + rows : first) * length;
        to += second < 0 ? second + length : second;
        for (int64_t e = 0; e < row; e++) put(to + e, fresh[i * row + e], add);
    }
    start("ScatterND");
    versus_tensor(&v, SN_INT64, 2, (int64_t[]){rows, length}, base);
    versus_tensor(&v, SN_INT64, 2, (int64_t[]){n, tuple}, index64);
    versus_tensor(&v, SN_INT64, tuple == 1 ? 2 : 1, (int64_t[]){n, length}, fresh);
    eval_attr(&v.e, sni_attr_of_string("reduction", add ? "add" : "none"));
    wanted();
}

static void scattered_slices(void **state) {
    (void)state;
    for (int add = 0; add < 2; add++) {
        nd_case(201, 307, 500, 1, add);
        nd_case(20000, 3, 40001, 1, add);
        nd_case(7, 20011, 9, 1, add);
        nd_case(301, 307, 60001, 2, add);
        nd_case(5, 3, 4, 2, add);
    }
}

static void trilu_case(int64_t count, int64_t rows, int64_t columns, int64_t diagonal, bool upper) {
    draw_all(10);
    for (int64_t r = 0; r < count * rows; r++)
        for (int64_t c = 0; c < columns; c++)
            if (upper ? c < r % rows + diagonal : c > r % rows + diagonal)
                want[r * columns + c] = 0;
    start("Trilu");
    versus_tensor(&v, SN_INT64, 3, (int64_t[]){count, rows, columns}, base);
    versus_tensor(&v, SN_INT64, 0, NULL, &diagonal);
    eval_attr(&v.e, sni_attr_of_int("upper", upper));
    wanted();
}

static void triangles(void **state) {
    (void)state;
    for (int64_t diagonal = -300; diagonal <= 300; diagonal += 50)
        for (int upper = 0; upper < 2; upper++) {
            trilu_case(3, 201, 203, diagonal, upper);
            trilu_case(1, 30, 1003, diagonal + 1, upper);
            trilu_case(700, 5, 3, diagonal / 100, upper);
        }
}

static void ranges(void **state) {
    (void)state;
    static const int64_t deltas[] = {1, -3, 1000000007, INT64_MAX / 90001};
    for (int d = 0; d < 4; d++) {
        int64_t count = 90001, first = -5, limit = first + count * deltas[d];
        for (int64_t i = 0; i < count; i++) want[i] = first + i * deltas[d];
        start("Range");
        versus_tensor(&v, SN_INT64, 0, NULL, &first);
        versus_tensor(&v, SN_INT64, 0, NULL, &limit);
        versus_tensor(&v, SN_INT64, 0, NULL, &deltas[d]);
        wanted();
    }
    start("Range");
    versus_tensor(&v, SN_FLOAT32, 0, NULL, &(float){1.25f});
    versus_tensor(&v, SN_FLOAT32, 0, NULL, &(float){20003.5f});
    versus_tensor(&v, SN_FLOAT32, 0, NULL, &(float){0.1f});
    versus_run(&v, 1, 0);
}

static void chosen_slices(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 1501, 77}, {3, 601, 129}, {401, 201, 1}, {2, 40, 3}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int64_t length = shapes[s][1], inner = shapes[s][2], to = 0;
        static uint8_t take[2000];
        draw_all(10);
        for (int64_t i = 0; i < length; i++) take[i] = draw(3) > 0;
        for (int64_t i = 0; i < shapes[s][0] * length; i++)
            for (int64_t e = 0; e < inner && take[i % length]; e++)
                want[to++] = base[i * inner + e];
        start("Compress");
        versus_tensor(&v, SN_INT64, 3, shapes[s], base);
        versus_tensor(&v, SN_BOOL, 1, &length, take);
        eval_attr(&v.e, sni_attr_of_int("axis", 1));
        wanted();
    }
}

static void outside(const char *type, int64_t place) {
    draw_all(10);
    for (int64_t i = 0; i < 40000; i++) index64[i] = i % 100;
    index64[place] = 200;
    start(type);
    versus_tensor(&v, SN_INT64, 2, (int64_t[]){200, 200}, base);
    versus_tensor(&v, SN_INT64, 2, (int64_t[]){200, 200}, index64);
    if (type[0] == 'S') versus_tensor(&v, SN_INT64, 2, (int64_t[]){200, 200}, fresh);
    assert_int_equal(eval_run(&v.e, 1), SN_BAD_DATA);
    assert_non_null(strstr(v.e.err.message, "index 200 is out of range"));
    eval_end(&v.e);
}

static void places_outside_are_refused(void **state) {
    (void)state;
    for (int64_t place = 0; place < 40000; place += 13333) {
        outside("ScatterElements", place);
        outside("GatherElements", place);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_and_cuts),
        cmocka_unit_test(slices_and_transposes),
        cmocka_unit_test(copies_and_fills),
        cmocka_unit_test(gathers),
        cmocka_unit_test(scattered_elements),
        cmocka_unit_test(scattered_slices),
        cmocka_unit_test(ranges),
        cmocka_unit_test(chosen_slices),
        cmocka_unit_test(triangles),
        cmocka_unit_test(places_outside_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
