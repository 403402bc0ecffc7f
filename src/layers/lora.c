/* Adapters of low rank beside the weights of Dense layers. */
#include "layers/lora.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ops/ops.h"

/* ---- the layer ---- */

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_lora_layer *l = (const wb_lora_layer *)(const void *)layer;
    wb_array *y = wb_matmul(l->b, wb_matmul(l->a, wb_cast(x, (wb_dtype)l->a->dtype)));
    return wb_cast(wb_mul(y, l->scale), (wb_dtype)x->dtype);
}

static const wb_field fields[] = {
    WB_FIELD_(wb_lora_layer, a, WB_FIELD_ARRAY, .trainable = true),
    WB_FIELD_(wb_lora_layer, b, WB_FIELD_ARRAY, .trainable = true),
    WB_FIELD_(wb_lora_layer, scale, WB_FIELD_STATE),
};

static bool complete(wb_layer *layer) {
    const wb_lora_layer *l = (const wb_lora_layer *)(const void *)layer;
    const bool is_there = l->a && l->b && l->scale;
    if (is_there && l->a->ndim == 2 && l->b->ndim == 2 && l->scale->ndim == 0 &&
        l->a->sizes[0] == l->b->sizes[1] && l->a->dtype == l->b->dtype &&
        wb_dtype_is_float((wb_dtype)l->a->dtype))
        return true;
    if (is_there)
        (void)wb_fail(WB_ERROR_SHAPE,
                      "LoRA: a must be (rank, in), b (out, rank) of the same type and scale a "
                      "number, got %s, %s and %s",
                      wb_text_of(l->a), wb_text_of(l->b), wb_text_of(l->scale));
    else
        (void)wb_fail(WB_ERROR_ARGUMENT, "LoRA: wb_lora makes adapters; a, b and scale are needed");
    return false;
}

const wb_layer_class wb_lora_class = {
    .name = "LoRA", WB_LAYER_ROWS(wb_lora_layer, fields), .forward = forward, .complete = complete};

wb_lora_layer *wb_lora_of(wb_layer *layer) {
    wb_layer **place = wb_dense_adapter(layer);
    return place ? (wb_lora_layer *)(void *)*place : NULL;
}

/* ---- plans ---- */

/* Whether the adapter's type can hold it. */
static bool check_scale(const wb_array *a, double scale) {
    if (fabs(scale) <= (a->dtype == WB_F64 ? DBL_MAX : (double)FLT_MAX)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "alpha / rank is %g, which %s cannot hold", scale,
                  wb_dtype_name((wb_dtype)a->dtype));
    return false;
}

bool wb_lora_plan_add(wb_lora_plan *plan, wb_layer *dense, wb_array *a, wb_array *b, double scale) {
    wb_array *number = wb_scalar(a ? (wb_dtype)a->dtype : WB_F32, scale);
    wb_array *weight = wb_get(dense, "weight");
    if (!a || !b || !number || !weight || !WB_GROW(plan->entries, plan->count, plan->capacity))
        return false;
    if (a->ndim != 2 || b->ndim != 2 || a->sizes[1] != weight->sizes[1] ||
        b->sizes[0] != weight->sizes[0]) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "the adapter's A %s and B %s do not fit the weight %s of the layer",
                      wb_text_of(a), wb_text_of(b), wb_text_of(weight));
        return false;
    }
    if (!check_scale(a, scale)) return false;
    const struct {
        wb_array *a, *b, *scale;
    } arrays = {wb_numbers_beside(weight, a), wb_numbers_beside(weight, b),
                wb_numbers_beside(weight, number)};
    wb_layer *adapter = wb_layer_make(&wb_lora_class, &arrays, sizeof arrays);
    if (!adapter) return false;
    plan->entries[plan->count++] = (struct wb_lora_entry){dense, adapter};
    return true;
}

/* The layer's adapter from now on; NULL: none. */
static void adapt(wb_layer *dense, wb_layer *adapter) {
    wb_layer **place = wb_dense_adapter(dense);
    wb_free(*place);
    *place = adapter;
}

/* Adapters that the model has stay as they are. */
static bool freeze(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)visitor, (void)path;
    if (layer->class_ != &wb_lora_class) layer->frozen_ = true;
    return true;
}

static bool drop_adapter(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)visitor, (void)path;
    if (wb_lora_of(layer)) adapt(layer, NULL);
    return true;
}

void wb_lora_plan_end(wb_lora_plan *plan, wb_layer *model, wb_lora_end end) {
    wb_visitor freezing = {.layer = freeze}, dropping = {.layer = drop_adapter};
    const bool commit = end != WB_LORA_GIVE_UP && wb_visit(&freezing, model) &&
                        (end != WB_LORA_REPLACE || wb_visit(&dropping, model));
    for (int64_t i = 0; i < plan->count; i++)
        if (commit)
            adapt(plan->entries[i].dense, plan->entries[i].adapter);
        else
            wb_free(plan->entries[i].adapter);
    if (commit) wb_places_changed();
    wb_release(plan->entries);
}

/* ---- adding ---- */

static bool check_desc(const wb_lora_desc *d) {
    if (d->rank < 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_lora: rank must be positive, got %lld",
                      (long long)d->rank);
    else if (isinf(d->alpha))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_lora: alpha must be finite, got %g", d->alpha);
    else
        return true;
    return false;
}

