/* const.c - tensors that are part of a model. */
#include "graph/graph.h"

#include "base/floats.h"
#include "base/mapping.h"

sn_status sni_const_load(sni_const *c, const sni_tensor **out, sn_error *err) {
    sn_status status = SN_OK;
    pthread_mutex_lock(&c->store->lock);
    if (c->decode && !c->tensor.data) {
        status = c->decode(c, err);
        if (status != SN_OK) c->tensor.data = NULL; /* not half filled */
    }
    pthread_mutex_unlock(&c->store->lock);
    if (status == SN_OK) *out = &c->tensor;
    return status;
}

sn_status sni_const_borrow(sni_const *c, bool unaligned, sni_borrow *out, sn_error *err) {
    pthread_mutex_lock(&c->store->lock);
    sni_const copy = *c;
    pthread_mutex_unlock(&c->store->lock);
    sni_buffer *buffer = NULL;
    if (!copy.tensor.data && copy.raw && unaligned) copy.tensor.data = (void *)copy.raw;
    if (!copy.tensor.data && copy.decode) {
        copy.borrowed = &buffer;
        sn_status status = copy.decode(&copy, err);
        if (status != SN_OK) {
            sni_buffer_release(buffer);
            return status;
        }
    }
    *out = (sni_borrow){.tensor = copy.tensor, .mapping = copy.mapping, .buffer = buffer};
    return SN_OK;
}

void sni_borrow_done(const sni_borrow *borrow, const void *bytes, size_t size) {
    if (!borrow->buffer) sni_mapping_drop(borrow->mapping, bytes, size);
}

void sni_borrow_end(sni_borrow *borrow) {
    sni_borrow_done(borrow, borrow->tensor.data, sni_tensor_bytes(&borrow->tensor));
    sni_buffer_release(borrow->buffer);
    *borrow = (sni_borrow){0};
}

static void release_buffer(void *buffer) {
    sni_buffer_release(buffer);
}

sn_status sni_const_own_memory(sni_const *c, sn_error *err) {
    enum {
        LARGE = 1 << 20
    }; /* borrowed memory is short-lived: filling it in pages of 4 kB costs more */
    size_t bytes = sni_tensor_bytes(&c->tensor);
    sni_buffer *buffer;
    if (c->borrowed && bytes >= LARGE)
        SN_TRY(sni_buffer_new_mapped(bytes, NULL, &buffer, err));
    else
        SN_TRY(sni_buffer_new(bytes, NULL, &buffer, err));
    if (c->borrowed)
        *c->borrowed = buffer;
    else
        SN_TRY(sni_store_own(c->store, buffer, release_buffer, err));
    c->tensor.data = buffer->data;
    return SN_OK;
}

sn_status sni_const_new_lazy(sni_store *store, const sni_tensor *shape, sni_decode_fn decode,
                             const void *source, sni_const **out, sn_error *err) {
    sni_const *c = SNI_NEW(&store->arena, sni_const);
    if (!c) return sni_fail_memory(err);
    c->tensor = *shape;
    c->tensor.data = NULL;
    c->tensor.buffer = NULL;
    c->store = store;
    c->file_bytes = sni_tensor_bytes(&c->tensor);
    c->decode = decode;
    c->source = source;
    *out = c;
    return SN_OK;
}

/* Pages of the narrow numbers leave memory with the borrow. */
static sn_status decode_widened(sni_const *c, sn_error *err) {
    sni_borrow borrow;
    SN_TRY(sni_const_own_memory(c, err));
    SN_TRY(sni_const_borrow(c->narrow, false, &borrow, err));
    sni_widen(borrow.tensor.dtype, borrow.tensor.data, c->tensor.data, (size_t)c->tensor.count);
    sni_borrow_end(&borrow);
    return SN_OK;
}

sn_status sni_const_widened(sni_const *c, sni_const **out, sn_error *err) {
    sni_tensor shape = {0};
    SN_TRY(sni_tensor_shape(&shape, SN_FLOAT32, c->tensor.rank, c->tensor.dims, err));
    SN_TRY(sni_const_new_lazy(c->store, &shape, decode_widened, NULL, out, err));
    (*out)->file_bytes = c->file_bytes;
    (*out)->made = true;
    (*out)->narrow = c;
    return SN_OK;
}

sn_status sni_const_reshaped(sni_const *c, int rank, const int64_t *dims, sni_const **out,
                             sn_error *err) {
    sni_const *copy = SNI_NEW(&c->store->arena, sni_const);
    sni_tensor shape;
    if (!copy) return sni_fail_memory(err);
    SN_TRY(sni_tensor_shape(&shape, c->tensor.dtype, rank, dims, err));
    pthread_mutex_lock(&c->store->lock);
    *copy = *c;
    pthread_mutex_unlock(&c->store->lock);
    shape.data = copy->tensor.data;
    copy->tensor = shape;
    *out = copy;
    return SN_OK;
}

sn_status sni_const_new(sni_store *store, sn_dtype dtype, int rank, const int64_t *dims,
                        sni_const **out, sn_error *err) {
    sni_tensor shape = {0};
    sni_const *c;
    SN_TRY(sni_tensor_shape(&shape, dtype, rank, dims, err));
    SN_TRY(sni_const_new_lazy(store, &shape, NULL, NULL, &c, err));
    SN_TRY(sni_const_own_memory(c, err));
    if (dtype == SN_STRING) memset(c->tensor.data, 0, sni_tensor_bytes(&c->tensor));
    *out = c;
    return SN_OK;
}
