/* options.h - options that several commands share, for the tables of commands. */
#ifndef CLI_CMD_OPTIONS_H
#define CLI_CMD_OPTIONS_H

#include "cli/cmd/commands.h"

#define END_OF_OPTIONS \
    { 0, 0, NULL, NULL, NULL }

#define OPTION_THREADS(default_text) \
    { OPT_THREADS, 0, "threads", "N", "threads of one run (default: " default_text ")" }
#define OPTION_OPTIMIZE \
    { OPT_OPTIMIZE, 'O', "optimize", "LEVEL", "0 none, 1 clean-ups, 2 fusions, 3 all (default)" }
#define OPTION_DISABLE_RULE \
    { OPT_DISABLE_RULE, 0, "disable-rule", "NAME", "leave out an optimiser pass or rule" }
#define OPTION_PRECISION \
    { OPT_PRECISION, 0, "precision", "NAME", "of weights: exact (default), tf32-like, bf16, fp16" }
#define OPTION_CACHE \
    { OPT_CACHE, 0, "cache", "DIR", "keep the compiled model in DIR, and use it from there" }
#define OPTION_CACHE_LIMIT \
    { OPT_CACHE_LIMIT, 0, "cache-limit", "MIB", "most to keep there: what is unused goes" }
#define OPTION_OP_LIBRARY \
    { OPT_OP_LIBRARY, 0, "op-library", "FILE", "load operators of your own from a library" }
#define OPTIONS_PROVIDER                                                       \
    {OPT_PROVIDER, 0, "provider", "NAME[:N]",                                  \
     "run what it can on a provider's device N; may be repeated"},             \
    {                                                                          \
        OPT_PROVIDER_LIBRARY, 0, "provider-library", "FILE", "load a provider" \
    }
#define OPTION_STRICT \
    { OPT_STRICT, 0, "strict", NULL, "refuse what the specification forbids instead of warning" }
#define OPTIONS_LIMITS                                                                           \
    {OPT_TIME_LIMIT, 0, "time-limit", "S", "for preparing, and for each run (default: none)"}, { \
        OPT_MEMORY_LIMIT, 0, "memory-limit", "MIB",                                              \
            "of one run, packed weights included (default: none)"                                \
    }
#define OPTION_SHAPE \
    { OPT_SHAPE, 0, "shape", "NAME=DIMS", "shape of an input, such as x=1x3x224x224" }
#define OPTION_DIM \
    { OPT_DIM, 0, "dim", "SYMBOL=N", "a named dimension of the inputs, such as batch=4" }
#define OPTION_SEED \
    { OPT_SEED, 0, "seed", "N", "of the random inputs (default: 0)" }
#define OPTION_INPUT \
    { OPT_INPUT, 'i', "input", "[NAME=]FILE", "an input; the name may lack if there is one only" }
#define OPTION_CONVERT \
    { OPT_CONVERT, 0, "convert", NULL, "convert inputs of another number type, if they fit" }
#define OPTIONS_IMAGE                                                                           \
    {OPT_SCALE, 0, "scale", "S", "of pictures (default: 1/255 for floating point, else 1)"},    \
        {OPT_MEAN, 0, "mean", "M[,M,M]", "of pictures, subtracted after scaling (default: 0)"}, \
        {OPT_STD, 0, "std", "D[,D,D]", "of pictures, divides at last (default: 1)"},            \
        {OPT_LAYOUT, 0, "layout", "nchw|nhwc", "of pictures (default: where 1 or 3 stands)"}, { \
        OPT_COLOR, 0, "color", "rgb|bgr|gray", "of pictures (default: by the channels)"         \
    }

/* commands_serve.c */
extern const cli_option cli_serve_options[];
extern const char cli_serve_notes[];

#endif
