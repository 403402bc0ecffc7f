/* The registry: every backend that is built in, installed or known by name, and their devices.
 * Entries, lists and devices are made once and never released; any thread may ask. No plugin is
 * opened before the first question. */
#ifndef WB_DEVICE_REGISTRY_H
#define WB_DEVICE_REGISTRY_H

#include <weber/device.h>
#include <weber/plugin.h>

enum { WB_REASON_BYTES = 512 };

typedef struct wb_entry wb_entry;

/* The entry of a name, after everything installed was loaded. NULL for an unknown name, which is an
 * error. */
wb_entry *wb_entry_of(const char *name);

/* The same without an error. */
wb_entry *wb_entry_find(const char *name);

/* The next entry in order of preference; backends that are chosen by name only are left out. NULL
 * gives the first; after the last, the CPU, comes NULL. */
wb_entry *wb_entry_next(wb_entry *entry);

const char *wb_entry_name(const wb_entry *entry);
bool wb_entry_is_cpu(const wb_entry *entry);

/* Whether it is loaded, and how many devices it has (counted once, until wb_reset_gpu_device).
 * reason (WB_REASON_BYTES) says why the answer is no or 0. */
bool wb_entry_loaded(wb_entry *entry, char *reason);
int wb_entry_count(wb_entry *entry, char *reason);
bool wb_entry_part(wb_entry *entry, const char *part, char *reason);

/* Tries once more to load what is not loaded. */
bool wb_entry_load(wb_entry *entry, char *reason);

/* index must be below the count. */
wb_status wb_entry_info(wb_entry *entry, int index, wb_device_info *info);
const wb_device *wb_entry_device(wb_entry *entry, int index);

/* The first device that is a GPU; -1: none. */
int wb_entry_gpu(wb_entry *entry);

/* Fail unless the backend is functional (naming those that are), or has such a device. */
wb_status wb_entry_check(wb_entry *entry);
wb_status wb_entry_check_index(wb_entry *entry, int index);

/* The entry of a backend that has such a device; NULL with an error. The CPU's index becomes 0,
 * with a warning. */
wb_entry *wb_entry_with_device(const char *backend, int *index);

/* All devices of the backend, opened, as a list ended by NULL. NULL: one cannot be opened. */
const wb_device *const *wb_entry_devices(wb_entry *entry);

/* False if WEBER_BACKENDS leaves the backend out. */
bool wb_backend_is_allowed(const char *name);

/* Forgets the counts of devices, for wb_reset_gpu_device. */
void wb_registry_forget(void);

#endif
