/* The choice of a device: WEBER_DEVICE, then the preference, then the first GPU, then the CPU. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "device/device.h"
#include "device/names.h"
#include "device/preferences.h"
#include "device/registry.h"

/* ---- a decision in the making ---- */

typedef enum manner {
    QUIET,   /* no line in the log, and nothing is opened */
    NORMAL,  /* warnings */
    VERBOSE, /* every step, whatever the level */
} manner;

typedef struct decision {
    manner manner;
    int id; /* wanted number of the device, from 1; 0: choose */
    wb_entry *entry;
    int index;
    const wb_device *device; /* unless QUIET */
    bool is_automatic;
    char why[512];
} decision;

#define tell(d, ...) ((d)->manner == VERBOSE ? wb_log_always(__VA_ARGS__) : (void)0)
#define warn(d, ...) ((d)->manner == QUIET ? (void)0 : wb_log_line(WB_LOG_WARN, __VA_ARGS__))

static void because(decision *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void because(decision *d, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(d->why, sizeof d->why, format, arguments);
    va_end(arguments);
}

static const wb_device *of_rank; /* __atomic */

void wb_choose_rank_device(const wb_device *device) {
    __atomic_store_n(&of_rank, device, __ATOMIC_RELEASE);
}

/* The number of the rank's own device, if that is one of the backend's; else -1. */
static int index_of_rank(const wb_entry *entry) {
    const wb_device *device = __atomic_load_n(&of_rank, __ATOMIC_ACQUIRE);
    return device && strcmp(device->backend->name, wb_entry_name(entry)) == 0 ? device->index : -1;
}

/* Chooses this backend, and of its devices the one that was asked for, else the rank's own, else
 * the first GPU, else the first one. */
static wb_status settle(decision *d, wb_entry *entry, int index) {
    if (d->id > 0 && !wb_entry_is_cpu(entry)) index = d->id - 1;
    if (index < 0) index = index_of_rank(entry);
    if (index < 0) index = wb_entry_gpu(entry);
    if (index < 0) index = 0;
    const wb_status status = wb_entry_check_index(entry, index);
    if (status != WB_OK) return status;
    d->entry = entry;
    d->index = index;
    if (d->manner == QUIET) return WB_OK;
    d->device = wb_entry_device(entry, index);
    return d->device ? WB_OK : WB_ERROR_DEVICE;
}

/* The same for a backend that can be done without: if its device cannot be opened, message says why
 * and the status is WB_ERROR_DEVICE without an error. */
static wb_status try_to_settle(decision *d, wb_entry *entry, char message[WB_REASON_BYTES]) {
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    const wb_status status = settle(d, entry, -1);
    if (status == WB_ERROR_DEVICE) (void)wb_take_error(message, WB_REASON_BYTES);
    wb_error_bring_back(&aside);
    return status;
}

/* ---- WEBER_DEVICE ---- */

/* "OpenCL:1" is OpenCL and 1; "OpenCL" is OpenCL and -1. */
static wb_status split(const char *text, char *name, size_t size_bytes, int *index) {
    const size_t length = strcspn(text, ":");
    (void)snprintf(name, size_bytes, "%.*s", (int)length, text);
    *index = -1;
    if (!text[length]) return WB_OK;
    const char *digits = text + length + 1;
    const size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 4 || digits[count])
        return wb_fail(WB_ERROR_ARGUMENT,
                       "a device must be BACKEND or BACKEND:INDEX with an index from 0, got "
                       "\"%s\"",
                       text);
    *index = atoi(digits);
    return WB_OK;
}

