#include "base/table.h"

#include "base/memory.h"

struct wb_table_entry {
    uint64_t key;
    int64_t next; /* in its bucket: number + 1; 0: none */
};

static int64_t *bucket_of(const wb_table *table, uint64_t key) {
    return &table->buckets[wb_table_mix(key, 0) & (uint64_t)(table->bucket_count - 1)];
}

static void put(wb_table *table, int64_t number) {
    int64_t *bucket = bucket_of(table, table->entries[number].key);
    table->entries[number].next = *bucket;
    *bucket = number + 1;
}

static bool grow(wb_table *table) {
    const int64_t count = table->bucket_count ? 2 * table->bucket_count : 16;
    int64_t *buckets = wb_alloc((size_t)count * sizeof *buckets);
    if (!buckets) return false;
    wb_release(table->buckets);
    table->buckets = buckets, table->bucket_count = count;
    for (int64_t i = 0; i < table->count; i++) put(table, i);
    return true;
}

bool wb_table_add(wb_table *table, uint64_t key) {
    if (table->count == table->bucket_count && !grow(table)) return false;
    if (!WB_GROW(table->entries, table->count, table->capacity)) return false;
    table->entries[table->count].key = key;
    put(table, table->count++);
    return true;
}

/* The first of number and those behind it in its bucket that has the key. */
static int64_t search(const wb_table *table, int64_t number, uint64_t key) {
    while (number >= 0 && table->entries[number].key != key)
        number = table->entries[number].next - 1;
    return number;
}

int64_t wb_table_find(const wb_table *table, uint64_t key) {
    return table->count ? search(table, *bucket_of(table, key) - 1, key) : -1;
}

int64_t wb_table_next(const wb_table *table, int64_t number) {
    const struct wb_table_entry *e = &table->entries[number];
    return search(table, e->next - 1, e->key);
}

void wb_table_release(wb_table *table) {
    wb_release(table->entries);
    wb_release(table->buckets);
    *table = (wb_table){.count = 0};
}
