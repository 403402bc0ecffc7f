/* weber/model.h: functions on whole models.
 *
 * A model is a tree of layers; a layer is a struct with a table of its fields (weber/class.h).
 * Mapping, counting, printing, training and saving a model are all driven by these tables.
 *
 *     wb_layer *model = wb_chain(wb_dense(784, 128, wb_relu), wb_dropout(.p = 0.1f),
 *                                wb_dense(128, 10));
 *     wb_array *y = wb_apply(model, x);                    // x (784, N) gives (10, N)
 *     wb_array *w = wb_get(model, "layers.1.weight");      // layers count from 1, as in messages
 *     wb_free(model);
 *
 * A maker that takes layers owns them from the call on, also when it fails; wb_free of the
 * outermost layer releases all. NULL in, NULL out. Members whose names end in _ are private.
 * Errors: weber/error.h. */
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

/* The same for layers that take several arrays or return several: writes at most capacity results
 * and returns their number; 0 on failure. A chain passes the results of each layer to the next one;
 * in a chain, a layer of one array takes the first, and the others (masks, lengths) go to the next
 * layer unchanged. Fails if a layer of one array, outside of a chain, gets several, and if there
 * are more results than capacity.
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
    int64_t inputs[WB_MOST_ARRAYS][WB_MAX_DIMS]; /* sizes of each input; 0 ends them. Required */
    bool pad_batch;                              /* append a last dimension of size 1 to each */
    wb_dtype dtype;                              /* of all inputs; default f32 */
} wb_outputsize_desc;

/* The sizes of the model's result for inputs of these sizes, without computing anything:
 * wb_outputsize(model, {{28, 28, 1, 32}}). Layers are in test mode and do not change their states.
 * Fails, with ndim -1, as wb_apply does, and if the model returns several arrays. (Flux's
 * outputsize) */
#define wb_outputsize(model, ...)                                                                  \
    WB_MAKE_OF(wb_outputsize_make, model, outputsize, .inputs = __VA_ARGS__)
WB_API wb_shape wb_outputsize_make(wb_layer *model, wb_outputsize_desc desc);

/* Training or test mode. A layer in automatic mode (the default) follows the thread's training
 * flag. wb_withgradient, wb_train_step and wb_train set the flag and restore it; wb_training sets
 * it for a loop by hand, and returns its former value. The other functions set the mode of all
 * layers of a model. */
WB_API bool wb_training(bool training);
WB_API wb_status wb_train_mode(wb_layer *model);
WB_API wb_status wb_test_mode(wb_layer *model);
WB_API wb_status wb_auto_mode(wb_layer *model);

/* Whether the arrays of some layers are parameters, which gradients and optimisers see; at first
 * all are. (PyTorch's requires_grad_) path: a layer and all layers in it, "layers.1"; * matches any
 * characters ("*.norm1"); NULL: all. Copies of a layer are as it is, files do not have it. An
 * optimiser that exists already follows at its next step; one that is made later keeps nothing for
 * what is not trainable. A frozen layer keeps its numbers: an array that is in a trainable layer,
 * too, is trained there alone, and the two are no longer tied. To freeze single arrays, or only for
 * some steps: wb_freeze (weber/optimise.h). Fails with WB_ERROR_ARGUMENT if no layer has the path.
 *
 *     wb_set_trainable(model, NULL, false);           // all but ...
 *     wb_set_trainable(model, "layers.9", true);      // ... the new last layer */
WB_API wb_status wb_set_trainable(wb_layer *model, const char *path, bool trainable);

/* True if the layer is to behave as in training now. */
WB_API bool wb_is_active(const wb_layer *layer);

/* Resets the hidden states of all layers (those of Recur, WB_HIDDEN_FIELD): the next call starts a
 * new sequence. */
WB_API wb_status wb_reset(wb_layer *model);

/* From now on the model takes a sequence in pieces, of at most `length` positions in total, as for
 * generating text: each causal MultiHeadAttention keeps the keys and values of earlier pieces (a KV
 * cache), and position layers continue counting. The results for a piece are the same as in a call
 * with the whole sequence so far (Vaswani et al. 2017; past_key_values in other libraries):
 *
 *     wb_cache(model, 512);
 *     wb_array *logits = wb_apply(model, prompt);     // (tokens, ...)
 *     logits = wb_apply(model, next);                 // one more, (1, ...); the same plan
 *     wb_reset(model);                                // the next sequence
 *     wb_cache(model, 0);                             // without a cache, as for training
 *
 * The keys and values are hidden states of a fixed size. Fails with WB_ERROR_ARGUMENT, and changes
 * nothing, if the model has no such attention, or a PositionEmbedding with fewer positions, or one
 * such layer in two places. A copy of the model starts a new sequence. Applying the model fails if
 * the cache is full, the batch size has changed, or the model is in training mode; a failed call
 * changes nothing. */
WB_API wb_status wb_cache(wb_layer *model, int64_t length);

/* The number of trainable elements of a model; an array in two places, or with its transpose in
 * another, counts once. */
WB_API int64_t wb_parameter_count(wb_layer *model);

/* The array at a path, owned by the scope: "layers.1.weight", "layers.encoder.bias", "actor". An
 * unknown path is an error that lists the valid ones; so is the path of an array that is absent
 * (.bias = false). */