static void tell_what_it_beats(decision *d, const char *variable) {
    char preference[WB_PREFERENCE_BYTES], path[PATH_MAX];
    const char *name = wb_entry_name(d->entry);
    because(d, "WEBER_DEVICE=%s", variable);
    tell(d, "Using backend set in WEBER_DEVICE: %s.", name);
    if (!wb_preference_backend(preference, path, true) || wb_same_name(preference, name)) return;
    because(d, "WEBER_DEVICE=%s, which overrides the preference %s", variable, preference);
    if (d->manner == NORMAL)
        wb_log_line(WB_LOG_INFO, "WEBER_DEVICE=%s overrides the preference %s.", variable,
                    preference);
    tell(d, "WEBER_DEVICE=%s overrides the preference %s.", variable, preference);
}

static wb_status settle_variable(decision *d, const char *variable) {
    char name[64];
    int index;
    wb_status status = split(variable, name, sizeof name, &index);
    if (status != WB_OK) return status;
    d->entry = wb_entry_of(name);
    if (!d->entry) return WB_ERROR_ARGUMENT;
    status = wb_entry_check(d->entry);
    if (status != WB_OK) return status;
    tell_what_it_beats(d, variable);
    if (wb_entry_is_cpu(d->entry) && index > 0) {
        warn(d, "WEBER_DEVICE=%s: the index is ignored: there is only one CPU device", variable);
        index = 0;
    }
    return settle(d, d->entry, index);
}

/* Errors name the variable. */
static wb_status by_variable(decision *d, const char *variable) {
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    const wb_status status = settle_variable(d, variable);
    if (status != WB_OK) {
        char message[WB_MESSAGE_BYTES];
        (void)wb_take_error(message, sizeof message);
        (void)wb_fail(status, "WEBER_DEVICE=%s: %s", variable, message);
    }
    wb_error_bring_back(&aside);
    return status;
}

/* ---- the preference ---- */

static void warn_not_allowed(const decision *d, const char *preference) {
    char names[WB_REASON_BYTES];
    const char *const *supported = wb_supported_devices();
    const char *nearest = wb_nearest_name(preference, supported);
    wb_join_names(names, sizeof names, supported);
    warn(d,
         "`gpu_backend` preference is set to %s, which is not allowed. Defaulting to automatic "
         "device "
         "selection.",
         preference);
    warn(d, "Allowed are: %s.%s%s%s", names, nearest ? " Did you mean " : "",
         nearest ? nearest : "", nearest ? "?" : "");
}

static void warn_not_loaded(const decision *d, const char *name, const char *reason) {
    const char *remedy =
        wb_backend_is_allowed(name) ? "install what is missing" : "name it in WEBER_BACKENDS";
    warn(d, "Trying to use backend: %s but its plugin is not loaded: %s.", name, reason);
    warn(d, "Please %s and call this function again to respect the preferences backend.", remedy);
}

static void warn_not_functional(const decision *d, const char *name, const char *reason) {
    warn(d,
         "Backend: %s from the set preferences is not functional: %s. Defaulting to automatic "
         "device "
         "selection.",
         name, reason);
}

/* True: the decision is made, with this status. */
static bool by_preference(decision *d, wb_status *status) {
    char preference[WB_PREFERENCE_BYTES], path[PATH_MAX], reason[WB_REASON_BYTES];
    if (!wb_preference_backend(preference, path, d->manner == QUIET)) return false;
    wb_entry *entry = wb_entry_find(preference);
    because(d, "automatic, since the preference %s is unknown", preference);
    if (!entry) return warn_not_allowed(d, preference), false;
    const char *name = wb_entry_name(entry);
    tell(d, "Using backend set in preferences: %s.", name);
    because(d, "automatic, since the preference %s is not loaded", name);
    if (!wb_entry_load(entry, reason)) return warn_not_loaded(d, name, reason), false;
    because(d, "automatic, since the preference %s is not functional", name);
    if (wb_entry_count(entry, reason) == 0) return warn_not_functional(d, name, reason), false;
    *status = try_to_settle(d, entry, reason);
    if (*status == WB_ERROR_DEVICE) return warn_not_functional(d, name, reason), false;
    because(d, "the preference gpu_backend in %.400s", path);
    return true;
}

