/* ep.h - implementations: ways to run a node that beat its operator's reference kernel where they
 * apply. The planner asks for one; what it makes of a node's constants is shared by all plans. */
#ifndef SNI_EP_EP_H
#define SNI_EP_EP_H

#include "base/cpu.h"
#include "ops/core/numerics.h"
#include "ops/core/op.h"

/* What an implementation can know of a node when it is chosen. Shapes may be partly unknown. */
typedef struct sni_choice {
    const sni_node *node;
    const void *params;
    int n_in;
    const sni_type *const *in;   /* NULL: left out */
    const sni_type *left;        /* the first input as the graph knows it before any run has shapes;
                                    NULL: not known */
    sni_const *const *constants; /* NULL entries: not part of the model */
    uint64_t matrix_bytes;       /* of all float32 matrices that are constants of the graph */
    uint32_t numerics;           /* families that the session allows (ops/core/numerics.h) */
    uint32_t variant;            /* one of sni_impl.variants, by tuning; 0: the implementation's */
    struct sni_pack *pack;       /* where sni_pack_alloc() keeps what prepare makes */
    struct sni_borrows *borrows; /* constants that prepare has borrowed; they end with it */
} sni_choice;

/* Constants that one prepare has borrowed. */
enum { SNI_MAX_BORROWS = 12 };
typedef struct sni_borrows {
    sni_borrow of[SNI_MAX_BORROWS];
    int count;
} sni_borrows;

/* Coefficients of a microarchitecture (cpu/costs/costs.h). */
typedef struct sni_costs sni_costs;

/* A row of the table of implementations (cpu/core/registry.c): one algorithm for an operator. */
typedef struct sni_impl {
    const char *name; /* for plans and profiles */
    const char *op;
    const char *domain; /* NULL: ai.onnx */
    sni_isa needs;      /* the lowest tier that has it */
    uint32_t numerics;  /* families that the session must allow for it */
    /* Decides by types, attributes and constants; `run` must then take every shape. */
    bool (*accepts)(const sni_choice *c);
    /* May look at shapes as well, to leave the node to a later one in the registry. */
    bool (*suits)(const sni_choice *c); /* NULL: always */
    /* Cycles of one thread that these shapes are estimated to take; of rows with such an estimate
     * the one with the least takes the node. INFINITY: it cannot. NULL: no estimate. */
    double (*cycles)(const sni_choice *c, const sni_costs *costs);
    /* Every plan asks again, so that what runs, and with it the last bits of results, depends on a
     * plan's shapes and not on those that came before. False: once it took a node it keeps it
     * wherever it accepts. */
    bool by_shape;
    /* Which of several things prepare makes, by shapes: a number that is not 0. NULL: it makes one
     * thing, variant 0. Follows sni_choice.variant where that is set. */
    uint32_t (*variant)(const sni_choice *c);
    /* The variants that are worth measuring, at most SNI_MAX_VARIANTS; returns how many. NULL: the
     * one that `variant` gives. */
    int (*variants)(const sni_choice *c, uint32_t *out);
    /* Families of numerics that runs of such shapes use of what prepare made. NULL: `numerics`. */
    uint32_t (*uses)(const sni_choice *c, const void *state);
    /* Once per node, variant and session: what follows from constants alone, such as packed
     * weights. Large data comes from sni_pack_alloc(); `state` itself is a small struct that points
     * to it.
     */
    sn_status (*prepare)(const sni_choice *c, void **state, sn_error *err); /* NULL: nothing */
    void (*release)(void *state);
    /* Constant inputs, a bit each, that `run` does not read because they are in the state: it sees
     * their types and shapes, and data may be NULL. Of no account where prepare made no state. */
    uint32_t packs;
    /* Bytes that a run reads of `state` in the place of these inputs. NULL: as many as theirs. */
    uint64_t (*packed_bytes)(const void *state);
    sn_status (*run)(sni_kernel *k); /* k->state is what prepare made */
    /* What a run reads of `state`, where it does little with it and so waits for memory: told to
     * the step before (sni_prefetch). NULL: nothing of the kind. */
    int (*reads)(const void *state, sni_span *spans);
} sni_impl;

/* ---- Packed data (pack.c) ---- */

/* Raise this when the layout of packed data changes: compiled models of before are then refused. */
enum { SNI_PACK_VERSION = 15 };

