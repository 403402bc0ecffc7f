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
 * To look at the gradients, or change them: wb_withgradient(loss, model, &batch, NULL, &grads),
 * then wb_update(adam, model, grads). For the whole loop in one call: wb_train (weber/train.h).
 * NULL in, NULL out. Errors: weber/error.h. */
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

/* A rule and its state for one model. The state is f32 for f16 and bf16 parameters, else it has the
 * parameter's type. */
typedef struct wb_optimiser wb_optimiser;

/* The loss of a batch, one number. */
typedef wb_array *wb_loss_fn(wb_layer *model, const wb_batch *batch, void *user);

/* The gradients of a loss l that was computed from the model's arrays, whether by layers, by wb_get
 * or from a struct's members. Layers in automatic mode are in training mode only after
 * wb_training(true). */
WB_API wb_gradients *wb_gradient(wb_array *l, wb_layer *model);

/* Calls loss in training mode and in a scope of its own. The loss and *gradients then belong to the
 * caller's scope; a training loop opens and closes one in each step. Nothing is computed yet:
 * wb_update computes everything in one plan. On failure both are NULL. */
WB_API wb_array *wb_withgradient(wb_loss_fn *loss, wb_layer *model, const wb_batch *batch,
                                 void *user, wb_gradients **gradients);

/* The gradient of the array at path ("layers.1.weight"), owned by the gradients' scope; NULL,
 * without an error, if there is none. A tied array has one gradient, the sum over its places. An
 * unknown path is an error that lists the valid ones. */
WB_API wb_array *wb_gradients_get(const wb_gradients *gradients, const char *path);

/* Replaces the gradient, for scaling or clipping of your own; the new one has the parameter's
 * sizes. With NULL the parameter is not updated. */
WB_API wb_status wb_gradients_set(wb_gradients *gradients, const char *path, wb_array *gradient);

/* wb_withgradient with the optimiser's .compute and .loss_scale, for a step of that optimiser. The
 * gradients are those of the unscaled loss; with a scale they are f32 for f16 and bf16 parameters.
 * With a distributed optimiser they are this rank's part of the common gradients, weighted by the
 * rank's share in the sum of all ranks' divisors. This needs a collective, so all ranks must call
 * it. */
WB_API wb_array *wb_withgradient_for(wb_optimiser *optimiser, wb_loss_fn *loss, wb_layer *model,
                                     const wb_batch *batch, void *user, wb_gradients **gradients);

/* ---- what a loss function hands out besides the loss ----
 *
 *     static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
 *         wb_array *p = wb_apply(model, batch->x), *kl = wb_aux("kl", divergence(p));
 *         return wb_add(wb_mse(wb_aux("p", p), batch->y), kl);
 *     }
 *
 * (Flux's loss, aux = withgradient(...)) wb_train shows those that are numbers, and averages
 * them. */

enum { WB_AUX = 8, WB_AUX_NAME_BYTES = 32 };

/* Hands x out under a name, shorter than 32 bytes, and returns x. At most 8 arrays for each loss,
 * with different names. If no gradient is being taken, it only returns x. */
WB_API wb_array *wb_aux(const char *name, wb_array *x);

/* The array that the loss handed out under this name: together with these gradients (wb_update
 * computes it with them), or in the optimiser's last step (it is computed already). Owned by the
 * scope. An unknown name is an error that lists the names. */
WB_API wb_array *wb_gradients_aux(const wb_gradients *gradients, const char *name);
WB_API wb_array *wb_optimiser_aux(wb_optimiser *optimiser, const char *name);

/* ---- what a loss was divided by ----
 *
 * Batches, micro-batches of a batch, and the batches of several ranks are parts of a whole. The
 * loss of the whole is sum(w l) / sum(w) over the parts, so it does not depend on how observations
 * are divided into parts. w is what the loss l of a part was divided by:
 *
 * - what the loss function passed to wb_divided_by, in its last call of it;
 * - else, if the function calls exactly one loss of weber/losses.h with .weights, .class_weights or
 *   .ignore, the sum of weights by which that loss divided. With two or more such calls the
 *   divisors differ, and none of them is used;
 * - else the number of observations.
 *
 * So a mean over observations needs no call, while a mean of your own over words says how many
 * words there are:
 *
 *     wb_array *words = wb_sum(mask), *sum = wb_sum(wb_mul(terms, mask));
 *     return wb_divided_by(wb_div(sum, wb_max(words, 1)), words);
 *
 * A part with w = 0 adds nothing, but its loss must still be finite: sum / 0 would be NaN, also in
 * the gradient.
 *
 * A sum over a batch (WB_AGG_SUM) is not a mean, but the sums of its parts are averaged in the same
 * way, with the numbers of observations as w. Gradients treat w as a constant. */

