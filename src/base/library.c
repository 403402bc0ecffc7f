/* Opens libraries by their names, once in a process. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "platform/locks.h"

/* The name of a function that the library lacks, and then none is set; or NULL: all are set. */
static const char *find_functions(const wb_library *library, void *handle) {
    for (const wb_library_function *f = library->functions; f->name; f++)
        if (!dlsym(handle, f->name)) return f->name;
    for (const wb_library_function *f = library->functions; f->name; f++) {
        void *function = dlsym(handle, f->name);
        memcpy(f->place, &function, sizeof function);
    }
    return NULL;
}

/* With the lock. *lacks: what an open library does not have. */
static void open_now(wb_library *library, const char **lacks) {
    void *handle = NULL;
    for (int i = 0; !handle && library->names[i]; i++)
        handle = dlopen(library->names[i], RTLD_NOW | RTLD_LOCAL);
    *lacks = handle ? find_functions(library, handle) : NULL;
    if (*lacks)
        (void)dlclose(handle);
    else
        library->handle = handle;
}

wb_status wb_library_open(wb_library *library, const char *path, const char *what) {
    const char *lacks = NULL;
    wb_lock_take(WB_LOCK_LIBRARIES);
    if (!library->handle) open_now(library, &lacks);
    const bool is_open = library->handle != NULL;
    wb_lock_give(WB_LOCK_LIBRARIES);
    if (is_open) return WB_OK;
    const char *colon = path ? ": " : "";
    if (!path) path = "";
    if (lacks)
        return wb_fail(WB_ERROR_UNSUPPORTED, "%s%s%s lacks %s", path, colon, library->name, lacks);
    return wb_fail(WB_ERROR_UNSUPPORTED, "%s%s%s needs %s (Debian: %s)", path, colon, what,
                   library->name, library->package);
}
