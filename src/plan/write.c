/* write.c - a plan as text, for people and golden tests. */
#include "plan/plan.h"

#include "ops/sinter/part.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct printer {
    sn_write_fn write;
    void *ctx;
    int failed;
} printer;

static void print(printer *p, const char *format, ...) SNI_PRINTF(2, 3);

static void print(printer *p, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || p->failed) return;
    size_t size = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    p->failed = p->write(p->ctx, line, size);
}

/* Whether a terminal might obey the byte at `i`: control characters, and U+0080 to U+009F, which
 * are C2 80 to C2 9F. */
static bool is_control(sni_str name, size_t i) {
    unsigned char c = (unsigned char)name.p[i];
    unsigned char before = i > 0 ? (unsigned char)name.p[i - 1] : 0;
    unsigned char next = i + 1 < name.n ? (unsigned char)name.p[i + 1] : 0;
    if (c == 0xC2) return next >= 0x80 && next < 0xA0;
    return c < 0x20 || c == 0x7F || (before == 0xC2 && c >= 0x80 && c < 0xA0);
}

/* A name from the model; control characters are written \xNN. */
static void print_name(printer *p, sni_str name) {
    for (size_t i = 0, from = 0; i < name.n; i++) {
        bool last = i + 1 == name.n, control = is_control(name, i);
        size_t end = control ? i : i + 1;
        if (!control && !last) continue;
        if (end > from) print(p, "%.*s", (int)(end - from), name.p + from);
        if (control) print(p, "\\x%02X", (unsigned)(unsigned char)name.p[i]);
        from = i + 1;
    }
}

static void print_tensor(printer *p, const sni_tensor *t) {
    print(p, " %s[", sn_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++) print(p, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    print(p, "]");
}

static void print_ref(printer *p, const sni_plan *plan, sni_ref r) {
    static const char *const places[] = {"input", "arena", "output", "dynamic"};
    if (r == SNI_REF_NONE) {
        print(p, "-");
        return;
    }
    if (sni_ref_is_const(r)) {
        print(p, "const");
        print_tensor(p, &plan->consts[sni_ref_const(r)]->tensor);
        return;
    }
    const sni_slot *s = &plan->slots[r];
    print(p, "%%%d:%s", r, places[s->place]);
    if (s->place == SNI_PLACE_ARENA) print(p, "@%zu", s->offset);
    if (s->place == SNI_PLACE_ARENA || s->place == SNI_PLACE_OUTPUT) print_tensor(p, &s->tensor);
}

static void print_step(printer *p, const sni_plan *plan, int32_t index) {
    const sni_step *s = &plan->steps[index];
    const sni_ref *in = sni_step_inputs(plan, s), *out = sni_step_outputs(plan, s);
    const sni_part_params *part = sni_is_part(s->node) ? s->node->params : NULL;
    const char *who = part ? part->provider : s->impl ? s->impl->name : "";
    print(p, "%4d %s%s%s%s '", index, s->node->op->name, *who ? " by " : "", who,
          s->dynamic ? " dynamic"
          : s->view  ? " view"
                     : "");
    print_name(p, sni_node_label(plan->graph, s->node));
    print(p, "' (");
    for (int32_t i = 0; i < s->node->n_in + s->node->n_captures; i++) {
        if (i) print(p, ", ");
        print_ref(p, plan, in[i]);
    }
    print(p, ") => (");
    for (int32_t i = 0; i < s->node->n_out; i++) {
        if (i) print(p, ", ");
        print_ref(p, plan, out[i]);
    }
    print(p, ")\n");
}

sn_status sni_plan_write(const sni_plan *plan, sn_write_fn write, void *ctx, sn_error *err) {
    printer p = {.write = write, .ctx = ctx};
    print(&p, "plan: %d steps, arena %zu bytes, lower bound %zu bytes, ratio %.3f\n", plan->n_steps,
          plan->arena_bytes, plan->lower_bound,
          plan->lower_bound ? (double)plan->arena_bytes / (double)plan->lower_bound : 1.0);
    for (int32_t i = 0; i < plan->n_steps; i++) print_step(&p, plan, i);
    return p.failed ? sni_fail(err, SN_IO, "writing the plan failed") : SN_OK;
}