/* ---- what is there ---- */

static wb_status automatic(decision *d) {
    d->is_automatic = true;
    wb_entry *e = wb_entry_next(NULL);
    for (; !wb_entry_is_cpu(e); e = wb_entry_next(e)) {
        char reason[WB_REASON_BYTES];
        if (wb_entry_gpu(e) < 0) continue;
        const wb_status status = try_to_settle(d, e, reason);
        if (status == WB_OK) break;
        if (status != WB_ERROR_DEVICE) return status;
        warn(d, "Backend: %s is not functional: %s. Trying the next one.", wb_entry_name(e),
             reason);
    }
    const bool is_cpu = wb_entry_is_cpu(e);
    if (!d->why[0]) because(d, is_cpu ? "automatic: there is no GPU" : "automatic: the first GPU");
    tell(d, "Using backend: %s.", wb_entry_name(e));
    return is_cpu ? settle(d, e, 0) : WB_OK;
}

static wb_status decide(decision *d) {
    const char *variable = getenv("WEBER_DEVICE");
    wb_status status;
    if (variable && *variable) return by_variable(d, variable);
    return by_preference(d, &status) ? status : automatic(d);
}

/* ---- the calls ---- */

static const wb_device *device_at(const char *backend, int index) {
    wb_entry *entry = wb_entry_with_device(backend, &index);
    return entry ? wb_entry_device(entry, index) : NULL;
}

const wb_device *wb_get_device_make(wb_get_device_desc desc) {
    decision d = {.manner = desc.verbose ? VERBOSE : NORMAL};
    if (desc.backend) {
        d.device = device_at(desc.backend, desc.index);
        if (d.device) tell(&d, "Using device: %s.", wb_device_name(d.device));
        return d.device;
    }
    if (desc.index != 0)
        return wb_fail_null(WB_ERROR_ARGUMENT, "get_device: index %d needs a backend, as in %s",
                            desc.index, "wb_get_device(\"CUDA\", 1)");
    return decide(&d) == WB_OK ? d.device : NULL;
}

const wb_device *wb_get_device_named(const char *name) {
    decision d = {.manner = NORMAL};
    char backend[64];
    int index;
    if (!name) return wb_fail_argument_null("get_device_named", "the device's name");
    if (split(name, backend, sizeof backend, &index) != WB_OK) return NULL;
    if (index >= 0) return device_at(backend, index);
    wb_entry *entry = wb_entry_of(backend);
    const bool is_there = entry && wb_entry_check(entry) == WB_OK;
    return is_there && settle(&d, entry, -1) == WB_OK ? d.device : NULL;
}

/* Why a backend gives no GPU. */
static void why_no_gpu(wb_entry *entry, char reason[WB_REASON_BYTES]) {
    if (!wb_entry_loaded(entry, reason) || wb_entry_count(entry, reason) == 0) return;
    (void)snprintf(reason, WB_REASON_BYTES,
                   "has no GPU; to use its other devices, name it: WEBER_DEVICE=%s",
                   wb_entry_name(entry));
}

static bool said_no_gpu; /* __atomic */

static void say_no_gpu(void) {
    if (__atomic_exchange_n(&said_no_gpu, true, __ATOMIC_RELAXED)) return;
    wb_log_line(WB_LOG_WARN, "No functional GPU backend found! Defaulting to CPU.");
    wb_log_line(WB_LOG_WARN, "1. If no GPU is available, nothing needs to be done.");
    wb_log_line(WB_LOG_WARN, "2. If a GPU is available, this is what is missing:");
    for (wb_entry *e = wb_entry_next(NULL); !wb_entry_is_cpu(e); e = wb_entry_next(e)) {
        char reason[WB_REASON_BYTES];
        why_no_gpu(e, reason);
        wb_log_line(WB_LOG_WARN, "   %s: %s", wb_entry_name(e), reason);
    }
}

