/* weber/optimise.h: gradients of models, optimisers.
 *
 *     static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
 *         return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
 *     }
 *
 *     wb_optimiser *adam = wb_setup(wb_adam(.eta = 1e-3), model);
 *     wb_batch batch = {0};
 *     for (int64_t i = 1; wb_next(data, &batch); i++) {
 *         wb_array *l = wb_train_step(loss, model, &batch, NULL, adam);
 *         if (i % 100 == 0) printf("loss %.4f\n", wb_item(l));
 *     }
 *     wb_free(adam);
 *
 * With gradients to look at: wb_withgradient(loss, model, &batch, NULL, &grads), wb_update(adam,
 * model, grads). Or, all in one: wb_train (weber/train.h). NULL in, NULL out. Errors:
 * weber/error.h. */
#ifndef WEBER_OPTIMISE_H
#define WEBER_OPTIMISE_H

#include "data.h"
#include "model.h"
#include "rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gradients of models ---- */

/* One gradient for each trainable array of a model, NULL where the loss does not depend on it;
 * owned by the scope. */
typedef struct wb_gradients wb_gradients;

/* A rule and its state for one model. State is f32 for f16 and bf16 parameters, else of the
 * parameter's type. */
typedef struct wb_optimiser wb_optimiser;

/* The loss of a batch, one number. */
typedef wb_array *wb_loss_fn(wb_layer *model, const wb_batch *batch, void *user);

/* The gradients of l, which was built from the model's arrays. Arrays may have been read directly
 * or by wb_get; layers in automatic mode are in training only after wb_training(true). */
WB_API wb_gradients *wb_gradient(wb_array *l, wb_layer *model);

/* Calls loss in training mode and in a scope of its own; the loss and *gradients leave it, and
 * belong to the caller's scope, which a training loop opens and closes in each step. Nothing is
 * computed yet: wb_update computes all in one plan. On failure both are NULL. */
WB_API wb_array *wb_withgradient(wb_loss_fn *loss, wb_layer *model, const wb_batch *batch,
                                 void *user, wb_gradients **gradients);

/* The gradient of the array at path ("layers.1.weight"), owned by the gradients' scope; NULL,
 * without an error, if there is none. A tied array has one gradient, the sum over its places. An
 * unknown path is an error that lists the valid ones. */
WB_API wb_array *wb_gradients_get(const wb_gradients *gradients, const char *path);

/* Replaces the gradient, for a scaling or clipping of your own; it has the parameter's sizes. NULL:
 * the parameter is left alone. */
WB_API wb_status wb_gradients_set(wb_gradients *gradients, const char *path, wb_array *gradient);

/* The same with the optimiser's .compute and .loss_scale, for a step of that optimiser. The
 * gradients are of the loss before scaling, in f32 for f16 and bf16 parameters if there is a scale.
 * With a distributed optimiser they are this rank's part of the common gradients, weighted by the
 * rank's share in the sum of all ranks' divisors. That takes a collective: all ranks must call
 * it. */
WB_API wb_array *wb_withgradient_for(wb_optimiser *optimiser, wb_loss_fn *loss, wb_layer *model,
                                     const wb_batch *batch, void *user, wb_gradients **gradients);

/* ---- what a loss hands out beside the loss ----
 *
 *     static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
 *         wb_array *p = wb_apply(model, batch->x), *kl = wb_aux("kl", divergence(p));
 *         return wb_add(wb_mse(wb_aux("p", p), batch->y), kl);
 *     }
 *
 * (Flux's loss, aux = withgradient(...)) wb_train shows numbers and averages them. */

enum { WB_AUX = 8, WB_AUX_NAME_BYTES = 32 };

/* Hands x out under a name of its own, shorter than 32 bytes, at most 8 arrays for a loss; returns
 * x. If no gradient is being taken it only returns x. */
WB_API wb_array *wb_aux(const char *name, wb_array *x);

