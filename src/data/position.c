/* The position of a loader, for files: the order depends only on seed and epoch, so three numbers
 * are enough. */
#include "base/saved.h"
#include "data/loader.h"

typedef struct position {
    int64_t observations, batchsize; /* of all ranks together */
    bool shuffle, drop_partial;
    uint64_t seed;
    int64_t epoch, batch; /* batches of the epoch that have been handed out */
    bool in_epoch;
} position;

static void get_position(const void *object, void *numbers) {
    const wb_loader *loader = object;
    *(position *)numbers = (position){.observations = loader->observations,
                                      .batchsize = loader->desc.batchsize * loader->shards,
                                      .shuffle = loader->desc.shuffle,
                                      .drop_partial = loader->desc.drop_partial,
                                      .seed = loader->desc.seed,
                                      .epoch = loader->epoch,
                                      .batch = loader->next,
                                      .in_epoch = loader->in_epoch || loader->goes_on};
}

static bool is_possible(const void *object, const void *numbers) {
    const position *p = numbers;
    return p->epoch >= (p->in_epoch ? 0 : -1) && p->epoch < INT64_MAX && p->batch >= 0 &&
           p->batch <= ((const wb_loader *)object)->length;
}

/* A batch that is out belongs to an epoch that has ended; its turn is closed when the next one
 * opens. */
static void set_position(void *object, const void *numbers) {
    const position *p = numbers;
    wb_loader *loader = object;
    (void)wb_prefetch_pause(&loader->prefetch);
    loader->desc.seed = p->seed;
    loader->epoch = p->epoch, loader->next = p->batch;
    loader->goes_on = p->in_epoch, loader->in_epoch = false;
    loader->turns++;
}

static const wb_saved_number numbers_of_position[] = {
    WB_SAVED_FIXED_FIELD(position, observations, WB_SAVED_INTEGER),
    WB_SAVED_FIXED_FIELD(position, batchsize, WB_SAVED_INTEGER),
    WB_SAVED_FIXED_FIELD(position, shuffle, WB_SAVED_BOOL),
    WB_SAVED_FIXED_FIELD(position, drop_partial, WB_SAVED_BOOL),
    WB_SAVED_FIELD(position, seed, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(position, epoch, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(position, batch, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(position, in_epoch, WB_SAVED_BOOL),
};

const wb_saved wb_saved_loader = {
    numbers_of_position, sizeof numbers_of_position / sizeof *numbers_of_position,
    sizeof(position),    get_position,
    is_possible,         set_position};
