/* compression.c - what quantising or pruning has found out, as text and as JSON. */
#include "cli/report/compression.h"
#include "cli/formats/json_write.h"

/* ---- Text --------------------------------------------------------------------------------- */

static void add_number(cli_text *out, const char *format, double v, bool known) {
    if (known)
        cli_text_addf(out, format, v);
    else
        cli_text_addf(out, " %9s", "-");
}

static void add_layers(const sn_quantize_report *report, cli_text *out) {
    sn_quantize_layer l;
    cli_text_addf(out, "  %-8s %-12s %9s %9s %9s %9s %9s %8s  %s\n", "operator", "precision", "kB",
                  "kB before", "loss", "us", "us before", "zeros", "layer");
    for (size_t i = 0; sn_quantize_report_layer(report, i, &l); i++) {
        cli_text_addf(out, "  %-8s %-12s %9.1f %9.1f", l.op, sn_quantize_to_name(l.precision),
                      (double)l.bytes_after * 1e-3, (double)l.bytes_before * 1e-3);
        add_number(out, " %9.2e", l.loss, l.loss >= 0);
        add_number(out, " %9.1f", (double)l.ns_after * 1e-3, l.ns_after > 0);
        add_number(out, " %9.1f", (double)l.ns_before * 1e-3, l.ns_before > 0);
        cli_text_addf(out, " %7.1f%%  ", 100 * l.sparsity);
        cli_text_add_name(out, l.name);
        if (l.note[0]) cli_text_addf(out, " (%s)", l.note);
        cli_text_addf(out, "\n");
    }
}

static void add_summary(const sn_quantize_summary *s, cli_text *out) {
    cli_text_addf(out, "  %zu of %zu layers changed; weights ", s->quantized_count, s->layer_count);
    cli_text_add_bytes(out, s->bytes_before);
    cli_text_addf(out, " before, ");
    cli_text_add_bytes(out, s->bytes_after);
    cli_text_addf(out, " after");
    if (s->sparsity > 0) cli_text_addf(out, "; %.1f %% of them 0", 100 * s->sparsity);
    if (s->calibration[0]) cli_text_addf(out, "; ranges by %s", s->calibration);
    if (s->smoothed) cli_text_addf(out, "; scales moved to weights");
    if (s->bias_corrected) cli_text_addf(out, "; biases corrected");
    cli_text_addf(out, "\n");
    if (s->loss >= 0 || s->cosine >= 0)
        cli_text_addf(out,
                      "  loss over %zu samples  %.3g; 1 - cosine %.3g, top-1 disagreement %.2f %%, "
                      "KL %.3g\n",
                      s->sample_count, s->loss, s->cosine, 100 * s->top1, s->kl);
    if (s->ns_after)
        cli_text_addf(out, "  time of a run  %.3f ms before, %.3f ms after (%.2f times as fast)\n",
                      (double)s->ns_before * 1e-6, (double)s->ns_after * 1e-6,
                      (double)s->ns_before / (double)s->ns_after);
}

void cli_compression_table(const sn_quantize_report *report, const char *path, cli_text *out) {
    sn_quantize_summary s;
    sn_quantize_trial t;
    sn_quantize_report_summary(report, &s);
    cli_text_add_name(out, path);
    cli_text_addf(out, "\n");
    add_layers(report, out);
    for (size_t i = 0; sn_quantize_report_trial(report, i, &t); i++) {
        if (i == 0) cli_text_addf(out, "  tried\n");
        cli_text_addf(out, "    %-40s loss %.3g\n", t.what, t.loss);
    }
    add_summary(&s, out);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void put_number(cli_json *json, const char *key, double v) {
    cli_json_key(json, key);
    cli_json_number(json, v);
}

static void put_count(cli_json *json, const char *key, uint64_t v) {
    cli_json_key(json, key);
    cli_json_unsigned(json, v);
}

static void put_text(cli_json *json, const char *key, const char *v) {
    cli_json_key(json, key);
    cli_json_cstring(json, v);
}

static void put_layer(cli_json *json, const sn_quantize_layer *l) {
    cli_json_begin(json, '{');
    put_text(json, "name", l->name);
    put_text(json, "operator", l->op);
    put_text(json, "precision", sn_quantize_to_name(l->precision));
    put_text(json, "note", l->note);
    put_count(json, "bytes_before", l->bytes_before);
    put_count(json, "bytes_after", l->bytes_after);
    put_count(json, "ns_before", l->ns_before);
    put_count(json, "ns_after", l->ns_after);
    put_number(json, "loss", l->loss);
    put_number(json, "weight_error", l->weight_error);
    put_number(json, "sparsity", l->sparsity);
    put_number(json, "low", (double)l->low);
    put_number(json, "high", (double)l->high);
    cli_json_end(json, '}');
}

static void put_trial(cli_json *json, const sn_quantize_trial *t) {
    cli_json_begin(json, '{');
    put_text(json, "what", t->what);
    put_number(json, "loss", t->loss);
    put_count(json, "ns", t->ns);
    put_count(json, "bytes", t->bytes);
    cli_json_end(json, '}');
}

static void put_summary(cli_json *json, const sn_quantize_summary *s) {
    put_number(json, "loss", s->loss);
    put_number(json, "cosine", s->cosine);
    put_number(json, "top1", s->top1);
    put_number(json, "kl", s->kl);
    put_count(json, "ns_before", s->ns_before);
    put_count(json, "ns_after", s->ns_after);
    put_count(json, "bytes_before", s->bytes_before);
    put_count(json, "bytes_after", s->bytes_after);
    put_count(json, "layers_changed", s->quantized_count);
    put_count(json, "samples", s->sample_count);
    put_text(json, "calibration", s->calibration);
    cli_json_key(json, "smoothed");
    cli_json_bool(json, s->smoothed);
    cli_json_key(json, "bias_corrected");
    cli_json_bool(json, s->bias_corrected);
    put_number(json, "sparsity", s->sparsity);
}

void cli_compression_json(const sn_quantize_report *report, cli_text *out) {
    cli_json json = {.out = out};
    sn_quantize_summary s;
    sn_quantize_layer l;
    sn_quantize_trial t;
    sn_quantize_report_summary(report, &s);
    cli_json_begin(&json, '{');
    put_summary(&json, &s);
    cli_json_key(&json, "layers");
    cli_json_begin(&json, '[');
    for (size_t i = 0; sn_quantize_report_layer(report, i, &l); i++) put_layer(&json, &l);
    cli_json_end(&json, ']');
    cli_json_key(&json, "trials");
    cli_json_begin(&json, '[');
    for (size_t i = 0; sn_quantize_report_trial(report, i, &t); i++) put_trial(&json, &t);
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
}
