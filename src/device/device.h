/* Devices: a backend with memory. Private side of weber/device.h. */
#ifndef WB_DEVICE_DEVICE_H
#define WB_DEVICE_DEVICE_H

#include <pthread.h>

#include <weber/device.h>
#include <weber/plugin.h>

enum {
    WB_SIZE_CLASSES = 4 * 64,
    WB_RELAY_PIECES = 2,
    WB_RELAY_BYTES = 4 << 20, /* some hundred microseconds of a bus */
};

/* One device of a backend, made once and kept for the life of the process. */
struct wb_device {
    const wb_backend *backend;
    wb_backend gone; /* in its place, once the process is a fork of the one that opened it */
    int index;       /* among the backend's devices */
    void *context;   /* what the backend's open returned: the first argument of its functions */
    char name[48];   /* "CPU", "OpenCL(0)" */
    wb_device_info info;
    struct wb_device *next; /* in the list of all that were opened */
    int32_t number;         /* of all devices, from 0: the CPU */
    /* the allocator, guarded by mutex */
    pthread_mutex_t mutex;
    struct wb_buffer *free[WB_SIZE_CLASSES];
    struct wb_buffer *blank;   /* headers without memory */
    struct wb_buffer *holders; /* what is live, newest first */
    int64_t live, cached, peak, workspace, limit;
    /* host memory that queued copies still read, guarded by mutex */
    struct wb_buffer **in_flight;
    int64_t in_flight_count, in_flight_capacity;
    bool has_failed; /* __atomic; set once */
    char failure[256];
    /* errors that come late, guarded by mutex; syncs are counted */
    int64_t syncs;                  /* begun */
    int64_t last_good, last_bad;    /* of these, told to be good or bad */
    _Alignas(8) int64_t last_doubt; /* __atomic; the sync that is to tell of the newest doubt */
    wb_status late;                 /* of wb_device_finish, for the next sync */
    char late_text[512];
    /* on the way to devices of other backends */
    struct {
        pthread_mutex_t mutex; /* held by one copy at a time */
        void *pieces[WB_RELAY_PIECES];
        /* whose queue may still read them, until this sync of it; NULL: none */
        struct wb_device *to;
        int64_t sync;
    } relay;
};

/* Devices are handed out const: their users do not change them, their allocator does. */
wb_device *wb_device_mutable(const wb_device *device);

/* The device of its backend that calls take which name no number: a rank's own. */
void wb_choose_rank_device(const wb_device *device);

/* A device that has failed is given up: this fails, and names what happened then. */
wb_status wb_device_check(const wb_device *device);
/* Remembers a failure of the device, should status be one, and lets go; returns status. */
wb_status wb_device_note(const wb_device *device, wb_status status);
/* The two parts of it. The failure is the error that is pending. */
void wb_device_give_up(wb_device *device);
/* Waits, and lets go of the host memory that copies from and to a failed device have used. */
void wb_device_let_go(wb_device *device);

/* wb_device_sync for those that make room only: an operation's late error is not theirs, it is kept
 * for the next sync. */
wb_status wb_device_finish(wb_device *device);

/* Opens device number index of the backend. NULL on failure. Kept for ever by its caller, the
 * registry. */
wb_device *wb_device_new(const wb_backend *backend, int index);

/* Memory outside arrays (a plan's workspace), counted with the device. NULL: out of memory. */
void *wb_device_alloc(const wb_device *device, size_t size_bytes);
void wb_device_free(const wb_device *device, void *handle, size_t size_bytes);

/* The default device of the context that this thread uses, which array/thread.c sets; NULL: it has
 * none. */
extern _Thread_local const wb_device *wb_device_of_context
    __attribute__((tls_model("initial-exec")));

/* What backends ask of the library. */
extern const wb_host wb_builtin_host;

/* The built-in backends (backends/cpu, backends/checked). */
extern const wb_backend wb_cpu_backend;
enum { WB_CPU_SIDE_SUM_ROW = 4096 }; /* its wb_device_info.side_sum_row */
extern const wb_backend wb_checked_backend;
int wb_cpu_threads(void);
void wb_cpu_set_threads(int threads);
int wb_cpu_hold_threads(int threads); /* backends/cpu/pool.h */

/* wb_threads gives this number to the calling thread until it is called with what it returned. */
int wb_hold_threads(int threads);

#endif
