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
    struct wb_buffer *next; /* in the allocator's list of free buffers */
} wb_buffer;

wb_buffer *wb_buffer_new(const wb_device *device, size_t size_bytes); /* NULL: out of memory */
wb_buffer *wb_buffer_foreign(const wb_device *device, void *data, size_t size_bytes, bool read_only,
                             wb_release_fn *release, void *context);
wb_buffer *wb_buffer_ref(wb_buffer *buffer);
void wb_buffer_unref(wb_buffer *buffer);

#endif
