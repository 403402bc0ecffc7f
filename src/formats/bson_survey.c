/* Surveys a tree before it is written as BSON: which records are shared, how large their Julia
 * types are, and which cannot be written. */
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "formats/bson_writer.h"

/* Concrete types repeat the types of all that is below them; if that is too long, Any is written,
 * which fits every value in Julia. */
enum { MOST_TYPE_NODES = 1024, MOST_TYPE_DEPTH = 32 };

bool wb_bson_refuse(wb_bson_writer *w, wb_status status, const wb_branch *p, const char *what) {
    char text[256] = "";
    if (p) wb_branch_text(p, text, sizeof text);
    w->status = wb_fail(status, "%s: %s%s%s", w->path, text, p ? ": " : "", what);
    return false;
}

static wb_dtype dtype_of(const wb_record *r) {
    return (wb_dtype)(r->array ? r->array->dtype : r->dtype);
}

int64_t wb_bson_shape(const wb_record *r, wb_dtype *dtype, const int64_t **sizes) {
    *dtype = dtype_of(r);
    *sizes = r->array ? r->array->sizes : r->sizes;
    return r->array ? r->array->ndim : r->ndim;
}

int64_t wb_bson_array_bytes(const wb_record *r) {
    wb_dtype dtype;
    const int64_t *sizes;
    const int ndim = (int)wb_bson_shape(r, &dtype, &sizes);
    const int64_t count = wb_count_sizes(ndim, sizes), size = (int64_t)wb_dtype_size(dtype);
    return count < 0 || count > INT64_MAX / size ? -1 : count * size;
}

static bool survey_array(wb_bson_writer *w, const wb_record *r, const wb_branch *p) {
    if (w->is_tree) return true;
    if (!wb_julia_name_of_dtype(dtype_of(r)))
        return wb_bson_refuse(
            w, WB_ERROR_DTYPE, p,
            "Julia has no such type as bf16; .safetensors has, or convert it to f32");
    const int64_t size = wb_bson_array_bytes(r);
    if (size < 0 || (!r->array && size != r->data_bytes))
        return wb_bson_refuse(w, WB_ERROR_ARGUMENT, p, "its sizes do not fit its data");
    return true;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fails unless there are names, all valid text, and all different, as a NamedTuple needs them. */
static bool survey_names(wb_bson_writer *w, const wb_record *map, const wb_branch *p) {
    for (int64_t i = 0; i < map->count; i++)
        if (!map->names || !map->names[i])
            return wb_bson_refuse(w, WB_ERROR_ARGUMENT, p, "each value must have a name");
        else if (wb_utf8_fault(map->names[i], strlen(map->names[i])) >= 0)
            return wb_bson_refuse(w, WB_ERROR_ARGUMENT, p, "a name in it is not UTF-8");
    const char **sorted = wb_alloc_list(map->count, sizeof *sorted);
    if (!sorted) return (w->status = WB_ERROR_MEMORY), false;
    if (map->count) memcpy(sorted, map->names, (size_t)map->count * sizeof *sorted);
    qsort(sorted, (size_t)map->count, sizeof *sorted, by_text);
    bool good = true;
    for (int64_t i = 1; good && i < map->count; i++) good = strcmp(sorted[i - 1], sorted[i]) != 0;
    wb_release(sorted);
    return good || wb_bson_refuse(w, WB_ERROR_ARGUMENT, p, "two values have the same name");
}

/* A function or `missing`: types without parameters and without fields. */
static bool is_singleton(const wb_record *r) {
    return r->kind == WB_RECORD_STRUCT && r->count == 0 && r->type &&
           (wb_julia_function(r) || strcmp(r->type, "Base.Missing") == 0);
}

static bool is_marked(const wb_record *r) {
    return r->kind == WB_RECORD_ARRAY || r->kind == WB_RECORD_LIST || r->kind == WB_RECORD_MAP ||
           (r->kind == WB_RECORD_STRUCT && !is_singleton(r));
}

bool wb_bson_is_elsewhere(const wb_bson_writer *w, const wb_record *r) {
    return w->is_tree && (r->kind == WB_RECORD_ARRAY || (r->kind == WB_RECORD_OPAQUE && r->data));
}

const wb_bson_mark *wb_bson_mark_of(const wb_bson_writer *w, const wb_record *r) {
    return is_marked(r) ? &w->marks[r->number - 1] : NULL;
}

bool wb_bson_is_concrete(const wb_bson_writer *w, const wb_record *r) {
    const wb_bson_mark *m = wb_bson_mark_of(w, r);
    return !m || (m->type_nodes <= MOST_TYPE_NODES && m->type_depth <= MOST_TYPE_DEPTH);
}

static void measure_type(wb_bson_writer *w, const wb_record *r) {
    wb_bson_mark *own = &w->marks[r->number - 1];
    own->type_nodes = 1;
    for (int64_t i = 0; i < r->count; i++) {
        const wb_bson_mark *child = wb_bson_mark_of(w, r->children[i]);
        const bool is_whole = child && wb_bson_is_concrete(w, r->children[i]);
        own->type_nodes += is_whole ? child->type_nodes : 1;
        if (is_whole && child->type_depth >= own->type_depth)
            own->type_depth = child->type_depth + 1;
    }
}

static bool survey(wb_bson_writer *w, wb_record *r, const wb_branch *p);

static bool survey_children(wb_bson_writer *w, const wb_record *r, const wb_branch *outer) {
    for (int64_t i = 0; i < r->count; i++) {
        const wb_branch p = {outer, r->kind == WB_RECORD_MAP ? r->names[i] : NULL, i,
                             outer ? outer->depth + 1 : 1};
        if (!r->children[i])
            return wb_bson_refuse(w, WB_ERROR_ARGUMENT, &p, "there is nothing to save");
        if (!survey(w, r->children[i], &p)) return false;
    }
    return true;
}

static bool survey_new(wb_bson_writer *w, wb_record *r, const wb_branch *p) {
    if (!WB_GROW(w->marks, w->nmarks, w->marks_room)) return (w->status = WB_ERROR_MEMORY), false;
    w->marks[w->nmarks++] = (wb_bson_mark){.record = r, .uses = 1, .is_open = true};
    r->number = w->nmarks;
    if (r->kind == WB_RECORD_ARRAY && !survey_array(w, r, p)) return false;
    if (r->kind == WB_RECORD_MAP && !survey_names(w, r, p)) return false;
    if (!survey_children(w, r, p)) return false;
    measure_type(w, r);
    w->marks[r->number - 1].is_open = false;
    return true;
}

const char *wb_bson_refuses(const wb_record *r) {
    if (r->kind == WB_RECORD_ARRAY) return wb_julia_name_of_dtype(dtype_of(r)) ? NULL : "bf16";
    const bool is_good = r->kind < WB_RECORD_STRUCT || is_singleton(r);
    return is_good ? NULL : r->type ? r->type : "unknown";
}

/* Recursive, as all below, but no deeper than WB_RECORD_DEPTH. */
static bool survey(wb_bson_writer *w, wb_record *r, const wb_branch *p) {
    const bool is_good = r->kind < WB_RECORD_STRUCT || is_singleton(r) ||
                         wb_bson_is_elsewhere(w, r) || (w->is_tree && r->kind == WB_RECORD_STRUCT);
    if (!is_good) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "a value of Julia's type %s cannot be written; its arrays can",
                       r->type ? r->type : "unknown");
        return wb_bson_refuse(w, WB_ERROR_UNSUPPORTED, p, text);
    }
    if (!is_marked(r)) return true;
    if (p->depth >= WB_RECORD_DEPTH + (r->kind == WB_RECORD_ARRAY))
        return wb_bson_refuse(w, WB_ERROR_ARGUMENT, p, "it is nested too deep");
    const bool is_known =
        r->number >= 1 && r->number <= w->nmarks && w->marks[r->number - 1].record == r;
    if (r == w->root || (is_known && w->marks[r->number - 1].is_open))
        return wb_bson_refuse(w, WB_ERROR_ARGUMENT, p, "it is part of itself");
    if (!is_known) return survey_new(w, r, p);
    w->marks[r->number - 1].uses++;
    return true;
}

