/* Moments and norms of large numbers. */
#include <weber/gradient.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/model.h>
#include <weber/observations.h>
#include <weber/optimise.h>

#include "support/support.h"

static wb_array *normed(wb_layer *layer, wb_array *x) {
    const bool before = wb_training(true);
    wb_array *y = wb_apply(layer, x);
    (void)wb_training(before);
    wb_free(layer);
    return y;
}

/* The gradient x of a model that is one array, clipped. */
static wb_array *loss_of(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch;
    return wb_sum(wb_mul(wb_get(model, "scale"), user));
}

static wb_array *clipped(wb_array *x, double most) {
    wb_layer *model = wb_scale({2}, .bias = false);
    wb_gradients *gradients = NULL;
    wb_array *l = wb_withgradient(loss_of, model, NULL, x, &gradients);
    if (!l || !wb_gradients_clip_total_norm(gradients, most)) return NULL;
    wb_array *g = wb_copy(wb_gradients_get(gradients, "scale"));
    wb_free(gradients);
    wb_free(model);
    return g;
}

/* The array, at first ones, after a step of which x is the gradient, clipped to a norm of 1. */
static wb_array *stepped(wb_array *x) {
    wb_layer *model = wb_scale({2}, .bias = false);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model, .clip_total_norm = 1);
    wb_array *l = wb_train_step(loss_of, model, NULL, x, o);
    wb_array *w = l ? wb_copy(wb_get(model, "scale")) : NULL;
    if (w && wb_eval(w) != WB_OK) w = NULL;
    wb_free(o);
    wb_free(model);
    return w;
}

#define EDGES "edges/moments.def"
#include "edges/run.h"

int main(void) { return run_in_all_modes(run_edges); }
