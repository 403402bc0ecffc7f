/* Files that are nowhere but in memory, whose every byte beyond the end a sanitizer sees; records
 * as text. */
#ifndef WB_TESTS_FORMATS_BSON_MEMORY_H
#define WB_TESTS_FORMATS_BSON_MEMORY_H

#include "formats/record.h"
#include "support/support.h"

/* bytes are copied; status is that of reading them. */
typedef struct memory_file {
    wb_file file;
    wb_status status;
} memory_file;

static inline void memory_open(memory_file *m, const void *bytes, size_t size) {
    unsigned char *copy = malloc(size ? size : 1);
    if (size) memcpy(copy, bytes, size);
    *m = (memory_file){.file = {.path = (char *)(uintptr_t) "memory",
                                .map = {copy, (int64_t)size},
                                .arena = {.limit_bytes = (int64_t)size * 64 + (1 << 20)}}};
    m->status = wb_format_bson.read(&m->file);
}

static inline void memory_close(memory_file *m) {
    wb_arena_release(&m->file.arena);
    free((void *)(uintptr_t)m->file.map.bytes);
}

/* ---- records as text ---- */

typedef struct shown {
    char text[1 << 14];
    size_t used;
} shown;

static inline void show_text(shown *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void show_text(shown *s, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(s->text + s->used, sizeof s->text - s->used, format, list);
    va_end(list);
    if (length > 0 && s->used + (size_t)length < sizeof s->text) s->used += (size_t)length;
}

static inline double number_at(const wb_record *r, int64_t i) {
    const char *p = (const char *)r->data + i * (int64_t)wb_dtype_size((wb_dtype)r->dtype);
    float f32;
    double f64;
    int32_t i32;
    int64_t i64;
    switch (r->dtype) {
    case WB_F32:
        return memcpy(&f32, p, sizeof f32), (double)f32;
    case WB_F64:
        return memcpy(&f64, p, sizeof f64), f64;
    case WB_I32:
        return memcpy(&i32, p, sizeof i32), (double)i32;
    case WB_I64:
        return memcpy(&i64, p, sizeof i64), (double)i64;
    case WB_F16:
        return *(const unsigned char *)p | ((const unsigned char *)p)[1] << 8;
    default:
        return *(const unsigned char *)p;
    }
}

static inline void show_array(shown *s, const wb_record *r) {
    const int64_t count = wb_count_sizes(r->ndim, r->sizes);
    show_text(s, "%s(", wb_dtype_name((wb_dtype)r->dtype));
    for (int d = 0; d < r->ndim; d++) show_text(s, "%s%lld", d ? " " : "", (long long)r->sizes[d]);
    show_text(s, ")");
    for (int64_t i = 0; i < count && i < 8; i++)
        show_text(s, "%s%g", i ? " " : "=", number_at(r, i));
    if (count > 8) show_text(s, " ...");
}

static inline void show_record(shown *s, const wb_record *r);

static inline void show_children(shown *s, const wb_record *r, const char *ends) {
    show_text(s, "%c", ends[0]);
    for (int64_t i = 0; i < r->count; i++) {
        if (i) show_text(s, ", ");
        if (r->names) show_text(s, "%s: ", r->names[i]);
        show_record(s, r->children[i]);
    }
    show_text(s, "%c", ends[1]);
}

/* {a: 1, b: [f32(2)=1 2, 'text'], c: Flux.Dense(...), d: ?Core.Ptr<8 bytes>} */
static inline void show_record(shown *s, const wb_record *r) {
    switch ((wb_record_kind)r->kind) {
    case WB_RECORD_NULL:
        show_text(s, "null");
        break;
    case WB_RECORD_BOOL:
        show_text(s, r->boolean ? "true" : "false");
        break;
    case WB_RECORD_INTEGER:
        show_text(s, "%lld", (long long)r->integer);
        break;
    case WB_RECORD_REAL:
        show_text(s, "%g~", r->real);
        break;
    case WB_RECORD_TEXT:
        show_text(s, "'%s'", r->text);
        break;
    case WB_RECORD_ARRAY:
        show_array(s, r);
        break;
    case WB_RECORD_LIST:
        show_children(s, r, "[]");
        break;
    case WB_RECORD_MAP:
        show_children(s, r, "{}");
        break;
    case WB_RECORD_OPAQUE:
        show_text(s, "?");
        if (r->data_bytes)
            show_text(s, "%s<%lld bytes>", r->type, (long long)r->data_bytes);
        else if (!r->count)
            show_text(s, "%s", r->type);
        if (r->data_bytes || !r->count) break; /* fall through */
    default:
        show_text(s, "%s", r->type);
        show_children(s, r, "()");
    }
}

#endif