static bool survey_root(wb_bson_writer *w, const wb_record *root, const wb_record *metadata) {
    if (!root || root->kind != WB_RECORD_MAP)
        return wb_bson_refuse(w, WB_ERROR_ARGUMENT, NULL, "what is saved must have names");
    if (!survey_names(w, root, NULL)) return false;
    for (int64_t i = 0; i < root->count; i++) {
        const char *name = root->names[i];
        const wb_branch p = {.name = name};
        if (strcmp(name, "tag") == 0 || strcmp(name, "_backrefs") == 0)
            return wb_bson_refuse(w, WB_ERROR_ARGUMENT, &p, "BSON reserves this name");
        if (metadata && strcmp(name, "metadata") == 0)
            return wb_bson_refuse(w, WB_ERROR_ARGUMENT, &p, "the file's metadata has this name");
    }
    return survey_children(w, root, NULL);
}

static bool survey_metadata(wb_bson_writer *w, const wb_record *metadata) {
    if (!metadata) return true;
    if (metadata->kind != WB_RECORD_MAP || !survey_names(w, metadata, NULL))
        return w->status != WB_OK ||
               wb_bson_refuse(w, WB_ERROR_ARGUMENT, NULL, "metadata must have names");
    for (int64_t i = 0; i < metadata->count; i++) {
        const wb_branch p = {.name = metadata->names[i]};
        if (!metadata->children[i] || metadata->children[i]->kind != WB_RECORD_TEXT)
            return wb_bson_refuse(w, WB_ERROR_ARGUMENT, &p, "metadata must be texts");
        if (strcmp(metadata->names[i], "tag") == 0)
            return wb_bson_refuse(w, WB_ERROR_ARGUMENT, &p, "BSON reserves this name");
    }
    return true;
}

bool wb_bson_survey(wb_bson_writer *w, const wb_record *root, const wb_record *metadata) {
    return survey_root(w, root, metadata) && survey_metadata(w, metadata);
}
