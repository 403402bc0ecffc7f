/* Arrays of a tree into the places of a model: all are looked up and compared first, then they
 * change at once. */
#include "models/load.h"

#include <stdlib.h>
#include <string.h>

#include "array/use.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "models/advice.h"
#include "models/align.h"
#include "models/build.h"
#include "models/flux.h"
#include "models/rename.h"
#include "models/structure.h"
#include "models/torch.h"
#include "models/tree.h"

/* A place of the model, and what it is to get. */
typedef struct entry {
    const char *path;
    wb_array **slot;         /* may hold NULL */
    const wb_record *record; /* an array, or false: zeros */
} entry;

typedef struct loading {
    wb_visitor visitor;
    const wb_source *source;
    const wb_load_desc *desc;
    bool in_order; /* the source is a list of arrays */
    int64_t next;  /* of the list */
    wb_alignment alignment;
    bool is_left_out; /* the place that was looked up last, by its layer */
    wb_arena arena;
    wb_ties arrays; /* what the entries' slots hold */
    entry *entries;
    int64_t count, capacity;
} loading;

/* ---- looking up ---- */

bool wb_is_list_of_arrays(const wb_record *r) {
    if (r->kind != WB_RECORD_LIST || r->count == 0) return false;
    for (int64_t i = 0; i < r->count; i++)
        if (wb_flux_look(r->children[i])->kind != WB_RECORD_ARRAY) return false;
    return true;
}

/* The child of that name; without a name, the one at index, from 1. In a map the number is the
 * name, since layers without arrays are missing there. Fields of an unknown struct are found by
 * index only. */
static const wb_record *child_at(const wb_record *r, const wb_path *path) {
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)path->index);
    const char *wanted = path->name ? path->name : number;
    const wb_record *named = wb_flux_child(r, wanted);
    if (named) return named;
    const bool is_unknown = r->kind == WB_RECORD_STRUCT && !wb_flux_class(r);
    const bool by_index = is_unknown || (!r->names && !path->name);
    return by_index ? wb_record_at(r, path->index - 1) : NULL;
}

/* One step of a path in the source, where an item of a list may have another number than in the
 * model. */
static wb_path step_there(loading *l, const wb_record *outer, const wb_path *path,
                          const char *outer_path) {
    wb_path there = {.name = path->name, .index = path->index};
    const bool is_item = path->list && path->list->items[path->index - 1].layer;
    if (!outer || !l->desc->layers || !is_item) return there;
    const int64_t place = wb_align(&l->alignment, path, outer, outer_path);
    if (place == WB_LEFT_OUT) l->is_left_out = true;
    if (place > 0) there.index = place;
    return there;
}

/* text gets the path in the source. */
static const wb_record *find(loading *l, const wb_path *path, char text[WB_PATH_BYTES]) {
    text[0] = 0;
    if (!path) return l->source->root;
    const wb_record *outer = find(l, path->outer, text);
    if (!path->name && path->index == 0) return outer;
    const wb_path there = step_there(l, outer, path, text);
    const size_t used = strlen(text);
    if (used && used + 1 < WB_PATH_BYTES) (void)memcpy(text + used, ".", 2);
    wb_path_text(&there, text + strlen(text), WB_PATH_BYTES - strlen(text));
    return outer ? wb_flux_look(child_at(outer, &there)) : NULL;
}

/* ---- one record ---- */

const wb_record *wb_record_find(const wb_file *file, const wb_record *root, const char *path) {
    const uint64_t errors = wb_error_count();
    const wb_record *r = wb_record_get(root, path);
    if (!r) (void)wb_error_prefix(errors, "%s: ", file->path);
    return r;
}

bool wb_record_has_sizes_of(const wb_record *r, const wb_array *x) {
    return r->ndim == x->ndim && memcmp(r->sizes, x->sizes, sizeof *x->sizes * x->ndim) == 0;
}

