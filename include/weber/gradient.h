/* weber/gradient.h: derivatives.
 *
 * The recipe of a loss is visible, so a gradient walks it backwards and gives ordinary arrays,
 * which can be differentiated again, to any order.
 *
 *     wb_array *l = wb_sum(wb_square(wb_sub(wb_add(wb_matmul(W, x), b), y)));
 *     wb_array *g[2];
 *     wb_gradient_of(l, 2, (wb_array *[]){W, b}, g);
 *
 * A gradient that does not exist because l does not depend on the array is NULL, without an
 * error. */
#ifndef WEBER_GRADIENT_H
#define WEBER_GRADIENT_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function of arrays. */
typedef wb_array *wb_array_fn(void *context, int count, wb_array *const *arrays);

/* gradients[i] = d loss / d arrays[i], sizes and type of arrays[i], owned by the scope; NULL where
 * loss does not depend on it. loss has one element and a floating type. Fails if a wanted array got
 * no gradient, and the walk met an array that may have been made of it but lost its recipe when a
 * scope was closed; the error names that array, and all gradients are NULL. */
WB_API wb_status wb_gradient_of(wb_array *loss, int count, wb_array *const *arrays,
                                wb_array **gradients);

/* The same with a cotangent of result's sizes instead of 1: the vector-Jacobian product. */
WB_API wb_status wb_pullback(wb_array *result, wb_array *cotangent, int count,
                             wb_array *const *arrays, wb_array **gradients);

/* Compares the gradient of a random projection of fn at arrays (f64) with central differences, and,
 * for order 2, the gradient of a projection of that gradient too. WB_OK if all agree within
 * tolerance (relative to the largest component; 0: 1e-6); else WB_ERROR_GRADIENT with the first
 * place that differs in the message, WB_ERROR_NUMBER where one of the two is not finite. */
WB_API wb_status wb_gradient_check(wb_array_fn *fn, void *context, int count,
                                   wb_array *const *arrays, int order, double tolerance);

/* ---- further derivatives ----
 *
 * They differentiate, and fail, as wb_gradient_of does. Where nothing depends on an array the
 * result is zeros. Results belong to the scope, and are recipes that can be differentiated
 * again. */

/* J v, the change of y where the arrays change by the tangents: sum over i of dy / d arrays[i]
 * times tangents[i], of y's sizes. Forward mode, by walking backwards twice (Townsend 2017): the
 * cotangent of the arrays is linear in the cotangent of y, and its derivative along the tangents is
 * J v. It costs about two walks; y is not computed again. y and the arrays have floating types;
 * tangents[i] has the sizes of arrays[i]. */
WB_API wb_array *wb_jvp(wb_array *y, int count, wb_array *const *arrays, wb_array *const *tangents);

/* J (count(y), count(x)): element (k, i) is d y_k / d x_i, elements counted in memory's order,
 * first dimension fastest. Rows are vector-Jacobian products, or, where x has fewer elements than
 * y, columns are Jacobian-vector products: min(count(x), count(y)) of them, as the steps of a scan
 * (weber/scan.h), so that the plan does not grow with their number. */
WB_API wb_array *wb_jacobian(wb_array *y, wb_array *x);

/* H (n, n) of a loss of one element: element (i, k) is d^2 loss / d x_i d x_k. The Jacobian of the
 * gradient: n products of wb_hvp. */
WB_API wb_array *wb_hessian(wb_array *loss, wb_array *x);

/* The diagonal of H, in x's sizes. It takes as many products; H itself is never in memory. */
WB_API wb_array *wb_hessian_diagonal(wb_array *loss, wb_array *x);

/* H v: products[i] = sum over k of d^2 loss / d arrays[i] d arrays[k] times vectors[k], of the
 * sizes of arrays[i], as vectors[i] is: the gradient of <gradient, v> (Pearlmutter 1994; reverse
 * over reverse). On failure all are NULL. */
WB_API wb_status wb_hvp(wb_array *loss, int count, wb_array *const *arrays,
                        wb_array *const *vectors, wb_array **products);

/* Gradients for each observation alone: gradients[i] (sizes of arrays[i]..., N), where inputs[k]
 * (..., N) have N observations in their last dimension. loss(context, ninputs, inputs) is called
 * once, with inputs of one observation, (..., 1), as the body of a scan (weber/scan.h says what is
 * not allowed there), and gives one number; layers in it are in training mode. arrays are the
 * arrays from outside that it uses: wb_get(model, "layers.1.weight"). An array of 8 dimensions is
 * an error, since there is no room for N; so is a layer that writes a state, as BatchNorm does in
 * training: its result for one observation depends on the others.
 *
 *     wb_gradient_each(loss, model, 2, (wb_array *[]){x, y}, 1, &weight, &each);
 *     wb_array *norms = wb_norm_dims(each, 2, 0, 1);      // of differentially private training */
WB_API wb_status wb_gradient_each(wb_array_fn *loss, void *context, int ninputs,
                                  wb_array *const *inputs, int count, wb_array *const *arrays,
                                  wb_array **gradients);

/* ---- memory for time ---- */

