/* A folder of checkpoints: numbered files, of which the newest complete one is loaded and older
 * ones are removed. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weber/state.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/replace.h"
#include "formats/format.h"
#include "models/checkpoint.h"
#include "models/tree.h"

enum { KEEP = 3, DIGITS = 12, TEMPORARY = 7 /* ".XXXXXX" of a writer that was killed */ };

/* FOLDER/STEM-000000000100EXTENSION */
typedef struct series {
    char folder[PATH_MAX]; /* with the slash; "" for here */
    char stem[NAME_MAX];
    char extension[24];
} series;

/* The numbers of the files that there are, the highest first. */
typedef struct numbers {
    int64_t *items;
    int64_t count, capacity;
} numbers;

/* ---- names ---- */

/* "run/net.txt" is meant as a file, "run/lr0.1" and "run/net.txt/" as a folder. */
static bool is_other_file(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name && isalpha((unsigned char)dot[1]) && !wb_format_of_name(path);
}

static bool parse(const char *path, series *s) {
    const wb_format *format = wb_format_of_name(path);
    if (is_other_file(path)) {
        (void)wb_fail(WB_ERROR_FORMAT,
                      "the path of checkpoints must end in .bson, .safetensors, .npy or .npz, or "
                      "in / for a folder, got \"%.80s\"",
                      path);
        return false;
    }
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = format ? (size_t)(name - path) : strlen(path);
    const char *end = format ? strrchr(name, '.') : name;
    *s = (series){.stem = "checkpoint", .extension = ".npz"};
    const bool has_name = end > name,
               fits = length + 2 < sizeof s->folder && (size_t)(end - name) + 64 < sizeof s->stem;
    if (!*path || !fits) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "the path of checkpoints \"%.80s\" is %s", path,
                      fits ? "empty" : "too long");
        return false;
    }
    memcpy(s->folder, path, length);
    if (length && s->folder[length - 1] != '/') s->folder[length] = '/';
    if (has_name) memcpy(s->stem, name, (size_t)(end - name)), s->stem[end - name] = 0;
    if (format) (void)snprintf(s->extension, sizeof s->extension, "%s", end);
    return true;
}

static bool path_of(const series *s, int64_t number, const char *more, char *path) {
    const int length = snprintf(path, PATH_MAX, "%s%s-%0*lld%s%s", s->folder, s->stem, DIGITS,
                                (long long)number, s->extension, more);
    if (length > 0 && length < PATH_MAX) return true;
    (void)wb_fail(WB_ERROR_IO, "%s: the name is too long", s->folder);
    return false;
}

/* The number in a file's name; -1: it does not belong to the series. What follows the extension
 * goes to
 * *rest. */
static int64_t number_of(const series *s, const char *name, const char **rest) {
    const size_t stem = strlen(s->stem), extension = strlen(s->extension);
    if (strncmp(name, s->stem, stem) != 0 || name[stem] != '-') return -1;
    const char *digits = name + stem + 1;
    const size_t count = strspn(digits, "0123456789");
    if (count < DIGITS || count > 18 || strncmp(digits + count, s->extension, extension) != 0)
        return -1;
    *rest = digits + count + extension;
    return strtoll(digits, NULL, 10);
}

bool wb_checkpoint_file(const char *path, int64_t number, char *name) {
    series s;
    return parse(path, &s) && path_of(&s, number, "", name);
}

/* ---- the folder ---- */

static int descending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static DIR *open_folder(const series *s) { return opendir(*s->folder ? s->folder : "."); }

/* False with an error; a folder that does not exist counts as empty. */
static bool list(const series *s, numbers *n) {
    DIR *folder = open_folder(s);
    if (!folder && errno == ENOENT) return true;
    if (!folder) {
        (void)wb_fail(WB_ERROR_IO, "%s: cannot be read: %s", s->folder, strerror(errno));
        return false;
    }
    bool good = true;
    for (const struct dirent *e; good && (e = readdir(folder));) {
        const char *rest = "";
        const int64_t number = number_of(s, e->d_name, &rest);
        if (number < 0 || *rest) continue;
        good = WB_GROW(n->items, n->count, n->capacity);
        if (good) n->items[n->count++] = number;
    }
    (void)closedir(folder);
    if (n->count) qsort(n->items, (size_t)n->count, sizeof *n->items, descending);
    return good;
}

static bool make_folder(const series *s) {
    char path[PATH_MAX];
    memcpy(path, s->folder, sizeof path);
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            (void)wb_fail(WB_ERROR_IO, "%s: the folder cannot be made: %s", path, strerror(errno));
            return false;
        }
        *slash = '/';
    }
    return true;
}

