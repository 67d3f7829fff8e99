/* commands.c - the table of commands: names, options and all help texts. */
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"

static const cli_option test_options[] = {
    {OPT_JOBS, 'j', "jobs", "N", "cases at once (default: the CPUs this process may use)"},
    {OPT_TIMEOUT, 't', "timeout", "SECONDS", "for one case (default: 60)"},
    {OPT_MATCH, 'm', "match", "TEXT", "only cases whose name contains TEXT"},
    {OPT_EXPECT_FAIL, 0, "expect-fail", "FILE", "cases that are known to fail, one name a line"},
    {OPT_JSON, 0, "json", "FILE", "write every case's verdict to FILE"},
    OPTION_THREADS("1; 0: all CPUs"),
    OPTION_OPTIMIZE,
    OPTION_DISABLE_RULE,
    OPTION_PRECISION,
    OPTIONS_PROVIDER,
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
    "so that the list can only shrink. A name after '?' is of a case that chance decides: it is\n"
    "run and counts as skipped.";

static const cli_option run_options[] = {
    OPTION_INPUT,
    {OPT_OUTPUT, 'o', "output", "DIR", "save each output to a file in DIR"},
    {OPT_FORMAT, 0, "format", "npy|pb", "of saved outputs (default: npy)"},
    {OPT_TOP, 0, "top", "K", "show the K largest class scores"},
    {OPT_RANDOM, 0, "random", NULL, "make random values for inputs that are not given"},
    OPTION_SEED,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONVERT,
    OPTION_THREADS("all CPUs"),
    OPTIONS_LIMITS,
    OPTION_OPTIMIZE,
    OPTION_DISABLE_RULE,
    OPTION_PRECISION,
    OPTION_CACHE,
    OPTION_CACHE_LIMIT,
    OPTION_OP_LIBRARY,
    OPTIONS_PROVIDER,
    OPTION_STRICT,
    OPTIONS_IMAGE,
    END_OF_OPTIONS,
};

static const char run_notes[] =
    "Inputs are read by the ending of their name:\n"
    "  .npy, .npz      numpy; an .npz without NAME= gives every input of its members' names\n"
    "  .pb             ONNX TensorProto, SequenceProto or OptionalProto\n"
    "  .json           nested arrays of numbers, bools or strings\n"
    "  .png .jpg       a picture, resized to the input's height and width;\n"
    "                  a number is (pixel * scale - mean) / std, pixels go from 0 to 255\n"
    "  .bin .raw       bare elements, little endian, in the input's type and shape\n"
    "Dimensions that neither the model nor an option fixes are 1 in random inputs. Random\n"
    "floating-point numbers lie between 0 and 1, random integers are 0 or 1.";

static const cli_option inspect_options[] = {
    {OPT_STAGE, 's', "stage", "STAGE",
     "print the graph: as imported (import), optimised (opt) or "
     "planned (plan)"},
    {OPT_JSON, 0, "json", NULL, "print the facts as JSON"},
    {OPT_WEIGHTS, 'w', "weights", "N", "show the N largest weights (default: 5)"},
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_THREADS("all CPUs"),
    OPTIONS_LIMITS,
    OPTION_OPTIMIZE,
    OPTION_DISABLE_RULE,
    OPTION_PRECISION,
    OPTION_OP_LIBRARY,
    OPTIONS_PROVIDER,
    OPTION_STRICT,
    END_OF_OPTIONS,
};

static const char inspect_notes[] =
    "The weights themselves are not read. Operators that this build cannot run are marked\n"
    "UNSUPPORTED. The stage plan runs the model once with random inputs, whose free dimensions\n"
    "are 1 unless --shape or --dim says otherwise.";

static const cli_option bench_options[] = {
    {OPT_RUNS, 'n', "runs", "N", "measure N runs"},
    {OPT_SECONDS, 't', "seconds", "S", "measure for S seconds (default: 3), at least 5 runs"},
    {OPT_WARMUP, 0, "warm-up", "N", "runs before the measured ones (default: 3, at least 1)"},
    {OPT_JSON, 0, "json", NULL, "print the figures as JSON"},
    {OPT_SHAPES, 0, "shapes", "LIST",
     "several shapes in rotation: T=16;T=32, N=1,T=8;N=4,T=8, T=1..64"},
    OPTION_INPUT,
    OPTION_SEED,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONVERT,
    OPTION_THREADS("all CPUs"),
    OPTIONS_LIMITS,
    OPTION_OPTIMIZE,
    OPTION_DISABLE_RULE,
    OPTION_PRECISION,
    OPTION_CACHE,
    OPTION_CACHE_LIMIT,
    OPTION_OP_LIBRARY,
    OPTIONS_PROVIDER,
    OPTION_STRICT,
    OPTIONS_IMAGE,
    END_OF_OPTIONS,
};

static const char bench_notes[] =
    "Inputs that are not given are random. A warning tells when the figures are unsteady: when\n"
    "the 90th percentile lies more than 20 % above the median, or the last third of the runs is\n"
    "more than 10 % slower or faster than the first.\n"
    "\n"
    "With --shapes each shape runs once and then N times (-n, default 5), in an order that "
    "changes\n"
    "from round to round: the table has the cost of its first run and of the later ones.";

static const cli_option profile_options[] = {
    {OPT_RUNS, 'n', "runs", "N", "watch N runs"},
    {OPT_SECONDS, 't', "seconds", "S", "watch for S seconds (default: 2), at least 3 runs"},
    {OPT_TOP, 0, "top", "K", "show the K longest steps (default: 20)"},
    {OPT_JSON, 0, "json", NULL, "print every step as JSON"},
    {OPT_TRACE, 0, "trace", "FILE", "write the quickest run for chrome://tracing or Perfetto"},
    {OPT_HTML, 0, "html", "FILE", "write a page with bars, a roofline and every step"},
    OPTION_INPUT,
    OPTION_SEED,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONVERT,
    OPTION_THREADS("all CPUs"),
    OPTIONS_LIMITS,
    OPTION_OPTIMIZE,
    OPTION_DISABLE_RULE,
    OPTION_PRECISION,
    OPTION_OP_LIBRARY,
    OPTIONS_PROVIDER,
    OPTION_STRICT,
    OPTIONS_IMAGE,
    END_OF_OPTIONS,
};

static const char profile_notes[] =
    "A step's time is the smallest of all runs, without that of steps in its subgraphs; a step in\n"
    "a loop's body stands for all turns. Peak and memory speed of the machine are measured first.\n"
    "\"roof\" is the least time that the machine needs for a step's multiplications, or for its\n"
    "bytes if that is more, as part of the time it took; what lies in cache can pass 100 %.";

static const cli_option compile_options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "the compiled model, such as model.sinter"},
    {OPT_TUNE, 0, "tune", NULL,
     "measure algorithms for each convolution and dense layer and keep the quickest"},
    OPTION_INPUT,
    OPTION_SEED,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONVERT,
    OPTION_THREADS("all CPUs"),
    OPTIONS_LIMITS,
    OPTION_OPTIMIZE,
    OPTION_DISABLE_RULE,
    OPTION_PRECISION,
    OPTIONS_IMAGE,
    END_OF_OPTIONS,
};

