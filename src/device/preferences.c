/* Finds, reads and changes the file of preferences: WEBER_PREFERENCES, else the nearest
 * LocalPreferences.toml, else the user's own. If it has no table [Weber], the GPU backend in the
 * tables of Flux or MLDataDevices is used. A file with a fault gives a warning and is ignored. */
#include "device/preferences.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/replace.h"
#include "base/scratch.h"
#include "device/toml.h"
#include "platform/locks.h"
#include "platform/process.h"

enum { LARGEST_FILE = 1 << 20 };

static const char table[] = "Weber", backend_key[] = "gpu_backend";
static const char *const heirs[] = {"Flux", "MLDataDevices", "LuxDeviceUtils"};

/* ---- which file ---- */

static bool put_path(char *path, const char *folder, const char *file) {
    return snprintf(path, PATH_MAX, "%s/%s", folder, file) < PATH_MAX;
}

/* The nearest one in the current directory or above. */
static bool find_local(char *path) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder)) return false;
    for (;;) {
        if (put_path(path, folder, "LocalPreferences.toml") && access(path, F_OK) == 0) return true;
        char *last = strrchr(folder, '/');
        if (!last || !folder[0]) return false;
        *last = 0;
    }
}

static bool find_settings(char *path) {
    const char *settings = wb_platform_trusted_variable("XDG_CONFIG_HOME"),
               *home = wb_platform_trusted_variable("HOME");
    if (settings && settings[0] == '/') return put_path(path, settings, "weber/preferences.toml");
    return home && home[0] == '/' && put_path(path, home, ".config/weber/preferences.toml");
}

/* path: PATH_MAX bytes. False, and "": there is no place for one. */
static bool find_file(char *path) {
    const char *asked = wb_platform_trusted_variable("WEBER_PREFERENCES");
    if (asked && *asked && snprintf(path, PATH_MAX, "%s", asked) < PATH_MAX) return true;
    if (find_local(path) || find_settings(path)) return true;
    path[0] = 0;
    return false;
}

const char *wb_preference_file(void) {
    char *path = wb_scratch(WB_SCRATCH_PATH, PATH_MAX);
    (void)find_file(path);
    return path;
}

/* ---- reading ---- */

static wb_status read_stream(FILE *stream, wb_toml *toml) {
    struct stat status;
    if (fstat(fileno(stream), &status) != 0) return WB_ERROR_IO;
    if (!S_ISREG(status.st_mode)) return errno = ENOTSUP, WB_ERROR_IO;
    if (status.st_size > LARGEST_FILE) return errno = EFBIG, WB_ERROR_IO;
    toml->text = wb_alloc(wb_bytes(status.st_size + 1));
    if (!toml->text) return WB_ERROR_MEMORY;
    toml->size_bytes = fread(toml->text, 1, (size_t)status.st_size, stream);
    return ferror(stream) ? WB_ERROR_IO : WB_OK;
}

/* The file's text, checked; an absent file is an empty text. A fault is a warning. */
static wb_status read_file(const char *path, wb_toml *toml, bool is_quiet) {
    *toml = (wb_toml){.text = NULL};
    /* a pipe's other end is not waited for */
    const int opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *stream = opened < 0 ? NULL : fdopen(opened, "rb");
    if (!stream && (errno == ENOENT || errno == ENOTDIR))
        return (toml->text = wb_alloc(1)) ? WB_OK : WB_ERROR_MEMORY;
    wb_status status = stream ? read_stream(stream, toml) : WB_ERROR_IO;
    const int why = errno;
    if (stream) (void)fclose(stream);
    if (status == WB_ERROR_IO && !is_quiet)
        wb_log_line(WB_LOG_WARN, "preferences: %s cannot be read: %s", path,
                    why == ENOTSUP ? "it is not a regular file" : strerror(why));
    if (status == WB_OK && !wb_toml_check(toml)) {
        status = WB_ERROR_FORMAT;
        if (!is_quiet)
            wb_log_line(WB_LOG_WARN, "preferences: %s is ignored: line %d: %s", path,
                        toml->broken_line, toml->fault);
    }
    if (status == WB_OK) return WB_OK;
    wb_release(toml->text);
    return status;
}

static wb_toml_kind read_value(const char *path, const char *key, char *value, bool is_quiet) {
    wb_toml toml;
    value[0] = 0;
    if (read_file(path, &toml, is_quiet) != WB_OK) return WB_TOML_ABSENT;
    wb_toml_kind kind = wb_toml_get(&toml, table, key, value, WB_PREFERENCE_BYTES);
    const bool inherits = !wb_toml_has_table(&toml, table) && strcmp(key, backend_key) == 0;
    for (size_t i = 0; inherits && kind == WB_TOML_ABSENT && i < sizeof heirs / sizeof *heirs; i++)
        kind = wb_toml_get(&toml, heirs[i], key, value, WB_PREFERENCE_BYTES);
    wb_release(toml.text);
    if (kind != WB_TOML_OTHER) return kind;
    if (!is_quiet)
        wb_log_line(WB_LOG_WARN, "preferences: %s: %s = %s must be a string, true or false", path,
                    key, value);
    return WB_TOML_ABSENT;
}

