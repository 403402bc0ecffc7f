/* EmbeddingBag: features of bags of words. */
#include <math.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_embedding_bag_layer {
    wb_layer layer;
    wb_embedding_bag_desc desc;
} wb_embedding_bag_layer;

static wb_embedding_bag_desc *desc_of(wb_layer *layer) {
    return &((wb_embedding_bag_layer *)(void *)layer)->desc;
}

static bool is_whole(const wb_array *x) {
    return !wb_dtype_is_float((wb_dtype)x->dtype) && x->dtype != WB_BOOL;
}

/* ---- one bag, or one in each column ---- */

/* Combines e (out, n[, N]) along its words; 0 without words. */
static wb_array *reduced(const wb_embedding_bag_desc *d, wb_array *e) {
    static const int64_t words = 1;
    if (!e) return NULL;
    const int reduction = e->sizes[words] == 0 ? WB_BAG_SUM : d->reduction;
    wb_array *y = reduction == WB_BAG_MEAN  ? wb_mean_make(e, 1, &words)
                  : reduction == WB_BAG_SUM ? wb_sum_make(e, 1, &words)
                                            : wb_maximum_make(e, 1, &words);
    return y ? wb_squeeze(y, 1) : NULL;
}

static wb_array *of_columns(const wb_embedding_bag_desc *d, wb_array *x) {
    if (is_whole(x) && (x->ndim == 1 || x->ndim == 2))
        return reduced(d, wb_gather_named("word", d->given_weight, x, 1));
    if (!is_whole(x) && x->ndim == 2 && x->sizes[0] == d->in)
        return reduced(d, wb_matmul(d->given_weight, wb_cast(x, (wb_dtype)d->given_weight->dtype)));
    return wb_fail_null(WB_ERROR_SHAPE,
                        "input must be integers (n) or (n, N), as wb_cast(x, WB_I32) makes them, "
                        "or one-hot (%lld, n), got %s %s",
                        (long long)d->in, wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x));
}

/* ---- bags that begin at positions ---- */

static bool check_sizes(const wb_array *x, const wb_array *at) {
    if (is_whole(x) && x->ndim == 1 && is_whole(at) && at->ndim == 1 && at->sizes[0] > 0)
        return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "inputs must be integers (n) and positions (N), got %s %s and %s %s",
                  wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x),
                  wb_dtype_name((wb_dtype)at->dtype), wb_text_of(at));
    return false;
}

/* Checks positions that can be read: from 0 to n, and not decreasing. */
static bool check_positions(wb_array *at, int64_t n) {
    if (!wb_is_evaluated(at)) return true;
    wb_array *numbers = wb_cast(at, WB_I64);
    const int64_t *p = numbers ? wb_read_begin(numbers) : NULL;
    if (!p) return false;
    int64_t wrong = p[0] == 0 ? -1 : 0;
    for (int64_t i = 1; wrong < 0 && i < at->sizes[0]; i++)
        if (p[i] < p[i - 1] || p[i] > n) wrong = i;
    const int64_t got = p[wrong < 0 ? 0 : wrong];
    wb_read_end(numbers);
    if (wrong < 0) return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "positions must begin with 0, not decrease and not exceed the %lld words, got %lld at %lld",
        (long long)n, (long long)got, (long long)wrong);
    return false;
}

/* (n): the bag of each word, i64 from 0: how many bags begin at the word or before it, less one.
 * Empty bags at the end begin at n. */
static wb_array *bags_of_words(wb_array *at, int64_t n) {
    wb_array *zeros = wb_full(WB_I64, 0, n + 1), *ones = wb_full(WB_I64, 1, at->sizes[0]);
    wb_array *upto = wb_cumsum(wb_scatter_add(zeros, at, ones, 0), 0);
    return wb_add_number(upto ? wb_slice(upto, 0, 0, n, 1) : NULL, -1);
}

/* The largest of e (out, n) in each of N bags: (out, n, N), where words of other bags are replaced
 * by a very small number, which is the result of an empty bag. */
static wb_array *largest(wb_array *e, wb_array *bags, int64_t count) {
    const int64_t out = e->sizes[0], n = e->sizes[1], words = 1;
    wb_array *own = wb_eq(wb_reshape(bags, 1, n, 1), wb_iota(WB_I64, 2, 1, 1, count));
    wb_array *low = wb_cast(wb_constant(-(double)INFINITY), (wb_dtype)e->dtype);
    wb_array *y = wb_maximum_make(wb_select(own, wb_reshape(e, out, n, 1), low), 1, &words);
    return y ? wb_squeeze(y, 1) : NULL;
}

static wb_array *of_positions(const wb_embedding_bag_desc *d, wb_array *x, wb_array *at) {
    if (!check_sizes(x, at) || !check_positions(at, x->sizes[0])) return NULL;
    const int64_t n = x->sizes[0], count = at->sizes[0];
    const wb_dtype dtype = (wb_dtype)d->given_weight->dtype;
    wb_array *e = wb_gather_named("word", d->given_weight, x, 1), *bags = bags_of_words(at, n);
    if (!e || !bags) return NULL;
    wb_array *y = wb_scatter_add(wb_full(dtype, 0, d->out, count), bags, e, 1);
    if (d->reduction == WB_BAG_SUM || n == 0) return y;
    wb_array *words = wb_scatter_add(wb_full(dtype, 0, count), bags, wb_full(dtype, 1, n), 0);
    if (!(words = words ? wb_reshape(words, 1, count) : NULL)) return NULL;
    if (d->reduction == WB_BAG_MEAN) return wb_div(y, wb_max(words, wb_number(1)));
    return wb_select(wb_gt(words, wb_number(0)), largest(e, bags, count), wb_number(0));
}

/* ---- the class ---- */

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_embedding_bag_desc *d = desc_of(layer);
    if (count > 2) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "expected words and perhaps positions, got %d arrays",
                      count);
        return 0;
    }
    results[0] = count == 1 ? of_columns(d, inputs[0]) : of_positions(d, inputs[0], inputs[1]);
    return results[0] != NULL;
}

static const char *const reductions[] = {"mean", "+|sum", "max|maximum", NULL};

static const wb_field fields[] = {
    WB_ROW(wb_embedding_bag_layer, in, WB_FIELD_PAIR, .low = 1, .text_only = true,
           .given_by = offsetof(wb_embedding_bag_layer, desc.given_weight)),
    WB_ROW_NAMED(wb_embedding_bag_layer, given_weight, "weight", WB_FIELD_ARRAY, .trainable = true),
    WB_ROW(wb_embedding_bag_layer, reduction, WB_FIELD_CHOICE, .choices = reductions,
           .positional = true),
};

static bool complete(wb_layer *layer) {
    wb_embedding_bag_desc *d = desc_of(layer);
    return wb_layer_fill(layer, &d->given_weight, d->init ? d->init : wb_normal_init, d->dtype, 2,
                         (int64_t[]){d->out, d->in});
}

const wb_layer_class wb_embedding_bag_class = {.name = "EmbeddingBag",
                                               WB_LAYER_ROWS(wb_embedding_bag_layer, fields),
                                               .forward_many = forward,
                                               .complete = complete};

wb_layer *wb_embedding_bag_make(wb_embedding_bag_desc desc) {
    return wb_layer_of_desc(&wb_embedding_bag_class, &desc, sizeof desc);
}
