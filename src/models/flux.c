/* Flux's structs in BSON have fields in order but without names; the field tables of Weber's layers
 * give them names. In JLD2 they have names. Wrappers such as TrackedArray are replaced by the array
 * in them. */
#include "models/flux.h"

#include <string.h>

#include "formats/julia.h"

/* A struct that is replaced by one of its fields; at < 0: by its first array. */
static const struct {
    const char *name;
    int at;
} wrappers[] = {
    {"TrackedArray", 1}, /* tracker, data, gradient: Flux 0.4 to 0.9 */
    {"Param", -1},
    {"Params", 0}, /* order, params: Tracker and Zygote */
    {"Buffer", 0}, /* data, freeze: Zygote */
};
enum { WRAPPERS = sizeof wrappers / sizeof *wrappers, MOST_WRAPPED = 16 };

const char *wb_flux_last(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static const wb_record *first_array(const wb_record *r) {
    for (int64_t i = 0; i < r->count; i++)
        if (r->children[i]->kind == WB_RECORD_ARRAY) return r->children[i];
    return NULL;
}

static const wb_record *wrapped(const wb_record *r) {
    if (r->kind != WB_RECORD_STRUCT) return NULL;
    for (int i = 0; i < WRAPPERS; i++) {
        if (!wb_julia_last_is(r->type, wrappers[i].name)) continue;
        if (wrappers[i].at < 0) return first_array(r);
        return wrappers[i].at < r->count ? r->children[wrappers[i].at] : NULL;
    }
    return NULL;
}

const wb_record *wb_flux_look(const wb_record *r) {
    for (int i = 0; r && i < MOST_WRAPPED; i++) {
        const wb_record *inner = wrapped(r);
        if (!inner) break;
        r = inner;
    }
    return r;
}

wb_record *wb_flux_unwrapped(wb_record *r) {
    const union {
        const wb_record *from;
        wb_record *to; /* of the same tree */
    } inner = {.from = wb_flux_look(r)};
    return inner.to;
}

bool wb_flux_is_on_device(const wb_record *r) {
    return r->kind == WB_RECORD_OPAQUE && r->type && wb_julia_is_device_array(r->type);
}

/* ---- structs ---- */

const wb_layer_class *wb_flux_class(const wb_record *r) {
    return r->kind == WB_RECORD_STRUCT ? wb_class_named(wb_flux_last(r->type)) : NULL;
}

const char *wb_flux_name(const wb_field *field) { return field->flux ? field->flux : field->name; }

/* The i-th field of a struct that has this many; NULL: it has none there. */
static const wb_field *field_at(const wb_layer_class *k, int64_t count, int64_t i) {
    for (int f = 0; f < k->field_count; f++)
        if (!k->fields[f].text_only && k->fields[f].since <= count && i-- == 0)
            return &k->fields[f];
    return NULL;
}

const char *wb_flux_field(const wb_record *r, int64_t i) {
    const wb_layer_class *k = r->names ? NULL : wb_flux_class(r);
    const wb_field *field = k ? field_at(k, r->count, i) : NULL;
    if (k) return field ? wb_flux_name(field) : NULL;
    return wb_record_name(r, i);
}

static const wb_record *child_named(const wb_record *r, const char *name) {
    for (int64_t i = 0; i < r->count; i++) {
        const char *own = wb_flux_field(r, i);
        if (own && strcmp(own, name) == 0) return r->children[i];
    }
    return NULL;
}

static const wb_field *field_named(const wb_layer_class *k, const char *name) {
    for (int i = 0; k && i < k->field_count; i++)
        if (!k->fields[i].text_only && strcmp(wb_flux_name(&k->fields[i]), name) == 0)
            return &k->fields[i];
    return NULL;
}

/* JLD2 before 0.5 did not list fields without data. Those that are functions, and the layers of a
 * chain of functions, are children by the number of the struct's type parameter, {1}. */
static const wb_record *from_parameters(const wb_record *r, const char *name) {
    const wb_field *f = field_named(wb_flux_class(r), name);
    const wb_record *found = NULL;
    for (int64_t i = 0; f && i < r->count; i++) {
        const bool fits = (f->kind == WB_FIELD_LIST) == !wb_julia_function(r->children[i]);
        if (r->names[i][0] != '{' || !fits || wb_field_is_array(f)) continue;
        if (!found || f->kind == WB_FIELD_CONNECTION) found = r->children[i];
    }
    return found;
}

const wb_record *wb_flux_child(const wb_record *r, const char *name) {
    const wb_layer_class *k = wb_flux_class(r);
    for (int i = 0; k && i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (!f->tuple || strcmp(f->name, name) != 0) continue;
        const wb_record *tuple = wb_flux_look(child_named(r, f->tuple));
        if (tuple && tuple->kind == WB_RECORD_LIST) return wb_record_at(tuple, f->item - 1);
    }
    const wb_record *child = child_named(r, name);
    return child || !r->names ? child : from_parameters(r, name);
}

bool wb_flux_is_newest(const wb_layer_class *k, const wb_record *r) {
    return r->names || !field_at(k, INT64_MAX, r->count);
}
