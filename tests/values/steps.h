/* Steps of a training without data: losses over a tree of arrays, and what is done with them. */
#ifndef WB_TESTS_VALUES_STEPS_H
#define WB_TESTS_VALUES_STEPS_H

#include "values/modes.h"

/* sum of p . p over the first array, or over the first two. */
static inline wb_array *squares_of_one(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_square(wb_get(model, "1")));
}
static inline wb_array *squares_of_two(wb_layer *model, const wb_batch *batch, void *user) {
    return wb_add(squares_of_one(model, batch, user), wb_sum(wb_square(wb_get(model, "2"))));
}

/* Gradients and update, in the caller's scope, or in one of its own. */
static inline wb_status step(wb_optimiser *o, wb_layer *model, wb_loss_fn *loss) {
    const wb_batch batch = {0};
    wb_gradients *g;
    wb_array *l = wb_withgradient(loss, model, &batch, NULL, &g);
    return l ? wb_update(o, model, g) : wb_error_status();
}
static inline wb_status scoped_step(wb_optimiser *o, wb_layer *model, wb_loss_fn *loss) {
    wb_scope_open();
    const wb_status status = step(o, model, loss), closed = wb_scope_close();
    return status == WB_OK ? closed : status;
}

#endif
