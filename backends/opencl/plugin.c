/* The OpenCL backend: any device of version 1.2 or later, through the loader that is installed.
 *
 * The texts come from the host; this folder compiles, caches and launches them. A process that used
 * OpenCL must not use it in a forked child: drivers have threads, which do not survive the fork. */
#include "program.h"

static const wb_backend backend = {.abi = WB_PLUGIN_ABI,
                                   .size_bytes = sizeof(wb_backend),
                                   .name = "OpenCL",
                                   .load = wb_cl_load,
                                   .count = wb_cl_count,
                                   .info = wb_cl_info,
                                   .open = wb_cl_open,
                                   .close = wb_cl_close,
                                   .alloc = wb_cl_alloc,
                                   .free = wb_cl_free,
                                   .alloc_pinned = wb_cl_alloc_pinned,
                                   .free_pinned = wb_cl_free_pinned,
                                   .kernel = wb_cl_kernel,
                                   .lower = wb_cl_lower,
                                   .takes = wb_cl_takes,
                                   .scratch_bytes = wb_cl_scratch_bytes,
                                   .release = wb_cl_release,
                                   .queue_new = wb_cl_queue_new,
                                   .queue_free = wb_cl_queue_free,
                                   .record = wb_cl_record,
                                   .wait = wb_cl_wait,
                                   .release_event = wb_cl_release_event,
                                   .is_done = wb_cl_is_done,
                                   .copy = wb_cl_copy,
                                   .copy_peer = wb_cl_copy_peer,
                                   .run = wb_cl_run,
                                   .sync = wb_cl_sync};

WB_API const wb_backend *weber_plugin(const wb_host *host);

WB_API const wb_backend *weber_plugin(const wb_host *host) {
    if (!host || host->abi != WB_PLUGIN_ABI || host->size_bytes < sizeof *host) return NULL;
    wb_cl_host = host;
    return &backend;
}
