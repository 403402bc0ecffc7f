/* Small downloads, such as a loss, go to pinned memory first, because the driver blocks on a copy
 * to ordinary memory. The next sync copies them to where they belong. What does not fit is copied
 * directly. */
#include <string.h>

#include "device.h"

static wb_gpu_outcome make_memory(wb_gpu_landing *landing) {
    void *made = NULL;
    const wb_gpu_outcome o = GPU_TRY(MemHostAlloc, &made, WB_GPU_LANDING_BYTES, GPU_HOST_PORTABLE);
    if (!o.error) landing->memory = made;
    return o;
}

wb_gpu_outcome wb_gpu_land(wb_gpu_landing *landing, gpu_stream stream, void *to, gpu_pointer from,
                           size_t size_bytes) {
    wb_gpu_outcome o = {.error = NULL};
    const size_t bytes = (size_bytes + 7) / 8 * 8;
    if (bytes > WB_GPU_LANDING_BYTES - landing->used || landing->count == WB_GPU_MOST_LANDED)
        return GPU_TRY(MemcpyDtoHAsync, to, from, size_bytes, stream);
    if (!landing->memory) o = make_memory(landing);
    if (o.error) return o;
    char *down = landing->memory + landing->used;
    o = GPU_TRY(MemcpyDtoHAsync, down, from, size_bytes, stream);
    if (o.error) return o;
    landing->pieces[landing->count++] = (struct wb_gpu_landed){to, down, size_bytes};
    landing->used += bytes;
    return o;
}

void wb_gpu_landing_empty(wb_gpu_landing *landing, bool has_failed) {
    for (int i = 0; i < landing->count && !has_failed; i++)
        memcpy(landing->pieces[i].to, landing->pieces[i].from, landing->pieces[i].size_bytes);
    landing->count = 0, landing->used = 0;
}

void wb_gpu_landing_release(wb_gpu_landing *landing) {
    if (landing->memory) (void)gpu.MemFreeHost(landing->memory);
    *landing = (wb_gpu_landing){.memory = NULL};
}
