/* cmd_devices.c - sinter devices: what models can run on, and what a session's providers took. */
#include "cli/cmd/commands.h"
#include "cli/cmd/providers.h"

#include <stdlib.h>
#include <string.h>

static void show_line(void *ctx, sn_log_level level, const char *text) {
    (void)ctx;
    if (level <= SN_LOG_WARNING) cli_complain("%s", text);
}

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    co_providers unused = {0};
    (void)ctx;
    if (id == CLI_ARG_OPERAND) return cli_args_surplus(args, value) == CLI_OK;
    return cli_provider_take(&unused, args, id, value) > 0;
}

static void add_types(cli_text *out, uint32_t types) {
    bool first = true;
    cli_text_addf(out, "    types    ");
    for (int t = 1; t < 32; t++) {
        if (!(types >> t & 1) || strcmp(sn_dtype_name((sn_dtype)t), "undefined") == 0) continue;
        cli_text_addf(out, "%s%s", first ? "" : " ", sn_dtype_name((sn_dtype)t));
        first = false;
    }
    cli_text_addf(out, "%s\n", first ? "not said" : "");
}

static void add_line(cli_text *out, const char *label, const char *value) {
    if (value[0]) cli_text_addf(out, "    %-8s %s\n", label, value);
}

static void add_device(cli_text *out, const sn_device_info *d) {
    cli_text_addf(out, "%s:%d  %s  %s\n", d->provider, d->index, d->kind, d->name);
    add_line(out, "vendor", d->vendor);
    add_line(out, "driver", d->driver);
    add_line(out, "version", d->revision);
    if (d->memory_bytes) {
        cli_text_addf(out, "    memory   ");
        cli_text_add_bytes(out, d->memory_bytes);
        cli_text_addf(out, "\n");
    }
    add_types(out, d->types);
    add_line(out, "library", d->library);
    if (d->unusable) cli_text_addf(out, "    NOT USABLE: %s\n", d->unusable);
}

int cli_cmd_devices(cli_args *args) {
    int code = cli_args_read(args, take_option, NULL);
    if (code >= 0) return code;
    sn_provider_search(NULL, show_line, NULL);
    cli_text out = {0};
    sn_device_info d;
    for (size_t i = 0; sn_device(i, &d); i++) add_device(&out, &d);
    cli_text_print(&out);
    cli_text_free(&out);
    return CLI_OK;
}

/* ---- What a session's providers took ------------------------------------------------------- */

void cli_add_providers(cli_text *out, const sn_session *session) {
    sn_provider_share s;
    for (size_t i = 0; sn_session_provider(session, i, &s); i++) {
        if (i == 0) cli_text_addf(out, "provider           nodes  parts  left to others  device\n");
        cli_text_addf(out, "%-16s %7zu %6zu %15zu  %s\n", s.provider, s.nodes, s.parts, s.refused,
                      s.device);
    }
}

void cli_add_refusals(cli_text *out, const sn_session *session) {
    sn_provider_refusal r;
    for (size_t i = 0; sn_session_refusal(session, i, &r); i++) {
        if (i == 0) cli_text_addf(out, "not taken\n");
        cli_text_addf(out, "  %s: %s '", r.provider, r.op);
        cli_text_add_name(out, r.node);
        cli_text_addf(out, "': %s\n", r.reason);
    }
}
