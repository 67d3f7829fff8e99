/* names.c - a hash table from names to values: open addressing over SipHash-1-3. */
#include "model/names.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static uint64_t hash_key[2];
static pthread_once_t hash_key_once = PTHREAD_ONCE_INIT;

static void make_hash_key(void) {
    if (getrandom(hash_key, sizeof hash_key, GRND_NONBLOCK) == (ssize_t)sizeof hash_key) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    hash_key[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u;
    hash_key[1] = (uint64_t)(uintptr_t)&now ^ (uint64_t)now.tv_sec;
}

static uint64_t rotate(uint64_t x, unsigned by) {
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static uint64_t hash(sni_str s) {
    pthread_once(&hash_key_once, make_hash_key);
    uint64_t v[4] = {hash_key[0] ^ 0x736f6d6570736575u, hash_key[1] ^ 0x646f72616e646f6du,
                     hash_key[0] ^ 0x6c7967656e657261u, hash_key[1] ^ 0x7465646279746573u};
    for (size_t at = 0; at <= s.n; at += 8) {
        uint64_t word = 0;
        size_t left = s.n - at;
        if (left) memcpy(&word, s.p + at, left < 8 ? left : 8);
        if (left < 8) word |= (uint64_t)s.n << 56;
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The key's slot, or the free one where it belongs. */
static sni_name *slot_of(const sni_names *names, sni_str key, uint64_t h) {
    size_t mask = names->capacity - 1, i = (size_t)h & mask;
    for (;; i = (i + 1) & mask) {
        sni_name *slot = &names->slots[i];
        if (!slot->key.p || (slot->hash == h && sni_str_eq(slot->key, key))) return slot;
    }
}

const sni_name *sni_names_find(const sni_names *names, sni_str key) {
    if (!names->count) return NULL;
    const sni_name *slot = slot_of(names, key, hash(key));
    return slot->key.p ? slot : NULL;
}

static sn_status grow(sni_names *names, sn_error *err) {
    sni_names bigger = {.capacity = names->capacity ? names->capacity * 2 : 16,
                        .count = names->count};
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots) return sni_fail_memory(err);
    for (size_t i = 0; i < names->capacity; i++) {
        const sni_name *slot = &names->slots[i];
        if (slot->key.p) *slot_of(&bigger, slot->key, slot->hash) = *slot;
    }
    free(names->slots);
    *names = bigger;
    return SN_OK;
}

sn_status sni_names_add(sni_names *names, sni_str key, int32_t value, int32_t order,
                        sn_error *err) {
    if (names->count >= names->capacity / 2) SN_TRY(grow(names, err));
    if (!key.p) key.p = "";
    uint64_t h = hash(key);
    *slot_of(names, key, h) = (sni_name){.key = key, .value = value, .order = order, .hash = h};
    names->count++;
    return SN_OK;
}

void sni_names_free(sni_names *names) {
    free(names->slots);
    *names = (sni_names){0};
}
