/* weber/data.h: from files and arrays to batches.
 *
 * An observation is a position (place) along the last dimension: images (28, 28, 60000) and labels
 * (60000) have 60000 of them. A loader gives them in batches; each turn of the loop, that is, each
 * batch, has a scope that wb_next opens and closes:
 *
 *     wb_loader *data = wb_loader_new(.x = images, .y = labels, .batchsize = 64, .shuffle = true,
 *                                     .seed = 1);
 *     for (int epoch = 0; epoch < 5; epoch++) {
 *         wb_batch batch = {0};                                  // {0} starts an epoch
 *         while (wb_next(data, &batch)) train_on(batch.x, batch.y);
 *     }
 *     wb_free(data);
 *
 * Each loader has a thread that copies the next batches while the program computes; this changes
 * neither the batches nor their order. A loader must be used by one thread at a time. Its position
 * can be saved and loaded (weber/state.h), also in the middle of an epoch: the next batch of {0}
 * then continues there. Errors: weber/error.h. */
#ifndef WEBER_DATA_H
#define WEBER_DATA_H

#include "device.h"
#include "images.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- observations ---- */

/* Number of observations: the last size. 0 for NULL and for an array without dimensions. */
WB_API int64_t wb_numobs(const wb_array *x);

/* A view of observations start to stop - 1, with as many dimensions as x. For a list of places:
 * wb_gather(x, places, -1). */
WB_API wb_array *wb_getobs(wb_array *x, int64_t start, int64_t stop);

/* Splits x into views, one after another: wb_splitobs(x, parts, 0.7, 0.2) sets parts[0 .. 2] to
 * 70%, 20% and the rest. Fractions lie in 0 .. 1 and sum to at most 1; each part is rounded to the
 * nearest number of observations. On failure all parts are NULL. */
#define wb_splitobs(x, parts, ...)                                                                 \
    wb_splitobs_make(x, parts, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),      \
                     (const double[]){__VA_ARGS__})
WB_API wb_status wb_splitobs_make(wb_array *x, wb_array **parts, int count,
                                  const double *fractions);

/* labels (...) of integers 0 to classes - 1; the result (classes, ...), of bool, is true at each
 * label's place. The labels are read at the call: a label out of range is an error that names it.
 * To get numbers instead of bool: wb_cast(y, WB_F32). */
WB_API wb_array *wb_onehot(wb_array *labels, int64_t classes);

/* y (classes, ...) to (...), i64: the row of the first largest element in each column, from 0. */
WB_API wb_array *wb_onecold(wb_array *y);

/* ---- the loader ---- */

/* Gives arrays in batches, epoch after epoch; released by wb_free. */
typedef struct wb_loader wb_loader;

enum { WB_MORE_ARRAYS = 6 };

typedef struct wb_named_array {
    const char *name;
    wb_array *array;
} wb_named_array;

/* One batch. x, y and more[i] come from the loader's arrays of the same name, NULL where it has
 * none; they belong to the turn's scope. Using one after the turn is a mistake, as with any
 * released array. It is usually, but not always, reported as an error (weber/array.h). */
typedef struct wb_batch {
    wb_array *x, *y;
    wb_array *more[WB_MORE_ARRAYS];
    int64_t index; /* place in the epoch, from 0 */
    /* observations in it: batchsize, or fewer in the last batch. With .shard a rank's last batch
     * can have 0, with arrays (..., 0): that rank takes part in the step, but adds nothing to it */
    int64_t size;
    int64_t epoch;      /* of the loader, from 0 */
    wb_loader *loader_; /* private */
    int64_t full_;      /* private: observations in a batch that is not the last one */
    int64_t turn_;      /* private; 0: the next wb_next starts an epoch */
} wb_batch;

/* The memory of a batch while it is prepared: the observations of array i are one after another at
 * data[i], and may be changed. Their places in the whole data are order[0 .. size - 1]. Arrays are
 * numbered in the order x, y, more[0], ...; an array that the loader lacks has no number. */
typedef struct wb_batch_memory {
    int64_t index, size, epoch;
    const int64_t *order;
    int count;
    void *const *data;
} wb_batch_memory;

/* An observation for getobs to write: its array i goes to data[i], which at first has the numbers
 * of the loader's own array i. */
typedef struct wb_observation {
    int64_t place; /* from 0 */
    int64_t epoch;
    uint64_t seed; /* for random numbers: different for each place and epoch */
    int count;
    void *const *data;
} wb_observation;

