/* A library that stands for a vendor's, as the test sees it: its file beside the fake driver's, and
 * its counters. */
#ifndef WB_TESTS_CUDA_STAND_IN_H
#define WB_TESTS_CUDA_STAND_IN_H

#include "gpu.h"

static char stand_in[1024];

/* The file's path; of the last call. */
static inline const char *stand_in_beside(const char *file) {
    static char path[1024];
    const char *driver = getenv(DRIVER_VARIABLE);
    const int folder = (int)(strrchr(driver, '/') - driver);
    (void)snprintf(path, sizeof path, "%.*s/%s", folder, driver, file);
    return path;
}

/* after use_fake_driver */
static void use_stand_in(const char *file) {
    (void)snprintf(stand_in, sizeof stand_in, "%s", stand_in_beside(file));
}

static long *counter_at(const char *path, const char *name) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    long *found = library ? dlsym(library, name) : NULL;
    if (found) return found;
    (void)fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

static long *counter(const char *name) { return counter_at(stand_in, name); }

/* Of another one. */
static inline long *counter_of(const char *file, const char *name) {
    return counter_at(stand_in_beside(file), name);
}

#endif
