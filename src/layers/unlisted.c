/* Members of the user's own structs that no row lists: a layer or an array there is neither trained
 * nor saved, so a warning is needed. */
#include <stdio.h>
#include <string.h>

#include "array/thread.h"
#include "base/memory.h"
#include "base/table.h"
#include "layers/kinds.h"
#include "platform/locks.h"

/* ---- live layers, so that a word can be told from a pointer to one ---- */

/* Open addressing; GONE was a layer. */
static struct {
    const wb_layer **slots;
    int64_t size, used; /* a power of two; slots that are not NULL */
} live;

static const wb_layer gone;
#define GONE (&gone)

/* Where it is, or the first empty slot. */
static const wb_layer **slot_of(const wb_layer *layer) {
    int64_t i = (int64_t)(wb_table_mix(0, (uint64_t)(uintptr_t)layer)) & (live.size - 1);
    while (live.slots[i] && live.slots[i] != layer) i = (i + 1) & (live.size - 1);
    return &live.slots[i];
}

/* A new table without those that are gone. */
static bool make_room(void) {
    const wb_layer **old = live.slots;
    const int64_t size = live.size;
    int64_t count = 0, wanted = 64;
    for (int64_t i = 0; i < size; i++) count += old[i] && old[i] != GONE;
    while (wanted < 4 * count) wanted *= 2;
    const wb_layer **slots = wb_alloc_list(wanted, sizeof *slots);
    if (!slots) return false;
    live.slots = slots, live.size = wanted, live.used = 0;
    for (int64_t i = 0; i < size; i++)
        if (old[i] && old[i] != GONE) *slot_of(old[i]) = old[i], live.used++;
    wb_release(old);
    return true;
}

bool wb_layer_begins(const wb_layer *layer) {
    wb_lock_take(WB_LOCK_OBJECTS);
    const bool has_room = 2 * live.used < live.size || make_room();
    if (has_room) *slot_of(layer) = layer, live.used++;
    wb_lock_give(WB_LOCK_OBJECTS);
    return has_room;
}

void wb_layer_ends(const wb_layer *layer) {
    wb_lock_take(WB_LOCK_OBJECTS);
    const wb_layer **slot = live.size ? slot_of(layer) : NULL;
    if (slot && *slot) *slot = GONE;
    wb_lock_give(WB_LOCK_OBJECTS);
}

static bool is_live(const wb_layer *layer) {
    wb_lock_take(WB_LOCK_OBJECTS);
    const bool is = live.size && layer != GONE && *slot_of(layer) == layer;
    wb_lock_give(WB_LOCK_OBJECTS);
    return is;
}

/* ---- what is listed ---- */

static bool is_own(const wb_layer_class *k) {
    for (int i = 0; wb_class_at(i); i++)
        if (wb_class_at(i) == k) return false;
    return true;
}

static size_t next_row(const wb_layer_class *k, size_t offset) {
    size_t next = k->size_bytes;
    for (int i = 0; i < k->field_count; i++)
        if (k->fields[i].offset > offset && k->fields[i].offset < next) next = k->fields[i].offset;
    return next;
}

size_t wb_field_bytes(const wb_layer_class *k, const wb_field *f) {
    const wb_kind_row *kind = wb_kind_of(f);
    if (f->kind == WB_FIELD_VALUE) return next_row(k, f->offset) - f->offset;
    return kind->bytes * (kind->count ? (size_t)kind->count(f) : 1);
}

/* Where the row ends that has the byte at offset; 0: none has. */
static size_t end_of_row(const wb_layer_class *k, size_t offset) {
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        const size_t end = f->offset + wb_field_bytes(k, f);
        if (f->offset <= offset && offset < end) return end;
    }
    const bool is_position =
        k->positions && offset >= k->positions && offset < k->positions + sizeof(wb_positions);
    return is_position ? k->positions + sizeof(wb_positions) : 0;
}

/* ---- looking ---- */

typedef struct looking {
    wb_visitor visitor;
    const char *function;
    bool also_values;
    wb_table arrays; /* of the model, by address */
    wb_layer **layers;
    int64_t count, capacity;
} looking;

