/* Gradients of models. */
#include "optimise/gradients.h"
#include "array/divisor.h"
#include "array/state.h"
#include "array/use.h"
#include "array/user_call.h"

#include <string.h>

#include <weber/gradient.h>

#include "base/memory.h"
#include "gradient/mode.h"
#include "layers/layer.h"
#include "ops/ops.h"
#include "optimise/distributed.h"

/* ---- lifetime ---- */

static void release_lists(wb_gradients *g) {
    wb_release(g->slots);
    wb_release(g->arrays);
    wb_release(g->array_of);
    wb_release(g->values);
    wb_release(g->leaving);
}

static void free_spare(void *spare) {
    wb_gradients *g = spare;
    wb_object_wake(&g->spare.object, NULL);
    release_lists(g);
    wb_object_delete(g, sizeof *g, "gradients of a model");
}

static void drop(const wb_gradients *g, wb_array *x) {
    if (g->is_kept)
        wb_unhold(x);
    else
        wb_unref(x);
}

static wb_array *take_over(const wb_gradients *g, wb_array *x) {
    return !x ? NULL : g->is_kept ? wb_hold(x) : wb_ref(x);
}

/* The new one first: it may be made of the old one alone. */
static void put(const wb_gradients *g, wb_array **at, wb_array *x) {
    wb_array *old = *at;
    *at = take_over(g, x);
    drop(g, old);
}

void wb_gradients_put(wb_gradients *g, int64_t k, wb_array *value) { put(g, &g->values[k], value); }

void wb_gradients_watch(wb_gradients *g, wb_array *watched) { put(g, &g->watched, watched); }

void wb_gradients_put_divisor(wb_gradients *g, wb_array *divisor) { put(g, &g->divisor, divisor); }

void wb_gradients_clear(wb_gradients *g) {
    put(g, &g->loss, NULL);
    put(g, &g->divisor, NULL);
    for (int i = 0; i < g->aux.count; i++) put(g, &g->aux.items[i].x, NULL);
    g->aux.count = 0;
    wb_gradients_drop(g);
}

static void drop_all(wb_gradients *g) {
    wb_gradients_clear(g);
    g->is_kept = false;
    g->count = g->distinct = 0;
}

/* Returns it to the model for the next step; model is NULL if the model is being released. */
static void gradients_free(void *object) {
    wb_gradients *g = object;
    wb_layer *model = g->model;
    if (model) drop_all(g);
    g->model = NULL;
    if (model && !model->spare_) {
        wb_object_rest(&g->spare.object, "gradients of a model");
        model->spare_ = g;
    } else {
        release_lists(g);
        wb_object_delete(g, sizeof *g, "gradients of a model");
    }
    wb_layer_let_go(model);
}

static uint32_t *owner_of(const void *object) {
    return &((wb_gradients *)(uintptr_t)object)->owner;
}

static const wb_class gradients_class = {
    .name = "gradients", .owner = owner_of, .free = gradients_free, .maker = "wb_gradient"};

static wb_gradients *take(wb_layer *model) {
    wb_gradients *g = model->spare_;
    model->spare_ = NULL;
    if (g)
        wb_object_wake(&g->spare.object, &gradients_class);
    else
        g = wb_object_new(&gradients_class, sizeof *g);
    if (!g) return NULL;
    g->spare.free = free_spare;
    g->owner = wb_this_thread;
    g->model = wb_layer_hold(model);
    return g;
}

/* ---- slots ---- */

static bool resize(void **list, int64_t count, size_t item_bytes) {
    void *larger = wb_resize(*list, (size_t)count * item_bytes);
    if (larger) *list = larger;
    return larger != NULL;
}

static bool grow(wb_gradients *g) {
    const int64_t wanted = g->capacity ? 2 * g->capacity : 16;
    const bool good = resize((void **)&g->slots, wanted, sizeof *g->slots) &&
                      resize((void **)&g->arrays, wanted, sizeof *g->arrays) &&
                      resize((void **)&g->array_of, wanted, sizeof *g->array_of) &&
                      resize((void **)&g->values, wanted, sizeof *g->values) &&
                      resize((void **)&g->leaving, wanted + WB_OF_LOSS, sizeof *g->leaving);
    if (good) g->capacity = wanted;
    return good;
}

typedef struct slot_collector {
    wb_visitor visitor;
    wb_gradients *gradients;
    uint64_t stamp;
} slot_collector;

/* Each array once: its stamp says that it was met, its index where. */
static bool collect(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    (void)path;
    slot_collector *c = (slot_collector *)(void *)visitor;
    wb_gradients *g = c->gradients;
    wb_array *x = *slot;
    if (!trainable || !wb_dtype_is_float((wb_dtype)x->dtype)) return true;
    if (g->count == g->capacity && !grow(g)) return false;
    if (x->stamp != c->stamp) {
        x->stamp = c->stamp;
        x->index = (uint32_t)g->distinct;
        x->flags &= (uint16_t)~WB_NODE_DETACHED; /* a parameter counts as a leaf */
        g->values[g->distinct] = NULL;
        g->arrays[g->distinct++] = x;
    }
    g->array_of[g->count] = x->index;
    g->slots[g->count++] = slot;
    return true;
}

