/* Which devices there are, and why there are none. The results of a failed call are not used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static const wb_gpu_vendor *const vendor = &wb_gpu_vendor_table;

enum { MOST_DEVICES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static wb_gpu_found known[MOST_DEVICES];
static int known_count;

/* ---- the reason ---- */

/* The first variable that is set and hides devices; NULL: none. */
static const char *hiding_variable(void) {
    for (int i = 0; vendor->hiding[i]; i++)
        if (getenv(vendor->hiding[i])) return vendor->hiding[i];
    return NULL;
}

static void explain(const char *call, gpu_code code, char *reason, size_t reason_bytes) {
    const char *variable = hiding_variable();
    char answer[128] = "no device";
    if (code != GPU_SUCCESS)
        (void)snprintf(answer, sizeof answer, "%s: %s", call, wb_gpu_error_name(code));
    if (variable && (code == GPU_SUCCESS || vendor->is_no_device(code)))
        (void)snprintf(reason, reason_bytes, "hidden by %s=%s (%s)", variable, getenv(variable),
                       answer);
    else if (code == GPU_SUCCESS || vendor->is_no_device(code))
        (void)snprintf(reason, reason_bytes, "the driver sees no GPU (%s)", answer);
    else
        (void)snprintf(reason, reason_bytes, "the driver does not work: %s", answer);
}

/* How many the driver has. */
static int ask_driver(char *reason, size_t reason_bytes) {
    const char *call = GPU_CALL(Init);
    int count = 0;
    if (vendor->can_begin && !vendor->can_begin(reason, reason_bytes)) return 0;
    gpu_code code = gpu.Init(0);
    const gpu_code counted =
        code == GPU_SUCCESS || vendor->is_no_device(code) ? gpu.DeviceGetCount(&count) : code;
    if (code == GPU_SUCCESS || counted == GPU_NO_DEVICE) /* HIP says it better than its hipInit */
        call = GPU_CALL(DeviceGetCount), code = counted;
    if (code != GPU_SUCCESS) count = 0;
    if (count <= 0) explain(call, code, reason, reason_bytes);
    return count > 0 ? count : 0;
}

/* ---- the list ---- */

/* Adds the device. If it fails, or the compiler has nothing for it, it is left out, and that is the
 * reason given if there is no other device. */
static void add_device(int index, char *reason, size_t reason_bytes) {
    wb_gpu_found found = {.ordinal = 0};
    char why[160] = "";
    const wb_gpu_outcome o = GPU_TRY(DeviceGet, &found.ordinal, index);
    if (o.error)
        (void)snprintf(why, sizeof why, "%s: %s", o.call, o.error);
    else if (vendor->target(found.ordinal, &found.target, why, sizeof why))
        known[known_count++] = found;
    if (why[0]) (void)snprintf(reason, reason_bytes, "device %d: %s", index, why);
}

int wb_gpu_count(char *reason, size_t reason_bytes) {
    if (!wb_gpu_load(reason, reason_bytes)) return 0;
    pthread_mutex_lock(&lock);
    const int there = known_count ? 0 : ask_driver(reason, reason_bytes);
    for (int i = 0; i < there && known_count < MOST_DEVICES; i++)
        add_device(i, reason, reason_bytes);
    const int count = known_count;
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- one device ---- */

bool wb_gpu_find(int index, wb_gpu_found *found) {
    char reason[256] = "";
    const int count = wb_gpu_count(reason, sizeof reason);
    if (count == 0) {
        (void)wb_gpu_host->fail(WB_ERROR_DEVICE, "%s: %s", vendor->backend, reason);
        return false;
    }
    if (index < 0 || index >= count) {
        (void)wb_gpu_host->fail(WB_ERROR_ARGUMENT, "%s: there is no device %d, only 0 .. %d",
                                vendor->backend, index, count - 1);
        return false;
    }
    *found = known[index];
    return true;
}

/* "CUDA 13.0, NVRTC 13.0, sm_90": versions are 13000 with CUDA, 50221153 with HIP. */
static void describe_driver(const wb_gpu_found *found, char *text, size_t text_bytes) {
    int version = 0, major = 0, minor = 0;
    if (gpu.DriverGetVersion(&version) != GPU_SUCCESS) version = 0;
    if (rtc.Version(&major, &minor) != GPU_SUCCESS) major = minor = 0;
    const bool is_long = version >= 1000000;
    (void)snprintf(text, text_bytes, "%s %d.%d, %s %d.%d, %s", vendor->platform,
                   version / (is_long ? 10000000 : 1000),
                   is_long ? version / 100000 % 100 : version % 1000 / 10, vendor->compiler, major,
                   minor, found->target.architecture);
}

static void describe_uuid(const wb_gpu_found *found, char *text, size_t text_bytes) {
    gpu_uuid u;
    if (!vendor->uuid || vendor->uuid(found->ordinal, &u) != GPU_SUCCESS) return;
    size_t used = 0;
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                                 (unsigned)(unsigned char)u.bytes[i]);
}

wb_status wb_gpu_info(int index, wb_device_info *info) {
    wb_gpu_found found;
    int units = 0;
    size_t bytes = 0;
    *info = (wb_device_info){.is_gpu = true,
                             .has_f64 = true,
                             .takes_halves = true,
                             .reads_parts = true,
                             .joins_updates = true};
    if (!wb_gpu_find(index, &found)) return WB_ERROR_DEVICE;
    if (gpu.DeviceGetName(info->name, (int)sizeof info->name - 1, found.ordinal) != GPU_SUCCESS)
        (void)snprintf(info->name, sizeof info->name, "device %d", index);
    if (gpu.DeviceGetAddress(info->address, (int)sizeof info->address - 1, found.ordinal) !=
        GPU_SUCCESS)
        info->address[0] = 0;
    describe_uuid(&found, info->uuid, sizeof info->uuid);
    if (gpu.DeviceTotalMem(&bytes, found.ordinal) == GPU_SUCCESS)
        info->memory_bytes = (int64_t)bytes;
    if (gpu.DeviceGetAttribute(&units, vendor->attribute_units, found.ordinal) == GPU_SUCCESS)
        info->compute_units = units;
    describe_driver(&found, info->driver, sizeof info->driver);
    return WB_OK;
}
