/* The keys are in a list in the order in which they were added; a hash table with open addressing
 * finds their numbers. Entries with the same key are linked, the latest first. */
#include "base/table.h"

#include "base/memory.h"

struct wb_table_entry {
    uint64_t key;
    int64_t next; /* the one before with the same key: number + 1; 0: none */
};

/* Open addressing: the slot of a key, or a free one, is looked for from the key's place on. A slot
 * has the latest number of a key and, so that entries of other keys need not be read, a part of its
 * hash. At least half of them are free. */
struct wb_table_slot {
    uint32_t tag;
    uint32_t number; /* + 1; 0: free */
};

static struct wb_table_slot *slot_of(const wb_table *table, uint64_t hash, uint64_t key) {
    const uint64_t mask = (uint64_t)(table->slot_count - 1);
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
        struct wb_table_slot *slot = &table->slots[i];
        if (!slot->number ||
            (slot->tag == (uint32_t)(hash >> 32) && table->entries[slot->number - 1].key == key))
            return slot;
    }
}

/* Puts a number after all others that have its key. */
static void put(wb_table *table, int64_t number) {
    const uint64_t key = table->entries[number].key, hash = wb_table_mix(key, 0);
    struct wb_table_slot *slot = slot_of(table, hash, key);
    table->entries[number].next = slot->number;
    *slot = (struct wb_table_slot){(uint32_t)(hash >> 32), (uint32_t)(number + 1)};
}

static bool grow(wb_table *table) {
    const int64_t count = table->slot_count ? 2 * table->slot_count : 32;
    struct wb_table_slot *slots = wb_alloc((size_t)count * sizeof *slots);
    if (!slots) return false;
    wb_release(table->slots);
    table->slots = slots, table->slot_count = count;
    for (int64_t i = 0; i < table->count; i++) put(table, i);
    return true;
}

bool wb_table_add(wb_table *table, uint64_t key) {
    if (2 * (table->count + 1) > table->slot_count && !grow(table)) return false;
    if (!WB_GROW(table->entries, table->count, table->capacity)) return false;
    table->entries[table->count].key = key;
    put(table, table->count++);
    return true;
}

int64_t wb_table_find(const wb_table *table, uint64_t key) {
    return table->count ? (int64_t)slot_of(table, wb_table_mix(key, 0), key)->number - 1 : -1;
}

int64_t wb_table_next(const wb_table *table, int64_t number) {
    return table->entries[number].next - 1;
}

void wb_table_release(wb_table *table) {
    wb_release(table->entries);
    wb_release(table->slots);
    *table = (wb_table){.count = 0};
}