/* Says what l was divided by, an array of one number, and returns l. Outside of a loss function
 * that a step or an evaluation calls, it only returns l. */
WB_API wb_array *wb_divided_by(wb_array *l, wb_array *divisor);

/* The divisor of the last step's loss, over all its parts: one number, owned by the scope. For the
 * mean loss of an epoch, a loop by hand divides the sum of losses times divisors by the sum of
 * divisors. */
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
 * In these functions a gradient that is NULL counts as zeros. */

/* True with the next gradient, its array and path, false after the last one and on failure:
 * for (wb_parameter p = {0}; wb_next_gradient(gradients, &p);). gradient may be NULL. */
WB_API bool wb_next_gradient(const wb_gradients *gradients, wb_parameter *p);

/* sum += more, both of the same model. A step with sum is skipped unless both losses are finite. If
 * sum is kept (wb_gradients_keep), it is computed at once, together with the loss of more, in one
 * plan and in place. */
WB_API wb_status wb_gradients_add(wb_gradients *sum, const wb_gradients *more);

/* Multiplies each gradient by factor. Another factor needs no new plan. */
WB_API wb_status wb_gradients_scale(wb_gradients *gradients, double factor);

/* Clips each element to -limit ... limit, limit >= 0. */
WB_API wb_status wb_gradients_clip(wb_gradients *gradients, double limit);

/* The 2-norm of all gradients as one vector; a tied array counts once, with the sum of its
 * gradients. Owned by the scope, f32 or f64. */
WB_API wb_array *wb_gradients_norm(const wb_gradients *gradients);

/* Scales all gradients so that wb_gradients_norm is at most limit, as .clip_total_norm of wb_setup
 * does: a step whose norm is not finite is skipped. Returns the norm before scaling, owned by the
 * scope; NULL on failure. */
WB_API wb_array *wb_gradients_clip_total_norm(wb_gradients *gradients, double limit);

/* Replaces each gradient by fn's result for its path, which has the same sizes; fn is not called
 * for gradients that are NULL. On failure nothing has changed. */
WB_API wb_status wb_gradients_map(wb_leaf_fn *fn, void *user, wb_gradients *gradients);

/* Makes the gradients outlive their scope, until wb_free; returns them. They are computed at once,
 * together with their loss, and lose their recipes. NULL on failure; then the scope still owns
 * them. */
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
    wb_dtype compute;  /* f16, bf16: f32 parameters are cast to it for the loss; default f32 */
    double loss_scale; /* the loss scale at first; usually 32768 with f16; 0: no scaling */
    int64_t loss_scale_interval WB_DEFAULT(2000); /* steps without a skip before it doubles */
    double clip_total_norm;            /* limit for the 2-norm of all gradients together; 0: none */
    wb_path_rule paths[WB_PATH_RULES]; /* rules for parts; the first that matches counts */
    /* several processes train one model (weber/distributed.h): wb_setup sends rank 0's parameters
     * to all ranks, and each step equals a step of one process over the batches of all ranks.
     * States that layers write are combined as with micro-batches (below), but each rank keeps its
     * own hidden states */
    bool distributed;
    wb_dtype send; /* bf16: ranks send f32 gradients as bf16, but add in f32; default f32 */
    int zero;      /* 1: states are divided among the ranks; needs .distributed; default 0 */
    bool may_miss; /* some ranks may lack a parameter's gradient; needs .distributed */
    /* ranks compare their parameters and states at the first step and then every so many steps; 0:
     * only at the first step */
    int64_t compare_every WB_DEFAULT(1000);
    int64_t micro_batches; /* wb_train_step splits each batch into so many; default 1 */
} wb_setup_desc;

