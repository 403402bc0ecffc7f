/* Which platforms and devices there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/library.h"
#include "device.h"
#include "platform/library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static wb_cl_platform platforms[WB_CL_MOST_PLATFORMS];
static wb_cl_found known[WB_CL_MOST_DEVICES];
static int known_count;

/* ---- questions to a device ---- */

/* Numbers are of 1, 4 or 8 bytes, by the specification: little endian, so that one buffer serves
 * all. */
uint64_t wb_cl_device_number(cl_device_id device, cl_uint name) {
    uint64_t number = 0;
    return cl.GetDeviceInfo(device, name, sizeof number, &number, NULL) == CL_SUCCESS ? number : 0;
}

static char *long_text(cl_device_id device, cl_uint name) {
    size_t size = 0;
    if (cl.GetDeviceInfo(device, name, 0, NULL, &size) != CL_SUCCESS) return NULL;
    char *text = calloc(1, size + 1);
    if (text && cl.GetDeviceInfo(device, name, size, text, NULL) == CL_SUCCESS) return text;
    free(text);
    return NULL;
}

void wb_cl_device_text(cl_device_id device, cl_uint name, char *text, size_t text_bytes) {
    char *whole = long_text(device, name);
    const char *begin = whole ? whole : "";
    while (*begin == ' ') begin++;
    (void)snprintf(text, text_bytes, "%s", begin);
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' ';) text[--end] = 0;
    free(whole);
}

bool wb_cl_device_has(cl_device_id device, const char *extension) {
    char *list = long_text(device, CL_DEVICE_EXTENSIONS), *rest = NULL;
    bool found = false;
    for (char *name = list ? strtok_r(list, " ", &rest) : NULL; name && !found;
         name = strtok_r(NULL, " ", &rest))
        found = strcmp(name, extension) == 0;
    free(list);
    return found;
}

/* NULL: the device will do. */
static const char *why_not(cl_device_id device) {
    char version[64];
    int major = 0, minor = 0;
    wb_cl_device_text(device, CL_DEVICE_VERSION, version, sizeof version);
    if (sscanf(version, "OpenCL %d.%d", &major, &minor) != 2 || 10 * major + minor < 12)
        return "is older than OpenCL 1.2";
    if (!wb_cl_device_number(device, CL_DEVICE_AVAILABLE)) return "is not available";
    if (!wb_cl_device_number(device, CL_DEVICE_COMPILER_AVAILABLE)) return "has no compiler";
    if (!wb_cl_device_number(device, CL_DEVICE_ENDIAN_LITTLE)) return "is big-endian";
    return NULL;
}

/* ---- the list ---- */

static void add_device(wb_cl_platform *platform, cl_device_id device, char *reason,
                       size_t reason_bytes) {
    char name[96];
    const char *fault = why_not(device);
    if (fault) {
        wb_cl_device_text(device, CL_DEVICE_NAME, name, sizeof name);
        (void)snprintf(reason, reason_bytes, "%s %s", name, fault);
    } else if (known_count < WB_CL_MOST_DEVICES) {
        platform->devices[platform->count++] = device;
        known[known_count++] = (wb_cl_found){platform, device};
    }
}

static void add_platform(wb_cl_platform *platform, char *reason, size_t reason_bytes) {
    cl_device_id devices[WB_CL_MOST_DEVICES];
    cl_uint count = 0;
    (void)cl.GetPlatformInfo(platform->id, CL_PLATFORM_NAME, sizeof platform->name - 1,
                             platform->name, NULL);
    const cl_int code =
        cl.GetDeviceIDs(platform->id, CL_DEVICE_TYPE_ALL, WB_CL_MOST_DEVICES, devices, &count);
    if (code != CL_SUCCESS) {
        (void)snprintf(reason, reason_bytes,
                       "the platform \"%s\" shows no device (%s); a variable such as POCL_DEVICES "
                       "may hide it",
                       platform->name, wb_cl_error_name(code));
        return;
    }
    if (count > WB_CL_MOST_DEVICES) count = WB_CL_MOST_DEVICES;
    for (cl_uint i = 0; i < count; i++) add_device(platform, devices[i], reason, reason_bytes);
}