wb_gradients *wb_gradients_new(wb_layer *model) {
    wb_gradients *g = take(model);
    if (!g) return NULL;
    slot_collector c = {.visitor = {.array = collect}, .gradients = g, .stamp = wb_new_stamp()};
    if ((g->capacity > 0 || grow(g)) && wb_visit(&c.visitor, model)) return g;
    wb_free(g);
    return NULL;
}

/* ---- making ---- */

/* The loss of a part. If the part has no observations a mean would be NaN; it counts with a weight
 * of 0. */
static wb_array *loss_of(const wb_gradients *g, wb_array *l) {
    return g->observations ? l : wb_beside(l, wb_full_make((wb_dtype)l->dtype, 0, 0, NULL));
}

/* Differentiates l into g, which then references the values and the loss. */
static bool fill(wb_gradients *g, wb_array *l, wb_precision *precision) {
    wb_array *scaled = wb_precision_scaled(precision, g, l);
    if (!scaled || wb_gradient_of(scaled, (int)g->distinct, g->arrays, g->values) != WB_OK) {
        memset(g->values, 0, (size_t)g->distinct * sizeof *g->values);
        return false;
    }
    for (int64_t k = 0; k < g->distinct; k++)
        if (g->values[k]) wb_ref(g->values[k]);
    g->loss = loss_of(g, l);
    return g->loss && wb_ref(g->loss) && wb_precision_unscale(precision, g);
}

static bool check_loss(const char *function, wb_array *l) {
    if (!wb_may_use_array(function, l, "the loss")) return false;
    if (wb_count(l) == 1) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the loss is %s, not one number", function, wb_text_of(l));
    return false;
}

wb_gradients *wb_gradient(wb_array *l, wb_layer *model) {
    if (!check_loss("wb_gradient", l) || !wb_check_model("wb_gradient", model)) return NULL;
    wb_gradients *g = wb_gradients_new(model);
    if (!g) return NULL;
    g->observations = 1, g->weighting = WB_WEIGHTED_NOT;
    if (fill(g, l, NULL)) return wb_scope_own(g);
    wb_free(g);
    return NULL;
}

int64_t wb_observations_of(const wb_batch *batch) {
    if (!batch || !batch->x) return 1;
    return batch->loader_ || batch->full_ ? batch->size : wb_numobs(batch->x);
}

/* 0 for a batch without observations. */
wb_array *wb_gradients_weight(const wb_gradients *g) {
    if (!g->divisor) return wb_late((double)g->observations);
    wb_array *divisor = g->divisor->ndim ? wb_reshape_make(g->divisor, 0, NULL) : g->divisor;
    return wb_mul(wb_stop_gradient(divisor), wb_late(g->observations > 0));
}

/* The batch that a loss gets if none was given; its x and y are NULL. */
static const wb_batch empty_batch;

/* Calls the loss function; g gets its auxiliary outputs and its divisor. */
static wb_array *call(const char *function, wb_gradients *g, wb_loss_fn *loss,
                      const wb_batch *batch, void *user, const wb_precision *precision) {
    wb_divisor divisor = {.notes = 0};
    const bool before = wb_set_training(true);
    wb_aux_list *const outer = wb_aux_to(&g->aux);
    wb_divisor *const outer_divisor = wb_divisor_to(&divisor);
    wb_user_call of_loss;
    wb_user_call_begin(&of_loss, "the loss function");
    wb_array *l = wb_precision_call(precision, g, loss, batch ? batch : &empty_batch, user);
    if (!wb_user_call_end(&of_loss, function)) l = NULL;
    (void)wb_divisor_to(outer_divisor);
    (void)wb_aux_to(outer);
    (void)wb_set_training(before);
    g->divisor = wb_divisor_take(&divisor);
    return l;
}

wb_array *wb_gradients_make(const char *function, wb_gradients *g, wb_loss_fn *loss,
                            const wb_batch *batch, void *user, wb_precision *precision) {
    const int64_t states = wb_state_begin();
    g->observations = wb_observations_of(batch);
    g->weighting = precision ? precision->weighting : WB_WEIGHTED_NOT;
    wb_array *l = call(function, g, loss, batch, user, precision);
    if (!l && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the loss function returned NULL without an error",
                      function);
    l = check_loss(function, l) && fill(g, l, precision) ? g->loss : NULL;
    wb_state_end(states, l != NULL);
    return l;
}

