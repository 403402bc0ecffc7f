/* weber/model.h: what is done to a whole model.
 *
 * A model is a tree of layers; a layer is a struct with a table of its fields (weber/class.h). The
 * table drives everything that is done to a model: mapping, counting, printing, training, saving.
 *
 *     wb_layer *model = wb_chain(wb_dense(784, 128, wb_relu), wb_dropout(.p = 0.1f),
 *                                wb_dense(128, 10));
 *     wb_array *y = wb_apply(model, x);                    // x (784, N) gives (10, N)
 *     wb_array *w = wb_get(model, "layers.1.weight");      // layers count from 1, as in messages
 *     wb_free(model);
 *
 * A maker that takes layers owns them from the call on, also when it fails; wb_free of the
 * outermost releases all. NULL in, NULL out. Members ending in _ belong to the library. Errors:
 * weber/error.h. */
#ifndef WEBER_MODEL_H
#define WEBER_MODEL_H

#include "class.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- using a model ---- */

/* The layer's result for x. Messages name the layer and its place: "Dense(784 => 128), layer 2 of
 * Chain: input has 100 features in (100, 64)". */
WB_API wb_array *wb_apply(wb_layer *layer, wb_array *x);

/* The same for layers that take several arrays or give several: writes at most capacity results and
 * returns how many they are; 0 on failure. A chain passes the results of each layer on to the next
 * one; in a chain, a layer of one array takes the first, and the others (masks, lengths) go on to
 * the next layer. Outside of a chain a layer of one array that is given more fails. So do more
 * results than capacity.
 *
 *     wb_array *xs[] = {a, b}, *ys[2];
 *     int count = wb_apply_many(layer, 2, xs, 2, ys); */
WB_API int wb_apply_many(wb_layer *layer, int count, wb_array *const *inputs, int capacity,
                         wb_array **results);

/* The results of a chain's layers, one after another: out[i] is the result of layer i + 1, for at
 * most capacity layers. Returns how many layers there are (0 for an empty chain, and on failure,
 * when all are NULL). */
WB_API int64_t wb_activations(wb_layer *chain, wb_array *x, int64_t capacity, wb_array **out);

/* Sizes of an array, first dimension fastest; ndim -1: there is none. */
typedef struct wb_shape {
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
} wb_shape;

typedef struct wb_outputsize_desc {
    WB_START_MEMBER;
    int64_t inputs[WB_MOST_ARRAYS][WB_MAX_DIMS]; /* sizes of each; 0 ends them. Required */
    bool pad_batch;                              /* each gets a last dimension of size 1 */
    wb_dtype dtype;                              /* of all; default f32 */
} wb_outputsize_desc;

/* The sizes of the model's result for arrays of these sizes, without computing anything:
 * wb_outputsize(model, {{28, 28, 1, 32}}). Layers are in test mode and keep their states. Fails as
 * wb_apply does, with ndim -1, and where the model gives several arrays. (Flux's outputsize) */
#define wb_outputsize(model, ...)                                                                  \
    WB_MAKE_OF(wb_outputsize_make, model, outputsize, .inputs = __VA_ARGS__)
WB_API wb_shape wb_outputsize_make(wb_layer *model, wb_outputsize_desc desc);

/* Mode: automatic layers (the default) follow the thread's flag, which wb_withgradient,
 * wb_train_step and wb_train set and restore and wb_training sets for a loop by hand; it returns
 * the flag's former value. The other functions set all layers of a model. */
WB_API bool wb_training(bool training);
WB_API wb_status wb_train_mode(wb_layer *model);
WB_API wb_status wb_test_mode(wb_layer *model);
WB_API wb_status wb_auto_mode(wb_layer *model);

/* True if the layer is to behave as in training now. */
WB_API bool wb_is_active(const wb_layer *layer);

/* Hidden states of all layers (Recur's, WB_HIDDEN_FIELD) are forgotten: the next call begins a
 * sequence. */
WB_API wb_status wb_reset(wb_layer *model);

/* From now on the model takes a sequence piece by piece, of at most `length` positions together, as
 * a text that is generated: each causal MultiHeadAttention keeps the keys and values of earlier
 * pieces, and position layers count on. The results for a piece are the same as in a call with the
 * whole sequence so far (Vaswani et al. 2017; past_key_values of others):
 *
 *     wb_cache(model, 512);
 *     wb_array *logits = wb_apply(model, prompt);     // (tokens, ...)
 *     logits = wb_apply(model, next);                 // one more, (1, ...); the same plan
 *     wb_reset(model);                                // the next sequence
 *     wb_cache(model, 0);                             // without a cache, as for training
 *
 * The keys and values are hidden states of a fixed size. Fails with WB_ERROR_ARGUMENT, and nothing
 * has changed, if the model has no such attention, or a PositionEmbedding with fewer positions, or
 * one such layer in two places. A copy of the model starts afresh; a failed call changes nothing.
 * A call fails if the cache is full, the batch size is not as before, or the model is in
 * training. */
WB_API wb_status wb_cache(wb_layer *model, int64_t length);

/* Trainable numbers of a model; an array in two places, or beside its transpose, counts once. */
WB_API int64_t wb_parameter_count(wb_layer *model);

/* The array at a path, owned by the scope: "layers.1.weight", "layers.encoder.bias", "actor". An
 * unknown path is an error that lists the valid ones; an absent array (.bias = false) too. */
WB_API wb_array *wb_get(wb_layer *model, const char *path);