/* Writes the observation. Called on one of the loader's threads, several at a time with .threads.
 * Random arrays that it makes depend only on seed; arrays that it makes are released after the
 * call. A status other than WB_OK ends the epoch, as for prepare. */
typedef wb_status wb_getobs_fn(const wb_observation *observation, void *user);

/* One observation as arrays of any size: arrays[0] is its x, arrays[1] its y, arrays[2 + i] its
 * more[i]. They are NULL at first; an array that stays NULL in the first observation of a batch is
 * missing in the batch. Without collate there must be an x. Called on the caller's thread, in the
 * turn's scope; a status other than WB_OK ends the epoch with that status. */
typedef wb_status wb_observe_fn(int64_t place, wb_array **arrays, void *user);

/* Makes a batch from its observations: sets batch->x, y and more. lists[k] has array k of each of
 * the batch->size observations; it is NULL if they have no array k. */
typedef wb_status wb_collate_fn(wb_batch *batch, wb_array *const *const *lists, void *user);

/* Zero means default. The arrays are kept by the loader and evaluated when it is made. */
typedef struct wb_loader_desc {
    WB_START_MEMBER;
    wb_array *x, *y; /* inputs and targets; x is required, except with observe and images */
    /* more arrays, with names: .more = {{"mask", mask}}; see wb_batch_get */
    wb_named_array more[WB_MORE_ARRAYS];
    int64_t batchsize WB_DEFAULT(1); /* observations per batch */
    bool shuffle;                    /* a new order each epoch, by (seed, epoch) only */
    uint64_t seed;                   /* same seed, same order, on every machine */
    bool drop_partial;               /* leave out a last batch that is not full */
    /* Only this rank's part of the data (weber/distributed.h): with N ranks, rank r gets batch r of
     * every N batches in the order that all ranks share. So all ranks make the same number of
     * steps, and one step of all ranks covers batchsize times N observations. */
    bool shard;
    const wb_device *device; /* where batches go; default: where the arrays are */
    /* false: each batch is prepared when it is asked for, on the caller's thread */
    bool background WB_DEFAULT(true);
    /* Changes a batch in the turn's scope, on the caller's thread: batch->x = wb_cast(batch->x,
     * WB_F32). */
    void (*map)(wb_batch *batch, void *user);
    /* Changes a batch's memory while it is prepared, by default on the loader's thread, in a scope
     * of its own; random arrays made there depend on seed, epoch and index. A status other than
     * WB_OK ends the epoch: when that batch's turn comes, wb_next fails with the status and names
     * the batch's index. */
    wb_status (*prepare)(const wb_batch_memory *batch, void *user);
    void *user; /* handed to map, prepare, getobs, observe and collate */
    /* Observations from a function instead of arrays: numobs of them, which getobs writes one by
     * one, before prepare. x, y and more are then one observation each, (..., 1), and say which
     * sizes and type an observation has. The type must be one that wb_to does not change on the
     * batches' device (it turns f64 into f32 on a GPU):
     *
     *     wb_loader_new(.x = wb_zeros(WB_U8, 224, 224, 3, 1), .y = wb_zeros(WB_I32, 1),
     *                   .numobs = 50000, .getobs = decode, .user = files, .threads = 8,
     *                   .batchsize = 64, .shuffle = true) */
    int64_t numobs;
    wb_getobs_fn *getobs;
    int threads; /* number of threads that call getobs; does not change the order. Default 1 */
    /* Or observe makes numobs observations of any sizes as arrays; x, y and more are not given.
     * collate makes a batch of them; default: the observations, which must have equal sizes, are
     * stacked along a new last dimension. Both are called before map; batches then go to device.
     *
     *     static wb_status pad(wb_batch *b, wb_array *const *const *lists, void *user) {
     *         b->x = wb_batchseq((int)b->size, lists[0], 0);     // weber/observations.h
     *         b->y = wb_stack_make(-1, (int)b->size, lists[1]);
     *         return WB_OK;                                      // or the error that is pending
     *     }
     *     wb_loader_new(.numobs = 5000, .observe = read_text, .user = texts, .collate = pad,
     *                   .batchsize = 32, .shuffle = true) */
    wb_observe_fn *observe;
    wb_collate_fn *collate;
    /* Or the pictures of a folder of classes (weber/images.h), read and prepared for each batch by
     * .threads threads: x (crop, crop, channels, n) f32 and y (n) i32, the labels. No x, y, more,
     * getobs or observe is given. What is random in them depends on seed, epoch and place. */
    const wb_image_folder *images;
} wb_loader_desc;

