/* Parameters that stay as they are. */
#include "layers/layer.h"
#include "optimise/optimiser.h"

typedef struct marker {
    wb_visitor visitor;
    wb_optimiser *optimiser;
    const char *pattern;
    int64_t found;
} marker;

static bool mark(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    marker *m = (marker *)(void *)visitor;
    char text[WB_PATH_BYTES];
    (void)trainable;
    wb_path_text(path, text, sizeof text);
    if (m->pattern && !wb_path_matches(m->pattern, text)) return true;
    for (int64_t i = 0; i < m->optimiser->member_count; i++) {
        if (m->optimiser->members[i].slot != slot) continue;
        m->optimiser->groups[m->optimiser->members[i].group].is_marked = true;
        m->found++;
    }
    return true;
}

wb_status wb_optimiser_mark(const char *function, wb_optimiser *o, const char *path) {
    const wb_status status = wb_optimiser_group(o);
    if (status != WB_OK) return status;
    marker m = {{.array = mark, .everywhere = true}, o, path, 0};
    for (int64_t i = 0; i < o->group_count; i++) o->groups[i].is_marked = false;
    if (!wb_visit(&m.visitor, o->model)) return wb_error_status();
    if (m.found) return WB_OK;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: \"%s\" matches no trainable array of %s", function,
                  path ? path : "", o->model->class_->name);
    wb_error_add_paths(o->model);
    return WB_ERROR_ARGUMENT;
}

typedef struct seeker {
    wb_visitor visitor;
    const char *pattern;
    bool found;
} seeker;

static bool seek(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    seeker *s = (seeker *)(void *)visitor;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    const bool is_trained = trainable && *slot && wb_dtype_is_float((wb_dtype)(*slot)->dtype);
    s->found = s->found || (is_trained && wb_path_matches(s->pattern, text));
    return true;
}

bool wb_path_is_there(wb_layer *model, const char *pattern) {
    seeker s = {{.array = seek, .everywhere = true}, pattern, false};
    return wb_visit(&s.visitor, model) && s.found;
}

static wb_status set_frozen(const char *function, wb_optimiser *o, const char *path, bool frozen) {
    if (!wb_optimiser_check(function, o)) return WB_ERROR_ARGUMENT;
    const wb_status status = wb_optimiser_mark(function, o, path);
    for (int64_t i = 0; i < o->group_count && status == WB_OK; i++)
        if (o->groups[i].is_marked) o->groups[i].is_frozen = frozen;
    return status;
}

wb_status wb_freeze(wb_optimiser *optimiser, const char *path) {
    return set_frozen("wb_freeze", optimiser, path, true);
}

wb_status wb_thaw(wb_optimiser *optimiser, const char *path) {
    return set_frozen("wb_thaw", optimiser, path, false);
}
