#include "support/host_cpp.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool host_cpp_is_there(void) { return system("g++ --version >/dev/null 2>&1") == 0; }

/* ---- files ---- */

void *host_cpp_read(const char *path, size_t *size_bytes) {
    FILE *file = fopen(path, "rbe");
    if (!file) return NULL;
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *bytes = size >= 0 ? calloc(1, (size_t)size + 1) : NULL;
    rewind(file);
    if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        free(bytes);
        bytes = NULL;
    }
    (void)fclose(file);
    if (bytes) *size_bytes = (size_t)size;
    return bytes;
}

static bool write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    if (!file) return false;
    const bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

/* ---- building ---- */

enum { PATH_BYTES = 64, COMMAND_BYTES = 2048 };

static bool compile(const char *folder, const char *options) {
    char command[COMMAND_BYTES];
    const int length = snprintf(command, sizeof command,
                                "g++ %s -w -fPIC -shared -pipe -o %s/k.so %s/k.cpp >%s/log 2>&1",
                                options, folder, folder, folder);
    return length < COMMAND_BYTES && system(command) == 0;
}

static void remove_folder(const char *folder) {
    static const char *const names[] = {"k.cpp", "k.so", "log"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

void *host_cpp_build(const char *text, const char *options, size_t *size_bytes, char *log,
                     size_t log_bytes) {
    char folder[] = "/tmp/weber-kernel-XXXXXX", path[PATH_BYTES];
    if (!mkdtemp(folder)) {
        (void)snprintf(log, log_bytes, "no folder in /tmp");
        return NULL;
    }
    (void)snprintf(path, sizeof path, "%s/k.cpp", folder);
    const bool built = write_text(path, text) && compile(folder, options);
    (void)snprintf(path, sizeof path, "%s/%s", folder, built ? "k.so" : "log");
    char *bytes = host_cpp_read(path, size_bytes);
    remove_folder(folder);
    if (built) return bytes;
    (void)snprintf(log, log_bytes, "%s", bytes ? bytes : "no compiler");
    free(bytes);
    return NULL;
}

/* The loader knows open objects by their paths, so each gets one that no other has had. */
void *host_cpp_open(const void *bytes, size_t size_bytes) {
    char path[] = "/tmp/weber-kernel-XXXXXX.so";
    void *object = NULL;
    const int file = mkostemps(path, 3, O_CLOEXEC);
    if (file < 0) return NULL;
    if (write(file, bytes, size_bytes) == (ssize_t)size_bytes)
        object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    (void)close(file);
    (void)unlink(path);
    return object;
}
