/* The ending of a plugin's file. CMake gives it to modules on macOS, too. */
#include "platform/library.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

const char wb_platform_plugin_suffix[] = ".so";

/* The C library calls back, as qsort does. */
static bool is_passed_over(const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    return strncmp(file, "libweber", 8) == 0 || strncmp(file, "libc.", 5) == 0 ||
           strncmp(file, "libpthread", 10) == 0 || strncmp(file, "libSystem", 9) == 0;
}

/* A sanitizer's frame may come before Weber's first frame. */
int wb_platform_callers(void **addresses, int most) {
    static const char here = 0; /* in the library, or in the program that it is linked into */
    void *frames[48];
    Dl_info own, at;
    int found = 0;
    const int count = backtrace(frames, (int)(sizeof frames / sizeof *frames));
    if (!dladdr(&here, &own) || !own.dli_fname) return 0;
    const bool is_library = is_passed_over(own.dli_fname);
    bool has_begun = false;
    for (int i = 0; i < count && found < (is_library ? 1 : most); i++) {
        if (!dladdr(frames[i], &at) || !at.dli_fname) continue;
        has_begun = has_begun || at.dli_fbase == own.dli_fbase;
        if (!has_begun) continue;
        const bool is_wanted =
            is_library ? !is_passed_over(at.dli_fname) : at.dli_fbase == own.dli_fbase;
        if (is_wanted) addresses[found++] = frames[i];
    }
    return found;
}

/* A quote within is ended, written by itself, and begun again: it's becomes 'it'\''s'. */
bool wb_platform_quote(const char *path, char *word, size_t size_bytes) {
    size_t used = (size_t)snprintf(word, size_bytes, "'");
    for (; *path && used < size_bytes; path++) {
        const char *letter = *path == '\'' ? "'\\''" : (const char[]){*path, 0};
        used += (size_t)snprintf(word + used, size_bytes - used, "%s", letter);
    }
    if (used < size_bytes) used += (size_t)snprintf(word + used, size_bytes - used, "'");
    return used < size_bytes;
}
