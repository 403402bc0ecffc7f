/* A scan for one value of one table in a text of TOML: strings, true and false. All other bytes,
 * comments, order and spaces included, stay as they are and are not interpreted. Tables are
 * [headers]: dotted keys and tables in braces are not found. */
#ifndef WB_DEVICE_TOML_H
#define WB_DEVICE_TOML_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wb_toml {
    char *text; /* ended by 0; from wb_alloc, owned by the caller; edits replace it */
    size_t size_bytes;
    int broken_line;   /* line of a fault in the text; 0: no fault */
    const char *fault; /* what it is */
} wb_toml;

/* Scans the whole text. False: it has a fault, so that it is unclear where a value begins or
 * ends. */
bool wb_toml_check(wb_toml *toml);

bool wb_toml_has_table(const wb_toml *toml, const char *table);

typedef enum wb_toml_kind {
    WB_TOML_ABSENT,
    WB_TOML_STRING,
    WB_TOML_BOOL,
    WB_TOML_OTHER
} wb_toml_kind;

/* Writes the value to text, without quotes, or "true" or "false"; always ended by 0, cut if it is
 * too long. */
wb_toml_kind wb_toml_get(const wb_toml *toml, const char *table, const char *key, char *text,
                         size_t size_bytes);

/* Sets a string or a bool; adds its table if there is none. False: out of memory. */
bool wb_toml_set(wb_toml *toml, const char *table, const char *key, const char *value,
                 bool is_bool);

/* Removes the key's line. False: out of memory. */
bool wb_toml_remove(wb_toml *toml, const char *table, const char *key);

/* Adds the empty table, unless it is there. False: out of memory. */
bool wb_toml_add_table(wb_toml *toml, const char *table);

#endif
