/* Libraries that are opened at run time, because only some programs need them. */
#ifndef WB_BASE_LIBRARY_H
#define WB_BASE_LIBRARY_H

#include <weber/error.h>

typedef struct wb_library_function {
    const char *name;
    void *place; /* of the pointer to it */
} wb_library_function;

typedef struct wb_library {
    const char *const *names; /* of files that may be the library, ended by NULL */
    const char *name, *package;
    const wb_library_function *functions; /* ended by a name that is NULL */
    void *handle;                         /* NULL until it was opened */
} wb_library;

/* Opens the first file that is there and sets all functions; does nothing if that was done before.
 * The library stays open. Fails with WB_ERROR_UNSUPPORTED: "PATH: WHAT needs NAME (Debian:
 * PACKAGE)", without PATH where it is NULL. */
wb_status wb_library_open(wb_library *library, const char *path, const char *what);

#endif
