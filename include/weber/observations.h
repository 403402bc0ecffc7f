/* weber/observations.h: choosing, cutting and joining observations before a loader walks them.
 *
 * As in weber/data.h an observation is a place along the last dimension. Most functions give lists
 * of places, i64 and from 0, that any number of arrays is gathered by:
 *
 *     wb_array *train[5], *held[5];
 *     wb_kfolds(wb_numobs(x), 5, train, held);
 *     for (int i = 0; i < 5; i++)
 *         fit(wb_gather(x, train[i], -1), wb_gather(y, train[i], -1));
 *
 * Labels are integers or bool, one for each observation (n); they are read. What is random follows
 * from a seed alone, on every machine. Results belong to the scope; on failure all are NULL, unless
 * what says how many there are is refused: then nothing is written.
 * Numbers and order are those of MLUtils.jl, which counts from 1. Errors: weber/error.h. */
#ifndef WEBER_OBSERVATIONS_H
#define WEBER_OBSERVATIONS_H

#include "data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parts ---- */

enum { WB_MOST_PARTS = 16 };

typedef struct wb_split_desc {
    WB_START_MEMBER;
    double at[WB_MOST_PARTS - 1];      /* fractions of the observations, each above 0 */
    int64_t counts[WB_MOST_PARTS - 1]; /* or numbers of observations, each above 0 */
    bool shuffle;                      /* choose the observations of each part at random */
    uint64_t seed;
    /* labels: each label's observations are split alone, and parts have them one label after
     * another, smallest first */
    wb_array *stratified;
} wb_split_desc;

/* Splits count arrays of n observations each alike, into one part more than there are fractions or
 * numbers; the last one has the rest. parts[p * count + i] is part p of arrays[i]:
 *
 *     wb_array *both[] = {x, y}, *parts[2][2];
 *     wb_splitobs_all(2, both, parts[0], .at = {0.8}, .shuffle = true, .seed = 1);
 *
 * Fractions are rounded to whole observations, halves to even: 7 at 0.5 are 4 and 3. Parts are
 * views, unless observations are shuffled or stratified. Fails if neither is given, fractions sum
 * to more than 1, numbers to more than n, or arrays differ in n; parts are NULL then. */
#define wb_splitobs_all(...) WB_SPLITOBS_ALL(__VA_ARGS__, WB_NO_MORE)
#define WB_SPLITOBS_ALL(count, arrays, parts, ...)                                                 \
    WB_QUIET_(wb_splitobs_all_make(count, arrays, parts, WB_GIVEN_(split, __VA_ARGS__)))
WB_API wb_status wb_splitobs_all_make(int count, wb_array *const *arrays, wb_array **parts,
                                      wb_split_desc desc);

/* The arrays with their observations in one random order, into shuffled. */
WB_API wb_status wb_shuffleobs(int count, wb_array *const *arrays, uint64_t seed,
                               wb_array **shuffled);

/* The observations of x for which keep(user, place, observation) is true; observation (..., 1). */
typedef bool wb_keep_fn(void *user, int64_t place, wb_array *observation);
WB_API wb_array *wb_filterobs(wb_keep_fn *keep, void *user, wb_array *x);

/* The observations of several arrays one after another; all other sizes agree. */
#define wb_joinobs(...) wb_concat(-1, __VA_ARGS__)

/* ---- folds: lists of places; train and held have k entries ---- */

/* Blocks of 0 ... n - 1 in order, the first n % k of them one longer: held[i] is block i, train[i]
 * all others. 2 <= k <= n. */
WB_API wb_status wb_kfolds(int64_t n, int k, wb_array **train, wb_array **held);

/* The same inside each label, put together and sorted, so that each fold has the labels in the
 * proportion of the whole. A label with fewer than k observations is an error that names it. */
WB_API wb_status wb_kfolds_stratified(wb_array *labels, int k, wb_array **train, wb_array **held);

/* For series in time: the last k blocks of n / (k + 1) observations are held, one after another;
 * train[i] is what lies before block i, but for the last `gap`, and at most `most` observations of
 * it (0: all). 1 <= k < n. */
WB_API wb_status wb_timeseries_kfolds(int64_t n, int k, int64_t gap, int64_t most, wb_array **train,
                                      wb_array **held);

/* wb_kfolds with n / p folds (floor), so that each holds p or a little more: wb_leavepout_folds(n,
 * p) says how many. 1 <= p <= n / 2; else 0 folds, and an error of wb_leavepout. */
WB_API int wb_leavepout_folds(int64_t n, int64_t p);
WB_API wb_status wb_leavepout(int64_t n, int64_t p, wb_array **train, wb_array **held);

/* ---- labels ---- */

typedef struct wb_group {
    int64_t label, count;
    wb_array *places; /* (count), ascending; NULL from wb_frequencies */
} wb_group;

/* The places of each label, smallest label first: fills at most capacity groups and returns how
 * many labels there are; -1 on failure. wb_frequencies counts only. */
