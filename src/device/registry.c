/* Finds plugins in the plugin folders, opens each at most once, and remembers why one was not
 * loaded. All questions take one lock. Naming a backend opens only its own file; listing what there
 * is opens all. */
#include "device/registry.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"
#include "device/names.h"
#include "device/plugin.h"
#include "platform/library.h"
#include "platform/locks.h"

enum {
    MOST_BACKENDS = 32,
    MOST_DEVICES = 64,
    MOST_FOLDERS = 16,
    NAME_BYTES = 32,
    FILE_BYTES = NAME_BYTES + 16
};

/* The backends that are known without being installed, in order of preference; what they need
 * beside their plugin. */
static const struct known {
    const char *name, *needs;
} known[] = {
    {"CUDA", "an NVIDIA GPU and its driver (Debian: libcuda1, libnvrtc11.2; section non-free)"},
    {"AMDGPU", "an AMD GPU and ROCm (Debian: libamdhip64-5, libhiprtc-builtins5)"},
    {"Metal", "an Apple computer with macOS (Debian: no package)"},
    {"OpenCL", "ocl-icd-libopencl1 and a driver, such as pocl-opencl-icd (Debian)"},
};
enum { KNOWN_COUNT = sizeof known / sizeof *known };

/* Built in: the CPU, and backends that are used by name only and are in no list. */
static const wb_backend *const builtin[] = {
    &wb_cpu_backend,
    &wb_checked_backend,
};
enum { BUILTIN_COUNT = sizeof builtin / sizeof *builtin };

/* Names that other libraries use. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"AMD", "AMDGPU"},
};

struct wb_entry {
    char name[NAME_BYTES];
    const wb_backend *backend; /* NULL: not loaded */
    char reason[WB_REASON_BYTES];
    wb_entry *next;  /* in order of preference */
    int count;       /* -1: not asked yet */
    bool is_parents; /* this process is a fork of one that has opened devices */
    const wb_device *devices[MOST_DEVICES + 1];
};

/* Guarded by the lock REGISTRY. */
static struct {
    bool is_ready;    /* the known and the built-in ones have their entries */
    bool is_searched; /* what is installed was loaded */
    int count;
    wb_entry entries[MOST_BACKENDS];
    wb_entry *first; /* in order of preference; the last is the CPU */
    wb_names *all_names, *gpu_names, *folders, *skipped;
    char found[MOST_FOLDERS][PATH_MAX]; /* folders, while they are looked for */
    int found_count;
} registry;

static wb_entry *const cpu = &registry.entries[KNOWN_COUNT];

static void name_all(void) {
    const char *names[MOST_BACKENDS];
    int count = 0;
    for (const wb_entry *e = registry.first; e; e = e->next) names[count++] = e->name;
    wb_names_set(&registry.all_names, count, names);
    wb_names_set(&registry.gpu_names, count - 1, names); /* the CPU is the last */
}

/* ---- entries ---- */

static wb_entry *add_entry(const char *name, const wb_backend *backend) {
    if (registry.count == MOST_BACKENDS) return NULL;
    wb_entry *e = &registry.entries[registry.count++];
    (void)snprintf(e->name, sizeof e->name, "%s", name);
    e->backend = backend;
    e->count = -1;
    return e;
}

/* Puts it before the CPU, after all others. */
static void enlist(wb_entry *entry) {
    wb_entry **place = &registry.first;
    while (*place && *place != cpu) place = &(*place)->next;
    entry->next = *place;
    *place = entry;
}

/* In a forked child a plugin's libraries are in whatever state the parent's threads left them. */
static void in_child(void) {
    for (int i = 0; i < registry.count; i++) {
        wb_entry *entry = &registry.entries[i];
        for (int k = 0; k < MOST_DEVICES && entry != cpu; k++)
            if (entry->devices[k]) entry->is_parents = true;
    }
}

static void prepare(void) {
    static const wb_fork_hooks hooks = {.in_child = in_child};
    if (registry.is_ready) return;
    wb_lock_on_fork(WB_LOCK_REGISTRY, &hooks);
    registry.is_ready = true;
    for (int i = 0; i < KNOWN_COUNT; i++) enlist(add_entry(known[i].name, NULL));
    for (int i = 0; i < BUILTIN_COUNT; i++) (void)add_entry(builtin[i]->name, builtin[i]);
    enlist(cpu);
    cpu->count = 1;
    cpu->devices[0] = wb_cpu_device();
    name_all();
}

