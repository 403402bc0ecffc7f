/* weber/scan.h: a loop over the steps of a sequence, as one operation.
 *
 * The body is a C function that computes the next carries and the step's outputs from the carries
 * and one slice of each input; the carries are what a step hands to the next one. wb_scan calls the
 * body once, with arrays that have sizes but no numbers yet. The operations that it makes are then
 * run for every step, by one plan, whatever the number of steps.
 *
 *     static void step(void *context, wb_array **carries, wb_array *const *inputs,
 *                      wb_array **outputs) {
 *         wb_array **w = context; // arrays from outside may be used, and get gradients
 *         carries[0] = wb_tanh(wb_add(wb_matmul(w[0], inputs[0]), wb_matmul(w[1], carries[0])));
 *         outputs[0] = carries[0];
 *     }
 *
 *     wb_array *h[] = {wb_zeros(WB_F32, 8, 32)}, *y[1]; // (features, batch)
 *     wb_scan(step, w, 1, h, 1, &x, 1, y);              // x (3, 32, 400) gives y (8, 32, 400)
 *     wb_array *loss = wb_mean(wb_square(wb_sub(h[0], target)));
 *
 * h[0] is now the carry after the last step. */
#ifndef WEBER_SCAN_H
#define WEBER_SCAN_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step. carries has the carries of this step; the function replaces them by the next ones, of
 * the same sizes and types. inputs has a slice of each input, without the dimension of the steps.
 * The function writes this step's outputs into outputs, which are NULL at first. Arrays leave the
 * body only through carries and outputs. The function is called once for all steps, so its C code
 * runs once. Inside it these are errors: reading a value, evaluating, wb_keep, wb_set, wb_seed, a
 * training step, a move between devices, a scope that is opened and not closed. A function that
 * fails sets a carry or an output to NULL. An output has at most 7 dimensions, and so has a carry
 * if its gradient is taken.
 *
 * Arrays made outside may be used; they are the same in every step. Random arrays are drawn again
 * in each step, with the same bits as in a loop in C. */
typedef void wb_scan_fn(void *context, wb_array **carries, wb_array *const *inputs,
                        wb_array **outputs);

/* Settings of wb_scan; zero means default. */
typedef struct wb_scan_desc {
    WB_START_MEMBER;
    /* number of steps; default (-1): the inputs' size. Required if there are no inputs */
    int64_t steps WB_DEFAULT(-1);
    /* The dimension of the steps in inputs and outputs; negative: from the end. If it is not the
     * last one, each input is first permuted so that it is, which copies the input. */
    int64_t dim WB_DEFAULT(-1);
    bool reverse; /* from the last slice to the first; output t still belongs to input t */
} wb_scan_desc;

/* carries, outputs = body applied for each step, in order:
 *
 *     for t = 0 .. steps - 1: carries, outputs[..][t] = body(carries, inputs[..][t])
 *
 * inputs[k] (..., steps); outputs[j] (..., steps), owned by the scope. carries has the first
 * carries on entry, and the carries after the last step on return. With 0 steps the carries do not
 * change and the outputs are empty.
 *
 * A product W x of an array from outside and a slice of an input is computed before the loop, for
 * all steps at once; its result, with a column for each step, is in memory during the loop.
 *
 * The derivative, of any order, is a scan in the other direction. Besides inputs and outputs it
 * needs this in memory for each step: the carries before the step, and the body's intermediate
 * arrays that the body's derivative reads, except views and elementwise results that can be
 * computed again from arrays that are kept. (For an LSTM of n cells and batch size b: about 8 n b
 * numbers a step.) The gradient of an array from outside that the body multiplies or adds is one
 * product or sum after the loop, for which one factor is kept for each step; other gradients are
 * added up step by step.
 *
 * Fails, naming the carry, output or input and the sizes, if a carry changes its size or type,
 * inputs have different numbers of steps, or an array is NULL or on another device; then all
 * carries and outputs are NULL. Settings come last: wb_scan(step, w, 1, h, 1, &x, 1, y, .dim =
 * 1). */
#define wb_scan(...) WB_WITH_SCAN(__VA_ARGS__, WB_NO_MORE)
#define WB_WITH_SCAN(body, context, ncarries, carries, ninputs, inputs, noutputs, outputs, ...)    \
    WB_QUIET_(wb_scan_make(body, context, ncarries, carries, ninputs, inputs, noutputs, outputs,   \
                           WB_GIVEN_(scan, __VA_ARGS__)))
WB_API wb_status wb_scan_make(wb_scan_fn *body, void *context, int ncarries, wb_array **carries,
                              int ninputs, wb_array *const *inputs, int noutputs,
                              wb_array **outputs, wb_scan_desc desc);

#ifdef __cplusplus
}
#endif
#endif
