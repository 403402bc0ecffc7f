/* Hidden states that are put aside while the model runs on other data. */
#include "base/memory.h"
#include "layers/layer.h"

typedef struct hidden_visitor {
    wb_visitor visitor;
    wb_hidden *kept;
    int64_t next, next_passed;
    bool is_back;
} hidden_visitor;

static bool exchange(hidden_visitor *v, wb_array **slot) {
    wb_hidden *kept = v->kept;
    if (v->is_back) {
        wb_unhold(*slot);
        *slot = kept->arrays[v->next++];
        return true;
    }
    if (!WB_GROW(kept->arrays, kept->count, kept->capacity)) return false;
    kept->arrays[kept->count++] = *slot;
    *slot = NULL;
    return true;
}

static bool exchange_passed(hidden_visitor *v, wb_layer *layer) {
    wb_hidden *kept = v->kept;
    wb_positions *p = wb_positions_of(layer);
    if (!p) return true;
    if (v->is_back) {
        if (v->next_passed == kept->passed_count) return false; /* not all were put aside */
        p->passed = kept->passed[v->next_passed++];
        return true;
    }
    if (!WB_GROW(kept->passed, kept->passed_count, kept->passed_capacity)) return false;
    kept->passed[kept->passed_count++] = p->passed;
    p->passed = 0;
    return true;
}

static bool visit(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)path;
    hidden_visitor *v = (hidden_visitor *)(void *)visitor;
    if (!exchange_passed(v, layer)) return false;
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        if (field->kind != WB_FIELD_HIDDEN) continue;
        if (v->is_back && v->next == v->kept->count) return false; /* not all were put aside */
        if (!exchange(v, wb_field_array(layer, field))) return false;
    }
    return true;
}

void wb_hidden_bring_back(wb_hidden *kept, wb_layer *model) {
    hidden_visitor v = {.visitor = {.layer = visit}, .kept = kept, .is_back = true};
    (void)wb_visit(&v.visitor, model);
    wb_release(kept->arrays);
    wb_release(kept->passed);
    *kept = (wb_hidden){.arrays = NULL};
}

bool wb_hidden_put_aside(wb_hidden *kept, wb_layer *model) {
    *kept = (wb_hidden){.arrays = NULL};
    hidden_visitor v = {.visitor = {.layer = visit}, .kept = kept};
    if (wb_visit(&v.visitor, model)) return true;
    wb_hidden_bring_back(kept, model);
    return false;
}
