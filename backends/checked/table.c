/* Objects by their address, so that an unknown one is noticed without reading its memory. */
#include "checked.h"

static known **bucket_of(table *t, const void *key) {
    const uint64_t bits = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15ull;
    return &t->buckets[bits >> 48];
}

void wb_checked_put(table *t, known *k, const void *key) {
    known **bucket = bucket_of(t, key);
    k->key = key;
    k->next = *bucket;
    *bucket = k;
}

void wb_checked_take(table *t, known *k) {
    known **at = bucket_of(t, k->key);
    while (*at != k) at = &(*at)->next;
    *at = k->next;
}

known *wb_checked_find(table *t, const void *key) {
    known *k = *bucket_of(t, key);
    while (k && k->key != key) k = k->next;
    return k;
}
