/* Loaders: private side of weber/data.h. */
#ifndef WB_DATA_LOADER_H
#define WB_DATA_LOADER_H

#include <weber/data.h>

#include "base/object.h"
#include "base/text.h"
#include "data/prefetch.h"
#include "device/buffer.h"

enum { WB_LOADER_SOURCES = WB_MORE_ARRAYS + 2, WB_LOADER_MAPS = 8 };

/* One of the loader's arrays: observation i lies at start + i * stride_bytes. */
typedef struct wb_loader_source {
    char *name;
    wb_array *array;   /* held */
    const char *start; /* NULL: not in the host's memory */
    int64_t bytes, stride_bytes;
} wb_loader_source;

/* A batch that is being prepared, or waits to be taken. */
typedef struct wb_loader_slot {
    wb_buffer *buffers[WB_LOADER_SOURCES]; /* the host's */
    /* where batches go, if that is elsewhere: filled from those */
    wb_buffer *there[WB_LOADER_SOURCES];
    wb_status status;
    char message[512];
} wb_loader_slot;

/* Lies in the scope of a turn and notices when that closes, whoever closes it. */
typedef struct wb_loader_turn {
    wb_object object;
    bool open;
    int64_t depth; /* scopes of the thread that were open then, with this one */
} wb_loader_turn;

struct wb_loader {
    wb_object object;
    uint32_t owner;      /* number of the thread that it belongs to */
    wb_loader_desc desc; /* without the arrays and names, which sources hold */
    wb_loader_source sources[WB_LOADER_SOURCES];
    int count;
    const wb_device *device; /* where batches go */
    bool gathers;            /* the whole data is on a device: batches are gathered there */
    wb_copy_queue queue;     /* of uploads; device NULL: batches stay where they are prepared */
    struct {
        void (*fn)(wb_batch *batch, void *user);
        void *user;
    } maps[WB_LOADER_MAPS];
    int map_count;
    int64_t observations, length;
    int64_t shards, shard; /* of so many batches of the order, this one; 1 and 0: all of them */
    int64_t *order;
    int64_t epoch, turns, next; /* next: number of the batch to come */
    bool in_epoch;              /* which has not come to its end */
    bool goes_on;               /* a position was loaded: {0} goes on in that epoch */
    wb_loader_turn turn;
    wb_loader_slot slots[WB_PREFETCH_SLOTS];
    wb_buffer *last[WB_LOADER_SOURCES]; /* memory of the batch that was handed out last */
    wb_prefetch prefetch;
};

/* True if it is one that this thread may use; else with an error. */
bool wb_loader_check(const char *function, const wb_loader *loader);

/* The facts of it that ranks compare (told.c). */
void wb_loader_tell(const wb_loader *loader, const char *name, wb_text *facts);

/* The epoch that {0} would walk, and where it would begin. */
int64_t wb_loader_coming(const wb_loader *loader, int64_t *first);

/* ---- its arrays (sources.c) ---- */

/* False with the error recorded. */
bool wb_loader_check_desc(const wb_loader_desc *desc);
bool wb_loader_add_sources(wb_loader *loader, const wb_loader_desc *desc);
void wb_loader_release_sources(wb_loader *loader);

/* ---- scopes (turn.c) ---- */

void wb_loader_start_turns(wb_loader *loader);
bool wb_loader_open_turn(wb_loader *loader);
/* Closes the turn's scope and what was opened inside it. With `only_innermost` a scope opened
 * since, perhaps after a break, is respected: then the turn's scope passes to whoever closes it. */
wb_status wb_loader_close_turn(wb_loader *loader, bool only_innermost);
/* False with the error recorded in a function of the user's, where the turn began outside of it. */
bool wb_loader_may_go_on(const char *function, const wb_loader *loader);

/* Calls fn, which is the user's, given as `what`, on whichever thread this is: with random numbers
 * of its own and in a scope, where arrays that it makes end. Its status, or that of the error it
 * recorded. */
wb_status wb_loader_call(uint64_t seed, const char *what, wb_status (*fn)(void *context),
                         void *context);

/* ---- which observations a batch has (part.c) ---- */

int64_t wb_part_size(const wb_loader *loader, int64_t index);
/* Of the largest batch. */
int64_t wb_part_most(const wb_loader *loader);
/* The observations of which the arrays of a batch are made. What a function makes (collate.c) has
 * sizes that only the function knows: for a rank that has none, it makes those of others. */
int64_t wb_part_made(const wb_loader *loader, int64_t index);
/* Their places in the order; the last ones where the rank has none. */
const int64_t *wb_part_places(const wb_loader *loader, const int64_t *order, int64_t index,
                              int64_t *size);

/* ---- the memory of a batch (slot.c) ---- */

/* Memory for a whole batch in each place of s that has none. */
bool wb_slot_equip(const wb_loader *loader, wb_loader_slot *s);
void wb_slot_release(wb_loader_slot *s, int count);
/* What a batch takes out of a slot. */
wb_buffer **wb_slot_outgoing(const wb_loader *loader, wb_loader_slot *s);
/* Copies the observations, lets the user change them, and sends them where they are wanted. */
void wb_slot_fill(const wb_loader *loader, wb_loader_slot *s, int64_t index, int64_t epoch,
                  const int64_t *order);
/* The same for the loader's thread: into its slot of that number. */
void wb_slot_fill_ahead(void *loader, int64_t index, int number);

/* ---- observations from a function (getobs.c) ---- */

/* False with the error recorded. */
bool wb_getobs_check(const wb_loader_desc *desc);
/* One observation x as all of them in the host's memory, without memory for each. Batches go to
 * where x is, unless the loader says where. */
wb_array *wb_getobs_pattern(wb_loader *loader, const char *name, wb_array *x);
/* Lets the function write those of a batch. */
wb_status wb_getobs_all(const wb_loader *loader, const wb_batch_memory *batch);

/* ---- observations of any size (collate.c) ---- */

/* The places of a batch, its x, become what the user's functions make of them, where batches go;
 * errors are recorded. */
void wb_collate(const wb_loader *loader, wb_batch *batch);

/* ---- batches (batch.c) ---- */

/* Where a batch has the array of source i. */
wb_array **wb_batch_place(const wb_loader *loader, wb_batch *batch, int i);

/* Where a loader is, and what has to be the same for the position to mean the same (position.c). */
extern const struct wb_saved wb_saved_loader;

/* Where observations of the two have different sizes: that at the end of the pending error. */
void wb_loader_compare(const wb_loader *training, const wb_loader *validation);

#endif
