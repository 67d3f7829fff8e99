/* compiled.h - a compiled model as one file: the optimised graph, its weights, and the packed
 * weights, laid out so that a mapping of the file is ready to run and its pages are shared by all
 * processes.
 *
 *     header | table | graph (ONNX, weights external) | weights | packed blobs | tuned choices
 *
 * Numbers are little-endian. Header and table have checksums that are always verified, graph too;
 * weights and packed blobs have ones that are verified when asked for. */
#ifndef SNI_EXEC_COMPILED_H
#define SNI_EXEC_COMPILED_H

#include "exec/program.h"
#include "model/model.h"

/* What a file holds; everything points into it but `tuned`, `keys` and `blobs`, which are owned.
 */
typedef struct sni_compiled {
    const unsigned char *graph;
    size_t graph_size;
    sn_file weights; /* the external data that the graph names */
    sni_finished finished;
    uint32_t numerics; /* of the session that wrote it, and of those that read it */
    sni_finished_key *tuned;
    size_t n_tuned;
    sni_finished_key *keys;
    sni_packed_blob *blobs;
} sni_compiled;

/* True if the bytes begin like a compiled model. */
bool sni_compiled_is(const unsigned char *bytes, size_t size);

/* Reads a file that is in memory for as long as `out` is used. SN_MALFORMED: damaged;
 * SN_UNSUPPORTED: of another version or CPU, unless `repack` is set: it then comes without packed
 * blobs. `verify` reads all of it. sni_compiled_free() after success. */
sn_status sni_compiled_read(const unsigned char *bytes, size_t size, bool verify, bool repack,
                            sni_compiled *out, sn_error *err);
void sni_compiled_free(sni_compiled *compiled); /* one that is all zeros is fine */

/* Writes a file of a program's graph, how it chooses who runs its nodes, and what has been packed
 * so far. */
sn_status sni_compiled_write(const sni_model *model, sni_program *program, sn_write_fn write,
                             void *ctx, sn_error *err);

#endif
