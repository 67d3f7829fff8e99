/* compression_html.c - what quantising or pruning has found out, as one page. */
#include "cli/report/compression.h"
#include "cli/report/html.h"

#include <math.h>

enum { WIDTH = 900, HEIGHT = 320, LEFT = 80, BOTTOM = 40 };

/* ---- Losses against sizes ----------------------------------------------------------------- */

typedef struct plot {
    double least, most; /* losses shown, logarithms to base 10 */
    double x_most;      /* bytes */
} plot;

static double log_of(double loss) {
    return log10(fmax(loss, 1e-9));
}

static plot plot_of(const sn_quantize_report *report, const sn_quantize_summary *s) {
    plot p = {0, -9, (double)s->bytes_before};
    sn_quantize_trial t;
    for (size_t i = 0; sn_quantize_report_trial(report, i, &t); i++) {
        p.least = fmin(p.least, log_of(t.loss));
        p.most = fmax(p.most, log_of(t.loss));
        p.x_most = fmax(p.x_most, (double)t.bytes);
    }
    p.least = floor(p.least);
    p.most = fmax(ceil(p.most), p.least + 1);
    return p;
}

static void add_trials(const sn_quantize_report *report, const sn_quantize_summary *s,
                       cli_text *out) {
    sn_quantize_trial t;
    plot p = plot_of(report, s);
    if (!sn_quantize_report_trial(report, 0, &t)) return;
    cli_text_addf(out,
                  "<h2>What was tried</h2>\n<p>Across: bytes of weights; upwards: loss.</p>\n"
                  "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    for (double y = p.least; y <= p.most; y++) {
        double at = HEIGHT - BOTTOM - (y - p.least) / (p.most - p.least) * (HEIGHT - BOTTOM - 20);
        cli_text_addf(out,
                      "<path d=\"M%d %.1fH%d\" stroke=\"#eee\"/><text x=\"%d\" y=\"%.1f\" "
                      "text-anchor=\"end\">1e%.0f</text>\n",
                      LEFT, at, WIDTH - 20, LEFT - 5, at + 4, y);
    }
    for (size_t i = 0; sn_quantize_report_trial(report, i, &t); i++) {
        double x = LEFT + (double)t.bytes / fmax(p.x_most, 1) * (WIDTH - LEFT - 40);
        double y = HEIGHT - BOTTOM -
                   (log_of(t.loss) - p.least) / (p.most - p.least) * (HEIGHT - BOTTOM - 20);
        cli_text_addf(out,
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\" fill-opacity=\"0.6\">"
                      "<title>",
                      x, y, t.ns ? "#b33" : "#2f6db3");
        cli_html_text(out, t.what);
        cli_text_addf(out, ": loss %.3g, %.1f kB</title></circle>\n", t.loss,
                      (double)t.bytes * 1e-3);
    }
    cli_text_addf(out, "</svg>\n<table><tr><th class=\"l\">tried<th>loss<th>kB<th>ms</tr>\n");
    for (size_t i = 0; sn_quantize_report_trial(report, i, &t); i++) {
        cli_text_addf(out, "<tr><td class=\"l\">");
        cli_html_text(out, t.what);
        cli_text_addf(out, "<td>%.3g<td>%.1f<td>", t.loss, (double)t.bytes * 1e-3);
        if (t.ns) cli_text_addf(out, "%.3f", (double)t.ns * 1e-6);
        cli_text_addf(out, "</tr>\n");
    }
    cli_text_addf(out, "</table>\n");
}

/* ---- Layers ------------------------------------------------------------------------------- */

/* The histogram of a layer's input, with the range that was chosen. */
static void add_histogram(const sn_quantize_layer *l, cli_text *out) {
    enum { COLUMNS = 128, TALL = 28 };
    uint64_t columns[COLUMNS] = {0}, most = 1;
    if (!l->histogram || l->bins < COLUMNS) return;
    for (size_t i = 0; i < l->bins; i++) columns[i * COLUMNS / l->bins] += l->histogram[i];
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i] > most) most = columns[i];
    double span = fmax((double)l->seen_high - (double)l->seen_low, 1e-30);
    double from = ((double)l->low - (double)l->seen_low) / span * COLUMNS;
    double to = ((double)l->high - (double)l->seen_low) / span * COLUMNS;
    cli_text_addf(out,
                  "<svg width=\"%d\" height=\"%d\"><rect x=\"%.1f\" width=\"%.1f\" height=\"%d\" "
                  "fill=\"#e6f0e0\"/><path fill=\"#2f6db3\" d=\"",
                  COLUMNS, TALL, from, fmax(to - from, 0), TALL);
    for (int i = 0; i < COLUMNS; i++) {
        /* Logarithms: tails are what clipping is about. */
        double tall = TALL * log((double)columns[i] + 1) / log((double)most + 1);
        if (tall > 0) cli_text_addf(out, "M%d %dv%.1fh1V%dz", i, TALL, -tall, TALL);
    }
    cli_text_addf(out, "\"/><title>from %.4g to %.4g; chosen %.4g to %.4g</title></svg>",
                  (double)l->seen_low, (double)l->seen_high, (double)l->low, (double)l->high);
}

