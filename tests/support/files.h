/* A folder of a test's own, and whole files.
 *
 *     cmocka_run_group_tests(tests, make_folder, drop_folder) */
#ifndef WB_TESTS_FILES_H
#define WB_TESTS_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scoped.h"

static char folder[64];

static inline int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weber-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int drop_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* In the folder; one of a few texts in turn. */
static inline const char *path_of(const char *name) {
    static char paths[8][192];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* All bytes, to be freed; NULL: there is no such file. */
static inline unsigned char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size + 1);
    if (bytes && fread(bytes, 1, *size, file) != *size) *size = 0;
    fclose(file);
    return bytes;
}

static inline void write_file(const char *path, const void *bytes, size_t size) {
    (void)unlink(path); /* a file that is cut and filled anew waits for the disk */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static inline void assert_same_files(const char *a, const char *b) {
    size_t na = 0, nb = 0;
    unsigned char *x = read_file(a, &na), *y = read_file(b, &nb);
    assert_non_null(x);
    assert_non_null(y);
    size_t i = 0;
    while (i < na && i < nb && x[i] == y[i]) i++;
    if (na != nb || i < na)
        fail_msg("%s (%zu bytes) and %s (%zu bytes) differ from byte %zu on", a, na, b, nb, i);
    free(x), free(y);
}

#endif
