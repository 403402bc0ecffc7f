/* Devices, their queues and memory. */
#ifndef WB_METAL_DEVICE_H
#define WB_METAL_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "../common/late.h"
#include "../common/texts.h"
#include "library.h"

/* ---- which devices there are (devices.c) ---- */

/* The number of devices; 0 with the reason. */
int wb_metal_count(char *reason, size_t reason_bytes);

/* Device number index, which lives for ever. NULL with an error recorded. */
mtl_id wb_metal_find(int index);

wb_status wb_metal_info(int index, wb_device_info *info);

/* Whether it has SIMD groups of 32 items that exchange values and multiply matrices: Apple's own
 * GPUs from the M1 on. */
bool wb_metal_has_simd(mtl_id device);

/* "15.1 (Build 24B83)": of macOS. */
const char *wb_metal_system(void);

/* ---- queues (queue.c) ---- */

enum {
    WB_METAL_SLOTS = 64,
    WB_METAL_FLIGHT = 32,       /* most command buffers under way; Metal blocks at 64 */
    WB_METAL_MOST_BYTES = 4095, /* of what setBytes takes */
};

/* The status words of one command that checks indices. */
typedef struct wb_metal_slot {
    mtl_id words; /* a shared buffer of four i64; made when first needed */
    const char *what;
} wb_metal_slot;

/* A command buffer whose outcome is not known yet. A queue that waits for another queue's event
 * keeps the command buffer that signals it: one that fails does not signal, and the wait would
 * never end. */
typedef struct wb_metal_flight {
    mtl_id commands;
    const char *what;
    uint64_t signals; /* value of the queue's event when it is done; 0: none */
    struct wb_metal_event *awaited;
} wb_metal_flight;

typedef struct wb_metal_queue {
    pthread_mutex_t lock; /* guards the members below: encoders belong to one thread at a time */
    mtl_id queue;
    mtl_id event; /* a shared event; its value grows with each record */
    uint64_t last_value;
    mtl_id open;    /* command buffer that takes commands; NULL: none. Only within an entry */
    mtl_id encoder; /* its encoder; NULL: none */
    const char *what;
    int64_t open_cost;                        /* of its commands */
    wb_metal_flight flights[WB_METAL_FLIGHT]; /* a ring */
    int first_flight, flight_count;
    wb_metal_slot slots[WB_METAL_SLOTS];
    int used_slots;
    wb_late_error error;
} wb_metal_queue;

/* A point in a queue's order. */
typedef struct wb_metal_event {
    int references;
    mtl_id event, commands; /* commands: what signals it; NULL: it has happened */
    uint64_t value;
    struct wb_metal_event *before, *after; /* recorded earlier and later; without commands NULL */
} wb_metal_event;

/* ---- devices (device.c) ---- */

typedef struct wb_metal_device {
    mtl_id id;
    wb_dialect dialect;
    char *prelude;
    uint64_t compiler; /* hash of all that a compiled text depends on beside itself */
    bool is_unified;   /* memory is the host's too */
    uint64_t most_bytes, memory_bytes;
    _Atomic uint64_t allocated_bytes;
    mtl_id dummy;   /* stands for arguments without memory */
    mtl_id options; /* MTLCompileOptions */
    wb_metal_queue own;
    wb_texts texts;
    wb_text *copying; /* what copies between buffers; made when first needed */
} wb_metal_device;

void *wb_metal_open(int index);
void wb_metal_close(void *device);

/* Queues; NULL is the device's own. The queue's lock is held where it says so. */
wb_metal_queue *wb_metal_queue_of(wb_metal_device *device, void *queue);
bool wb_metal_queue_init(wb_metal_device *device, wb_metal_queue *queue);
void wb_metal_queue_release(wb_metal_queue *queue);

/* An encoder for one command more, which costs as many plain ones. NULL with an error recorded.
 * (locked) */
mtl_id wb_metal_encoder(wb_metal_queue *queue, const char *what, int64_t cost);
/* The open command buffer without an open encoder, for MetalPerformanceShaders. (locked) */
mtl_id wb_metal_commands(wb_metal_queue *queue, const char *what, int64_t cost);
/* Commits what was encoded. (locked) */
void wb_metal_commit(wb_metal_queue *queue);
/* True if no command buffer is under way; checks those that are done. (locked) */
bool wb_metal_is_idle(wb_metal_queue *queue);
/* Waits for all that was committed, and checks the outcome. (locked) */
void wb_metal_settle(wb_metal_queue *queue);
/* Status words, zero. NULL with an error recorded. (locked) */
mtl_id wb_metal_slot_take(wb_metal_device *device, wb_metal_queue *queue, const char *what);

void *wb_metal_queue_new(void *device);
void wb_metal_queue_free(void *device, void *queue);
void *wb_metal_record(void *device, void *queue);
wb_status wb_metal_wait(void *device, void *queue, void *event);
void wb_metal_release_event(void *device, void *event);
wb_status wb_metal_is_done(void *device, void *event, bool *is_done);
wb_status wb_metal_sync(void *device, void *queue);

/* ---- memory and copies (memory.c) ---- */

void *wb_metal_alloc(void *device, size_t size_bytes);
void wb_metal_free(void *device, void *handle, size_t size_bytes);
wb_status wb_metal_copy(void *device, void *queue, wb_copy_kind kind, wb_memory to, wb_memory from,
                        size_t size_bytes);
wb_status wb_metal_copy_peer(void *device, void *queue, wb_memory to, void *from_device,
                             wb_memory from, size_t size_bytes);

/* A buffer that host and device see, of which the host writes or reads `contents`. NULL with an
 * error recorded. */
mtl_id wb_metal_shared(wb_metal_device *device, size_t size_bytes, const char *what);

#endif
