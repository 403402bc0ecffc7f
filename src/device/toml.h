/* A scan for one value of one table in a text of TOML: strings, true and false. All other bytes,
 * comments, order and spaces included, stay as they are, and what they say is not looked at. Tables
 * are [headers]: dotted keys and tables in braces are not found. */
#ifndef WB_DEVICE_TOML_H
#define WB_DEVICE_TOML_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wb_toml {
    char *text; /* ended by 0; the caller's, got from wb_alloc; edits replace it */
    size_t size_bytes;
    int broken_line;   /* where the text has a fault; 0: nowhere */
    const char *fault; /* what it is */
} wb_toml;

/* Looks through the whole text. False: where something begins or ends cannot be told. */
bool wb_toml_check(wb_toml *toml);

bool wb_toml_has_table(const wb_toml *toml, const char *table);

typedef enum wb_toml_kind {
    WB_TOML_ABSENT,
    WB_TOML_STRING,
    WB_TOML_BOOL,
    WB_TOML_OTHER
} wb_toml_kind;

/* The value, into text: without quotes, "true" or "false"; always ended, cut where it is too
 * long. */
wb_toml_kind wb_toml_get(const wb_toml *toml, const char *table, const char *key, char *text,
                         size_t size_bytes);

/* Sets a string or a bool, with its table where there was none. False: out of memory. */
bool wb_toml_set(wb_toml *toml, const char *table, const char *key, const char *value,
                 bool is_bool);

/* Removes the key's line. False: out of memory. */
bool wb_toml_remove(wb_toml *toml, const char *table, const char *key);

/* Adds the empty table, unless it is there. False: out of memory. */
bool wb_toml_add_table(wb_toml *toml, const char *table);

#endif