static wb_entry *find(const char *name) {
    for (int i = 0; i < registry.count; i++)
        if (wb_same_name(registry.entries[i].name, name)) return &registry.entries[i];
    return NULL;
}

/* ---- loading ---- */

/* The file of a backend without its folder. */
static void file_of(const char *name, char file[FILE_BYTES]) {
    (void)snprintf(file, FILE_BYTES, "libweber_%s%s", name, wb_platform_plugin_suffix);
    for (char *c = file; *c; c++) *c = (char)tolower((unsigned char)*c);
}

/* The backend's name from the name of the file; false for other files. */
static bool name_of(const char *file, char *name, size_t size_bytes) {
    static const char begin[] = "libweber_";
    const char *end = wb_platform_plugin_suffix;
    const size_t length = strlen(file), around = sizeof begin - 1 + strlen(end);
    if (length <= around || length - around >= size_bytes) return false;
    if (strncmp(file, begin, sizeof begin - 1) != 0) return false;
    if (strcmp(file + length - strlen(end), end) != 0) return false;
    (void)snprintf(name, size_bytes, "%.*s", (int)(length - around), file + sizeof begin - 1);
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

bool wb_backend_is_allowed(const char *name) {
    const char *allowed = getenv("WEBER_BACKENDS");
    if (!allowed || !*allowed) return true;
    for (const char *from = allowed; *from;) {
        char one[NAME_BYTES];
        from += strspn(from, ", ");
        const size_t length = strcspn(from, ", ");
        (void)snprintf(one, sizeof one, "%.*s", (int)length, from);
        if (wb_same_name(one, name)) return true;
        from += length;
    }
    return false;
}

/* Warns of a name in WEBER_BACKENDS that no backend has. */
static void warn_of_unknown(void) {
    const char *allowed = getenv("WEBER_BACKENDS");
    for (const char *from = allowed ? allowed : ""; *from;) {
        char one[NAME_BYTES];
        from += strspn(from, ", ");
        const size_t length = strcspn(from, ", ");
        (void)snprintf(one, sizeof one, "%.*s", (int)length, from);
        from += length;
        if (!one[0] || find(one)) continue;
        const char *nearest = wb_nearest_name(one, wb_names_texts(registry.all_names));
        wb_log_line(WB_LOG_WARN,
                    "WEBER_BACKENDS names %s, but there is no such "
                    "backend.%s%s%s",
                    one, nearest ? " Did you mean " : "", nearest ? nearest : "",
                    nearest ? "?" : "");
    }
}

static void say_not_allowed(wb_entry *entry) {
    (void)snprintf(entry->reason, sizeof entry->reason, "left out by WEBER_BACKENDS=%s",
                   getenv("WEBER_BACKENDS"));
}

/* The plugin at folder/file was passed over; entry (or NULL) is the backend that is not loaded for
 * this, unless there is a reason already. */
static void skip(const char *folder, const char *file, const char *reason, wb_entry *entry) {
    char line[2 * WB_REASON_BYTES];
    (void)snprintf(line, sizeof line, "%s/%s: %s", folder, file, reason);
    wb_names_add(&registry.skipped, line);
    if (entry && !entry->backend && !entry->reason[0])
        (void)snprintf(entry->reason, sizeof entry->reason, "%.*s", WB_REASON_BYTES - 1, line);
}

/* Puts the table into the entry of its name, which is made if there is none. */
static void take(const char *folder, const char *file, const wb_backend *backend) {
    wb_entry *entry = find(backend->name);
    if (entry && entry->backend) {
        if (entry->backend != backend)
            skip(folder, file, "another plugin of this backend is loaded already", NULL);
        return;
    }
    if (!wb_backend_is_allowed(backend->name)) {
        if (entry) say_not_allowed(entry);
        return;
    }
    if (!entry) {
        if (!(entry = add_entry(backend->name, NULL))) return;
        enlist(entry);
        name_all();
    }
    /* the vendor's libraries are missing: the plugin itself is good, so this is the reason of the
     * backend, and the file does not count as passed over */
    char reason[WB_REASON_BYTES] = "";
    if (!backend->load(reason, sizeof reason)) {
        (void)snprintf(entry->reason, sizeof entry->reason, "%s",
                       reason[0] ? reason : "cannot be loaded");
        return;
    }
    entry->backend = backend;
    entry->count = -1;
    entry->reason[0] = 0;
}

static void try_file(const char *folder, const char *file) {
    char name[NAME_BYTES], reason[WB_REASON_BYTES] = "";
    if (!name_of(file, name, sizeof name)) return;
    wb_entry *entry = find(name);
    if (entry && entry->backend) return;
    if (!wb_backend_is_allowed(name)) {
        if (entry) say_not_allowed(entry);
        return;
    }
    const wb_backend *backend = wb_plugin_open(folder, file, reason, sizeof reason);
    if (backend)
        take(folder, file, backend);
    else
        skip(folder, file, reason, entry);
}

static void put_folder(const char *folder, const char *why_not) {
    if (why_not) {
        char line[WB_REASON_BYTES];
        (void)snprintf(line, sizeof line, "%s: %s", folder, why_not);
        wb_names_add(&registry.skipped, line);
        return;
    }
    for (int i = 0; i < registry.found_count; i++)
        if (strcmp(registry.found[i], folder) == 0) return;
    if (registry.found_count == MOST_FOLDERS || strlen(folder) >= sizeof *registry.found) return;
    (void)snprintf(registry.found[registry.found_count++], sizeof *registry.found, "%s", folder);
}

static void find_folders(void) {
    const char *folders[MOST_FOLDERS];
    registry.found_count = 0;
    wb_plugin_search_path(put_folder);
    for (int i = 0; i < registry.found_count; i++) folders[i] = registry.found[i];
    wb_names_set(&registry.folders, registry.found_count, folders);
}

static int is_plugin(const struct dirent *file) {
    char name[NAME_BYTES];
    return name_of(file->d_name, name, sizeof name);
}

static void search_folder(const char *folder) {
    struct dirent **files;
    const int count = scandir(folder, &files, is_plugin, alphasort);
    for (int i = 0; i < count; i++) {
        try_file(folder, files[i]->d_name);
        free(files[i]);
    }
    if (count >= 0) free(files);
}

/* Why an entry without a plugin is not loaded. */
static void say_not_installed(wb_entry *entry) {
    char file[FILE_BYTES];
    file_of(entry->name, file);
    const int64_t i = entry - registry.entries;
    (void)snprintf(entry->reason, sizeof entry->reason, "%s is not installed%s%s", file,
                   i < KNOWN_COUNT ? "; it needs " : "", i < KNOWN_COUNT ? known[i].needs : "");
    if (!wb_backend_is_allowed(entry->name)) say_not_allowed(entry);
}

static void explain_missing(void) {
    for (int i = 0; i < registry.count; i++) {
        wb_entry *entry = &registry.entries[i];
        if (!entry->backend && !entry->reason[0]) say_not_installed(entry);
    }
}

static void forget_reasons(void) {
    for (int i = 0; i < registry.count; i++)
        if (!registry.entries[i].backend) registry.entries[i].reason[0] = 0;
}

static void search(void) {
    if (registry.is_searched) return;
    registry.is_searched = true;
    forget_reasons();
    find_folders();
    for (const char *const *f = wb_names_texts(registry.folders); *f; f++) search_folder(*f);
    explain_missing();
    warn_of_unknown();
}

/* One backend, by the file that its name asks for. */
static void load(const char *name) {
    char file[FILE_BYTES], path[PATH_MAX];
    wb_entry *entry = find(name);
    if (strlen(name) >= NAME_BYTES || (entry && entry->backend)) return;
    if (entry) entry->reason[0] = 0;
    file_of(name, file);
    find_folders();
    for (const char *const *f = wb_names_texts(registry.folders); *f; f++) {
        const int length = snprintf(path, sizeof path, "%s/%s", *f, file);
        if (length < (int)sizeof path && access(path, F_OK) == 0) try_file(*f, file);
    }
    explain_missing();
}

/* ---- from one question to the next ---- */

static void lock(void) {
    wb_lock_take(WB_LOCK_REGISTRY);
    prepare();
}

static void unlock(void) { wb_lock_give(WB_LOCK_REGISTRY); }

void wb_registry_forget(void) {
    lock();
    registry.is_searched = false;
    wb_names_set(&registry.skipped, 0, NULL);
    for (int i = 0; i < registry.count; i++) {
        wb_entry *entry = &registry.entries[i];
        if (entry == cpu) continue;
        entry->count = -1;
        entry->reason[0] = 0;
    }
    unlock();
}

static const char *const *list_of(wb_names **l) {
    lock();
    search();
    const char *const *texts = wb_names_texts(*l);
    unlock();
    return texts;
}

const char *const *wb_supported_devices(void) { return list_of(&registry.all_names); }
const char *const *wb_supported_gpu_backends(void) { return list_of(&registry.gpu_names); }
const char *const *wb_plugin_folders(void) { return list_of(&registry.folders); }
const char *const *wb_skipped_plugins(void) { return list_of(&registry.skipped); }

wb_entry *wb_entry_next(wb_entry *entry) {
    lock();
    search();
    wb_entry *next = entry ? entry->next : registry.first;
    unlock();
    return next;
}

const char *wb_entry_name(const wb_entry *entry) { return entry->name; }
bool wb_entry_is_cpu(const wb_entry *entry) { return entry == cpu; }

/* ---- by name ---- */

static const char *without_alias(const char *name) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (!wb_same_name(aliases[i].alias, name)) continue;
        wb_log_line(WB_LOG_WARN, "the backend %s is called %s", name, aliases[i].name);
        return aliases[i].name;
    }
    return name;
}

