/* Texts and bytes in the making: in memory, or on their way into a file. What fails is kept, and
 * what is added later is left out, so that one question at the end is enough. A stream over memory
 * (open_memstream) cannot be asked: where its last allocation fails, closing it says that all is
 * well. */
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
    size_t size, capacity; /* bytes so far, those in the file, too */
    bool failed;           /* with an error recorded: what was added since is missing */
} wb_text;

/* Appends as printf would. Numbers that a locale may print in its own way (%f, %g) have no place in
 * kernel text. */
void wb_text_add(wb_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wb_text_put(wb_text *text, const char *string);
void wb_text_byte(wb_text *text, char byte);
void wb_text_bytes(wb_text *text, const void *bytes, size_t size_bytes);

/* WB_OK, or why something is missing. */
wb_status wb_text_status(const wb_text *text);
void wb_text_release(wb_text *text);

#endif
