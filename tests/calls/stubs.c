/* Functions of the caller that generated calls hand over: the simplest of their kind. */
#include <string.h>

#include "calls/calls.h"

wb_array *wb_activation_stub(wb_array *x) { return wb_tanh(x); }

wb_array *wb_array_fn_stub(void *context, int count, wb_array *const *arrays) {
    (void)context;
    return count > 0 ? wb_sum(wb_mul(arrays[0], arrays[count - 1])) : NULL;
}

int wb_arrays_fn_stub(void *context, int count, wb_array *const *inputs, wb_array **results) {
    (void)context;
    for (int i = 0; i < count; i++) results[i] = wb_tanh(inputs[count - 1 - i]);
    return count;
}

wb_status wb_collate_fn_stub(wb_batch *batch, wb_array *const *const *lists, void *user) {
    (void)user;
    batch->x = lists[0] ? wb_stack_make(-1, (int)batch->size, lists[0]) : NULL;
    return batch->x ? WB_OK : WB_ERROR_SHAPE;
}

wb_array *wb_connection_stub(int count, wb_array *const *arrays) {
    return count > 0 ? wb_mul(arrays[0], arrays[count - 1]) : NULL;
}

wb_status wb_getobs_fn_stub(const wb_observation *observation, void *user) {
    (void)user;
    for (int i = 0; i < observation->count; i++)
        memset(observation->data[i], (int)observation->place, 1);
    return observation->place == 37 ? WB_ERROR_IO : WB_OK;
}

wb_array *wb_hook_fn_stub(void *context, wb_array *cotangent) {
    return (void)context, wb_mul_number(cotangent, .5);
}

wb_status wb_host_fn_stub(void *context, int count, const void *const *arrays, void *result) {
    (void)context, (void)count, (void)arrays;
    memset(result, 0, 1);
    return WB_OK;
}

wb_status wb_host_pullback_fn_stub(void *context, int count, const void *const *arrays,
                                   const void *result, const void *cotangent,
                                   void *const *cotangents) {
    (void)context, (void)count, (void)arrays, (void)result, (void)cotangent, (void)cotangents;
    return WB_OK;
}

wb_array *wb_init_stub(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return wb_full_make(dtype, .5, ndim, sizes);
}

bool wb_keep_fn_stub(void *user, int64_t place, wb_array *observation) {
    return (void)user, (void)observation, place % 2 == 0;
}

bool wb_layer_filter_stub(void *user, const wb_load_layer *layer) {
    return (void)user, layer->type && strcmp(layer->type, "Dropout") != 0;
}

wb_array *wb_leaf_fn_stub(void *user, const char *path, wb_array *x) {
    return (void)user, strstr(path, "bias") ? x : wb_mul_number(x, .5);
}

bool wb_load_filter_stub(void *user, const char *path) {
    return (void)user, strstr(path, "bias") == NULL;
}

wb_array *wb_loss_fn_stub(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    if (!batch) return NULL;
    wb_array *y = wb_apply(model, batch->x);
    return batch->y ? wb_mse(y, batch->y) : wb_mean(wb_square(y));
}

wb_array *wb_model_fn_stub(void *context, wb_layer *model) {
    return (void)context, wb_apply(model, wb_ones(WB_F32, 2, 3));
}

wb_status wb_observe_fn_stub(int64_t place, wb_array **arrays, void *user) {
    (void)user;
    arrays[0] = wb_full(WB_F32, (double)place, 3);
    arrays[1] = wb_scalar(WB_F32, (double)place);
    return WB_OK;
}

wb_status wb_pullback_fn_stub(void *context, wb_array *result, wb_array *cotangent, int count,
                              wb_array *const *arrays, wb_array **cotangents) {
    (void)context, (void)result;
    for (int i = 0; i < count; i++) cotangents[i] = wb_mul(cotangent, arrays[i]);
    return WB_OK;
}

void wb_release_fn_stub(void *context, void *data) { (void)context, (void)data; }

void wb_scan_fn_stub(void *context, wb_array **carries, wb_array *const *inputs,
                     wb_array **outputs) {
    (void)context;
    carries[0] = wb_tanh(wb_add(carries[0], inputs[0]));
    outputs[0] = carries[0];
}

double wb_schedule_fn_stub(int64_t t, void *user) { return (void)user, 1 / ((double)t + 1); }

double wb_score_fn_stub(const wb_train_event *event) { return -event->mean_loss; }

bool wb_train_fn_stub(const wb_train_event *event) { return event->step < 20; }

void wb_watch_fn_stub(void *user, const char *path, wb_array *x, bool is_gradient) {
    (void)user, (void)path, (void)x, (void)is_gradient;
}

void map_stub(wb_batch *batch, void *user) {
    (void)user;
    if (batch->x) batch->x = wb_neg(batch->x);
}

wb_status prepare_stub(const wb_batch_memory *batch, void *user) {
    (void)user;
    return batch->index == 5 ? WB_ERROR_IO : WB_OK;
}

void release_context_stub(void *context) { (void)context; }
