#include "models/build.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "formats/bson.h"
#include "models/catalogue.h"
#include "models/flux.h"

/* What was made of a record; its number is 1 + the index. */
typedef struct made {
    wb_record *record;
    wb_layer *layer; /* lives in the model */
    wb_array *array; /* lives in the scope */
    const wb_term *term;
} made;

struct wb_building {
    wb_file *file;
    const char *key;
    bool has_said; /* where the error is */
    made *list;
    int64_t count, capacity;
};

/* ---- faults ---- */

void *wb_part_fail(const wb_part *p, wb_status status, const char *format, ...) {
    char path[WB_PATH_BYTES], what[400];
    va_list arguments;
    if (wb_failed()) return NULL;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    wb_path_text(p->path, path, sizeof path);
    p->building->has_said = true;
    const char *key = p->building->key;
    return wb_fail_null(status,
                        "%s: %s%s%s: %s; wb_load puts a file's arrays into a model that you give",
                        p->building->file->path, key, *key && *path ? "." : "", path, what);
}

/* What a maker of a layer said, with the place in front. */
static void *name_place(const wb_part *p) {
    char message[700];
    const wb_status status = wb_take_error(message, sizeof message);
    return wb_part_fail(p, status, "%s", message);
}

static const char *noun_of(const wb_record *r) {
    static const char *const nouns[] = {
        [WB_RECORD_NULL] = "nothing",     [WB_RECORD_BOOL] = "a bool",
        [WB_RECORD_INTEGER] = "a number", [WB_RECORD_REAL] = "a number",
        [WB_RECORD_TEXT] = "a text",      [WB_RECORD_ARRAY] = "an array",
        [WB_RECORD_LIST] = "a list",      [WB_RECORD_MAP] = "a map"};
    return r->kind <= WB_RECORD_MAP ? nouns[r->kind] : r->type;
}

static void *fail_unknown(const wb_part *p, const wb_record *r) {
    if (wb_flux_is_on_device(r))
        return wb_part_fail(p, WB_ERROR_UNSUPPORTED,
                            "a %s is memory of a GPU, which the file does not have: in Julia, save "
                            "cpu(model)",
                            r->type);
    if (r->kind == WB_RECORD_OPAQUE && r->type && strstr(r->type, "anonymous"))
        return wb_part_fail(p, WB_ERROR_UNSUPPORTED,
                            "an anonymous function, which cannot be made from a file");
    return wb_part_fail(p, WB_ERROR_UNSUPPORTED, "%s is no layer or function that Weber can make",
                        noun_of(r));
}

/* ---- fields ---- */

static const wb_record *child_named(const wb_record *r, const char *name) {
    for (int64_t i = 0; r && i < r->count; i++) {
        const char *own = wb_row_field(r, i);
        if (own && strcmp(own, name) == 0) return r->children[i];
    }
    return NULL;
}

const wb_record *wb_part_field(const wb_part *p, const char *name) {
    return wb_flux_look(child_named(p->record, name));
}

static bool has_made(const wb_building *b, const wb_record *r) {
    return r->number >= 1 && r->number <= b->count;
}

static made *note(wb_building *b, const wb_record *r) {
    if (has_made(b, r)) return &b->list[r->number - 1];
    if (!WB_GROW(b->list, b->count, b->capacity)) return NULL;
    union {
        const wb_record *from;
        wb_record *to; /* only its number, which is for walks */
    } one = {.from = r};
    b->list[b->count] = (made){.record = one.to};
    one.to->number = ++b->count;
    return &b->list[b->count - 1];
}

static wb_array *array_of(const wb_part *p, const wb_record *r, bool is_weight) {
    made *m = note(p->building, r);
    if (!m) return NULL;
    if (m->array) return m->array;
    wb_array *x = wb_record_copy(p->building->file, r);
    if (x && is_weight && !wb_dtype_is_float((wb_dtype)x->dtype)) x = wb_cast(x, WB_F32);
    return m->array = wb_to(wb_default_device(), x, .eltype = WB_ELTYPE_PRESERVE);
}

wb_array *wb_part_weight(const wb_part *p, const char *name, int ndim) {
    const wb_record *r = wb_part_field(p, name);
    if (!r) return wb_part_fail(p, WB_ERROR_FORMAT, "the file has no %s for it", name);
    if (r->kind != WB_RECORD_ARRAY)
        return wb_flux_is_on_device(r)
                   ? fail_unknown(p, r)
                   : wb_part_fail(p, WB_ERROR_FORMAT, "its %s is %s", name, noun_of(r));
    if (ndim && r->ndim != ndim)
        return wb_part_fail(p, WB_ERROR_SHAPE, "its %s is %s", name,
                            wb_sizes_text(r->ndim, r->sizes));
    return array_of(p, r, true);
}