wb_entry *wb_entry_find(const char *name) {
    name = without_alias(name);
    lock();
    search();
    wb_entry *entry = find(name);
    unlock();
    return entry;
}

static wb_status fail_unsupported(const char *name) {
    char names[WB_REASON_BYTES], hint[96] = "";
    const char *const *supported = wb_supported_devices();
    const char *nearest = wb_nearest_name(name, supported);
    wb_join_names(names, sizeof names, supported);
    if (wb_same_name(name, "GPU"))
        (void)snprintf(hint, sizeof hint, " wb_gpu_device() takes the first GPU that works.");
    else if (nearest)
        (void)snprintf(hint, sizeof hint, " Did you mean %s?", nearest);
    if (!*name)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "a device must be named as BACKEND or BACKEND:INDEX, got \"\"; supported "
                       "backends are: %s",
                       names);
    return wb_fail(WB_ERROR_ARGUMENT, "Unsupported backend: %s. Supported backends are: %s.%s",
                   name, names, hint);
}

wb_entry *wb_entry_of(const char *name) {
    if (!name) return wb_fail_argument_null("device", "the backend's name");
    wb_entry *entry = wb_entry_find(name);
    if (!entry) (void)fail_unsupported(name);
    return entry;
}

wb_status wb_use(const char *backend) {
    if (!backend) return wb_fail_argument_null("use", "backend"), WB_ERROR_ARGUMENT;
    const char *name = without_alias(backend);
    char reason[WB_REASON_BYTES];
    lock();
    load(name);
    wb_entry *entry = find(name);
    if (entry && entry != cpu) entry->count = -1;
    unlock();
    if (!entry) return fail_unsupported(name);
    if (wb_entry_loaded(entry, reason)) return WB_OK;
    return wb_fail(WB_ERROR_DEVICE, "Unavailable backend: %s. %s", entry->name, reason);
}

