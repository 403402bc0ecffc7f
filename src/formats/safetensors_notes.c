#include "formats/safetensors_notes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MOST_EXACT 9007199254740992 /* 2^53: what cJSON's doubles hold */

/* ---- writing ---- */

void wb_json_quote(FILE *stream, const char *text) {
    (void)fputc('"', stream);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            (void)fprintf(stream, "\\%c", c);
        else if (c < 0x20)
            (void)fprintf(stream, "\\u%04x", c);
        else
            (void)fputc(c, stream);
    }
    (void)fputc('"', stream);
}

static const char *const kind_names[] = {[WB_RECORD_LIST] = "list",
                                         [WB_RECORD_MAP] = "map",
                                         [WB_RECORD_STRUCT] = "struct",
                                         [WB_RECORD_OPAQUE] = "opaque"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

/* A name with dots becomes several on the way back, so that names can't be announced. */
static bool has_dots(const wb_record *r) {
    for (int64_t i = 0; i < r->count; i++)
        if (!r->names[i] || strchr(r->names[i], '.')) return true;
    return false;
}

static bool is_in_order(const wb_record *r) {
    for (int64_t i = 1; i < r->count; i++)
        if (wb_path_compare(r->names[i - 1], r->names[i]) >= 0) return false;
    return true;
}

static bool is_plain_map(const wb_record *r) {
    return r->kind == WB_RECORD_MAP && r->count > 0 && r->names && (has_dots(r) || is_in_order(r));
}

static bool needs_value(const wb_flat_entry *entry) {
    const wb_record *r = entry->record;
    if (entry->same_as || r->kind == WB_RECORD_ARRAY) return false;
    if (!wb_record_is_container(r)) return r->kind != WB_RECORD_OPAQUE;
    return entry->is_target || !is_plain_map(r);
}

bool wb_notes_have_values(const wb_flat *flat) {
    for (int64_t i = 0; i < flat->count; i++)
        if (needs_value(&flat->entries[i])) return true;
    return false;
}

bool wb_notes_have_shared(const wb_flat *flat) {
    for (int64_t i = 0; i < flat->count; i++)
        if (flat->entries[i].same_as) return true;
    return false;
}

static void write_container(FILE *stream, const wb_record *r) {
    (void)fprintf(stream, "{\"kind\":\"%s\"", kind_names[r->kind]);
    if (r->type) {
        (void)fputs(",\"type\":", stream);
        wb_json_quote(stream, r->type);
    }
    if (r->kind != WB_RECORD_LIST && r->names && r->count && !has_dots(r)) {
        for (int64_t i = 0; i < r->count; i++) {
            (void)fputs(i ? "," : ",\"names\":[", stream);
            wb_json_quote(stream, r->names[i]);
        }
        (void)fputc(']', stream);
    }
    (void)fputc('}', stream);
}

/* As JSON has it, with a point in every language; what is no JSON number in quotes. */
static void write_real(FILE *stream, double value) {
    uint64_t bits;
    char text[40];
    memcpy(&bits, &value, sizeof bits);
    (void)snprintf(text, sizeof text, "%.17g", value);
    if (isnan(value))
        (void)fprintf(stream, "{\"real\":\"nan:%016" PRIx64 "\"}", bits);
    else if (isinf(value))
        (void)fprintf(stream, "{\"real\":\"%s\"}", text);
    else {
        for (char *at = text; *at; at++)
            if (!strchr("+-.0123456789e", *at)) *at = '.';
        (void)fprintf(stream, "{\"real\":%s}", text);
    }
}

static void write_value(FILE *stream, const wb_record *r) {
    switch ((wb_record_kind)r->kind) {
    case WB_RECORD_BOOL:
        (void)fputs(r->boolean ? "true" : "false", stream);
        break;
    case WB_RECORD_INTEGER:
        (void)fprintf(stream,
                      r->integer > -MOST_EXACT && r->integer < MOST_EXACT
                          ? "%" PRId64
                          : "{\"integer\":\"%" PRId64 "\"}",
                      r->integer);
        break;
    case WB_RECORD_REAL:
        write_real(stream, r->real);
        break;
    case WB_RECORD_TEXT:
        wb_json_quote(stream, r->text);
        break;
    case WB_RECORD_NULL:
    case WB_RECORD_ARRAY:
        (void)fputs("null", stream);
        break;
    default:
        write_container(stream, r);
    }
}

static bool is_utf8(const char *text) { return !text || wb_utf8_fault(text, strlen(text)) < 0; }

wb_status wb_notes_write_values(FILE *stream, const wb_flat *flat, const char *path) {
    const char *before = "{";
    for (int64_t i = 0; i < flat->count; i++) {
        const wb_flat_entry *entry = &flat->entries[i];
        if (!needs_value(entry)) continue;
        if (!is_utf8(entry->record->text) || !is_utf8(entry->record->type))
            return wb_fail(WB_ERROR_ARGUMENT, "%s: the text of \"%.200s\" is no UTF-8", path,
                           entry->path);
        (void)fputs(before, stream);
        wb_json_quote(stream, entry->path);
        (void)fputc(':', stream);
        write_value(stream, entry->record);
        before = ",";
    }
    (void)fputs("}", stream);
    return WB_OK;
}

void wb_notes_write_shared(FILE *stream, const wb_flat *flat) {
    const char *before = "{";
    for (int64_t i = 0; i < flat->count; i++) {
        if (!flat->entries[i].same_as) continue;
        (void)fputs(before, stream);
        wb_json_quote(stream, flat->entries[i].path);
        (void)fputc(':', stream);
        wb_json_quote(stream, flat->entries[i].same_as);
        before = ",";
    }
    (void)fputs("}", stream);
}

/* ---- reading ---- */

#ifdef WEBER_CJSON

#include <cjson/cJSON.h>

enum { BYTES_PER_VALUE = 4, VALUES_AT_LEAST = 64 };

/* What cJSON lets pass or answers with much memory, found in one pass without any. */
typedef struct scan {
    const char *text;
    size_t size, at;
    int depth, most_depth;
    size_t values;
} scan;

static const char *scan_string(scan *s) {
    for (s->at++; s->at < s->size; s->at++) {
        const char c = s->text[s->at];
        if (c == '"') return NULL;
        if ((unsigned char)c < 0x20) return "a control character in a text";
        if (c != '\\') continue;
        if (++s->at + 4 < s->size && memcmp(s->text + s->at, "u0000", 5) == 0)
            return "a zero character in a text";
    }
    return "a text without end";
}

static const char *scan_text(scan *s) {
    const int64_t fault = wb_utf8_fault(s->text, s->size);
    if (fault >= 0) {
        s->at = (size_t)fault;
        return "a byte that is no UTF-8";
    }
    for (; s->at < s->size; s->at++) {
        const char c = s->text[s->at];
        const char *what = c == '"' ? scan_string(s) : NULL;
        if (what) return what;
        if (c == '{' || c == '[') s->depth++;
        if ((c == '}' || c == ']') && --s->depth < 0) return "a bracket too many";
        if (s->depth > s->most_depth) return "brackets nested too deep";
        s->values += c == ',' || c == '[' || c == '{';
        if (c == 0) return "a zero byte";
    }
    if (s->values > VALUES_AT_LEAST + s->size / BYTES_PER_VALUE) return "too many values";
    return s->depth ? "a bracket without end" : NULL;
}

cJSON *wb_json_parse(const wb_file *file, const char *text, size_t size_bytes, int64_t offset,
                     int depth) {
    scan s = {.text = text, .size = size_bytes, .most_depth = depth};
    const char *what = scan_text(&s);
    if (what) {
        (void)wb_file_fault(file, offset + (int64_t)s.at, "%s, which is to be JSON", what);
        return NULL;
    }
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(text, size_bytes, &end, false);
    const bool has_end = end && end >= text && end <= text + size_bytes;
    while (json && has_end && end < text + size_bytes && strchr(" \t\r\n", *end)) end++;
    if (json && has_end && end == text + size_bytes) return json;
    cJSON_Delete(json);
    (void)wb_file_fault(file, offset + (has_end ? end - text : 0), "this is no JSON");
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

/* The names of an object are to differ; cJSON keeps all of them. */
static wb_status check_names(const wb_file *file, const wb_record *map, int64_t offset) {
    const char **names = wb_alloc((size_t)map->count * sizeof *names + 1);
    if (!names) return WB_ERROR_MEMORY;
    wb_status status = WB_OK;
    for (int64_t i = 0; i < map->count; i++) names[i] = map->names[i];
    qsort(names, (size_t)map->count, sizeof *names, by_name);
    for (int64_t i = 1; i < map->count && status == WB_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = wb_file_fault(file, offset, "\"%.80s\" is there twice", names[i]);
    wb_release(names);
    return status;
}

static bool skip(const cJSON *item, int count, wb_json_skipped *skipped) {
    for (int i = 0; i < count; i++) {
        if (skipped[i].text || strcmp(item->string, skipped[i].name) != 0) continue;
        skipped[i].text = item->valuestring;
        return true;
    }
    return false;
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

wb_record *wb_json_texts(wb_file *file, const cJSON *item, int64_t offset, int skip_count,
                         wb_json_skipped *skipped) {
    wb_record *map = wb_record_new(&file->arena, WB_RECORD_MAP);
    if (!map || !wb_record_room(&file->arena, map, cJSON_GetArraySize(item), true)) return NULL;
    map->count = 0, map->offset = offset;
    bool is_fine = cJSON_IsObject(item);
    for (const cJSON *text = item->child; is_fine && text; text = text->next) {
        is_fine = cJSON_IsString(text);
        if (is_fine && !skip(text, skip_count, skipped) && !add_text(file, map, text, offset))
            return NULL;
    }
    if (!is_fine) {
        (void)wb_file_fault(file, offset, "a map of texts was expected");
        return NULL;
    }
    map->depth = map->count > 0;
    return check_names(file, map, offset) == WB_OK ? map : NULL;
}

/* ---- values ---- */

static const char *text_in(const cJSON *item, const char *name) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, name));
}

static bool read_integer(const char *text, wb_record *r) {
    char back[32];
    r->kind = WB_RECORD_INTEGER;
    r->integer = strtoll(text, NULL, 10);
    (void)snprintf(back, sizeof back, "%" PRId64, r->integer);
    return strcmp(back, text) == 0;
}

static bool read_real(const cJSON *item, wb_record *r) {
    const char *text = cJSON_GetStringValue(item);
    r->kind = WB_RECORD_REAL;
    r->real = item->valuedouble;
    if (cJSON_IsNumber(item)) return true;
    if (!text) return false;
    r->real = *text == '-' ? -HUGE_VAL : HUGE_VAL;
    if (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0) return true;
    char *end;
    if (strlen(text) != 20 || strncmp(text, "nan:", 4) != 0) return false;
    const uint64_t bits = strtoull(text + 4, &end, 16);
    memcpy(&r->real, &bits, sizeof bits);
    return !*end && isnan(r->real);
}

static bool read_names(wb_file *file, const cJSON *item, wb_record *r) {
    if (!item) return true;
    const int count = cJSON_GetArraySize(item);
    r->names = wb_arena_take(&file->arena, (size_t)count * sizeof *r->names);
    if (!cJSON_IsArray(item) || !r->names) return false;
    for (const cJSON *name = item->child; name; name = name->next) {
        char *text = cJSON_IsString(name) ? copy(file, name->valuestring) : NULL;
        if (!text) return false;
        r->names[r->count++] = text;
    }
    return true;
}

static bool read_container(wb_file *file, const cJSON *item, wb_record *r) {
    const char *kind = text_in(item, "kind"), *type = text_in(item, "type");
    for (int i = 0; kind && i < KINDS; i++)
        if (kind_names[i] && strcmp(kind, kind_names[i]) == 0) r->kind = (uint8_t)i;
    if (r->kind == WB_RECORD_NULL) return false;
    if (type && !(r->type = copy(file, type))) return false;
    if (r->kind == WB_RECORD_LIST) return true;
    return read_names(file, cJSON_GetObjectItemCaseSensitive(item, "names"), r);
}

static bool read_value(wb_file *file, const cJSON *item, wb_record *r) {
    if (cJSON_IsNull(item)) return true;
    if (cJSON_IsBool(item)) {
        r->kind = WB_RECORD_BOOL;
        r->boolean = cJSON_IsTrue(item);
        return true;
    }
    if (cJSON_IsString(item)) {
        r->kind = WB_RECORD_TEXT;
        return (r->text = copy(file, item->valuestring)) != NULL;
    }
    if (cJSON_IsNumber(item)) {
        r->kind = WB_RECORD_INTEGER;
        return wb_json_integer(item, &r->integer);
    }
    if (!cJSON_IsObject(item)) return false;
    const char *integer = text_in(item, "integer");
    const cJSON *real = cJSON_GetObjectItemCaseSensitive(item, "real");
    if (integer) return read_integer(integer, r);
    return real ? read_real(real, r) : read_container(file, item, r);
}

static wb_status fault_of_value(const wb_file *file, const cJSON *item, int64_t offset) {
    if (wb_failed()) return wb_error_status();
    return wb_file_fault(file, offset, "the note about \"%.80s\" is not understood",
                         item->string ? item->string : "");
}

wb_status wb_notes_read_values(wb_file *file, wb_flat *flat, const cJSON *item, int64_t offset) {
    if (!cJSON_IsObject(item)) return fault_of_value(file, item, offset);
    for (const cJSON *value = item->child; value; value = value->next) {
        wb_record *record = wb_record_new(&file->arena, WB_RECORD_NULL);
        const char *path = copy(file, value->string);
        if (!record || !path) return wb_error_status();
        record->offset = offset;
        if (!read_value(file, value, record)) return fault_of_value(file, value, offset);
        if (!wb_flat_add(flat, (wb_flat_entry){.path = path, .record = record, .offset = offset}))
            return WB_ERROR_MEMORY;
    }
    return WB_OK;
}

wb_status wb_notes_read_shared(wb_file *file, wb_flat *flat, const cJSON *item, int64_t offset) {
    if (!cJSON_IsObject(item)) return fault_of_value(file, item, offset);
    for (const cJSON *value = item->child; value; value = value->next) {
        if (!cJSON_IsString(value)) return fault_of_value(file, value, offset);
        const char *path = copy(file, value->string), *same = copy(file, value->valuestring);
        if (!path || !same) return wb_error_status();
        if (!wb_flat_add(flat, (wb_flat_entry){.path = path, .same_as = same, .offset = offset}))
            return WB_ERROR_MEMORY;
    }
    return WB_OK;
}

#endif
