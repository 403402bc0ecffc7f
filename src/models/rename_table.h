/* Rename tables (weber/state.h describes their text): parsing, and matching names. */
#ifndef WB_MODELS_RENAME_TABLE_H
#define WB_MODELS_RENAME_TABLE_H

#include "formats/record.h"

enum { WB_RENAME_LAST = -1 };
enum { WB_RENAME_STARS = 8, WB_RENAME_BYTES = 4096 }; /* of a row; of a name, with its final 0 */

typedef struct wb_rename_row {
    const char *from, *to;      /* to NULL: names that match are left out */
    uint8_t order[WB_MAX_DIMS]; /* the new dimension i is the old one order[i] */
    uint8_t order_count;        /* 0: they stay where they are */
    uint8_t part, parts;        /* part 2/3: part 2, parts 3; parts 0: the whole array */
    int8_t along;               /* the dimension of the parts; WB_RENAME_LAST: the last one */
    bool is_flipped;            /* all dimensions but the last two run backwards */
    int8_t ones;                /* so many dimensions of size 1 are added at the end, or dropped */
    bool is_joined;             /* `to` is joined from parts; else a part of `from` is taken */
    bool is_pattern;            /* there are stars in from */
    bool is_literal;            /* to is in quotes: a star in it is an ordinary letter */
    bool is_used;
    int line;
} wb_rename_row;

typedef struct wb_rename_table {
    wb_arena arena;
    wb_rename_row *rows;
    int64_t count, capacity;
} wb_rename_table;

/* Parses text; WB_ERROR_FORMAT with the line. Release the table, also on failure. */
wb_status wb_rename_parse(wb_rename_table *table, const char *text);
void wb_rename_release(wb_rename_table *table);

/* The first row that matches the name, or the next one after `last` with the same left side; marks
 * it as used. to receives the new name. NULL: none matches, or, with an error, a name is too
 * long. */
wb_rename_row *wb_rename_find(wb_rename_table *table, const wb_rename_row *last, const char *name,
                              char to[WB_RENAME_BYTES]);

/* Whether the row matches such names; its own stars do not match as letters. */
bool wb_rename_row_takes(const wb_rename_row *row, const char *name);

#endif
