/* Which devices there are, and why there are none. */
#include <stdio.h>
#include <string.h>

#include "device.h"

enum { MOST_DEVICES = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static mtl_id known[MOST_DEVICES];                       /* kept for ever */
static int known_count;

static void find_devices(char *reason, size_t reason_bytes) {
    const mtl_id all = mtl.MTLCopyAllDevices();
    const mtl_uint count = mtl_count(all);
    for (mtl_uint i = 0; i < count && known_count < MOST_DEVICES; i++)
        known[known_count++] = mtl_retain(mtl_object_at(all, i));
    mtl_release(all);
    if (known_count == 0)
        (void)snprintf(reason, reason_bytes,
                       "macOS shows no Metal device (MTLCopyAllDevices: none), as in a virtual "
                       "machine or without a logged-in user");
}

int wb_metal_count(char *reason, size_t reason_bytes) {
    if (!wb_metal_load(reason, reason_bytes)) return 0;
    WB_METAL_POOL(pool);
    pthread_mutex_lock(&lock);
    if (known_count == 0) find_devices(reason, reason_bytes);
    const int count = known_count;
    pthread_mutex_unlock(&lock);
    return count;
}

mtl_id wb_metal_find(int index) {
    char reason[256] = "";
    const int count = wb_metal_count(reason, sizeof reason);
    if (count == 0)
        (void)wb_metal_host->fail(WB_ERROR_DEVICE, "Metal: %s", reason);
    else if (index < 0 || index >= count)
        (void)wb_metal_host->fail(WB_ERROR_ARGUMENT, "Metal: there is no device %d, only 0 .. %d",
                                  index, count - 1);
    return index >= 0 && index < count ? known[index] : NULL;
}

/* ---- what a device is ---- */

bool wb_metal_has_simd(mtl_id device) { return mtl_supports_family(device, MTL_FAMILY_APPLE7); }

const char *wb_metal_system(void) {
    static const char begin[] = "Version ";
    const char *text =
        wb_metal_text(mtl_system_version(mtl_process_info(wb_metal_class("NSProcessInfo"))));
    return strncmp(text, begin, sizeof begin - 1) == 0 ? text + sizeof begin - 1 : text;
}

/* "Apple7"; the newest family of Apple's own GPUs, "" for others. */
static const char *family_of(mtl_id device, char name[24]) {
    int newest = 0;
    for (int i = 1; i <= 20; i++)
        if (mtl_supports_family(device, MTL_FAMILY_APPLE7 - 7 + i)) newest = i;
    name[0] = 0;
    if (newest) (void)snprintf(name, 24, ", Apple%d", newest);
    return name;
}

wb_status wb_metal_info(int index, wb_device_info *info) {
    char family[24];
    *info = (wb_device_info){.is_gpu = true, .takes_halves = true, .reads_parts = true};
    const mtl_id device = wb_metal_find(index);
    if (!device) return WB_ERROR_DEVICE;
    WB_METAL_POOL(pool);
    info->memory_bytes = (int64_t)mtl_working_set(device);
    (void)snprintf(info->name, sizeof info->name, "%s", wb_metal_text(mtl_name(device)));
    (void)snprintf(info->address, sizeof info->address, "%016llx",
                   (unsigned long long)mtl_registry_id(device));
    (void)snprintf(info->driver, sizeof info->driver, "Metal%s, macOS %s",
                   family_of(device, family), wb_metal_system());
    return WB_OK;
}