/* ---- one entry ---- */

static bool copy_reason(const wb_entry *entry, bool is_yes, char *reason) {
    (void)snprintf(reason, WB_REASON_BYTES, "%s", is_yes ? "" : entry->reason);
    return is_yes;
}

bool wb_entry_loaded(wb_entry *entry, char *reason) {
    lock();
    const bool loaded = copy_reason(entry, entry->backend != NULL, reason);
    unlock();
    return loaded;
}

bool wb_entry_load(wb_entry *entry, char *reason) {
    lock();
    load(entry->name);
    unlock();
    return wb_entry_loaded(entry, reason);
}

static int count_of(wb_entry *entry) {
    if (!entry->backend) return 0;
    if (entry->count >= 0) return entry->count;
    entry->reason[0] = 0;
    const int count = entry->backend->count(entry->reason, sizeof entry->reason);
    entry->count = count < 0 ? 0 : count < MOST_DEVICES ? count : MOST_DEVICES;
    if (entry->count == 0 && !entry->reason[0])
        (void)snprintf(entry->reason, sizeof entry->reason, "there is no device");
    return entry->count;
}

int wb_entry_count(wb_entry *entry, char *reason) {
    lock();
    const int count = count_of(entry);
    (void)copy_reason(entry, count > 0, reason);
    unlock();
    return count;
}

