/* text.c - texts handed to callers, and lists of keys and values. */
#include "ort/ort.h"

#include <stdlib.h>
#include <string.h>

OrtStatus *ort_copy_text(OrtAllocator *allocator, const char *text, char **out) {
    size_t size = strlen(text) + 1;
    char *copy = allocator->Alloc(allocator, size);
    if (!copy) return ort_fail_memory();
    memcpy(copy, text, size);
    *out = copy;
    return NULL;
}

OrtStatus *ort_give_text(const char *text, size_t length, char *out, size_t *size) {
    size_t room = *size, needed = length + 1;
    *size = needed;
    if (!out) return NULL;
    if (room < needed)
        return ort_fail(ORT_INVALID_ARGUMENT, "the text takes %zu bytes and there is room for %zu",
                        needed, room);
    memcpy(out, text, length);
    out[length] = 0;
    return NULL;
}

bool ort_replace_text(char **text, const char *by) {
    char *copy = by ? strdup(by) : NULL;
    if (by && !copy) return false;
    free(*text);
    *text = copy;
    return true;
}

/* ---- Lists ---- */

/* The position of a key, or `count`. */
static size_t find(const OrtKeyValuePairs *pairs, const char *key) {
    size_t i = 0;
    while (i < pairs->count && strcmp(pairs->keys[i], key) != 0) i++;
    return i;
}

const char *ort_pairs_get(const OrtKeyValuePairs *pairs, const char *key) {
    size_t i = find(pairs, key);
    return i < pairs->count ? pairs->values[i] : NULL;
}

/* Makes place for one more pair; false when memory runs out, and the list is as it was. */
static bool grow(OrtKeyValuePairs *pairs) {
    if (pairs->count < pairs->capacity) return true;
    size_t capacity = pairs->capacity ? pairs->capacity * 2 : 8;
    char **keys = realloc(pairs->keys, capacity * sizeof *keys);
    if (keys) pairs->keys = keys;
    char **values = realloc(pairs->values, capacity * sizeof *values);
    if (values) pairs->values = values;
    if (!keys || !values) return false;
    pairs->capacity = capacity;
    return true;
}

bool ort_pairs_set(OrtKeyValuePairs *pairs, const char *key, const char *value) {
    size_t i = find(pairs, key);
    if (i < pairs->count) return ort_replace_text(&pairs->values[i], value);
    char *k = strdup(key), *v = strdup(value);
    if (!k || !v || !grow(pairs)) {
        free(k);
        free(v);
        return false;
    }
    pairs->keys[pairs->count] = k;
    pairs->values[pairs->count++] = v;
    return true;
}

bool ort_pairs_copy(OrtKeyValuePairs *to, const OrtKeyValuePairs *from) {
    for (size_t i = 0; i < from->count; i++)
        if (!ort_pairs_set(to, from->keys[i], from->values[i])) return false;
    return true;
}

void ort_pairs_clear(OrtKeyValuePairs *pairs) {
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->keys[i]);
        free(pairs->values[i]);
    }
    free(pairs->keys);
    free(pairs->values);
    *pairs = (OrtKeyValuePairs){0};
}

/* ---- Slots ---- */

void ort_CreateKeyValuePairs(OrtKeyValuePairs **out) {
    if (out) *out = calloc(1, sizeof **out);
}

void ort_AddKeyValuePair(OrtKeyValuePairs *kvps, const char *key, const char *value) {
    if (kvps && key && *key && value) ort_pairs_set(kvps, key, value);
}

const char *ort_GetKeyValue(const OrtKeyValuePairs *kvps, const char *key) {
    return kvps && key ? ort_pairs_get(kvps, key) : NULL;
}

void ort_GetKeyValuePairs(const OrtKeyValuePairs *kvps, const char *const **keys,
                          const char *const **values, size_t *num_entries) {
    if (keys) *keys = kvps ? (const char *const *)kvps->keys : NULL;
    if (values) *values = kvps ? (const char *const *)kvps->values : NULL;
    if (num_entries) *num_entries = kvps ? kvps->count : 0;
}

void ort_RemoveKeyValuePair(OrtKeyValuePairs *kvps, const char *key) {
    if (!kvps || !key) return;
    size_t i = find(kvps, key);
    if (i == kvps->count) return;
    free(kvps->keys[i]);
    free(kvps->values[i]);
    kvps->count--;
    memmove(kvps->keys + i, kvps->keys + i + 1, (kvps->count - i) * sizeof *kvps->keys);
    memmove(kvps->values + i, kvps->values + i + 1, (kvps->count - i) * sizeof *kvps->values);
}

void ort_ReleaseKeyValuePairs(OrtKeyValuePairs *input) {
    if (!input) return;
    ort_pairs_clear(input);
    free(input);
}
