/* Builds a layer from a term (what the text says), a record (what the file has), or both: the
 * settings come from the term, the arrays from the record. A record that is reached twice becomes
 * one array or layer, so that ties are preserved. Errors name the path in the model. */
#include "models/build.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "formats/julia.h"
#include "models/flux.h"
#include "models/settings.h"

/* What was made of a record; its number is 1 + the index. */
typedef struct made {
    wb_record *record;
    wb_layer *layer; /* lives in the model */
    wb_array *array; /* lives in the scope */
    const wb_term *term;
} made;

struct wb_building {
    wb_file *file;     /* NULL: all arrays are new */
    const char *where; /* for messages */
    const char *key;
    uint64_t errors; /* that there were before */
    bool has_said;   /* where the error is */
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
    if (wb_part_is_new(p))
        return wb_fail_null(status, "%s: %s%s%s", p->building->where, path, *path ? ": " : "",
                            what);
    const char *key = p->building->key;
    return wb_fail_null(
        status, "%s: %s%s%s%s%s; wb_load puts a file's arrays into a model that you give",
        p->building->where, key, *key && *path ? "." : "", path, *key || *path ? ": " : "", what);
}

bool wb_part_is_new(const wb_part *p) { return !p->building->file; }

const char *wb_part_subject(const wb_part *p, char text[WB_NAME_BYTES + 2]) {
    const bool is_call = p->term && p->term->kind == WB_TERM_CALL;
    (void)snprintf(text, WB_NAME_BYTES + 2, is_call ? "%.40s: " : "its ",
                   is_call ? p->term->name : "");
    return text;
}

/* The error of a layer's maker, with the place in front. */
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
                            "the file does not have the values of a %s, which is memory of a "
                            "GPU; in Julia, save cpu(model)",
                            r->type);
    if (r->kind == WB_RECORD_OPAQUE && r->type && strstr(r->type, "anonymous"))
        return wb_part_fail(
            p, WB_ERROR_UNSUPPORTED,
            "an anonymous function cannot be made from a file; wb_load_model_as makes "
            "the model of a text that you give");
    return wb_part_fail(p, WB_ERROR_UNSUPPORTED,
                        "%s is neither a layer nor a function that Weber knows", noun_of(r));
}

/* ---- fields ---- */