/* bias = false, Flux.Zeros(), nothing. */
static bool is_no_bias(const wb_record *r) {
    return r->kind == WB_RECORD_NULL || (r->kind == WB_RECORD_BOOL && !r->boolean) ||
           (r->kind == WB_RECORD_STRUCT && strcmp(wb_flux_last(r->type), "Zeros") == 0);
}

bool wb_part_bias(const wb_part *p, wb_array **bias) {
    const wb_term *written = p->term ? wb_term_keyed(p->term, "bias") : NULL;
    const wb_record *r = wb_part_field(p, "bias");
    *bias = NULL;
    if (written && (written->kind != WB_TERM_BOOL || written->integer)) {
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "bias can be false only");
        return false;
    }
    if (written ? !r || r->kind != WB_RECORD_ARRAY : !p->term && r && is_no_bias(r)) return true;
    if (written) {
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "it has no bias, and the file has one");
        return false;
    }
    return (*bias = wb_part_weight(p, "bias", 1)) != NULL;
}

bool wb_part_vector(const wb_part *p, const char *name, wb_array **x) {
    const wb_record *r = wb_part_field(p, name);
    *x = NULL;
    return !r || is_no_bias(r) || (*x = wb_part_weight(p, name, 1)) != NULL;
}

/* ---- what is written ---- */

bool wb_part_has_only(const wb_part *p, int positional, const char *const *keys) {
    for (const wb_term *t = p->term->first; t; t = t->next) {
        bool known = !t->key && positional-- > 0;
        for (const char *const *key = keys; t->key && *key; key++)
            known = known || strcmp(*key, t->key) == 0;
        if (known) continue;
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "what is written in %.*s is not understood",
                           (int)(p->term->text_bytes < 80 ? p->term->text_bytes : 80),
                           p->term->text);
        return false;
    }
    return true;
}

bool wb_part_pair_is(const wb_part *p, int i, int64_t in, int64_t out) {
    const wb_term *pair = wb_term_at(p->term, i);
    const wb_term *a = pair && pair->kind == WB_TERM_PAIR ? pair->first : NULL;
    if (a && a->kind == WB_TERM_INTEGER && a->next->kind == WB_TERM_INTEGER && a->integer == in &&
        a->next->integer == out)
        return true;
    (void)wb_part_fail(p, WB_ERROR_SHAPE, "%.*s is written, the arrays are those of %lld => %lld",
                       pair && pair->text_bytes < 60 ? (int)pair->text_bytes : 0,
                       pair ? pair->text : "", (long long)in, (long long)out);
    return false;
}

static bool is_number(const wb_term *t, const wb_record *r) {
    const int64_t n = t ? t->integer : r->integer;
    return (t ? t->kind == WB_TERM_INTEGER : r->kind == WB_RECORD_INTEGER) && n >= 0 &&
           n <= INT32_MAX;
}

int wb_numbers_of(const wb_part *p, const wb_term *t, const wb_record *r, int most,
                  int64_t *numbers) {
    const bool is_list = t ? t->kind == WB_TERM_TUPLE : r->kind == WB_RECORD_LIST;
    const int64_t count = !is_list ? 1 : t ? t->count : r->count;
    bool good = count <= most;
    if (is_list && t) t = t->first;
    for (int i = 0; good && i < count; i++) {
        const wb_record *one = t ? NULL : is_list ? r->children[i] : r;
        good = is_number(t, one);
        if (good) numbers[i] = t ? t->integer : one->integer;
        if (t) t = t->next;
    }
    if (good) return (int)count;
    (void)wb_part_fail(p, WB_ERROR_FORMAT, "numbers are wanted where others stand");
    return -1;
}

int wb_part_numbers(const wb_part *p, const char *name, int most, int64_t *numbers) {
    const wb_term *t = p->term ? wb_term_keyed(p->term, name) : NULL;
    const wb_record *r = p->term ? NULL : wb_part_field(p, name);
    return t || r ? wb_numbers_of(p, t, r, most, numbers) : 0;
}

bool wb_part_real(const wb_part *p, const char *key, const char *name, double *number) {
    const wb_term *t = p->term ? wb_term_keyed(p->term, key) : NULL;
    const wb_record *r = p->term ? NULL : wb_part_field(p, name);
    if (t && t->kind <= WB_TERM_REAL)
        *number = t->kind == WB_TERM_REAL ? t->real : (double)t->integer;
    else if (r && (r->kind == WB_RECORD_REAL || r->kind == WB_RECORD_INTEGER))
        *number = wb_record_real(r);
    else if (t || r)
        return wb_part_fail(p, WB_ERROR_FORMAT, "its %s is no number", key) != NULL;
    return true;
}

