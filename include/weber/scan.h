/* weber/scan.h: a loop over the steps of a sequence, as one operation.
 *
 * A body is a C function from the carries of a step and one slice of each input to the next carries
 * and the step's outputs. wb_scan calls it once, with arrays that have sizes but no numbers yet;
 * what it does with them is then run for every step, by one plan, whatever the number of steps.
 *
 *     static void step(void *context, wb_array **carries, wb_array *const *inputs,
 *                      wb_array **outputs) {
 *         wb_array **w = context; // arrays of outside can be used, and get gradients
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

/* One step. carries holds this step's and is given the next ones, of the same sizes and types;
 * inputs holds a slice of each input, without the dimension of the steps; outputs (NULLs) is given
 * this step's outputs. Arrays leave the body only in this way. The function is called once for all
 * steps, so what it does in C happens once. Reading a value, evaluating, wb_keep, wb_set, wb_seed,
 * a step of training, a move between devices, and a scope that is opened and not closed, are errors
 * inside it. A function that fails leaves NULL. An output has at most 7 dimensions, and so has a
 * carry if its gradient is taken.
 *
 * Arrays made outside may be used; they are the same in every step. Random arrays are redrawn in
 * each step, with the bits that a loop in C would draw. */
typedef void wb_scan_fn(void *context, wb_array **carries, wb_array *const *inputs,
                        wb_array **outputs);

/* Settings of wb_scan; zero means default. */
typedef struct wb_scan_desc {
    WB_START_MEMBER;
    /* how many; default (-1): the inputs' size. Required if there are no inputs */
    int64_t steps WB_DEFAULT(-1);
    /* The dimension of the steps, of inputs and outputs; negative: from the end. Any but the last
     * is moved there first, which copies the input. */
    int64_t dim WB_DEFAULT(-1);
    bool reverse; /* from the last slice to the first; outputs stay beside their inputs */
} wb_scan_desc;

/* carries, outputs = body applied for each step, in order:
 *
 *     for t = 0 .. steps - 1: carries, outputs[..][t] = body(carries, inputs[..][t])
 *
 * inputs[k] (..., steps); outputs[j] (..., steps), owned by the scope. carries holds the first
 * carries on entry, and the carries after the last step on return. With 0 steps carries stay and
 * outputs are empty.
 *
 * A product W x of an array from outside and a slice of an input is computed before the loop, for
 * all steps at once; its result, with a column for each step, is in memory during the loop.
 *
 * The derivative, of any order, is a scan in the other direction. Memory that it wants beyond the
 * inputs and outputs, for each step: the carries, as they were before it, and what the derivative
 * of the body reads of it, less views and elementwise results of something that is there anyway.
 * (For an LSTM of n cells and batch b: some 8 n b numbers a step.) Gradients of arrays of outside
 * that the body multiplies or adds are one product or sum after the loop, for which one factor is
 * kept for each step; other gradients are added up step by step.
 *
 * Fails, naming the carry, output or input and the sizes, if a carry changes its size or type,
 * inputs have different numbers of steps, something is NULL or on another device; then all carries
 * and outputs are NULL. Settings come last: wb_scan(step, w, 1, h, 1, &x, 1, y, .dim = 1). */
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
