/* The sizes of a model's results, without computing them. */
#include <string.h>

#include "array/state.h"
#include "array/thread.h"
#include "layers/layer.h"

static const wb_shape none = {.ndim = -1};

/* An array of these sizes; its values are never computed. NULL with the error recorded. */
static wb_array *stand_in(const int64_t *given, bool pad_batch, wb_dtype dtype) {
    int64_t sizes[WB_MAX_DIMS];
    int n = 0;
    for (; n < WB_MAX_DIMS && given[n] != 0; n++) {
        sizes[n] = given[n];
        if (given[n] < 0)
            return wb_fail_null(WB_ERROR_ARGUMENT,
                                "wb_outputsize: sizes must be positive, got %lld",
                                (long long)given[n]);
    }
    if (pad_batch && n == WB_MAX_DIMS)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "wb_outputsize: pad_batch adds a dimension, so an input may have at "
                            "most %d, got %s",
                            WB_MAX_DIMS - 1, wb_sizes_text(n, sizes));
    if (pad_batch) sizes[n++] = 1;
    return wb_full_make(dtype, 0, n, sizes);
}

static int make_inputs(const wb_outputsize_desc *d, wb_array **inputs) {
    int count = 0;
    while (count < WB_MOST_ARRAYS && d->inputs[count][0] != 0) {
        inputs[count] = stand_in(d->inputs[count], d->pad_batch, d->dtype);
        if (!inputs[count++]) return 0;
    }
    if (count == 0)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_outputsize: the sizes of the input are missing");
    return count;
}

static wb_shape shape_of(wb_layer *model, const wb_outputsize_desc *d, wb_inputs_fn *tell,
                         void *user) {
    wb_array *inputs[WB_MOST_ARRAYS], *y[1];
    const int count = make_inputs(d, inputs);
    if (count && tell) tell(user, count, inputs);
    if (!count || !wb_apply_many(model, count, inputs, 1, y)) return none;
    wb_shape shape = {.ndim = y[0]->ndim};
    memcpy(shape.sizes, y[0]->sizes, (size_t)y[0]->ndim * sizeof *shape.sizes);
    return shape;
}

/* What the layers write and draw meanwhile is taken back. */
wb_shape wb_size_of_output(wb_layer *model, const wb_outputsize_desc *desc, bool keep_counter,
                           wb_inputs_fn *tell, void *user) {
    wb_thread *thread = wb_thread_get();
    if (!wb_check_model("wb_outputsize", model) || !thread || !wb_scope_begin()) return none;
    const uint64_t counter = thread->counter;
    const bool is_inner = thread->is_sizing;
    const int64_t states = wb_state_begin();
    thread->is_sizing = true;
    const wb_shape shape = shape_of(model, desc, tell, user);
    thread->is_sizing = is_inner;
    wb_state_end(states, false);
    if (!keep_counter) thread->counter = counter;
    return wb_scope_leave() == WB_OK ? shape : none;
}

wb_shape wb_outputsize_make(wb_layer *model, wb_outputsize_desc desc) {
    return wb_size_of_output(model, &desc, false, NULL, NULL);
}
