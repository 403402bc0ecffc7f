/* Gradients of a model: private side of weber/optimise.h. */
#ifndef WB_OPTIMISE_GRADIENTS_H
#define WB_OPTIMISE_GRADIENTS_H

#include <weber/optimise.h>

#include "layers/layer.h"

/* Lives in its scope; between uses it waits in its model (spare_), so that a step allocates
 * nothing. */
struct wb_gradients {
    wb_spare spare;  /* first: what the model keeps it as while it waits */
    wb_layer *model; /* owned while in use; NULL while waiting */
    wb_array *loss;  /* one reference */
    int64_t count, capacity;
    wb_array ***slots; /* the model's trainable places, in the order of its walk */
    wb_array **arrays; /* what they hold, each array once; distinct of them */
    int64_t *array_of; /* slot i holds arrays[array_of[i]] */
    int64_t distinct;
    wb_array **values;  /* gradient of arrays[k], one reference, or NULL */
    wb_array **leaving; /* scratch: the values and the loss */
};

/* True if they are there; else an error names the function. */
bool wb_gradients_check(const char *function, const wb_gradients *gradients);

/* The trainable slots of model, with no values yet; NULL on failure. Not yet owned by a scope. */
wb_gradients *wb_gradients_new(wb_layer *model);

/* Calls loss and differentiates it in the innermost scope. The loss; NULL on failure. */
wb_array *wb_gradients_make(const char *function, wb_gradients *g, wb_loss_fn *loss,
                            const wb_batch *batch, void *user);
/* Nobody reads the values any more: they need not be kept. */
void wb_gradients_drop(wb_gradients *g);

/* The gradient for slot i, or NULL. */
static inline wb_array *wb_gradients_at(const wb_gradients *g, int64_t i) {
    return g->values[g->array_of[i]];
}

#endif
