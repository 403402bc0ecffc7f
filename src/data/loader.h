/* Loaders: private side of weber/data.h. */
#ifndef WB_DATA_LOADER_H
#define WB_DATA_LOADER_H

#include <weber/data.h>

#include "base/object.h"
#include "base/text.h"
#include "data/prefetch.h"
#include "device/buffer.h"
#include "images/folder.h"

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
    /* memory on the device that batches go to, if any: filled from `buffers` */
    wb_buffer *there[WB_LOADER_SOURCES];
    wb_status status;
    char message[512];
} wb_loader_slot;

/* An object in the scope of a turn: it notices when the scope closes, whoever closes it. */
typedef struct wb_loader_turn {
    wb_object object;
    bool open;
    int64_t depth; /* number of open scopes of the thread at that time, this one included */
} wb_loader_turn;

struct wb_loader {
    wb_object object;
    uint32_t owner;        /* number of the thread that it belongs to */
    wb_loader_desc desc;   /* without the arrays and names, which are in sources */
    wb_image_files *files; /* with a reference; NULL: the data is not a folder of pictures */
    void *getobs_user;     /* what desc.getobs is handed */
    wb_loader_source sources[WB_LOADER_SOURCES];
    int count;
    const wb_device *device; /* where batches go */
    bool gathers;            /* the whole data is on a device: batches are gathered there */
    wb_copy_queue queue;     /* for uploads; device NULL: batches stay in host memory */
    struct {
        void (*fn)(wb_batch *batch, void *user);
        void *user;
    } maps[WB_LOADER_MAPS];
    int map_count;
    int64_t observations, length;
    /* of `shards` batches in a row this rank takes number `shard`; 1 and 0: all */
    int64_t shards, shard;
    int64_t *order;
    int64_t epoch, turns, next; /* next: number of the batch to come */
    bool in_epoch;              /* an epoch has begun and has not ended */
    bool goes_on; /* a position was loaded: wb_next with a batch of {0} continues that epoch */
    wb_loader_turn turn;
    wb_loader_slot slots[WB_PREFETCH_SLOTS];
    wb_buffer *last[WB_LOADER_SOURCES]; /* memory of the batch that wb_next gave last */
    wb_prefetch prefetch;
};

/* True if it is a loader that this thread may use; else with an error. */
bool wb_loader_check(const char *function, const wb_loader *loader);

/* Adds the facts about the loader that ranks compare (told.c). */
void wb_loader_tell(const wb_loader *loader, const char *name, wb_text *facts);

/* The epoch that a loop from {0} would go through, and the batch that it would begin with. */
int64_t wb_loader_coming(const wb_loader *loader, int64_t *first);

/* ---- its arrays (sources.c) ---- */

/* False with the error recorded. */
bool wb_loader_check_desc(const wb_loader_desc *desc);
bool wb_loader_add_sources(wb_loader *loader, const wb_loader_desc *desc);
void wb_loader_release_sources(wb_loader *loader);

/* ---- scopes (turn.c) ---- */

void wb_loader_start_turns(wb_loader *loader);
bool wb_loader_open_turn(wb_loader *loader);
/* Closes the turn's scope and the scopes inside it. With `only_innermost`, a scope that was opened
 * later, perhaps after a break, stays open: then only the turn ends, and its scope stays for the
 * code that closes the later one. */
wb_status wb_loader_close_turn(wb_loader *loader, bool only_innermost);
/* False with the error recorded if a function of the user's is running, and the turn began outside
 * of it. */
bool wb_loader_may_go_on(const char *function, const wb_loader *loader);

/* Calls the user's function fn on the calling thread, with random numbers of its own (seed), in a
 * scope that releases the arrays it makes. `what` names fn in messages. Returns its status, or that
 * of the error that it recorded. */
wb_status wb_loader_call(uint64_t seed, const char *what, wb_status (*fn)(void *context),
                         void *context);

/* ---- which observations a batch has (part.c) ---- */

int64_t wb_part_size(const wb_loader *loader, int64_t index);
/* The size of the largest batch. */
int64_t wb_part_most(const wb_loader *loader);
/* The number of observations that the arrays of a batch are made from. Only the function
 * (collate.c) knows the sizes of what it makes: a rank without observations calls it with those of
 * others. */
int64_t wb_part_made(const wb_loader *loader, int64_t index);
/* The places of these observations in the order; the last places if the rank has none. */
const int64_t *wb_part_places(const wb_loader *loader, const int64_t *order, int64_t index,
                              int64_t *size);

/* ---- the memory of a batch (slot.c) ---- */

/* Allocates memory for a whole batch in each entry of s that has none. */
bool wb_slot_equip(const wb_loader *loader, wb_loader_slot *s);
void wb_slot_release(wb_loader_slot *s, int count);
/* The buffers that a batch takes out of a slot. */
wb_buffer **wb_slot_outgoing(const wb_loader *loader, wb_loader_slot *s);
/* Copies the observations, lets the user change them, and uploads them to the loader's device, if
 * any. */
void wb_slot_fill(const wb_loader *loader, wb_loader_slot *s, int64_t index, int64_t epoch,
                  const int64_t *order);
/* The same for the loader's thread: into its slot of that number. */
void wb_slot_fill_ahead(void *loader, int64_t index, int number);

/* ---- observations from a function (getobs.c) ---- */

/* False with the error recorded. */
bool wb_getobs_check(const wb_loader_desc *desc);
/* An array in host memory that looks as if every observation were x, without memory for each.
 * Batches go to the device of x, unless the loader names one. */
wb_array *wb_getobs_pattern(wb_loader *loader, const char *name, wb_array *x);
/* Lets the function write the observations of a batch. */
wb_status wb_getobs_all(const wb_loader *loader, const wb_batch_memory *batch);

/* ---- a folder of pictures (pictures.c) ---- */

/* With .images: the loader takes the files, and the desc becomes that of a getobs which reads them.
 * False with the error recorded. */
bool wb_pictures_plan(wb_loader *loader, wb_loader_desc *desc);
/* ---- observations of any size (collate.c) ---- */

/* The batch's x has places; replaces it by what the user's functions make of these, on the loader's
 * device. Errors are recorded. */
void wb_collate(const wb_loader *loader, wb_batch *batch);

/* ---- batches (batch.c) ---- */

/* The member of a batch for the array of source i. */
wb_array **wb_batch_place(const wb_loader *loader, wb_batch *batch, int i);

/* The position of a loader, and the settings that must be the same for it to be valid
 * (position.c). */
extern const struct wb_saved wb_saved_loader;

/* If observations of the two have different sizes, adds that at the end of the pending error. */
void wb_loader_compare(const wb_loader *training, const wb_loader *validation);

#endif
