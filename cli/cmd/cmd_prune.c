/* cmd_prune.c - sinter prune: a model with weights set to 0, and what that costs. */
#include "cli/cmd/commands.h"
#include "cli/cmd/compress.h"

typedef struct settings {
    cli_compress common; /* first: the shared options are read through it */
    sn_prune_options options;
} settings;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    static const char *const patterns[] = {"unstructured", "2:4", NULL};
    settings *s = ctx;
    int taken = cli_compress_take(&s->common, args, id, value);
    if (taken) return taken > 0;
    if (id == OPT_SPARSITY) {
        if (!cli_compress_part(args, value, &s->options.sparsity)) return false;
        if (s->options.sparsity > 0 && s->options.sparsity < 1) return true;
        cli_complain("prune: --sparsity wants a part between 0 and 1, such as 80%%");
        return false;
    }
    if (id != OPT_PATTERN) return false;
    int at = cli_compress_word(args, value, patterns);
    s->options.pattern = (sn_prune_pattern)at;
    return at >= 0;
}

static sn_status prune(void *ctx, const sn_model *model, const sn_quantize_options *options,
                       sn_model **out, sn_quantize_report **report, sn_error *err) {
    settings *s = ctx;
    s->options.common = options;
    return sn_prune(model, &s->options, out, report, err);
}

int cli_cmd_prune(cli_args *args) {
    settings s;
    cli_compress_init(&s.common, args);
    sn_prune_options_init(&s.options, sizeof s.options);
    return cli_compress_run(&s.common, args, take_option, prune, &s);
}