const wb_record *wb_part_field(const wb_part *p, const char *name) {
    return p->record ? wb_flux_look(wb_flux_child(p->record, name)) : NULL;
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

/* The array of a field, which must be there, and must be floating in the struct of a layer. */
static wb_array *array_at(const wb_part *p, const char *name) {
    const wb_record *r = wb_part_field(p, name);
    if (!r)
        return wb_part_fail(p, WB_ERROR_FORMAT, "it needs %s, which the file does not have", name);
    if (r->kind == WB_RECORD_ARRAY) return array_of(p, r, !p->term);
    return wb_flux_is_on_device(r)
               ? fail_unknown(p, r)
               : wb_part_fail(p, WB_ERROR_FORMAT, "its %s is %s", name, noun_of(r));
}

/* bias = false, Flux.Zeros(), nothing. */
static bool is_nothing(const wb_record *r) {
    return !r || r->kind == WB_RECORD_NULL || (r->kind == WB_RECORD_BOOL && !r->boolean) ||
           (r->kind == WB_RECORD_STRUCT && strcmp(wb_flux_last(r->type), "Zeros") == 0);
}

/* ---- what is written ---- */

static bool find_function(const wb_part *p, const char *name, wb_activation **function) {
    *function = wb_activation_named(name);
    if (*function) return true;
    if (strcmp(name, WB_NAMELESS) == 0)
        (void)wb_part_fail(
            p, WB_ERROR_UNSUPPORTED,
            "a function without a name cannot be made from a text; "
            "wb_register_function names it before the model is saved, unless it has a "
            "context (wb_fn_with): then the program makes the model, and wb_load "
            "fills it");
    const char *near = wb_activation_near(name);
    (void)wb_part_fail(p, WB_ERROR_UNSUPPORTED, "there is no function \"%.80s\"%s%s%s", name,
                       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return false;
}

bool wb_part_activation(const wb_part *p, const wb_term *t, const wb_record *r,
                        wb_activation **function) {
    *function = NULL;
    char subject[WB_NAME_BYTES + 2];
    if (t && t->kind != WB_TERM_NAME) {
        const int bytes = t->text_bytes < 48 ? (int)t->text_bytes : 48;
        (void)wb_part_fail(p, WB_ERROR_FORMAT,
                           "%sactivation must be the name of a function, got %.*s",
                           wb_part_subject(p, subject), bytes, t->text);
        return false;
    }
    if (!t && r->kind == WB_RECORD_LIST && r->count == 0) return true; /* () in Flux.state */
    const char *of = t ? t->name : wb_julia_function(r);
    if (!of) return fail_unknown(p, r) != NULL;
    return find_function(p, of, function);
}

/* ---- one layer, array or container ---- */

static wb_layer *build_layer(const wb_part *p);

static wb_layer *build_class(const wb_part *p, const wb_layer_class *k);

static wb_layer *build_function(const wb_part *p, const char *name) {
    wb_activation *function;
    const wb_layer_class *k = wb_class_named(name);
    if (k && k->field_count == 0) return wb_layer_new(k);
    if (!find_function(p, name, &function)) return NULL;
    return wb_fn(function);
}

static wb_layer *build_term(const wb_part *p) {
    const wb_term *t = p->term;
    if (t->kind == WB_TERM_NAME) return build_function(p, t->name);
    if (t->kind == WB_TERM_TUPLE) return build_class(p, &wb_tree_class);
    const wb_layer_class *k = t->kind == WB_TERM_CALL ? wb_class_named(t->name) : NULL;
    if (k && wb_part_is_new(p) && wb_term_has_hole(t)) return wb_lazy_new(p->building, t);
    if (k) return build_class(p, k);
    return wb_part_fail(
        p, WB_ERROR_UNSUPPORTED,
        "%.80s is not a layer that Weber knows; register a layer of your own by wb_register_layer",
        t->kind == WB_TERM_CALL ? t->name : "a number");
}

static wb_layer *build_value(const wb_part *p) {
    const wb_record *r = p->record;
    const char *function = wb_julia_function(r);
    const wb_layer_class *k = wb_flux_class(r);
    if (function) return build_function(p, function);
    if (k) return build_class(p, k);
    if (r->kind == WB_RECORD_LIST || r->kind == WB_RECORD_MAP)
        return build_class(p, &wb_tree_class);
    return fail_unknown(p, r);
}

static bool same_text(const wb_term *a, const wb_term *b) {
    return a == b || (a && b && a->text_bytes == b->text_bytes &&
                      memcmp(a->text, b->text, (size_t)a->text_bytes) == 0);
}

/* A record that is used in two places of the same kind becomes one layer. */
static wb_layer *build_layer(const wb_part *p) {
    const bool is_shareable = p->record && p->record->count > 0;
    if (is_shareable && has_made(p->building, p->record)) {
        const made *m = &p->building->list[p->record->number - 1];
        if (m->layer && same_text(m->term, p->term)) return wb_keep_layer(m->layer);
    }
    wb_layer *layer = p->term ? build_term(p) : build_value(p);
    const bool is_own = wb_error_count() != p->building->errors;
    if (!layer) return is_own && !p->building->has_said ? name_place(p) : NULL;
    made *m = is_shareable ? note(p->building, p->record) : NULL;
    if (m) m->layer = layer, m->term = p->term;
    if (m || !is_shareable) return layer;
    wb_free(layer);
    return NULL;
}

/* ---- entries of trees ---- */

static bool is_array_term(const wb_term *t) {
    return t->kind == WB_TERM_CALL && strcmp(t->name, "zeros") == 0;
}

/* zeros(Float32, 2, 3) */
static wb_array *zeros_of(const wb_part *p) {
    const wb_term *type = p->term->first, *t = type ? type->next : NULL;
    int64_t sizes[WB_MAX_DIMS];
    int dtype = WB_F32, n = 0;
    const char *name = type && type->kind == WB_TERM_NAME ? type->name : "";
    for (; dtype <= (int)WB_BOOL; dtype++) {
        const char *own = wb_julia_name_of_dtype((wb_dtype)dtype);
        if (strcmp(own ? own : "BFloat16", name) == 0) break;
    }
    for (; t && n < WB_MAX_DIMS && t->kind == WB_TERM_INTEGER && t->integer >= 0; t = t->next)
        sizes[n++] = t->integer;
    if (!t && dtype <= (int)WB_BOOL) return wb_full_make((wb_dtype)dtype, 0, n, sizes);
    return wb_part_fail(p, WB_ERROR_FORMAT, "zeros must have a type and sizes");
}

void *wb_part_entry(const wb_part *p, bool is_tree) {
    const wb_record *r = wb_flux_look(p->record);
    const bool is_array = p->term ? is_array_term(p->term) : r->kind == WB_RECORD_ARRAY;
    if (!is_tree || !is_array) return build_layer(p);
    if (wb_part_is_new(p)) return zeros_of(p);
    if (r && r->kind == WB_RECORD_ARRAY) return array_of(p, r, false);
    return wb_part_fail(p, WB_ERROR_FORMAT, "it needs an array, which the file does not have");
}

/* ---- the fields of a layer ---- */

/* True if the file has nothing that this field could hold; for a child, a function counts as
 * nothing, too. */
static bool is_absent(const wb_part *p, const wb_field *f) {
    const wb_record *r = wb_part_field(p, f->name);
    if (is_nothing(r)) return true;
    return f->part && r->kind == WB_RECORD_STRUCT && wb_flux_class(r) != f->part;
}

/* Whether a field that a setting can remove is there: by the text, or, in a struct, by the struct.
 * False with the error recorded if text and file differ. */
static bool is_wanted(const wb_part *p, wb_layer *layer, const wb_field *f, bool *wanted) {
    const bool absent = is_absent(p, f);
    const wb_field *presence = p->term ? NULL : wb_field_presence(layer->class_, f);
    if (presence && absent == (presence->usual != 0))
        *(bool *)wb_field_at(layer, presence) = !absent;
    *wanted = !wb_is_without(layer, f);
    if (*wanted || absent || !p->term) return true;
    (void)wb_part_fail(p, WB_ERROR_FORMAT,
                       "the structure says that there is no %s, but the "
                       "file has one",
                       f->name);
    return false;
}

/* Makes the field of a new layer: zeros where the text says so; others are made when the layer is
 * completed. */
static bool make_array(const wb_part *p, wb_layer *layer, const wb_field *f) {
    const wb_term *own = wb_term_keyed(p->term, f->name);
    if (!own || !is_array_term(own)) return true;
    const wb_part part = {.building = p->building, .path = p->path, .term = own};
    return (*wb_field_array(layer, f) = wb_hold(zeros_of(&part))) != NULL;
}

/* Checks that all that the layer's class needs, or the text names, is there. */
static bool read_array(const wb_part *p, wb_layer *layer, const wb_field *f) {
    bool wanted;
    if (wb_part_is_new(p)) return make_array(p, layer, f);
    if (!is_wanted(p, layer, f, &wanted)) return false;
    const bool is_written = p->term && wb_term_keyed(p->term, f->name);
    const bool is_needed = is_written || (layer->class_->complete && !f->fixed);
    if (!wanted || (is_absent(p, f) && !is_needed)) return true;
    return (*wb_field_array(layer, f) = wb_hold(array_at(p, f->name))) != NULL;
}

/* The fields with one WITHOUT must all be there, or none. */
static bool check_arrays(const wb_part *p, const wb_layer *layer) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        if (!wb_field_is_array(f) || !wb_is_without(layer, f)) continue;
        if (is_absent(p, f)) continue;
        (void)wb_part_fail(p, WB_ERROR_FORMAT,
                           "the file has %s without the arrays that belong "
                           "to it",
                           f->name);
        return false;
    }
    return true;
}