/* wb_setup(rule, model) or wb_setup(rule, model, .clip_total_norm = 1). Parts of the model may have
 * their own rules, instead of the main one; here biases have no decay, and the first layer has a
 * smaller rate:
 *
 *     wb_setup(wb_adamw(.lambda = 1e-2), model,
 *              .paths = {{"*.bias", wb_adam()}, {"layers.1", wb_adamw(.eta = 1e-4)}});
 *
 * Mixed precision: with .compute = WB_F16 (or WB_BF16) a loss sees each f32 parameter cast to that
 * type, so that products have f16 operands; parameters and their gradients stay f32, and states of
 * layers keep their type. For a model whose parameters themselves are f16 or bf16 use
 * wb_mixed_precision instead. f16 gradients below 6e-8 become 0. To avoid that, .loss_scale = 32768
 * multiplies the loss by a number on the device before gradients are taken, and divides the
 * gradients by it. A step with a gradient that is not finite is skipped and halves the number (down
 * to 1); after .loss_scale_interval steps in a row that were not skipped it doubles (up to 2^24).
 * wb_train_step and wb_train do this; a loop that needs the gradients calls wb_withgradient_for.
 * Checkpoints have the number.     (Micikevicius and others 2018)
 *
 * Micro-batches: with .micro_batches = k, wb_train_step and wb_train compute a batch as k parts one
 * after another, which needs the memory of a k-th of the batch; the step is the same as for the
 * whole batch. The loss is called for each part, with slices of the batch's arrays: of x, and of y
 * and more if their last size equals x's, whatever that size means (with a batch of 10, an array of
 * 10 class weights is sliced, too: pass such an array through user). Gradients and losses are means
 * over the parts, weighted by the divisors of the parts' losses (wb_divided_by). Arrays that the
 * loss hands out (wb_aux) are those of the last part in which it handed out any.
 *
 * If layers write a state in several parts, a floating state becomes the mean over observations;
 * integers and bools must be the same in all parts (a count of steps, not of observations), or the
 * step fails with an error that names the state. Hidden states (wb_recur) are sliced as the batch
 * is, and each part continues from its own columns. Layers with a cache (wb_cache) are an error.
 * BatchNorm uses the statistics of each part.
 *
 * If k and the number of ranks N are powers of two, the bits of a training depend only on k N, as
 * long as N times the loader's batchsize is the same, whichever rank computes a part. This holds
 * for dropout masks and for training continued from a checkpoint, too; with f16 only if losses do
 * not call wb_divided_by.
 *
 * Missing gradients: with .distributed it is an error if the losses of some ranks do not depend on
 * a parameter, since those ranks would not take part in the sum of its gradients. With .may_miss =
 * true such a rank adds a gradient of zero, and a parameter on which no rank's loss depends is not
 * updated; for this the ranks exchange messages, and wait for them, in each step. It cannot be
 * combined with .micro_batches.
 *
 * ZeRO: with .zero = 1 each of N ranks keeps an N-th of the rule's states and computes that part of
 * the step. The bits are the same as without it (with .clip_total_norm only if .micro_batches is
 * given, too). For rules that are not elementwise (wb_lamb, wb_muon, norms, rules of your own
 * without is_elementwise) each array is on one rank as a whole. Files have the whole states,
 * whatever the number of ranks; all ranks must call wb_save, wb_checkpoint_save, wb_optimiser_get
 * and wb_averaged, but only rank 0 writes. (Rajbhandari and others 2020)
 *
 * A path in .paths that matches no trainable array is an error. Each array has one state: two slots
 * with the same array, or with a transpose of it, are a tie and stay one. The optimiser keeps the
 * model alive. Fails for a negative eta and for a shared model; warns if nothing is trainable.
 * Released by wb_free. If two optimisers train the same parameters in turn, each with its own
 * states, one warning says so: at a step that directly follows a step of the other one, when both
 * have made a step before (in A, B, A at the third step). An optimiser that replaces another one
 * for good (A, A, B, B) gives no warning. */
#define wb_setup(...) WB_MAKE(wb_setup_make, setup, __VA_ARGS__)
WB_API wb_optimiser *wb_setup_make(wb_setup_desc desc);

/* One step: computes gradients, which can still be read afterwards, new parameters, states and loss
 * in one plan. The model's slots get new arrays; an old array that is held elsewhere keeps its
 * value. Parameters without a gradient are not updated; the first step in which no parameter has a
 * gradient gives a warning. If the loss (or the norm, when clipping) is not finite, the step is
 * skipped: parameters, states of the optimiser, and states that layers and the loss write, keep
 * their values, and the step is counted by wb_skipped instead of wb_step_count. On failure nothing
 * has changed. */
WB_API wb_status wb_update(wb_optimiser *optimiser, wb_layer *model, wb_gradients *gradients);

