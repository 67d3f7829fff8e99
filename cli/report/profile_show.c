/* profile_show.c - a profile as text, JSON, and a trace. */
#include "cli/report/profile.h"

#include "cli/formats/json_write.h"

#include <inttypes.h>
#include <stdlib.h>

static double gflops(uint64_t macs, double us) {
    return us > 0 ? 2e-3 * (double)macs / us : 0;
}

static double of_peak(const cli_profile *p, uint64_t macs, double us) {
    return us > 0 ? 2e8 * (double)macs / us / p->machine.flops_per_second : 0;
}

/* "time  share  GFLOP/s  of peak  GB/s": blanks where there is no arithmetic. */
static void add_figures(const cli_profile *p, double us, uint64_t macs, uint64_t bytes,
                        cli_text *out) {
    double total = cli_profile_total(p);
    cli_text_addf(out, "%10.1f %5.1f%%", us, total > 0 ? 100 * us / total : 0);
    if (macs)
        cli_text_addf(out, " %8.1f %6.1f%%", gflops(macs, us), of_peak(p, macs, us));
    else
        cli_text_addf(out, " %8s %7s", "", "");
    cli_text_addf(out, " %7.1f", us > 0 ? (double)bytes / us * 1e-3 : 0);
}

static void add_heading(const cli_profile *p, cli_text *out) {
    const sn_machine *m = &p->machine;
    double total = cli_profile_total(p);
    cli_text_add_name(out, p->model);
    cli_text_addf(out,
                  "\n  one run     %10.1f us (%.1f us while watched; %zu steps take %.1f us), "
                  "best of %zu\n",
                  p->plain_us, p->best_us, p->step_count, total, p->runs);
    cli_text_addf(out, "  machine     %s, %d thread%s: %.1f GFLOP/s, reads %.1f GB/s\n\n", m->isa,
                  m->threads, m->threads == 1 ? "" : "s", m->flops_per_second * 1e-9,
                  m->bytes_per_second * 1e-9);
}

static void add_groups(const cli_profile *p, cli_text *out) {
    cli_group *groups;
    size_t count = cli_profile_groups(p, &groups);
    cli_text_addf(out, "%-22s %-18s %5s %10s %6s %8s %7s %7s\n", "operator", "by", "steps", "us",
                  "share", "GFLOP/s", "of peak", "GB/s");
    for (size_t i = 0; i < count; i++) {
        const cli_group *g = &groups[i];
        cli_text_addf(out, "%-22s %-18s %5zu ", g->op, g->impl, g->steps);
        add_figures(p, g->us, g->macs, g->bytes, out);
        cli_text_addf(out, "\n");
    }
    free(groups);
}

void cli_profile_text(const cli_profile *p, size_t top, cli_text *out) {
    add_heading(p, out);
    add_groups(p, out);
    size_t *order = cli_profile_order(p);
    size_t shown = top < p->step_count ? top : p->step_count;
    cli_text_addf(out, "\n%5s %-18s %10s %6s %8s %7s %7s %6s  %s\n", "step", "operator", "us",
                  "share", "GFLOP/s", "of peak", "GB/s", "roof", "shapes, node");
    for (size_t i = 0; i < shown; i++) {
        const cli_step *s = &p->steps[order[i]];
        uint64_t bytes = s->input_bytes + s->output_bytes;
        double roof = cli_roof_us(&p->machine, s->macs, bytes);
        cli_text_addf(out, "%5zu %*s%-*s ", order[i], s->depth, "", 18 - s->depth, s->op);
        add_figures(p, s->us, s->macs, bytes, out);
        cli_text_addf(out, " %5.0f%%  ", s->us > 0 ? 100 * roof / s->us : 0);
        cli_text_add_name(out, s->shapes);
        cli_text_addf(out, "  ");
        cli_text_add_name(out, s->node);
        cli_text_addf(out, "\n");
    }
    if (shown < p->step_count)
        cli_text_addf(out, "      (%zu more; --top %zu shows all)\n", p->step_count - shown,
                      p->step_count);
    free(order);
}

static void add_number(cli_json *json, const char *key, double value) {
    cli_json_key(json, key);
    cli_json_number(json, value);
}

static void add_string(cli_json *json, const char *key, const char *value) {
    cli_json_key(json, key);
    cli_json_cstring(json, value);
}

static void add_integer(cli_json *json, const char *key, uint64_t value) {
    cli_json_key(json, key);
    cli_json_unsigned(json, value);
}

void cli_profile_json(const cli_profile *p, cli_text *out) {
    cli_json json = {.out = out};
    cli_json_begin(&json, '{');
    add_string(&json, "model", p->model);
    add_string(&json, "isa", p->machine.isa);
    add_integer(&json, "threads", (uint64_t)p->machine.threads);
    add_number(&json, "peak_gflops", p->machine.flops_per_second * 1e-9);
    add_number(&json, "read_gbytes_per_second", p->machine.bytes_per_second * 1e-9);
    add_integer(&json, "runs", p->runs);
    add_number(&json, "run_us", p->plain_us);
    add_number(&json, "watched_run_us", p->best_us);
    cli_json_key(&json, "steps");
    cli_json_begin(&json, '[');
    for (size_t i = 0; i < p->step_count; i++) {
        const cli_step *s = &p->steps[i];
        cli_json_begin(&json, '{');
        add_string(&json, "node", s->node);
        add_string(&json, "op", s->op);
        add_string(&json, "by", s->impl);
        add_string(&json, "shapes", s->shapes);
        add_integer(&json, "depth", (uint64_t)s->depth);
        add_integer(&json, "calls", s->calls);
        add_number(&json, "us", s->us);
        add_integer(&json, "macs", s->macs);
        add_integer(&json, "input_bytes", s->input_bytes);
        add_integer(&json, "output_bytes", s->output_bytes);
        add_number(&json, "gflops", gflops(s->macs, s->us));
        add_number(&json, "roof_us",
                   cli_roof_us(&p->machine, s->macs, s->input_bytes + s->output_bytes));
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
}

void cli_profile_trace(const cli_profile *p, cli_text *out) {
    cli_json json = {.out = out};
    uint64_t start = UINT64_MAX;
    for (size_t i = 0; i < p->best_count; i++)
        if (p->best[i].start_ns < start) start = p->best[i].start_ns;
    cli_json_begin(&json, '{');
    add_string(&json, "displayTimeUnit", "ns");
    cli_json_key(&json, "traceEvents");
    cli_json_begin(&json, '[');
    for (size_t i = 0; i < p->best_count; i++) {
        const cli_call *c = &p->best[i];
        const cli_step *s = &p->steps[c->step];
        cli_json_begin(&json, '{');
        add_string(&json, "name", s->node);
        add_string(&json, "cat", s->op);
        add_string(&json, "ph", "X");
        add_integer(&json, "pid", 1);
        add_integer(&json, "tid", 1);
        add_number(&json, "ts", (double)(c->start_ns - start) * 1e-3);
        add_number(&json, "dur", (double)(c->end_ns - c->start_ns) * 1e-3);
        cli_json_key(&json, "args");
        cli_json_begin(&json, '{');
        add_string(&json, "op", s->op);
        add_string(&json, "by", s->impl);
        add_string(&json, "shapes", s->shapes);
        add_integer(&json, "macs", s->calls ? s->macs / s->calls : 0);
        cli_json_end(&json, '}');
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
}
