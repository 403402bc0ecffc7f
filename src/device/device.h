/* Devices: a backend with memory. Private side of weber/device.h. */
#ifndef WB_DEVICE_DEVICE_H
#define WB_DEVICE_DEVICE_H

#include <pthread.h>

#include <weber/device.h>
#include <weber/plugin.h>

enum {
    WB_SIZE_CLASSES = 4 * 64,
    WB_RELAY_PIECES = 2,
    WB_RELAY_BYTES = 4 << 20, /* a bus takes some hundred microseconds for this */
};

/* One device of a backend, made once and kept for the life of the process. */
struct wb_device {
    const wb_backend *backend;
    /* used in place of the backend, in a fork of the process that opened the device */
    wb_backend gone;
    int index;     /* among the backend's devices */
    void *context; /* what the backend's open returned: the first argument of its functions */
    char name[48]; /* "CPU", "OpenCL(0)" */
    wb_device_info info;
    struct wb_device *next; /* in the list of all that were opened */
    int32_t number;         /* of all devices, from 0: the CPU */
    /* the allocator, guarded by mutex */
    pthread_mutex_t mutex;
    struct wb_buffer *free[WB_SIZE_CLASSES];
    struct wb_buffer *blank;   /* headers without memory */
    struct wb_buffer *holders; /* live buffers, newest first */
    int64_t live, cached, peak, workspace, limit;
    /* host memory that queued copies still read, guarded by mutex */
    struct wb_buffer **in_flight;
    int64_t in_flight_count, in_flight_capacity;
    bool has_failed; /* __atomic; set once */
    char failure[256];
    /* late errors, guarded by mutex; syncs are numbered */
    int64_t syncs;               /* number of syncs begun */
    int64_t last_good, last_bad; /* the last sync without and with an error */
    /* __atomic; the sync that will settle the newest doubt (wb_buffers_doubt) */
    _Alignas(8) int64_t last_doubt;
    wb_status late; /* error that wb_device_finish met, for the next sync to report */
    char late_text[512];
    /* host memory for copies to devices of other backends */
    struct {
        pthread_mutex_t mutex; /* held by one copy at a time */
        void *pieces[WB_RELAY_PIECES];
        /* the device whose queue may still read this memory, until its sync of this number; NULL:
         * none */
        struct wb_device *to;
        int64_t sync;
    } relay;
};

/* Callers get const devices; only the library changes them, through this. */
wb_device *wb_device_mutable(const wb_device *device);

/* Makes it the device that calls get which name its backend without a number: the rank's own. */
void wb_choose_rank_device(const wb_device *device);

/* Fails if the device has failed before, with the message of that failure. */
wb_status wb_device_check(const wb_device *device);
/* If status is a failure of the device, remembers it and calls wb_device_let_go. Returns status. */
wb_status wb_device_note(const wb_device *device, wb_status status);
/* The two parts of wb_device_note. The pending error is the failure to remember. */
void wb_device_give_up(wb_device *device);
/* Waits, and releases the host memory that copies from and to a failed device have used. */
void wb_device_let_go(wb_device *device);

/* wb_device_sync for callers that only need memory: a late error of an operation is kept for the
 * next sync. */
wb_status wb_device_finish(wb_device *device);

/* Opens device number index of the backend. NULL on failure. The registry calls it, and never
 * closes the device. */
wb_device *wb_device_new(const wb_backend *backend, int index);

/* Memory that belongs to no array (a plan's workspace), in the device's statistics. NULL: out of
 * memory. */
void *wb_device_alloc(const wb_device *device, size_t size_bytes);
void wb_device_free(const wb_device *device, void *handle, size_t size_bytes);

/* The default device of this thread's context, set by array/thread.c; NULL: the context has
 * none. */
extern _Thread_local const wb_device *wb_device_of_context
    __attribute__((tls_model("initial-exec")));

/* The functions of the library that backends may call. */
extern const wb_host wb_builtin_host;

/* The built-in backends (backends/cpu, backends/checked). */
extern const wb_backend wb_cpu_backend;
enum { WB_CPU_SIDE_SUM_ROW = 4096 }; /* its wb_device_info.side_sum_row */
extern const wb_backend wb_checked_backend;
int wb_cpu_threads(void);
void wb_cpu_set_threads(int threads);
int wb_cpu_hold_threads(int threads); /* backends/cpu/pool.h */

/* Makes wb_threads return this number on the calling thread. Returns the old setting; pass that to
 * end it. */
int wb_hold_threads(int threads);

#endif
