/* weber/gradient.h: derivatives.
 *
 * A gradient is computed from the recipe of the loss, walked backwards. It consists of ordinary
 * arrays, which can be differentiated again, to any order.
 *
 *     wb_array *l = wb_sum(wb_square(wb_sub(wb_add(wb_matmul(W, x), b), y)));
 *     wb_array *g[2];
 *     wb_gradient_of(l, 2, (wb_array *[]){W, b}, g);
 *
 * If l does not depend on an array, its gradient is NULL, without an error. */
#ifndef WEBER_GRADIENT_H
#define WEBER_GRADIENT_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function of arrays. */
typedef wb_array *wb_array_fn(void *context, int count, wb_array *const *arrays);

/* gradients[i] = d loss / d arrays[i], with the sizes and type of arrays[i], owned by the scope;
 * NULL where loss does not depend on it. loss has one element and a floating type. Fails if
 * arrays[i] got no gradient, and loss depends on an array that may have been computed from it but
 * lost its recipe when a scope closed; the error names that array, and all gradients are NULL. */
WB_API wb_status wb_gradient_of(wb_array *loss, int count, wb_array *const *arrays,
                                wb_array **gradients);

/* The same for a result of any sizes, with a cotangent of the same sizes: the vector-Jacobian
 * product. */
WB_API wb_status wb_pullback(wb_array *result, wb_array *cotangent, int count,
                             wb_array *const *arrays, wb_array **gradients);

/* Compares the gradient of a random projection of fn at arrays (f64) with central differences, and,
 * for order 2, the gradient of a projection of that gradient too. WB_OK if all agree within
 * tolerance (relative to the largest component; 0: 1e-6); else WB_ERROR_GRADIENT, with the first
 * element that differs in the message, or WB_ERROR_NUMBER if one of the two is not finite. */
WB_API wb_status wb_gradient_check(wb_array_fn *fn, void *context, int count,
                                   wb_array *const *arrays, int order, double tolerance);

/* ---- further derivatives ----
 *
 * These functions differentiate, and fail, as wb_gradient_of does, except that results are zeros
 * for an array on which nothing depends. Results belong to the scope, and are recipes that can be
 * differentiated again. */

/* J v, the derivative of y in the direction of the tangents: sum over i of dy / d arrays[i] times
 * tangents[i], of y's sizes. Forward mode by two backward passes (Townsend 2017): the cotangent of
 * the arrays is linear in the cotangent of y, and its derivative along the tangents is J v. It
 * costs about two backward passes; y is not computed again. y and the arrays have floating types;
 * tangents[i] has the sizes of arrays[i]. */
WB_API wb_array *wb_jvp(wb_array *y, int count, wb_array *const *arrays, wb_array *const *tangents);

/* J (count(y), count(x)): element (k, i) is d y_k / d x_i, where elements are counted in memory
 * order, first dimension fastest. Its rows are computed as vector-Jacobian products or, if x has
 * fewer elements than y, its columns as Jacobian-vector products. These are the steps of a scan
 * (weber/scan.h), so the plan does not grow with their number. */
WB_API wb_array *wb_jacobian(wb_array *y, wb_array *x);

/* The Hessian H (n, n) of a loss of one element: element (i, k) is d^2 loss / d x_i d x_k. Computed
 * as the Jacobian of the gradient, with n products as in wb_hvp. */
WB_API wb_array *wb_hessian(wb_array *loss, wb_array *x);

/* The diagonal of H, with x's sizes. It takes n products, too, but H itself is never in memory. */
WB_API wb_array *wb_hessian_diagonal(wb_array *loss, wb_array *x);

/* H v: products[i] = sum over k of d^2 loss / d arrays[i] d arrays[k] times vectors[k], where
 * products[i] and vectors[i] have the sizes of arrays[i]: the gradient of the inner product
 * <gradient, v> (Pearlmutter 1994; reverse over reverse). On failure all products are NULL. */
WB_API wb_status wb_hvp(wb_array *loss, int count, wb_array *const *arrays,
                        wb_array *const *vectors, wb_array **products);

/* The gradients of each observation by itself: gradients[i] (sizes of arrays[i]..., N), where
 * inputs[k] (..., N) have N observations in their last dimension. loss(context, ninputs, inputs) is
 * called once, with inputs of one observation, (..., 1), as the body of a scan (weber/scan.h says
 * what is not allowed there), and returns one number; layers in it are in training mode. arrays are
 * arrays from outside that loss uses: wb_get(model, "layers.1.weight"). An array of 8 dimensions is
 * an error, since a dimension for N would be the ninth; so is a layer that writes a state, as
 * BatchNorm does in training: its result for one observation depends on the others.
 *
 *     wb_gradient_each(loss, model, 2, (wb_array *[]){x, y}, 1, &weight, &each);
 *     wb_array *norms = wb_norm_dims(each, 2, 0, 1);      // for differentially private training */
WB_API wb_status wb_gradient_each(wb_array_fn *loss, void *context, int ninputs,
                                  wb_array *const *inputs, int count, wb_array *const *arrays,
                                  wb_array **gradients);

/* ---- memory for time ---- */