/* fn(context, count, arrays), with its intermediate arrays computed again for the gradient instead
 * of kept: until the backward pass reaches fn, only its arguments and its result are in memory. A
 * chain of n layers in sqrt(n) such parts needs memory for about 2 sqrt(n) of its n results, at the
 * price of one more forward pass (Chen and others 2016; checkpoint in PyTorch, checkpointed in
 * Zygote, remat in JAX).
 *
 *     static wb_array *block(void *layer, int count, wb_array *const *x) {
 *         return wb_apply(layer, x[0]);
 *     }
 *     for (int i = 0; i < 48; i += 6) x = wb_recompute(block, parts[i / 6], 1, &x);
 *
 * fn is called once; its recipe is repeated. So random arrays are the same again, states (running
 * statistics) are written once, and the gradients are the same as without it: to the bit on the CPU
 * where both plans fuse alike, elsewhere as "the same bits" in weber/device.h says. Arrays from
 * outside that fn uses without being given them, such as parameters, get gradients, too, of any
 * order. Works inside the body of a scan, whose steps are then computed again one by one.
 *
 * Arrays that fn makes are released when it returns, except its result and those that it kept.
 * Fails if fn fails, or gives NULL. */
WB_API wb_array *wb_recompute(wb_array_fn *fn, void *context, int count, wb_array *const *arrays);

/* ---- derivatives of your own ---- */

/* cotangents[i], of the type and sizes of arrays[i], for a cotangent of the result: the
 * derivative's transpose applied to it. They are NULLs at first; NULL stands for zeros. A status
 * other than WB_OK fails the gradient. */
typedef wb_status wb_pullback_fn(void *context, wb_array *result, wb_array *cotangent, int count,
                                 wb_array *const *arrays, wb_array **cotangents);

typedef struct wb_function_desc {
    WB_START_MEMBER;
    const char *name;               /* in messages; default "function"; must stay */
    wb_array_fn *value;             /* required */
    wb_pullback_fn *pullback;       /* required */
    void *context;                  /* given to both */
    void (*release)(void *context); /* when no recipe has the function any more; default: nothing */
} wb_function_desc;

/* value(context, count, arrays). Its derivative in arrays is what pullback gives, not the
 * derivative of what value is made of. Both work with arrays and are called at once: value here,
 * pullback when a gradient is taken. What pullback makes is an ordinary recipe: its derivative is
 * the second derivative. Arrays that value takes from elsewhere get no gradient. (rrule of
 * ChainRules, custom_vjp of JAX)
 *
 *     wb_array *y = wb_function(1, &x, .value = solve, .pullback = solve_pullback);
 *
 * Fails, naming function and array, if a cotangent has other sizes or another type than its
 * array. */
#define wb_function(count, arrays, ...)                                                            \
    WB_QUIET_(wb_function_make(count, arrays, WB_GIVEN_(function, __VA_ARGS__)))
WB_API wb_array *wb_function_make(int count, wb_array *const *arrays, wb_function_desc desc);

/* The same in C, on memory of the host: arrays[i] are the numbers of the arrays, dense, first
 * dimension fastest, each in its own type; result is written. */
typedef wb_status wb_host_fn(void *context, int count, const void *const *arrays, void *result);
/* cotangent has the type and sizes of the result; cotangents[i] has those of arrays[i] and begins
 * as zeros, or is NULL if it is not wanted. */
typedef wb_status wb_host_pullback_fn(void *context, int count, const void *const *arrays,
                                      const void *result, const void *cotangent,
                                      void *const *cotangents);

typedef struct wb_host_function_desc {
    WB_START_MEMBER;
    const char *name;               /* in messages; default "host_function"; must stay */
    wb_host_fn *value;              /* required */
    wb_host_pullback_fn *pullback;  /* default: no gradient flows through */
    void *context;                  /* given to both */
    void (*release)(void *context); /* when no recipe has the function any more; default: nothing */
    int ndim;                       /* of the result */
    int64_t sizes[WB_MAX_DIMS];
    wb_dtype dtype; /* of the result; default f32 */
} wb_host_function_desc;

/* The result is data: value is called at once, and pullback when a gradient is taken; first the
 * arrays that they read are computed. A step with such a function is therefore several plans, and
 * waits for the device each time. The result is on the device of the first array that is on one.
 * Inside the body of a scan such a function is an error; so is a second derivative, or a forward
 * one (wb_jvp), which the function does not give.
 *
 *     wb_host_function(1, &x, .value = f, .pullback = f_pullback, .ndim = 1, .sizes = {3}) */
#define wb_host_function(count, arrays, ...)                                                       \
    WB_QUIET_(wb_host_function_make(count, arrays, WB_GIVEN_(host_function, __VA_ARGS__)))
WB_API wb_array *wb_host_function_make(int count, wb_array *const *arrays,
                                       wb_host_function_desc desc);

/* The value y with the gradient of x, which has the same sizes, so that gradients skip an operation
 * that rounds or samples (Bengio, Leonard and Courville 2013): wb_straight_through(wb_round(x),
 * x). */
WB_API wb_array *wb_straight_through(wb_array *y, wb_array *x);

/* Returns what the cotangent becomes; to only look at it, returns the same array. */
typedef wb_array *wb_hook_fn(void *context, wb_array *cotangent);

/* x, with its cotangent passed through fn: x gets fn(context, cotangent), of the same sizes and
 * type. Called when a gradient is taken; to see numbers, keep the array and read it afterwards. */
WB_API wb_array *wb_hook(wb_array *x, wb_hook_fn *fn, void *context);

#ifdef __cplusplus
}
#endif
#endif