wb_array *wb_record_array_like(const wb_file *file, const wb_record *r, const wb_array *x) {
    const wb_device *device = wb_device_of(x);
    wb_array *y = wb_record_copy(file, r);
    y = y ? wb_cast(y, (wb_dtype)x->dtype) : NULL;
    return y && device ? wb_to(device, y, .eltype = WB_ELTYPE_PRESERVE) : y;
}

/* ---- comparing ---- */

static bool is_false(const wb_record *r) { return r->kind == WB_RECORD_BOOL && !r->boolean; }

static bool fits(const loading *l, const entry *e) {
    const wb_record *r = e->record;
    const wb_source *s = l->source;
    const wb_array *x = *e->slot;
    if (is_false(r)) return true;
    if (wb_flux_is_on_device(r))
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s: the file does not have the values of %s, a %s, which is memory of a "
                      "GPU; in Julia, save cpu(model)",
                      s->file->path, wb_origin_text(r, e->path), r->type);
    else if (r->kind == WB_RECORD_OPAQUE && r->data && r->type)
        (void)wb_fail(WB_ERROR_UNSUPPORTED,
                      "%s: %s must be an array of a type that Weber has, but is %.60s in the %s",
                      s->file->path, wb_origin_text(r, e->path), r->type, s->noun);
    else if (r->kind != WB_RECORD_ARRAY)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must be an array, but is not one in the %s",
                      s->file->path, wb_origin_text(r, e->path), s->noun);
    else if (!wb_record_has_sizes_of(r, x))
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s is %s in the %s, %s in the model%s", s->file->path,
                      wb_origin_text(r, e->path), wb_sizes_text(r->ndim, r->sizes), s->noun,
                      wb_text_of(x), wb_advice_on_sizes(r, x));
    else
        return true;
    return false;
}

/* An array that the model was made without may be there if it is zeros. */
static bool may_be_absent(const loading *l, const entry *e) {
    const wb_source *s = l->source;
    wb_array *x = wb_record_array(s->file, e->record);
    if (!x) return false;
    const double largest = wb_count(x) ? wb_item(wb_maximum(wb_abs(wb_cpu(x)))) : 0;
    if (largest == 0) return true;
    if (!wb_failed())
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s is %s in the %s, but the model was made without it",
                      s->file->path, wb_origin_text(e->record, e->path),
                      wb_sizes_text(e->record->ndim, e->record->sizes), s->noun);
    return false;
}

/* The array for a place, of its type, on its device. */
static wb_array *array_for(const loading *l, const entry *e) {
    const wb_array *x = *e->slot;
    if (!is_false(e->record)) return wb_record_array_like(l->source->file, e->record, x);
    const wb_device *device = wb_device_of(x);
    wb_array *zeros = wb_full_make(x->dtype, 0, x->ndim, x->sizes);
    return zeros && device ? wb_to(device, zeros, .eltype = WB_ELTYPE_PRESERVE) : zeros;
}

/* The first entry, or NULL. */
static const entry *entry_tied_to(const loading *l, const wb_array *x) {
    const int64_t first = wb_ties_find(&l->arrays, x);
    return first >= 0 ? &l->entries[first] : NULL;
}

static bool same_bytes(wb_array *a, wb_array *b) {
    wb_array *x = wb_cpu(a), *y = wb_cpu(b);
    const void *p = wb_read_begin(x), *q = p ? wb_read_begin(y) : NULL;
    const bool same =
        q && memcmp(p, q, (size_t)wb_count(x) * wb_dtype_size((wb_dtype)x->dtype)) == 0;
    if (q) wb_read_end(y);
    if (p) wb_read_end(x);
    return same;
}

