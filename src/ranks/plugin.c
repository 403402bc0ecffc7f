/* Transports in plugin files. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "device/device.h"
#include "device/plugin.h"
#include "ranks/transport.h"

/* The search; the group's mutex guards it. */
static struct {
    const char *file;
    char folder[PATH_MAX]; /* where it is; "": not found */
} search;

static void look(const char *folder, const char *why_not) {
    char path[PATH_MAX];
    if (why_not || search.folder[0]) return;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, search.file);
    if (length < (int)sizeof path && access(path, F_OK) == 0)
        (void)snprintf(search.folder, sizeof search.folder, "%s", folder);
}

/* The function that the file exports under the name; NULL: it cannot be used. */
static void *find(const char *file, const char *symbol, char *reason, size_t reason_bytes) {
    search.file = file;
    search.folder[0] = 0;
    wb_plugin_search_path(look);
    if (!search.folder[0]) {
        (void)snprintf(reason, reason_bytes, "%s is not installed beside the library", file);
        return NULL;
    }
    void *library = wb_plugin_library(search.folder, file, reason, reason_bytes);
    void *found = library ? dlsym(library, symbol) : NULL;
    if (library && !found) (void)snprintf(reason, reason_bytes, "%s is not a transport", file);
    return found;
}

static bool suits(const char *file, uint32_t abi, uint32_t given, size_t wanted, char *reason,
                  size_t reason_bytes) {
    if (abi == WB_TRANSPORT_ABI && given >= wanted) return true;
    if (abi != WB_TRANSPORT_ABI)
        (void)snprintf(reason, reason_bytes, "%s is for ABI %u, but this Weber needs ABI %d", file,
                       abi, WB_TRANSPORT_ABI);
    else
        (void)snprintf(reason, reason_bytes, "the table of %s has %u bytes, but needs %zu", file,
                       given, wanted);
    return false;
}

static void refuse_host(const char *file, char *reason, size_t reason_bytes) {
    (void)snprintf(reason, reason_bytes, "%s is for another version of Weber", file);
}

const wb_transport *wb_transport_open(const char *file, char *reason, size_t reason_bytes) {
    union {
        void *symbol;
        wb_transport_fn *function;
    } cast = {.symbol = find(file, WB_TRANSPORT_SYMBOL, reason, reason_bytes)};
    const wb_transport *t = cast.symbol ? cast.function(&wb_builtin_host) : NULL;
    if (cast.symbol && !t) refuse_host(file, reason, reason_bytes);
    return t && suits(file, t->abi, t->size_bytes, sizeof *t, reason, reason_bytes) ? t : NULL;
}

const wb_device_transport *wb_device_transport_open(const char *file, char *reason,
                                                    size_t reason_bytes) {
    union {
        void *symbol;
        wb_device_transport_fn *function;
    } cast = {.symbol = find(file, WB_DEVICE_TRANSPORT_SYMBOL, reason, reason_bytes)};
    const wb_device_transport *t = cast.symbol ? cast.function(&wb_builtin_host) : NULL;
    if (cast.symbol && !t) refuse_host(file, reason, reason_bytes);
    return t && suits(file, t->abi, t->size_bytes, sizeof *t, reason, reason_bytes) ? t : NULL;
}
