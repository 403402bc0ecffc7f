/* The numbers of an object that are saved beside its arrays: a table over a plain struct, which
 * `get` fills and `set` takes back. */
#ifndef WB_BASE_SAVED_H
#define WB_BASE_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wb_saved_kind {
    WB_SAVED_INTEGER, /* int64_t, or the bits of a uint64_t */
    WB_SAVED_REAL,    /* double */
    WB_SAVED_BOOL,
    WB_SAVED_TEXT /* char[WB_SAVED_TEXT_BYTES], never fixed */
} wb_saved_kind;

enum { WB_SAVED_TEXT_BYTES = 32 };

typedef struct wb_saved_number {
    const char *name;
    size_t offset;
    wb_saved_kind kind;
    bool is_fixed; /* a file with another number does not fit the object */
    bool is_new;   /* files of older versions lack it: it then keeps the value from get */
} wb_saved_number;

typedef struct wb_saved {
    const wb_saved_number *numbers;
    int count;
    size_t size_bytes; /* of the struct */
    void (*get)(const void *object, void *numbers);
    /* checks numbers from a file, which may be anything; NULL: all are possible */
    bool (*is_possible)(const void *object, const void *numbers);
    void (*set)(void *object, const void *numbers); /* cannot fail */
} wb_saved;

#define WB_SAVED_FIELD(type, field, kind)                                                          \
    { #field, offsetof(type, field), kind, false, false }
#define WB_SAVED_FIXED_FIELD(type, field, kind)                                                    \
    { #field, offsetof(type, field), kind, true, false }
#define WB_SAVED_NEW_FIELD(type, field, kind)                                                      \
    { #field, offsetof(type, field), kind, false, true }

#endif