/* Places that are tied can't get two values. */
static bool ties_agree(const loading *l, int64_t i) {
    const entry *e = &l->entries[i], *first = *e->slot ? entry_tied_to(l, *e->slot) : NULL;
    if (!first || first == e || (first->record == e->record && *first->slot == *e->slot))
        return true;
    if (wb_count(*e->slot) == 0) return true;
    wb_array *a = array_for(l, first), *b = array_for(l, e);
    a = a && b ? wb_through_memory(*first->slot, a, *e->slot) : NULL;
    if (a && same_bytes(a, b)) return true;
    if (!wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: %s and %s are one array in the model, but differ in the %s",
                      l->source->file->path, first->path, e->path, l->source->noun);
    return false;
}

/* ---- planning ---- */

static bool add_entry(loading *l, const char *path, wb_array **slot, const wb_record *record) {
    if (!WB_GROW(l->entries, l->count, l->capacity) || !wb_ties_add(&l->arrays, *slot))
        return false;
    const char *copy = wb_arena_text(&l->arena, path, strlen(path));
    if (copy) l->entries[l->count++] = (entry){copy, slot, record};
    return copy != NULL;
}

static bool takes_part(const loading *l, const char *path) {
    if (!l->desc->filter) return true;
    wb_user_call call;
    wb_user_call_begin(&call, ".filter");
    const bool takes = l->desc->filter(l->desc->user, path);
    return wb_user_call_end(&call, "wb_load") && takes;
}

static bool plan_next(loading *l, const char *path, wb_array **slot, bool trainable) {
    const wb_record *list = l->source->root;
    if (!trainable || !*slot || entry_tied_to(l, *slot)) return true;
    if (l->next == list->count) {
        (void)wb_fail(WB_ERROR_SHAPE, "%s: the list of %lld arrays ends before %s",
                      l->source->file->path, (long long)list->count, path);
        return false;
    }
    const wb_record *r = wb_flux_look(list->children[l->next++]);
    return !takes_part(l, path) || add_entry(l, path, slot, r);
}

/* `bias = false`, which files of arrays alone leave out. */
static const wb_record *absent_bias(loading *l, const wb_path *place) {
    static const wb_record none = {.kind = WB_RECORD_BOOL};
    const wb_format *format = l->source->file->format;
    const bool is_bias = place->name && strcmp(place->name, "bias") == 0;
    char text[WB_PATH_BYTES];
    const bool may_be = is_bias && format && !format->has_values && !l->source->needs_biases;
    return may_be && find(l, place->outer, text) ? &none : NULL;
}

static bool plan_place(wb_visitor *visitor, const wb_path *place, wb_array **slot, bool trainable) {
    loading *l = (loading *)(void *)visitor;
    char path[WB_PATH_BYTES], there[WB_PATH_BYTES];
    wb_path_text(place, path, sizeof path);
    l->is_left_out = false;
    if (l->in_order) return plan_next(l, path, slot, trainable);
    if (!takes_part(l, path)) return true;
    const wb_record *r = find(l, place, there);
    if (wb_failed()) return false;
    if (l->is_left_out) return true;
    if (*slot && !r) r = absent_bias(l, place);
    if (*slot && !r) r = wb_record_find(l->source->file, l->source->root, there);
    if (*slot && !r) wb_advise_on_name(l->source, there);
    if (*slot) return r && add_entry(l, path, slot, r);
    return !r || r->kind != WB_RECORD_ARRAY || add_entry(l, path, slot, r);
}

static bool check_entries(const loading *l) {
    for (int64_t i = 0; i < l->count; i++) {
        const entry *e = &l->entries[i];
        if (*e->slot ? !fits(l, e) : !may_be_absent(l, e)) return false;
    }
    for (int64_t i = 0; i < l->count; i++)
        if (!ties_agree(l, i)) return false;
    return true;
}

/* ---- what no place takes ---- */

static int by_address(const void *a, const void *b) {
    const uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return (left > right) - (left < right);
}

typedef struct extras {
    const loading *loading;
    uintptr_t *taken; /* addresses of records, sorted */
    int64_t budget;   /* back-references may repeat what is there without end */
    int64_t count;    /* arrays that .partial passes over */
    char first[WB_PATH_BYTES];
} extras;

