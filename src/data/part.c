/* Which observations a batch has: its part of the order, or this rank's part of all ranks'. */
#include "data/loader.h"

/* Where the batch begins in the order, perhaps after its end. */
static int64_t place_in_order(const wb_loader *loader, int64_t index) {
    return (index * loader->shards + loader->shard) * loader->desc.batchsize;
}

int64_t wb_part_size(const wb_loader *loader, int64_t index) {
    const int64_t left = loader->observations - place_in_order(loader, index);
    return left < 0 ? 0 : left < loader->desc.batchsize ? left : loader->desc.batchsize;
}

int64_t wb_part_most(const wb_loader *loader) {
    const int64_t n = loader->observations, size = loader->desc.batchsize;
    return size < n ? size : n;
}

int64_t wb_part_made(const wb_loader *loader, int64_t index) {
    const int64_t size = wb_part_size(loader, index);
    return size == 0 && loader->desc.observe ? wb_part_most(loader) : size;
}

const int64_t *wb_part_places(const wb_loader *loader, const int64_t *order, int64_t index,
                              int64_t *size) {
    const int64_t begin = place_in_order(loader, index);
    *size = wb_part_made(loader, index);
    const int64_t latest = loader->observations - (*size ? *size : 1);
    return order + (wb_part_size(loader, index) ? begin : latest);
}
