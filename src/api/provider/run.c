/* run.c - a run of a part: its tensors on the way to the provider and back.
 *
 * Where the provider has memory of its own, each tensor gets a block there. What another part of
 * the same engine reads stays in its block (resident.c). */
#include "api/provider/provider.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One call of a part. */
typedef struct part_run {
    sni_kernel *k;
    sni_provider_part *part;
    sn_ep_call call;
    sn_ep_tensor *in, *out;
    sni_tensor *made;            /* outputs as they shall be, on the host */
    bool *ready;                 /* by output: it has its shape and memory */
    sni_device_block **in_block; /* by input; NULL: resident, or on the host */
    sni_device_block **out_block;
    sni_resident **read; /* by input: where it is resident; NULL: it is not */
    sni_device_block *scratch;
    sni_part_shapes *shapes;
    sn_ep_queue *queue;
    bool failed; /* the queue is not to be used again */
} part_run;

static const sn_ep_api *api_of(const part_run *r) {
    return &r->part->engine->provider->api;
}

/* ---- Who looks on ---- */

static bool is_watched(const part_run *r, unsigned how) {
    return r->queue && r->k->host->watched && (r->k->host->watched(r->k) & how);
}

/* Whether an output goes from part to part without a visit to the host. */
static bool stays_away(const part_run *r, int32_t i) {
    return sni_engine_has_memory(r->part->engine) && r->part->readers[i] > 0 &&
           !r->part->on_host[i] && r->made[i].count > 0 && !is_watched(r, SNI_WATCHES_VALUES);
}

/* ---- Calls of the provider ---- */

static sn_status failed(const part_run *r, sn_status status, sn_error *told, const char *what) {
    status = sni_provider_failed(r->k->err, status, told);
    return sni_fail_context(r->k->err, status, "%s", what);
}

static sn_status wait_queue(part_run *r) {
    sn_error told = {0};
    if (!r->queue) return SN_OK;
    sn_status status = api_of(r)->wait(r->queue, &told);
    if (status == SN_OK) return SN_OK;
    r->failed = true;
    return failed(r, status, &told, "waiting for the device");
}

static sn_ep_tensor host_tensor(const sni_tensor *t) {
    sn_ep_tensor x = {.size = sizeof x,
                      .dtype = t->dtype,
                      .rank = t->rank,
                      .bytes = sni_tensor_bytes(t),
                      .host = t->data};
    memcpy(x.dims, t->dims, (size_t)t->rank * sizeof *x.dims);
    return x;
}

static sn_ep_tensor device_tensor(const sni_tensor *t, const sni_device_block *b) {
    sn_ep_tensor x = host_tensor(t);
    x.host = NULL;
    x.memory = b->memory;
    return x;
}

static sn_status copy(part_run *r, const sn_ep_tensor *from, const sn_ep_tensor *to,
                      const char *what) {
    sn_error told = {0};
    if (!from->bytes) return SN_OK;
    sn_status status = api_of(r)->copy(r->queue, from, to, &told);
    return status == SN_OK ? SN_OK : failed(r, status, &told, what);
}

/* ---- Shapes ---- */

static bool same_dims(const part_run *r, const sni_part_shapes *s) {
    size_t at = 0;
    for (int32_t i = 0; i < r->part->n_in; i++) {
        if (s->dims[at++] != r->in[i].rank) return false;
        for (int a = 0; a < r->in[i].rank; a++)
            if (s->dims[at++] != r->in[i].dims[a]) return false;
    }
    return true;
}

static void free_shapes(const part_run *r, sni_part_shapes *s) {
    if (s->ready) api_of(r)->ready_free(s->ready);
    free(s->dims);
    free(s);
}

/* Drops the sets unused for longest beyond as many as are to be kept. With the lock held. */
static void drop_shapes(part_run *r) {
    int kept = 0;
    for (sni_part_shapes **at = &r->part->shapes; *at;) {
        sni_part_shapes *s = *at;
        if (kept++ < r->part->engine->max_shapes) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->dropped = true;
        if (!s->users) free_shapes(r, s);
    }
}

