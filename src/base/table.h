/* A hash table of 64-bit keys, numbered 0, 1, 2 ... as they are added. The caller keeps the values,
 * by these numbers. At most 2^31 keys. */
#ifndef WB_BASE_TABLE_H
#define WB_BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Initialise it with {0}. */
typedef struct wb_table {
    struct wb_table_entry *entries;
    int64_t count, capacity;
    struct wb_table_slot *slots;
    int64_t slot_count; /* a power of two */
} wb_table;

/* Adds the key, even if it is there already; its number is the old count. False when out of
 * memory. */
bool wb_table_add(wb_table *table, uint64_t key);
/* wb_table_find: the latest number with this key; wb_table_next: the one before; -1: no more. */
int64_t wb_table_find(const wb_table *table, uint64_t key);
int64_t wb_table_next(const wb_table *table, int64_t number);
void wb_table_release(wb_table *table);

/* Mixes one more word into a key. */
static inline uint64_t wb_table_mix(uint64_t key, uint64_t word) {
    key = (key ^ word) * 0x9E3779B97F4A7C15ull;
    return key ^ key >> 29;
}

#endif