static const char compile_notes[] =
    "The file holds the optimised graph, the weights, and the weights packed for this CPU. Every\n"
    "command takes it in place of the model: it is mapped, ready at once, and processes that use\n"
    "it share its memory. It is for the version of sinter and the kind of CPU that made it; "
    "others\n"
    "refuse it. The model is run once with random inputs to see what has to be packed; free\n"
    "dimensions are 1 unless --shape or --dim says otherwise, and may differ later. With --tune it "
    "is\n"
    "run some tens of times; what is quicker than estimated is told, and holds for every shape.";

static const cli_option optimize_options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "the optimised model, such as model.opt.onnx"},
    {OPT_OPTIMIZE, 'O', "level", "LEVEL", "0 none, 1 clean-ups, 2 fusions, 3 all (default)"},
    {OPT_EXPLAIN, 0, "explain", NULL, "tell which rule fired at which node"},
    OPTION_DISABLE_RULE,
    OPTION_INPUT,
    OPTION_SEED,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_THREADS("all CPUs"),
    OPTIONS_LIMITS,
    END_OF_OPTIONS,
};

static const char optimize_notes[] =
    "The file is an ONNX model of ai.onnx's and com.microsoft's operators; rewrites that only\n"
    "sinter can read are left out (sinter compile keeps them). Both models are run on the same\n"
    "random inputs, whose free dimensions are 1 unless --shape or --dim says otherwise: the exit\n"
    "code is 1 if their outputs differ by more than 1e-3, and 1e-4 of the largest number.";

