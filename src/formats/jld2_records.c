/* Records of a JLD2 file. While they are read, `number` is how many records there are in one, those
 * in two places counted twice: a list of two references to a list of two references, and so on, is
 * short in a file, but a walk over it takes for ever. */
#include <string.h>

#include "base/memory.h"
#include "formats/jld2.h"

enum { MOST_EXPANDED = 1 << 22 };

static void *take(wb_jld2 *r, int64_t bytes, int64_t offset) {
    enum { ROUNDED_BY = WB_ARENA_ALIGN };
    const wb_arena *arena = &r->file->arena;
    if (r->status != WB_OK) return NULL;
    if (arena->limit_bytes && bytes > arena->limit_bytes - arena->used_bytes - ROUNDED_BY) {
        wb_jld2_fault(r, offset,
                      "what it says needs more memory than a file of %lld bytes may take",
                      (long long)r->file->map.size_bytes);
        return NULL;
    }
    void *taken = wb_arena_take(&r->file->arena, wb_bytes(bytes));
    if (!taken) r->status = WB_ERROR_MEMORY;
    return taken;
}

void *wb_jld2_list(wb_jld2 *r, int64_t count, size_t item_bytes, int64_t offset) {
    int64_t bytes;
    if (__builtin_mul_overflow(count, (int64_t)item_bytes, &bytes)) bytes = INT64_MAX / 2;
    return take(r, bytes, offset);
}

const char *wb_jld2_copy(wb_jld2 *r, const void *text, int64_t size_bytes, int64_t offset) {
    char *copy = take(r, size_bytes + 1, offset);
    if (copy && size_bytes) memcpy(copy, text, (size_t)size_bytes);
    return copy;
}

wb_record *wb_jld2_make(wb_jld2 *r, wb_record_kind kind, int64_t offset) {
    wb_record *record = take(r, sizeof *record, offset);
    if (!record) return NULL;
    record->kind = (uint8_t)kind;
    record->offset = offset;
    record->number = 1;
    return record;
}

wb_record *wb_jld2_make_opaque(wb_jld2 *r, const char *before, const char *type, int64_t offset) {
    const size_t head = strlen(before), tail = strlen(type);
    char *text = take(r, (int64_t)(head + tail) + 1, offset);
    wb_record *record = text ? wb_jld2_make(r, WB_RECORD_OPAQUE, offset) : NULL;
    if (!record) return NULL;
    memcpy(text, before, head);
    memcpy(text + head, type, tail);
    record->type = text;
    return record;
}

wb_record *wb_jld2_begin(wb_jld2 *r, wb_record_kind kind, int64_t count, bool has_names,
                         int64_t offset) {
    wb_record *record = wb_jld2_make(r, kind, offset);
    if (!record) return NULL;
    record->children = wb_jld2_list(r, count, sizeof *record->children, offset);
    if (has_names) record->names = wb_jld2_list(r, count, sizeof *record->names, offset);
    if (r->status == WB_OK && r->depth == WB_RECORD_DEPTH)
        wb_jld2_fault(r, offset, "values may be nested at most %d deep", WB_RECORD_DEPTH);
    if (r->status != WB_OK) return NULL;
    record->count = count;
    r->depth++;
    return record;
}

bool wb_jld2_put(wb_jld2 *r, wb_record *parent, int64_t i, wb_record *child) {
    if (!child || r->status != WB_OK) return false;
    parent->children[i] = child;
    parent->number += child->number;
    if (child->depth >= parent->depth) parent->depth = child->depth + 1;
    if (parent->names && !child->name) child->name = parent->names[i];
    if (r->depth + child->depth > WB_RECORD_DEPTH)
        wb_jld2_fault(r, child->offset, "values may be nested at most %d deep", WB_RECORD_DEPTH);
    else if (parent->number > MOST_EXPANDED + r->file->map.size_bytes)
        wb_jld2_fault(r, parent->offset, "references repeat what is here more than %d times",
                      MOST_EXPANDED);
    return r->status == WB_OK;
}

wb_record *wb_jld2_end(wb_jld2 *r, wb_record *record) {
    if (r->status != WB_OK || !record) return NULL;
    r->depth--;
    return record;
}

bool wb_jld2_name(wb_jld2 *r, wb_record *list, const wb_record *names, int64_t offset) {
    const char **own = wb_jld2_list(r, list->count, sizeof *own, offset);
    if (!own) return false;
    for (int64_t i = 0; i < list->count; i++) {
        const wb_record *name = names->children[i];
        own[i] = name->kind == WB_RECORD_TEXT ? name->text : "";
        list->children[i]->name = own[i];
    }
    list->kind = WB_RECORD_MAP, list->names = own;
    return true;
}