static bool note_array(wb_visitor *v, const wb_path *path, wb_array **slot, bool trainable) {
    looking *l = (looking *)(void *)v;
    (void)path, (void)trainable;
    return !*slot || wb_table_add(&l->arrays, (uint64_t)(uintptr_t)*slot);
}

static bool note_layer(wb_visitor *v, const wb_path *path, wb_layer *layer) {
    looking *l = (looking *)(void *)v;
    (void)path;
    if (!is_own(layer->class_)) return true;
    if (!WB_GROW(l->layers, l->count, l->capacity)) return false;
    l->layers[l->count++] = layer;
    return true;
}

/* Each function warns once of each member of a class. */
static bool is_told(const looking *l, const wb_layer_class *k, size_t offset) {
    static uint64_t told[64];
    static int count;
    const uint64_t key = wb_table_mix(wb_table_mix((uint64_t)(uintptr_t)k, offset),
                                      (uint64_t)(uintptr_t)l->function);
    bool is = false;
    wb_lock_take(WB_LOCK_OBJECTS);
    for (int i = 0; i < count && !is; i++) is = told[i] == key;
    if (!is && count < 64) told[count++] = key;
    wb_lock_give(WB_LOCK_OBJECTS);
    return is;
}

/* The object that the word points to, if it is a live layer or array that the model does not have
 * elsewhere; text describes it. */
static bool points_out(const looking *l, const void *word, char *text, size_t bytes) {
    const wb_layer *layer = word;
    if (is_live(layer) && layer->stamp_ != l->visitor.stamp) {
        wb_layer_describe(layer, true, text, bytes);
        return true;
    }
    if (!wb_is_node(word) || wb_table_find(&l->arrays, (uint64_t)(uintptr_t)word) >= 0)
        return false;
    (void)snprintf(text, bytes, "an array %s", wb_text_of(word));
    return true;
}

static void tell(const looking *l, const wb_layer *layer, size_t offset) {
    const wb_layer_class *k = layer->class_;
    const char *bytes = (const char *)layer + offset;
    char text[200];
    const void *word = NULL;
    if (offset % sizeof word == 0 && offset + sizeof word <= k->size_bytes)
        memcpy(&word, bytes, sizeof word);
    if (word && points_out(l, word, text, sizeof text)) {
        if (!is_told(l, k, offset))
            wb_log_line(WB_LOG_WARN,
                        "%s: the member at byte %zu of %s, %s, is not listed in its WB_FUNCTOR: it "
                        "is neither trained nor saved; WB_FIXED_CHILD_FIELD or WB_FIXED_FIELD "
                        "says that this is meant",
                        l->function, offset, k->name, text);
    } else if (l->also_values && !is_told(l, k, offset))
        wb_log_line(WB_LOG_WARN,
                    "%s: the member at byte %zu of %s is not listed in its WB_FUNCTOR, and is not "
                    "saved; WB_VALUE_FIELD says that this is meant",
                    l->function, offset, k->name);
}

static void look_at(const looking *l, const wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    for (size_t at = sizeof(wb_layer); at < k->size_bytes;) {
        const size_t end = end_of_row(k, at);
        const bool is_zero = ((const char *)layer)[at] == 0;
        if (!end && !is_zero) tell(l, layer, at / sizeof(void *) * sizeof(void *));
        at = end ? end : is_zero ? at + 1 : (at / sizeof(void *) + 1) * sizeof(void *);
    }
}

/* A model of library layers alone needs no memory for this. If memory runs out, nothing is
 * checked. */
void wb_tell_unlisted(const char *function, wb_layer *model, bool also_values) {
    looking l = {
        .visitor = {.layer = note_layer}, .function = function, .also_values = also_values};
    const bool had_failed = wb_failed();
    bool good = wb_visit(&l.visitor, model);
    l.visitor.layer = NULL, l.visitor.array = note_array;
    if (good && l.count > 0) good = wb_visit(&l.visitor, model);
    for (int64_t i = 0; good && i < l.count; i++) look_at(&l, l.layers[i]);
    wb_table_release(&l.arrays);
    wb_release(l.layers);
    if (!had_failed) wb_clear_error();
}
