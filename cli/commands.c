/* commands.c - the table of commands: names, options and all help texts. */
#include "commands.h"

#define END_OF_OPTIONS \
    { 0, 0, NULL, NULL, NULL }

static const cli_option test_options[] = {
    {OPT_JOBS, 'j', "jobs", "N", "cases at once (default: the CPUs this process may use)"},
    {OPT_TIMEOUT, 't', "timeout", "SECONDS", "for one case (default: 60)"},
    {OPT_MATCH, 'm', "match", "TEXT", "only cases whose name contains TEXT"},
    {OPT_EXPECT_FAIL, 0, "expect-fail", "FILE", "cases that are known to fail, one name a line"},
    {OPT_JSON, 0, "json", "FILE", "write every case's verdict to FILE"},
    {OPT_THREADS, 0, "threads", "N", "threads of one run (default: 1; 0: all CPUs)"},
    {OPT_OPTIMIZE, 'O', "optimize", "LEVEL", "0 none, 1 clean-ups, 2 fusions, 3 all (default)"},
    {OPT_RTOL, 0, "rtol", "R", "relative tolerance (default: 1e-3)"},
    {OPT_ATOL, 0, "atol", "A", "absolute tolerance (default: 1e-7)"},
    {OPT_VERBOSE, 'v', "verbose", NULL, "name the cases that pass or are skipped, too"},
    END_OF_OPTIONS,
};

static const char test_notes[] =
    "Each DIR is searched for folders with a model.onnx and test_data_set_*/input_*.pb and\n"
    "output_*.pb, the layout of the ONNX backend tests. A data.json beside the model may set\n"
    "\"rtol\" and \"atol\" for its case. Every case runs in a process of its own: a crash or a "
    "hang\n"
    "is a failure of that case alone. Cases without data sets are skipped.\n"
    "\n"
    "A case passes when each output has the expected type and shape and every number satisfies\n"
    "|got - want| <= atol + rtol * |want|; strings must be equal.\n"
    "\n"
    "The file of --expect-fail holds names as this command shows them, or more of their path, and\n"
    "comments after '#'. A listed case that fails counts as passed; one that passes is a failure,\n"
    "so that the list can only shrink.";

const cli_command cli_commands[] = {
    {"test", "Run ONNX backend test folders and compare the results.", "DIR...", test_options,
     test_notes, cli_cmd_test},
    {0},
};