/* A loader, released by wb_free at any time. Fails, naming arrays and sizes, if one has no
 * observations, if their numbers differ, if batchsize is negative, or if drop_partial leaves no
 * batch at all. */
#define wb_loader_new(...) WB_MAKE(wb_loader_make, loader, __VA_ARGS__)
WB_API wb_loader *wb_loader_make(wb_loader_desc desc);

/* A loader over the same arrays, with the same settings, whose batches go to the device. They are
 * copied there ahead of time, on a queue of their own, during the computation; a batch's memory is
 * free again when its turn ends. f64 from the CPU becomes f32, as with wb_to.
 *
 * Arrays that are on that device already (after wb_to of the whole data set) are not copied:
 * batches are views of them, or gathered from them when shuffled. Such a loader cannot have
 * prepare, which works on host memory. */
WB_API wb_loader *wb_loader_to(const wb_device *device, wb_loader *loader);

/* A loader over the same arrays whose batches pass through f as well, after the loader's own map:
 * on the caller's thread, in the turn's scope. */
WB_API wb_loader *wb_mapobs(void (*f)(wb_batch *batch, void *user), void *user, wb_loader *loader);

/* Moves a batch's arrays, in place; on failure it is as it was. */
WB_API wb_status wb_batch_to(const wb_device *device, wb_batch *batch);

/* Batches in an epoch. */
WB_API int64_t wb_loader_length(const wb_loader *loader);

/* The number, from 0, of the epoch that the next batch of {0} starts: the epoch of the loaded
 * position (weber/state.h), or the epoch after the last one that was started. */
WB_API int64_t wb_loader_epoch(const wb_loader *loader);

/* The next batch: closes the last turn's scope, opens a new one and fills *batch; a batch of {0}
 * starts an epoch. Returns false, with *batch set to {0}, at the end of the epoch, and when an
 * error is pending, whether from the loader, from closing the scope or from the loop's body: so a
 * loop ends at its first error. Scopes that the body left open are closed, too.
 *
 * A loop that must leave no scope open, as in another language, takes the arrays that it needs from
 * the batch and closes the turn's scope itself; the next wb_next works as usual:
 *
 *     while (wb_next(data, &batch)) {
 *         wb_array *x = wb_take(batch.x), *y = wb_take(batch.y); // wb_free them at any time
 *         wb_scope_leave();
 *         ...
 *     }
 *
 * To leave a loop early call wb_batch_end(&batch). After a plain break the scope stays open until
 * the loader's next epoch starts or the loader is freed. A new {0} starts an epoch in either
 * case. */
WB_API bool wb_next(wb_loader *loader, wb_batch *batch);

/* Ends a turn early: closes its scope and sets *batch to {0}. */
WB_API wb_status wb_batch_end(wb_batch *batch);

/* The first batch of the next epoch, without starting that epoch; its arrays belong to the caller's
 * scope, so wb_batch_end is not needed. False on failure. */
WB_API bool wb_first(wb_loader *loader, wb_batch *batch);

/* The batch's array of that name: "x", "y" or one of more. An unknown name is an error that lists
 * the valid ones. */
WB_API wb_array *wb_batch_get(const wb_batch *batch, const char *name);

/* ---- files ---- */

/* Reads an IDX file, gzipped (in any number of members) or not: u8, i8 and i16 (both as i32), i32,
 * f32 or f64; its sizes are reversed to fastest first, (28, 28, 60000). A file in another format,
 * one that is too short, and one with bytes after its data are errors that name file and offset. So
 * is a gzipped file that inflates to more than the larger of 2 GiB and four times its size; the
 * environment variable WEBER_INFLATE_MIB, in mebibytes, sets another limit. */
WB_API wb_array *wb_read_idx(const char *path);

typedef enum wb_split { WB_SPLIT_TRAIN, WB_SPLIT_TEST } wb_split;

/* Fashion-MNIST (Xiao et al. 2017): 60000 or 10000 images (28, 28, n) of u8 and labels (n) of i32,
 * 0 to 9, owned by the scope. Looked for in the folder WEBER_DATA, then in
 * /usr/share/datasets/fashion-mnist, where the Debian package dataset-fashion-mnist puts it. On
 * failure both are NULL. */
WB_API wb_status wb_fashion_mnist(wb_split split, wb_array **images, wb_array **labels);

/* The name of class 0 to 9, "T-shirt/top" to "Ankle boot"; NULL for another number. */
WB_API const char *wb_fashion_mnist_class(int label);

#ifdef __cplusplus
}
#endif
#endif
