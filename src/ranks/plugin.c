/* Transports that are files. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
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

static const wb_transport *table_of(void *library, char *reason, size_t reason_bytes) {
    union {
        void *symbol;
        wb_transport_fn *function;
    } cast = {.symbol = dlsym(library, WB_TRANSPORT_SYMBOL)};
    const wb_transport *transport = cast.symbol ? cast.function(&wb_builtin_host) : NULL;
    if (!transport)
        (void)snprintf(reason, reason_bytes, "%s is no transport of Weber", search.file);
    else if (transport->abi != WB_TRANSPORT_ABI || transport->size_bytes < sizeof *transport)
        (void)snprintf(reason, reason_bytes, "%s is for ABI %u, but this Weber needs ABI %d",
                       search.file, transport->abi, WB_TRANSPORT_ABI);
    else
        return transport;
    return NULL;
}

const wb_transport *wb_transport_open(const char *file, char *reason, size_t reason_bytes) {
    search.file = file;
    search.folder[0] = 0;
    wb_plugin_search_path(look);
    if (!search.folder[0]) {
        (void)snprintf(reason, reason_bytes, "%s is not installed beside the library", file);
        return NULL;
    }
    void *library = wb_plugin_library(search.folder, file, reason, reason_bytes);
    return library ? table_of(library, reason, reason_bytes) : NULL;
}
