/* Gradients of a model: private side of weber/optimise.h. */
#ifndef WB_OPTIMISE_GRADIENTS_H
#define WB_OPTIMISE_GRADIENTS_H

#include <weber/optimise.h>

#include "layers/layer.h"

/* What a loss hands out (auxiliary.c). */
typedef struct wb_aux_item {
    char name[WB_AUX_NAME_BYTES];
    wb_array *x; /* a reference, or a hold */
} wb_aux_item;
typedef struct wb_aux_list {
    int count;
    wb_aux_item items[WB_AUX];
} wb_aux_list;

/* From now on, wb_aux adds to this list, which must be empty; NULL: nowhere. Returns the list that
 * was used before, so that the caller can put it back. */
wb_aux_list *wb_aux_to(wb_aux_list *list);

/* How gradients of one part are weighted already. */
typedef enum wb_weighting {
    WB_WEIGHTED_NOT,
    WB_WEIGHTED_BY_COUNT, /* the part's weight (wb_gradients_weight) */
    /* by its weight over the sum of all ranks' weights: the parts only need to be added */
    WB_WEIGHTED_BY_SHARE,
} wb_weighting;

/* Belongs to its scope; between uses it is kept in its model (spare_), so that a step allocates
 * nothing. */
struct wb_gradients {
    wb_spare spare;  /* must be first: as which the model keeps it between uses */
    uint32_t owner;  /* the thread that it belongs to */
    wb_layer *model; /* owned while in use; NULL while waiting */
    /* one reference; NULL in a sum of gradients, whose losses are computed already */
    wb_array *loss;
    wb_array *watched; /* must be finite for a good step; one reference; NULL: the loss */
    /* what the loss was divided by, one reference; NULL: the number of observations */
    wb_array *divisor;
    wb_aux_list aux;      /* auxiliary outputs of the loss */
    bool is_kept;         /* the references are holds */
    int64_t observations; /* number of observations that the loss is the mean of */
    wb_weighting weighting;
    int64_t count, capacity;
    wb_array ***slots; /* the model's trainable places, in the order of its walk */
    wb_array **arrays; /* the arrays in the slots, each once; `distinct` of them */
    int64_t *array_of; /* slot i holds arrays[array_of[i]] */
    int64_t distinct;
    wb_array **values;  /* gradient of arrays[k], one reference, or NULL */
    wb_array **leaving; /* scratch: the values, and wb_gradients_list_loss */
};
enum { WB_OF_LOSS = WB_AUX + 3 }; /* most arrays that wb_gradients_list_loss lists */

/* True if the gradients can be used; else an error names the function. */
bool wb_gradients_check(const char *function, const wb_gradients *gradients);

/* The trainable slots of model, with no values yet; NULL on failure. Not yet owned by a scope. */
wb_gradients *wb_gradients_new(wb_layer *model);

/* In which type a loss is computed, and how it is weighted as a part of a common one
 * (precision.c). */
typedef struct wb_precision {
    wb_dtype compute; /* the type of f32 parameters while the loss is built; f32: unchanged */
    wb_array *scale;  /* the loss scale: multiplies the loss and divides the gradients; or NULL */
    wb_weighting weighting;
    bool is_distributed; /* the other parts are on other ranks */
    /* if gradients times a weight may overflow f16: the number of parts on this rank, and the
     * observations of all of them; else 0 */
    int64_t parts, of_all;
    /* in that case, what the weight was divided by, and gradients are multiplied by later */
    wb_array *reference;
} wb_precision;

/* Calls the loss; returns it, in f32 if its parameters were cast to halves; NULL on failure. */
wb_array *wb_precision_call(const wb_precision *precision, wb_gradients *g, wb_loss_fn *loss,
                            const wb_batch *batch, void *user);
/* The number to differentiate: l, the loss of g, scaled and weighted. */
wb_array *wb_precision_scaled(wb_precision *precision, const wb_gradients *g, wb_array *l);
/* Divides the gradients by the scale, in f32 if they are halves; g then watches whether they are
 * finite. */
bool wb_precision_unscale(const wb_precision *precision, wb_gradients *g);

/* The weight of the loss in a mean over several: its divisor, or its number of observations. */
wb_array *wb_gradients_weight(const wb_gradients *g);

/* Number of observations in a batch; 1 without a batch, so that all ranks count alike. */
int64_t wb_observations_of(const wb_batch *batch);

/* Calls loss and differentiates it in the innermost scope; precision may be NULL. Returns the loss;
 * NULL on failure. */
wb_array *wb_gradients_make(const char *function, wb_gradients *g, wb_loss_fn *loss,
                            const wb_batch *batch, void *user, wb_precision *precision);
/* Releases the gradients and the watched number, which are not read any more. */
void wb_gradients_drop(wb_gradients *g);
/* The same, and releases the loss and its auxiliary outputs. */
void wb_gradients_clear(wb_gradients *g);

/* Replaces the gradient of arrays[k]; NULL: none. */
void wb_gradients_put(wb_gradients *g, int64_t k, wb_array *value);
/* The number that must be finite for a good step with these gradients. */
static inline wb_array *wb_gradients_watched(const wb_gradients *g) {
    return g->watched ? g->watched : g->loss;
}
void wb_gradients_watch(wb_gradients *g, wb_array *watched);
void wb_gradients_put_divisor(wb_gradients *g, wb_array *divisor);

/* The 2-norm of all arrays together, in f32 or f64; NULL entries are skipped. NULL: all are
 * NULL. */
wb_array *wb_common_norm(int64_t count, wb_array *const *arrays);
/* x min(limit / norm, 1): clips x, which is part of arrays with this common norm. */
wb_array *wb_shortened(wb_array *x, wb_array *norm, wb_array *limit);

/* Lists the loss, what is watched, the divisor and the auxiliary outputs. Returns how many. */
int wb_gradients_list_loss(const wb_gradients *g, wb_array **list);

/* The gradient for slot i, or NULL. */
static inline wb_array *wb_gradients_at(const wb_gradients *g, int64_t i) {
    return g->values[g->array_of[i]];
}

#endif
