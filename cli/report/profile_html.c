/* profile_html.c - a profile as one page: bars, a roofline and a table, nothing from elsewhere. */
#include "cli/report/html.h"
#include "cli/report/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_bar(cli_text *out, double part) {
    double width = part < 0 ? 0 : part > 1 ? 1 : part;
    cli_text_addf(out,
                  "<td class=\"l\"><span class=\"bar\" style=\"width:160px\"><b "
                  "style=\"width:%.1f%%\"></b></span></td>",
                  100 * width);
}

static void add_groups(const cli_profile *p, cli_text *out) {
    cli_group *groups;
    size_t count = cli_profile_groups(p, &groups);
    double total = cli_profile_total(p), longest = count ? groups[0].us : 1;
    cli_text_addf(out, "<h2>By operator</h2>\n<table><tr><th class=\"l\">operator<th class=\"l\">by"
                       "<th>steps<th>us<th>share<th class=\"l\"><th>GFLOP/s<th>of peak</tr>\n");
    for (size_t i = 0; i < count; i++) {
        const cli_group *g = &groups[i];
        double rate = g->us > 0 ? 2e6 * (double)g->macs / g->us : 0;
        cli_text_addf(out, "<tr><td class=\"l\">");
        cli_html_text(out, g->op);
        cli_text_addf(out, "<td class=\"l\">");
        cli_html_text(out, g->impl);
        cli_text_addf(out, "<td>%zu<td>%.1f<td>%.1f %%", g->steps, g->us,
                      total > 0 ? 100 * g->us / total : 0);
        add_bar(out, longest > 0 ? g->us / longest : 0);
        if (g->macs)
            cli_text_addf(out, "<td>%.1f<td>%.0f %%", rate * 1e-9,
                          100 * rate / p->machine.flops_per_second);
        else
            cli_text_addf(out, "<td><td>");
        cli_text_addf(out, "</tr>\n");
    }
    cli_text_addf(out, "</table>\n");
    free(groups);
}

/* Axes of the roofline: operations for each byte, and operations a second, both by powers of 10. */
enum { WIDTH = 900, HEIGHT = 360, LEFT = 60, BOTTOM = 40 };

typedef struct axes {
    double x0, x1, y0, y1; /* logarithms to base 10 */
} axes;

static double place_x(const axes *a, double intensity) {
    double part = (log10(intensity) - a->x0) / (a->x1 - a->x0);
    return LEFT + part * (WIDTH - LEFT - 25);
}

static double place_y(const axes *a, double rate) {
    double part = (log10(rate) - a->y0) / (a->y1 - a->y0);
    return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - 10);
}

static void add_grid(const axes *a, cli_text *out) {
    for (double x = ceil(a->x0); x <= a->x1; x++) {
        double at = place_x(a, pow(10, x));
        cli_text_addf(out,
                      "<path d=\"M%.1f 10V%d\" stroke=\"#eee\"/><text x=\"%.1f\" y=\"%d\" "
                      "text-anchor=\"middle\">%g</text>\n",
                      at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 15, pow(10, x));
    }
    for (double y = ceil(a->y0); y <= a->y1; y++) {
        double at = place_y(a, pow(10, y));
        cli_text_addf(out,
                      "<path d=\"M%d %.1fH%d\" stroke=\"#eee\"/><text x=\"%d\" y=\"%.1f\" "
                      "text-anchor=\"end\">%g</text>\n",
                      LEFT, at, WIDTH - 25, LEFT - 5, at + 4, pow(10, y - 9));
    }
}

