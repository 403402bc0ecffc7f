/* Rename tables (weber/state.h says what stands in them): text to rows, names to names. */
#ifndef WB_MODELS_RENAME_TABLE_H
#define WB_MODELS_RENAME_TABLE_H

#include "formats/record.h"

enum { WB_RENAME_STARS = 8, WB_RENAME_BYTES = 4096 }; /* of a row; of a name, with its end */
enum { WB_RENAME_PARTS = 64 };                        /* at most, of one array */

typedef struct wb_rename_row {
    const char *from, *to; /* to NULL: what it takes is left out */
    uint8_t reorder;       /* wb_reorder */
    uint8_t part, parts;   /* 2/3; parts 0: the whole array */
    bool is_joined;        /* `to` gets parts; else they are taken from `from` */
    bool is_pattern;       /* there are stars in from */
    bool is_literal;       /* to is in quotes: its stars are stars */
    bool is_used;
    int line;
} wb_rename_row;

typedef struct wb_rename_table {
    wb_arena arena;
    wb_rename_row *rows;
    int64_t count, capacity;
} wb_rename_table;

/* WB_ERROR_FORMAT with the line. To be released, also on failure. */
wb_status wb_rename_parse(wb_rename_table *table, const char *text);
void wb_rename_release(wb_rename_table *table);

/* The first row, or the first one behind another, that takes the name, marked as used; to receives
 * what it makes of it. NULL: none does, or an error: a name is too long. */
wb_rename_row *wb_rename_find(wb_rename_table *table, const wb_rename_row *behind, const char *name,
                              char to[WB_RENAME_BYTES]);

#endif
