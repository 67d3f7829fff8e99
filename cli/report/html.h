/* html.h - pages of a report: one file each, nothing from elsewhere. */
#ifndef CLI_REPORT_HTML_H
#define CLI_REPORT_HTML_H

#include "cli/cli.h"

/* Adds text with the signs escaped that mean something in HTML. */
void cli_html_text(cli_text *out, const char *text);

/* The head of a page, with its style, and a heading. The page ends with "</body></html>". */
void cli_html_begin(cli_text *out, const char *title, const char *heading);

#endif