/* Calls for all arrays below r; false: one is left over, and the error says which. */
static bool all_taken(extras *x, const wb_record *place, const wb_path *path) {
    const loading *l = x->loading;
    const wb_record *r = wb_flux_look(place);
    const wb_layer_class *k = wb_flux_class(r);
    const uintptr_t address = (uintptr_t)r;
    if (x->budget-- <= 0) return true;
    for (int64_t i = 0; i < r->count; i++) {
        const wb_path inner = {.outer = path, .name = wb_flux_field(r, i), .index = i + 1};
        if (k && !wb_class_field(k, inner.name)) continue; /* the state of an RNG */
        if (!wb_takes_layer(&l->alignment, r, i, &inner)) continue;
        if (!all_taken(x, r->children[i], &inner)) return false;
    }
    if (r->kind != WB_RECORD_ARRAY) return true;
    if (l->count && bsearch(&address, x->taken, (size_t)l->count, sizeof address, by_address))
        return true;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    if (!takes_part(l, text)) return true;
    if (l->desc->partial) {
        if (x->count++ == 0) (void)snprintf(x->first, sizeof x->first, "%s", text);
        return true;
    }
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: the model has no array for %s%s%s; .partial leaves out such arrays",
                  l->source->file->path, wb_origin_text(r, text), r->ndim ? " " : ", a number",
                  r->ndim ? wb_sizes_text(r->ndim, r->sizes) : "");
    return false;
}

/* Tells which arrays .partial leaves out. If a place becomes zeros in the same load, perhaps one of
 * them is its array under another name. */
static void tell_extras(const extras *x) {
    const loading *l = x->loading;
    const entry *zeros = NULL;
    for (int64_t i = 0; i < l->count && !zeros; i++)
        if (is_false(l->entries[i].record)) zeros = &l->entries[i];
    if (x->count > 0 && zeros)
        wb_log_line(WB_LOG_WARN,
                    "%s: the %s has no %s, which becomes zeros, and no place of the model takes %s",
                    l->source->file->path, l->source->noun, zeros->path, x->first);
    if (x->count > 0)
        wb_log_line(WB_LOG_INFO, "%s: .partial passes over %lld arrays, the first is %s",
                    l->source->file->path, (long long)x->count, x->first);
}

static bool check_extras(const loading *l) {
    enum { MOST_WALKED = 1 << 24 };
    extras x = {.loading = l, .budget = MOST_WALKED};
    x.taken = wb_alloc_list(l->count + 1, sizeof *x.taken);
    if (!x.taken) return false;
    for (int64_t i = 0; i < l->count; i++) x.taken[i] = (uintptr_t)l->entries[i].record;
    if (l->count) qsort(x.taken, (size_t)l->count, sizeof *x.taken, by_address);
    const bool good = all_taken(&x, l->source->root, NULL);
    if (good) tell_extras(&x);
    wb_release(x.taken);
    return good;
}

/* ---- loading ---- */

static wb_array *load_leaf(void *user, const char *path, wb_array *x) {
    const loading *l = user;
    (void)path;
    const entry *e = entry_tied_to(l, x);
    if (!e) return x;
    wb_array *y = array_for(l, e);
    return y ? wb_through_memory(*e->slot, y, x) : NULL;
}

wb_status wb_load_plan(const wb_source *source, const wb_load_desc *desc, wb_exchange *exchange) {
    loading l = {
        .visitor = {.array = plan_place, .everywhere = true}, .source = source, .desc = desc};
    l.in_order = wb_is_list_of_arrays(source->root);
    l.alignment = (wb_alignment){.filter = desc->layers, .user = desc->user, .source = source};
    const bool good = wb_model_evaluate(desc->model) == WB_OK &&
                      wb_visit(&l.visitor, desc->model) && !wb_failed() && check_entries(&l) &&
                      check_extras(&l) && wb_exchange_walk(exchange, load_leaf, &l, desc->model);
    wb_release(l.entries);
    wb_ties_release(&l.arrays);
    wb_arena_release(&l.arena);
    wb_alignment_release(&l.alignment);
    if (good) return WB_OK;
    return wb_failed() ? wb_error_status() : WB_ERROR_MEMORY;
}

