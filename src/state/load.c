/* Arrays of a file into the places of a model. */
#include <string.h>

#include "layers/layer.h"
#include "state/record.h"

typedef struct source {
    const wb_file *file;
    const wb_record *record;
} source;

static bool same_sizes(const wb_record *r, const wb_array *x) {
    return r->ndim == x->ndim && memcmp(r->sizes, x->sizes, sizeof *x->sizes * x->ndim) == 0;
}

static wb_array *load_leaf(void *user, const char *path, wb_array *x) {
    const source *s = user;
    const wb_record *r = wb_record_get(s->record, path);
    if (!r) return NULL;
    if (r->kind != WB_RECORD_ARRAY)
        return wb_fail_null(WB_ERROR_SHAPE, "%s: %s is no array in the file", s->file->path, path);
    if (!same_sizes(r, x))
        return wb_fail_null(WB_ERROR_SHAPE, "%s: %s is %s in the file, %s in the model",
                            s->file->path, path, wb_sizes_text(r->ndim, r->sizes), wb_text_of(x));
    wb_array *y = wb_record_array(s->file, r);
    y = y ? wb_cast(wb_copy(y), (wb_dtype)x->dtype) : NULL; /* the file may change or go */
    return y ? wb_to(wb_device_of(x), y, .eltype = WB_ELTYPE_PRESERVE) : NULL;
}

static const wb_record *model_of(const wb_record *root) {
    for (int64_t i = 0; i < wb_record_count(root); i++) {
        const char *name = wb_record_name(root, i);
        if (name && strcmp(name, "model") == 0) return wb_record_at(root, i);
    }
    return root;
}

wb_status wb_load(const char *path, wb_layer *model) {
    if (!wb_check_layer("wb_load", model)) return wb_error_status();
    wb_file *file = wb_open(path);
    if (!file) return wb_error_status();
    source s = {file, model_of(wb_file_root(file))};
    const wb_status status = wb_walk(load_leaf, &s, model);
    wb_free(file);
    return status;
}
