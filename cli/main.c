/* main.c - the sinter program: picks a command and runs it. */
#include "cli/cmd/commands.h"

#include <stdio.h>
#include <string.h>

static void print_usage(void) {
    puts("usage: sinter COMMAND [option]... [operand]...\n\n"
         "Sinter runs ONNX models.\n\n"
         "commands:");
    for (const cli_command *command = cli_commands; command->name; command++) {
        printf("  %-10s %s\n", command->name, command->summary);
    }
    puts("\n  sinter COMMAND --help   shows a command's options\n"
         "  sinter --version        shows the version\n\n"
         "exit codes:\n"
         "  0  done\n"
         "  1  a test or a comparison failed\n"
         "  2  wrong options or operands\n"
         "  3  the model or an input could not be read\n"
         "  4  the run failed, or its results could not be written");
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        cli_complain("no command given; see sinter --help");
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        print_usage();
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("sinter %s\n", sn_version());
        return CLI_OK;
    }
    bool help = strcmp(argv[1], "help") == 0;
    const char *name = argv[help ? 2 : 1];
    for (const cli_command *command = cli_commands; command->name; command++) {
        if (strcmp(command->name, name) != 0) continue;
        if (help) {
            cli_print_help(command);
            return CLI_OK;
        }
        cli_args args = {.command = command, .count = argc, .items = argv, .at = 2};
        return command->run(&args);
    }
    cli_complain("there is no command '%s'; see sinter --help", name);
    return CLI_USAGE;
}

int main(int argc, char **argv) {
    int code = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (code == CLI_OK) {
            cli_complain("cannot write the output");
            code = CLI_RUN_FAILED;
        }
    }
    return code;
}