static bool has_arrays(const wb_layer_class *k) {
    for (int i = 0; i < k->field_count; i++)
        if (wb_field_is_array(&k->fields[i])) return true;
    return false;
}

static bool read_child(const wb_part *p, wb_layer *layer, const wb_field *f, const wb_term *term) {
    const wb_path path = {.outer = p->path, .name = f->name, .index = 0};
    const wb_part part = {
        .building = p->building, .path = &path, .term = term, .record = wb_part_field(p, f->name)};
    bool wanted;
    if (!is_wanted(p, layer, f, &wanted)) return false;
    if (!wanted || (term ? term->kind == WB_TERM_BOOL : !f->part && is_absent(p, f))) return true;
    if (f->part && (wb_part_is_new(p) || (f->optional && is_absent(p, f)))) return true;
    if (f->part && !part.record && !has_arrays(f->part)) return true;
    if (f->part && !part.record)
        return wb_part_fail(p, WB_ERROR_FORMAT, "it needs %s, which the file does not have",
                            f->name) != NULL;
    wb_layer *child = f->part ? build_class(&part, f->part) : build_layer(&part);
    return (*wb_field_child(layer, f) = child) != NULL;
}

/* True for fields that a text may name: not those that only Flux's structs have, and not parts. */
static bool is_in_text(const wb_field *f) {
    return f->name && !f->part && f->kind != WB_FIELD_OTHER && f->kind != WB_FIELD_HIDDEN;
}