/* The layer at a path, "layers.1", borrowed from the model. */
WB_API wb_layer *wb_get_layer(wb_layer *model, const char *path);

/* An array of a model, for a loop over all of them; begins as {0}. */
typedef struct wb_parameter {
    const char *path;        /* "layers.1.weight", of the first place where it stands */
    wb_array *array;         /* owned by the scope */
    wb_array *gradient;      /* of wb_next_gradient (weber/optimise.h) */
    bool is_trainable;       /* else a state, or frozen by its layer's table */
    struct wb_places *list_; /* private */
} wb_parameter;

/* True with the next array of the model, false after the last one and while an error is pending,
 * so that a loop ends at the first error. An array in two places, or beside its transpose, comes
 * once. May be used inside a loss; weight decay by hand:
 *
 *     for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
 *         if (p.is_trainable) l = wb_add(l, wb_mul_number(wb_sum(wb_square(p.array)), 1e-4)); */
WB_API bool wb_next_parameter(wb_layer *model, wb_parameter *p);

/* A layer of a model, for a loop over all of them; begins as {0}. */
typedef struct wb_module {
    const char *path;        /* "layers.1", of the first place where it stands; "": the model */
    const char *type;        /* name of its class: "Dense", "Chain" */
    wb_layer *layer;         /* borrowed from the model */
    struct wb_places *list_; /* private */
} wb_module;

/* True with the next layer of the model, false after the last one and while an error is pending.
 * The model itself comes first, each layer before the layers in it; a layer in two places comes
 * once (Flux's modules). The loop must not put layers into the model or take them out.
 *
 *     for (wb_module m = {0}; wb_next_module(model, &m);)
 *         if (strcmp(m.type, "Dropout") == 0) wb_test_mode(m.layer); */
WB_API bool wb_next_module(wb_layer *model, wb_module *m);

/* Puts x, in the old array's type, into the place of an array of the same sizes on the same device;
 * a holder of the old array keeps its value. If x, or its memory, is held elsewhere, the place gets
 * a copy. If other places held the same array (a tie), only this one changes, and the tie ends.
 *
 * If a forward or loss function sets it, gradients flow through the new array to what x was made
 * of, in that step. A parameter that is set so and has a gradient itself is an error of the step;
 * with .micro_batches or .distributed any parameter that is set so is. Set elsewhere, a parameter
 * is a leaf (gradients end there), and a state is one once its numbers are computed.
 *
 * This is how a forward or loss function changes a state, an array of WB_STATE_FIELD:
 *     wb_array *old = wb_mul_number(m->mean, 0.9);
 *     wb_set(&m->layer, "mean", wb_add(old, wb_mul_number(wb_mean(x), 0.1)));
 * The struct's field holds the new array at once. Its numbers are computed with the step's, by
 * wb_update or when the scope closes, and it then loses its recipe: no gradient reaches back into
 * an earlier step. If the forward or loss function fails, and in wb_gradient_check, the field gets
 * its old array back. */
WB_API wb_status wb_set(wb_layer *model, const char *path, wb_array *x);

/* The same without a copy: x is an array that stands in another place, or a view of one that has
 * all of its numbers once (transposed, permuted, reshaped). From now on the two are one parameter,
 * trained, counted and saved once (a tie).
 *
 *     wb_tie(model, "layers.3.weight", wb_transpose(wb_get(model, "layers.1.weight")));
 *
 * wb_set ends the tie. Fails on an x of another type, or that stands in no place, and on a view
 * that is flipped, sliced or expanded. */
WB_API wb_status wb_tie(wb_layer *model, const char *path, wb_array *x);

/* An object with a name, for wb_chain_named, wb_tree_named and wb_save_named. */
typedef struct wb_named {
    const char *name;
    void *object; /* a layer; in a tree also an array */
} wb_named;

/* ---- a model through a function ---- */

/* Returns what the array at path becomes; NULL fails. */
typedef wb_array *wb_leaf_fn(void *user, const char *path, wb_array *x);

/* A new model whose arrays are fn's results (fmap of the guides); the given one stays as it is. An
 * array or layer in two places is mapped once and shared again; if fn returns one array for two of
 * the model's, the second gets a copy. Arrays are computed before the call returns. */
WB_API wb_layer *wb_map(wb_leaf_fn *fn, void *user, wb_layer *model);

/* The same in place. On failure nothing has changed. */
WB_API wb_status wb_walk(wb_leaf_fn *fn, void *user, wb_layer *model);

/* ---- references, copies, threads ---- */

/* One more reference, which the caller owns; returns the layer. A container takes over one
 * reference to each of its layers, so call this once for a layer that is to stand in two
 * containers. If one call has it twice, wb_chain(d, d), this is not needed. */
WB_API wb_layer *wb_keep_layer(wb_layer *layer);

/* A copy with arrays of its own, ties kept. */
WB_API wb_layer *wb_clone(wb_layer *model);

/* The model for one other thread, over the same memory, not to be trained. Call it on the model's
 * thread; use and wb_free the result on the other. Later updates of the model do not reach it. */
WB_API wb_layer *wb_share(wb_layer *model);

/* Gives a model, an optimiser with its model, or a loader to another thread: the first one that
 * uses it. This thread must not use it any more. Arrays that were taken out of it (wb_get) stay
 * with this thread, over the same memory. */
WB_API wb_status wb_hand_over(void *object);

#ifdef __cplusplus
}
#endif
#endif
