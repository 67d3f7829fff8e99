/* test_convex.c - sets of nodes that can stand as one node. */
#include "graph/convex.h"

#include "unit.h"

#include <stdlib.h>

enum { MOST = 40 };

typedef struct net {
    sni_store *store;
    sni_graph *g;
    int32_t made[MOST]; /* the value that node i makes */
    int n;
} net;

static void open_net(net *t) {
    *t = (net){.n = 0};
    assert_int_equal(sni_store_new(NULL, 0, &t->store, NULL), SN_OK);
    assert_int_equal(sni_graph_new(t->store, NULL, NULL, &t->g, NULL), SN_OK);
}

/* Adds a node that reads what others make; -1: nothing. */
static void add(net *t, int a, int b) {
    int32_t in[2], n_in = 0;
    sni_value *v;
    sni_node *n;
    if (a >= 0) in[n_in++] = t->made[a];
    if (b >= 0) in[n_in++] = t->made[b];
    assert_int_equal(sni_graph_add_value(t->g, (sni_str){0}, &v, NULL), SN_OK);
    sni_new_node wanted = {SNI_STR(""), SNI_STR("Sum"), in, n_in, &v->id, 1};
    assert_int_equal(sni_graph_add_node(t->g, SNI_NO_ID, &wanted, &n, NULL), SN_OK);
    t->made[t->n++] = v->id;
}

static bool is_convex(const net *t, const char *members) {
    bool member[MOST] = {false}, convex = false;
    for (int i = 0; i < t->n; i++) member[i] = members[i] == 'x';
    assert_int_equal(sni_convex_check(t->g, member, &convex, NULL, NULL), SN_OK);
    return convex;
}

static void test_check(void **state) {
    (void)state;
    net t;
    open_net(&t); /* 0 -> 1 -> 2 -> 3, and 0 -> 3 */
    add(&t, -1, -1);
    add(&t, 0, -1);
    add(&t, 1, -1);
    add(&t, 2, 0);
    assert_true(is_convex(&t, "xxxx"));
    assert_true(is_convex(&t, ".xx."));
    assert_true(is_convex(&t, "...."));
    assert_false(is_convex(&t, "x..x"));
    assert_false(is_convex(&t, "xx.x"));
    assert_false(is_convex(&t, ".x.x"));
    sni_store_release(t.store);
}

/* After every set has become one node the graph must have no cycle. */
static void check_quotient(const net *t, const int32_t *part, int32_t count) {
    int32_t label[MOST], nodes = count;
    bool edge[MOST * 2][MOST * 2] = {{false}};
    for (int i = 0; i < t->n; i++) label[i] = part[i] == SNI_NO_ID ? nodes++ : part[i];
    for (int i = 0; i < t->n; i++)
        for (int32_t k = 0; k < t->g->nodes[i]->n_in; k++) {
            int32_t from = t->g->values[t->g->nodes[i]->in[k]]->producer;
            if (label[from] != label[i]) edge[label[from]][label[i]] = true;
        }
    for (int32_t k = 0; k < nodes; k++)
        for (int32_t a = 0; a < nodes; a++)
            for (int32_t b = 0; b < nodes; b++)
                edge[a][b] = edge[a][b] || (edge[a][k] && edge[k][b]);
    for (int32_t a = 0; a < nodes; a++) assert_false(edge[a][a]);
}

static void test_random_parts(void **state) {
    (void)state;
    unsigned seed = 7;
    for (int turn = 0; turn < 500; turn++) {
        net t;
        open_net(&t);
        bool wanted[MOST] = {false}, member[MOST];
        int32_t part[MOST], count;
        for (int i = 0; i < 24; i++) {
            seed = seed * 1103515245u + 12345;
            int a = i ? (int)(seed >> 8) % i : -1;
            seed = seed * 1103515245u + 12345;
            add(&t, a, i > 1 && seed >> 30 ? (int)((seed >> 8) % (unsigned)i) : -1);
            wanted[i] = (seed >> 20) % 5 != 0;
        }
        assert_int_equal(sni_convex_parts(t.g, wanted, part, &count, NULL), SN_OK);
        for (int32_t p = 0; p < count; p++) {
            bool convex = false;
            for (int i = 0; i < t.n; i++) member[i] = part[i] == p;
            assert_int_equal(sni_convex_check(t.g, member, &convex, NULL, NULL), SN_OK);
            assert_true(convex);
        }
        for (int i = 0; i < t.n; i++) assert_int_equal(part[i] != SNI_NO_ID, wanted[i]);
        check_quotient(&t, part, count);
        sni_store_release(t.store);
    }
}

/* Everything wanted and connected is one part. */
static void test_whole(void **state) {
    (void)state;
    net t;
    bool wanted[MOST];
    int32_t part[MOST], count;
    open_net(&t);
    for (int i = 0; i < 10; i++) {
        add(&t, i - 1, -1);
        wanted[i] = true;
    }
    assert_int_equal(sni_convex_parts(t.g, wanted, part, &count, NULL), SN_OK);
    assert_int_equal(count, 1);
    wanted[5] = false;
    assert_int_equal(sni_convex_parts(t.g, wanted, part, &count, NULL), SN_OK);
    assert_int_equal(count, 2);
    sni_store_release(t.store);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_check),
                                       cmocka_unit_test(test_random_parts),
                                       cmocka_unit_test(test_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
