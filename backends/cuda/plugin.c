/* GPUs of NVIDIA, and through backends/amdgpu those of AMD. No toolkit is needed to build this, and
 * no library to load it. */
#include "kernel.h"

WB_API const wb_backend *weber_plugin(const wb_host *host);

WB_API const wb_backend *weber_plugin(const wb_host *host) {
    static wb_backend backend = {.abi = WB_PLUGIN_ABI,
                                 .size_bytes = sizeof(wb_backend),
                                 .load = wb_gpu_load,
                                 .count = wb_gpu_count,
                                 .info = wb_gpu_info,
                                 .part = wb_gpu_part_works,
                                 .open = wb_gpu_open,
                                 .close = wb_gpu_close,
                                 .alloc = wb_gpu_alloc,
                                 .free = wb_gpu_free,
                                 .alloc_pinned = wb_gpu_alloc_pinned,
                                 .free_pinned = wb_gpu_free_pinned,
                                 .kernel = wb_gpu_kernel_new,
                                 .lower = wb_gpu_lower,
                                 .takes = wb_gpu_takes,
                                 .scratch_bytes = wb_gpu_scratch_bytes,
                                 .release = wb_gpu_release,
                                 .queue_new = wb_gpu_queue_new,
                                 .queue_free = wb_gpu_queue_free,
                                 .record = wb_gpu_record,
                                 .wait = wb_gpu_wait,
                                 .release_event = wb_gpu_release_event,
                                 .copy = wb_gpu_copy,
                                 .copy_peer = wb_gpu_copy_peer,
                                 .run = wb_gpu_run_commands,
                                 .sync = wb_gpu_sync,
                                 .is_done = wb_gpu_is_done,
                                 .native_queue = wb_gpu_native_queue};
    if (!host || host->abi != WB_PLUGIN_ABI || host->size_bytes < sizeof *host) return NULL;
    backend.name = wb_gpu_vendor_table.backend;
    wb_gpu_host = host;
    return &backend;
}