/* fn(context, count, arrays), with its intermediate arrays computed again for the gradient instead
 * of kept: until the backward pass reaches fn, only its arguments and its result are in memory. A
 * chain of n layers, split into sqrt(n) such parts, needs memory for about 2 sqrt(n) instead of n
 * results, and one more forward pass (Chen and others 2016; checkpoint in PyTorch, checkpointed in
 * Zygote, remat in JAX).
 *
 *     static wb_array *block(void *layer, int count, wb_array *const *x) {
 *         return wb_apply(layer, x[0]);
 *     }
 *     for (int i = 0; i < 48; i += 6) x = wb_recompute(block, parts[i / 6], 1, &x);
 *
 * fn is called once; its recipe is used twice. So random arrays have the same numbers again, states
 * (running statistics) are written once, and gradients are the same as without wb_recompute: bit by
 * bit on the CPU if both plans fuse operations in the same way, on other devices as far as "the
 * same bits" in weber/device.h says. Arrays from outside that fn uses, such as parameters, get
 * gradients of any order, too. Works inside the body of a scan, whose steps are then computed again
 * one by one.
 *
 * Arrays that fn makes are released when it returns, except its result and those that it kept.
 * Fails if fn fails or returns NULL. */
WB_API wb_array *wb_recompute(wb_array_fn *fn, void *context, int count, wb_array *const *arrays);

/* ---- derivatives of your own ---- */

/* Computes cotangents[i], with the type and sizes of arrays[i], from the cotangent of the result:
 * the transposed Jacobian times the cotangent. They are NULL at first, which means zeros. A status
 * other than WB_OK fails the gradient. */
typedef wb_status wb_pullback_fn(void *context, wb_array *result, wb_array *cotangent, int count,
                                 wb_array *const *arrays, wb_array **cotangents);

typedef struct wb_function_desc {
    WB_START_MEMBER;
    const char *name;               /* in messages; default "function"; must stay valid */
    wb_array_fn *value;             /* required */
    wb_pullback_fn *pullback;       /* required */
    void *context;                  /* given to both */
    void (*release)(void *context); /* called when no recipe has the function any more */
} wb_function_desc;

/* Returns value(context, count, arrays), with the derivative that pullback computes, instead of the
 * derivative of value's operations. Both functions work with arrays; value is called at once,
 * pullback when a gradient is taken. The results of pullback are ordinary recipes, whose derivative
 * is the second derivative. Arrays that value uses but that are not among arrays get no gradient.
 * (rrule of ChainRules, custom_vjp of JAX)
 *
 *     wb_array *y = wb_function(1, &x, .value = solve, .pullback = solve_pullback);
 *
 * Fails, naming function and array, if a cotangent has other sizes or another type than its
 * array. */
#define wb_function(count, arrays, ...)                                                            \
    WB_QUIET_(wb_function_make(count, arrays, WB_GIVEN_(function, __VA_ARGS__)))
WB_API wb_array *wb_function_make(int count, wb_array *const *arrays, wb_function_desc desc);

/* The same as C code on host memory: arrays[i] points to the numbers of array i, dense, first
 * dimension fastest, in the array's type; the function writes result. */
typedef wb_status wb_host_fn(void *context, int count, const void *const *arrays, void *result);
/* cotangent has the type and sizes of the result; cotangents[i] has those of arrays[i] and is zeros
 * at first, or is NULL if it is not needed. */
typedef wb_status wb_host_pullback_fn(void *context, int count, const void *const *arrays,
                                      const void *result, const void *cotangent,
                                      void *const *cotangents);

typedef struct wb_host_function_desc {
    WB_START_MEMBER;
    const char *name;               /* in messages; default "host_function"; must stay valid */
    wb_host_fn *value;              /* required */
    wb_host_pullback_fn *pullback;  /* default: there is no gradient */
    void *context;                  /* given to both */
    void (*release)(void *context); /* called when no recipe has the function any more */
    int ndim;                       /* of the result */
    int64_t sizes[WB_MAX_DIMS];
    wb_dtype dtype; /* of the result; default f32 */
} wb_host_function_desc;

/* The result is data, not a recipe: value is called at once, and pullback when a gradient is taken;
 * the arrays that they read are computed before. So a step with such a function takes several
 * plans, and waits for the device each time. The result is on the device of the first array that is
 * on one. A host function in the body of a scan is an error; so are second derivatives and forward
 * mode (wb_jvp) through it.
 *
 *     wb_host_function(1, &x, .value = f, .pullback = f_pullback, .ndim = 1, .sizes = {3}) */
#define wb_host_function(count, arrays, ...)                                                       \
    WB_QUIET_(wb_host_function_make(count, arrays, WB_GIVEN_(host_function, __VA_ARGS__)))
WB_API wb_array *wb_host_function_make(int count, wb_array *const *arrays,
                                       wb_host_function_desc desc);

/* An array with the value of y whose gradient goes to x, which has the same sizes: gradients then
 * skip an operation that rounds or samples (Bengio, Leonard and Courville 2013):
 * wb_straight_through(wb_round(x), x). */
WB_API wb_array *wb_straight_through(wb_array *y, wb_array *x);

/* Returns the new cotangent; a function that only looks at it returns the same array. */
typedef wb_array *wb_hook_fn(void *context, wb_array *cotangent);

/* Returns x; gradients that flow back through the result reach x as fn(context, cotangent), with
 * the same sizes and type. fn is called when a gradient is taken; to see numbers, keep the
 * cotangent and read it afterwards. */
WB_API wb_array *wb_hook(wb_array *x, wb_hook_fn *fn, void *context);

#ifdef __cplusplus
}
#endif
#endif
