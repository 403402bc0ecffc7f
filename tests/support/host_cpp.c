#include "support/host_cpp.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HOST_CPP_COMPILER /* of the processor that the tests run on */
#define HOST_CPP_COMPILER "g++"
#endif

const char *host_cpp_compiler(void) { return HOST_CPP_COMPILER; }

bool host_cpp_is_there(void) { return system(HOST_CPP_COMPILER " --version >/dev/null 2>&1") == 0; }

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

static bool run_compiler(const char *compiler, const char *options, const char *folder) {
    char command[COMMAND_BYTES];
    const int length = snprintf(command, sizeof command, "%s %s -o %s/result %s/k.cpp >%s/log 2>&1",
                                compiler, options, folder, folder, folder);
    return length < COMMAND_BYTES && system(command) == 0;
}

static void remove_folder(const char *folder) {
    static const char *const names[] = {"k.cpp", "result", "log"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

void *host_cpp_through(const char *compiler, const char *text, const char *options,
                       size_t *size_bytes, char *log, size_t log_bytes) {
    char folder[] = "/tmp/weber-kernel-XXXXXX", path[PATH_BYTES];
    if (!mkdtemp(folder)) {
        (void)snprintf(log, log_bytes, "no folder in /tmp");
        return NULL;
    }
    (void)snprintf(path, sizeof path, "%s/k.cpp", folder);
    const bool done = write_text(path, text) && run_compiler(compiler, options, folder);
    (void)snprintf(path, sizeof path, "%s/%s", folder, done ? "result" : "log");
    char *bytes = host_cpp_read(path, size_bytes);
    remove_folder(folder);
    if (done) return bytes ? bytes : calloc(1, 1); /* a check leaves no file */
    (void)snprintf(log, log_bytes, "%s", bytes ? bytes : "no compiler");
    free(bytes);
    return NULL;
}

void *host_cpp_build(const char *text, const char *options, size_t *size_bytes, char *log,
                     size_t log_bytes) {
    char all[COMMAND_BYTES];
    (void)snprintf(all, sizeof all, "%s -w -fPIC -shared -pipe", options);
    return host_cpp_through(HOST_CPP_COMPILER, text, all, size_bytes, log, log_bytes);
}

uint64_t host_cpp_hash(const void *bytes, size_t count, uint64_t hash) {
    if (hash == 0) hash = 0xCBF29CE484222325u; /* FNV-1a */
    for (const unsigned char *at = bytes, *end = at + count; at < end; at++)
        hash = (hash ^ *at) * 0x100000001B3u;
    return hash;
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
