/* Text in the making. */
#ifndef WB_PROGRAM_TEXT_H
#define WB_PROGRAM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wb_text {
    char *data; /* always ended by a zero byte once something was added */
    size_t size, capacity;
    bool failed; /* out of memory: what was added since is missing */
} wb_text;

/* Appends as printf would. Numbers that a locale may print in its own way (%f, %g) have no place in
 * kernel text. */
void wb_text_add(wb_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wb_text_release(wb_text *text);

/* FNV-1a over a string, continuing from hash (0: a new one). */
uint64_t wb_text_hash(uint64_t hash, const char *string);

#endif
