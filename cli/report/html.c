/* html.c - what pages of reports have in common. */
#include "cli/report/html.h"

void cli_html_text(cli_text *out, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<':
            cli_text_addf(out, "&lt;");
            break;
        case '>':
            cli_text_addf(out, "&gt;");
            break;
        case '&':
            cli_text_addf(out, "&amp;");
            break;
        case '"':
            cli_text_addf(out, "&quot;");
            break;
        default:
            if ((unsigned char)*text >= 32) cli_text_add(out, text, 1);
        }
    }
}

void cli_html_begin(cli_text *out, const char *title, const char *heading) {
    cli_text_addf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n"
        "<style>\n"
        "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;"
        "color:#222;background:#fff}\n"
        "h1{font-size:20px}h2{font-size:16px;margin-top:2em}\n"
        "table{border-collapse:collapse;width:100%%;font-size:13px}\n"
        "td,th{padding:2px 8px;text-align:right;border-bottom:1px solid "
        "#e4e4e4;white-space:nowrap}\n"
        "td.l,th.l{text-align:left}td.n{max-width:28em;overflow:hidden;text-overflow:ellipsis}\n"
        ".bar{background:#d9e6f5;height:1em;display:inline-block;vertical-align:middle}\n"
        ".bar b{background:#2f6db3;height:1em;display:block}\n"
        "svg text{font:11px system-ui,sans-serif;fill:#444}\n"
        "</style></head><body>\n<h1>",
        title);
    cli_html_text(out, heading);
    cli_text_addf(out, "</h1>\n");
}
