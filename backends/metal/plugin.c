/* The Metal backend: the GPUs of Apple computers, from macOS 12 on.
 *
 * Plain C over the Objective-C runtime; texts come from the host, this folder compiles, caches and
 * launches them. A process that used Metal must not use it in a forked child: neither the runtime
 * nor the compiler's service survives a fork. */
#include "mps.h"
#include "program.h"

static const wb_backend backend = {.abi = WB_PLUGIN_ABI,
                                   .size_bytes = sizeof(wb_backend),
                                   .name = "Metal",
                                   .load = wb_metal_load,
                                   .count = wb_metal_count,
                                   .info = wb_metal_info,
                                   .part = wb_metal_part,
                                   .open = wb_metal_open,
                                   .close = wb_metal_close,
                                   .alloc = wb_metal_alloc,
                                   .free = wb_metal_free,
                                   .kernel = wb_metal_kernel,
                                   .lower = wb_metal_lower,
                                   .takes = wb_metal_takes,
                                   .scratch_bytes = wb_metal_scratch_bytes,
                                   .release = wb_metal_release,
                                   .queue_new = wb_metal_queue_new,
                                   .queue_free = wb_metal_queue_free,
                                   .record = wb_metal_record,
                                   .wait = wb_metal_wait,
                                   .release_event = wb_metal_release_event,
                                   .copy = wb_metal_copy,
                                   .copy_peer = wb_metal_copy_peer,
                                   .run = wb_metal_run,
                                   .sync = wb_metal_sync,
                                   .is_done = wb_metal_is_done};

WB_API const wb_backend *weber_plugin(const wb_host *host);

WB_API const wb_backend *weber_plugin(const wb_host *host) {
    if (!host || host->abi != WB_PLUGIN_ABI || host->size_bytes < sizeof *host) return NULL;
    wb_metal_host = host;
    return &backend;
}