static const cli_option graph_options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE",
     "the picture: .svg, .png, .pdf; or .dot for Graphviz's text"},
    {OPT_STAGE, 's', "stage", "STAGE",
     "as imported (import), optimised (opt, default) or planned (plan)"},
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_OPTIMIZE,
    OPTION_DISABLE_RULE,
    END_OF_OPTIONS,
};

static const char graph_notes[] =
    "Nodes are boxes with their attributes and the shapes of their weights; what the optimiser\n"
    "fused is orange, with its parts below each other. A planned graph says who runs each node "
    "and\n"
    "where its result stands in memory. Needs the program dot of Graphviz, but for .dot.";

static const cli_option diff_options[] = {
    {OPT_LEVEL, 'l', "level", "LEVEL", "of optimisation, given twice (default: 0 and 3)"},
    {OPT_AGAINST, 0, "against", "LIBRARY",
     "compare with a libonnxruntime.so.1 instead of a second level"},
    {OPT_PRECISION, 0, "precision", "NAME",
     "of the second run: tf32-like, bf16 or fp16; both runs are of one level then (default: 3)"},
    {OPT_RTOL, 0, "rtol", "R", "of a value's largest number (default: 1e-4)"},
    {OPT_ATOL, 0, "atol", "A", "absolute tolerance (default: 1e-7)"},
    {OPT_VERBOSE, 'v', "verbose", NULL, "show every value, not the first that differs alone"},
    OPTION_DISABLE_RULE,
    OPTION_INPUT,
    OPTION_SEED,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONVERT,
    OPTION_THREADS("all CPUs"),
    OPTIONS_PROVIDER,
    OPTIONS_LIMITS,
    END_OF_OPTIONS,
};

static const char diff_notes[] =
    "Runs the model twice on the same inputs and compares every value that both runs make under\n"
    "the same name, in the order of the first run: the first one that differs is where to look.\n"
    "A value differs when |a - b| > atol + rtol * max|a| for an element. The distance in ulp is\n"
    "the number of float32 values between two. Exit code 1: something differs. With --provider "
    "the\n"
    "first run is on the CPU alone.\n"
    "\n"
    "With --against the second run is that of another library with ONNX Runtime's interface, such "
    "as\n"
    "/usr/lib/libonnxruntime.so.1, node by node, without its optimisations; the first is at the\n"
    "level of --level (default: 0, node by node).";

static const cli_option reduce_options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "the small model, such as small.onnx"},
    {OPT_TIMEOUT, 't', "timeout", "SECONDS", "for one run of the command (default: 600)"},
    {OPT_VERBOSE, 'v', "verbose", NULL, "show what the command prints"},
    OPTION_OP_LIBRARY,
    OPTION_STRICT,
    END_OF_OPTIONS,
};

static const char reduce_notes[] =
    "Runs COMMAND with the path of a model as its last argument: first for the whole model, then\n"
    "for parts of it. A part with which the command ends with the same exit code is cut further,\n"
    "until no node and no output can be left out; values that left-out nodes made are inputs of\n"
    "the part, weights that it does not need are gone. A command that a signal ends has exit code\n"
    "128 and the signal's number; the timeout is signal 14. Such as:\n"
    "\n"
    "  sinter reduce big.onnx -o small.onnx -- sinter diff --level 0 --level 3";