static bool find_function(const wb_part *p, const char *name, wb_activation **function) {
    *function = wb_activation_named(name);
    if (*function) return true;
    if (strcmp(name, WB_NAMELESS) == 0)
        (void)wb_part_fail(p, WB_ERROR_UNSUPPORTED, "a function that has no name");
    (void)wb_part_fail(p, WB_ERROR_UNSUPPORTED, "there is no function \"%.80s\"", name);
    return false;
}

bool wb_part_activation(const wb_part *p, int i, const char *name, wb_activation **function) {
    const wb_term *t = p->term ? wb_term_at(p->term, i) : NULL;
    const wb_record *r = p->term ? NULL : wb_part_field(p, name);
    *function = NULL;
    if (!t && !r) return true;
    if (t && t->kind != WB_TERM_NAME) {
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "its activation is no name");
        return false;
    }
    const char *of = t ? t->name : wb_bson_function(r);
    if (!of) return fail_unknown(p, r) != NULL;
    return strcmp(of, "identity") == 0 || find_function(p, of, function);
}

/* ---- one layer, array or container ---- */

static wb_layer *build_layer(const wb_part *p);

static wb_layer *build_function(const wb_part *p, const char *name) {
    wb_activation *function;
    const wb_layer_row *row = wb_row_named(name);
    if (row && !row->fields[0]) return row->make(p);
    if (!find_function(p, name, &function)) return NULL;
    return strcmp(name, "identity") == 0 ? wb_fn_named(name, function) : wb_fn(function);
}

static wb_layer *build_term(const wb_part *p) {
    const wb_term *t = p->term;
    if (t->kind == WB_TERM_NAME) return build_function(p, t->name);
    if (t->kind == WB_TERM_TUPLE) return wb_part_container(p, p->record, NULL, true);
    const wb_layer_row *row = t->kind == WB_TERM_CALL ? wb_row_named(t->name) : NULL;
    if (row) return row->make(p);
    return wb_part_fail(p, WB_ERROR_UNSUPPORTED, "%.80s is no layer that Weber can make",
                        t->kind == WB_TERM_CALL ? t->name : "a number");
}

static wb_layer *build_value(const wb_part *p) {
    const wb_record *r = p->record;
    const char *function = wb_bson_function(r);
    const wb_layer_row *row = wb_row_of_struct(r);
    if (function) return build_function(p, function);
    if (row && row->fields[0]) return row->make(p);
    if (r->kind == WB_RECORD_LIST || r->kind == WB_RECORD_MAP)
        return wb_part_container(p, r, NULL, true);
    return fail_unknown(p, r);
}

static bool same_text(const wb_term *a, const wb_term *b) {
    return a == b || (a && b && a->text_bytes == b->text_bytes &&
                      memcmp(a->text, b->text, (size_t)a->text_bytes) == 0);
}

/* A record in two places that is to become the same is one layer. */
static wb_layer *build_layer(const wb_part *p) {
    const bool is_shareable = p->record && p->record->count > 0;
    if (is_shareable && has_made(p->building, p->record)) {
        const made *m = &p->building->list[p->record->number - 1];
        if (m->layer && same_text(m->term, p->term)) return wb_retain(m->layer);
    }
    wb_layer *layer = p->term ? build_term(p) : build_value(p);
    if (!layer) return wb_failed() && !p->building->has_said ? name_place(p) : NULL;
    made *m = is_shareable ? note(p->building, p->record) : NULL;
    if (m) m->layer = layer, m->term = p->term;
    if (m || !is_shareable) return layer;
    wb_free(layer);
    return NULL;
}

/* ---- containers ---- */

static bool is_array_term(const wb_term *t) {
    return t->kind == WB_TERM_CALL && strcmp(t->name, "zeros") == 0;
}

/* An entry of a tree: an array, which belongs to the scope, or a layer. */
static void *build_entry(const wb_part *p, bool is_tree) {
    const wb_record *r = wb_flux_look(p->record);
    const bool is_array = p->term ? is_array_term(p->term) : r->kind == WB_RECORD_ARRAY;
    if (!is_tree || !is_array) return build_layer(p);
    if (r && r->kind == WB_RECORD_ARRAY) return array_of(p, r, false);
    return wb_part_fail(p, WB_ERROR_FORMAT, "the file has no array for it");
}

/* What a container is made of: all have keys, or none. */
typedef struct entries {
    int64_t count, with_keys;
    wb_named *named;
    void **objects;
} entries;

static bool add_entry(entries *e, const wb_part *p, const wb_path *list, const wb_record *children,
                      const wb_term *t, bool is_tree) {
    const int64_t i = e->count;
    const char *key = t ? t->key : wb_record_name(children, i);
    const wb_path path = {list, key, i + 1};
    const wb_record *r = NULL;
    if (children && t && t->key)
        r = child_named(children, t->key);
    else if (children && (!t || !children->names) && i < children->count)
        r = children->children[i];
    const wb_part part = {.building = p->building, .path = &path, .term = t, .record = r};
    void *object = build_entry(&part, is_tree);
    if (!object) return false;
    e->named[i] = (wb_named){key, object}, e->objects[i] = object;
    e->count++, e->with_keys += key != NULL;
    return true;
}

