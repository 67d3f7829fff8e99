/* compiled.c - reading and writing compiled models. */
#include "exec/compiled.h"

#include "base/checked.h"
#include "base/cpu.h"
#include "base/pages.h"
#include "exec/compiled_format.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PAGE = 4096,                      /* sections begin at a multiple of it, */
    LARGE_BYTES = 2 * SNI_LARGE_PAGE, /* and packed blobs of so many at one of SNI_LARGE_PAGE */
    LEAST_BYTES = 256,                /* smaller constants stay in the graph */
    FORMAT = SNI_COMPILED_FORMAT
};

typedef sni_compiled_part part;
typedef sni_compiled_header header;
typedef sni_compiled_entry entry;

/* ---- Reading ---- */

bool sni_compiled_is(const unsigned char *bytes, size_t size) {
    return size >= 8 && memcmp(bytes, SNI_COMPILED_MAGIC, 8) == 0;
}

static sn_status read_header(const unsigned char *bytes, size_t size, header *h, sn_error *err) {
    if (size < sizeof *h)
        return sni_fail(err, SN_MALFORMED, "a compiled model of %zu bytes has no header", size);
    memcpy(h, bytes, sizeof *h);
    if (h->order != SNI_COMPILED_ORDER || h->format != FORMAT)
        return sni_fail(err, SN_UNSUPPORTED,
                        "it is a compiled model of format %u where this library reads %d",
                        h->format, FORMAT);
    if (h->checksum != sni_checksum(0, bytes, offsetof(header, checksum)))
        return sni_fail(err, SN_MALFORMED, "the header of the compiled model is damaged");
    if (h->file_size != size)
        return sni_fail(err, SN_MALFORMED,
                        "the compiled model has %zu bytes where its header says %llu", size,
                        (unsigned long long)h->file_size);
    for (int i = 0; i < SNI_PARTS; i++) {
        const sni_section *s = &h->parts[i];
        if (s->offset > size || s->size > size - s->offset || s->offset % SNI_ALIGN)
            return sni_fail(err, SN_MALFORMED, "section %d of the compiled model is misplaced", i);
    }
    return SN_OK;
}

/* SN_UNSUPPORTED if packed weights of another library or CPU would be used. */
static sn_status check_fit(const header *h, sn_error *err) {
    const char *isa = sni_isa_name(sni_cpu_isa());
    if (strncmp(h->version, sn_version(), sizeof h->version) == 0 &&
        strncmp(h->isa, isa, sizeof h->isa) == 0 && h->pack_version == SNI_PACK_VERSION)
        return SN_OK;
    return sni_fail(err, SN_UNSUPPORTED,
                    "the model was compiled by version %.31s (packing %u) for %.31s, and this is "
                    "version %s (packing %d) for %s: compile it again",
                    h->version, h->pack_version, h->isa, sn_version(), SNI_PACK_VERSION, isa);
}

static sn_status check_sum(const unsigned char *bytes, const header *h, part i, sn_error *err) {
    static const char *const names[] = {"table", "graph", "weights", "packed weights",
                                        "tuned choices"};
    const sni_section *s = &h->parts[i];
    if (sni_checksum(0, bytes + s->offset, (size_t)s->size) == s->checksum) return SN_OK;
    return sni_fail(err, SN_MALFORMED, "the %s of the compiled model are damaged", names[i]);
}

