/* cmd_quantize.c - sinter quantize: a model in fewer bits, and what that costs and gains. */
#include "cli/cmd/commands.h"
#include "cli/cmd/compress.h"

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    static const char *const precisions[] = {"int8", "int8-dynamic", "int4",  "int2",
                                             "fp16", "bf16",         "mixed", NULL};
    static const char *const targets[] = {"this", "any", "avx2", "vnni", "amx", "neon", NULL};
    static const char *const ways[] = {"auto", "minmax", "percentile", "entropy", "mse", NULL};
    cli_compress *c = ctx;
    int64_t number;
    int at = 0, taken = cli_compress_take(c, args, id, value);
    if (taken) return taken > 0;
    switch (id) {
    case OPT_TO:
        at = cli_compress_word(args, value, precisions);
        c->options.to = (sn_quantize_to)(at + 1);
        break;
    case OPT_TARGET:
        at = cli_compress_word(args, value, targets);
        c->options.target = (sn_quantize_target)at;
        break;
    case OPT_CALIBRATION:
        at = cli_compress_word(args, value, ways);
        c->options.calibration = (sn_calibration)at;
        break;
    case OPT_BLOCK:
        if (!cli_args_int(args, value, 16, 256, &number)) return false;
        c->options.block_size = (int)number;
        break;
    case OPT_SLOWER:
        c->options.may_be_slower = true;
        break;
    default:
        return false;
    }
    return at >= 0;
}

static sn_status quantize(void *ctx, const sn_model *model, const sn_quantize_options *options,
                          sn_model **out, sn_quantize_report **report, sn_error *err) {
    (void)ctx;
    return sn_quantize(model, options, out, report, err);
}

int cli_cmd_quantize(cli_args *args) {
    cli_compress c;
    cli_compress_init(&c, args);
    return cli_compress_run(&c, args, take_option, quantize, &c);
}