bool wb_entry_part(wb_entry *entry, const char *part, char *reason) {
    lock();
    bool works = count_of(entry) > 0;
    (void)copy_reason(entry, works, reason);
    if (works) {
        works = entry->backend->part && entry->backend->part(part, reason, WB_REASON_BYTES);
        if (!works && !reason[0])
            (void)snprintf(reason, WB_REASON_BYTES, "%s has no part %s", entry->name, part);
        if (works) reason[0] = 0;
    }
    unlock();
    return works;
}

/* ---- devices ---- */

/* "OpenCL, CPU": what can be asked for instead. */
static void join_functional(char *text, size_t size_bytes) {
    const char *names[MOST_BACKENDS + 1] = {NULL};
    int count = 0;
    char reason[WB_REASON_BYTES];
    for (wb_entry *e = wb_entry_next(NULL); e; e = wb_entry_next(e))
        if (wb_entry_count(e, reason) > 0) names[count++] = e->name;
    wb_join_names(text, size_bytes, names);
}

wb_status wb_entry_check(wb_entry *entry) {
    char reason[WB_REASON_BYTES], names[WB_REASON_BYTES];
    const bool loaded = wb_entry_loaded(entry, reason);
    if (loaded && wb_entry_count(entry, reason) > 0) return WB_OK;
    join_functional(names, sizeof names);
    return wb_fail(WB_ERROR_DEVICE,
                   loaded ? "Backend: %s is not functional: %s. Functional backends are: %s."
                          : "Unavailable backend: %s. %s. Available are: %s.",
                   entry->name, reason, names);
}

wb_status wb_entry_check_index(wb_entry *entry, int index) {
    char reason[WB_REASON_BYTES];
    const int count = wb_entry_count(entry, reason);
    if (index >= 0 && index < count) return WB_OK;
    return wb_fail(WB_ERROR_ARGUMENT, "%s(%d): there %s %d %s device%s, %s%.0d", entry->name, index,
                   count == 1 ? "is" : "are", count, entry->name, count == 1 ? "" : "s",
                   count == 1 ? "0" : "0 to ", count - 1);
}

wb_entry *wb_entry_with_device(const char *backend, int *index) {
    wb_entry *entry = wb_entry_of(backend);
    if (!entry || wb_entry_check(entry) != WB_OK) return NULL;
    if (entry == cpu) {
        if (*index != 0)
            wb_log_line(WB_LOG_WARN, "the index %d is ignored: there is only one CPU device",
                        *index);
        *index = 0;
    }
    return wb_entry_check_index(entry, *index) == WB_OK ? entry : NULL;
}

static bool check_process(const wb_entry *entry) {
    if (!entry->is_parents) return true;
    (void)wb_fail(WB_ERROR_DEVICE,
                  "%s: cannot be used here: this process was made by fork after its parent had "
                  "opened a device of it",
                  entry->name);
    return false;
}

wb_status wb_entry_info(wb_entry *entry, int index, wb_device_info *info) {
    lock();
    const wb_status status =
        check_process(entry) ? entry->backend->info(index, info) : WB_ERROR_DEVICE;
    unlock();
    return status;
}

/* The backend's own message, if it has one, comes first. */
static const wb_device *open_device(wb_entry *entry, int index) {
    if (entry->devices[index]) return entry->devices[index];
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    if (check_process(entry)) entry->devices[index] = wb_device_new(entry->backend, index);
    if (!entry->devices[index])
        (void)wb_fail(WB_ERROR_DEVICE, "%s(%d) cannot be opened", entry->name, index);
    wb_error_bring_back(&aside);
    return entry->devices[index];
}

const wb_device *wb_entry_device(wb_entry *entry, int index) {
    lock();
    const wb_device *device = open_device(entry, index);
    unlock();
    return device;
}

static int first_gpu(wb_entry *entry) {
    const int count = count_of(entry);
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    int found = -1;
    for (int i = 0; i < count && found < 0; i++) {
        wb_device_info info = {.name = ""};
        if (entry->backend->info(i, &info) == WB_OK && info.is_gpu) found = i;
    }
    wb_clear_error();
    wb_error_bring_back(&aside);
    return found;
}

int wb_entry_gpu(wb_entry *entry) {
    lock();
    const int index = first_gpu(entry);
    unlock();
    return index;
}

const wb_device *const *wb_entry_devices(wb_entry *entry) {
    lock();
    const wb_device *const *devices = entry->devices; /* ended by NULL once all are open */
    const int count = count_of(entry);
    for (int i = 0; i < count && devices; i++)
        if (!open_device(entry, i)) devices = NULL;
    unlock();
    return devices;
}
