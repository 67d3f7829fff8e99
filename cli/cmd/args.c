/* args.c - reads an argument list against a command's options. */
#include "cli/cmd/args.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cli_parse_int(const char *text, int64_t *out) {
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (!isdigit((unsigned char)digits[0])) return false;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (*end || errno == ERANGE) return false;
    *out = number;
    return true;
}

bool cli_parse_real(const char *text, double *out) {
    if (text[0] == 0 || isspace((unsigned char)text[0])) return false;
    char *end;
    double number = strtod(text, &end);
    if (*end || !isfinite(number)) return false;
    *out = number;
    return true;
}

static const cli_option *find_long(const cli_command *command, const char *name, size_t length) {
    for (const cli_option *option = command->options; option->id; option++) {
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0) {
            return option;
        }
    }
    return NULL;
}

static const cli_option *find_short(const cli_command *command, char letter) {
    for (const cli_option *option = command->options; option->id; option++) {
        if (option->letter == letter) return option;
    }
    return NULL;
}

static int unknown_option(const cli_args *args, const char *item) {
    cli_complain("%s: unknown option '%s'; see sinter %s --help", args->command->name, item,
                 args->command->name);
    return CLI_ARG_ERROR;
}

/* `attached` is the value that came with the option's own word, or NULL. */
static int take_value(cli_args *args, const cli_option *option, const char *attached,
                      const char **value) {
    args->option = option;
    *value = attached;
    if (!option->value && attached) {
        cli_complain("%s: option --%s takes no value", args->command->name, option->name);
        return CLI_ARG_ERROR;
    }
    if (option->value && !attached) {
        if (args->at >= args->count) {
            cli_complain("%s: option --%s needs a value %s", args->command->name, option->name,
                         option->value);
            return CLI_ARG_ERROR;
        }
        *value = args->items[args->at++];
    }
    return option->id;
}

int cli_args_next(cli_args *args, const char **value) {
    *value = NULL;
    args->option = NULL;
    if (args->at >= args->count) return CLI_ARG_END;
    const char *item = args->items[args->at++];
    if (args->only_operands || item[0] != '-' || item[1] == 0) {
        *value = item;
        return CLI_ARG_OPERAND;
    }
    if (strcmp(item, "--") == 0) {
        args->only_operands = true;
        return cli_args_next(args, value);
    }
    if (strcmp(item, "--help") == 0 || strcmp(item, "-h") == 0) {
        cli_print_help(args->command);
        return CLI_ARG_HELP;
    }
    if (item[1] == '-') {
        const char *equals = strchr(item, '=');
        size_t length = equals ? (size_t)(equals - item) - 2 : strlen(item) - 2;
        const cli_option *option = find_long(args->command, item + 2, length);
        return option ? take_value(args, option, equals ? equals + 1 : NULL, value)
                      : unknown_option(args, item);
    }
    const cli_option *option = find_short(args->command, item[1]);
    return option ? take_value(args, option, item[2] ? item + 2 : NULL, value)
                  : unknown_option(args, item);
}

int cli_args_read(cli_args *args, cli_take_fn take, void *ctx) {
    const char *value;
    for (int id; (id = cli_args_next(args, &value)) != CLI_ARG_END;) {
        if (id == CLI_ARG_HELP) return CLI_OK;
        if (id == CLI_ARG_ERROR || !take(args, id, value, ctx)) return CLI_USAGE;
    }
    return -1;
}

bool cli_args_int(const cli_args *args, const char *value, int64_t low, int64_t high,
                  int64_t *out) {
    int64_t number = 0;
    if (cli_parse_int(value, &number) && number >= low && number <= high) {
        *out = number;
        return true;
    }
    cli_complain("%s: --%s wants a whole number from %lld to %lld, not '%s'", args->command->name,
                 args->option->name, (long long)low, (long long)high, value);
    return false;
}

bool cli_args_real(const cli_args *args, const char *value, double low, double high, double *out) {
    double number = 0;
    if (cli_parse_real(value, &number) && number >= low && number <= high) {
        *out = number;
        return true;
    }
    cli_complain("%s: --%s wants a number from %g to %g, not '%s'", args->command->name,
                 args->option->name, low, high, value);
    return false;
}

int cli_args_surplus(const cli_args *args, const char *operand) {
    cli_complain("%s: '%s' is one operand too many; see sinter %s --help", args->command->name,
                 operand, args->command->name);
    return CLI_USAGE;
}

int cli_args_missing(const cli_args *args, const char *what) {
    cli_complain("%s: no %s given; see sinter %s --help", args->command->name, what,
                 args->command->name);
    return CLI_USAGE;
}

void cli_print_help(const cli_command *command) {
    printf("usage: sinter %s%s%s%s\n\n%s\n", command->name,
           command->options->id ? " [option]..." : "", command->operands[0] ? " " : "",
           command->operands, command->summary);
    if (command->options->id) puts("\noptions:");
    for (const cli_option *option = command->options; option->id; option++) {
        char left[64];
        char letter[8] = "    ";
        if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->value ? " " : "",
                 option->value ? option->value : "");
        printf("  %-30s %s\n", left, option->help);
    }
    if (command->notes) printf("\n%s\n", command->notes);
}