void wb_gradients_drop(wb_gradients *g) {
    for (int64_t k = 0; k < g->distinct; k++) wb_gradients_put(g, k, NULL);
    wb_gradients_watch(g, NULL);
}

int wb_gradients_list_loss(const wb_gradients *g, wb_array **list) {
    int count = 0;
    if (g->loss) list[count++] = g->loss;
    if (g->watched) list[count++] = g->watched;
    if (g->divisor) list[count++] = g->divisor;
    for (int i = 0; i < g->aux.count; i++) list[count++] = g->aux.items[i].x;
    return count;
}

/* Closes the scope; loss and values pass to the one around it, pending. */
static wb_status leave(wb_gradients *g, wb_array *l) {
    if (!l) return wb_scope_leave();
    memcpy(g->leaving, g->values, (size_t)g->distinct * sizeof *g->values);
    const int more = wb_gradients_list_loss(g, g->leaving + g->distinct);
    return wb_scope_close_leaving((int)g->distinct + more, g->leaving);
}

static wb_array *with_gradient(const char *function, wb_loss_fn *loss, wb_layer *model,
                               const wb_batch *batch, void *user, wb_precision *precision,
                               wb_gradients **gradients) {
    wb_gradients *g = wb_gradients_new(model);
    if (!g) return NULL;
    wb_array *l = NULL;
    if (!wb_scope_begin()) goto failed;
    l = wb_gradients_make(function, g, loss, batch, user, precision);
    if (leave(g, l) != WB_OK || !l) goto failed;
    *gradients = wb_scope_own(g);
    return *gradients ? l : NULL;
failed:
    wb_free(g);
    return NULL;
}

static bool check(const char *function, wb_loss_fn *loss, const wb_layer *model,
                  wb_gradients **gradients) {
    if (gradients) *gradients = NULL;
    if (!gradients || !loss)
        return wb_fail_argument_null(function, loss ? "gradients" : "the loss function") != NULL;
    return wb_check_model(function, model);
}

wb_array *wb_withgradient(wb_loss_fn *loss, wb_layer *model, const wb_batch *batch, void *user,
                          wb_gradients **gradients) {
    static const char function[] = "wb_withgradient";
    if (!check(function, loss, model, gradients)) return NULL;
    return with_gradient(function, loss, model, batch, user, NULL, gradients);
}

wb_array *wb_withgradient_for(wb_optimiser *optimiser, wb_loss_fn *loss, wb_layer *model,
                              const wb_batch *batch, void *user, wb_gradients **gradients) {
    static const char function[] = "wb_withgradient_for";
    wb_precision precision;
    if (!check(function, loss, model, gradients) || !wb_optimiser_check(function, optimiser) ||
        wb_optimiser_follow(optimiser) != WB_OK || !wb_optimiser_precision(optimiser, &precision))
        return NULL;
    wb_weigh_by_share(optimiser, &precision);
    return with_gradient(function, loss, model, batch, user, &precision, gradients);
}

/* ---- single ones ---- */

static int64_t find(const wb_gradients *g, const char *function, const char *path) {
    wb_array **slot = wb_slot_at(function, g->model, path);
    for (int64_t i = 0; slot && i < g->count; i++)
        if (g->slots[i] == slot) return i;
    if (slot) (void)wb_fail(WB_ERROR_ARGUMENT, "%s: \"%s\" is not trainable", function, path);
    return -1;
}

bool wb_gradients_check(const char *function, const wb_gradients *gradients) {
    return wb_may_use(function, gradients, &gradients_class, "the gradients object");
}

wb_array *wb_gradients_get(const wb_gradients *gradients, const char *path) {
    if (!wb_gradients_check("wb_gradients_get", gradients)) return NULL;
    const int64_t i = find(gradients, "wb_gradients_get", path);
    wb_array *value = i < 0 ? NULL : wb_gradients_at(gradients, i);
    return value ? wb_scope_add(value) : NULL;
}

wb_status wb_gradients_set(wb_gradients *gradients, const char *path, wb_array *gradient) {
    if (!wb_gradients_check("wb_gradients_set", gradients) ||
        !wb_may_use_given("wb_gradients_set", gradient, "the gradient"))
        return WB_ERROR_ARGUMENT;
    const int64_t i = find(gradients, "wb_gradients_set", path);
    if (i < 0) return WB_ERROR_ARGUMENT;
    const int64_t k = gradients->array_of[i];
    const wb_array *x = *gradients->slots[i];
    if (gradient && (gradient->ndim != x->ndim ||
                     memcmp(gradient->sizes, x->sizes, (size_t)x->ndim * sizeof *x->sizes) != 0))
        return wb_fail(WB_ERROR_SHAPE, "wb_gradients_set: %s has sizes %s, the gradient %s", path,
                       wb_text_of(x), wb_text_of(gradient));
    wb_gradients_put(gradients, k, gradient);
    return WB_OK;
}
