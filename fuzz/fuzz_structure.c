/* The text of a model's structure: terms or an error with its place; then a model of these terms
 * over arrays that fit them, as far as they are small, or an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/record.h"
#include "models/build.h"
#include "models/term.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST_NUMBERS = 1 << 12 };

static void demand(bool condition, const char *what) {
    if (condition) return;
    (void)fprintf(stderr, "not so: %s (%s)\n", what, wb_error_message());
    abort();
}
#define DEMAND(condition) demand(condition, #condition)

/* ---- terms ---- */

static void check_term(const wb_term *t, int depth) {
    int32_t count = 0;
    DEMAND(depth <= WB_TERM_DEPTH);
    DEMAND(t->kind != WB_TERM_PAIR || t->count == 2);
    DEMAND((t->kind != WB_TERM_NAME && t->kind != WB_TERM_CALL) || t->name);
    for (const wb_term *inner = t->first; inner; inner = inner->next, count++)
        check_term(inner, depth + 1);
    DEMAND(count == t->count);
}

/* ---- arrays for them ---- */

static wb_record *array_of(wb_arena *arena, int ndim, const int64_t *sizes) {
    static const float zeros[MOST_NUMBERS];
    wb_record *r = wb_record_new(arena, WB_RECORD_ARRAY);
    const int64_t count = wb_count_sizes(ndim, sizes);
    if (!r || count < 0 || count > MOST_NUMBERS)
        return r ? wb_record_new(arena, WB_RECORD_NULL) : r;
    r->dtype = WB_F32, r->ndim = (uint8_t)ndim;
    memcpy(r->sizes, sizes, (size_t)ndim * sizeof *sizes);
    r->data = zeros, r->data_bytes = count * 4;
    return r;
}

static int64_t small(const wb_term *t) {
    return t && t->kind == WB_TERM_INTEGER && t->integer > 0 && t->integer <= MOST_NUMBERS
               ? t->integer
               : 1;
}

/* The weight of a layer with in => out and, before it, the sizes of a kernel. */
static wb_record *weight_of(wb_arena *arena, const wb_term *call) {
    int64_t sizes[WB_MAX_DIMS] = {0};
    int ndim = 0;
    const wb_term *kernel = call->first, *pair = kernel;
    while (pair && pair->kind != WB_TERM_PAIR) pair = pair->next;
    const bool has_kernel = kernel && kernel != pair && kernel->kind == WB_TERM_TUPLE;
    for (const wb_term *t = has_kernel ? kernel->first : NULL; t && ndim < 4; t = t->next)
        sizes[ndim++] = small(t);
    const int64_t in = small(pair ? pair->first : NULL),
                  out = small(pair ? pair->first->next : NULL);
    sizes[ndim++] = has_kernel ? in : out;
    sizes[ndim++] = has_kernel ? out : in;
    return array_of(arena, ndim, sizes);
}

static wb_record *tree_of(wb_arena *arena, const wb_term *t);

/* The layers of a list: all terms but the settings before them. */
static wb_record *list_of(wb_arena *arena, const wb_term *t, int settings) {
    const int count = t->count > settings ? t->count - settings : 0;
    wb_record *list = wb_record_new(arena, WB_RECORD_LIST);
    if (!list || !wb_record_room(arena, list, count, false)) return NULL;
    const wb_term *inner = t->first;
    for (int i = 0; i < t->count - count; i++) inner = inner->next;
    for (int i = 0; i < count; i++, inner = inner->next)
        if (!(list->children[i] = tree_of(arena, inner))) return NULL;
    return list;
}

static wb_record *tree_of_class(wb_arena *arena, const wb_term *t, const wb_layer_class *k);

/* An array is a weight or has as many numbers as the layer has outputs or channels. */
static wb_record *field_of(wb_arena *arena, const wb_term *t, const wb_layer_class *k,
                           const wb_field *f) {
    const wb_field *settings[WB_MOST_SETTINGS];
    int positional;
    (void)wb_settings_in_text(k, settings, &positional);
    const wb_term *pair = t->first;
    while (pair && pair->kind != WB_TERM_PAIR) pair = pair->next;
    const int64_t out = small(pair ? pair->first->next : wb_term_at(t, 0));
    if (f->kind == WB_FIELD_LIST) return list_of(arena, t, positional);
    if (f->part) return tree_of_class(arena, t, f->part);
    if (f->kind == WB_FIELD_CHILD) return t->first ? tree_of(arena, t->first) : NULL;
    return strcmp(f->name, "weight") == 0 ? weight_of(arena, t) : array_of(arena, 1, &out);
}

static wb_record *tree_of_class(wb_arena *arena, const wb_term *t, const wb_layer_class *k) {
    wb_record *map = wb_record_new(arena, WB_RECORD_MAP);
    if (!map || !wb_record_room(arena, map, k->field_count, true)) return NULL;
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        const bool is_setting = wb_field_is_setting(f);
        wb_record *r = is_setting || f->fixed ? NULL : field_of(arena, t, k, f);
        map->names[i] = is_setting ? "" : f->name;
        map->children[i] = r ? r : wb_record_new(arena, WB_RECORD_BOOL);
        if (!map->children[i]) return NULL;
    }
    return map;
}

static wb_record *tree_of(wb_arena *arena, const wb_term *t) {
    const wb_layer_class *k = t->kind == WB_TERM_CALL ? wb_class_named(t->name) : NULL;
    return k ? tree_of_class(arena, t, k) : list_of(arena, t, 0);
}

/* ---- the model ---- */

static void drop_reference(void *file) { ((wb_file *)file)->refs--; }

static void build(const char *text, const wb_structure *structure) {
    static const wb_class counted = {.name = "file", .free = drop_reference};
    static char path[] = "fuzz";
    wb_file file = {.object = {.klass = &counted}, .path = path, .refs = 1};
    wb_record *record = tree_of(&file.arena, structure->model);
    wb_layer *model = record ? wb_build(&file, "model", record, text) : NULL;
    DEMAND((model == NULL) == wb_failed());
    wb_free(model);
    DEMAND(file.refs == 1);
    wb_arena_release(&file.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    wb_arena arena = {.limit_bytes = (int64_t)size * 64 + (1 << 20)};
    wb_structure structure;
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, bytes, size);
    text[size] = 0;
    wb_clear_error();
    if (wb_structure_read(&structure, text, "fuzz", &arena) == WB_OK) {
        check_term(structure.model, 0);
        build(text, &structure);
    } else {
        DEMAND(strstr(wb_error_message(), "fuzz"));
    }
    DEMAND(arena.used_bytes <= arena.limit_bytes);
    wb_clear_error();
    wb_arena_release(&arena);
    free(text);
    return 0;
}