static int by_place(const sni_finished_key *a, const sni_finished_key *b) {
    if (a->graph != b->graph) return a->graph < b->graph ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

static sn_status read_blobs(const unsigned char *bytes, const header *h, sni_compiled *c,
                            sn_error *err) {
    const sni_section *table = &h->parts[SNI_PART_TABLE], *packed = &h->parts[SNI_PART_PACKED];
    size_t count = (size_t)table->size / sizeof(entry);
    if (table->size % sizeof(entry))
        return sni_fail(err, SN_MALFORMED, "the table of the compiled model has a broken entry");
    c->keys = calloc(count + 1, sizeof *c->keys);
    c->blobs = calloc(count + 1, sizeof *c->blobs);
    if (!c->keys || !c->blobs) return sni_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        entry e;
        memcpy(&e, bytes + table->offset + i * sizeof e, sizeof e);
        if (e.offset > packed->size || e.bytes > packed->size - e.offset || e.offset % SNI_ALIGN)
            return sni_fail(err, SN_MALFORMED, "packed blob %zu lies outside its section", i);
        if (i && by_place(&c->keys[i - 1], &e.key) > 0)
            return sni_fail(err, SN_MALFORMED, "packed blob %zu is out of order", i);
        c->keys[i] = e.key;
        c->keys[i].impl[SNI_IMPL_NAME - 1] = 0;
        c->blobs[i] = (sni_packed_blob){.data = (void *)(bytes + packed->offset + e.offset),
                                        .bytes = (size_t)e.bytes,
                                        .mapped = true};
    }
    c->finished = (sni_finished){.keys = c->keys,
                                 .blobs = c->blobs,
                                 .count = count,
                                 .data = bytes + packed->offset,
                                 .bytes = (size_t)packed->size};
    return SN_OK;
}

static sn_status read_tuned(const unsigned char *bytes, const header *h, sni_compiled *c,
                            sn_error *err) {
    const sni_section *s = &h->parts[SNI_PART_TUNED];
    size_t count = (size_t)s->size / sizeof *c->tuned;
    if (s->size % sizeof *c->tuned)
        return sni_fail(err, SN_MALFORMED, "the tuned choices of the compiled model are broken");
    c->tuned = calloc(count + 1, sizeof *c->tuned);
    if (!c->tuned) return sni_fail_memory(err);
    if (count) memcpy(c->tuned, bytes + s->offset, count * sizeof *c->tuned);
    for (size_t i = 0; i < count; i++) c->tuned[i].impl[SNI_IMPL_NAME - 1] = 0;
    c->n_tuned = count;
    return SN_OK;
}

/* Packed blobs are used where they stand: memory of a caller that is not aligned has none. */
static sn_status read_rest(const unsigned char *bytes, const header *h, bool fits, sni_compiled *c,
                           sn_error *err) {
    c->numerics = h->numerics;
    SN_TRY(read_tuned(bytes, h, c, err));
    return fits && (uintptr_t)bytes % SNI_ALIGN == 0 ? read_blobs(bytes, h, c, err) : SN_OK;
}

sn_status sni_compiled_read(const unsigned char *bytes, size_t size, bool verify, bool repack,
                            sni_compiled *out, sn_error *err) {
    header h;
    sni_compiled c = {0};
    SN_TRY(read_header(bytes, size, &h, err));
    SN_TRY(check_sum(bytes, &h, SNI_PART_TABLE, err));
    SN_TRY(check_sum(bytes, &h, SNI_PART_GRAPH, err));
    SN_TRY(check_sum(bytes, &h, SNI_PART_TUNED, err));
    if (verify) {
        SN_TRY(check_sum(bytes, &h, SNI_PART_WEIGHTS, err));
        SN_TRY(check_sum(bytes, &h, SNI_PART_PACKED, err));
    }
    sn_error misfit;
    sn_status fits = check_fit(&h, &misfit);
    if (fits != SN_OK && !repack) return sni_fail(err, fits, "%s", misfit.message);
    sn_status status = read_rest(bytes, &h, fits == SN_OK, &c, err);
    if (status != SN_OK) {
        sni_compiled_free(&c);
        return status;
    }
    c.graph = bytes + h.parts[SNI_PART_GRAPH].offset;
    c.graph_size = (size_t)h.parts[SNI_PART_GRAPH].size;
    c.weights = (sn_file){.name = "weights",
                          .bytes = bytes + h.parts[SNI_PART_WEIGHTS].offset,
                          .size = (size_t)h.parts[SNI_PART_WEIGHTS].size};
    *out = c;
    return SN_OK;
}

void sni_compiled_free(sni_compiled *compiled) {
    free(compiled->tuned);
    free(compiled->keys);
    free(compiled->blobs);
    *compiled = (sni_compiled){0};
}

/* ---- What is written ---- */

typedef struct writer {
    const sni_choosing *choosing;
    sni_places places; /* by rising address; offsets in the weights section */
    size_t places_capacity;
    unsigned char *onnx;
    size_t onnx_size, onnx_capacity;
    entry *entries;
    const sni_packed_blob **blobs;
    size_t n_blobs, blobs_capacity;
    sn_error *err;
} writer;

