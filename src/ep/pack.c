/* pack.c - memory of what implementations make of constants, or the finished bytes of a file. */
#include "base/checked.h"
#include "ep/ep.h"

#include <stdlib.h>

static sn_status make_room(sni_pack *pack, sn_error *err) {
    if (pack->count < pack->capacity) return SN_OK;
    int32_t more = pack->capacity ? pack->capacity * 2 : 2;
    sni_piece *bigger = realloc(pack->pieces, (size_t)more * sizeof *bigger);
    if (!bigger) return sni_fail_memory(err);
    pack->pieces = bigger;
    pack->capacity = more;
    return SN_OK;
}

static sn_status allocate(sni_pack *pack, size_t bytes, void **out, sn_error *err) {
    size_t rounded;
    if (!sni_add_size(bytes, SNI_ALIGN - 1, &rounded))
        return sni_fail(err, SN_LIMIT, "packed weights of %zu bytes are too large", bytes);
    rounded &= ~(size_t)(SNI_ALIGN - 1);
    SN_TRY(sni_budget_take(pack->budget, bytes, err));
    void *p = aligned_alloc(SNI_ALIGN, rounded);
    if (!p) {
        sni_budget_give(pack->budget, bytes);
        return sni_fail_memory(err);
    }
    memset(p, 0, rounded);
    *out = p;
    return SN_OK;
}

sn_status sni_pack_alloc(const sni_choice *c, size_t bytes, void **data, bool *filled,
                         sn_error *err) {
    sni_pack *pack = c->pack;
    if (bytes == 0) return sni_fail(err, SN_INTERNAL, "packed weights of 0 bytes");
    SN_TRY(make_room(pack, err));
    const sni_piece *given = pack->count < pack->n_given ? &pack->given[pack->count] : NULL;
    sni_piece piece = {.bytes = bytes, .mapped = given && given->bytes == bytes};
    if (piece.mapped)
        piece.data = given->data;
    else
        SN_TRY(allocate(pack, bytes, &piece.data, err));
    pack->pieces[pack->count++] = piece;
    *data = piece.data;
    *filled = piece.mapped;
    return SN_OK;
}

void sni_pack_clear(sni_pack *pack) {
    for (int32_t i = 0; i < pack->count; i++) {
        if (pack->pieces[i].mapped) continue;
        sni_budget_give(pack->budget, pack->pieces[i].bytes);
        free(pack->pieces[i].data);
    }
    free(pack->pieces);
    pack->pieces = NULL;
    pack->count = pack->capacity = 0;
}
