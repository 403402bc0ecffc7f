/* wb_cache: sequences that are given piece by piece, with keys and values of earlier pieces
 * kept. */
#include "array/state.h"
#include "gradient/mode.h"
#include "layers/layer.h"

wb_positions *wb_positions_of(wb_layer *layer) {
    const size_t offset = layer->class_->positions;
    return offset ? (wb_positions *)(void *)((char *)layer + offset) : NULL;
}

bool wb_forget_positions(wb_layer *layer) {
    wb_positions *p = wb_positions_of(layer);
    return !p || wb_state_write_number(&p->passed, 0) == WB_OK;
}

bool wb_pass_positions(wb_layer *layer, const wb_array *x, int64_t *first) {
    wb_positions *p = wb_positions_of(layer);
    *first = 0;
    if (!p || p->length == 0 || wb_is_sizing()) return true;
    if (wb_is_active(layer)) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "training does not work with a cache: wb_cache(model, 0) removes it");
        return false;
    }
    if (x->sizes[1] > p->length) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "the cache has room for %lld positions, got input %s: wb_cache(model, %lld) "
                      "makes room for these",
                      (long long)p->length, wb_text_of(x), (long long)x->sizes[1]);
        return false;
    }
    if (p->passed + x->sizes[1] > p->length) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "the cache has room for %lld positions, %lld of them used, got input %s: "
                      "call wb_reset before a new sequence",
                      (long long)p->length, (long long)p->passed, wb_text_of(x));
        return false;
    }
    *first = p->passed;
    return wb_state_write_number(&p->passed, p->passed + x->sizes[1]) == WB_OK;
}

wb_array *wb_late_position(int64_t position) { return wb_cast(wb_late((double)position), WB_I32); }

/* ---- the model ---- */

typedef struct cache_visitor {
    wb_visitor visitor;
    int64_t length;
    bool is_setting, has_keys;
    wb_table met; /* layers that have positions, by address */
} cache_visitor;

/* At its second place in a model a layer would take its own keys for those before. */
static bool is_alone(cache_visitor *v, const wb_layer *layer) {
    const uint64_t key = (uint64_t)(uintptr_t)layer;
    if (v->length == 0) return true; /* a cache is removed without memory */
    if (wb_table_find(&v->met, key) < 0) return wb_table_add(&v->met, key);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "wb_cache: a layer that depends on positions must appear in the model once, got "
                  "a %s that appears twice",
                  layer->class_->name);
    return false;
}

/* First only checks, so that nothing has changed if a layer refuses. */
static bool visit(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)path;
    cache_visitor *v = (cache_visitor *)(void *)visitor;
    wb_positions *p = wb_positions_of(layer);
    const wb_layer_class *k = layer->class_;
    if (!p) return true;
    int64_t most;
    if (!wb_class_most_positions(layer, &most)) return false;
    if (most == 0) return true;
    if (v->length > most) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_cache: length must be at most the %lld positions of %s, got %lld",
                      (long long)most, k->name, (long long)v->length);
        return false;
    }
    if (!v->is_setting && !is_alone(v, layer)) return false;
    if (k == &wb_multi_head_attention_class) v->has_keys = true;
    if (!v->is_setting) return true;
    p->length = v->length;
    return wb_layer_forget(layer);
}

wb_status wb_cache(wb_layer *model, int64_t length) {
    if (!wb_check_layer("wb_cache", model)) return WB_ERROR_ARGUMENT;
    if (wb_is_tracing("wb_cache")) return WB_ERROR_ARGUMENT;
    if (length < 0)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_cache: length must be at least 0, got %lld",
                       (long long)length);
    cache_visitor v = {.visitor = {.layer = visit, .everywhere = true}, .length = length};
    const bool good = wb_visit(&v.visitor, model);
    wb_table_release(&v.met);
    if (!good) return wb_error_status();
    if (length > 0 && !v.has_keys)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_cache: the model must have a MultiHeadAttention that is causal, got %s",
                       model->class_->name);
    v.is_setting = true, v.visitor.everywhere = false;
    return wb_visit(&v.visitor, model) ? WB_OK : wb_error_status();
}

typedef struct mark_visitor {
    wb_visitor visitor;
    uint64_t mark;
} mark_visitor;

static bool add_to_mark(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)path;
    mark_visitor *v = (mark_visitor *)(void *)visitor;
    const wb_positions *p = wb_positions_of(layer);
    if (p) v->mark = v->mark * 31 + (uint64_t)p->length * 37 + (uint64_t)p->passed;
    return true;
}

uint64_t wb_cache_mark(wb_layer *model) {
    mark_visitor v = {.visitor = {.layer = add_to_mark}};
    return wb_visit(&v.visitor, model) ? v.mark : 0;
}
