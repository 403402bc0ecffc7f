/* Devices, their queues and memory. */
#ifndef WB_OPENCL_DEVICE_H
#define WB_OPENCL_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "../common/late.h"
#include "../common/texts.h"
#include "library.h"

/* ---- which devices there are (platform.c) ---- */

enum { WB_CL_MOST_PLATFORMS = 16, WB_CL_MOST_DEVICES = 64 };

/* One context per platform, over all its devices, so that they can copy from each other. Made when
 * the first one is opened, kept. */
typedef struct wb_cl_platform {
    cl_platform_id id;
    char name[96];
    cl_device_id devices[WB_CL_MOST_DEVICES]; /* those that can be used */
    int count;
    cl_context context;
} wb_cl_platform;

typedef struct wb_cl_found {
    wb_cl_platform *platform;
    cl_device_id device;
} wb_cl_found;

/* The number of devices that can be used; 0 with the reason. */
int wb_cl_count(char *reason, size_t reason_bytes);

/* Device number index. False with an error recorded. */
bool wb_cl_find(int index, wb_cl_found *found);

/* The platform's context. NULL with an error recorded. */
cl_context wb_cl_context_of(wb_cl_platform *platform);

/* Answers of clGetDeviceInfo; 0 and "" where there is none. */
uint64_t wb_cl_device_number(cl_device_id device, cl_uint name);
void wb_cl_device_text(cl_device_id device, cl_uint name, char *text, size_t text_bytes);
bool wb_cl_device_has(cl_device_id device, const char *extension);

wb_status wb_cl_info(int index, wb_device_info *info);

/* ---- queues (queue.c) ---- */

enum { WB_CL_SLOTS = 64, WB_CL_WATCHED = 1024 };

/* The status words of one command that checks indices. */
typedef struct wb_cl_slot {
    cl_mem words; /* four i64, zero between syncs; made when first needed */
    const char *what;
} wb_cl_slot;

/* A command whose outcome is not known yet. */
typedef struct wb_cl_watched {
    cl_event event;
    const char *what;
} wb_cl_watched;

typedef struct wb_cl_queue {
    cl_command_queue queue;
    wb_cl_slot slots[WB_CL_SLOTS];
    int used_slots;
    wb_cl_watched watched[WB_CL_WATCHED]; /* a ring */
    int first_watched, watched_count;
    wb_late_error error;
} wb_cl_queue;

/* ---- devices (device.c) ---- */

typedef struct wb_cl_pinned {
    struct wb_cl_pinned *next;
    void *address;
    cl_mem mem;
} wb_cl_pinned;

typedef struct wb_cl_device {
    cl_device_id id;
    cl_context context;
    wb_dialect dialect;
    char *prelude;
    char options[256]; /* for clBuildProgram */
    uint64_t compiler; /* hash of all that a binary depends on beside its text */
    size_t most_bytes; /* of one buffer */
    uint64_t memory_bytes;
    /* of a kernel; 0: any number, as on CPUs, where they lie in memory */
    uint64_t most_parameter_bytes;
    _Atomic uint64_t allocated_bytes;
    bool waits_on_host;   /* for other devices: PoCL 3.1 forgets such waits, or never ends them */
    cl_mem dummy;         /* stands for arguments without memory */
    pthread_mutex_t lock; /* arguments are state of a kernel until it is queued; queues' lists */
    wb_cl_queue own;
    cl_command_queue helper; /* for allocation and mapping: never waits for other work */
    wb_cl_pinned *pinned;
    wb_texts texts;
    atomic_int new_count; /* of programs that are not in the disk cache yet */
} wb_cl_device;

void *wb_cl_open(int index);
void wb_cl_close(void *device);

/* Queues; NULL is the device's own. The lock is held by the caller where it says so. */
wb_cl_queue *wb_cl_queue_of(wb_cl_device *device, void *queue);
bool wb_cl_queue_init(wb_cl_device *device, wb_cl_queue *queue);
void wb_cl_queue_release(wb_cl_queue *queue);
void wb_cl_watch(wb_cl_queue *queue, cl_event event, const char *what); /* locked */
/* locked */
wb_status wb_cl_slot_take(wb_cl_device *device, wb_cl_queue *queue, const char *what,
                          cl_mem *words);

/* Queues a marker after all that is queued so far; and makes later work wait for a marker, perhaps
 * of another device. */
cl_int wb_cl_mark(const wb_cl_queue *queue, cl_event *marker);
cl_int wb_cl_wait_for(const wb_cl_device *device, const wb_cl_queue *queue, cl_event marker,
                      const wb_cl_device *of);

void *wb_cl_queue_new(void *device);
void wb_cl_queue_free(void *device, void *queue);
void *wb_cl_record(void *device, void *queue);
wb_status wb_cl_wait(void *device, void *queue, void *event);
void wb_cl_release_event(void *device, void *event);
wb_status wb_cl_is_done(void *device, void *event, bool *is_done);
wb_status wb_cl_sync(void *device, void *queue);

/* ---- memory and copies (memory.c) ---- */

void *wb_cl_alloc(void *device, size_t size_bytes);
void wb_cl_free(void *device, void *handle, size_t size_bytes);
void *wb_cl_alloc_pinned(void *device, size_t size_bytes);
void wb_cl_free_pinned(void *device, void *memory, size_t size_bytes);
wb_status wb_cl_copy(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                     size_t size_bytes);
wb_status wb_cl_copy_peer(void *device, void *queue, wb_memory to, void *from_device,
                          wb_memory from, size_t size_bytes);

#endif