/* The array that the loss handed out under this name: for these gradients (wb_update computes it
 * with the rest), or in the optimiser's last step (already computed). Owned by the scope. An
 * unknown name is an error that lists the names. */
WB_API wb_array *wb_gradients_aux(const wb_gradients *gradients, const char *name);
WB_API wb_array *wb_optimiser_aux(wb_optimiser *optimiser, const char *name);

/* ---- what a loss was divided by ----
 *
 * Batches, the micro-batches of one, and the batches of several ranks are parts of a whole, whose
 * loss is sum(w l) / sum(w) over the parts: the loss of one batch with all observations, however
 * these are cut. w is what the loss l of a part was divided by:
 *
 * - what a loss function says by wb_divided_by, the last time it does;
 * - else, where it calls one loss of weber/losses.h with .weights, .class_weights or .ignore, the
 *   sum of the weights that this one's mean was divided by. Where it calls two or more, their
 *   divisors differ and none is used;
 * - else the number of observations.
 *
 * So a mean over observations needs nothing, and a mean of your own over words says by how many:
 *
 *     wb_array *words = wb_sum(mask), *sum = wb_sum(wb_mul(terms, mask));
 *     return wb_divided_by(wb_div(sum, wb_max(words, 1)), words);
 *
 * A part whose w is 0 counts nothing, so its loss must be a number: sum / 0 would be NaN, also in
 * the gradient.
 *
 * A sum over a batch (WB_AGG_SUM) is not a mean: the sums of its parts are averaged over
 * observations, too. For gradients w is a constant. */

/* Returns l; divisor is one number. Outside of a loss function that a step or an evaluation calls,
 * it only returns l. */
WB_API wb_array *wb_divided_by(wb_array *l, wb_array *divisor);

/* The divisor of the last step's loss, over all its parts: one number, owned by the scope. A loop
 * by hand adds up losses times divisors, and divisors, for the mean of an epoch. */
WB_API wb_array *wb_optimiser_divisor(wb_optimiser *optimiser);

/* ---- all gradients of a model at once ----
 *
 * Accumulation by hand:
 *
 *     for (int i = 1; wb_next(data, &batch); i++) {
 *         wb_array *l = wb_withgradient(loss, model, &batch, NULL, &g);
 *         if (!sum) sum = wb_gradients_keep(g); else wb_gradients_add(sum, g);
 *         if (i % 4) continue;
 *         wb_gradients_scale(sum, 0.25), wb_update(adam, model, sum);
 *         wb_free(sum), sum = NULL;
 *     }
 *
 * A gradient that is NULL counts as zeros and stays NULL. */

/* True with the next gradient, its array and path, false after the last one and on failure:
 * for (wb_parameter p = {0}; wb_next_gradient(gradients, &p);). gradient may be NULL. */
WB_API bool wb_next_gradient(const wb_gradients *gradients, wb_parameter *p);

/* sum += more, of the same model. A step with sum is good if both losses are finite. If sum is
 * kept, it is computed at once, with more's loss, in one plan and in place. */
WB_API wb_status wb_gradients_add(wb_gradients *sum, const wb_gradients *more);

/* Each times factor, whose value is not part of the plan. */
WB_API wb_status wb_gradients_scale(wb_gradients *gradients, double factor);

/* Each element between -limit and limit, limit >= 0. */
WB_API wb_status wb_gradients_clip(wb_gradients *gradients, double limit);

/* The common 2-norm of all gradients, after the gradients of a tie are added up; owned by the
 * scope, f32 or f64. */
WB_API wb_array *wb_gradients_norm(const wb_gradients *gradients);

/* Scales all so that their common norm is at most limit, as .clip_total_norm of wb_setup: a step
 * whose norm is not finite is skipped. Returns the norm before, owned by the scope; NULL on
 * failure. */
WB_API wb_array *wb_gradients_clip_total_norm(wb_gradients *gradients, double limit);

