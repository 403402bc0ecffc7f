#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Anything but "no such file" is worth telling. */
static bool is_absent(const char *message) {
    return !message || strstr(message, "No such file") || strstr(message, "cannot open");
}

void *wb_library_open(const wb_library *library, char *reason, size_t reason_bytes) {
    const char *chosen = getenv(library->variable);
    if (chosen && chosen[0]) {
        void *handle = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            (void)snprintf(reason, reason_bytes, "%s=%s does not open: %s", library->variable,
                           chosen, dlerror());
        return handle;
    }
    (void)snprintf(reason, reason_bytes, "%s", library->missing);
    for (const char *const *name = library->names; *name; name++) {
        void *handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (handle) return handle;
        const char *message = dlerror();
        if (!is_absent(message)) (void)snprintf(reason, reason_bytes, "%s", message);
    }
    return NULL;
}

bool wb_library_find(void *handle, const wb_symbol *symbols, size_t count, void *table,
                     const char **missing) {
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(handle, symbols[i].name);
        if (!function) {
            *missing = symbols[i].name;
            return false;
        }
        memcpy((char *)table + symbols[i].offset, &function, sizeof function);
    }
    return true;
}