WB_API wb_array *wb_get(wb_layer *model, const char *path);

/* The layer at a path, "layers.1", borrowed from the model. */
WB_API wb_layer *wb_get_layer(wb_layer *model, const char *path);

/* An array of a model, for a loop over all arrays; initialise it with {0}. */
typedef struct wb_parameter {
    const char *path;        /* "layers.1.weight", its first place */
    wb_array *array;         /* owned by the scope */
    wb_array *gradient;      /* set by wb_next_gradient (weber/optimise.h) */
    bool is_trainable;       /* false: a state, integers, or frozen (wb_set_trainable) */
    struct wb_places *list_; /* private */
} wb_parameter;

/* True with the next array of the model, false after the last one and while an error is pending, so
 * that a loop ends at the first error. An array in two places, or with its transpose in another,
 * comes once. May be used inside a loss, here for weight decay by hand:
 *
 *     for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
 *         if (p.is_trainable) l = wb_add(l, wb_mul_number(wb_sum(wb_square(p.array)), 1e-4)); */
WB_API bool wb_next_parameter(wb_layer *model, wb_parameter *p);

/* A layer of a model, for a loop over all layers; initialise it with {0}. */
typedef struct wb_module {
    const char *path;        /* "layers.1", its first place; "": the model itself */
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

/* Replaces the array at path by x, which has the same sizes and device, and is converted to the old
 * array's type. The old array itself does not change. If x, or its memory, is held elsewhere, the
 * model gets a copy. If the old array is tied to other places, only this place changes, and the tie
 * ends.
 *
 * If a forward or loss function sets an array, gradients in that step flow through it to the arrays
 * that x was computed from. If it sets a parameter that has a gradient itself, the step fails; with
 * .micro_batches or .distributed it fails for any parameter. If an array is set elsewhere,
 * gradients end there: for a parameter at once, for a state once its numbers are computed.
 *
 * This is how a forward or loss function changes a state, an array of WB_STATE_FIELD:
 *     wb_array *old = wb_mul_number(m->mean, 0.9);
 *     wb_set(&m->layer, "mean", wb_add(old, wb_mul_number(wb_mean(x), 0.1)));
 * The struct's field has the new array at once. Its numbers are computed in the step's plan, by
 * wb_update or when the scope closes; then it loses its recipe, so that no gradient reaches an
 * earlier step. If the forward or loss function fails, and in wb_gradient_check, the field gets its
 * old array back. */
WB_API wb_status wb_set(wb_layer *model, const char *path, wb_array *x);

/* The same without a copy: x is an array from another place of the model, or a view that has each
 * of its elements once (transposed, permuted, reshaped). From now on both places have one
 * parameter, which is trained, counted and saved once (a tie).
 *
 *     wb_tie(model, "layers.3.weight", wb_transpose(wb_get(model, "layers.1.weight")));
 *
 * wb_set ends the tie. Fails if x has another type or is in no place of the model, and on a view
 * that is flipped, sliced or expanded. */
WB_API wb_status wb_tie(wb_layer *model, const char *path, wb_array *x);

/* An object with a name, for wb_chain_named, wb_tree_named and wb_save_named. */
typedef struct wb_named {
    const char *name;
    void *object; /* a layer; in a tree also an array */
} wb_named;

/* ---- a model through a function ---- */

/* Returns the array that replaces x, which is at path; NULL is a failure. */
typedef wb_array *wb_leaf_fn(void *user, const char *path, wb_array *x);

/* A new model whose arrays are fn's results (fmap in Flux); the given model does not change. An
 * array or layer in two places is mapped once, and the result is shared likewise; if fn returns the
 * same array for two different ones, the second gets a copy. Arrays are computed before the call
 * returns. */
WB_API wb_layer *wb_map(wb_leaf_fn *fn, void *user, wb_layer *model);

/* The same in place. On failure nothing has changed. */
WB_API wb_status wb_walk(wb_leaf_fn *fn, void *user, wb_layer *model);

/* ---- references, copies, threads ---- */

/* One more reference, which the caller owns; returns the layer. A container takes over one
 * reference to each of its layers, so call this once for a layer that you put into two containers.
 * It is not needed if a layer occurs twice in one call: wb_chain(d, d). */
WB_API wb_layer *wb_keep_layer(wb_layer *layer);

/* A copy with its own arrays; ties are kept. */
WB_API wb_layer *wb_clone(wb_layer *model);

/* A model over the same memory for one other thread, which must not train it. Call wb_share on the
 * model's thread; use and wb_free the result on the other one. Later updates of the model do not
 * reach it. */
WB_API wb_layer *wb_share(wb_layer *model);

/* x for one other thread, over the same memory: a request to a server thread, or its answer.
 * Computes x. The result belongs to the thread that uses it first, and needs one wb_free there; no
 * gradient goes through it. NULL in, NULL out. */
WB_API wb_array *wb_share_array(wb_array *x);

/* Gives a model, an optimiser with its model, or a loader to another thread: the first thread that
 * uses it. This thread must not use it any more. Arrays that were taken out of it (wb_get) stay
 * with this thread, over the same memory. */
WB_API wb_status wb_hand_over(void *object);

#ifdef __cplusplus
}
#endif
#endif
