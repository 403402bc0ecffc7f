/* weber/parameters.h: a model's parameters as one vector, as arrays of your own, in another type.
 *
 * A layer holds its parameters. Methods that treat a model as a function of its parameters (Lux's
 * style, solvers, networks that make the weights of other networks) take the parameters out and
 * apply the model with others:
 *
 *     wb_array *flat = wb_destructure(model);                 // all parameters, one after another
 *     wb_array *l = loss_of(wb_apply_with(model, flat, x));   // the model's own are not used
 *     wb_gradient_of(l, 1, &flat, &g);                        // g has the sizes of flat
 *
 * Parameters are the trainable arrays of floating types, in the order of wb_next_parameter. An
 * array that is in two places, or with its transpose in another, is one parameter. NULL in, NULL
 * out. Errors: weber/error.h. */
#ifndef WEBER_PARAMETERS_H
#define WEBER_PARAMETERS_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All parameters as one vector, in the promoted type, each in memory order. It is a recipe made of
 * the model's arrays, so gradients flow through it to them. f32 (0) for a model without parameters.
 * (Flux's destructure; its `re` are the functions below.) */
WB_API wb_array *wb_destructure(wb_layer *model);

/* A new model like this one, whose parameters are the parts of flat, computed, in the types of the
 * old ones. Fails, naming both lengths, unless flat is a vector with as many numbers as the
 * parameters have. Gradients of the new model do not reach flat: for that see wb_apply_with. */
WB_API wb_layer *wb_rebuild(wb_layer *model, wb_array *flat);

/* wb_apply(model, x) with the parts of flat instead of the model's parameters. Gradients of any
 * order reach flat; a parameter in several places adds up its gradients. The model's states are
 * read and written as usual. Fails as wb_rebuild and wb_apply do. */
WB_API wb_array *wb_apply_with(wb_layer *model, wb_array *flat, wb_array *x);

/* A function of a model, for wb_call_with. */
typedef wb_array *wb_model_fn(void *context, wb_layer *model);

/* fn(context, model) with arrays[i] instead of parameter i (Lux: model(x, ps, st) with ps as a
 * list). Each has the sizes of its parameter, and is converted to the parameter's type. A parameter
 * that fn changes with wb_set keeps the value that was set. Fails, naming path and sizes, if an
 * array does not fit, and if fn fails. */
WB_API wb_array *wb_call_with(wb_layer *model, int count, wb_array *const *arrays, wb_model_fn *fn,
                              void *context);

/* ---- parameters and states apart from the model ----
 *
 * Trees (wb_tree) with the paths of the model: ps has its parameters, st all other arrays, such as
 * running statistics. They are models themselves: an optimiser trains ps, wb_save saves them,
 * wb_get(ps, "layers.1.weight") returns an array. The model then serves as a pure function, as in
 * Lux, y, st = model(x, ps, st):
 *
 *     wb_layer *ps = wb_parameter_tree(model), *st = wb_state_tree(model), *next;
 *     wb_optimiser *adam = wb_setup(wb_adam(), ps);           // the loss is a function of ps
 *     wb_array *y = wb_apply_tree(model, x, ps, st, &next);   // in the loss
 *     wb_free(st), st = next;                                 // after the step
 *
 * Arrays are shared with the model until one of them changes. */
WB_API wb_layer *wb_parameter_tree(wb_layer *model);
WB_API wb_layer *wb_state_tree(wb_layer *model);

/* wb_apply(model, x) with the arrays of ps and st instead of the model's own. *next gets a new tree
 * with the states after the call, which is the caller's; if next is NULL, these states are dropped.
 * Gradients reach the arrays of ps. Hidden states (wb_recur, wb_cache) are reset in each call and
 * are not in the trees; random numbers come from the thread's sequence. Fails as wb_apply does,
 * and, naming path and sizes, if a tree lacks an array of the model or has other sizes; then *next
 * is NULL. */
WB_API wb_array *wb_apply_tree(wb_layer *model, wb_array *x, wb_layer *ps, wb_layer *st,
                               wb_layer **next);

/* ---- another type ---- */

/* A new model with all floating arrays, states included, in another type. With f16 and bf16 the
 * arrays of BatchNorm, InstanceNorm and GroupNorm become f32, the type in which these layers
 * compute (Flux since 0.16.11). */
#define wb_model_as(model, dtype) wb_model_as(model, WB_DTYPE(dtype))
WB_API wb_layer *(wb_model_as)(wb_layer *model, wb_dtype dtype);
#define wb_f16(model)  wb_model_as(model, WB_F16)
#define wb_bf16(model) wb_model_as(model, WB_BF16)
#define wb_f32(model)  wb_model_as(model, WB_F32)
#define wb_f64(model)  wb_model_as(model, WB_F64)

#ifdef __cplusplus
}
#endif
#endif