static void fail_no_gpu(const decision *d) {
    char text[WB_MESSAGE_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "No functional GPU device found!");
    wb_entry *e = d->is_automatic ? wb_entry_next(NULL) : d->entry;
    if (!d->is_automatic)
        (void)snprintf(text + used, sizeof text - used, " The CPU was asked for by %s.", d->why);
    for (; !wb_entry_is_cpu(e) && used < sizeof text; e = wb_entry_next(e)) {
        char reason[WB_REASON_BYTES];
        why_no_gpu(e, reason);
        used +=
            (size_t)snprintf(text + used, sizeof text - used, " %s: %s.", wb_entry_name(e), reason);
    }
    (void)wb_fail(WB_ERROR_DEVICE, "%s", text);
}

const wb_device *wb_gpu_device_make(wb_gpu_device_desc desc) {
    decision d = {.manner = NORMAL, .id = desc.id};
    if (desc.id < 0)
        return wb_fail_null(WB_ERROR_ARGUMENT, "gpu_device: id must be at least 1, got %d",
                            desc.id);
    if (decide(&d) != WB_OK) return NULL;
    if (!wb_entry_is_cpu(d.entry)) return d.device;
    if (desc.force) return fail_no_gpu(&d), NULL;
    if (d.is_automatic) say_no_gpu();
    if (desc.id)
        wb_log_line(WB_LOG_WARN, "the id %d is ignored: there is only one CPU device", desc.id);
    return d.device;
}

void wb_reset_gpu_device(void) {
    wb_registry_forget();
    __atomic_store_n(&said_no_gpu, false, __ATOMIC_RELAXED);
}

wb_status wb_device_choice(wb_choice *choice) {
    decision d = {.manner = QUIET};
    if (!choice)
        return (void)wb_fail_argument_null("wb_device_choice", "choice"), wb_error_status();
    *choice = (wb_choice){.device = ""};
    const wb_status status = decide(&d);
    (void)snprintf(choice->why, sizeof choice->why, "%s", d.why);
    if (status != WB_OK) return status;
    const char *name = wb_entry_name(d.entry);
    choice->is_automatic = d.is_automatic;
    (void)snprintf(choice->backend, sizeof choice->backend, "%s", name);
    if (wb_entry_is_cpu(d.entry))
        (void)snprintf(choice->device, sizeof choice->device, "%s", name);
    else
        (void)snprintf(choice->device, sizeof choice->device, "%s(%d)", name, d.index);
    return WB_OK;
}

/* ---- the preference gpu_backend ---- */

const char *wb_gpu_backend(void) {
    char *preference = wb_scratch(WB_SCRATCH_BACKEND, WB_PREFERENCE_BYTES);
    char path[PATH_MAX];
    return wb_preference_backend(preference, path, false) ? preference : NULL;
}

wb_status wb_gpu_backend_set(const char *backend) {
    wb_entry *entry = wb_entry_of(backend);
    if (!entry) return WB_ERROR_ARGUMENT;
    const char *name = wb_entry_name(entry), *now = wb_gpu_backend();
    if (now && strcmp(now, name) == 0) {
        wb_log_line(WB_LOG_INFO, "GPU backend is already set to: %s. No need to do anything else.",
                    name);
        return WB_OK;
    }
    const wb_status status = wb_preference_set("gpu_backend", name);
    if (status != WB_OK) return status;
    wb_log_line(WB_LOG_INFO, "New GPU backend set: %s.", name);
    const char *variable = getenv("WEBER_DEVICE");
    if (variable && *variable)
        wb_log_line(WB_LOG_WARN, "New GPU backend set: %s. WEBER_DEVICE=%s overrides it.", name,
                    variable);
    return WB_OK;
}

wb_status wb_gpu_backend_reset(void) {
    const wb_status status = wb_preference_remove_backend();
    if (status == WB_OK) wb_log_line(WB_LOG_INFO, "Deleted the preference for `gpu_backend`.");
    return status;
}
