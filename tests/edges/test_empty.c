/* Nothing to work on: bags without words, one number, queries that see no key. */
#include <weber/layers.h>
#include <weber/model.h>

#include "support/support.h"

static wb_array *no_words(void) { return wb_zeros(WB_I32, 0); }
static wb_array *both_words(void) { return wb_from(WB_I32, ((const int32_t[]){0, 1}), 2); }
static wb_array *bags(int first, int second, int third) {
    return wb_from(WB_I32, ((const int32_t[]){first, second, third}), 3);
}

/* Of words whose features are x (2, 2); at: where bags begin, or NULL. */
static wb_array *bag(int reduction, wb_array *x, wb_array *words, wb_array *at) {
    wb_layer *l = wb_embedding_bag(2, 2, reduction, .given_weight = wb_reshape(x, 2, 2));
    wb_array *inputs[] = {words, at}, *y = NULL;
    (void)wb_apply_many(l, at ? 2 : 1, inputs, 1, &y);
    wb_free(l);
    return y;
}

static wb_array *hidden(void) { return wb_full(WB_F32, -(double)INFINITY, 2); }

/* True, false: the first key is hidden, the second seen. */
static wb_array *one_of_two(void) { return wb_eq(wb_iota(WB_I32, 0, 2), wb_number(1)); }

/* Of one query and two keys with these values; its weights instead, if they are wanted. */
static wb_array *attended(wb_array *values, wb_array *bias, wb_array *mask, bool weights) {
    const wb_dtype dtype = wb_dtype_of(values);
    wb_array *a = NULL, *q = wb_ones(dtype, 1, 1), *k = wb_ones(dtype, 1, 2);
    wb_array *y =
        wb_attention(q, k, wb_reshape(values, 1, 2), .bias = wb_reshape(bias, 2, 1),
                     .mask = mask ? wb_reshape(mask, 2, 1) : NULL, .weights = weights ? &a : NULL);
    return weights ? a : y;
}

#define EDGES "edges/empty.def"
#include "edges/run.h"

int main(void) { return run_in_all_modes(run_edges); }
