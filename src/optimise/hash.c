/* 64-bit hashes of bytes, of a model's parameters and of an optimiser's states, by which ranks
 * compare them. Made for speed; not safe against someone who wants two to be equal. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "layers/layer.h"
#include "optimise/compare.h"
#include "ranks/facts.h"

static uint64_t turn(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

/* Four words at a time, none of which waits for another one. */
uint64_t wb_hash_of(uint64_t seed, const void *from, size_t count) {
    const char *bytes = from;
    static const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t lanes[4] = {seed ^ count, turn(seed, 17), turn(seed, 31), turn(seed, 47)};
    size_t at = 0;
    for (; at + 32 <= count; at += 32)
        for (int i = 0; i < 4; i++) {
            uint64_t word;
            memcpy(&word, bytes + at + 8 * i, 8);
            lanes[i] = turn((lanes[i] ^ word) * odd, 29);
        }
    for (; at < count; at++) lanes[at & 3] = (lanes[at & 3] ^ (unsigned char)bytes[at]) * odd;
    uint64_t hash = 0;
    for (int i = 0; i < 4; i++) hash = turn((hash ^ lanes[i]) * odd, 32);
    return hash ^ hash >> 29;
}

static bool add_array(uint64_t *hash, wb_array *x) {
    const size_t bytes = (size_t)wb_count(x) * wb_dtype_size((wb_dtype)x->dtype);
    if (!wb_scope_begin()) return false;
    const char *at = wb_read_begin(x);
    if (at) *hash = wb_hash_of(*hash, at, bytes);
    if (at) wb_read_end(x);
    const wb_status closed = wb_scope_leave();
    return at && closed == WB_OK;
}

typedef struct hasher {
    wb_visitor visitor;
    uint64_t hash;
    const wb_device *device; /* of the last one */
    wb_text *facts;          /* of each array; or NULL */
} hasher;

static bool hash_array(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    hasher *h = (hasher *)(void *)visitor;
    char name[WB_PATH_BYTES], text[32];
    if (!trainable) return true;
    h->device = (*slot)->device;
    if (!h->facts) return add_array(&h->hash, *slot);
    h->hash = 0;
    if (!add_array(&h->hash, *slot)) return false;
    wb_path_text(path, name, sizeof name);
    (void)snprintf(text, sizeof text, "of hash %08llx", (unsigned long long)h->hash >> 32);
    wb_fact_add(h->facts, name, text);
    return true;
}

bool wb_hash_parameters(wb_optimiser *o, wb_text *facts, wb_model_hash *hash) {
    hasher h = {.visitor = {.array = hash_array}, .hash = 1, .facts = facts};
    const bool done = wb_visit(&h.visitor, o->model);
    *hash = (wb_model_hash){h.hash, h.device ? h.device : wb_cpu_device()};
    return done;
}

bool wb_hash_states(wb_optimiser *o, uint64_t *hash) {
    const int64_t count = o->is_divided ? 0 : wb_optimiser_slots(o, NULL);
    wb_array ***slots = wb_alloc(sizeof *slots * (size_t)(count + 1));
    bool done = slots != NULL;
    if (done && count) (void)wb_optimiser_slots(o, slots);
    *hash = 2;
    for (int64_t i = 0; i < count && done; i++) done = add_array(hash, *slots[i]);
    wb_release(slots);
    return done;
}
