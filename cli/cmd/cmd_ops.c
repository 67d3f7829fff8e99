/* cmd_ops.c - sinter ops: the operators that this build knows. */
#include "cli/cmd/commands.h"

/* Text of a Markdown table cell. */
static void add_cell(cli_text *out, const char *text) {
    cli_text_addf(out, " ");
    for (; *text; text++) {
        if (*text == '|') cli_text_add(out, "\\", 1);
        cli_text_add(out, text, 1);
    }
    cli_text_addf(out, " |");
}

static void add_markdown(cli_text *out, const sn_operator_info *info) {
    const char *cells[] = {info->name,     info->domain[0] ? info->domain : "ai.onnx",
                           info->versions, info->inputs,
                           info->outputs,  info->types};
    cli_text_add(out, "|", 1);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) add_cell(out, cells[i]);
    cli_text_add(out, "\n", 1);
}

static void add_plain(cli_text *out, const sn_operator_info *info) {
    cli_text_addf(out, "%s%s%s  %s\n", info->domain, info->domain[0] ? "." : "", info->name,
                  info->versions);
    cli_text_addf(out, "    (%s) -> (%s)\n", info->inputs, info->outputs);
    if (info->types[0]) cli_text_addf(out, "    %s\n", info->types);
}

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    if (id == CLI_ARG_OPERAND) return cli_args_surplus(args, value) == CLI_OK;
    *(bool *)ctx = true;
    return true;
}

int cli_cmd_ops(cli_args *args) {
    bool markdown = false;
    int code = cli_args_read(args, take_option, &markdown);
    if (code >= 0) return code;
    cli_text out = {0};
    if (markdown) {
        cli_text_addf(&out, "| Operator | Domain | Opset versions | Inputs | Outputs | Types |\n"
                            "|---|---|---|---|---|---|\n");
    }
    sn_operator_info info;
    size_t count = 0;
    for (; sn_operator(count, &info); count++) {
        if (markdown) {
            add_markdown(&out, &info);
        } else {
            add_plain(&out, &info);
        }
    }
    if (!markdown) cli_text_addf(&out, "%zu operators\n", count);
    cli_text_print(&out);
    cli_text_free(&out);
    return CLI_OK;
}
