/* Appends to a block of memory that grows, or to a file, by the same calls. After a failure nothing
 * more is added, and wb_text_status reports it. */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static void fail(wb_text *text) {
    text->failed = true;
    if (text->file)
        (void)wb_fail(WB_ERROR_IO, "%s: cannot be written: %s", text->path, strerror(errno));
    else
        (void)wb_fail(WB_ERROR_MEMORY, "out of memory: a text of %zu bytes could not grow",
                      text->size);
}

/* Room for more bytes, and for the zero byte at the end. */
static bool reserve(wb_text *text, size_t more) {
    int64_t capacity = (int64_t)text->capacity;
    if (more >= (size_t)PTRDIFF_MAX - text->size) return false;
    if (!wb_grow_list((void **)&text->data, &capacity, 1, (int64_t)(text->size + more + 1)))
        return false;
    text->capacity = (size_t)capacity;
    return true;
}

void wb_text_bytes(wb_text *text, const void *bytes, size_t size_bytes) {
    if (text->failed) return;
    errno = 0;
    const bool good = text->file ? fwrite(bytes, 1, size_bytes, text->file) == size_bytes
                                 : reserve(text, size_bytes);
    if (!good) {
        fail(text);
        return;
    }
    if (!text->file) {
        if (size_bytes) memcpy(text->data + text->size, bytes, size_bytes);
        text->data[text->size + size_bytes] = 0;
    }
    text->size += size_bytes;
}

void wb_text_put(wb_text *text, const char *string) { wb_text_bytes(text, string, strlen(string)); }

void wb_text_byte(wb_text *text, char byte) { wb_text_bytes(text, &byte, 1); }

static int print_to_memory(wb_text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static int print_to_memory(wb_text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && !reserve(text, (size_t)length)) length = -1;
    if (length >= 0) length = vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
    va_end(again);
    return length;
}

void wb_text_add(wb_text *text, const char *format, ...) {
    if (text->failed) return;
    va_list arguments;
    va_start(arguments, format);
    errno = 0;
    const int length = text->file ? vfprintf(text->file, format, arguments)
                                  : print_to_memory(text, format, arguments);
    va_end(arguments);
    if (length < 0)
        fail(text);
    else
        text->size += (size_t)length;
}

wb_status wb_text_status(const wb_text *text) {
    return !text->failed ? WB_OK : text->file ? WB_ERROR_IO : WB_ERROR_MEMORY;
}

void wb_text_release(wb_text *text) {
    wb_release(text->data);
    *text = (wb_text){.data = NULL};
}