WB_API int64_t wb_groupobs(wb_array *labels, int64_t capacity, wb_group *groups);
WB_API int64_t wb_frequencies(wb_array *labels, int64_t capacity, wb_group *groups);

typedef struct wb_sample_desc {
    WB_START_MEMBER;
    double fraction WB_DEFAULT(1); /* of wb_oversample, above 0 and at most 1 */
    bool shuffle;                  /* choose at random, and mix the result */
    uint64_t seed;
} wb_sample_desc;

/* Places at which every label stands at least round(fraction * count of the most frequent) times:
 * all places in order, then for each label that has too few whole repetitions of its places, and
 * as many of them as are still missing: the first, or with .shuffle a random choice without
 * replacement. */
#define wb_oversample(...)         WB_OVERSAMPLE(__VA_ARGS__, WB_NO_MORE)
#define WB_OVERSAMPLE(labels, ...) WB_MAKE_OF(wb_oversample_make, labels, sample, __VA_ARGS__)
WB_API wb_array *wb_oversample_make(wb_array *labels, wb_sample_desc desc);

/* Places at which every label stands as often as the rarest one: its first, in ascending order, or
 * with .shuffle a random choice, in random order. */
#define wb_undersample(...)         WB_UNDERSAMPLE(__VA_ARGS__, WB_NO_MORE)
#define WB_UNDERSAMPLE(labels, ...) WB_MAKE_OF(wb_undersample_make, labels, sample, __VA_ARGS__)
WB_API wb_array *wb_undersample_make(wb_array *labels, wb_sample_desc desc);

/* wb_onehot for labels of any value: the result (count, ...), bool, is true at the place of each
 * label in values. One that is not among them counts as *other, which must be, or is an error that
 * names it where other is NULL. */
WB_API wb_array *wb_onehot_of(wb_array *labels, int64_t count, const int64_t *values,
                              const int64_t *other);

/* ---- windows, chunks, sequences ---- */

/* x (..., n) to (..., size, windows): window i begins at observation i * stride; windows = floor((n
 * - size + stride) / stride). 1 <= size <= n, stride >= 1. */
WB_API wb_array *wb_slidingwindow(wb_array *x, int64_t size, int64_t stride);

/* x cut along dim into parts of ceil(size / n), the last one smaller, as views: maybe fewer than n
 * parts (9 by 4 is 3, 3, 3). chunks has room for n. Returns how many there are; -1 on failure. */
WB_API int64_t wb_chunk(wb_array *x, int64_t n, int dim, wb_array **chunks);
/* Parts of these sizes, whose sum must be x's along dim. */
WB_API wb_status wb_chunk_sizes(wb_array *x, int count, const int64_t *sizes, int dim,
                                wb_array **chunks);

/* x followed by `value` along dim, up to size; longer ones stay as they are. Fails with
 * WB_ERROR_ARGUMENT where x's type does not hold the value. */
WB_API wb_array *wb_rpad(wb_array *x, int64_t size, double value, int dim);

/* Sequences (..., L_i) of different lengths as one batch (..., L, count), L the longest, padded
 * at their ends. */
WB_API wb_array *wb_batchseq(int count, wb_array *const *sequences, double pad);

/* ---- scaling ---- */

/* (x - min) / (max - min + eps), and (x - mean) / (deviation + eps), along dim. The deviation
 * divides by n, not by n - 1; eps 0: 1e-5. */
WB_API wb_array *wb_rescale(wb_array *x, int dim, double eps);
WB_API wb_array *wb_standardise(wb_array *x, int dim, double eps);

/* ---- images (W, H, C, N), another draw for each: for .map of a loader ---- */

/* The part (width, height) at a random place, after `pad` zeros were put on each side. */
WB_API wb_array *wb_random_crop(wb_array *x, int64_t width, int64_t height, int64_t pad);

/* Mirrored along dimension dim (0: left and right) with probability p. */
WB_API wb_array *wb_random_flip(wb_array *x, int dim, double p);

/* ---- files ---- */

/* A file of CIFAR's binary form (Krizhevsky 2009): records of `labels` label bytes (1 for CIFAR-10;
 * 2 for CIFAR-100, coarse and fine) and 32 x 32 pixels in three planes. images (32, 32, 3, n) u8,
 * first dimension from left to right; labels (n) or (2, n) i32. A file that does not end with a
 * record is an error. */
WB_API wb_status wb_read_cifar(const char *path, int label_bytes, wb_array **images,
                               wb_array **labels);

/* CIFAR-10, from data_batch_1.bin to _5.bin or test_batch.bin in the folder cifar-10-batches-bin of
 * WEBER_DATA, and CIFAR-100, from train.bin or test.bin in cifar-100-binary; labels are the fine
 * ones, unless coarse. */
WB_API wb_status wb_cifar10(wb_split split, wb_array **images, wb_array **labels);
WB_API wb_status wb_cifar100(wb_split split, bool coarse, wb_array **images, wb_array **labels);

#ifdef __cplusplus
}
#endif
#endif
