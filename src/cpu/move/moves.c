/* moves.c - operators that move elements, on the loops of a tier. */
#include "cpu/move/moves.h"

#include "cpu/core/cpu_ep.h"
#include "ops/core/kernel_hooks.h"

/* Whether an input's elements have a width of the tables. */
static bool is_moved(const sni_choice *c, int i) {
    return i < c->n_in && c->in[i] && c->in[i]->kind == SN_KIND_TENSOR && c->in[i]->dtype &&
           sni_move_index(sni_dtype_width(c->in[i]->dtype)) >= 0;
}

/* ---- Where ---- */

static bool where_accepts(const sni_choice *c) {
    return is_moved(c, 1);
}

static sn_status where_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 1);
    int width = sni_move_index(sni_dtype_width(x->dtype));
    sni_elementwise e = {.n_in = 3,
                         .in = {sni_in(k, 0), x, sni_in(k, 2)},
                         .in_as = {SN_BOOL, x->dtype, x->dtype},
                         .out = sni_out(k, 0),
                         .out_as = x->dtype,
                         .ternary = sni_moves_get()->choose[width]};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

/* ---- Transposition ---- */

bool sni_move_transpose(size_t width, const void *from, int64_t from_step, int64_t rows,
                        int64_t columns, void *to, int64_t to_step) {
    int i = sni_move_index(width);
    if (i < 0) return false;
    sni_moves_get()->transpose[i](from, from_step, rows, columns, to, to_step);
    return true;
}

static bool first_moves(const sni_choice *c) {
    return is_moved(c, 0);
}

static sn_status hooked_run(sni_kernel *k) {
    const sni_moves *moves = sni_moves_get();
    const sni_kernel_hooks hooks = {
        .transpose = sni_move_transpose, .resize = &moves->resize, .rotary = &moves->rotary};
    k->hooks = &hooks;
    sn_status status = k->node->op->ref(k);
    k->hooks = NULL;
    return status;
}

const sni_impl sni_cpu_moves[] = {
    {.name = "choose", .op = "Where", .accepts = where_accepts, .run = where_run},
    {.name = "sample", .op = "GridSample", .accepts = first_moves, .run = hooked_run},
    {.name = "rotate", .op = "RotaryEmbedding", .accepts = first_moves, .run = hooked_run},
    {.name = "rotate",
     .op = "RotaryEmbedding",
     .domain = "com.microsoft",
     .accepts = first_moves,
     .run = hooked_run},
    {.name = "resize", .op = "Resize", .accepts = first_moves, .run = hooked_run},
    {.name = "resize", .op = "Upsample", .accepts = first_moves, .run = hooked_run},
    {.name = "turn", .op = "Transpose", .accepts = first_moves, .run = hooked_run},
    {0},
};
