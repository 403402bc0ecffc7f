/* Functions of labels: groups, balanced samples, one-hot arrays. */
#include <math.h>

#include <weber/ops.h>

#include "array/array.h"
#include "base/memory.h"
#include "data/places.h"

static int64_t groups_of(const char *function, wb_array *labels, int64_t capacity, wb_group *groups,
                         bool with_places) {
    wb_label_groups g;
    if (!wb_check_list(function, capacity, groups)) return -1;
    if (!wb_label_groups_read(&g, function, labels)) return -1;
    int64_t count = g.count;
    for (int64_t i = 0; i < g.count && i < capacity; i++) {
        const int64_t n = wb_label_count(&g, i);
        groups[i] = (wb_group){.label = g.labels[i], .count = n};
        if (!with_places) continue;
        groups[i].places = wb_from_make(WB_I64, g.order + g.starts[i], 1, &n);
        if (!groups[i].places) count = -1;
    }
    for (int64_t i = 0; count < 0 && i < g.count && i < capacity; i++) groups[i].places = NULL;
    wb_label_groups_release(&g);
    return count;
}

int64_t wb_groupobs(wb_array *labels, int64_t capacity, wb_group *groups) {
    return groups_of("groupobs", labels, capacity, groups, true);
}

int64_t wb_frequencies(wb_array *labels, int64_t capacity, wb_group *groups) {
    return groups_of("frequencies", labels, capacity, groups, false);
}

/* ---- samples ---- */

static int64_t most_or_least(const wb_label_groups *g, bool most) {
    int64_t found = g->count ? wb_label_count(g, 0) : 0;
    for (int64_t i = 1; i < g->count; i++) {
        const int64_t n = wb_label_count(g, i);
        if (most ? n > found : n < found) found = n;
    }
    return found;
}

/* Adds places of label i until there are `wanted` of them. */
static bool fill_up(const wb_label_groups *g, int64_t i, int64_t wanted, const wb_sample_desc *desc,
                    wb_place_list *places) {
    const int64_t n = wb_label_count(g, i);
    int64_t *own = g->order + g->starts[i];
    int64_t missing = wanted - n;
    for (; missing >= n; missing -= n)
        for (int64_t j = 0; j < n; j++)
            if (!wb_places_add(places, own[j])) return false;
    if (missing > 0 && desc->shuffle && !wb_places_shuffle(own, n, desc->seed, i + 1)) return false;
    for (int64_t j = 0; j < missing; j++)
        if (!wb_places_add(places, own[j])) return false;
    return true;
}

/* The list as a result: mixed, if asked for. */
static wb_array *finish(wb_place_list *places, const wb_sample_desc *desc, bool good) {
    if (good && desc->shuffle)
        good = wb_places_shuffle(places->items, places->count, desc->seed, 0);
    wb_array *x = good ? wb_places_array(places) : NULL;
    wb_places_release(places);
    return x;
}

wb_array *wb_oversample_make(wb_array *labels, wb_sample_desc desc) {
    const double fraction = desc.fraction;
    if (!wb_check_start("oversample", desc.start_)) return NULL;
    if (!(fraction > 0 && fraction <= 1))
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "oversample: the fraction must be above 0 and at most 1, got %g",
                            fraction);
    wb_label_groups g;
    if (!wb_label_groups_read(&g, "oversample", labels)) return NULL;
    const int64_t wanted = llrint(fraction * (double)most_or_least(&g, true));
    wb_place_list places = {0};
    bool good = wb_places_range(&places, 0, g.n);
    for (int64_t i = 0; good && i < g.count; i++) good = fill_up(&g, i, wanted, &desc, &places);
    wb_label_groups_release(&g);
    return finish(&places, &desc, good);
}

wb_array *wb_undersample_make(wb_array *labels, wb_sample_desc desc) {
    wb_label_groups g;
    if (!wb_check_start("undersample", desc.start_)) return NULL;
    if (desc.fraction != 1)
        return wb_fail_null(WB_ERROR_ARGUMENT, "undersample: takes no .fraction, got %g",
                            desc.fraction);
    if (!wb_label_groups_read(&g, "undersample", labels)) return NULL;
    const int64_t wanted = most_or_least(&g, false);
    wb_place_list places = {0};
    bool good = true;
    for (int64_t i = 0; good && i < g.count; i++) {
        int64_t *own = g.order + g.starts[i];
        if (desc.shuffle) good = wb_places_shuffle(own, wb_label_count(&g, i), desc.seed, i + 1);
        for (int64_t j = 0; good && j < wanted; j++) good = wb_places_add(&places, own[j]);
    }
    wb_places_sort(places.items, places.count);
    wb_label_groups_release(&g);
    return finish(&places, &desc, good);
}

/* ---- one-hot ---- */

/* The place of a label among the values; -1: it is not one of them. */
static int64_t place_of(int64_t label, int64_t count, const int64_t *values) {
    for (int64_t i = 0; i < count; i++)
        if (values[i] == label) return i;
    return -1;
}

static bool to_places(int64_t *labels, int64_t n, int64_t count, const int64_t *values,
                      int64_t other) {
    for (int64_t i = 0; i < n; i++) {
        int64_t place = place_of(labels[i], count, values);
        if (place < 0) place = other;
        if (place < 0) {
            (void)wb_fail(WB_ERROR_ARGUMENT,
                          "onehot_of: label %lld at place %lld is not among the %lld values, and "
                          "no value for all others is given",
                          (long long)labels[i], (long long)i, (long long)count);
            return false;
        }
        labels[i] = place;
    }
    return true;
}

static bool check_onehot(wb_array *labels, int64_t count, const int64_t *values) {
    if (!wb_is_usable(labels)) return wb_refuse("onehot_of", labels, "the array of labels") != NULL;
    if (!wb_check_list("onehot_of", count, values)) return false;
    if (wb_dtype_is_float((wb_dtype)labels->dtype))
        (void)wb_fail(WB_ERROR_DTYPE,
                      "onehot_of: labels must be integers, got %s: wb_cast(labels, WB_I32)",
                      wb_dtype_name((wb_dtype)labels->dtype));
    else if (count < 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "onehot_of: at least one value is needed, got %lld",
                      (long long)count);
    else
        return true;
    return false;
}

wb_array *wb_onehot_of(wb_array *labels, int64_t count, const int64_t *values,
                       const int64_t *other) {
    if (!check_onehot(labels, count, values)) return NULL;
    const int64_t rest = other ? place_of(*other, count, values) : -1;
    if (other && rest < 0)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "onehot_of: the other value %lld must be among the "
                            "%lld values",
                            (long long)*other, (long long)count);
    const int64_t n = wb_count(labels);
    int64_t *numbers = wb_alloc_list(n + 1, sizeof *numbers);
    wb_array *wide = wb_cast(labels, WB_I64), *places = NULL;
    const bool good = numbers && wide &&
                      (n == 0 || wb_read(wide, numbers, (size_t)n * sizeof *numbers) == WB_OK) &&
                      to_places(numbers, n, count, values, rest);
    if (good) places = wb_from_make(WB_I64, numbers, labels->ndim, labels->sizes);
    wb_release(numbers);
    return places ? wb_onehot(places, count) : NULL;
}
