#include "program/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"

static bool reserve(wb_text *text, size_t more) {
    while (text->size + more + 1 > text->capacity) {
        int64_t capacity = (int64_t)text->capacity;
        if (!wb_grow_list((void **)&text->data, &capacity, 1, (int64_t)(text->size + more + 1)))
            return false;
        text->capacity = (size_t)capacity;
    }
    return true;
}

void wb_text_add(wb_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    if (text->failed || length < 0 || !reserve(text, (size_t)length))
        text->failed = true;
    else
        text->size += (size_t)vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
}

void wb_text_release(wb_text *text) {
    wb_release(text->data);
    *text = (wb_text){.data = NULL};
}

uint64_t wb_text_hash(uint64_t hash, const char *string) {
    if (hash == 0) hash = 0xCBF29CE484222325ull;
    for (const unsigned char *at = (const unsigned char *)string; *at; at++)
        hash = (hash ^ *at) * 0x100000001B3ull;
    return hash;
}