static sn_status new_shapes(part_run *r, sni_part_shapes **out) {
    sn_error told = {0};
    size_t count = 1, at = 0;
    for (int32_t i = 0; i < r->part->n_in; i++) count += (size_t)r->in[i].rank + 1;
    sni_part_shapes *s = calloc(1, sizeof *s);
    int64_t *dims = calloc(count, sizeof *dims);
    if (!s || !dims) {
        free(s);
        free(dims);
        return sni_fail_memory(r->k->err);
    }
    s->dims = dims;
    for (int32_t i = 0; i < r->part->n_in; i++) {
        dims[at++] = r->in[i].rank;
        for (int a = 0; a < r->in[i].rank; a++) dims[at++] = r->in[i].dims[a];
    }
    sn_status status =
        api_of(r)->prepare(r->part->program, &r->call, &s->scratch, &s->ready, &told);
    if (status != SN_OK) {
        s->ready = NULL;
        free_shapes(r, s);
        return failed(r, status, &told, "preparing it for these shapes");
    }
    *out = s;
    return SN_OK;
}

/* The program made ready for the shapes of the inputs. */
static sn_status take_shapes(part_run *r) {
    sni_provider_part *p = r->part;
    if (!api_of(r)->prepare) return SN_OK;
    pthread_mutex_lock(&p->lock);
    sni_part_shapes **at = &p->shapes;
    while (*at && !same_dims(r, *at)) at = &(*at)->next;
    sni_part_shapes *s = *at;
    sn_status status = SN_OK;
    if (s)
        *at = s->next;
    else
        status = new_shapes(r, &s);
    if (status == SN_OK) {
        s->next = p->shapes;
        p->shapes = s;
        s->users++;
        r->shapes = s;
        drop_shapes(r);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

static void give_shapes(part_run *r) {
    sni_part_shapes *s = r->shapes;
    if (!s) return;
    pthread_mutex_lock(&r->part->lock);
    if (--s->users == 0 && s->dropped) free_shapes(r, s);
    pthread_mutex_unlock(&r->part->lock);
}

/* ---- Inputs ---- */

static sn_status put_input(part_run *r, int32_t i) {
    const sni_tensor *t = sni_in(r->k, i);
    if (!t) return sni_fail(r->k->err, SN_INTERNAL, "input %d is no tensor", (int)i);
    r->in[i] = host_tensor(t);
    if (!sni_engine_has_memory(r->part->engine)) return SN_OK;
    r->read[i] = sni_resident_find(r->k, r->part->engine, t);
    if (r->read[i]) {
        r->in[i] = device_tensor(t, r->read[i]->block);
        return SN_OK;
    }
    SN_TRY(sni_engine_alloc(r->part->engine, sni_tensor_bytes(t), &r->in_block[i], r->k->err));
    sn_ep_tensor from = r->in[i];
    r->in[i] = device_tensor(t, r->in_block[i]);
    return copy(r, &from, &r->in[i], "copying to the device");
}

static void tell(const part_run *r, const char *what, uint64_t start, uint64_t bytes) {
    if (!bytes) return;
    sni_transfer t = {what, r->part->params.provider, start, bytes};
    r->k->host->transfer(r->k, &t);
}

static sn_status put_inputs(part_run *r) {
    uint64_t start = is_watched(r, SNI_WATCHES_STEPS) ? sni_now_ns() : 0, bytes = 0;
    for (int32_t i = 0; i < r->part->n_in; i++) {
        SN_TRY(put_input(r, i));
        if (r->in_block[i]) bytes += r->in[i].bytes;
    }
    if (!start) return SN_OK;
    SN_TRY(wait_queue(r));
    tell(r, "CopyToDevice", start, bytes);
    return SN_OK;
}

/* ---- Outputs ---- */

/* Memory for an output whose shape is in r->made[i]; on the host it is there already. */
static sn_status place_output(part_run *r, int32_t i) {
    sni_tensor *t = &r->made[i];
    if (sni_engine_has_memory(r->part->engine)) {
        SN_TRY(sni_engine_alloc(r->part->engine, sni_tensor_bytes(t), &r->out_block[i], r->k->err));
        r->out[i] = device_tensor(t, r->out_block[i]);
    } else {
        r->out[i] = host_tensor(t);
    }
    r->ready[i] = true;
    return SN_OK;
}

static sn_status put_outputs(part_run *r) {
    for (int32_t i = 0; i < r->part->n_out; i++) {
        const sni_tensor *t = sni_out(r->k, i);
        r->out[i] =
            (sn_ep_tensor){.size = sizeof r->out[i], .dtype = r->part->types[i], .rank = -1};
        if (!t || r->k->out[i]->kind != SN_KIND_TENSOR) continue;
        r->made[i] = *t;
        SN_TRY(place_output(r, i));
    }
    return SN_OK;
}

/* A shape that the provider gives differs from the one that is known. */
static sn_status refuse_shape(const sn_ep_tensor *want, size_t index, int rank, const int64_t *dims,
                              sn_error *err) {
    char texts[2][96] = {"", ""};
    for (int side = 0; side < 2; side++) {
        int n = 0, count = side ? rank : want->rank;
        const int64_t *d = side ? dims : want->dims;
        for (int a = 0; a < count && n >= 0 && (size_t)n < sizeof texts[side]; a++)
            n += snprintf(texts[side] + n, sizeof texts[side] - (size_t)n, "%s%" PRId64,
                          a ? "," : "", d[a]);
    }
    return sni_fail(err, SN_BAD_DATA, "output %zu has shape [%s] and not [%s]", index, texts[0],
                    texts[1]);
}

sn_status sni_ep_output(sn_ep_call *call, size_t index, int rank, const int64_t *dims,
                        sn_error *err) {
    part_run *r = call ? call->host : NULL;
    if (!r || index >= (size_t)r->part->n_out || rank < 0 || rank > SN_MAX_RANK || (rank && !dims))
        return sni_fail(err, SN_INVALID_ARGUMENT, "output %zu of rank %d: there is no such", index,
                        rank);
    int32_t i = (int32_t)index;
    if (r->ready[i]) {
        bool same = r->out[i].rank == rank;
        for (int a = 0; same && a < rank; a++) same = r->out[i].dims[a] == dims[a];
        return same ? SN_OK : refuse_shape(&r->out[i], index, rank, dims, err);
    }
    sni_kernel *k = r->k;
    sni_tensor *t = &r->made[i];
    SN_TRY(sni_tensor_shape(t, r->part->types[i], rank, dims, err));
    sn_status status = sni_out_alloc(k, i, r->part->types[i], rank, dims);
    const sni_tensor *kept = sni_out(k, i);
    if (status == SN_OK && kept) *t = *kept;
    if (status == SN_OK && !kept) { /* nobody reads it */
        t->data = sni_scratch(k, sni_tensor_bytes(t) + 1);
        if (!t->data) status = SN_NO_MEMORY;
    }
    if (status == SN_OK) status = place_output(r, i);
    if (status != SN_OK) return sni_fail(err, status, "there is no memory for output %zu", index);
    return SN_OK;
}

static sn_status get_outputs(part_run *r) {
    uint64_t start = is_watched(r, SNI_WATCHES_STEPS) ? sni_now_ns() : 0, bytes = 0;
    for (int32_t i = 0; i < r->part->n_out; i++) {
        if (!r->ready[i])
            return sni_fail(r->k->err, SN_BAD_DATA, "it did not make output %d", (int)i);
        if (!r->out_block[i] || stays_away(r, i) || !sni_out(r->k, i)) continue;
        sn_ep_tensor to = host_tensor(&r->made[i]),
                     from = device_tensor(&r->made[i], r->out_block[i]);
        SN_TRY(copy(r, &from, &to, "copying to the host"));
        bytes += from.bytes;
    }
    SN_TRY(wait_queue(r));
    if (start) tell(r, "CopyToHost", start, bytes);
    return SN_OK;
}

/* ---- The call ---- */

bool sni_ep_stopping(const sn_ep_call *call) {
    const part_run *r = call ? call->host : NULL;
    return r && sni_stopping(r->k);
}

static sn_status open_run(part_run *r) {
    size_t n_in = (size_t)r->part->n_in + 1, n_out = (size_t)r->part->n_out + 1;
    r->in = calloc(n_in, sizeof *r->in);
    r->out = calloc(n_out, sizeof *r->out);
    r->made = calloc(n_out, sizeof *r->made);
    r->ready = calloc(n_out, sizeof *r->ready);
    r->in_block = calloc(n_in, sizeof(*r->in_block));
    r->out_block = calloc(n_out, sizeof(*r->out_block));
    r->read = calloc(n_in, sizeof(*r->read));
    if (!r->in || !r->out || !r->made || !r->ready || !r->in_block || !r->out_block || !r->read)
        return sni_fail_memory(r->k->err);
    r->call = (sn_ep_call){.size = sizeof r->call,
                           .part = r->part->name,
                           .input_count = (size_t)r->part->n_in,
                           .output_count = (size_t)r->part->n_out,
                           .inputs = r->in,
                           .outputs = r->out,
                           .threads = r->k->threads,
                           .host = r};
    return SN_OK;
}

/* After a failure the queue may still be working on what is freed here. */
static void close_run(part_run *r, bool ok) {
    sni_engine *e = r->part->engine;
    sn_error unwanted = {0};
    if (!ok && r->queue && !r->failed) {
        api_of(r)->wait(r->queue, &unwanted);
        r->failed = true;
    }
    sni_engine_queue_done(e, r->queue, r->failed);
    for (int32_t i = 0; i < r->part->n_in && r->in_block; i++) sni_engine_free(e, r->in_block[i]);
    for (int32_t i = 0; i < r->part->n_out && r->out_block; i++)
        sni_engine_free(e, r->out_block[i]);
    sni_engine_free(e, r->scratch);
    give_shapes(r);
    free(r->in);
    free(r->out);
    free(r->made);
    free(r->ready);
    free(r->in_block);
    free(r->out_block);
    free(r->read);
}

static sn_status get_scratch(part_run *r) {
    uint64_t bytes = r->shapes ? r->shapes->scratch : 0;
    if (!bytes) return SN_OK;
    sn_ep_tensor *s = &r->call.scratch;
    *s = (sn_ep_tensor){.size = sizeof *s, .dtype = SN_UINT8, .rank = 1, .bytes = (size_t)bytes};
    s->dims[0] = (int64_t)bytes;
    if (sni_engine_has_memory(r->part->engine)) {
        SN_TRY(sni_engine_alloc(r->part->engine, (size_t)bytes, &r->scratch, r->k->err));
        s->memory = r->scratch->memory;
        return SN_OK;
    }
    s->host = sni_scratch(r->k, (size_t)bytes);
    return s->host ? SN_OK : SN_NO_MEMORY;
}

/* Keeps an output's block for the parts that read it. */
static sn_status stay(part_run *r, int32_t i) {
    sni_resident x = {.address = r->made[i].data,
                      .bytes = sni_tensor_bytes(&r->made[i]),
                      .engine = r->part->engine,
                      .block = r->out_block[i],
                      .left = r->part->readers[i]};
    SN_TRY(sni_resident_add(r->k, &x));
    r->out_block[i] = NULL;
    return SN_OK;
}

static sn_status call_provider(part_run *r) {
    sn_error told = {0};
    const sn_ep_api *api = api_of(r);
    SN_TRY(open_run(r));
    if (api->queue_new) SN_TRY(sni_engine_queue(r->part->engine, &r->queue, r->k->err));
    SN_TRY(put_inputs(r));
    SN_TRY(put_outputs(r));
    SN_TRY(take_shapes(r));
    SN_TRY(get_scratch(r));
    sn_status status =
        api->run(r->part->program, r->shapes ? r->shapes->ready : NULL, r->queue, &r->call, &told);
    if (status != SN_OK) return failed(r, status, &told, "running it");
    if (is_watched(r, SNI_WATCHES_STEPS)) SN_TRY(wait_queue(r));
    SN_TRY(get_outputs(r));
    for (int32_t i = 0; i < r->part->n_out; i++)
        if (r->out_block[i] && r->part->readers[i] && r->made[i].count && sni_out(r->k, i))
            SN_TRY(stay(r, i));
    for (int32_t i = 0; i < r->part->n_in; i++)
        if (r->read[i]) sni_resident_leave(r->k, r->read[i]);
    return SN_OK;
}

static sn_status run_once(sni_kernel *k, sni_provider_part *part) {
    part_run r = {.k = k, .part = part};
    sn_status status = call_provider(&r);
    close_run(&r, status == SN_OK);
    return status;
}

/* ---- On the CPU ---- */

/* Brings inputs that are on the device to where the plan has room for them on the host. */
static sn_status bring_here(sni_kernel *k, sni_provider_part *part) {
    part_run r = {.k = k, .part = part};
    sn_status status = SN_OK;
    if (!sni_engine_has_memory(part->engine)) return SN_OK;
    SN_TRY(sni_engine_queue(part->engine, &r.queue, k->err));
    for (int32_t i = 0; i < part->n_in && status == SN_OK; i++) {
        const sni_tensor *t = sni_in(k, i);
        sni_resident *x = t ? sni_resident_find(k, part->engine, t) : NULL;
        if (!x) continue;
        sn_ep_tensor from = device_tensor(t, x->block), to = host_tensor(t);
        status = copy(&r, &from, &to, "copying to the host");
        if (status == SN_OK) status = wait_queue(&r);
        if (status == SN_OK) sni_resident_leave(k, x);
    }
    close_run(&r, status == SN_OK);
    return status;
}

static sn_status take_result(sni_kernel *k, int32_t i, sni_datum *from) {
    sni_datum *to = k->out[i];
    if (!to) return SN_OK;
    if (to->kind == SN_KIND_NONE) return sni_datum_share(to, from, k->budget, k->err);
    if (sni_tensor_bytes(&to->tensor) != sni_tensor_bytes(&from->tensor))
        return sni_fail(k->err, SN_INTERNAL, "output %d has another size on the CPU", (int)i);
    if (to->tensor.count) memcpy(to->tensor.data, from->tensor.data, sni_tensor_bytes(&to->tensor));
    return SN_OK;
}

static sn_status run_here(sni_kernel *k, sni_provider_part *part) {
    sni_datum *out = calloc((size_t)k->n_out + 1, sizeof *out);
    if (!out) return sni_fail_memory(k->err);
    if (!atomic_exchange(&part->engine->told, true))
        sni_engine_log(part->engine, SN_LOG_WARNING,
                       "there was no memory for part '%s', which ran on the CPU", part->name);
    sn_status status = bring_here(k, part);
    if (status == SN_OK) status = sni_run_subgraph(k, 0, k->in, k->n_in, out, k->n_out);
    for (int32_t i = 0; i < k->n_out; i++) {
        if (status == SN_OK) status = take_result(k, i, &out[i]);
        sni_datum_clear(&out[i]);
    }
    free(out);
    return status;
}

/* What a failed attempt has left in outputs whose shape was not known. */
static void clear_outputs(sni_kernel *k, const bool *fresh) {
    for (int32_t i = 0; i < k->n_out; i++)
        if (k->out[i] && fresh[i]) sni_datum_clear(k->out[i]);
}

sn_status sni_part_run(sni_kernel *k) {
    sni_provider_part *part = (sni_provider_part *)k->params;
    bool *fresh = calloc((size_t)k->n_out + 1, sizeof *fresh);
    if (!fresh) return sni_fail_memory(k->err);
    for (int32_t i = 0; i < k->n_out; i++) fresh[i] = k->out[i] && k->out[i]->kind == SN_KIND_NONE;
    sn_status status = run_once(k, part);
    if (status == SN_NO_MEMORY) {
        sni_engine_trim(part->engine);
        clear_outputs(k, fresh);
        status = run_once(k, part);
    }
    if (status == SN_NO_MEMORY && part->engine->fallback) {
        clear_outputs(k, fresh);
        status = run_here(k, part);
    }
    free(fresh);
    if (status == SN_OK) return SN_OK;
    return sni_fail_context(k->err, status, "provider '%s', part '%s'", part->params.provider,
                            part->name);
}
