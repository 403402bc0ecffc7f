/* One input as a file with a path, for what reads files by name: it lies in memory. */
#ifndef WB_FUZZ_PATH_H
#define WB_FUZZ_PATH_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weber.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Valid until the next call. */
static inline const char *fuzz_path(const uint8_t *data, size_t size) {
    static char path[40];
    static int file = -1;
    if (file >= 0) (void)close(file);
    file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
    (void)snprintf(path, sizeof path, "/dev/fd/%d", file);
    return path;
}

static inline void fuzz_demand(bool condition, const char *what) {
    if (condition) return;
    (void)fprintf(stderr, "not so: %s (%s)\n", what, wb_error_message());
    abort();
}
#define DEMAND(condition) fuzz_demand(condition, #condition)

#endif
