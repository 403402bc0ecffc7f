/* Uploads from ordinary (pageable) memory are copied into pinned memory first, so that the device
 * can read them while the program continues. The pinned memory is a ring: a piece is used again
 * when the event that was recorded after its copy has happened. */
#include "device.h"

/* Waits for the oldest piece, which is then free. */
static wb_gpu_outcome free_oldest(wb_gpu_ring *ring) {
    const struct wb_gpu_mark *oldest = &ring->marks[ring->first_mark];
    const wb_gpu_outcome o = GPU_TRY(EventSynchronize, oldest->event);
    ring->first = oldest->end;
    ring->first_mark = (ring->first_mark + 1) % WB_GPU_MOST_MARKS;
    ring->mark_count--;
    return o;
}

static wb_gpu_outcome make_memory(wb_gpu_ring *ring) {
    void *made = NULL;
    const wb_gpu_outcome o = GPU_TRY(MemHostAlloc, &made, WB_GPU_RING_BYTES, GPU_HOST_PORTABLE);
    if (!o.error) ring->memory = made;
    return o;
}

static wb_gpu_outcome mark(wb_gpu_ring *ring, gpu_stream stream) {
    struct wb_gpu_mark *last =
        &ring->marks[(ring->first_mark + ring->mark_count) % WB_GPU_MOST_MARKS];
    wb_gpu_outcome o = {.error = NULL};
    if (!last->event) {
        gpu_event event = NULL;
        o = GPU_TRY(EventCreate, &event, GPU_EVENT_NO_TIMING);
        if (!o.error) last->event = event;
    }
    if (!o.error) o = GPU_TRY(EventRecord, last->event, stream);
    if (o.error) return o;
    last->end = ring->marked = ring->next;
    ring->mark_count++;
    return o;
}

wb_gpu_outcome wb_gpu_ring_take(wb_gpu_ring *ring, gpu_stream stream, size_t size_bytes,
                                void **memory) {
    wb_gpu_outcome o = {.error = NULL};
    const size_t bytes = (size_bytes + 63) / 64 * 64;
    if (!ring->memory) o = make_memory(ring);
    if (!o.error && ring->next - ring->marked >= WB_GPU_MARK_BYTES) o = mark(ring, stream);
    if (o.error) return o;
    const size_t at = ring->next % WB_GPU_RING_BYTES;
    if (at + bytes > WB_GPU_RING_BYTES) ring->next += WB_GPU_RING_BYTES - at; /* in one piece */
    while (!o.error && ring->next + bytes - ring->first > WB_GPU_RING_BYTES) o = free_oldest(ring);
    *memory = ring->memory + ring->next % WB_GPU_RING_BYTES;
    ring->next += bytes;
    return o;
}

void wb_gpu_ring_release(wb_gpu_ring *ring) {
    for (int i = 0; i < WB_GPU_MOST_MARKS; i++)
        if (ring->marks[i].event) (void)gpu.EventDestroy(ring->marks[i].event);
    if (ring->memory) (void)gpu.MemFreeHost(ring->memory);
    *ring = (wb_gpu_ring){.memory = NULL};
}
