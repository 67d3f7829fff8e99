/* model.h - sn_model: an imported model and what can be asked of it. */
#ifndef SNI_API_MODEL_H
#define SNI_API_MODEL_H

#include "exec/compiled.h"

/* A graph input or output as callers see it. */
typedef struct sni_port {
    sn_value_info info;
    const sni_type *type;
    int32_t graph_index; /* into the graph's inputs or outputs */
    bool optional;
} sni_port;

typedef struct sni_weight {
    sn_value_info info;
    uint64_t bytes;
} sni_weight;

struct sn_model {
    atomic_int refs; /* the caller's and each session's */
    sni_model *model;
    bool is_compiled;
    sni_compiled compiled;      /* its bytes are the model's store's */
    bool cacheable;             /* what it is follows from its files or bytes alone, and `sizes` */
    const unsigned char *bytes; /* it was loaded from memory: kept by the store; NULL: from files */
    size_t byte_count;
    uint64_t sizes;  /* of the dimensions that the caller gave when loading */
    sni_arena arena; /* of the tables below */
    sni_port *inputs, *outputs;
    size_t n_inputs, n_outputs;
    sn_model_info info;
    sn_operator_use *operators;
    sni_weight *weights; /* largest first; NULL until somebody asks */
};

/* A model with one holder around `imported`, which it takes over, also on failure. */
sn_status sni_model_make(sni_model *imported, sn_model **out, sn_error *err);

/* One more holder; every one calls sn_model_destroy(). Thread-safe. */
sn_model *sni_model_retain(sn_model *model);

/* A type for callers; its texts and elements go to the arena. SN_LIMIT: it nests too deep. */
sn_status sni_describe_type(sni_str name, const sni_type *type, const sni_symbols *symbols,
                            sni_arena *arena, sn_value_info *out, sn_error *err);

/* Fills a caller's structure of options, `theirs` bytes as the caller knows it, from the defaults
 * (`ours` bytes; both start with a size_t). Does nothing if `theirs` is too small for the size
 * itself. */
void sni_options_init(void *given, size_t theirs, const void *defaults, size_t ours);

/* Copies options of a caller that may know fewer of them than this library, or more as long as
 * those are zero: `out` (`size` bytes) has the defaults. `init` is the function that the caller
 * should have used. NULL: all defaults. */
sn_status sni_options_read(const void *given, void *out, size_t size, const char *init,
                           sn_error *err);

/* Fills the tables of a model whose `model` is set: ports, operators, counts. Weights are listed
 * when somebody asks for one. */
sn_status sni_model_describe(sn_model *m, sn_error *err);

#endif
