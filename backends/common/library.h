/* Vendors' libraries, opened at run time. */
#ifndef WB_COMMON_LIBRARY_H
#define WB_COMMON_LIBRARY_H

#include <pthread.h>

#include <weber/plugin.h>

typedef struct wb_library {
    const char *variable;     /* names the one file to open, whatever else there is */
    const char *const *names; /* else the first of these that opens; ended by NULL */
    const char *missing;      /* what to say where none is there */
} wb_library;

/* One function: its name in the library, and where its address belongs in a table of functions. */
typedef struct wb_symbol {
    const char *name;
    size_t offset;
} wb_symbol;

/* A handle for dlsym and dlclose; NULL with the reason. */
void *wb_library_open(const wb_library *library, char *reason, size_t reason_bytes);

/* True if all are there; else *missing is the name of one that is not. */
bool wb_library_find(void *handle, const wb_symbol *symbols, size_t count, void *table,
                     const char **missing);

/* What is opened once for the process: static wb_opened driver = WB_NOT_OPENED. */
typedef struct wb_opened {
    pthread_mutex_t lock;
    bool is_open;
} wb_opened;
#define WB_NOT_OPENED                                                                              \
    { PTHREAD_MUTEX_INITIALIZER, false }

/* True if `open` has succeeded, now or before; if it has only failed so far, it is called again.
 * Any number of threads. */
bool wb_library_open_once(wb_opened *opened, bool (*open)(char *reason, size_t reason_bytes),
                          char *reason, size_t reason_bytes);

/* True if the call returns when it is made in a forked copy of this process. For calls that may end
 * the process: two libraries that bring a Clang each over one libLLVM, as PoCL and AMD's code
 * generator do on Debian 12, end it when the second is loaded. */
bool wb_library_survives(void (*call)(void *context), void *context);

#endif