/* Plans what the places of the model will hold, and puts it there. */
wb_status wb_load_source(const wb_source *source, const wb_load_desc *desc) {
    wb_exchange exchange = {.count = 0};
    if (!wb_scope_begin()) return wb_error_status();
    wb_status status = wb_load_plan(source, desc, &exchange);
    if (status == WB_OK) status = wb_exchange_evaluate(&exchange);
    wb_exchange_end(&exchange, status == WB_OK);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

/* ---- the public functions ---- */

/* The child of r that the path begins with: by its name, by the name of a field that Flux gives it,
 * or by its number; the longest one that fits. */
static const wb_record *step(const wb_record *r, const char **path) {
    const wb_record *found = NULL;
    size_t best = 0;
    for (int64_t i = 0; i < r->count; i++) {
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
        const char *name = wb_flux_field(r, i), *names[] = {name ? name : number, number};
        for (int k = 0; k < 2; k++) {
            const size_t length = strlen(names[k]);
            if (strncmp(*path, names[k], length) != 0) continue;
            if (((*path)[length] && (*path)[length] != '.') || (found && length <= best)) continue;
            found = r->children[i], best = length;
        }
    }
    if (found) *path += best + ((*path)[best] == '.');
    return found ? wb_flux_look(found) : NULL;
}

/* The record at a path of a message, which leaves out wrappers and uses the names of Flux's fields;
 * NULL: there is none. */
static const wb_record *record_at(const wb_record *r, const char *path) {
    while (r && *path) r = step(r, &path);
    return r;
}

static bool has_name(const wb_record *root, const char *name) {
    for (int64_t i = 0; i < root->count && root->names; i++)
        if (strcmp(root->names[i], name) == 0) return true;
    return false;
}

/* The name that a model has in a file, or its Flux.state. */
static const char *usual_key(const wb_record *root) {
    return !has_name(root, "model") && has_name(root, "model_state") ? "model_state" : "model";
}

const wb_record *wb_model_record(const wb_file *file, const char *key) {
    const char *name = key ? key : usual_key(file->root);
    for (int64_t i = 0; i < file->root->count && file->root->names; i++)
        if (strcmp(file->root->names[i], name) == 0) return file->root->children[i];
    const wb_record *r = key ? record_at(file->root, key) : file->root;
    return r ? r : wb_record_find(file, file->root, key);
}

/* How far an attempt to load from one place of the file got. */
typedef struct attempt {
    bool may_be_whole; /* the root may be the model, too, as where names of PyTorch's begin with
                          "model." */
    bool is_renamed;   /* all rows of the table found what they name */
} attempt;

static wb_status load_from(const wb_load_desc *desc, const char *key, attempt *a) {
    wb_file *file = wb_open(desc->path);
    if (!file) return wb_error_status();
    wb_source source = {
        .file = file, .root = wb_flux_look(wb_model_record(file, key)), .noun = "file"};
    a->may_be_whole = !key && source.root && source.root != file->root;
    if (source.root && desc->from && !key) source.root = wb_torch_state_dict(source.root);
    const char *table = desc->rename;
    if (source.root && desc->from && !(table = wb_torch_table_for(file, source.root, desc)))
        source.root = NULL;
    if (source.root && table) source.root = wb_rename(file, source.root, table);
    a->is_renamed = table && source.root;
    source.is_renamed = a->is_renamed;
    const wb_status status = source.root ? wb_load_source(&source, desc) : wb_error_status();
    if (status != WB_OK && !key) wb_advise_on_keys(file);
    if (status == WB_OK && desc->from) wb_torch_tell_assumed(file, desc->model);
    if (file->rename_note && status == WB_OK)
        wb_log_line(WB_LOG_WARN, "%s: %s", file->path, file->rename_note);
    else if (file->rename_note)
        wb_error_add("%s", file->rename_note);
    wb_free(file);
    return status;
}

/* Fails with the error of the earlier attempt, unless the table was meant for this one. */
static wb_status load_whole(const wb_load_desc *desc, const attempt *below) {
    wb_error_aside first;
    attempt whole = {.may_be_whole = false};
    wb_error_put_aside(&first);
    const wb_status status = load_from(desc, "", &whole);
    if (status == WB_OK || (whole.is_renamed && !below->is_renamed)) return status;
    wb_clear_error();
    wb_error_bring_back(&first);
    wb_error_add("this is below the model's name in the file; .key = \"\" reads the whole file");
    return wb_error_status();
}

wb_status wb_load_make(wb_load_desc desc) {
    attempt below = {.may_be_whole = false};
    const uint64_t errors = wb_error_count();
    if (!wb_check_model("wb_load", desc.model) || !wb_check_from("wb_load", desc.from))
        return wb_error_status();
    const wb_status status = load_from(&desc, desc.key, &below);
    const bool is_misfit = status == WB_ERROR_ARGUMENT || status == WB_ERROR_SHAPE;
    const bool is_whole = is_misfit && below.may_be_whole && wb_error_count() != errors;
    return is_whole ? load_whole(&desc, &below) : status;
}

/* Holds the arrays that the scope is about to release. */
static bool hold_arrays(wb_file *file, const wb_tree_maker *maker) {
    file->held = wb_alloc_list(maker->count + 1, sizeof(wb_array *));
    if (!file->held) return false;
    for (int64_t i = 0; i < maker->count; i++)
        if (maker->met[i].record->kind == WB_RECORD_ARRAY)
            file->held[file->held_count++] = wb_hold(maker->met[i].record->array);
    return true;
}

/* name is for messages. */
static wb_file *state_of(const char *name, wb_layer *model, bool has_types) {
    if (!wb_check_model(name, model) || wb_model_evaluate(model) != WB_OK) return NULL;
    wb_file *file = wb_file_new(name);
    if (!file || !wb_scope_begin()) {
        wb_free(file);
        return NULL;
    }
    wb_tree_maker maker = {.has_types = has_types};
    file->root = wb_tree_of_layer(&maker, model);
    const bool good = file->root && hold_arrays(file, &maker);
    file->arena = maker.arena;
    maker.arena = (wb_arena){.blocks = NULL};
    wb_tree_maker_release(&maker);
    if (wb_scope_leave() == WB_OK && good) return file;
    wb_free(file);
    return NULL;
}

wb_file *wb_state(wb_layer *model) { return state_of("wb_state", model, false); }

wb_status wb_load_from_make(wb_load_from_desc desc) {
    if (!wb_check_model("wb_load_from", desc.model) ||
        !wb_may_use_any("wb_load_from", desc.source, "the source"))
        return wb_error_status();
    const bool is_file = wb_is_file(desc.source);
    union {
        const void *from;
        void *to; /* its arrays are held, and it is not changed */
    } given = {.from = desc.source};
    wb_file *file = is_file ? given.to : state_of("wb_load_from", given.to, true);
    if (!file) return wb_error_status();
    const bool is_state = !file->map.bytes; /* an open file has its model at "model" */
    const wb_record *root = is_state ? file->root : wb_flux_look(wb_model_record(file, NULL));
    const wb_source source = {.file = file, .root = root, .noun = "source"};
    const wb_status status = wb_load_source(&source, &(wb_load_desc){.model = desc.model,
                                                                     .filter = desc.filter,
                                                                     .layers = desc.layers,
                                                                     .user = desc.user,
                                                                     .partial = desc.partial});
    if (!is_file) wb_free(file);
    return status;
}