/* `bytes` (at least 1) of zero-filled memory, aligned to SNI_ALIGN, for what `prepare` makes of a
 * node's constants. It belongs to the session: `release` does not free it. The contents must follow
 * from the node's constants, its parameters and the CPU tier alone, in every process the same: no
 * pointers, and nothing that a kernel uses as a size or an index without bounding it, because a
 * compiled model brings the finished contents from a file. *filled says that it did: they must not
 * be written then, and the constants they are made of need not be read. One prepare asks for its
 * blobs in the same order every time. */
sn_status sni_pack_alloc(const sni_choice *c, size_t bytes, void **data, bool *filled,
                         sn_error *err);

/* The same for `n` blobs that are written together: a file that lacks one of them, or has it in
 * another size, brings none. */
sn_status sni_pack_alloc_all(const sni_choice *c, int n, const size_t *bytes, void **data,
                             bool *filled, sn_error *err);

/* Bytes of the finished blob that the next sni_pack_alloc() can hand out; 0: there is none. Where
 * constants decide between layouts this tells which one was chosen when the file was made. */
size_t sni_pack_given(const sni_choice *c);

/* A constant input while prepare is under way; see sni_const_borrow(). */
sn_status sni_pack_borrow(const sni_choice *c, int i, bool unaligned, const sni_borrow **out,
                          sn_error *err);

/* The same of the narrow numbers that a constant of float32 is made of (sni_const.narrow), which
 * lie at any address. */
sn_status sni_pack_borrow_narrow(const sni_choice *c, int i, const sni_borrow **out, sn_error *err);

typedef struct sni_packed_blob {
    void *data;
    size_t bytes;
    bool mapped;  /* part of a compiled file: not freed */
    bool in_slab; /* part of a slab: freed with it */
} sni_packed_blob;

/* Memory on large pages in which blobs of many nodes stand side by side: those that are no
 * multiple of such a page would end in small ones, which take three times as long to come into
 * being. A graph with few weights in all leaves it empty. */
typedef struct sni_slab {
    unsigned char **spaces;
    int32_t count, capacity;
    size_t used;  /* bytes of the last space */
    size_t asked; /* bytes of all blobs so far */
} sni_slab;

void sni_slab_free(sni_slab *slab);

/* The packed data of one node. */
typedef struct sni_pack {
    sni_packed_blob *blobs; /* in the order in which prepare asked for them */
    int32_t count, capacity;
    const sni_packed_blob *given; /* finished blobs of a compiled file; NULL: none */
    int32_t n_given;
    sni_budget *budget; /* charged for blobs that are not mapped; NULL: no limit */
    sni_slab *slab;     /* NULL: each blob has memory of its own */
} sni_pack;

/* Frees the blobs; those in a slab give their memory back if they were the last to be put there.
 */
void sni_pack_clear(sni_pack *pack);

/* ---- The choice ---- */

/* The implementation for a node: of the rows that take it, that this machine has and that the
 * session's numerics allow, the one of least estimated cycles. A row without an estimate ends the
 * search: it takes the node if none before it does. NULL: the reference kernel. */
const sni_impl *sni_ep_find(const sni_choice *c);

/* A row that could run a node, and which of its variants. */
enum { SNI_MAX_VARIANTS = 8, SNI_MAX_CANDIDATES = 16 };
typedef struct sni_candidate {
    const sni_impl *impl;
    uint32_t variant;
} sni_candidate;

/* What is worth measuring for a node: rows up to the first without alternatives. */
int sni_ep_candidates(const sni_choice *c, sni_candidate out[SNI_MAX_CANDIDATES]);

/* The candidate of this name (sni_candidate_name()) if it can run the node. */
bool sni_ep_named(const sni_choice *c, const char *name, sni_candidate *out);

/* "name" or "name#variant": what packed data and tuned choices are found again by. */
enum { SNI_IMPL_NAME = 40 };
void sni_candidate_name(const sni_impl *impl, uint32_t variant, char out[SNI_IMPL_NAME]);

static inline bool sni_choice_is(const sni_choice *c, int i, sn_dtype dtype) {
    return i < c->n_in && c->in[i] && c->in[i]->kind == SN_KIND_TENSOR && c->in[i]->dtype == dtype;
}

static inline bool sni_choice_given(const sni_choice *c, int i) {
    return i < c->n_in && c->in[i];
}

/* Rank of an input; -1 if not known. */
static inline int sni_choice_rank(const sni_choice *c, int i) {
    return i < c->n_in && c->in[i] && c->in[i]->has_shape ? c->in[i]->rank : -1;
}

#endif