/* Makes space for one more in two parallel arrays of elements of the given sizes. */
static sn_status grow(void **a, size_t a_size, void **b, size_t b_size, size_t count,
                      size_t *capacity, sn_error *err) {
    if (count < *capacity) return SN_OK;
    size_t more = *capacity ? *capacity * 2 : 64;
    void *x = realloc(*a, more * a_size);
    if (x) *a = x;
    void *y = x ? realloc(*b, more * b_size) : NULL;
    if (!y) return sni_fail_memory(err);
    *b = y;
    *capacity = more;
    return SN_OK;
}

static sn_status add_const(writer *w, sni_const *c) {
    if (!c || c->tensor.dtype == SN_STRING || sni_dtype_subbyte(c->tensor.dtype) ||
        sni_tensor_bytes(&c->tensor) < LEAST_BYTES)
        return SN_OK;
    void *a = w->places.constants, *b = w->places.offsets;
    sn_status status = grow(&a, sizeof(sni_const *), &b, sizeof(uint64_t), w->places.count,
                            &w->places_capacity, w->err);
    w->places.constants = a;
    w->places.offsets = b;
    if (status == SN_OK) w->places.constants[w->places.count++] = c;
    return status;
}

static sn_status add_consts(writer *w, const sni_graph *g, int depth) {
    SN_TRY(sni_check_nesting(depth, w->err));
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i]) SN_TRY(add_const(w, g->values[i]->constant));
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        for (int32_t i = 0; i < n->n_attrs; i++) {
            const sni_attr *a = &n->attrs[i];
            if (a->kind == SNI_ATTR_TENSOR) SN_TRY(add_const(w, a->u.tensor));
            for (size_t t = 0; a->kind == SNI_ATTR_TENSORS && t < a->count; t++)
                SN_TRY(add_const(w, a->u.tensors[t]));
        }
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(add_consts(w, n->subgraphs[i], depth + 1));
    }
    return SN_OK;
}

static int by_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (sni_const *const *)a, y = (uintptr_t) * (sni_const *const *)b;
    return (x > y) - (x < y);
}

static uint64_t aligned(uint64_t at, uint64_t to) {
    return (at + to - 1) / to * to;
}

/* Orders the constants, each once, and gives them places. Returns the size of their section. */
static uint64_t place_consts(sni_places *p) {
    uint64_t at = 0;
    size_t n = 0;
    if (p->count) qsort(p->constants, p->count, sizeof *p->constants, by_address);
    for (size_t i = 0; i < p->count; i++) {
        if (n && p->constants[n - 1] == p->constants[i]) continue;
        p->constants[n] = p->constants[i];
        p->offsets[n] = at;
        at = aligned(at + sni_tensor_bytes(&p->constants[n++]->tensor), SNI_ALIGN);
    }
    p->count = n;
    return at;
}

static int keep_onnx(void *ctx, const void *bytes, size_t size) {
    writer *w = ctx;
    if (w->onnx_size + size > w->onnx_capacity) {
        size_t more = w->onnx_capacity * 2 + size + 4096;
        unsigned char *bigger = realloc(w->onnx, more);
        if (!bigger) return 1;
        w->onnx = bigger;
        w->onnx_capacity = more;
    }
    memcpy(w->onnx + w->onnx_size, bytes, size);
    w->onnx_size += size;
    return 0;
}

static sn_status add_blob(void *ctx, const sni_finished_key *key, const sni_packed_blob *blob) {
    writer *w = ctx;
    void *a = w->entries, *b = w->blobs;
    sn_status status = grow(&a, sizeof(entry), &b, sizeof(sni_packed_blob *), w->n_blobs,
                            &w->blobs_capacity, w->err);
    w->entries = a;
    w->blobs = b;
    if (status != SN_OK) return status;
    /* The offset is that in the list until all are known. */
    w->entries[w->n_blobs] = (entry){.key = *key, .offset = w->n_blobs, .bytes = blob->bytes};
    w->blobs[w->n_blobs++] = blob;
    return SN_OK;
}

