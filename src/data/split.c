/* Splits, shuffles and filters of several arrays in the same way. */
#include <math.h>

#include <weber/ops.h>

#include "array/use.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "data/places.h"
#include "ops/ops.h"

/* n observations that all arrays have; -1 with the error recorded. */
static int64_t common_count(const char *function, int count, wb_array *const *arrays) {
    if (count < 1) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: at least one array is needed, got %d", function,
                      count);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (!wb_is_usable(arrays[i])) return wb_refuse(function, arrays[i], "an array"), -1;
        if (arrays[i]->ndim > 0 && wb_numobs(arrays[i]) == wb_numobs(arrays[0])) continue;
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: all arrays must have the same number of observations; array 0 is %s, "
                      "array %d is %s",
                      function, wb_text_of(arrays[0]), i, wb_text_of(arrays[i]));
        return -1;
    }
    return wb_numobs(arrays[0]);
}

/* ---- how many observations each part has ---- */

typedef struct cut {
    const wb_split_desc *desc;
    int given; /* fractions or numbers; there is one part more */
    bool by_count;
} cut;

/* The number of entries up to the last one that is not 0. */
static int listed(const wb_split_desc *desc, bool by_count) {
    int n = WB_MOST_PARTS - 1;
    while (n > 0 && (by_count ? desc->counts[n - 1] == 0 : desc->at[n - 1] == 0)) n--;
    return n;
}

static cut new_cut(const wb_split_desc *desc) {
    const int counts = listed(desc, true);
    return (cut){desc, counts ? counts : listed(desc, false), counts > 0};
}

static bool check_cut(const cut *c, int64_t n) {
    const double most = c->by_count ? (double)n : 1;
    double sum = 0;
    if (c->by_count && listed(c->desc, false) > 0)
        return wb_fail(WB_ERROR_ARGUMENT, "splitobs: .at or .counts can be given, not both") ==
               WB_OK;
    if (c->given == 0)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "splitobs: .at, fractions, or .counts, numbers of observations, must be "
                       "given, above 0") == WB_OK;
    for (int p = 0; p < c->given; p++) {
        const double part = c->by_count ? (double)c->desc->counts[p] : c->desc->at[p];
        sum += part;
        if (part > 0 && sum <= (c->by_count ? most : 1 + 1e-9)) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "splitobs: parts must be positive, and their sum at most %g; part %d is %g, "
                      "the sum up to it %g",
                      most, p, part, sum);
        return false;
    }
    return true;
}

/* Where part p of n observations ends. For a label that has n of `all` observations, .counts are
 * scaled by n / all. */
static int64_t end_of(const cut *c, int p, int64_t start, int64_t n, int64_t all) {
    if (p == c->given) return n;
    const double share = c->by_count ? (double)c->desc->counts[p] / (double)all : c->desc->at[p];
    const int64_t end = start + llrint(share * (double)n);
    return end < n ? end : n;
}

/* ---- the parts ---- */

static bool cut_views(const cut *c, int count, wb_array *const *arrays, wb_array **parts) {
    const int64_t n = wb_numobs(arrays[0]);
    int64_t start = 0;
    for (int p = 0; p <= c->given; p++) {
        const int64_t end = end_of(c, p, start, n, n);
        for (int i = 0; i < count; i++)
            if (!(parts[p * count + i] = wb_getobs(arrays[i], start, end))) return false;
        start = end;
    }
    return true;
}

static bool gather_all(wb_array *places, int count, wb_array *const *arrays, wb_array **out) {
    for (int i = 0; places && i < count; i++) {
        wb_array *beside = wb_move_array(wb_node_device(arrays[i]), places, WB_ELTYPE_DEFAULT);
        if (!beside || !(out[i] = wb_gather(arrays[i], beside, -1))) return false;
    }
    return places != NULL;
}

/* Splits the places of one label, or all. */
static bool cut_places(const cut *c, int64_t *own, int64_t n, int64_t all, int64_t number,
                       wb_place_list *parts) {
    if (c->desc->shuffle && !wb_places_shuffle(own, n, c->desc->seed, number)) return false;
    int64_t start = 0;
    for (int p = 0; p <= c->given; p++) {
        const int64_t end = end_of(c, p, start, n, all);
        for (; start < end; start++)
            if (!wb_places_add(&parts[p], own[start])) return false;
    }
    return true;
}

