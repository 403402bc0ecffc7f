/* The checked backend: the CPU, behaving like a device, so that device bugs are found without one.
 *
 * - A handle is no address: it is a range of pages that nobody may touch. The bytes lie elsewhere,
 *   and begin as NaN (0xFF).
 * - Whatever is queued is done later: at a sync, when a queue that waits for it runs, or when the
 *   queue is full. Until then the host's side of an upload is not read, and that of a download
 *   holds NaN.
 * - Handles, kernels, events and queues that are unknown or were given back are refused, by the
 *   operation's name.
 * - Host memory that is taken away or written twice while a copy is pending: "missing sync".
 *
 * One lock guards all of it. An error that no status can carry is kept for the device's next sync.
 * WEBER_CHECKED_FAIL=n: the n-th command from now on fails, and the device with it, as a broken one
 * does. */
#ifndef WB_CHECKED_H
#define WB_CHECKED_H

#include "host.h"

enum { DEVICES = 2, MOST_QUEUED = 512, TEXT_BYTES = 512, BUCKETS = 1 << 16 };

/* ---- what is known by its address ---- */

typedef struct known {
    const void *key;
    struct known *next;
} known;

typedef struct table {
    known *buckets[BUCKETS];
} table;

void wb_checked_put(table *t, known *k, const void *key);
void wb_checked_take(table *t, known *k);
known *wb_checked_find(table *t, const void *key); /* NULL: unknown */

/* ---- objects ---- */

/* Memory of a device. Freed: known by its handle for a while, so that a later use can be named. */
typedef struct piece {
    known known; /* by the handle */
    struct device *device;
    void *handle; /* pages without access */
    char *bytes;  /* where the data is; NULL: freed, and nothing queued uses it any more */
    size_t size_bytes, reserved_bytes;
    uint64_t number, freed_at; /* freed_at 0: alive */
    const char *freed_after;   /* the operation queued last before */
    int uses;                  /* by queued entries */
} piece;

typedef struct kernel {
    known known; /* by its own address */
    void *inner;
    int64_t *offsets; /* of a matrix product's batch: the caller's live no longer than its kernel */
    int late_count;   /* late words that it may read */
    bool is_empty;    /* a program over no elements: it reads nothing, wherever its arguments lie */
    int uses;
    bool is_released;
} kernel;

typedef struct event {
    known known; /* by its own address */
    struct queue *queue;
    uint64_t position; /* entries of the queue that it stands for */
    int refs;          /* its owner, and queued waits */
} event;

typedef enum entry_kind { ENTRY_RUN, ENTRY_COPY, ENTRY_WAIT } entry_kind;

/* Something queued, with copies of all that the call was given. */
typedef struct entry {
    struct entry *next;
    entry_kind kind;
    const char *what, *after; /* its operation, and the one queued before it */
    uint64_t step;
    bool fails; /* by WEBER_CHECKED_FAIL */
    bool is_dropped;
    int count;      /* arguments; of a copy: to, from */
    piece **pieces; /* NULL: host memory, or none */
    wb_memory *memory;
    wb_argument *arguments;
    kernel *kernel;
    uint64_t *late;
    size_t size_bytes; /* copy */
    event *event;      /* wait */
} entry;

enum { TO, FROM };

typedef struct kept_error {
    wb_status status;
    char text[TEXT_BYTES];
} kept_error;

typedef struct queue {
    struct device *device; /* NULL: freed, and only events know it */
    struct queue *next;    /* of the device */
    entry *first, *last;
    uint64_t pushed, done; /* entries so far */
    int refs;              /* its owner, and events */
    kept_error error;
} queue;

typedef struct pinned {
    char *memory;
    size_t size_bytes;
    struct pinned *next;
} pinned;

typedef struct device {
    struct device *next;
    int index;
    void *cpu; /* the device of the backend below */
    queue *queues;
    queue *own; /* among them */
    pinned *pinned;
    const char *last_what; /* queued */
    kept_error error;      /* for the next sync */
    kept_error gone;       /* why later commands are not run */
} device;

/* ---- checked.c ---- */

extern device *wb_checked_devices;

/* The number of the next step: allocations, frees and entries are counted, to say when things
 * happened. */
uint64_t wb_checked_step(void);
/* Keeps the first error. */
void wb_checked_keep(kept_error *kept, wb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- memory.c; under the lock ---- */

void *wb_checked_alloc(device *d, size_t size_bytes);
void wb_checked_free(device *d, void *handle, size_t size_bytes);
void *wb_checked_alloc_pinned(device *d, size_t size_bytes);
void wb_checked_free_pinned(device *d, void *memory, size_t size_bytes);
/* All memory of a device that closes. Returns how many pieces had not been freed. */
int wb_checked_drop_memory(device *d);
/* Finds what `use` ("argument 2", "the source") of the operation is. Fails with WB_ERROR_DEVICE. */
wb_status wb_checked_piece(const device *d, const char *what, const char *use, wb_memory memory,
                           size_t size_bytes, piece **found);
void wb_checked_unuse(piece *p);
bool wb_checked_is_handle(const void *address);

/* ---- kernel.c; under the lock ---- */

void *wb_checked_kernel(device *d, const wb_program *program);
void *wb_checked_lower(device *d, const wb_call *call, const wb_program *epilogue, int split);
void wb_checked_release(kernel *k);
bool wb_checked_is_kernel(const void *any);
void wb_checked_unuse_kernel(kernel *k);

/* ---- queue.c; under the lock ---- */

/* The device's queue (NULL: its own); NULL with an error. */
queue *wb_checked_queue(const device *d, const char *what, void *any);
queue *wb_checked_queue_new(device *d);
void wb_checked_queue_free(device *d, queue *q);
void wb_checked_push(queue *q, entry *e);
/* Does what is queued, up to this many entries since the beginning. */
void wb_checked_do(queue *q, uint64_t position);
void *wb_checked_record(queue *q);
wb_status wb_checked_wait(queue *q, void *any);
bool wb_checked_release_event(void *any);          /* false: unknown */
bool wb_checked_is_done(void *any, bool *is_done); /* false: unknown */
void wb_checked_unref_event(event *e);

/* ---- entry.c; under the lock ---- */

entry *wb_checked_entry(entry_kind kind, int count, int late_count);
void wb_checked_entry_free(entry *e);
wb_status wb_checked_entry_of_command(const device *d, const wb_command *command,
                                      const wb_memory *memory, const uint64_t *late, entry **made);
void wb_checked_entry_do(queue *q, entry *e);
/* The host's side of a pending copy; NULL: it has none. */
const char *wb_checked_host_side(const entry *e);
/* A pending copy whose host memory overlaps the range; NULL: none. */
entry *wb_checked_pending(const void *host, size_t size_bytes);
/* "the download of 64 bytes from memory 3 (queued at step 12, after relu)" */
void wb_checked_describe(const entry *e, char *text, size_t size_bytes);

#endif
