/* Models as trees of records. */
#include "models/tree.h"

#include <string.h>

#include "base/memory.h"
#include "models/flux.h"
#include "models/settings.h"

wb_record *wb_tree_known(const wb_tree_maker *b, const void *object) {
    for (int64_t i = 0; i < b->count; i++)
        if (b->met[i].object == object && b->met[i].owner == b->owner) return b->met[i].record;
    return NULL;
}

wb_record *wb_tree_remember(wb_tree_maker *b, const void *object, wb_record *record) {
    if (!record || !WB_GROW(b->met, b->count, b->capacity)) return NULL;
    b->met[b->count++] = (wb_met){object, b->owner, record};
    return record;
}

/* ---- arrays ---- */

/* On the host, dense; x itself where it is so already. Belongs to the scope. */
static wb_array *on_host(wb_array *x) {
    wb_array *y = wb_cpu(x);
    if (!y || wb_eval(y) != WB_OK) return NULL;
    return wb_node_is_dense(y) ? y : wb_data_copy(y);
}

wb_record *wb_tree_of_array(wb_tree_maker *b, wb_array *x) {
    wb_record *r = wb_tree_known(b, x);
    if (r) return r;
    wb_array *own = b->is_for_file ? on_host(x) : wb_scope_add(x);
    r = own ? wb_record_new(&b->arena, WB_RECORD_ARRAY) : NULL;
    if (!r) return NULL;
    r->dtype = own->dtype, r->ndim = own->ndim;
    memcpy(r->sizes, own->sizes, sizeof *r->sizes * own->ndim);
    r->data_bytes = wb_count(own) * (int64_t)wb_dtype_size((wb_dtype)own->dtype);
    r->array = own;
    return wb_tree_remember(b, x, r);
}

/* ---- layers ---- */

/* An array that is not there is written as false, as in Flux's bias = false. */
static wb_record *record_of(wb_tree_maker *b, wb_layer *layer, wb_array *const *slot) {
    if (layer) return wb_tree_of_layer(b, layer);
    if (!slot || !*slot) return wb_record_new(&b->arena, WB_RECORD_BOOL);
    return b->leaf ? b->leaf(b, slot) : wb_tree_of_array(b, *slot);
}

static bool has_names(const wb_layer_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->items[i].name) return true;
    return false;
}

static wb_record *record_of_list(wb_tree_maker *b, const wb_layer_list *list) {
    const bool named = has_names(list);
    wb_record *r = wb_record_new(&b->arena, named ? WB_RECORD_MAP : WB_RECORD_LIST);
    if (!r || !wb_record_room(&b->arena, r, list->count, named)) return NULL;
    for (int64_t i = 0; i < list->count; i++) {
        const wb_layer_item *item = &list->items[i];
        r->children[i] = record_of(b, item->layer, &item->array);
        if (!r->children[i]) return NULL;
        if (named && !(r->names[i] = wb_arena_text(&b->arena, item->name, strlen(item->name))))
            return NULL;
    }
    return r;
}

static wb_record *record_of_field(wb_tree_maker *b, wb_layer *layer, const wb_field *field) {
    if (field->kind == WB_FIELD_LIST) return record_of_list(b, wb_field_list(layer, field));
    if (field->kind == WB_FIELD_CHILD) return record_of(b, *wb_field_child(layer, field), NULL);
    return record_of(b, NULL, wb_field_array(layer, field));
}

const wb_field *wb_class_field(const wb_layer_class *k, const char *name) {
    for (int i = 0; i < k->field_count; i++)
        if (k->fields[i].kind < WB_FIELD_VALUE && k->fields[i].name &&
            strcmp(k->fields[i].name, name) == 0)
            return &k->fields[i];
    return NULL;
}

/* True for fields that only older versions of Flux had, or that Flux never had: those with a
 * setting that is not a field of Flux's struct, and optional ones that are not there. */
static bool is_left_out(const wb_layer *layer, const wb_field *field) {
    if (field->optional) return !*wb_field_child(layer, field);
    const wb_field *presence = wb_field_presence(layer->class_, field);
    return presence && presence->usual == 0 && presence->text_only && wb_is_without(layer, field);
}

/* True if the tree has a place for the field; settings have one beside the arrays themselves. */
static bool is_in_tree(const wb_tree_maker *b, const wb_layer *layer, const wb_field *field) {
    if (wb_field_is_setting(field)) return !b->leaf && !field->text_only;
    if (is_left_out(layer, field)) return false;
    return field->kind != WB_FIELD_VALUE && field->kind != WB_FIELD_HIDDEN;
}

/* Fields in the order of Flux's struct; () for what has none, as functions. A list without a name
 * of its own is its struct: the tree's items. */
static wb_record *record_of_fields(wb_tree_maker *b, wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    int64_t count = 0;
    const wb_field *last = NULL;
    for (int i = 0; i < k->field_count; i++)
        if (is_in_tree(b, layer, &k->fields[i])) last = &k->fields[i], count++;
    if (count == 1 && last->kind == WB_FIELD_LIST && !last->name)
        return record_of_list(b, wb_field_list(layer, last));
    wb_record *r = wb_record_new(&b->arena, count ? WB_RECORD_MAP : WB_RECORD_LIST);
    if (!r || !wb_record_room(&b->arena, r, count, count > 0)) return NULL;
    for (int i = 0, at = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (!is_in_tree(b, layer, f)) continue;
        r->names[at] = wb_field_is_setting(f) ? wb_flux_name(f) : f->name;
        r->children[at] = wb_field_is_setting(f) ? wb_setting_record(&b->arena, layer, f)
                                                 : record_of_field(b, layer, f);
        if (!r->children[at++]) return NULL;
    }
    return r;
}

wb_record *wb_tree_of_layer(wb_tree_maker *b, wb_layer *layer) {
    wb_record *r = wb_tree_known(b, layer);
    if (r) return r;
    if (b->depth >= WB_RECORD_DEPTH)
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_save: the model is nested deeper than %d",
                            WB_RECORD_DEPTH);
    b->depth++;
    r = record_of_fields(b, layer);
    b->depth--;
    if (r && b->has_types) r->type = layer->class_->name;
    return r ? wb_tree_remember(b, layer, r) : NULL;
}

/* ---- trees ---- */

/* Recursive: not deeper than the model of the state. */
static wb_record *record_of_record(wb_tree_maker *b, wb_record *r) {
    if (r->kind == WB_RECORD_ARRAY) return wb_tree_of_array(b, r->array);
    if (r->count == 0) return r;
    wb_record *copy = wb_tree_known(b, r);
    if (copy) return copy;
    copy = wb_record_new(&b->arena, (wb_record_kind)r->kind);
    if (!copy || !wb_record_room(&b->arena, copy, r->count, r->names != NULL)) return NULL;
    for (int64_t i = 0; i < r->count; i++) {
        if (r->names) copy->names[i] = r->names[i];
        if (!(copy->children[i] = record_of_record(b, r->children[i]))) return NULL;
    }
    return wb_tree_remember(b, r, copy);
}

wb_record *wb_tree_of_file(wb_tree_maker *b, const wb_file *file) {
    return file->map.bytes ? file->root : record_of_record(b, file->root);
}

void wb_tree_maker_release(wb_tree_maker *b) {
    wb_release(b->met);
    wb_arena_release(&b->arena);
}