/* wb_withgradient and wb_update in one, when you do not need the gradients: they are not kept,
 * which saves up to as much memory as the parameters have. Returns the loss, computed and owned by
 * the scope; NULL on failure, when nothing has changed. */
WB_API wb_array *wb_train_step(wb_loss_fn *loss, wb_layer *model, const wb_batch *batch, void *user,
                               wb_optimiser *optimiser);

/* The number of steps that were made, and of steps that were skipped because a number was not
 * finite. These counts are on the device, and reading them waits for the work that is queued there;
 * a loop that does not wait otherwise should count by itself. 0 for NULL. */
WB_API int64_t wb_step_count(wb_optimiser *optimiser);
WB_API int64_t wb_skipped(wb_optimiser *optimiser);

/* The present loss scale, a number on the device owned by the scope; NULL if the optimiser has
 * none. */
WB_API wb_array *wb_loss_scale(wb_optimiser *optimiser);

/* Sets the learning rate, or the setting with this name in each row that has it, from the next step
 * on. The value is taken as it is: 0 means 0. States do not change. A new learning rate needs no
 * new plan; any other setting needs one at its first change, a flag at every change. An unknown
 * name is an error that lists the settings. */
WB_API wb_status wb_adjust(wb_optimiser *optimiser, double eta);
WB_API wb_status wb_adjust_named(wb_optimiser *optimiser, const char *setting, double value);

/* The same for the parameters that path matches (as for wb_freeze): rates by layer, no decay for
 * some. Parameters that shared a rule with others get a rule of their own, which needs one new
 * plan. */
WB_API wb_status wb_adjust_path(wb_optimiser *optimiser, const char *path, const char *setting,
                                double value);

/* The present value of the setting, after schedules and wb_adjust. path NULL: in the rule that
 * wb_setup was given, or else in the first rule of .paths that has the setting. With a path: for
 * the first array that it matches (as for wb_freeze) and whose rule has the setting. NaN on
 * failure; an unknown name is an error that lists the settings. */
WB_API double wb_optimiser_setting(wb_optimiser *optimiser, const char *path, const char *setting);

/* The state that the rule keeps for the array at path ("layers.1.weight"), by its name in files: m
 * and v of Adam. The array that wb_optimiser_get returns is owned by the scope, and later steps do
 * not change it. x must have the sizes of the parameter; it is converted to the state's type. An
 * unknown name is an error that lists the names. */
WB_API wb_array *wb_optimiser_get(wb_optimiser *optimiser, const char *path, const char *state);
WB_API wb_status wb_optimiser_set(wb_optimiser *optimiser, const char *path, const char *state,
                                  wb_array *x);

/* A copy of the model whose parameters are the averages that rules keep (wb_ema, wb_schedule_free,
 * or a rule of your own with a state "average"); arrays without an average are copied. The caller
 * releases the copy. Fails if no rule keeps an average. */
WB_API wb_layer *wb_averaged(wb_optimiser *optimiser);

/* Freezes the parameters that path matches: from the next step on neither they nor their states
 * change, and steps do not count for them, until wb_thaw. A path names a parameter or a layer that
 * contains it ("layers.1"); * matches any characters ("*.bias"); NULL: all. Tied arrays freeze
 * together. Statistics of BatchNorm and other states of layers are not parameters, so they still
 * change, unless the layer is in test mode (wb_test_mode). A path that matches nothing is an
 * error. */
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
 * A rule is a plain value, so ps keeps the rule's state. For a loop over the parameters:
 * wb_next_parameter. */

typedef struct wb_parameters wb_parameters;

/* The trainable arrays of a model, which it keeps alive. Released by wb_free. */
WB_API wb_parameters *wb_params(wb_layer *model);

/* The parameters that path matches (as for wb_freeze) are no longer updated: delete!(ps,
 * m[1].bias). */
WB_API wb_status wb_params_delete(wb_parameters *parameters, const char *path);

/* One step of the rule, as wb_update. Its settings may differ from those of the last step; the
 * states stay. A rule with other rows is an error. */
WB_API wb_status wb_update_params(wb_rule rule, wb_parameters *parameters, wb_gradients *gradients);

/* The optimiser that keeps the states, for files and wb_optimiser_get: borrowed; NULL before the
 * first update. */
WB_API wb_optimiser *wb_params_optimiser(wb_parameters *parameters);

#ifdef __cplusplus
}
#endif
#endif