static double largest_loss(const sn_quantize_report *report) {
    sn_quantize_layer l;
    double most = 1e-30;
    for (size_t i = 0; sn_quantize_report_layer(report, i, &l); i++) most = fmax(most, l.loss);
    return most;
}

static void add_layers(const sn_quantize_report *report, cli_text *out) {
    sn_quantize_layer l;
    double most = largest_loss(report);
    cli_text_addf(out, "<h2>Layers</h2>\n<p>The loss is the model's when this layer alone is "
                       "changed. Bars of histograms are logarithms; the range chosen is "
                       "green.</p>\n<table><tr><th>#<th class=\"l\">operator<th class=\"l\">"
                       "precision<th>kB before<th>kB<th>us before<th>us<th>loss<th class=\"l\">"
                       "<th>weights' error<th>zeros<th class=\"l\">input<th class=\"l\">layer"
                       "</tr>\n");
    for (size_t i = 0; sn_quantize_report_layer(report, i, &l); i++) {
        cli_text_addf(out, "<tr><td>%zu<td class=\"l\">", i);
        cli_html_text(out, l.op);
        cli_text_addf(out, "<td class=\"l\">%s<td>%.1f<td>%.1f<td>",
                      sn_quantize_to_name(l.precision), (double)l.bytes_before * 1e-3,
                      (double)l.bytes_after * 1e-3);
        if (l.ns_before) cli_text_addf(out, "%.1f", (double)l.ns_before * 1e-3);
        cli_text_addf(out, "<td>");
        if (l.ns_after) cli_text_addf(out, "%.1f", (double)l.ns_after * 1e-3);
        cli_text_addf(out, "<td>");
        if (l.loss >= 0) cli_text_addf(out, "%.2e", l.loss);
        cli_text_addf(out,
                      "<td class=\"l\"><span class=\"bar\" style=\"width:100px\"><b style=\"width:"
                      "%.1f%%\"></b></span><td>",
                      100 * fmax(l.loss, 0) / most);
        if (l.weight_error >= 0) cli_text_addf(out, "%.2f %%", 100 * l.weight_error);
        cli_text_addf(out, "<td>%.1f %%<td class=\"l\">", 100 * l.sparsity);
        add_histogram(&l, out);
        cli_text_addf(out, "<td class=\"l n\">");
        cli_html_text(out, l.name);
        if (l.note[0]) {
            cli_text_addf(out, "<br>");
            cli_html_text(out, l.note);
        }
        cli_text_addf(out, "</tr>\n");
    }
    cli_text_addf(out, "</table>\n");
}

void cli_compression_html(const sn_quantize_report *report, const char *model, cli_text *out) {
    sn_quantize_summary s;
    sn_quantize_report_summary(report, &s);
    cli_html_begin(out, "Compression", model);
    cli_text_addf(out, "<p>%zu of %zu layers changed. Weights: %.1f kB before, %.1f kB after.",
                  s.quantized_count, s.layer_count, (double)s.bytes_before * 1e-3,
                  (double)s.bytes_after * 1e-3);
    if (s.cosine >= 0)
        cli_text_addf(out,
                      "<br>Loss over %zu samples: %.3g; 1 - cosine %.3g, top-1 disagreement %.2f "
                      "%%, KL divergence %.3g.",
                      s.sample_count, s.loss, s.cosine, 100 * s.top1, s.kl);
    if (s.ns_after)
        cli_text_addf(out, "<br>A run: %.3f ms before, %.3f ms after.", (double)s.ns_before * 1e-6,
                      (double)s.ns_after * 1e-6);
    cli_text_addf(out, "</p>\n");
    add_trials(report, &s, out);
    add_layers(report, out);
    cli_text_addf(out, "</body></html>\n");
}
