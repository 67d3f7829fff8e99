/* routes.h - which path is whose business, and what it takes: a table (routes.c). */
#ifndef SRV_API_ROUTES_H
#define SRV_API_ROUTES_H

#include "server/ops/auth.h"
#include "server/net/http.h"

typedef enum srv_body_kind {
    SRV_BODY_NONE,  /* a body is read and ignored */
    SRV_BODY_TEXT,  /* small JSON */
    SRV_BODY_INFER, /* up to the body limit; tensors may follow the text */
} srv_body_kind;

/* Sets of routes. A listener offers some of them (srv_listener.routes). */
enum { SRV_ROUTES_MAIN = 1, SRV_ROUTES_METRICS = 2 };

struct srv_route {
    const char *method;
    const char *pattern; /* segments; ":m" a model's name, ":v" a version */
    srv_group group;     /* who may use it */
    srv_body_kind body;
    int sets;                       /* that it is in */
    void (*handle)(srv_http *http); /* the whole request is there: answers or waits */
    /* INFER with an inference header: the text is there, segments are to be set up. False:
     * answered. */
    bool (*text_there)(srv_http *http);
};

/* Finds the route among the offered sets and fills in the path's variables. SRV_OK, SRV_NOT_FOUND,
 * SRV_BAD_METHOD (with *allow set) or SRV_INVALID. */
srv_code srv_route_find(srv_http *http, int offered, const char **allow);

/* rest.c, rest_infer.c, rest_admin.c, metrics.c */
void srv_rest_live(srv_http *http);
void srv_rest_ready(srv_http *http);
void srv_rest_server(srv_http *http);
void srv_rest_model(srv_http *http);
void srv_rest_model_ready(srv_http *http);
void srv_rest_config(srv_http *http);
void srv_rest_infer(srv_http *http);
bool srv_rest_infer_text(srv_http *http);
void srv_rest_stats(srv_http *http);
void srv_rest_index(srv_http *http);
void srv_rest_load(srv_http *http);
void srv_rest_unload(srv_http *http);
void srv_rest_trace_get(srv_http *http);
void srv_rest_trace_set(srv_http *http);
void srv_rest_logging_get(srv_http *http);
void srv_rest_logging_set(srv_http *http);
void srv_rest_metrics(srv_http *http);
void srv_rest_page(srv_http *http);

#endif
