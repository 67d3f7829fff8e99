/* cmd_load.c - sinter load: options of the load generator. */
#include "cli/cmd/commands.h"

#include "server/load/load.h"

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    srv_load_options *o = ctx;
    int64_t number;
    switch (id) {
    case CLI_ARG_OPERAND:
        if (o->url) return cli_args_surplus(args, value) == CLI_OK;
        o->url = value;
        return true;
    case OPT_MODEL:
        o->model = value;
        return true;
    case OPT_VERSION_OF:
        o->version = value;
        return true;
    case OPT_CONCURRENCY:
        if (!cli_args_int(args, value, 1, 10000, &number)) return false;
        o->concurrency = (int)number;
        return true;
    case OPT_RATE:
        return cli_args_real(args, value, 0, 1e7, &o->rate);
    case OPT_SECONDS:
        return cli_args_real(args, value, 0.1, 1e6, &o->seconds);
    case OPT_WARMUP:
        return cli_args_real(args, value, 0, 1e6, &o->warm_up);
    case OPT_RAMP:
        return cli_args_real(args, value, 0, 1e6, &o->ramp);
    case OPT_OPEN:
        return cli_args_int(args, value, 1, INT32_MAX, &o->open);
    case OPT_SHAPE:
        if (o->shape_count == SRV_LOAD_SHAPES) {
            cli_complain("more than %d shapes are given", SRV_LOAD_SHAPES);
            return false;
        }
        o->shapes[o->shape_count++] = value;
        return true;
    case OPT_TOKEN:
        o->token = value;
        return true;
    case OPT_JSON_TENSORS:
        o->json_tensors = true;
        return true;
    case OPT_JSON:
        o->report_json = true;
        return true;
    default:
        o->quiet = true;
        return true;
    }
}

int cli_cmd_load(cli_args *args) {
    srv_load_options options;
    sn_error err = {0};
    srv_load_options_init(&options);
    int code = cli_args_read(args, take_option, &options);
    if (code >= 0) return code;
    if (!options.url) return cli_args_missing(args, "URL");
    if (!options.model) {
        cli_complain("which model? give its name with --model");
        return CLI_USAGE;
    }
    sn_status status = srv_load(&options, &err);
    if (status == SN_OK) return CLI_OK;
    return cli_complain_error(NULL, &err,
                              status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_RUN_FAILED);
}
