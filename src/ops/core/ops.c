/* ops.c - the table of operators. */
#include "ops/core/op.h"

#include <pthread.h>
#include <stdlib.h>

#define SNI_OP(symbol, file) extern const sni_op symbol;
#include "ops/core/ops.def"
#undef SNI_OP

/* In order of domain and name once `sort_once` has run. */
static const sni_op *table[] = {
#define SNI_OP(symbol, file) &symbol,
#include "ops/core/ops.def"
#undef SNI_OP
};

static pthread_once_t sort_once = PTHREAD_ONCE_INIT;

static int compare_text(sni_str a, sni_str b) {
    size_t shorter = a.n < b.n ? a.n : b.n;
    int c = shorter ? memcmp(a.p, b.p, shorter) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int compare(const sni_op *op, sni_str domain, sni_str name) {
    int c = compare_text(sni_str_of(op->domain), domain);
    return c ? c : compare_text(sni_str_of(op->name), name);
}

static int compare_ops(const void *a, const void *b) {
    const sni_op *x = *(const sni_op *const *)a, *y = *(const sni_op *const *)b;
    return compare(x, sni_str_of(y->domain), sni_str_of(y->name));
}

static void sort_table(void) {
    qsort(table, sni_op_count(), sizeof *table, compare_ops);
}

size_t sni_op_count(void) {
    return sizeof table / sizeof *table;
}

const sni_op *sni_op_at(size_t index) {
    pthread_once(&sort_once, sort_table);
    return index < sni_op_count() ? table[index] : NULL;
}

const sni_op *sni_op_find(sni_str domain, sni_str name) {
    pthread_once(&sort_once, sort_table);
    size_t low = 0, high = sni_op_count();
    while (low < high) {
        size_t middle = (low + high) / 2;
        int c = compare(table[middle], domain, name);
        if (c == 0) return table[middle];
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
