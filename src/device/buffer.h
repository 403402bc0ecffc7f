/* Pieces of device memory. */
#ifndef WB_DEVICE_BUFFER_H
#define WB_DEVICE_BUFFER_H

#include <weber/device.h>

/* A piece of device memory, shared by views; counted atomically, since threads may share it. */
typedef struct wb_buffer {
    int32_t refs;    /* __atomic */
    bool read_only;  /* borrowed or mapped: never written, never donated */
    bool is_foreign; /* the memory is not from the allocator */
    const wb_device *device;
    void *handle;           /* the CPU: the address */
    size_t size_bytes;      /* usable bytes, as allocated */
    wb_release_fn *release; /* foreign memory */
    void *release_context;
    const char *tag; /* what it is for, as wb_memory_holders prints it; a static string */
    bool is_lost;    /* __atomic; an error occurred while it was written */
    _Alignas(8) uint64_t contents; /* __atomic; see wb_buffer_contents; 0: no number yet */
    /* numbers of syncs, see wb_buffers_doubt; guarded by the device's mutex */
    int64_t doubted_from, doubted;
    struct wb_buffer *next, *more; /* in one of the allocator's lists, or in its heaps */
    struct wb_buffer **link;       /* what points here, in the list of live buffers */
} wb_buffer;

/* NULL: out of memory. */
wb_buffer *wb_buffer_new(const wb_device *device, size_t size_bytes, const char *tag);
wb_buffer *wb_buffer_foreign(const wb_device *device, void *data, size_t size_bytes, bool read_only,
                             wb_release_fn *release, void *context);
/* Renews a buffer that is to be filled again: the same one if nobody else refers to it; else
 * another of its size, and the reference to this one is given up. NULL: out of memory. */
wb_buffer *wb_buffer_renew(wb_buffer *buffer);
wb_buffer *wb_buffer_ref(wb_buffer *buffer);
void wb_buffer_unref(wb_buffer *buffer);

/* Notes that an error occurred while the buffer was written. */
void wb_buffer_lose(wb_buffer *buffer);
static inline bool wb_buffer_is_lost(const wb_buffer *buffer) {
    return __atomic_load_n(&buffer->is_lost, __ATOMIC_RELAXED);
}

/* A number for the contents of the buffer: unique among all contents of all buffers, and the same
 * until the buffer is written. 0 for foreign memory, which may be written at any time. */
uint64_t wb_buffer_contents(wb_buffer *buffer);
/* To be called before a plan writes in place into a buffer that arrays refer to. */
static inline void wb_buffer_overwrite(wb_buffer *buffer) {
    __atomic_store_n(&buffer->contents, 0, __ATOMIC_RELAXED);
}

/* ---- transfer.c ---- */

/* Marks buffers that a command is about to write, if the command may meet a bad index: only a later
 * sync reports it, and then these buffers are lost. Called before the command is queued, and again
 * afterwards, since another thread may sync in between. */
void wb_buffers_doubt(const wb_device *device, int count, wb_buffer *const *buffers,
                      bool is_queued);
/* True if such a sync is still to come for the buffer. */
bool wb_buffer_is_doubted(const wb_buffer *buffer);

/* True if the host may use the buffer's handle as an address after a wb_device_sync. */
bool wb_buffer_is_host(const wb_buffer *buffer);

/* Copies bytes from one buffer to another, on any devices. The copy is done, or queued after the
 * target's earlier work. */
wb_status wb_buffer_copy(wb_buffer *to, int64_t to_bytes, wb_buffer *from, int64_t from_bytes,
                         size_t size_bytes);

/* The same between devices through host memory, where there is no direct way. */
wb_status wb_buffer_relay(wb_buffer *to, int64_t to_bytes, const wb_buffer *from,
                          int64_t from_bytes, size_t size_bytes);

/* Copies to host memory; done when it returns. */
wb_status wb_buffer_read(const wb_buffer *from, int64_t from_bytes, void *to, size_t size_bytes);

/* A queue for copies to the device, beside the queue on which it computes. One thread at a time may
 * use it. */
typedef struct wb_copy_queue {
    const wb_device *device;
    void *queue; /* NULL: the device's own */
} wb_copy_queue;
bool wb_copy_queue_open(wb_copy_queue *queue, const wb_device *device); /* false on failure */
void wb_copy_queue_close(wb_copy_queue *queue);
/* Later work of this queue waits for all that is on the device's own queue now, which may still
 * read the memory that a copy will write. */
wb_status wb_copy_queue_follow(const wb_copy_queue *queue);
/* Copies host memory to a buffer of the queue's device. Neither may be changed before
 * wb_copy_queue_sync returns. */
wb_status wb_copy_queue_upload(const wb_copy_queue *queue, wb_buffer *to, const void *from,
                               size_t size_bytes);
wb_status wb_copy_queue_sync(const wb_copy_queue *queue);

#endif
