/* safetensors: texts about the file, and which arrays are in several places. */
#include <string.h>

#include "formats/safetensors.h"

bool wb_safetensors_has_shared(const wb_flat *flat) {
    for (int64_t i = 0; i < flat->count; i++)
        if (flat->entries[i].same_as) return true;
    return false;
}

void wb_safetensors_write_shared(wb_text *out, const wb_flat *flat) {
    const char *before = "{";
    for (int64_t i = 0; i < flat->count; i++) {
        if (!flat->entries[i].same_as) continue;
        wb_text_put(out, before);
        wb_json_quote(out, flat->entries[i].path);
        wb_text_byte(out, ':');
        wb_json_quote(out, flat->entries[i].same_as);
        before = ",";
    }
    wb_text_put(out, "}");
}

static bool has_zero(const wb_json *member) {
    return strlen(member->name) != member->name_bytes || !wb_json_text(member);
}

static bool add_text(wb_file *file, wb_record *map, const wb_json *item, int64_t offset) {
    wb_record *record = wb_record_new(&file->arena, WB_RECORD_TEXT);
    char *name = wb_arena_text(&file->arena, item->name, item->name_bytes),
         *text = wb_arena_text(&file->arena, item->text, (size_t)item->count);
    if (!record || !name || !text) return false;
    record->text = text, record->name = name, record->offset = offset;
    map->names[map->count] = name;
    map->children[map->count++] = record;
    return true;
}

wb_record *wb_safetensors_texts(wb_file *file, const wb_json *item, int64_t offset,
                                const char *skipped, const wb_json **text) {
    wb_record *map = wb_record_new(&file->arena, WB_RECORD_MAP);
    bool is_fine = item->kind == WB_JSON_OBJECT;
    const int64_t count = is_fine ? item->count : 0;
    if (!map || !wb_record_room(&file->arena, map, count, true)) return NULL;
    map->count = 0, map->offset = offset;
    for (int64_t i = 0; is_fine && i < count; i++) {
        const wb_json *one = &item->items[i];
        is_fine = one->kind == WB_JSON_TEXT && !has_zero(one);
        if (is_fine && strcmp(one->name, skipped) == 0)
            *text = one;
        else if (is_fine && !add_text(file, map, one, offset))
            return NULL;
    }
    if (!is_fine) {
        (void)wb_file_fault(file, offset, "a map of texts is expected");
        return NULL;
    }
    map->depth = map->count > 0;
    return map;
}

wb_status wb_safetensors_read_shared(wb_file *file, wb_flat *flat, const wb_json *item,
                                     int64_t offset) {
    bool is_fine = item->kind == WB_JSON_OBJECT;
    const char *damaged = "";
    for (int64_t i = 0; is_fine && i < item->count; i++) {
        const wb_json *value = &item->items[i];
        is_fine = value->kind == WB_JSON_TEXT && !has_zero(value);
        damaged = value->name;
        if (!is_fine) break;
        const char *path = wb_arena_text(&file->arena, value->name, value->name_bytes);
        const char *same = wb_arena_text(&file->arena, value->text, (size_t)value->count);
        if (!path || !same) return wb_error_status();
        if (!wb_flat_add(flat, (wb_flat_entry){.path = path, .same_as = same, .offset = offset}))
            return WB_ERROR_MEMORY;
    }
    return is_fine ? WB_OK
                   : wb_file_fault(file, offset, "the note about \"%.80s\" is damaged", damaged);
}
