/* Builders of texts and bytes, in memory or into a file. The first failure is remembered, and later
 * additions do nothing, so one check at the end is enough. open_memstream does not allow this: if
 * its last allocation fails, closing it still reports success. */
#ifndef WB_BASE_TEXT_H
#define WB_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weber/error.h>

typedef struct wb_text {
    FILE *file;            /* where the bytes go; NULL: they stay here */
    const char *path;      /* of the file, for messages */
    char *data;            /* in memory: ended by a zero byte once something was added */
    size_t size, capacity; /* size: bytes so far, including those in the file */
    bool failed;           /* not WB_OK: an error was recorded, and later text is missing */
} wb_text;

/* Appends as printf would. Do not use formats that depend on the locale (%f, %g) for kernel
 * text. */
void wb_text_add(wb_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wb_text_put(wb_text *text, const char *string);
void wb_text_byte(wb_text *text, char byte);
void wb_text_bytes(wb_text *text, const void *bytes, size_t size_bytes);

/* WB_OK, or why something is missing. */
wb_status wb_text_status(const wb_text *text);
void wb_text_release(wb_text *text);

#endif
