/* Opening and closing a device. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/process.h"
#include "program.h"
#include <backends/opencl/prelude.txt.h>

/* Serial texts do thousands of elements per item, so that groups of one share work out best among
 * the cores; 2, 4 and 8 took the same time of the cores on PoCL 3.1. 256 is what GPUs of all makers
 * take: a multiple of 32 and 64. */
enum { SERIAL_GROUP = 1, PARALLEL_GROUP = 256 };

/* ---- the dialect ---- */

static bool is_cpu(cl_device_id id) {
    return wb_cl_device_number(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
}

/* Cores that run a group's items one after another need another kind of text than GPUs.
 * WEBER_OPENCL_FLAVOUR overrides the choice, so that both kinds can be tried on any device. */
static bool is_serial(cl_device_id id) {
    const char *flavour = getenv("WEBER_OPENCL_FLAVOUR");
    if (flavour && strcmp(flavour, "serial") == 0) return true;
    if (flavour && strcmp(flavour, "parallel") == 0) return false;
    if (flavour && flavour[0])
        wb_cl_host->log(WB_LOG_WARN, "WEBER_OPENCL_FLAVOUR must be serial or parallel, got %s",
                        flavour);
    return is_cpu(id);
}

static int32_t group_of(cl_device_id id, bool serial) {
    const uint64_t most = wb_cl_device_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    int32_t group = serial ? SERIAL_GROUP : PARALLEL_GROUP;
    while (group > 1 && (uint64_t)group > most) group /= 2;
    return group;
}

static bool set_dialect(wb_cl_device *device) {
    static const char serial_line[] = "#define WB_SERIAL 1\n";
    const bool serial = is_serial(device->id);
    device->prelude = wb_cl_host->alloc(sizeof serial_line + sizeof prelude_text);
    if (!device->prelude) return false;
    (void)snprintf(device->prelude, sizeof serial_line + sizeof prelude_text, "%s%s",
                   serial ? serial_line : "", prelude_text);
    device->dialect = (wb_dialect){.name = "OpenCL C",
                                   .prelude = device->prelude,
                                   .group = group_of(device->id, serial),
                                   .is_serial = serial,
                                   .has_f64 = wb_cl_device_has(device->id, "cl_khr_fp64")};
    return true;
}

/* ---- the compiler ---- */

/* WEBER_OPENCL_OPTIONS: more options for clBuildProgram, such as -cl-opt-disable, which halves
 * PoCL's time for a kernel. */
static void set_compiler(wb_cl_device *device, const char *platform) {
    static const cl_uint names[] = {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    const char *more = wb_platform_trusted_variable("WEBER_OPENCL_OPTIONS");
    const uint64_t floats = wb_cl_device_number(device->id, CL_DEVICE_SINGLE_FP_CONFIG);
    (void)snprintf(device->options, sizeof device->options, "-cl-std=CL1.2 -w%s %s",
                   floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                       ? " -cl-fp32-correctly-rounded-divide-sqrt"
                       : "",
                   more ? more : "");
    device->compiler = wb_text_hash_on(wb_text_hash_on(WB_TEXT_HASH, platform), device->options);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[256];
        wb_cl_device_text(device->id, names[i], text, sizeof text);
        device->compiler = wb_text_hash_on(device->compiler, text);
    }
}

/* ---- opening ---- */

static bool open_parts(wb_cl_device *device) {
    cl_int code = CL_SUCCESS;
    if (!set_dialect(device) || !wb_cl_queue_init(device, &device->own)) return false;
    device->helper = cl.CreateCommandQueue(device->context, device->id, 0, &code);
    if (!device->helper) {
        (void)wb_cl_fail("OpenCL", "clCreateCommandQueue", code);
        return false;
    }
    device->dummy = wb_cl_alloc(device, 64);
    if (!device->dummy) (void)wb_cl_fail("OpenCL", "clCreateBuffer", CL_OUT_OF_RESOURCES);
    return device->dummy;
}

void *wb_cl_open(int index) {
    wb_cl_found found;
    if (!wb_cl_find(index, &found)) return NULL;
    wb_cl_device *device = wb_cl_host->alloc(sizeof *device);
    if (!device) return NULL;
    (void)pthread_mutex_init(&device->lock, NULL);
    device->texts = (wb_texts){.host = wb_cl_host,
                               .context = device,
                               .build = wb_cl_program_build,
                               .drop = wb_cl_program_drop};
    wb_texts_init(&device->texts);
    device->id = found.device;
    device->most_bytes = (size_t)wb_cl_device_number(found.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    device->memory_bytes = wb_cl_device_number(found.device, CL_DEVICE_GLOBAL_MEM_SIZE);
    if (!is_cpu(found.device))
        device->most_parameter_bytes =
            wb_cl_device_number(found.device, CL_DEVICE_MAX_PARAMETER_SIZE);
    device->waits_on_host = strcmp(found.platform->name, "Portable Computing Language") == 0;
    set_compiler(device, found.platform->name);
    device->context = wb_cl_context_of(found.platform);
    if (device->context && open_parts(device)) return device;
    wb_cl_close(device);
    return NULL;
}

void wb_cl_close(void *any) {
    wb_cl_device *device = any;
    if (!device) return;
    wb_cl_queue_release(&device->own);
    wb_texts_release(&device->texts);
    while (device->pinned) wb_cl_free_pinned(device, device->pinned->address, 0);
    if (device->dummy) (void)cl.ReleaseMemObject(device->dummy);
    if (device->helper) (void)cl.ReleaseCommandQueue(device->helper);
    wb_cl_host->release(device->prelude);
    (void)pthread_mutex_destroy(&device->lock);
    wb_cl_host->release(device);
}