static void add_roofline(const cli_profile *p, cli_text *out) {
    double flops = p->machine.flops_per_second, bytes = p->machine.bytes_per_second;
    axes a = {-2, 4, 7, ceil(log10(flops * 2))};
    double ridge = flops / bytes, longest = 1e-9;
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].us > longest) longest = p->steps[i].us;
    cli_text_addf(out,
                  "<h2>Roofline</h2>\n<p>Each circle is a step with multiplications; its area is "
                  "its time. Across: operations for each byte of its tensors; upwards: GFLOP/s. "
                  "The line is what memory and arithmetic of this machine allow; a step whose "
                  "tensors are in cache may lie above its slope.</p>\n<svg width=\"%d\" "
                  "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    add_grid(&a, out);
    cli_text_addf(out,
                  "<path d=\"M%.1f %.1fL%.1f %.1fH%d\" fill=\"none\" stroke=\"#b33\" "
                  "stroke-width=\"1.5\"/>\n",
                  place_x(&a, 0.01), place_y(&a, 0.01 * bytes), place_x(&a, ridge),
                  place_y(&a, flops), WIDTH - 25);
    for (size_t i = 0; i < p->step_count; i++) {
        const cli_step *s = &p->steps[i];
        double moved = (double)(s->input_bytes + s->output_bytes);
        if (!s->macs || s->us <= 0 || moved <= 0) continue;
        double rate = 2e6 * (double)s->macs / s->us, intensity = 2 * (double)s->macs / moved;
        cli_text_addf(out,
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#2f6db3\" "
                      "fill-opacity=\"0.35\"><title>",
                      place_x(&a, fmin(fmax(intensity, 0.01), 1e4)), place_y(&a, fmax(rate, 1e7)),
                      2 + 14 * sqrt(s->us / longest));
        cli_html_text(out, s->op);
        cli_text_addf(out, " ");
        cli_html_text(out, s->node);
        cli_text_addf(out, ": %.1f us, %.1f GFLOP/s</title></circle>\n", s->us, rate * 1e-9);
    }
    cli_text_addf(out, "</svg>\n");
}

static void add_steps(const cli_profile *p, cli_text *out) {
    double longest = 1e-9;
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].us > longest) longest = p->steps[i].us;
    cli_text_addf(out, "<h2>Steps in order</h2>\n<table><tr><th>#<th class=\"l\">operator"
                       "<th class=\"l\">by<th>us<th class=\"l\"><th>calls<th>GFLOP/s<th>of peak"
                       "<th>GB/s<th>of roof<th class=\"l\">shapes<th class=\"l\">node</tr>\n");
    for (size_t i = 0; i < p->step_count; i++) {
        const cli_step *s = &p->steps[i];
        uint64_t moved = s->input_bytes + s->output_bytes;
        double rate = s->us > 0 ? 2e6 * (double)s->macs / s->us : 0;
        cli_text_addf(out, "<tr><td>%zu<td class=\"l\" style=\"padding-left:%dpx\">", i,
                      8 + 12 * s->depth);
        cli_html_text(out, s->op);
        cli_text_addf(out, "<td class=\"l\">");
        cli_html_text(out, s->impl);
        cli_text_addf(out, "<td>%.1f", s->us);
        add_bar(out, s->us / longest);
        cli_text_addf(out, "<td>%llu", (unsigned long long)s->calls);
        if (s->macs)
            cli_text_addf(out, "<td>%.1f<td>%.0f %%", rate * 1e-9,
                          100 * rate / p->machine.flops_per_second);
        else
            cli_text_addf(out, "<td><td>");
        cli_text_addf(out, "<td>%.1f<td>%.0f %%", s->us > 0 ? (double)moved / s->us * 1e-3 : 0,
                      s->us > 0 ? 100 * cli_roof_us(&p->machine, s->macs, moved) / s->us : 0);
        cli_text_addf(out, "<td class=\"l n\">");
        cli_html_text(out, s->shapes);
        cli_text_addf(out, "<td class=\"l n\">");
        cli_html_text(out, s->node);
        cli_text_addf(out, "</tr>\n");
    }
    cli_text_addf(out, "</table>\n");
}

void cli_profile_html(const cli_profile *p, cli_text *out) {
    const sn_machine *m = &p->machine;
    cli_html_begin(out, "Profile", p->model);
    cli_text_addf(out,
                  "<p>One run takes %.1f us, %.1f us while it is watched (best of %zu); its "
                  "%zu steps take %.1f us.<br>%s, %d thread%s: %.1f GFLOP/s at best, reads %.1f "
                  "GB/s from memory.</p>\n",
                  p->plain_us, p->best_us, p->runs, p->step_count, cli_profile_total(p), m->isa,
                  m->threads, m->threads == 1 ? "" : "s", m->flops_per_second * 1e-9,
                  m->bytes_per_second * 1e-9);
    add_groups(p, out);
    add_roofline(p, out);
    add_steps(p, out);
    cli_text_addf(out, "</body></html>\n");
}
