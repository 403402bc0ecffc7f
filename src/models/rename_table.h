/* Rename tables (weber/state.h says what stands in them): text to rows, names to names. */
#ifndef WB_MODELS_RENAME_TABLE_H
#define WB_MODELS_RENAME_TABLE_H

#include "formats/record.h"

enum { WB_RENAME_LAST = -1 };
enum { WB_RENAME_STARS = 8, WB_RENAME_BYTES = 4096 }; /* of a row; of a name, with its end */

typedef struct wb_rename_row {
    const char *from, *to;      /* to NULL: what it takes is left out */
    uint8_t order[WB_MAX_DIMS]; /* the new dimension i is the old one order[i] */
    uint8_t order_count;        /* 0: they stay where they are */
    uint8_t part, parts;        /* 2/3; parts 0: the whole array */
    int8_t along;               /* the dimension of the parts; WB_RENAME_LAST: the last one */
    bool is_flipped;            /* all dimensions but the last two run backwards */
    bool is_joined;             /* `to` gets parts; else they are taken from `from` */
    bool is_pattern;            /* there are stars in from */
    bool is_literal;            /* to is in quotes: its stars are stars */
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

/* The first row that takes the name, or the next one after `last` with its left side, marked as
 * used; to receives what it makes of it. NULL: none does, or an error: a name is too long. */
wb_rename_row *wb_rename_find(wb_rename_table *table, const wb_rename_row *last, const char *name,
                              char to[WB_RENAME_BYTES]);

/* Whether the row takes such names; its stars do not count as letters. */
bool wb_rename_row_takes(const wb_rename_row *row, const char *name);

#endif
