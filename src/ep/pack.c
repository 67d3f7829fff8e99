/* pack.c - memory of what implementations make of constants, or the finished bytes of a file. */
#include "base/floats.h"
#include "base/pages.h"
#include "ep/ep.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum {
    LARGE = 1 << 20,
    HUGE_PAGE = SNI_LARGE_PAGE,
    SPACE = 16 * HUGE_PAGE,       /* of a slab; in memory as far as it is used */
    MOST_IN_SLAB = 4 * HUGE_PAGE, /* larger blobs have few bytes in small pages */
    FEW = LARGE                   /* bytes of a graph's blobs that need no slab */
};

/* ---- Memory ---- */

/* What is mapped for a blob. An end of a little less than a large page takes a whole one: small
 * pages would be spread over the cache's sets by chance, so that not all of a blob stays there,
 * and each has to be looked up when a blob is read from memory. */
static size_t mapped_size(size_t bytes) {
    size_t end = bytes % HUGE_PAGE;
    if (end >= HUGE_PAGE / 4 * 3) return bytes - end + HUGE_PAGE;
    return (bytes + 4095) & ~(size_t)4095;
}

static void *zeros(size_t bytes) {
    void *p = aligned_alloc(SNI_ALIGN, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

static void blob_free(const sni_packed_blob *blob) {
    if (blob->bytes >= LARGE)
        sni_pages_unmap(blob->data, mapped_size(blob->bytes));
    else
        free(blob->data);
}

/* ---- Shelves ---- */

static size_t round_up(size_t bytes) {
    return (bytes + SNI_ALIGN - 1) & ~(size_t)(SNI_ALIGN - 1);
}

static bool new_space(sni_slab *s) {
    if (s->count == s->capacity) {
        int32_t more = s->capacity ? s->capacity * 2 : 4;
        unsigned char **bigger = realloc(s->spaces, (size_t)more * sizeof *bigger);
        if (!bigger) return false;
        s->spaces = bigger;
        s->capacity = more;
    }
    unsigned char *space = sni_pages_map(SPACE);
    if (!space) return false;
    s->spaces[s->count++] = space;
    s->used = 0;
    return true;
}

/* Zeros in the slab; NULL: the blob gets memory of its own. */
static void *put_on_slab(sni_slab *s, size_t bytes) {
    if (!s || bytes > MOST_IN_SLAB) return NULL;
    s->asked += bytes;
    if (s->asked <= FEW) return NULL;
    size_t rounded = round_up(bytes);
    if ((s->count == 0 || SPACE - s->used < rounded) && !new_space(s)) return NULL;
    void *p = s->spaces[s->count - 1] + s->used;
    s->used += rounded;
    return p;
}

static void take_from_slab(sni_slab *s, const sni_packed_blob *blob) {
    size_t rounded = round_up(blob->bytes);
    unsigned char *end = s && s->count ? s->spaces[s->count - 1] + s->used : NULL;
    if (!end || (unsigned char *)blob->data + rounded != end) return;
    memset(blob->data, 0, rounded);
    s->used -= rounded;
}

void sni_slab_free(sni_slab *slab) {
    for (int32_t i = 0; i < slab->count; i++) sni_pages_unmap(slab->spaces[i], SPACE);
    free(slab->spaces);
    *slab = (sni_slab){0};
}

/* ---- Pieces ---- */

static sn_status make_room(sni_pack *pack, sn_error *err) {
    if (pack->count < pack->capacity) return SN_OK;
    int32_t more = pack->capacity ? pack->capacity * 2 : 2;
    sni_packed_blob *bigger = realloc(pack->blobs, (size_t)more * sizeof *bigger);
    if (!bigger) return sni_fail_memory(err);
    pack->blobs = bigger;
    pack->capacity = more;
    return SN_OK;
}

static sn_status allocate(sni_pack *pack, sni_packed_blob *blob, sn_error *err) {
    size_t bytes = blob->bytes;
    if (bytes > SIZE_MAX / 2)
        return sni_fail(err, SN_LIMIT, "packed weights of %zu bytes are too large", bytes);
    SN_TRY(sni_budget_take(pack->budget, bytes, err));
    void *p = put_on_slab(pack->slab, bytes);
    blob->in_slab = p != NULL;
    if (!p) p = bytes >= LARGE ? sni_pages_map(mapped_size(bytes)) : zeros(round_up(bytes));
    if (!p) {
        sni_budget_give(pack->budget, bytes);
        return sni_fail_memory(err);
    }
    blob->data = p;
    return SN_OK;
}

/* Whether a file has brought the next `n` blobs. */
static bool are_given(const sni_pack *pack, int n, const size_t *bytes) {
    if (pack->n_given - pack->count < n) return false;
    for (int i = 0; i < n; i++)
        if (pack->given[pack->count + i].bytes != bytes[i]) return false;
    return true;
}

sn_status sni_pack_alloc_all(const sni_choice *c, int n, const size_t *bytes, void **data,
                             bool *filled, sn_error *err) {
    sni_pack *pack = c->pack;
    bool given = are_given(pack, n, bytes);
    for (int i = 0; i < n; i++) {
        sni_packed_blob blob = {.bytes = bytes[i], .mapped = given};
        if (bytes[i] == 0) return sni_fail(err, SN_INTERNAL, "packed weights of 0 bytes");
        SN_TRY(make_room(pack, err));
        if (given)
            blob.data = pack->given[pack->count].data;
        else
            SN_TRY(allocate(pack, &blob, err));
        pack->blobs[pack->count++] = blob;
        data[i] = blob.data;
    }
    *filled = given;
    return SN_OK;
}

sn_status sni_pack_alloc(const sni_choice *c, size_t bytes, void **data, bool *filled,
                         sn_error *err) {
    return sni_pack_alloc_all(c, 1, &bytes, data, filled, err);
}

size_t sni_pack_given(const sni_choice *c) {
    const sni_pack *pack = c->pack;
    return pack->count < pack->n_given ? pack->given[pack->count].bytes : 0;
}

/* ---- Borrowed constants ---- */

/* Weights that training has left to fade away are subnormal, where a
 * multiplication takes a hundred times as long. Some of a tensor tell whether it has such, beside
 * others that are so much larger that these amount to nothing. */
static bool has_subnormal(const sni_tensor *t) {
    enum { RUNS = 16, RUN = 1024 };
    const sni_unaligned_float *x = t->data;
    int64_t run = t->count < RUNS * RUN ? t->count : RUN;
    int64_t step = t->count < RUNS * RUN ? t->count : t->count / RUNS;
    float most = 0;
    bool found = false;
    if (t->dtype != SN_FLOAT32) return false;
    for (int64_t from = 0; from < t->count && from + run <= t->count; from += step)
        for (int64_t i = from; i < from + run; i++) {
            float size = fabsf(x[i]);
            found |= size < FLT_MIN && size > 0;
            most = size > most ? size : most;
        }
    return found && most > FLT_MIN * (float)((int64_t)1 << 40);
}

/* Puts a copy in which such weights are 0 in the place of what is borrowed; it is charged until
 * the borrow ends. */
static sn_status drop_subnormal(sni_borrow *borrow, sni_budget *budget, sn_error *err) {
    sni_buffer *buffer;
    const sni_unaligned_float *from = borrow->tensor.data;
    SN_TRY(sni_buffer_new(sni_tensor_bytes(&borrow->tensor), budget, &buffer, err));
    float *to = (float *)(void *)buffer->data;
    for (int64_t i = 0; i < borrow->tensor.count; i++)
        to[i] = fabsf(from[i]) < FLT_MIN ? 0 : from[i];
    sni_tensor copy = borrow->tensor;
    copy.data = to;
    sni_borrow_end(borrow);
    *borrow = (sni_borrow){.tensor = copy, .buffer = buffer};
    return SN_OK;
}

static sn_status borrow(const sni_choice *c, sni_const *constant, bool unaligned,
                        const sni_borrow **out, sn_error *err) {
    sni_borrows *l = c->borrows;
    if (l->count == SNI_MAX_BORROWS)
        return sni_fail(err, SN_INTERNAL, "more than %d constants are borrowed", SNI_MAX_BORROWS);
    size_t charged = constant->made ? sni_tensor_bytes(&constant->tensor) : 0;
    SN_TRY(sni_budget_take(c->pack->budget, charged, err));
    sni_borrow *borrow = &l->of[l->count];
    sn_status status = sni_const_borrow(constant, unaligned, borrow, err);
    if (status == SN_OK && charged && borrow->buffer)
        borrow->buffer->budget = c->pack->budget; /* until the borrow ends */
    else
        sni_budget_give(c->pack->budget, charged);
    if (status == SN_OK && has_subnormal(&borrow->tensor)) {
        status = drop_subnormal(borrow, c->pack->budget, err);
        if (status != SN_OK) sni_borrow_end(borrow);
    }
    if (status != SN_OK) return status;
    *out = &l->of[l->count++];
    return SN_OK;
}

sn_status sni_pack_borrow(const sni_choice *c, int i, bool unaligned, const sni_borrow **out,
                          sn_error *err) {
    return borrow(c, c->constants[i], unaligned, out, err);
}

sn_status sni_pack_borrow_narrow(const sni_choice *c, int i, const sni_borrow **out,
                                 sn_error *err) {
    return borrow(c, c->constants[i]->narrow, true, out, err);
}

void sni_pack_clear(sni_pack *pack) {
    for (int32_t i = pack->count - 1; i >= 0; i--) {
        const sni_packed_blob *blob = &pack->blobs[i];
        if (blob->mapped) continue;
        sni_budget_give(pack->budget, blob->bytes);
        if (blob->in_slab)
            take_from_slab(pack->slab, blob);
        else
            blob_free(blob);
    }
    free(pack->blobs);
    pack->blobs = NULL;
    pack->count = pack->capacity = 0;
}