static bool list_parts(const cut *c, int64_t n, wb_place_list *parts) {
    wb_label_groups g = {0};
    bool good = true;
    if (c->desc->stratified) {
        if (!wb_label_groups_read(&g, "splitobs", c->desc->stratified)) return false;
        if (g.n != n)
            good = wb_fail(WB_ERROR_SHAPE,
                           "splitobs: stratified must have %lld labels, one for each observation, "
                           "got %lld",
                           (long long)n, (long long)g.n) == WB_OK;
        for (int64_t i = 0; good && i < g.count; i++)
            good = cut_places(c, g.order + g.starts[i], wb_label_count(&g, i), n, i, parts);
        wb_label_groups_release(&g);
        return good;
    }
    wb_place_list all = {0};
    good = wb_places_range(&all, 0, n) && cut_places(c, all.items, n, n, 0, parts);
    wb_places_release(&all);
    return good;
}

static bool cut_lists(const cut *c, int64_t n, int count, wb_array *const *arrays,
                      wb_array **parts) {
    wb_place_list places[WB_MOST_PARTS] = {{0}};
    bool good = list_parts(c, n, places);
    for (int p = 0; p <= c->given; p++) {
        if (good) good = gather_all(wb_places_array(&places[p]), count, arrays, parts + p * count);
        wb_places_release(&places[p]);
    }
    return good;
}

wb_status wb_splitobs_all_make(int count, wb_array *const *arrays, wb_array **parts,
                               wb_split_desc desc) {
    if (!wb_check_list("splitobs", count, arrays) || !wb_check_list("splitobs", count, parts))
        return wb_error_status();
    const cut c = new_cut(&desc);
    const int total = (c.given + 1) * count;
    for (int i = 0; i < total; i++) parts[i] = NULL;
    const int64_t n = common_count("splitobs", count, arrays);
    if (n < 0 || !wb_may_use_given("splitobs", desc.stratified, "stratified") || !check_cut(&c, n))
        return wb_error_status();
    const bool good = desc.shuffle || desc.stratified ? cut_lists(&c, n, count, arrays, parts)
                                                      : cut_views(&c, count, arrays, parts);
    for (int i = 0; !good && i < total; i++) parts[i] = NULL;
    return good ? WB_OK : wb_error_status();
}

/* ---- order and choice ---- */

wb_status wb_shuffleobs(int count, wb_array *const *arrays, uint64_t seed, wb_array **shuffled) {
    if (!wb_check_list("shuffleobs", count, arrays)) return wb_error_status();
    if (!wb_check_list("shuffleobs", count, shuffled)) return wb_error_status();
    const int64_t n = common_count("shuffleobs", count, arrays);
    for (int i = 0; n < 0 && i < count; i++) shuffled[i] = NULL;
    if (n < 0) return wb_error_status();
    wb_place_list places = {0};
    bool good = wb_places_range(&places, 0, n) && wb_places_shuffle(places.items, n, seed, 0);
    if (good) good = gather_all(wb_places_array(&places), count, arrays, shuffled);
    wb_places_release(&places);
    for (int i = 0; !good && i < count; i++) shuffled[i] = NULL;
    return good ? WB_OK : wb_error_status();
}

wb_array *wb_filterobs(wb_keep_fn *keep, void *user, wb_array *x) {
    if (!keep) return wb_fail_argument_null("filterobs", "the function");
    const int64_t n = common_count("filterobs", 1, &x);
    wb_place_list places = {0};
    for (int64_t i = 0; i < n && !wb_failed(); i++) {
        if (wb_scope_open() != WB_OK) break;
        wb_array *own = wb_getobs(x, i, i + 1);
        wb_user_call call;
        wb_user_call_begin(&call, "the function");
        const bool kept = own && keep(user, i, own);
        (void)wb_user_call_end(&call, "filterobs");
        (void)wb_scope_close();
        if (kept && !wb_places_add(&places, i)) break;
    }
    wb_array *chosen = NULL;
    if (n >= 0 && !wb_failed()) (void)gather_all(wb_places_array(&places), 1, &x, &chosen);
    wb_places_release(&places);
    return chosen;
}