static int by_entry(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = by_place(&x->key, &y->key);
    return order ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

/* Puts the blobs in order and gives them their places. */
static sn_status place_blobs(writer *w) {
    const sni_packed_blob **ordered = calloc(w->n_blobs + 1, sizeof *ordered);
    if (!ordered) return sni_fail_memory(w->err);
    if (w->n_blobs) qsort(w->entries, w->n_blobs, sizeof *w->entries, by_entry);
    uint64_t at = 0;
    for (size_t i = 0; i < w->n_blobs; i++) {
        ordered[i] = w->blobs[w->entries[i].offset];
        w->entries[i].offset = at;
        at = aligned(at + w->entries[i].bytes, SNI_ALIGN);
    }
    free(w->blobs);
    w->blobs = ordered;
    return SN_OK;
}

/* ---- Writing ---- */

/* Where bytes go: to a checksum alone, or to the caller. */
typedef struct sink {
    sn_write_fn write; /* NULL: checksum alone */
    void *ctx;
    uint64_t at, sum; /* of the section under way */
    int failed;
} sink;

/* `size` bytes and zeros up to a multiple of SNI_ALIGN. */
static void put(sink *s, const void *bytes, size_t size) {
    static const unsigned char zeros[SNI_ALIGN];
    size_t rest = (size_t)(aligned(size, SNI_ALIGN) - size), whole = size / 8 * 8;
    unsigned char tail[8 + SNI_ALIGN] = {0};
    if (size) memcpy(tail, (const unsigned char *)bytes + whole, size - whole);
    if (size) s->sum = sni_checksum(s->sum, bytes, whole);
    s->sum = sni_checksum(s->sum, tail, size - whole + rest);
    s->at += size + rest;
    if (!s->write || s->failed) return;
    if (size) s->failed = s->write(s->ctx, bytes, size);
    if (!s->failed && rest) s->failed = s->write(s->ctx, zeros, rest);
}

/* Zeros until `at` of the file, whose position is *position. */
static void pad(const sink *s, int *failed, uint64_t *position, uint64_t at) {
    static const unsigned char zeros[PAGE];
    while (!*failed && at > *position) {
        uint64_t some = at - *position < PAGE ? at - *position : PAGE;
        *failed = s->write(s->ctx, zeros, (size_t)some);
        *position += some;
    }
}

static sn_status put_part(const writer *w, part which, sink *s) {
    switch (which) {
    case SNI_PART_TABLE:
        put(s, w->entries, w->n_blobs * sizeof(entry));
        break;
    case SNI_PART_GRAPH:
        put(s, w->onnx, w->onnx_size);
        break;
    case SNI_PART_WEIGHTS:
        for (size_t i = 0; i < w->places.count; i++) {
            sni_borrow borrow;
            SN_TRY(sni_const_borrow(w->places.constants[i], true, &borrow, w->err));
            put(s, borrow.tensor.data, sni_tensor_bytes(&borrow.tensor));
            sni_borrow_end(&borrow);
        }
        break;
    case SNI_PART_TUNED:
        put(s, w->choosing->tuned, w->choosing->n_tuned * sizeof *w->choosing->tuned);
        break;
    default:
        for (size_t i = 0; i < w->n_blobs; i++) put(s, w->blobs[i]->data, w->blobs[i]->bytes);
        break;
    }
    return SN_OK;
}

/* The header: where each section stands and what its checksum is. The size of a section is that of
 * its contents; what fills it up to the alignment is part of the checksum only where it lies
 * between blobs. */
static sn_status make_header(const writer *w, header *h, sn_error *err) {
    const sni_choosing *choosing = w->choosing;
    size_t tuned = choosing->n_tuned * sizeof *choosing->tuned;
    *h = (header){.format = FORMAT,
                  .order = SNI_COMPILED_ORDER,
                  .pack_version = SNI_PACK_VERSION,
                  .numerics = choosing->numerics};
    memcpy(h->magic, SNI_COMPILED_MAGIC, sizeof h->magic);
    snprintf(h->version, sizeof h->version, "%s", sn_version());
    snprintf(h->isa, sizeof h->isa, "%s", sni_isa_name(sni_cpu_isa()));
    uint64_t at = aligned(sizeof *h, PAGE);
    for (int i = 0; i < SNI_PARTS; i++) {
        sink s = {0};
        sn_status status = put_part(w, (part)i, &s);
        if (status != SN_OK) return sni_fail_context(err, status, "compiling");
        if (i == SNI_PART_PACKED && s.at >= LARGE_BYTES) at = aligned(at, SNI_LARGE_PAGE);
        h->parts[i] = (sni_section){.offset = at, .size = s.at, .checksum = s.sum};
        at = aligned(at + s.at, PAGE);
    }
    h->parts[SNI_PART_TABLE].size = w->n_blobs * sizeof(entry);
    h->parts[SNI_PART_GRAPH].size = w->onnx_size;
    h->parts[SNI_PART_TABLE].checksum = sni_checksum(0, w->entries, w->n_blobs * sizeof(entry));
    h->parts[SNI_PART_GRAPH].checksum = sni_checksum(0, w->onnx, w->onnx_size);
    h->parts[SNI_PART_TUNED].size = tuned;
    h->parts[SNI_PART_TUNED].checksum = sni_checksum(0, choosing->tuned, tuned);
    h->file_size = at;
    h->checksum = sni_checksum(0, h, offsetof(header, checksum));
    return SN_OK;
}

/* Hands the caller whole large pages of the file at a time: file systems that can then keep it in
 * such pages, which a mapping takes over in one step each. */
typedef struct chunks {
    sn_write_fn write;
    void *ctx;
    unsigned char *bytes; /* SNI_LARGE_PAGE */
    size_t used;
} chunks;

static int flush_chunk(chunks *c) {
    size_t used = c->used;
    c->used = 0;
    return used ? c->write(c->ctx, c->bytes, used) : 0;
}

static int put_chunk(void *ctx, const void *bytes, size_t size) {
    chunks *c = ctx;
    const unsigned char *from = bytes;
    while (size) {
        size_t some = SNI_LARGE_PAGE - c->used < size ? SNI_LARGE_PAGE - c->used : size;
        memcpy(c->bytes + c->used, from, some);
        c->used += some;
        from += some;
        size -= some;
        if (c->used == SNI_LARGE_PAGE && flush_chunk(c) != 0) return 1;
    }
    return 0;
}

static sn_status write_parts(const writer *w, const header *h, chunks *c, sn_error *err) {
    sink s = {.write = put_chunk, .ctx = c};
    uint64_t position = sizeof *h;
    s.failed = put_chunk(c, h, sizeof *h);
    for (int i = 0; i < SNI_PARTS; i++) {
        pad(&s, &s.failed, &position, h->parts[i].offset);
        s.at = 0;
        SN_TRY(put_part(w, (part)i, &s));
        position += s.at;
    }
    pad(&s, &s.failed, &position, h->file_size);
    if (s.failed || flush_chunk(c) != 0)
        return sni_fail(err, SN_IO, "writing the compiled model failed");
    return SN_OK;
}

static sn_status write_file(const writer *w, sn_write_fn write, void *ctx, sn_error *err) {
    header h;
    SN_TRY(make_header(w, &h, err));
    chunks c = {.write = write, .ctx = ctx, .bytes = malloc(SNI_LARGE_PAGE)};
    sn_status status = c.bytes ? write_parts(w, &h, &c, err) : sni_fail_memory(err);
    free(c.bytes);
    return status;
}

sn_status sni_compiled_write(const sni_model *model, sni_program *program, sn_write_fn write,
                             void *ctx, sn_error *err) {
    const sni_graph *g = sni_program_graph(program);
    writer w = {
        .choosing = &sni_program_pool(program)->choosing, .places.location = "weights", .err = err};
    sn_status status = add_consts(&w, g, 0);
    if (status == SN_OK) {
        place_consts(&w.places);
        status = sni_write_onnx_beside(g, model, &w.places, keep_onnx, &w, err);
    }
    if (status == SN_OK) status = sni_program_packed(program, add_blob, &w);
    if (status == SN_OK) status = place_blobs(&w);
    if (status == SN_OK) status = write_file(&w, write, ctx, err);
    free(w.places.constants);
    free(w.places.offsets);
    free(w.onnx);
    free(w.entries);
    free(w.blobs);
    return status;
}
