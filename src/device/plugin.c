/* A plugin runs with the user's rights. So a file is opened only if no one but root and the user
 * could have written it, or replaced it through a parent folder. Then its table is checked: ABI,
 * size, required functions. */
#include "device/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "device/device.h"
#include "platform/library.h"
#include "platform/process.h"

#ifndef WEBER_PLUGIN_DIR
#define WEBER_PLUGIN_DIR ""
#endif

static int64_t opened; /* __atomic */

int64_t wb_plugins_opened(void) { return __atomic_load_n(&opened, __ATOMIC_RELAXED); }

/* Where a function that fails says why. */
typedef struct explanation {
    char *text;
    size_t size_bytes;
} explanation;

static bool explain(explanation to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool explain(explanation to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(to.text, to.size_bytes, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- whom the file belongs to ---- */

/* True if nobody but root and the user of this process can have put something there. Beside the
 * library, whoever may write to the library's own file could do so, too: Python's packages may
 * belong to a group, or to another user. library: that file, NULL: somewhere else. */
static bool is_safe(const char *path, const struct stat *status, const struct stat *library,
                    explanation why) {
    mode_t writers = status->st_mode & (S_IWGRP | S_IWOTH);
    if (library && status->st_gid == library->st_gid) writers &= ~(library->st_mode & S_IWGRP);
    if (library) writers &= ~(library->st_mode & S_IWOTH);
    if (status->st_uid != 0 && status->st_uid != geteuid() &&
        !(library && status->st_uid == library->st_uid))
        return explain(why,
                       "%s belongs to user %ld, but must belong to root or to the user of this "
                       "process",
                       path, (long)status->st_uid);
    if (writers)
        return explain(why, "others may write to %s; remove that right (chmod go-w)", path);
    return true;
}

static bool is_safe_folder(const char *path, const struct stat *library, explanation why) {
    struct stat status;
    if (stat(path, &status) != 0) return explain(why, "%s: %s", path, strerror(errno));
    return is_safe(path, &status, library, why);
}

/* Checks the folder and all above it: a user who may write to one of them can replace the folder
 * below it, except in sticky ones such as /tmp. */
static bool are_safe_folders(const char *folder, explanation why) {
    char above[PATH_MAX];
    struct stat status;
    if (!is_safe_folder(folder, NULL, why)) return false;
    (void)snprintf(above, sizeof above, "%s", folder);
    for (char *slash; (slash = strrchr(above, '/')) && above[1];) {
        slash[slash == above] = 0;
        if (stat(above, &status) != 0) return explain(why, "%s: %s", above, strerror(errno));
        if (status.st_mode & S_ISVTX) status.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
        if (!is_safe(above, &status, NULL, why)) return false;
    }
    return true;
}

/* The file of the shared library that this code is in. False where it is part of the program, or
 * its path depends on the current directory. */
static bool own_file(char *real) { /* PATH_MAX bytes */
    char path[PATH_MAX];
    return wb_platform_library_of(&opened, path, sizeof path) && realpath(path, real);
}

/* True if the file is in the library's folder, or in weber/ below it. */
static bool is_beside_library(const char *real, struct stat *library) {
    char own[PATH_MAX];
    if (!own_file(own) || stat(own, library) != 0) return false;
    const size_t folder = (size_t)(strrchr(own, '/') - own) + 1;
    if (strncmp(real, own, folder) != 0) return false;
    const char *rest = real + folder;
    return !strchr(strncmp(rest, "weber/", 6) == 0 ? rest + 6 : rest, '/');
}

/* Finds the file that links lead to, and checks it and the folders above both. The library's folder
 * and those above it are as safe as the library. */
static bool is_safe_file(const char *folder, const char *path, char *real, explanation why) {
    char above[PATH_MAX];
    struct stat status, library;
    if (!realpath(path, real) || stat(real, &status) != 0)
        return explain(why, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode)) return explain(why, "is not a regular file");
    const char *name = strcmp(real, path) == 0 ? "the file" : real;
    const bool is_beside = is_beside_library(real, &library);
    if (!is_safe(name, &status, is_beside ? &library : NULL, why)) return false;
    (void)snprintf(above, sizeof above, "%.*s", (int)(strrchr(real, '/') - real), real);
    if (is_beside) return is_safe_folder(above, &library, why);
    return are_safe_folders(folder, why) && are_safe_folders(above[0] ? above : "/", why);
}

/* ---- what is in it ---- */

static bool is_whole_file(const char *path, explanation why) {
    FILE *file = fopen(path, "rbe");
    if (!file) return explain(why, "%s", strerror(errno));
    const bool whole = wb_platform_library_is_whole(file, why.text, why.size_bytes);
    (void)fclose(file);
    return whole;
}

#define REQUIRED(X)                                                                                \
    X(name)                                                                                        \
    X(load)                                                                                        \
    X(count)                                                                                       \
    X(info)                                                                                        \
    X(open)                                                                                        \
    X(close) X(alloc) X(free) X(kernel) X(lower) X(scratch_bytes) X(release) X(copy) X(run) X(sync)

static const char *missing_entry(const wb_backend *backend) {
#define X(entry)                                                                                   \
    if (!backend->entry) return #entry;
    REQUIRED(X)
#undef X
    return NULL;
}

/* Optional entries that come together. */
static bool has_half_a_queue(const wb_backend *b) {
    const int queue = !b->queue_new + !b->queue_free + !b->record + !b->wait + !b->release_event;
    return (queue != 0 && queue != 5) || !b->alloc_pinned != !b->free_pinned;
}

static bool suits(const wb_backend *backend, explanation why) {
    if (backend->abi != WB_PLUGIN_ABI)
        return explain(why, "the plugin is for ABI %u, but this Weber needs ABI %d", backend->abi,
                       WB_PLUGIN_ABI);
    if (backend->size_bytes < sizeof *backend)
        return explain(why, "its table has %u bytes, but needs %zu", backend->size_bytes,
                       sizeof *backend);
    const char *missing = missing_entry(backend);
    if (missing) return explain(why, "its table lacks %s", missing);
    if (has_half_a_queue(backend))
        return explain(
            why, "its table has some of the entries for queues or pinned memory, and lacks others");
    if (!backend->name[0] || strlen(backend->name) > 31)
        return explain(why, "the name of its backend is too long: %zu letters",
                       strlen(backend->name));
    return true;
}

/* The table of an opened file; NULL with the reason. */
static const wb_backend *table_of(void *library, explanation why) {
    union {
        void *symbol;
        wb_plugin_fn *function;
    } cast = {.symbol = dlsym(library, WB_PLUGIN_SYMBOL)};
    if (!cast.symbol) {
        (void)explain(why, "is not a plugin of Weber: it lacks the symbol %s", WB_PLUGIN_SYMBOL);
        return NULL;
    }
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    const wb_backend *backend = cast.function(&wb_builtin_host);
    if (!backend)
        (void)explain(why, "does not accept this version of Weber%s%s", wb_failed() ? ": " : "",
                      wb_error_text());
    wb_clear_error();
    wb_error_bring_back(&aside);
    return backend && suits(backend, why) ? backend : NULL;
}

void *wb_plugin_library(const char *folder, const char *file, char *reason, size_t reason_bytes) {
    const explanation why = {reason, reason_bytes};
    char path[PATH_MAX], real[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) {
        (void)explain(why, "%s", strerror(ENAMETOOLONG));
        return NULL;
    }
    if (!is_safe_file(folder, path, real, why) || !is_whole_file(real, why)) return NULL;
    (void)__atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
    void *library = dlopen(real, RTLD_NOW | RTLD_LOCAL); /* a link may lead elsewhere by now */
    if (library) return library;
    const char *message = wb_platform_loader_words(dlerror(), real);
    (void)explain(why, "%s", message ? message : "cannot be opened");
    return NULL;
}

const wb_backend *wb_plugin_open(const char *folder, const char *file, char *reason,
                                 size_t reason_bytes) {
    void *library = wb_plugin_library(folder, file, reason, reason_bytes);
    if (!library) return NULL;
    const explanation why = {reason, reason_bytes};
    const wb_backend *backend = table_of(library, why);
    if (!backend) (void)dlclose(library); /* another file may take its place */
    return backend;
}

/* ---- where to look ---- */

static void search_variable(wb_folder_fn *put) {
    const char *path = wb_platform_trusted_variable("WEBER_PLUGIN_PATH");
    for (const char *from = path; from; from = strchr(from, ':') ? strchr(from, ':') + 1 : NULL) {
        char folder[PATH_MAX];
        const size_t length = strcspn(from, ":");
        if (length == 0 || length >= sizeof folder) continue;
        memcpy(folder, from, length);
        folder[length] = 0;
        put(folder, folder[0] == '/' ? NULL : "in WEBER_PLUGIN_PATH, must be an absolute path");
    }
}

void wb_plugin_search_path(wb_folder_fn *put) {
    char own[PATH_MAX], below[PATH_MAX + 8];
    search_variable(put);
    if (own_file(own)) {
        *strrchr(own, '/') = 0;
        (void)snprintf(below, sizeof below, "%s/weber", own);
        put(below, NULL);
        put(own, NULL);
    }
    if (WEBER_PLUGIN_DIR[0] == '/') put(WEBER_PLUGIN_DIR, NULL);
}