/* Numbers as PEFT draws them: those of A as torch's Linear does, B zero. */
static bool plan_new(wb_lora_plan *plan, wb_layer *dense, const wb_lora_desc *d) {
    const wb_array *w = wb_get(dense, "weight");
    if (!w) return false;
    const wb_dtype dtype = w->dtype == WB_F64 ? WB_F64 : WB_F32;
    const double bound = 1 / sqrt((double)w->sizes[1]);
    wb_array *a = wb_uniform_make(dtype, 2, (int64_t[]){d->rank, w->sizes[1]});
    a = wb_mul_number(wb_add_number(a, -0.5), 2 * bound);
    wb_array *b = wb_zeros(WB_DTYPE(dtype), w->sizes[0], d->rank);
    return wb_lora_plan_add(plan, dense, a, b, isnan(d->alpha) ? 1 : d->alpha / (double)d->rank);
}

/* The Dense layers' paths, as many as a message takes. */
static void list_dense(wb_layer *model, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (wb_module m = {0}; wb_next_module(model, &m);) {
        if (!wb_dense_adapter(m.layer) || used >= size) continue;
        const bool has_room = used + strlen(m.path) + sizeof ", ..." < size;
        const int more =
            snprintf(text + used, size - used, "%s%s", used ? ", " : "", has_room ? m.path : "...");
        used = has_room ? used + (size_t)more : size;
    }
}

/* All Dense layers that a target matches. */
static bool plan_target(wb_lora_plan *plan, const wb_lora_desc *d, const char *target) {
    bool is_any = false;
    for (wb_module m = {0}; wb_next_module(d->model, &m);) {
        bool is_planned = false;
        if (!wb_path_matches(target, m.path) || !wb_dense_adapter(m.layer)) continue;
        is_any = true;
        for (int64_t i = 0; i < plan->count; i++)
            is_planned = is_planned || plan->entries[i].dense == m.layer;
        if (is_planned) continue;
        if (wb_lora_of(m.layer))
            (void)wb_fail(WB_ERROR_ARGUMENT, "wb_lora: %s has an adapter already", m.path);
        else if (plan_new(plan, m.layer, d))
            continue;
        wb_free(m.list_);
        return false;
    }
    char names[400];
    if (!is_any && !wb_failed()) {
        list_dense(d->model, names, sizeof names);
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_lora: \"%.100s\" matches no Dense layer of %s; it has %s", target,
                      d->model->class_->name, *names ? names : "none");
    }
    return is_any && !wb_failed();
}

wb_status wb_lora_make(wb_lora_desc d) {
    static const char *const usual[] = {"*.q_proj", "*.v_proj"};
    const char *const *targets = d.targets[0] ? d.targets : usual;
    const int most = d.targets[0] ? WB_LORA_TARGETS : 2;
    if (!wb_check_start("wb_lora", d.start_) || !wb_check_model("wb_lora", d.model) ||
        wb_is_tracing("wb_lora") || !check_desc(&d) || !wb_scope_begin())
        return wb_error_status();
    wb_lora_plan plan = {.count = 0};
    bool good = true;
    for (int i = 0; good && i < most && targets[i]; i++) good = plan_target(&plan, &d, targets[i]);
    wb_lora_plan_end(&plan, d.model, good ? WB_LORA_ADD : WB_LORA_GIVE_UP);
    const wb_status status = wb_scope_leave();
    return wb_failed() ? wb_error_status() : status;
}

/* ---- taking them away ---- */

static bool has_adapters(const char *function, wb_layer *model) {
    bool is_any = false;
    for (wb_module m = {0}; wb_next_module(model, &m);) is_any = is_any || wb_lora_of(m.layer);
    if (!is_any && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s has no adapters", function, model->class_->name);
    return is_any;
}

/* Needs no memory, so it cannot end half-way. */
static wb_status drop(wb_layer *model) {
    wb_visitor v = {.layer = drop_adapter};
    return wb_visit(&v, model) ? wb_set_trainable(model, NULL, true) : wb_error_status();
}

wb_status wb_lora_remove(wb_layer *model) {
    if (!wb_check_model("wb_lora_remove", model) || wb_is_tracing("wb_lora_remove") ||
        !has_adapters("wb_lora_remove", model))
        return wb_error_status();
    return drop(model);
}

/* W + scale B A, in the type of the adapter, then in that of W. */
static wb_array *merged(const wb_lora_layer *l, wb_array *w) {
    wb_array *product = wb_mul(wb_matmul(l->b, l->a), l->scale);
    return wb_cast(wb_add(wb_cast(w, (wb_dtype)l->a->dtype), product), (wb_dtype)w->dtype);
}

static bool plan_merge(wb_exchange *exchange, wb_layer *model) {
    bool good = true;
    for (wb_module m = {0}; wb_next_module(model, &m);) {
        const wb_lora_layer *l = wb_lora_of(m.layer);
        if (!l || !good) continue;
        wb_array **slot = wb_slot_at("wb_lora_merge", m.layer, "weight");
        wb_array *w = slot ? merged(l, *slot) : NULL;
        good = w && wb_exchange_add(exchange, slot, w);
    }
    return good && !wb_failed();
}

wb_status wb_lora_merge(wb_layer *model) {
    if (!wb_check_model("wb_lora_merge", model) || wb_is_tracing("wb_lora_merge") ||
        !has_adapters("wb_lora_merge", model) || !wb_scope_begin())
        return wb_error_status();
    wb_exchange exchange = {0};
    const bool good = wb_model_evaluate(model) == WB_OK && plan_merge(&exchange, model) &&
                      wb_exchange_evaluate(&exchange) == WB_OK;
    wb_exchange_end(&exchange, good);
    if (good) (void)drop(model);
    const wb_status status = wb_scope_leave();
    return wb_failed() ? wb_error_status() : status;
}
