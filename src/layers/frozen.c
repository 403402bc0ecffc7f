/* Layers whose arrays are not trained. */
#include "layers/layer.h"

bool wb_path_matches(const char *pattern, const char *path) {
    for (; *pattern && *pattern != '*'; pattern++, path++)
        if (*pattern != *path) return false;
    if (!*pattern) return !*path || *path == '.';
    for (; *path; path++)
        if (wb_path_matches(pattern + 1, path)) return true;
    return wb_path_matches(pattern + 1, path);
}

typedef struct setter {
    wb_visitor visitor;
    const char *pattern; /* NULL: all layers */
    bool frozen;
    int64_t found;
} setter;

static bool set(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    setter *s = (setter *)(void *)visitor;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    if (s->pattern && !wb_path_matches(s->pattern, text)) return true;
    layer->frozen_ = s->frozen;
    s->found++;
    return true;
}

wb_status wb_set_trainable(wb_layer *model, const char *path, bool trainable) {
    setter s = {{.layer = set, .everywhere = true}, path, !trainable, 0};
    if (!wb_check_model("wb_set_trainable", model)) return WB_ERROR_ARGUMENT;
    if (wb_is_tracing("wb_set_trainable")) return WB_ERROR_ARGUMENT;
    if (!wb_visit(&s.visitor, model)) return wb_error_status();
    wb_places_changed();
    if (s.found) return WB_OK;
    wb_fail_unknown_path("wb_set_trainable", model, path, true);
    return WB_ERROR_ARGUMENT;
}
