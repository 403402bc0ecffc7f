/* The public questions about backends and devices, answered from the registry. */
#include <stdio.h>

#include "base/error.h"
#include "base/scratch.h"
#include "device/device.h"
#include "device/registry.h"

/* ---- backends ---- */

static char *why_not(void) { return wb_scratch(WB_SCRATCH_REASON, WB_REASON_BYTES); }

const char *wb_reason(void) { return why_not(); }

/* The entry; what is wrong with an unknown name is a reason too. */
static wb_entry *ask(const char *backend) {
    wb_error_aside aside;
    wb_error_put_aside(&aside);
    wb_entry *entry = wb_entry_of(backend);
    (void)snprintf(why_not(), WB_REASON_BYTES, "%s", wb_error_text());
    wb_error_bring_back(&aside);
    return entry;
}

bool wb_loaded(const char *backend) {
    wb_entry *entry = ask(backend);
    return entry && wb_entry_loaded(entry, why_not());
}

int wb_device_count(const char *backend) {
    wb_entry *entry = ask(backend);
    return entry ? wb_entry_count(entry, why_not()) : 0;
}

bool wb_functional(const char *backend) { return wb_device_count(backend) > 0; }

bool wb_functional_part(const char *backend, const char *part) {
    if (!part) return wb_fail_argument_null("functional_part", "part");
    wb_entry *entry = ask(backend);
    return entry && wb_entry_part(entry, part, why_not());
}

const wb_device *const *wb_devices(const char *backend) {
    wb_entry *entry = ask(backend);
    return entry ? wb_entry_devices(entry) : NULL;
}

static void show_devices_of(wb_entry *entry) {
    char reason[WB_REASON_BYTES];
    const int count = wb_entry_count(entry, reason);
    for (int i = 0; i < count; i++) {
        wb_properties properties;
        if (wb_device_properties_at(wb_entry_name(entry), i, &properties) != WB_OK) return;
        if (wb_entry_is_cpu(entry))
            (void)printf("%s: %s\n", wb_entry_name(entry), properties.name);
        else
            (void)printf("%s(%d): %s\n", wb_entry_name(entry), i, properties.name);
    }
}

void wb_show_devices(void) {
    for (wb_entry *e = wb_entry_next(NULL); e; e = wb_entry_next(e)) show_devices_of(e);
}

/* ---- one device ---- */

const char *wb_device_backend_name(const wb_device *device) {
    return device ? device->backend->name : "";
}

int wb_device_id(const wb_device *device) {
    return device && device != wb_cpu_device() ? device->index : -1;
}

static wb_properties properties_of(const wb_device_info *info) {
    wb_properties properties = {.memory_bytes = info->memory_bytes,
                                .compute_units = info->compute_units,
                                .is_gpu = info->is_gpu,
                                .has_f64 = info->has_f64};
    (void)snprintf(properties.name, sizeof properties.name, "%s", info->name);
    (void)snprintf(properties.driver, sizeof properties.driver, "%s", info->driver);
    (void)snprintf(properties.address, sizeof properties.address, "%s", info->address);
    (void)snprintf(properties.uuid, sizeof properties.uuid, "%s", info->uuid);
    return properties;
}

wb_properties wb_device_properties(const wb_device *device) {
    wb_device_info info = {.name = ""};
    if (device == wb_cpu_device())
        (void)wb_cpu_backend.info(0, &info);
    else if (device)
        info = device->info;
    return properties_of(&info);
}

wb_status wb_device_properties_at(const char *backend, int index, wb_properties *properties) {
    wb_device_info info = {.name = ""};
    if (!properties) {
        (void)wb_fail_argument_null("wb_device_properties_at", "properties");
        return wb_error_status();
    }
    *properties = properties_of(&info);
    wb_entry *entry = wb_entry_with_device(backend, &index);
    if (!entry) return wb_error_status();
    const wb_status status = wb_entry_info(entry, index, &info);
    if (status == WB_OK) *properties = properties_of(&info);
    return status;
}
