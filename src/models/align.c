/* A user's function says which layers take part in loading. The first such layer of the model's
 * list takes the first such layer of the file's list, and so on. This is worked out once for each
 * pair of lists. */
#include "models/align.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/user_call.h"
#include "base/memory.h"
#include "models/flux.h"

/* ---- what takes part ---- */

static const char *type_of(const wb_record *r) {
    const wb_record *inner = r ? wb_flux_look(r) : NULL;
    if (!inner) return NULL;
    const wb_layer_class *k = wb_flux_class(inner);
    return k ? k->name : inner->type;
}

/* The number that a child of a list is known by, from 1; 0: it has a name. */
static int64_t number_of(const wb_record *list, int64_t i) {
    if (!list->names) return i + 1;
    const char *name = list->names[i];
    const bool is_number = *name && name[strspn(name, "0123456789")] == 0 && strlen(name) < 10;
    return is_number ? strtoll(name, NULL, 10) : 0;
}

static bool asks(const wb_alignment *a, const wb_load_layer *layer) {
    wb_user_call call;
    wb_user_call_begin(&call, ".layers");
    const bool takes = a->filter(a->user, layer);
    return wb_user_call_end(&call, "wb_load") && takes;
}

/* True for an item of a list. Lists are called "layers", but so is the layer of a SkipConnection,
 * whose fields are not items. */
static bool is_item(const wb_record *r, int64_t i, const wb_path *path) {
    if (r->type) return false; /* a layer with its fields */
    if (number_of(r, i) > 0) return true;
    const char *list = path->outer ? path->outer->name : NULL;
    return list && strcmp(list, "layers") == 0 && strcmp(path->name, "layers") != 0;
}

bool wb_takes_layer(const wb_alignment *a, const wb_record *r, int64_t i, const wb_path *path) {
    const wb_record *child = wb_flux_look(r->children[i]);
    if (!a->filter || child->kind == WB_RECORD_ARRAY || !is_item(r, i, path)) return true;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    return asks(a, &(wb_load_layer){text, type_of(child), true});
}

static bool takes_item(const wb_alignment *a, const wb_path *path, int64_t i) {
    const wb_layer_item *item = &path->list->items[i];
    const wb_path own = {.outer = path->outer, .name = item->name, .index = i + 1};
    char text[WB_PATH_BYTES];
    if (!item->layer) return true;
    wb_path_text(&own, text, sizeof text);
    return asks(a, &(wb_load_layer){text, item->layer->class_->name, false});
}

/* ---- lists ---- */

static const wb_record *child_numbered(const wb_record *list, int64_t number) {
    for (int64_t i = 0; i < list->count; i++)
        if (number_of(list, i) == number) return list->children[i];
    return NULL;
}

/* The first number after `number` whose layer takes part; 0: there is none. Layers without arrays
 * may be missing in a file. */
static int64_t next_number(const wb_alignment *a, const wb_record *list, const char *source_path,
                           int64_t number) {
    int64_t last = 0;
    char text[WB_PATH_BYTES];
    for (int64_t i = 0; i < list->count; i++)
        if (number_of(list, i) > last) last = number_of(list, i);
    while (++number <= last) {
        (void)snprintf(text, sizeof text, "%.200s%s%lld", source_path, *source_path ? "." : "",
                       (long long)number);
        const char *type = type_of(child_numbered(list, number));
        if (asks(a, &(wb_load_layer){text, type, true})) return number;
    }
    return 0;
}

static bool fill(const wb_alignment *a, const wb_path *path, const char *source_path,
                 wb_aligned *lists) {
    int64_t number = 0;
    bool is_over = false;
    lists->places = wb_alloc((size_t)(path->list->count + 1) * sizeof *lists->places);
    for (int64_t i = 0; lists->places && i < path->list->count; i++) {
        if (!takes_item(a, path, i)) {
            lists->places[i] = WB_LEFT_OUT;
            continue;
        }
        number = is_over ? 0 : next_number(a, lists->source, source_path, number);
        is_over = number == 0;
        lists->places[i] = is_over ? WB_UNMATCHED : number;
    }
    return lists->places != NULL;
}

static wb_aligned *lists_of(wb_alignment *a, const wb_path *path, const wb_record *list,
                            const char *source_path) {
    for (int64_t i = 0; i < a->count; i++)
        if (a->lists[i].list == path->list && a->lists[i].source == list) return &a->lists[i];
    if (!WB_GROW(a->lists, a->count, a->capacity)) return NULL;
    wb_aligned *new = &a->lists[a->count];
    *new = (wb_aligned){.list = path->list, .source = list};
    if (!fill(a, path, source_path, new)) return NULL;
    a->count++;
    return new;
}

int64_t wb_align(wb_alignment *a, const wb_path *path, const wb_record *list,
                 const char *source_path) {
    char text[WB_PATH_BYTES];
    if (path->name) return takes_item(a, path, path->index - 1) ? path->index : WB_LEFT_OUT;
    const wb_aligned *lists = lists_of(a, path, list, source_path);
    const int64_t place = lists ? lists->places[path->index - 1] : WB_UNMATCHED;
    if (place != WB_UNMATCHED || wb_failed()) return place;
    wb_path_text(path, text, sizeof text);
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "%s: .layers chose fewer layers of %s in the %s than in the model: none is left for %s",
        a->source->file->path, *source_path ? source_path : "the list", a->source->noun, text);
    return WB_UNMATCHED;
}

void wb_alignment_release(wb_alignment *a) {
    for (int64_t i = 0; i < a->count; i++) wb_release(a->lists[i].places);
    wb_release(a->lists);
}
