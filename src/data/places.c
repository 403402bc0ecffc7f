/* Lists of places that grow, and integer labels sorted into groups, so that the places of one label
 * are together, in order. */
#include "data/places.h"

#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "base/memory.h"
#include "data/order.h"

/* ---- lists ---- */

bool wb_places_add(wb_place_list *places, int64_t place) {
    if (!WB_GROW(places->items, places->count, places->capacity)) return false;
    places->items[places->count++] = place;
    return true;
}

bool wb_places_range(wb_place_list *places, int64_t start, int64_t stop) {
    for (int64_t i = start; i < stop; i++)
        if (!wb_places_add(places, i)) return false;
    return true;
}

void wb_places_release(wb_place_list *places) {
    wb_release(places->items);
    *places = (wb_place_list){0};
}

wb_array *wb_places_array(wb_place_list *places) {
    const int64_t none = 0;
    wb_array *x = wb_from_make(WB_I64, places->items ? places->items : &none, 1, &places->count);
    wb_places_release(places);
    return x;
}

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void wb_places_sort(int64_t *items, int64_t count) {
    if (count > 1) qsort(items, (size_t)count, sizeof *items, by_value);
}

bool wb_places_shuffle(int64_t *items, int64_t count, uint64_t seed, int64_t number) {
    int64_t *order = wb_alloc_list(2 * count + 1, sizeof *order);
    if (!order) return false;
    wb_order_shuffle(order, count, seed, number);
    for (int64_t i = 0; i < count; i++) order[count + i] = items[order[i]];
    for (int64_t i = 0; i < count; i++) items[i] = order[count + i];
    wb_release(order);
    return true;
}

/* ---- labels ---- */

typedef struct labelled {
    int64_t label, place;
} labelled;

static int by_label(const void *a, const void *b) {
    const labelled *x = a, *y = b;
    if (x->label != y->label) return (x->label > y->label) - (x->label < y->label);
    return (x->place > y->place) - (x->place < y->place);
}

static bool check_labels(const char *function, wb_array *labels) {
    if (!wb_is_usable(labels)) return wb_refuse(function, labels, "the array of labels") != NULL;
    if (wb_dtype_is_float((wb_dtype)labels->dtype))
        (void)wb_fail(WB_ERROR_DTYPE,
                      "%s: labels must be integers, got %s: wb_cast(labels, WB_I32)", function,
                      wb_dtype_name((wb_dtype)labels->dtype));
    else if (labels->ndim != 1)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: labels must have one dimension, got %s", function,
                      wb_text_of(labels));
    else
        return true;
    return false;
}

static bool read_labels(wb_array *labels, int64_t *values, int64_t n) {
    wb_array *wide = wb_cast(labels, WB_I64);
    return wide && (n == 0 || wb_read(wide, values, (size_t)n * sizeof *values) == WB_OK);
}

static void group(wb_label_groups *g, const labelled *list) {
    for (int64_t i = 0; i < g->n; i++) {
        g->order[i] = list[i].place;
        if (i > 0 && list[i].label == list[i - 1].label) continue;
        g->labels[g->count] = list[i].label;
        g->starts[g->count++] = i;
    }
    g->starts[g->count] = g->n;
}

bool wb_label_groups_read(wb_label_groups *g, const char *function, wb_array *labels) {
    *g = (wb_label_groups){0};
    if (!check_labels(function, labels)) return false;
    g->n = wb_count(labels);
    const int64_t room = g->n + 1;
    labelled *list = wb_alloc_list(room, sizeof *list);
    g->order = wb_alloc_list(room, sizeof *g->order);
    g->starts = wb_alloc_list(room, sizeof *g->starts);
    g->labels = wb_alloc_list(room, sizeof *g->labels);
    bool good = list && g->order && g->starts && g->labels && read_labels(labels, g->order, g->n);
    for (int64_t i = 0; good && i < g->n; i++) list[i] = (labelled){g->order[i], i};
    if (good && g->n > 1) qsort(list, (size_t)g->n, sizeof *list, by_label);
    if (good) group(g, list);
    wb_release(list);
    if (!good) wb_label_groups_release(g);
    return good;
}

void wb_label_groups_release(wb_label_groups *g) {
    wb_release(g->order);
    wb_release(g->starts);
    wb_release(g->labels);
    *g = (wb_label_groups){0};
}
