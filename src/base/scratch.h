/* Buffers of the thread's own, released when it ends. They are not thread-local storage: dlopen,
 * and so Python, cannot open a library that has more than about a kilobyte of it, some of it
 * initial-exec. */
#ifndef WB_BASE_SCRATCH_H
#define WB_BASE_SCRATCH_H

#include <stddef.h>

typedef enum wb_scratch_use {
    WB_SCRATCH_SIZES,
    WB_SCRATCH_REASON,
    WB_SCRATCH_PREFERENCE,
    WB_SCRATCH_BACKEND,
    WB_SCRATCH_PATH,
    WB_SCRATCH_ORIGIN,
    WB_SCRATCH_COUNT
} wb_scratch_use;

enum { WB_SCRATCH_MOST = 4096 };

/* The buffer for this use: the same at every call, zeroed at first, of size_bytes, at most
 * WB_SCRATCH_MOST. Never NULL: where there is no memory left, all threads share one. */
char *wb_scratch(wb_scratch_use use, size_t size_bytes);

#endif
