/* Python's pickles, as records. Nothing in them is executed: a pickle is a program for a machine
 * that builds values, and this one builds dictionaries, lists, tuples, numbers and texts; all else
 * that the program asks for goes to the caller, who makes a record of it or refuses. */
#ifndef WB_FORMATS_PICKLE_H
#define WB_FORMATS_PICKLE_H

#include "formats/record.h"

typedef struct wb_pickle {
    wb_file *file;              /* whose arena the records belong to */
    const unsigned char *bytes; /* at this offset in the file */
    int64_t size_bytes, offset;
    int64_t *end; /* if not NULL, set to the bytes up to its end, where others may follow */
    void *context;
    /* A function or class of that name ("torch._utils._rebuild_tensor_v2") is called with the
     * arguments, a list. NULL with the error recorded: it is refused. */
    wb_record *(*call)(const struct wb_pickle *pickle, const char *name, wb_record *arguments,
                       int64_t at);
    /* Objects of the class are read, as maps of their attributes; NULL: none is. */
    bool (*is_object)(const struct wb_pickle *pickle, const char *class_name);
    /* What the file keeps outside of the pickle. */
    wb_record *(*persistent)(const struct wb_pickle *pickle, wb_record *key, int64_t at);
} wb_pickle;

/* The value; NULL with the error recorded. Names of functions and classes that nobody calls are
 * opaque records. Tuples are lists; keys that are numbers become texts. */
wb_record *wb_pickle_read(const wb_pickle *pickle);

/* Records the error at an offset of the pickle; returns NULL. */
void *wb_pickle_fault(const wb_pickle *pickle, int64_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The opaque record of a function or class; its name in `type`. */
static inline bool wb_is_global(const wb_record *r) {
    return r->kind == WB_RECORD_OPAQUE && r->text && !*r->text;
}

#endif