static bool is_key(const wb_layer_class *k, const char *key) {
    for (int i = 0; i < k->field_count; i++)
        if (is_in_text(&k->fields[i]) && strcmp(k->fields[i].name, key) == 0) return true;
    return false;
}

/* The term of the i-th positional setting, and which one it is; spread sizes take all numbers. */
static const wb_term *positional_term(const wb_part *p, const wb_field *const *list, int i,
                                      int64_t *at) {
    *at = 0;
    for (int k = 0; k < i; k++) {
        const wb_term *t = list[k]->spread ? wb_term_at(p->term, *at) : NULL;
        for (; t && !t->key && t->kind == WB_TERM_INTEGER; t = t->next) ++*at;
        *at += !list[k]->spread;
    }
    return wb_term_at(p->term, *at);
}

/* True if an earlier term says the same as the keyed term, by this key or by its position. */
static bool is_said_before(const wb_part *p, const wb_layer_class *k, const wb_term *t) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional;
    for (const wb_term *u = p->term->first; u != t; u = u->next)
        if (u->key && strcmp(u->key, t->key) == 0) return true;
    (void)wb_settings_in_text(k, list, &positional);
    for (int i = 0; i < positional; i++)
        if (strcmp(list[i]->name, t->key) == 0)
            return positional_term(p, list, i, &(int64_t){0}) != NULL;
    return false;
}

/* "; it has in, activation, bias" */
static void list_keys(const wb_layer_class *k, char *text, size_t size) {
    const wb_field *list[WB_MOST_SETTINGS];
    size_t used = 0;
    const int count = wb_settings_in_text(k, list, &(int){0});
    text[0] = 0;
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "; it has ",
                                 list[i]->name);
}

static bool fail_term(const wb_part *p, const wb_layer_class *k, const wb_term *t) {
    char keys[200];
    const int all = (int)(p->term->text_bytes < 80 ? p->term->text_bytes : 80);
    const int bytes = (int)(t->text_bytes < 40 ? t->text_bytes : 40);
    list_keys(k, keys, sizeof keys);
    (void)wb_part_fail(p, WB_ERROR_FORMAT, "%s%s%.*s, an argument of %.*s, is not known%s",
                       t->key ? t->key : "", t->key ? "=" : "", bytes, t->text, all, p->term->text,
                       keys);
    return false;
}

/* Fails if the text has an argument that is not known, or one twice; a list takes all that is
 * left. */
static bool check_terms(const wb_part *p, const wb_layer_class *k, int64_t positional) {
    for (int i = 0; i < k->field_count; i++)
        if (k->fields[i].kind == WB_FIELD_LIST && k->fields[i].spread) return true;
    for (const wb_term *t = p->term->first; t; t = t->next) {
        const bool is_known = t->key ? is_key(k, t->key) : positional-- > 0;
        if (is_known && !(t->key && is_said_before(p, k, t))) continue;
        if (!is_known) return fail_term(p, k, t);
        (void)wb_part_fail(p, WB_ERROR_FORMAT, "%.40s is written twice in %.*s", t->key,
                           (int)(p->term->text_bytes < 80 ? p->term->text_bytes : 80),
                           p->term->text);
        return false;
    }
    return true;
}

/* The order of reading: settings that say which arrays there are, the arrays, and last the settings
 * that depend on the number of dimensions. */
static int stage_of(const wb_field *f) {
    if (f->kind == WB_FIELD_BOOL) return 0;
    if (!wb_field_is_setting(f)) return 1;
    return wb_kind_of(f)->per_size ? 3 : 2;
}