/* Each becomes fn's result for its path, of the same sizes; those that are NULL are left out. On
 * failure nothing has changed. */
WB_API wb_status wb_gradients_map(wb_leaf_fn *fn, void *user, wb_gradients *gradients);

/* Takes the gradients out of their scope, until wb_free; returns them. They are computed at once,
 * with their loss, and are data from then on. NULL on failure; then the scope still owns them. */
WB_API wb_gradients *wb_gradients_keep(wb_gradients *gradients);

/* ---- optimisers ---- */

/* A rule for a part of a model. */
typedef struct wb_path_rule {
    const char *path; /* as for wb_freeze */
    wb_rule rule;
} wb_path_rule;

enum { WB_PATH_RULES = 8 };

typedef struct wb_setup_desc {
    WB_START_MEMBER;
    wb_rule rule; /* weber/rules.h */
    wb_layer *model;
    wb_dtype compute;  /* f16 or bf16: how losses see f32 parameters; default: as f32 */
    double loss_scale; /* the first scale of the loss, 32768 is usual with f16; 0: none */
    int64_t loss_scale_interval WB_DEFAULT(2000); /* good steps after which it doubles */
    double clip_total_norm; /* the 2-norm of all gradients is made at most this; 0: not */
    wb_path_rule paths[WB_PATH_RULES]; /* parts with a rule of their own; the first that matches */
    /* several processes train one model (weber/distributed.h): rank 0's parameters are sent to all
     * now, and each step is the step of one process over the batches of all ranks together; what
     * layers write is as with micro-batches, but hidden states are each rank's own */
    bool distributed;
    wb_dtype send; /* bf16: ranks send f32 gradients so, and add them in f32; default f32 */
    int zero;      /* 1: states are divided among the ranks; needs .distributed; default 0 */
    bool may_miss; /* a parameter may have a gradient on some ranks alone; needs .distributed */
    /* ranks compare their parameters and states at the first step and after so many more; 0: at the
     * first one alone */
    int64_t compare_every WB_DEFAULT(1000);
    int64_t micro_batches; /* wb_train_step computes each batch in so many parts; default 1 */
} wb_setup_desc;

