/* compression.h - what quantising or pruning a model has found out, shown. */
#ifndef CLI_REPORT_COMPRESSION_H
#define CLI_REPORT_COMPRESSION_H

#include "cli/cli.h"

#include "sinter_quantize.h"

void cli_compression_table(const sn_quantize_report *report, const char *path, cli_text *out);
void cli_compression_json(const sn_quantize_report *report, cli_text *out);
/* A page: losses against times, the layers, histograms of their inputs. */
void cli_compression_html(const sn_quantize_report *report, const char *model, cli_text *out);

#endif