static const cli_option devices_options[] = {
    OPTIONS_PROVIDER,
    END_OF_OPTIONS,
};

static const char devices_notes[] =
    "Lists the CPU and the devices of every provider: those of --provider-library, of folders in\n"
    "SINTER_PROVIDER_PATH and of the installation. A device that cannot be used says why.";

#define OPTIONS_COMPRESS                                                                        \
    {OPT_DATA, 0, "data", "DIR", "samples to calibrate and measure with"},                      \
        {OPT_SAMPLES, 0, "samples", "N", "use N of them, evenly spread (default: all)"},        \
        {OPT_MAX_LOSS, 0, "max-loss", "PART", "the most that may be lost, such as 1% or 0.01"}, \
        {OPT_METRIC, 0, "metric", "NAME", "loss: cosine (default), top1 or kl"},                \
        {OPT_TASK, 0, "task", "COMMAND", "loss: of the score that it prints of $SINTER_MODEL"}, \
        {OPT_TEACHER, 0, "teacher", "FILE", "compare with this model instead of MODEL"},        \
        {OPT_KEEP, 0, "keep", "NAME", "leave a layer as it is; repeated"},                      \
        {OPT_HTML, 0, "html", "FILE", "write the report as a page"},                            \
        {OPT_JSON, 0, "json", NULL, "print the report as JSON"}, {                              \
        OPT_STATE, 0, "state", "FILE",                                                          \
            "keep what was measured (default: FILE.state, removed in the end)"                  \
    }

static const cli_option quantize_options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "the quantised model"},
    {OPT_TO, 0, "to", "PRECISION", "int8 (default), int8-dynamic, int4, int2, fp16, bf16 or mixed"},
    {OPT_TARGET, 0, "target", "CPU", "this (default), any, avx2, vnni, amx or neon"},
    OPTIONS_COMPRESS,
    {OPT_CALIBRATION, 0, "calibration", "WAY",
     "auto (default), minmax, percentile, entropy or mse"},
    {OPT_BLOCK, 0, "block", "N", "weights that share a scale: 16, 32 (default), 64, 128 or 256"},
    {OPT_SLOWER, 0, "may-be-slower", NULL, "choose for size; the result may be slower than MODEL"},
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONVERT,
    OPTION_THREADS("all CPUs"),
    OPTIONS_IMAGE,
    END_OF_OPTIONS,
};

static const char quantize_notes[] =
    "DIR holds a sample in each file (of the one input that MODEL needs, read as by sinter run), "
    "in\n"
    "each .npz (a member for each input), or in each folder (NAME.npy for each input, or "
    "input_0.pb,\n"
    "input_1.pb, ...). Without samples int8 measures ranges in every run, and nothing is "
    "compared.\n"
    "\n"
    "Losses are those against MODEL: 1 - cosine of the outputs, the part of rows whose largest\n"
    "number stands elsewhere (top1), or the divergence of their softmax (kl). Where all layers\n"
    "together lose too much, each layer's loss and time alone are measured, and the quickest "
    "choice\n"
    "within the loss is searched. What was measured is kept beside the output until the work is\n"
    "done: the same command goes on from there. docs/COMPRESSION.md tells the rest.";

static const cli_option prune_options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "the pruned model"},
    {OPT_SPARSITY, 0, "sparsity", "PART", "of each layer's weights that becomes 0 (default: 50%)"},
    {OPT_PATTERN, 0, "pattern", "NAME", "unstructured (default) or 2:4"},
    OPTIONS_COMPRESS,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONVERT,
    OPTION_THREADS("all CPUs"),
    OPTIONS_IMAGE,
    END_OF_OPTIONS,
};

static const char prune_notes[] =
    "Samples are read and losses measured as by sinter quantize. With samples, second moments of\n"
    "the inputs say which weights matter, and in matrix products the weights that stay make up "
    "for\n"
    "those that go. Without, the smallest weights go. Layers that lose too much stay as they are.";

static const cli_option ops_options[] = {
    {OPT_MARKDOWN, 0, "markdown", NULL, "print a Markdown table"},
    END_OF_OPTIONS,
};

