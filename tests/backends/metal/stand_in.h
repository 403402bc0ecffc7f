/* The library that stands for Apple's, as tests see it: its file and its functions. */
#ifndef WB_TESTS_METAL_STAND_IN_H
#define WB_TESTS_METAL_STAND_IN_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/metal/fake.h"
#include "platform/process.h"

static fake_count_fn *fake_count_now;
static fake_fail_fn *fake_fail;
static fake_failed_fn *fake_failed;
static fake_remove_fn *fake_remove;
static fake_print_fn *fake_print_objects;

/* <build>/tests/backends/metal/fake_metal.so; lives for ever. */
static inline const char *fake_path(void) {
    static char path[1024];
    if (!wb_platform_program(path, sizeof path - 32)) path[0] = 0;
    for (int up = 0; up < 2 && strrchr(path, '/'); up++) *strrchr(path, '/') = 0;
    return strcat(path, "/metal/fake_metal.so");
}

static inline void *find_fake(const char *name) {
    static void *library;
    if (!library) library = dlopen(fake_path(), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (symbol) return symbol;
    (void)fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

static inline void find_fakes(void) {
    *(void **)&fake_count_now = find_fake("fake_count_now");
    *(void **)&fake_fail = find_fake("fake_fail");
    *(void **)&fake_failed = find_fake("fake_failed");
    *(void **)&fake_remove = find_fake("fake_remove");
    *(void **)&fake_print_objects = find_fake("fake_print_objects");
}

/* Puts it in the place of Apple's libraries, for this process and its children; before anything of
 * Weber. */
static inline void use_stand_in(void) {
    (void)setenv("WEBER_METAL_LIBRARY", fake_path(), 1);
    (void)setenv("WEBER_MPS_LIBRARY", fake_path(), 1);
    find_fakes();
}

#endif