static void try_platforms(void *unused) {
    cl_uint count = 0;
    (void)unused;
    (void)cl.GetPlatformIDs(0, NULL, &count);
}

static void find_devices(char *reason, size_t reason_bytes) {
    cl_platform_id ids[WB_CL_MOST_PLATFORMS];
    cl_uint count = 0;
    if (wb_platform_is_loaded("libLLVM") && !wb_library_survives(try_platforms, NULL)) {
        (void)snprintf(reason, reason_bytes,
                       "a driver conflicts with another library of this process that uses LLVM, "
                       "such as AMD's libamd_comgr (WEBER_BACKENDS=opencl leaves that out)");
        return;
    }
    const cl_int code = cl.GetPlatformIDs(WB_CL_MOST_PLATFORMS, ids, &count);
    if (code != CL_SUCCESS || count == 0) {
        (void)snprintf(reason, reason_bytes,
                       "no OpenCL driver is installed (clGetPlatformIDs: %s; Debian: "
                       "pocl-opencl-icd for the CPU; GPUs bring their own)",
                       wb_cl_error_name(code ? code : CL_PLATFORM_NOT_FOUND_KHR));
        return;
    }
    if (count > WB_CL_MOST_PLATFORMS) count = WB_CL_MOST_PLATFORMS;
    for (cl_uint i = 0; i < count; i++) {
        platforms[i] = (wb_cl_platform){.id = ids[i]};
        add_platform(&platforms[i], reason, reason_bytes);
    }
}

int wb_cl_count(char *reason, size_t reason_bytes) {
    if (!wb_cl_load(reason, reason_bytes)) return 0;
    pthread_mutex_lock(&lock);
    if (known_count == 0) find_devices(reason, reason_bytes);
    const int count = known_count;
    pthread_mutex_unlock(&lock);
    return count;
}

bool wb_cl_find(int index, wb_cl_found *found) {
    char reason[256] = "";
    const int count = wb_cl_count(reason, sizeof reason);
    if (count == 0) {
        (void)wb_cl_host->fail(WB_ERROR_DEVICE, "OpenCL: %s", reason);
        return false;
    }
    if (index < 0 || index >= count) {
        (void)wb_cl_host->fail(WB_ERROR_ARGUMENT, "OpenCL: there is no device %d, only 0 .. %d",
                               index, count - 1);
        return false;
    }
    *found = known[index];
    return true;
}

cl_context wb_cl_context_of(wb_cl_platform *platform) {
    pthread_mutex_lock(&lock);
    if (!platform->context) {
        const intptr_t properties[] = {CL_CONTEXT_PLATFORM, (intptr_t)platform->id, 0};
        cl_int code = CL_SUCCESS;
        platform->context = cl.CreateContext(properties, (cl_uint)platform->count,
                                             platform->devices, NULL, NULL, &code);
        if (!platform->context) (void)wb_cl_fail(platform->name, "clCreateContext", code);
    }
    const cl_context context = platform->context;
    pthread_mutex_unlock(&lock);
    return context;
}

/* ---- what a device is ---- */

wb_status wb_cl_info(int index, wb_device_info *info) {
    wb_cl_found found;
    char version[48];
    *info = (wb_device_info){.reads_parts = true};
    if (!wb_cl_find(index, &found)) return WB_ERROR_DEVICE;
    const uint64_t type = wb_cl_device_number(found.device, CL_DEVICE_TYPE);
    info->memory_bytes = (int64_t)wb_cl_device_number(found.device, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->compute_units = (int32_t)wb_cl_device_number(found.device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->is_gpu = type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR);
    info->has_f64 = wb_cl_device_has(found.device, "cl_khr_fp64");
    wb_cl_device_text(found.device, CL_DEVICE_NAME, info->name, sizeof info->name);
    wb_cl_device_text(found.device, CL_DRIVER_VERSION, version, sizeof version);
    if (snprintf(info->driver, sizeof info->driver, "%s %s", found.platform->name, version) < 0)
        info->driver[0] = 0;
    return WB_OK;
}