static wb_layer *make_container(const wb_part *p, const entries *e, bool is_tree) {
    if (e->with_keys && e->with_keys < e->count) {
        for (int64_t i = 0; i < e->count; i++)
            if (wb_is_layer(e->objects[i])) wb_free(e->objects[i]);
        return wb_part_fail(p, WB_ERROR_FORMAT, "some of its layers have names, others have none");
    }
    if (is_tree)
        return e->with_keys ? wb_tree_named_make(e->count, e->named)
                            : wb_tree_make(e->count, e->objects);
    return e->with_keys ? wb_chain_named_make(e->count, e->named)
                        : wb_chain_make(e->count, (wb_layer *const *)(void *)e->objects);
}

static wb_layer *fill_container(const wb_part *p, entries *e, const wb_record *children,
                                const char *name, bool is_tree) {
    const wb_path list = {p->path, name, 0};
    const wb_term *t = p->term ? p->term->first : NULL;
    const int64_t count = p->term ? p->term->count : children->count;
    while (e->count < count && add_entry(e, p, &list, children, t, is_tree))
        if (t) t = t->next;
    if (e->count == count) return make_container(p, e, is_tree);
    for (int64_t i = 0; i < e->count; i++)
        if (wb_is_layer(e->objects[i])) wb_free(e->objects[i]);
    return NULL;
}

wb_layer *wb_part_container(const wb_part *p, const wb_record *children, const char *name,
                            bool is_tree) {
    const bool is_list =
        children && (children->kind == WB_RECORD_LIST || children->kind == WB_RECORD_MAP);
    if (!is_list && (children || !p->term))
        return wb_part_fail(p, WB_ERROR_FORMAT, "its layers are no list");
    if (p->term && children && children->count != p->term->count)
        return wb_part_fail(p, WB_ERROR_FORMAT, "%lld layers are written, the file has %lld",
                            (long long)p->term->count, (long long)children->count);
    const size_t count = (size_t)(p->term ? p->term->count : children->count);
    entries e = {.named = wb_alloc(count * sizeof *e.named + 1),
                 .objects = wb_alloc(count * sizeof *e.objects + 1)};
    wb_layer *layer = e.named && e.objects ? fill_container(p, &e, children, name, is_tree) : NULL;
    wb_release(e.named);
    wb_release(e.objects);
    return layer;
}

/* ---- the model ---- */

static bool apply_tie(const wb_building *b, wb_layer *model, const wb_term_tie *tie) {
    wb_array **to = wb_slot_at(b->file->path, model, tie->to);
    wb_array **from = to ? wb_slot_at(b->file->path, model, tie->from) : NULL;
    if (!from) return false;
    bool good = *to && *from && (*from)->ndim == tie->ndim && (*to)->dtype == (*from)->dtype;
    for (int i = 0; good && i < tie->ndim; i++)
        good = (*to)->ndim == tie->ndim && (*to)->sizes[i] == (*from)->sizes[tie->dims[i]];
    if (good) return wb_set(model, tie->to, wb_permute_make(*from, tie->ndim, tie->dims)) == WB_OK;
    (void)wb_fail(WB_ERROR_FORMAT, "%s: %s cannot be %s with other dimensions first", b->file->path,
                  tie->to, tie->from);
    return false;
}

static wb_layer *build_model(wb_building *b, const wb_record *record,
                             const wb_structure *structure) {
    const wb_part part = {.building = b, .term = structure->model, .record = record};
    wb_layer *model = build_layer(&part);
    bool good = model != NULL;
    for (const wb_term_tie *tie = structure->ties; good && tie; tie = tie->next)
        good = apply_tie(b, model, tie);
    return wb_layer_finish(model, !good);
}

wb_layer *wb_build(wb_file *file, const char *key, const wb_record *record, const char *text) {
    enum { MOST_PER_BYTE = 64, LEAST_LIMIT = 1 << 20 };
    wb_structure structure = {.model = NULL};
    wb_arena arena = {.limit_bytes =
                          text ? (int64_t)strlen(text) * MOST_PER_BYTE + LEAST_LIMIT : 0};
    wb_building b = {.file = file, .key = key};
    wb_layer *model = NULL;
    if ((!text || wb_structure_read(&structure, text, file->path, &arena) == WB_OK) &&
        wb_scope_begin())
        model = build_model(&b, record, &structure);
    for (int64_t i = 0; i < b.count; i++) b.list[i].record->number = 0;
    wb_release(b.list);
    wb_arena_release(&arena);
    return model;
}
