/* A library that stands for a vendor's, as the test sees it: its file beside the fake driver's, and
 * its counters. */
#ifndef WB_TESTS_CUDA_STAND_IN_H
#define WB_TESTS_CUDA_STAND_IN_H

#include "gpu.h"

static char stand_in[1024];

/* after use_fake_driver */
static void use_stand_in(const char *file) {
    const char *driver = getenv(DRIVER_VARIABLE);
    const int folder = (int)(strrchr(driver, '/') - driver);
    (void)snprintf(stand_in, sizeof stand_in, "%.*s/%s", folder, driver, file);
}

static long *counter(const char *name) {
    void *library = dlopen(stand_in, RTLD_NOW | RTLD_LOCAL);
    long *found = library ? dlsym(library, name) : NULL;
    if (found) return found;
    (void)fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

#endif