static bool read_field(const wb_part *p, wb_layer *layer, const wb_field *f) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional;
    const int count = wb_settings_in_text(layer->class_, list, &positional);
    if (f->kind == WB_FIELD_LIST) return wb_part_read_list(p, layer, f, positional);
    if (wb_field_is_array(f)) return read_array(p, layer, f);
    if (wb_field_is_presence(layer->class_, f) && !p->term) return true;
    const wb_term *term = p->term && f->name ? wb_term_keyed(p->term, f->name) : NULL;
    for (int i = 0; p->term && i < count; i++)
        if (list[i] == f && i < positional) term = positional_term(p, list, i, &(int64_t){0});
    if (f->kind == WB_FIELD_CHILD) return read_child(p, layer, f, term);
    return wb_setting_read(p, layer, f, term);
}

static bool read_fields(const wb_part *p, wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    const wb_field *list[WB_MOST_SETTINGS];
    int positional;
    int64_t terms;
    (void)wb_settings_in_text(k, list, &positional);
    if (p->term) (void)positional_term(p, list, positional, &terms);
    if (p->term && p->term->kind == WB_TERM_CALL && !check_terms(p, k, terms)) return false;
    for (int stage = 0; stage <= 3; stage++) {
        if (stage == 3 && !wb_layer_derive(layer)) return false;
        for (int i = 0; i < k->field_count; i++)
            if (stage_of(&k->fields[i]) == stage && !read_field(p, layer, &k->fields[i]))
                return false;
    }
    return check_arrays(p, layer);
}

static wb_layer *build_class(const wb_part *p, const wb_layer_class *k) {
    wb_layer *layer = wb_layer_new(k);
    if (layer && read_fields(p, layer)) return wb_layer_complete(layer);
    wb_free(layer);
    return NULL;
}

/* ---- the model ---- */

static bool apply_tie(const wb_building *b, wb_layer *model, const wb_term_tie *tie) {
    wb_array **to = wb_slot_at(b->where, model, tie->to);
    wb_array **from = to ? wb_slot_at(b->where, model, tie->from) : NULL;
    if (!from) return false;
    bool good = *to && *from && (*from)->ndim == tie->ndim && (*to)->dtype == (*from)->dtype;
    for (int i = 0; good && i < tie->ndim; i++)
        good = (*to)->ndim == tie->ndim && (*to)->sizes[i] == (*from)->sizes[tie->dims[i]];
    if (good) return wb_tie(model, tie->to, wb_permute_make(*from, tie->ndim, tie->dims)) == WB_OK;
    (void)wb_fail(WB_ERROR_FORMAT,
                  "%s: %s should be %s with its dimensions permuted, but sizes "
                  "or types differ",
                  b->where, tie->to, tie->from);
    return false;
}

static wb_layer *build_model(wb_building *b, const wb_record *record, const wb_structure *structure,
                             wb_finish_fn *finish, void *user) {
    const wb_part part = {.building = b, .term = structure->model, .record = record};
    wb_layer *model = build_layer(&part);
    if (model && finish) model = finish(user, model);
    bool good = model != NULL;
    for (const wb_term_tie *tie = structure->ties; good && tie; tie = tie->next)
        good = apply_tie(b, model, tie);
    return wb_layer_finish(model, !good);
}

static wb_layer *build(wb_building *b, const wb_record *record, const char *text,
                       wb_finish_fn *finish, void *user) {
    enum { MOST_PER_BYTE = 64, LEAST_LIMIT = 1 << 20 };
    wb_structure structure = {.model = NULL};
    wb_arena arena = {.limit_bytes =
                          text ? (int64_t)strlen(text) * MOST_PER_BYTE + LEAST_LIMIT : 0};
    wb_layer *model = NULL;
    if ((!text || wb_structure_read(&structure, text, b->where, &arena) == WB_OK) &&
        wb_scope_begin())
        model = build_model(b, record, &structure, finish, user);
    for (int64_t i = 0; i < b->count; i++) b->list[i].record->number = 0;
    wb_release(b->list);
    wb_arena_release(&arena);
    return model;
}

wb_layer *wb_build(wb_file *file, const char *key, const wb_record *record, const char *text) {
    wb_building b = {.file = file, .where = file->path, .key = key, .errors = wb_error_count()};
    return build(&b, record, text, NULL, NULL);
}

wb_layer *wb_build_new(wb_building *b, const wb_term *term) {
    const wb_part part = {.building = b, .term = term};
    return build_layer(&part);
}

wb_layer *wb_build_of_text(const char *text, wb_finish_fn *finish, void *user) {
    wb_building b = {.where = "wb_parse", .key = "", .errors = wb_error_count()};
    return build(&b, NULL, text, finish, user);
}
