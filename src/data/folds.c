/* Folds for cross-validation: lists of places. */
#include <stdlib.h>

#include "array/array.h"
#include "base/memory.h"
#include "data/places.h"

static void none(int k, wb_array **train, wb_array **held) {
    for (int i = 0; i < k; i++) train[i] = held[i] = NULL;
}

/* False if the lists cannot be written; what can be is NULL then. */
static bool check_lists(const char *function, int64_t n, int k, wb_array **train, wb_array **held) {
    const bool good = train && held;
    if (good && k > 0) none(k, train, held);
    if (!good)
        (void)wb_fail_argument_null(function, "a list of folds");
    else if (k < 2 || k > n)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: k must be from 2 to %lld, the number of "
                      "observations, got %d",
                      function, (long long)n, k);
    else
        return true;
    return false;
}

/* Where block i of n observations in k begins; block k is the end. */
static int64_t block(int64_t n, int k, int i) {
    const int64_t longer = n % k;
    return i * (n / k) + (i < longer ? i : longer);
}

static wb_status give(wb_place_list *train, wb_place_list *held, wb_array **to_train,
                      wb_array **to_held, bool good) {
    *to_train = good ? wb_places_array(train) : NULL;
    *to_held = good && *to_train ? wb_places_array(held) : NULL;
    wb_places_release(train);
    wb_places_release(held);
    return *to_held ? WB_OK : wb_error_status();
}

wb_status wb_kfolds(int64_t n, int k, wb_array **train, wb_array **held) {
    if (!check_lists("kfolds", n, k, train, held)) return wb_error_status();
    wb_status status = WB_OK;
    for (int i = 0; status == WB_OK && i < k; i++) {
        const int64_t start = block(n, k, i), stop = block(n, k, i + 1);
        wb_place_list in = {0}, out = {0};
        const bool good = wb_places_range(&in, 0, start) && wb_places_range(&in, stop, n) &&
                          wb_places_range(&out, start, stop);
        status = give(&in, &out, &train[i], &held[i], good);
    }
    if (status != WB_OK) none(k, train, held);
    return status;
}

static bool check_each_label(const wb_label_groups *g, int k) {
    for (int64_t i = 0; i < g->count; i++) {
        if (wb_label_count(g, i) >= k) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "kfolds_stratified: label %lld has %lld observation%s, and %d folds need at "
                      "least as many",
                      (long long)g->labels[i], (long long)wb_label_count(g, i),
                      wb_label_count(g, i) == 1 ? "" : "s", k);
        return false;
    }
    return true;
}

static wb_status stratified_fold(const wb_label_groups *g, int k, int fold, wb_array **train,
                                 wb_array **held) {
    wb_place_list in = {0}, out = {0};
    bool good = true;
    for (int64_t i = 0; i < g->count; i++) {
        const int64_t n = wb_label_count(g, i), *own = g->order + g->starts[i];
        const int64_t start = block(n, k, fold), stop = block(n, k, fold + 1);
        for (int64_t j = 0; good && j < n; j++)
            good = wb_places_add(j >= start && j < stop ? &out : &in, own[j]);
    }
    wb_places_sort(in.items, in.count);
    wb_places_sort(out.items, out.count);
    return give(&in, &out, train, held, good);
}

wb_status wb_kfolds_stratified(wb_array *labels, int k, wb_array **train, wb_array **held) {
    wb_label_groups g;
    if (train && held && k > 0) none(k, train, held);
    if (!wb_label_groups_read(&g, "kfolds_stratified", labels)) return wb_error_status();
    const bool good =
        check_lists("kfolds_stratified", g.n, k, train, held) && check_each_label(&g, k);
    wb_status status = good ? WB_OK : wb_error_status();
    for (int i = 0; status == WB_OK && i < k; i++)
        status = stratified_fold(&g, k, i, &train[i], &held[i]);
    if (good && status != WB_OK) none(k, train, held);
    wb_label_groups_release(&g);
    return status;
}

wb_status wb_timeseries_kfolds(int64_t n, int k, int64_t gap, int64_t most, wb_array **train,
                               wb_array **held) {
    static const char function[] = "timeseries_kfolds";
    if (!train || !held) {
        (void)wb_fail_argument_null(function, "a list of folds");
        return wb_error_status();
    }
    if (k > 0) none(k, train, held);
    if (k < 1 || k >= n || gap < 0 || most < 0)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: k must be from 1 to %lld, gap and most not negative, got %d, %lld and "
                       "%lld",
                       function, (long long)n - 1, k, (long long)gap, (long long)most);
    const int64_t size = n / (k + 1);
    wb_status status = WB_OK;
    for (int i = 0; status == WB_OK && i < k; i++) {
        const int64_t start = n - (k - i) * size, end = start - gap;
        const int64_t first = most && end > most ? end - most : 0;
        wb_place_list in = {0}, out = {0};
        const bool good =
            wb_places_range(&in, first, end) && wb_places_range(&out, start, start + size);
        status = give(&in, &out, &train[i], &held[i], good);
    }
    if (status != WB_OK) none(k, train, held);
    return status;
}

int wb_leavepout_folds(int64_t n, int64_t p) {
    return p >= 1 && p <= n / 2 && n / p <= INT32_MAX ? (int)(n / p) : 0;
}

wb_status wb_leavepout(int64_t n, int64_t p, wb_array **train, wb_array **held) {
    const int folds = wb_leavepout_folds(n, p);
    if (folds) return wb_kfolds(n, folds, train, held);
    return wb_fail(WB_ERROR_ARGUMENT,
                   "leavepout: p must be from 1 to %lld, half of the "
                   "observations, got %lld",
                   (long long)n / 2, (long long)p);
}
