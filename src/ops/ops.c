/* ops.c - the table of operators. */
#include "ops/op.h"

#define SNI_OP(symbol) extern const sni_op symbol;
#include "ops/ops.def"
#undef SNI_OP

static const sni_op *const table[] = {
#define SNI_OP(symbol) &symbol,
#include "ops/ops.def"
#undef SNI_OP
};

size_t sni_op_count(void) {
    return sizeof table / sizeof *table;
}

const sni_op *sni_op_at(size_t index) {
    return index < sni_op_count() ? table[index] : NULL;
}

/* Order of (domain, name) as in ops.def. */
static int compare(const sni_op *op, sni_str domain, sni_str name) {
    sni_str d = sni_str_of(op->domain), n = sni_str_of(op->name);
    size_t shorter = d.n < domain.n ? d.n : domain.n;
    int c = shorter ? memcmp(d.p, domain.p, shorter) : 0;
    if (c || d.n != domain.n) return c ? c : (d.n < domain.n ? -1 : 1);
    shorter = n.n < name.n ? n.n : name.n;
    c = shorter ? memcmp(n.p, name.p, shorter) : 0;
    return c ? c : (n.n > name.n) - (n.n < name.n);
}

const sni_op *sni_op_find(sni_str domain, sni_str name) {
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
