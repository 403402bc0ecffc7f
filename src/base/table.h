/* A hash table of 64-bit keys, which are numbered 0, 1, 2 ... as they are added; the caller keeps
 * what belongs to the numbers. At most 2^31 keys. */
#ifndef WB_BASE_TABLE_H
#define WB_BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Begins as {0}. */
typedef struct wb_table {
    struct wb_table_entry *entries;
    int64_t count, capacity;
    struct wb_table_slot *slots;
    int64_t slot_count; /* a power of two */
} wb_table;

/* Adds the key, also where it is there already, under number count. False when out of memory. */
bool wb_table_add(wb_table *table, uint64_t key);
/* A number with this key, then the others with it, the latest first; -1: no more. */
int64_t wb_table_find(const wb_table *table, uint64_t key);
int64_t wb_table_next(const wb_table *table, int64_t number);
void wb_table_release(wb_table *table);

/* A key made of another one and one more word. */
static inline uint64_t wb_table_mix(uint64_t key, uint64_t word) {
    key = (key ^ word) * 0x9E3779B97F4A7C15ull;
    return key ^ key >> 29;
}

#endif
