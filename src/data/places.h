/* Lists of places (numbers of observations), and places by label. */
#ifndef WB_DATA_PLACES_H
#define WB_DATA_PLACES_H

#include <weber/observations.h>

typedef struct wb_place_list {
    int64_t *items, count, capacity;
} wb_place_list;

/* False when out of memory. */
bool wb_places_add(wb_place_list *places, int64_t place);
bool wb_places_range(wb_place_list *places, int64_t start, int64_t stop);
/* The list as an array; releases the list, also on failure. */
wb_array *wb_places_array(wb_place_list *places);
void wb_places_release(wb_place_list *places);

/* Places sorted by label, ascending within one: those of label g are order[starts[g]] up to
 * order[starts[g + 1] - 1]. */
typedef struct wb_label_groups {
    int64_t n, count;
    int64_t *order, *starts, *labels;
} wb_label_groups;

/* Reads labels (n). False with the error recorded. */
bool wb_label_groups_read(wb_label_groups *groups, const char *function, wb_array *labels);
void wb_label_groups_release(wb_label_groups *groups);

static inline int64_t wb_label_count(const wb_label_groups *groups, int64_t g) {
    return groups->starts[g + 1] - groups->starts[g];
}

/* Sorts ascending. */
void wb_places_sort(int64_t *items, int64_t count);
/* Shuffles the items; the order depends on seed and number alone. False when out of memory. */
bool wb_places_shuffle(int64_t *items, int64_t count, uint64_t seed, int64_t number);

#endif