/* wb_setup(rule, model) or wb_setup(rule, model, .clip_total_norm = 1). Parts of the model may have
 * rules of their own, in the place of the main one; no decay for biases, and a smaller rate for the
 * first layer:
 *
 *     wb_setup(wb_adamw(.lambda = 1e-2), model,
 *              .paths = {{"*.bias", wb_adam()}, {"layers.1", wb_adamw(.eta = 1e-4)}});
 *
 * Mixed precision: with .compute = WB_F16 (or WB_BF16) a loss sees each f32 parameter as a cast, so
 * that products are computed of halves, and gradients come back in f32 to parameters that stay so;
 * states of layers keep their type. For parameters that are halves there is wb_mixed_precision
 * instead. f16 gradients below 6e-8 vanish: with .loss_scale = 32768 the loss is multiplied by a
 * number on the device before gradients are taken, and gradients are divided by it. A step in which
 * one is not finite is skipped and halves the number (down to 1); after .loss_scale_interval good
 * steps in a row it doubles (up to 2^24). wb_train_step and wb_train do so; a loop with gradients
 * calls wb_withgradient_for. Saved in checkpoints.     (Micikevicius and others 2018)
 *
 * Micro-batches: with .micro_batches = k, wb_train_step and wb_train compute a batch as k parts one
 * after another, which takes the memory of a k-th of it; the step is the same as for the whole
 * batch. A loss is called for each part, with views of the batch's arrays: of x, and of y and more
 * where their last size is x's, whatever it stands for (10 weights of classes beside a batch of 10
 * are cut, too: give such arrays by user). Gradients and losses are means over what the parts'
 * losses were divided by (wb_divided_by); what the loss hands out (wb_aux) comes from the last part
 * that has some.
 *
 * States that layers write in several parts: floating states become means over observations;
 * integers and bools must be the same in all parts (a count of steps, not of observations), or the
 * step is an error that names the state; hidden states (wb_recur) are cut as the batch is, and each
 * part goes on from its columns. Layers with a cache (wb_cache) are an error. BatchNorm normalises
 * by the part.
 *
 * If k and the number of ranks N are powers of two, bits depend on k N alone, whichever rank
 * computes a part (masks, too, and training that goes on from a checkpoint), while k N and N times
 * the loader's batchsize stay the same; with f16 only if losses do not say what they were divided
 * by.
 *
 * Missing gradients: a parameter that the losses of some ranks do not reach is an error of
 * .distributed, since those ranks would not take part in its sum. With .may_miss = true such a rank
 * counts with a gradient of zero, and a parameter that no rank reaches is left alone; the ranks ask
 * each other in each step, and wait for the answer. Not together with .micro_batches.
 *
 * ZeRO: with .zero = 1 each of N ranks keeps an N-th of the rule's states and computes that part
 * of the step, with the bits of a step without it (with .clip_total_norm if .micro_batches is
 * given, too). Rules that look at more than single elements (wb_lamb, wb_muon, norms, rules of
 * your own unless they say is_elementwise) have whole arrays, each on one rank. Files have whole
 * states, and know nothing of ranks; all ranks must call wb_save, wb_checkpoint_save,
 * wb_optimiser_get and wb_averaged, and rank 0 alone writes. (Rajbhandari and others 2020)  A path
 * that matches no trainable array is an error. One state per array: two slots over the same array,
 * or over a transpose of it, are a tie and stay one. The optimiser keeps the model alive. Fails
 * for a negative eta and for a shared model; warns if nothing is trainable. Released by wb_free.
 * Two optimisers that train the same parameters in turn, each with states of its own, are a
 * warning, once: in the first step that directly follows one of the other's when both have made a
 * step before; in A, B, A it comes with the third. An optimiser that takes over for good (A, A, B,
 * B) gives no warning. */
#define wb_setup(...) WB_MAKE(wb_setup_make, setup, __VA_ARGS__)
WB_API wb_optimiser *wb_setup_make(wb_setup_desc desc);

/* One step: computes gradients, which stay readable, new parameters, state and loss in one plan.
 * The model's slots get new arrays; a holder of an old array keeps its value. Parameters without a
 * gradient are left alone, with a warning at the first step in which no parameter has one. If the
 * loss (or the norm, when clipping) is not finite, the step is skipped: parameters, state and what
 * layers and the loss have written keep their values, and it does not count (wb_skipped). On
 * failure nothing has changed. */
WB_API wb_status wb_update(wb_optimiser *optimiser, wb_layer *model, wb_gradients *gradients);

/* wb_withgradient and wb_update in one, when you do not need the gradients: they are not kept,
 * which saves up to as much memory as the parameters have. Returns the loss, computed and owned by
 * the scope; NULL on failure, when nothing has changed. */
WB_API wb_array *wb_train_step(wb_loss_fn *loss, wb_layer *model, const wb_batch *batch, void *user,
                               wb_optimiser *optimiser);

/* Steps that counted, and steps that the guard skipped. Which they were is a number on the device:
 * reading it waits for what is queued there, so in a loop that reads nothing else count yourself.
 * 0 for NULL. */
WB_API int64_t wb_step_count(wb_optimiser *optimiser);
WB_API int64_t wb_skipped(wb_optimiser *optimiser);

/* The scale of the loss now, a number on the device owned by the scope; NULL: it has none. */
WB_API wb_array *wb_loss_scale(wb_optimiser *optimiser);

/* Sets the learning rate, or the setting of that name in each row that has it, from the next step
 * on, literally: 0 is 0. State stays. Another learning rate makes no new plan, another setting one
 * at its first change, another flag at each. An unknown name is an error that lists the
 * settings. */
