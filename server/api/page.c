/* page.c - the page at /: page.html, which the build puts into the program. */
#include "server/api/routes.h"

extern const unsigned char srv_page_html[];
extern const unsigned srv_page_size;

static const char headers[] =
    "Cache-Control: no-cache\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; connect-src 'self'; img-src blob: data:; base-uri 'none'; form-action "
    "'none'; frame-ancestors 'none'\r\n";

void srv_rest_page(srv_http *http) {
    srv_text_add(&http->out, srv_page_html, srv_page_size);
    srv_http_reply(http, SRV_OK, "text/html; charset=utf-8", headers);
}
