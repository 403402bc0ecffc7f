/* Devices, their queues and memory. A handle of the host is a device address. */
#ifndef WB_CUDA_DEVICE_H
#define WB_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "../common/late.h"
#include "../common/texts.h"
#include "library.h"

/* ---- which devices there are (devices.c) ---- */

/* The number of devices that can be used; 0 with the reason. */
int wb_gpu_count(char *reason, size_t reason_bytes);
wb_status wb_gpu_info(int index, wb_device_info *info);

typedef struct wb_gpu_found {
    int ordinal; /* the driver's */
    wb_gpu_target target;
} wb_gpu_found;

/* Device number index. False with an error recorded. */
bool wb_gpu_find(int index, wb_gpu_found *found);

/* ---- pinned memory for copies from memory that is not (ring.c) ---- */

enum {
    WB_GPU_RING_BYTES = 8 << 20,
    WB_GPU_PIECE_BYTES = 1 << 20, /* the most that is taken at once */
    WB_GPU_MARK_BYTES = 1 << 19,  /* one event for this many bytes, not for each piece */
    WB_GPU_MOST_MARKS = WB_GPU_RING_BYTES / WB_GPU_MARK_BYTES
};

/* Used round and round. `first`, `marked` and `next` count all bytes ever taken: bytes from `first`
 * to `next` may still be read, and there are events for all before `marked`. */
typedef struct wb_gpu_ring {
    char *memory; /* made when first used */
    uint64_t first, marked, next;
    struct wb_gpu_mark {
        gpu_event event; /* what was taken up to `end` has been read */
        uint64_t end;
    } marks[WB_GPU_MOST_MARKS];
    int first_mark, mark_count;
} wb_gpu_ring;

/* Memory for at most WB_GPU_PIECE_BYTES, once its last reader is done. What was taken before is
 * read by what the stream has been given so far. */
wb_gpu_outcome wb_gpu_ring_take(wb_gpu_ring *ring, gpu_stream stream, size_t size_bytes,
                                void **memory);
void wb_gpu_ring_release(wb_gpu_ring *ring);

/* ---- pinned memory for small downloads (landing.c) ---- */

enum { WB_GPU_LANDING_BYTES = 4096, WB_GPU_MOST_LANDED = 32 };

/* The driver waits where it copies to memory that is not pinned. A few bytes, such as a loss, are
 * downloaded to pinned memory instead, and copied on at the sync that their reader waits for. */
typedef struct wb_gpu_landing {
    char *memory; /* made when first used */
    size_t used;
    struct wb_gpu_landed {
        void *to;
        const char *from;
        size_t size_bytes;
    } pieces[WB_GPU_MOST_LANDED];
    int count;
} wb_gpu_landing;

/* Queues the copy: directly where there is no room. */
wb_gpu_outcome wb_gpu_land(wb_gpu_landing *landing, gpu_stream stream, void *to, gpu_pointer from,
                           size_t size_bytes);
/* Copies what was downloaded to where it belongs, unless the stream has failed. */
void wb_gpu_landing_empty(wb_gpu_landing *landing, bool has_failed);
void wb_gpu_landing_release(wb_gpu_landing *landing);

/* ---- queues (queue.c) ---- */

enum {
    WB_GPU_STATUS_SLOTS = 256,
    WB_GPU_LATE_WORDS = 1 << 16, /* as many as a wb_source can number */
};

/* Status words, one slot for all commands that are called the same: their places never change, so
 * graphs may hold them. */
typedef struct wb_gpu_status {
    gpu_pointer words;                  /* zero between syncs; made when first needed */
    int64_t (*mirror)[WB_STATUS_WORDS]; /* pinned */
    const char *what[WB_GPU_STATUS_SLOTS];
    int used;
    bool is_touched; /* by what was queued since the last sync */
} wb_gpu_status;

typedef struct wb_gpu_graph wb_gpu_graph;

typedef struct wb_gpu_queue {
    pthread_mutex_t lock; /* guards the members below; held while commands are queued */
    gpu_stream stream;
    wb_gpu_ring ring;
    wb_gpu_landing landing;
    gpu_pointer late; /* the late values of the run that was queued last; made when first needed */
    wb_gpu_status status;
    wb_gpu_graph *graphs; /* newest first */
    int graph_count;
    uint64_t *key; /* of the run that is being queued */
    size_t key_capacity;
    const char *first_what, *last_what; /* queued since the last sync, and how many */
    int64_t queued, ever_queued;
    wb_late_error error;
} wb_gpu_queue;