/* ---- writing ---- */

/* The folders above the file, as far as they are not there. */
static void make_folders(const char *path) {
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(folder, 0777);
        *slash = '/';
    }
}

static bool write_file(const char *path, const wb_toml *toml) {
    wb_replacement file;
    if (!wb_replace_begin(&file, path)) return false;
    const size_t written = fwrite(toml->text, 1, toml->size_bytes, file.stream);
    return wb_replace_end(&file, written == toml->size_bytes);
}

typedef struct change {
    const char *key, *value; /* value NULL: remove it */
    bool is_bool;
    bool to_none; /* remove what other tables say too */
} change;

static bool apply(wb_toml *toml, const change *c) {
    if (c->value) return wb_toml_set(toml, table, c->key, c->value, c->is_bool);
    if (!wb_toml_remove(toml, table, c->key)) return false;
    for (size_t i = 0; c->to_none && i < sizeof heirs / sizeof *heirs; i++) {
        char value[WB_PREFERENCE_BYTES];
        if (wb_toml_get(toml, heirs[i], c->key, value, sizeof value) == WB_TOML_ABSENT) continue;
        return wb_toml_add_table(toml, table); /* if it is there, other tables are not read */
    }
    return true;
}

static wb_status change_file(const char *path, const change *c) {
    wb_toml toml;
    const wb_status status = read_file(path, &toml, false);
    if (status != WB_OK) return status;
    const size_t before = toml.size_bytes;
    char *text = toml.text;
    const bool applied = apply(&toml, c);
    const bool is_same = toml.text == text && toml.size_bytes == before;
    bool written = applied && is_same;
    if (applied && !is_same) {
        make_folders(path);
        written = write_file(path, &toml);
        if (!written)
            wb_log_line(WB_LOG_WARN, "preferences: %s cannot be written: %s", path,
                        wb_replace_words(errno));
    }
    wb_release(toml.text);
    return written ? WB_OK : applied ? WB_ERROR_IO : WB_ERROR_MEMORY;
}

/* One change of the file after the other. */
static wb_status change_preference(const change *c) {
    char path[PATH_MAX];
    if (!find_file(path)) {
        wb_log_line(WB_LOG_WARN, "preferences: there is no folder for the file; set "
                                 "WEBER_PREFERENCES or HOME");
        return WB_ERROR_IO;
    }
    wb_lock_take(WB_LOCK_PREFERENCES);
    const wb_status status = change_file(path, c);
    wb_lock_give(WB_LOCK_PREFERENCES);
    return status;
}

/* ---- the calls ---- */

static bool is_name(const char *name) {
    if (!name) return wb_fail_argument_null("preference", "name");
    const size_t length =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    if (length > 0 && !name[length] && length < 64) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "preference: a name must be 1 to 63 letters, digits, _ or -, got \"%s\"", name);
    return false;
}

/* True for values that the file gives back unchanged. */
static bool is_value(const char *value) {
    size_t length = 0;
    while (value && (unsigned char)value[length] >= 0x20 && value[length] != 0x7f) length++;
    if (!value || (!value[length] && length < WB_PREFERENCE_BYTES)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "preference: a value must be one line of at most %d bytes",
                  WB_PREFERENCE_BYTES - 1);
    return false;
}

const char *wb_preference_get(const char *name) {
    char *value = wb_scratch(WB_SCRATCH_PREFERENCE, WB_PREFERENCE_BYTES);
    char path[PATH_MAX];
    if (!is_name(name) || !find_file(path)) return NULL;
    return read_value(path, name, value, false) == WB_TOML_ABSENT ? NULL : value;
}

bool wb_preference_get_bool(const char *name, bool otherwise) {
    char path[PATH_MAX], value[WB_PREFERENCE_BYTES];
    if (!is_name(name) || !find_file(path)) return otherwise;
    const wb_toml_kind kind = read_value(path, name, value, false);
    if (kind == WB_TOML_BOOL) return strcmp(value, "true") == 0;
    if (kind == WB_TOML_STRING)
        wb_log_line(WB_LOG_WARN, "preferences: %s: %s must be true or false, but is \"%s\"", path,
                    name, value);
    return otherwise;
}

wb_status wb_preference_set(const char *name, const char *value) {
    if (!is_name(name) || !is_value(value)) return WB_ERROR_ARGUMENT;
    return change_preference(&(change){.key = name, .value = value});
}

wb_status wb_preference_set_bool(const char *name, bool value) {
    if (!is_name(name)) return WB_ERROR_ARGUMENT;
    return change_preference(
        &(change){.key = name, .value = value ? "true" : "false", .is_bool = true});
}

bool wb_preference_backend(char value[WB_PREFERENCE_BYTES], char *path, bool is_quiet) {
    return find_file(path) && read_value(path, backend_key, value, is_quiet) != WB_TOML_ABSENT;
}

wb_status wb_preference_remove_backend(void) {
    return change_preference(&(change){.key = backend_key, .to_none = true});
}