static const cli_option load_options[] = {
    {OPT_MODEL, 'm', "model", "NAME", "the model to ask; always needed"},
    {OPT_VERSION_OF, 0, "model-version", "N", "its version (default: the newest)"},
    {OPT_CONCURRENCY, 'c', "concurrency", "N",
     "requests under way at once, each on a connection of its own (default: 1)"},
    {OPT_RATE, 'r', "rate", "N",
     "begin N requests a second, however long they take; latency then counts from when a\n"
     "request was due (default: each connection asks again when it is answered)"},
    {OPT_SECONDS, 't', "seconds", "S", "measure for S seconds (default: 10)"},
    {OPT_WARMUP, 'w', "warmup", "S", "seconds before that (default: 1)"},
    {OPT_RAMP, 0, "ramp", "S", "seconds over which concurrency or rate grows (default: 0)"},
    {OPT_OPEN, 'b', "batch", "N", "size of dimensions that the model leaves open (default: 1)"},
    {OPT_SHAPE, 's', "shape", "NAME=DIMS", "shape of an input, such as x=1x3x224x224; repeated"},
    {OPT_JSON_TENSORS, 0, "json-tensors", NULL, "HTTP: send tensors as JSON, not binary"},
    {OPT_TOKEN, 0, "token", "TOKEN", "bearer token"},
    {OPT_JSON, 0, "json", NULL, "print the report as one JSON object"},
    {OPT_QUIET, 'q', "quiet", NULL, "no line for each second"},
    END_OF_OPTIONS,
};

static const char load_notes[] =
    "URL is http://HOST:PORT or grpc://HOST:PORT of a server that speaks the Open Inference\n"
    "Protocol. The model is asked for its inputs, which are filled with made-up numbers.";

const cli_command cli_commands[] = {
    {"run", "Run a model once and show or save its outputs.", "MODEL", run_options, run_notes,
     cli_cmd_run},
    {"inspect", "Show what a model is made of.", "MODEL", inspect_options, inspect_notes,
     cli_cmd_inspect},
    {"bench", "Measure how fast a model runs.", "MODEL", bench_options, bench_notes, cli_cmd_bench},
    {"profile", "Show where the time of a run goes, step by step.", "MODEL", profile_options,
     profile_notes, cli_cmd_profile},
    {"test", "Run ONNX backend test folders and compare the results.", "DIR...", test_options,
     test_notes, cli_cmd_test},
    {"optimize", "Write the optimised model as ONNX and tell what was done.", "MODEL -o FILE",
     optimize_options, optimize_notes, cli_cmd_optimize},
    {"graph", "Draw a model.", "MODEL -o FILE", graph_options, graph_notes, cli_cmd_graph},
    {"diff", "Find the first value that two levels, or two libraries, make differently.", "MODEL",
     diff_options, diff_notes, cli_cmd_diff},
    {"reduce", "Make a model smaller as long as a command still ends in the same way.",
     "MODEL -o FILE -- COMMAND...", reduce_options, reduce_notes, cli_cmd_reduce},
    {"quantize", "Make a model smaller and faster by storing it in fewer bits.", "MODEL -o FILE",
     quantize_options, quantize_notes, cli_cmd_quantize},
    {"prune", "Set the weights of a model to 0 that matter least.", "MODEL -o FILE", prune_options,
     prune_notes, cli_cmd_prune},
    {"compile", "Make a model ready to run, as one file.", "MODEL -o FILE", compile_options,
     compile_notes, cli_cmd_compile},
    {"devices", "List what models can run on.", "", devices_options, devices_notes,
     cli_cmd_devices},
    {"ops", "List the operators that this build knows.", "", ops_options, NULL, cli_cmd_ops},
    {"serve", "Serve models over HTTP and gRPC.", "DIR", cli_serve_options, cli_serve_notes,
     cli_cmd_serve},
    {"load", "Put load on a model server and measure it.", "URL", load_options, load_notes,
     cli_cmd_load},
    {0},
};
