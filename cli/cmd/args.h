/* args.h - commands, their options, and the reading of an argument list against them. */
#ifndef CLI_CMD_ARGS_H
#define CLI_CMD_ARGS_H

#include "cli/cli.h"
#include "common/provider_use.h"

/* What cli_args_next returns besides option ids, which are above 0. */
enum { CLI_ARG_END = 0, CLI_ARG_OPERAND = -1, CLI_ARG_ERROR = -2, CLI_ARG_HELP = -3 };

typedef struct cli_option {
    int id;
    char letter;       /* short form, or 0 */
    const char *name;  /* long form without its dashes */
    const char *value; /* what its argument is called in the help; NULL: it takes none */
    const char *help;
} cli_option;

typedef struct cli_args cli_args;

typedef struct cli_command {
    const char *name;
    const char *summary;       /* one line */
    const char *operands;      /* as the usage line shows them */
    const cli_option *options; /* ends with id 0 */
    const char *notes;         /* paragraphs below the options, or NULL */
    int (*run)(cli_args *args);
} cli_command;

struct cli_args {
    const cli_command *command;
    int count;
    char **items;
    int at;
    bool only_operands;       /* "--" was seen */
    const cli_option *option; /* the one returned last */
};

/* The next option or operand; `*value` is its argument or the operand itself. Errors have been
 * complained about already; CLI_ARG_HELP: the help has been printed. */
int cli_args_next(cli_args *args, const char **value);

/* Takes an option or operand; false when it is wrong and has been complained about. */
typedef bool (*cli_take_fn)(cli_args *args, int id, const char *value, void *ctx);

/* Gives every option and operand to `take`. -1: all are read; else the exit code to end with. */
int cli_args_read(cli_args *args, cli_take_fn take, void *ctx);

/* Numbers given to the option returned last; complain and return false when out of range. */
bool cli_args_int(const cli_args *args, const char *value, int64_t low, int64_t high, int64_t *out);
bool cli_args_real(const cli_args *args, const char *value, double low, double high, double *out);

/* Complains that `operand` is one too many; returns CLI_USAGE. */
int cli_args_surplus(const cli_args *args, const char *operand);
/* Complains that an operand is missing; returns CLI_USAGE. */
int cli_args_missing(const cli_args *args, const char *what);

void cli_print_help(const cli_command *command);

/* A strict decimal number over the whole of `text`. */
bool cli_parse_int(const char *text, int64_t *out);
bool cli_parse_real(const char *text, double *out);

/* Values of --disable-rule, borrowed from the argument list. */
enum { CLI_MAX_RULES = 64 };
typedef struct cli_rule_names {
    const char *names[CLI_MAX_RULES];
    size_t count;
} cli_rule_names;

/* Takes --provider and --provider-library, whose library it loads. 1: taken, 0: another option, -1:
 * wrong. */
int cli_provider_take(co_providers *p, cli_args *args, int id, const char *value);

#endif
