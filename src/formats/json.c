/* Writing is a few lines here; cJSON reads. What cJSON accepts but Weber does not is checked here:
 * invalid UTF-8, text after the end, a name that appears twice. */
#include "formats/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

/* ---- writing ---- */

void wb_json_quote(wb_text *out, const char *text) {
    wb_text_byte(out, '"');
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            wb_text_add(out, "\\%c", c);
        else if (c < 0x20)
            wb_text_add(out, "\\u%04x", c);
        else
            wb_text_byte(out, *text);
    }
    wb_text_byte(out, '"');
}

bool wb_json_has_shared(const wb_flat *flat) {
    for (int64_t i = 0; i < flat->count; i++)
        if (flat->entries[i].same_as) return true;
    return false;
}

void wb_json_write_shared(wb_text *out, const wb_flat *flat) {
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

/* ---- reading ---- */

#ifdef WEBER_CJSON

#include <cjson/cJSON.h>

#define MOST_EXACT (1ll << 53)

/* cJSON does not say whether it ran out of memory or met a fault. It needs less than this for any
 * text: if this much can be allocated, the text is at fault. */
static bool has_memory(const wb_file *file, size_t size_bytes) {
    enum { TIMES = 32 };
    void *room = wb_alloc(wb_bytes((int64_t)size_bytes * TIMES));
    wb_release(room);
    if (!room)
        wb_error_add("reading the JSON of %.100s needs up to %d times its %zu bytes", file->path,
                     TIMES, size_bytes);
    return room != NULL;
}

cJSON *wb_json_parse(const wb_file *file, const char *text, size_t size_bytes, int64_t offset) {
    const int64_t fault = wb_utf8_fault(text, size_bytes);
    if (fault >= 0) {
        (void)wb_file_fault(file, offset + fault, "a byte is not valid UTF-8");
        return NULL;
    }
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(text, size_bytes, &end, false);
    const bool has_end = end && end >= text && end <= text + size_bytes;
    while (json && has_end && end < text + size_bytes && strchr(" \t\r\n", *end)) end++;
    if (json && has_end && end == text + size_bytes) return json;
    cJSON_Delete(json);
    if (json || has_memory(file, size_bytes))
        (void)wb_file_fault(file, offset + (has_end ? end - text : 0), "this is not valid JSON");
    return NULL;
}

bool wb_json_integer(const cJSON *item, int64_t *value) {
    if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) < (double)MOST_EXACT)) return false;
    *value = (int64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

static char *copy(wb_file *file, const char *text) {
    return wb_arena_text(&file->arena, text, strlen(text));
}

static int by_name(const void *a, const void *b) {
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

/* The names of an object must differ; cJSON accepts equal ones. */
static wb_status check_names(const wb_file *file, const wb_record *map, int64_t offset) {
    const char **names = wb_alloc_list(map->count + 1, sizeof *names);
    if (!names) return WB_ERROR_MEMORY;
    wb_status status = WB_OK;
    for (int64_t i = 0; i < map->count; i++) names[i] = map->names[i];
    qsort(names, (size_t)map->count, sizeof *names, by_name);
    for (int64_t i = 1; i < map->count && status == WB_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = wb_file_fault(file, offset, "the name \"%.80s\" appears twice", names[i]);
    wb_release(names);
    return status;
}

static bool add_text(wb_file *file, wb_record *map, const cJSON *item, int64_t offset) {
    wb_record *record = wb_record_new(&file->arena, WB_RECORD_TEXT);
    char *name = copy(file, item->string), *text = copy(file, item->valuestring);
    if (!record || !name || !text) return false;
    record->text = text, record->name = name, record->offset = offset;
    map->names[map->count] = name;
    map->children[map->count++] = record;
    return true;
}

wb_record *wb_json_texts(wb_file *file, const cJSON *item, int64_t offset, const char *skipped,
                         const char **text) {
    wb_record *map = wb_record_new(&file->arena, WB_RECORD_MAP);
    if (!map || !wb_record_room(&file->arena, map, cJSON_GetArraySize(item), true)) return NULL;
    map->count = 0, map->offset = offset;
    bool is_fine = cJSON_IsObject(item);
    for (const cJSON *one = item->child; is_fine && one; one = one->next) {
        is_fine = cJSON_IsString(one);
        if (is_fine && !*text && strcmp(one->string, skipped) == 0)
            *text = one->valuestring;
        else if (is_fine && !add_text(file, map, one, offset))
            return NULL;
    }
    if (!is_fine) {
        (void)wb_file_fault(file, offset, "a map of texts is expected");
        return NULL;
    }
    map->depth = map->count > 0;
    return check_names(file, map, offset) == WB_OK ? map : NULL;
}

static wb_status fault_of_tie(const wb_file *file, const cJSON *item, int64_t offset) {
    return wb_file_fault(file, offset, "the note about \"%.80s\" is damaged",
                         item->string ? item->string : "");
}

wb_status wb_json_read_shared(wb_file *file, wb_flat *flat, const cJSON *item, int64_t offset) {
    if (!cJSON_IsObject(item)) return fault_of_tie(file, item, offset);
    for (const cJSON *value = item->child; value; value = value->next) {
        if (!cJSON_IsString(value)) return fault_of_tie(file, value, offset);
        const char *path = copy(file, value->string), *same = copy(file, value->valuestring);
        if (!path || !same) return wb_error_status();
        if (!wb_flat_add(flat, (wb_flat_entry){.path = path, .same_as = same, .offset = offset}))
            return WB_ERROR_MEMORY;
    }
    return WB_OK;
}

#endif
