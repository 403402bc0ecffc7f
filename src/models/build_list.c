/* Fills containers: lists of layers, and trees of layers and arrays, from terms, records, or
 * both. */
#include <stdio.h>

#include "base/memory.h"
#include "models/build.h"
#include "models/flux.h"

/* The contents of a container: either all have keys, or none. */
typedef struct entries {
    int64_t count, with_keys;
    wb_named *named;
    void **objects;
} entries;

/* The record that belongs to a term: found by its key, else by its number, which is its name in a
 * map. NULL: the layer has no arrays, so a file of arrays alone has no record of it. */
static const wb_record *child_at(const wb_record *children, const char *key, int64_t i) {
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
    if (!key && children && !children->names) return wb_record_at(children, i);
    return children ? wb_flux_child(children, key ? key : number) : NULL;
}

static bool add_entry(entries *e, const wb_part *p, const wb_path *list, const wb_record *children,
                      const wb_term *t, bool is_tree) {
    const int64_t i = e->count;
    const char *key = t ? t->key : wb_record_name(children, i);
    const wb_path path = {.outer = list, .name = key, .index = i + 1};
    const wb_record *r = t ? child_at(children, t->key, i) : children->children[i];
    const wb_part part = {.building = p->building, .path = &path, .term = t, .record = r};
    void *object = wb_part_entry(&part, is_tree);
    if (!object) return false;
    e->named[i] = (wb_named){key, object}, e->objects[i] = object;
    e->count++, e->with_keys += key != NULL;
    return true;
}

/* Takes the layers, also on failure. */
static bool fill_list(const wb_part *p, const entries *e, bool is_tree, wb_layer_list *list) {
    if (e->with_keys && e->with_keys < e->count) {
        for (int64_t i = 0; i < e->count; i++)
            if (wb_is_layer(e->objects[i])) wb_free(e->objects[i]);
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "either all of its layers or none must have names");
        return false;
    }
    const wb_contents contents = {.count = e->count,
                                  .objects = e->with_keys ? NULL : e->objects,
                                  .named = e->with_keys ? e->named : NULL};
    return wb_list_fill(is_tree ? "a tree" : "a list of layers", list, &contents, !is_tree);
}

static bool read_entries(const wb_part *p, entries *e, int64_t count, const wb_record *children,
                         const wb_term *t, const wb_path *list, bool is_tree) {
    while (e->count < count && add_entry(e, p, list, children, t, is_tree))
        if (t) t = t->next;
    if (e->count == count) return true;
    for (int64_t i = 0; i < e->count; i++)
        if (wb_is_layer(e->objects[i])) wb_free(e->objects[i]);
    return false;
}

/* The terms of a list: all but the first `before`, which are settings, or the terms inside the one
 * that has the field's name. */
static const wb_term *terms_of(const wb_part *p, const wb_field *f, int before, int64_t *count) {
    const wb_term *own = f->spread ? p->term : wb_term_keyed(p->term, f->name);
    const wb_term *first = own ? own->first : NULL;
    *count = own ? own->count : 0;
    for (; f->spread && before > 0 && first; before--, --*count) first = first->next;
    return first;
}

/* True for lists of trees and of the user's own structs, which hold arrays, too. */
static bool may_hold_arrays(const wb_layer_class *k) {
    return k == &wb_tree_class || !wb_class_is_of_library(k);
}

bool wb_part_read_list(const wb_part *p, wb_layer *layer, const wb_field *f, int before) {
    const bool is_tree = may_hold_arrays(layer->class_);
    const wb_record *children = f->name ? p->record ? wb_part_field(p, f->name) : NULL : p->record;
    const bool is_list =
        children && (children->kind == WB_RECORD_LIST || children->kind == WB_RECORD_MAP);
    int64_t count = is_list ? children->count : 0;
    const wb_term *first = p->term ? terms_of(p, f, before, &count) : NULL;
    if (!is_list && (children || !p->term))
        return wb_part_fail(p, WB_ERROR_FORMAT, "its layers must be a list") != NULL;
    if (p->term && children && children->count > count)
        return wb_part_fail(p, WB_ERROR_FORMAT, "the structure has %lld layers, the file has %lld",
                            (long long)count, (long long)children->count) != NULL;
    const wb_path list = {.outer = p->path, .name = f->name, .index = 0};
    entries e = {.named = wb_alloc_list(count + 1, sizeof *e.named),
                 .objects = wb_alloc_list(count + 1, sizeof *e.objects)};
    const bool good = e.named && e.objects &&
                      read_entries(p, &e, count, children, first, &list, is_tree) &&
                      fill_list(p, &e, is_tree, wb_field_list(layer, f));
    wb_release(e.named);
    wb_release(e.objects);
    return good;
}
