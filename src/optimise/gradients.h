/* Gradients of a model: private side of weber/optimise.h. */
#ifndef WB_OPTIMISE_GRADIENTS_H
#define WB_OPTIMISE_GRADIENTS_H

#include <weber/optimise.h>

#include "layers/layer.h"

/* What a loss hands out (auxiliary.c). */
typedef struct wb_aux_item {
    char name[WB_AUX_NAME_BYTES];
    wb_array *x; /* one reference, or a hold */
} wb_aux_item;
typedef struct wb_aux_list {
    int count;
    wb_aux_item items[WB_AUX];
} wb_aux_list;

/* From now on, what is handed out goes to the list, which is empty; NULL: nowhere. What was before,
 * for the way back. */
wb_aux_list *wb_aux_to(wb_aux_list *list);

/* What gradients have been multiplied by, as one part of those of all. */
typedef enum wb_weighting {
    WB_WEIGHTED_NOT,
    WB_WEIGHTED_BY_COUNT, /* the part's weight (wb_gradients_weight) */
    WB_WEIGHTED_BY_SHARE, /* the same over those of all ranks: the parts only have to be added */
} wb_weighting;

/* Lives in its scope; between uses it waits in its model (spare_), so that a step allocates
 * nothing. */
struct wb_gradients {
    wb_spare spare;       /* first: what the model keeps it as while it waits */
    uint32_t owner;       /* the thread that it belongs to */
    wb_layer *model;      /* owned while in use; NULL while waiting */
    wb_array *loss;       /* one reference; NULL of sums, whose losses are computed */
    wb_array *watched;    /* what is to be finite for a good step, one reference; NULL: the loss */
    wb_array *divisor;    /* what the loss was divided by, one reference; NULL: the observations */
    wb_aux_list aux;      /* what the loss has handed out */
    bool is_kept;         /* the references are holds */
    int64_t observations; /* of which the loss is the mean */
    wb_weighting weighting;
    int64_t count, capacity;
    wb_array ***slots; /* the model's trainable places, in the order of its walk */
    wb_array **arrays; /* what they hold, each array once; distinct of them */
    int64_t *array_of; /* slot i holds arrays[array_of[i]] */
    int64_t distinct;
    wb_array **values;  /* gradient of arrays[k], one reference, or NULL */
    wb_array **leaving; /* scratch: the values, and wb_gradients_list_loss */
};
enum { WB_OF_LOSS = WB_AUX + 3 }; /* what wb_gradients_list_loss lists at most */

/* True if they are there; else an error names the function. */
bool wb_gradients_check(const char *function, const wb_gradients *gradients);

/* The trainable slots of model, with no values yet; NULL on failure. Not yet owned by a scope. */
wb_gradients *wb_gradients_new(wb_layer *model);

/* In what a loss is computed, and as which part of a common one (precision.c). */
typedef struct wb_precision {
    wb_dtype compute; /* of f32 parameters, while the loss is built; f32: as they are */
    wb_array *scale;  /* what the loss is multiplied by, and gradients are divided by; or NULL */
    wb_weighting weighting;
    bool is_distributed; /* the other parts are on other ranks */
    /* where gradients times a weight may leave f16: of how many parts on this rank one is
     * differentiated, and their observations; else 0 */
    int64_t parts, of_all;
    wb_array *reference; /* what its weight was divided by, then, and gradients are multiplied by */
} wb_precision;

/* The loss, in f32 where its parameters are cast to halves; NULL on failure. */
wb_array *wb_precision_call(const wb_precision *precision, wb_gradients *g, wb_loss_fn *loss,
                            const wb_batch *batch, void *user);
/* What is differentiated: l, the loss of g, scaled and weighted. */
wb_array *wb_precision_scaled(wb_precision *precision, const wb_gradients *g, wb_array *l);
/* Gradients of the scaled loss become those of the weighted one, in f32 for halves; g watches
 * whether they are finite. */
bool wb_precision_unscale(const wb_precision *precision, wb_gradients *g);

/* What the loss counts in a mean over several: what it was divided by, or its observations. */
wb_array *wb_gradients_weight(const wb_gradients *g);

/* Observations in a batch; without one, the ranks of a group count alike. */
int64_t wb_observations_of(const wb_batch *batch);

/* Calls loss and differentiates it in the innermost scope, in a precision or, NULL, as it is. The
 * loss; NULL on failure. */
wb_array *wb_gradients_make(const char *function, wb_gradients *g, wb_loss_fn *loss,
                            const wb_batch *batch, void *user, wb_precision *precision);
/* Nobody reads the values any more, nor what is watched: they need not be kept. */
void wb_gradients_drop(wb_gradients *g);
/* The same, and nobody reads the loss, nor what it has handed out. */
void wb_gradients_clear(wb_gradients *g);

/* The new gradient of arrays[k] in the place of the old one; NULL: none. */
void wb_gradients_put(wb_gradients *g, int64_t k, wb_array *value);
/* What is to be finite for a good step of these gradients. */
static inline wb_array *wb_gradients_watched(const wb_gradients *g) {
    return g->watched ? g->watched : g->loss;
}
void wb_gradients_watch(wb_gradients *g, wb_array *watched);
void wb_gradients_put_divisor(wb_gradients *g, wb_array *divisor);

/* The 2-norm of all arrays together, of which some are NULL, f32 or f64; NULL: there is none. */
wb_array *wb_common_norm(int64_t count, wb_array *const *arrays);
/* x min(limit / norm, 1): a part of what has this norm, which is then at most limit. */
wb_array *wb_shortened(wb_array *x, wb_array *norm, wb_array *limit);

/* The loss, what is watched, what the loss was divided by and what it has handed out into the list;
 * how many. */
int wb_gradients_list_loss(const wb_gradients *g, wb_array **list);

/* The gradient for slot i, or NULL. */
static inline wb_array *wb_gradients_at(const wb_gradients *g, int64_t i) {
    return g->values[g->array_of[i]];
}

#endif
