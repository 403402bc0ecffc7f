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

static wb_record *list_of(wb_arena *arena, const wb_term *t) {
    wb_record *list = wb_record_new(arena, WB_RECORD_LIST);
    if (!list || !wb_record_room(arena, list, t->count, false)) return NULL;
    int64_t i = 0;
    for (const wb_term *inner = t->first; inner; inner = inner->next)
        if (!(list->children[i++] = tree_of(arena, inner))) return NULL;
    return list;
}

static wb_record *tree_of(wb_arena *arena, const wb_term *t) {
    static const char *const names[] = {"weight", "bias", "layers"};
    const wb_term *pair = t->first;
    while (pair && pair->kind != WB_TERM_PAIR) pair = pair->next;
    const int64_t out = small(pair ? pair->first->next : NULL);
    wb_record *map = wb_record_new(arena, WB_RECORD_MAP);
    if (!map || !wb_record_room(arena, map, 3, true)) return NULL;
    for (int i = 0; i < 3; i++) map->names[i] = names[i];
    map->children[0] = weight_of(arena, t);
    map->children[1] = array_of(arena, 1, &out);
    map->children[2] = list_of(arena, t);
    return map->children[0] && map->children[1] && map->children[2] ? map : NULL;
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