/* ---- saving ---- */

static void remove_old(const series *s, int64_t number, int64_t keep) {
    numbers n = {.count = 0};
    char path[PATH_MAX];
    int64_t before = 0;
    (void)list(s, &n);
    for (int64_t i = 0; i < n.count; i++)
        if (n.items[i] < number && ++before >= keep && path_of(s, n.items[i], "", path))
            (void)unlink(path);
    wb_release(n.items);
}

/* Files that another training is writing into the same folder are left alone. */
static void remove_halves(const series *s) {
    DIR *folder = open_folder(s);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        const char *rest = "";
        if (number_of(s, e->d_name, &rest) < 0 || strlen(rest) != TEMPORARY || *rest != '.')
            continue;
        if (wb_replace_is_abandoned(dirfd(folder), e->d_name))
            (void)unlinkat(dirfd(folder), e->d_name, 0);
    }
    if (folder) (void)closedir(folder);
}

wb_status wb_checkpoint_save_make(const char *path, int64_t number, int64_t keep, int64_t count,
                                  const wb_named *objects) {
    series s;
    char name[PATH_MAX];
    if (wb_failed()) return wb_not_run("wb_checkpoint_save");
    if (!path) return wb_fail(WB_ERROR_ARGUMENT, "wb_checkpoint_save: the path is NULL");
    if (number < 0 || keep < 0)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_checkpoint_save: number and keep must not be negative, got %lld and "
                       "%lld",
                       (long long)number, (long long)keep);
    if (!wb_may_use_named("wb_checkpoint_save", count, objects)) return WB_ERROR_ARGUMENT;
    wb_status status = wb_gather_objects(count, objects); /* whether or not the file was written */
    const bool is_here = status == WB_OK && wb_are_gathered_here(count, objects);
    if (is_here && (!parse(path, &s) || !path_of(&s, number, "", name) || !make_folder(&s)))
        status = wb_error_status();
    if (is_here && status == WB_OK) status = wb_save_make(name, count, objects);
    wb_drop_gathered_objects(count, objects);
    if (status != WB_OK || !is_here) return status;
    remove_old(&s, number, keep ? keep : KEEP);
    remove_halves(&s);
    wb_clear_error(); /* failing to remove old files is not an error */
    return WB_OK;
}

/* ---- loading ---- */

static void set_aside(const series *s, const numbers *n, int64_t count) {
    char from[PATH_MAX], to[PATH_MAX];
    for (int64_t i = 0; i < count; i++)
        if (path_of(s, n->items[i], "", from) && path_of(s, n->items[i], ".damaged", to))
            (void)rename(from, to);
}

/* Opens the first file that is complete; *at becomes its place among the numbers. */
static wb_status load_newest(const series *s, const numbers *n, int64_t count,
                             const wb_named *objects, int64_t *at) {
    char path[PATH_MAX], why[WB_MESSAGE_BYTES] = "";
    for (*at = 0; *at < n->count; ++*at) {
        if (!path_of(s, n->items[*at], "", path)) return wb_error_status();
        const wb_status status = wb_load_named_make(path, count, objects);
        if (status != WB_ERROR_FORMAT) return status;
        (void)wb_take_error(why, sizeof why);
        wb_log_line(WB_LOG_WARN, "%s; trying the one before", why);
    }
    return wb_fail(WB_ERROR_FORMAT, "%s: none of %lld checkpoints can be read; the oldest: %s",
                   s->folder, (long long)n->count, why);
}

wb_status wb_checkpoint_load_make(const char *path, int64_t *number, int64_t count,
                                  const wb_named *objects) {
    series s;
    numbers n = {.count = 0};
    int64_t at = 0;
    if (number) *number = -1;
    if (wb_failed()) return wb_not_run("wb_checkpoint_load");
    if (!path) return wb_fail(WB_ERROR_ARGUMENT, "wb_checkpoint_load: the path is NULL");
    if (!wb_may_use_named("wb_checkpoint_load", count, objects)) return WB_ERROR_ARGUMENT;
    wb_status status = parse(path, &s) && list(&s, &n) ? WB_OK : wb_error_status();
    if (status == WB_OK && n.count) {
        status = load_newest(&s, &n, count, objects, &at);
        if (status == WB_OK) set_aside(&s, &n, at);
        if (status == WB_OK && number) *number = n.items[at];
    }
    wb_release(n.items);
    return status;
}