enum { WB_GPU_SPARE_EVENTS = 16 };

typedef struct wb_gpu_pinned {
    struct wb_gpu_pinned *next;
    char *memory;
    size_t size_bytes;
} wb_gpu_pinned;

typedef struct wb_gpu_device {
    int ordinal;         /* the driver's */
    gpu_context context; /* CUDA's */
    bool is_retained;    /* there is something to close */
    wb_gpu_target target;
    wb_dialect dialect;
    uint64_t compiler;              /* hash of all that a binary depends on beside its text */
    wb_texts texts;                 /* modules */
    bool uses_graphs, waits_always; /* WEBER_GRAPHS, WEBER_SYNC */
    /* WEBER_TUNE: how long the ways to compute a shape may be timed; 0: not; -1: not decided */
    _Atomic int64_t tune_ms;
    _Atomic int64_t tuned_ms; /* how long they were, of all shapes */
    gpu_stream capture; /* never runs anything: graphs are made on it, under the lock of `own` */
    gpu_pointer dummy;  /* stands for arguments without memory */
    wb_gpu_queue own;
    pthread_mutex_t pinned_lock;
    wb_gpu_pinned *pinned;
    pthread_mutex_t events_lock;
    gpu_event spare_events[WB_GPU_SPARE_EVENTS]; /* events that can be used again */
    int spare_count;
    pthread_mutex_t libraries_lock;
    void *products, *convolutions; /* what libraries keep for this device; made when first needed */
    _Atomic uint64_t peers;        /* bit i: this device reads memory of ordinal i */
} wb_gpu_device;

void *wb_gpu_open(int index);
void wb_gpu_close(void *device);

/* Makes the device that of the calling thread: what every entry of the table begins with. */
wb_gpu_outcome wb_gpu_enter(const wb_gpu_device *device);

/* No graph is being made between these: libraries that are asked about a device fail while any of
 * its streams is recorded. */
void wb_gpu_pause_graphs(wb_gpu_device *device);
void wb_gpu_resume_graphs(wb_gpu_device *device);

/* To be called before memory or modules are released: waits for all streams, and pauses graphs,
 * since the driver waits for the device, too. */
void wb_gpu_begin_release(wb_gpu_device *device);
void wb_gpu_end_release(wb_gpu_device *device);

/* NULL is the device's own. */
wb_gpu_queue *wb_gpu_queue_of(wb_gpu_device *device, void *queue);
bool wb_gpu_queue_init(wb_gpu_device *device, wb_gpu_queue *queue);
void wb_gpu_queue_release(wb_gpu_queue *queue);

/* With the queue's lock held. The late values to the device: *at is where they lie until the
 * queue's next run. */
wb_gpu_outcome wb_gpu_queue_late(wb_gpu_queue *queue, const uint64_t *late, int count,
                                 gpu_pointer *at);
/* The status words of commands called `what`. */
wb_gpu_outcome wb_gpu_queue_status(wb_gpu_queue *queue, const char *what, gpu_pointer *words);
/* `what` was queued, for messages. */
void wb_gpu_queue_note(wb_gpu_queue *queue, const char *what);

void *wb_gpu_queue_new(void *device);
void wb_gpu_queue_free(void *device, void *queue);
wb_status wb_gpu_sync(void *device, void *queue);
void *wb_gpu_native_queue(void *device, void *queue);

/* ---- events between queues (event.c) ---- */

void *wb_gpu_record(void *device, void *queue);
wb_status wb_gpu_wait(void *device, void *queue, void *event);
void wb_gpu_release_event(void *device, void *event);
wb_status wb_gpu_is_done(void *device, void *event, bool *is_done);
void wb_gpu_events_release(wb_gpu_device *device);

/* ---- memory and copies (memory.c) ---- */

void *wb_gpu_alloc(void *device, size_t size_bytes);
void wb_gpu_free(void *device, void *handle, size_t size_bytes);
void *wb_gpu_alloc_pinned(void *device, size_t size_bytes);
void wb_gpu_free_pinned(void *device, void *memory, size_t size_bytes);
wb_status wb_gpu_copy(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                      size_t size_bytes);
wb_status wb_gpu_copy_peer(void *device, void *queue, wb_memory to, void *from_device,
                           wb_memory from, size_t size_bytes);

#endif