WB_API wb_status wb_adjust(wb_optimiser *optimiser, double eta);
WB_API wb_status wb_adjust_named(wb_optimiser *optimiser, const char *setting, double value);

/* The same for the parameters that path matches (as for wb_freeze): rates by layer, no decay for
 * some. Parameters that shared a rule with others go on with a rule of their own, which makes one
 * new plan. */
WB_API wb_status wb_adjust_path(wb_optimiser *optimiser, const char *path, const char *setting,
                                double value);

/* The setting's value now, as schedules and wb_adjust have left it. path NULL: in the rule that
 * wb_setup was given, else in the first of .paths that has it. With a path: for the first array
 * that it matches (as for wb_freeze) and whose rule has the setting. NaN on failure; an unknown
 * name is an error that lists the settings. */
WB_API double wb_optimiser_setting(wb_optimiser *optimiser, const char *path, const char *setting);

/* The state that the rule keeps for the array at path ("layers.1.weight"), by its name in files: m
 * and v of Adam. Read: owned by the scope, and stays what it is when steps go on. Set: x has the
 * sizes of the parameter, and is converted to the state's type. An unknown name is an error that
 * lists the names. */
WB_API wb_array *wb_optimiser_get(wb_optimiser *optimiser, const char *path, const char *state);
WB_API wb_status wb_optimiser_set(wb_optimiser *optimiser, const char *path, const char *state,
                                  wb_array *x);

/* A copy of the model with the averages in the place of its parameters that rules keep (wb_ema,
 * wb_schedule_free, or one of your own with a state "average"); what has none is copied. The caller
 * releases it. Fails if no rule keeps one. */
WB_API wb_layer *wb_averaged(wb_optimiser *optimiser);

/* Where path matches, neither parameters nor their state change from the next step on, until they
 * are thawed; steps meanwhile do not count for them. A path names a parameter or a layer above it
 * ("layers.1"), * stands for any letters ("*.bias"); NULL: all. Arrays that are tied freeze
 * together. Statistics of BatchNorm and other states of layers are no parameters and move on,
 * unless the layer is in test mode (wb_test_mode). A path that matches nothing is an error. */
WB_API wb_status wb_freeze(wb_optimiser *optimiser, const char *path);
WB_API wb_status wb_thaw(wb_optimiser *optimiser, const char *path);

/* ---- the implicit style of Flux 0.11 to 0.14 ----
 *
 *     wb_parameters *ps = wb_params(model);
 *     while (wb_next(data, &batch)) {
 *         wb_gradients *gs;                              // gs = gradient(() -> loss(x, y), ps)
 *         wb_withgradient(loss, model, &batch, NULL, &gs);
 *         wb_update_params(wb_adam(.eta = 1e-3), ps, gs); // update!(opt, ps, gs)
 *     }
 *     wb_free(ps);
 *
 * A rule is a plain value, so its state is the list's. Loops over it: wb_next_parameter. */

typedef struct wb_parameters wb_parameters;

/* The trainable arrays of a model, which it keeps alive. Released by wb_free. */
WB_API wb_parameters *wb_params(wb_layer *model);

/* What path matches (as for wb_freeze) is not updated any more: delete!(ps, m[1].bias). */
WB_API wb_status wb_params_delete(wb_parameters *parameters, const char *path);

/* One step of the rule, as wb_update. Other settings than at the last step count from now on, and
 * state stays; a rule with other rows is an error. */
WB_API wb_status wb_update_params(wb_rule rule, wb_parameters *parameters, wb_gradients *gradients);

/* What keeps the state, for files and wb_optimiser_get: borrowed; NULL before the first update. */
WB_API wb_optimiser *wb_params_optimiser(wb_parameters *parameters);

#ifdef __cplusplus
}
#endif
#endif
