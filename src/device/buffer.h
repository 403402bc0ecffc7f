/* Pieces of device memory. */
#ifndef WB_DEVICE_BUFFER_H
#define WB_DEVICE_BUFFER_H

#include <weber/device.h>

/* A piece of device memory, shared by views; counted atomically, since threads may share it. */
typedef struct wb_buffer {
    int32_t refs;    /* __atomic */
    bool read_only;  /* borrowed or mapped: never written, never donated */
    bool is_foreign; /* the memory is not the allocator's */
    const wb_device *device;
    void *handle;           /* the CPU: the address */
    size_t size_bytes;      /* usable; what the allocator handed out */
    wb_release_fn *release; /* foreign memory */
    void *release_context;
    const char *tag;               /* what it is for, as wb_memory_holders says; lives for ever */
    bool is_lost;                  /* __atomic; an error struck while it was written */
    _Alignas(8) uint64_t contents; /* __atomic; of wb_buffer_contents; 0: no number yet */
    int64_t doubted_from, doubted; /* of wb_buffers_doubt; guarded by the device's mutex */
    struct wb_buffer *next, *more; /* in one of the allocator's lists, or in its heaps */
    struct wb_buffer **link;       /* what points here, in the list of what is live */
} wb_buffer;

/* NULL: out of memory. */
wb_buffer *wb_buffer_new(const wb_device *device, size_t size_bytes, const char *tag);
wb_buffer *wb_buffer_foreign(const wb_device *device, void *data, size_t size_bytes, bool read_only,
                             wb_release_fn *release, void *context);
/* The buffer as a new one where nobody else refers to it; else another of its size, and this one is
 * let go. NULL: out of memory. */
wb_buffer *wb_buffer_renew(wb_buffer *buffer);
wb_buffer *wb_buffer_ref(wb_buffer *buffer);
void wb_buffer_unref(wb_buffer *buffer);

/* An error struck while the buffer was written. */
void wb_buffer_lose(wb_buffer *buffer);
static inline bool wb_buffer_is_lost(const wb_buffer *buffer) {
    return __atomic_load_n(&buffer->is_lost, __ATOMIC_RELAXED);
}

/* A number that nothing else has that any buffer ever held: the same as long as nothing is written.
 * 0: of foreign memory, which may be written at any time. */
uint64_t wb_buffer_contents(wb_buffer *buffer);
/* Before a buffer that arrays refer to is written: a plan does that, in place. */
static inline void wb_buffer_overwrite(wb_buffer *buffer) {
    __atomic_store_n(&buffer->contents, 0, __ATOMIC_RELAXED);
}

/* ---- transfer.c ---- */

/* A command that is about to be queued may meet a bad index, which only a later sync reports: then
 * what it writes is lost. Called before the command is queued, and once more after, since another
 * thread may sync meanwhile. */
void wb_buffers_doubt(const wb_device *device, int count, wb_buffer *const *buffers,
                      bool is_queued);
/* True where such a sync is still to come for the buffer. */
bool wb_buffer_is_doubted(const wb_buffer *buffer);

/* True where the host may use the buffer's handle as an address once the device is in step
 * (wb_device_sync). */
bool wb_buffer_is_host(const wb_buffer *buffer);

/* Copies bytes from one buffer to another, wherever both are: queued with the target's work, or
 * done. */
wb_status wb_buffer_copy(wb_buffer *to, int64_t to_bytes, wb_buffer *from, int64_t from_bytes,
                         size_t size_bytes);

/* The same between devices by way of the host, which is how it is done where there is none more
 * direct. */
wb_status wb_buffer_relay(wb_buffer *to, int64_t to_bytes, const wb_buffer *from,
                          int64_t from_bytes, size_t size_bytes);

/* Copies to host memory; done when it returns. */
wb_status wb_buffer_read(const wb_buffer *from, int64_t from_bytes, void *to, size_t size_bytes);

/* A queue beside the device's own, for copies to it while that computes: for one thread at a
 * time. */
typedef struct wb_copy_queue {
    const wb_device *device;
    void *queue; /* NULL: the device's own */
} wb_copy_queue;
bool wb_copy_queue_open(wb_copy_queue *queue, const wb_device *device); /* false on failure */
void wb_copy_queue_close(wb_copy_queue *queue);
/* What comes next on the queue comes after all that the device's own has been given so far, which
 * may still read the memory that is to be written. */
wb_status wb_copy_queue_follow(const wb_copy_queue *queue);
/* Host memory to a buffer of the queue's device; both stay as they are until wb_copy_queue_sync
 * returns. */
wb_status wb_copy_queue_upload(const wb_copy_queue *queue, wb_buffer *to, const void *from,
                               size_t size_bytes);
wb_status wb_copy_queue_sync(const wb_copy_queue *queue);

#endif
