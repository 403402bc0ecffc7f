/* weber/observations.h: choosing, splitting and joining observations before a loader reads them.
 *
 * As in weber/data.h, an observation is a position (place) along the last dimension. Most functions
 * return arrays of places, i64 and counted from 0, for wb_gather, so that one list can serve
 * several arrays:
 *
 *     wb_array *train[5], *held[5];
 *     wb_kfolds(wb_numobs(x), 5, train, held);
 *     for (int i = 0; i < 5; i++)
 *         fit(wb_gather(x, train[i], -1), wb_gather(y, train[i], -1));
 *
 * Labels are integers or bool, one for each observation (n); their values are read at the call.
 * Random choices depend only on the seed, and are the same on every machine. Results belong to the
 * scope. On failure all are NULL, except that nothing is written if the number of results is
 * invalid, such as k = 0. Results are those of MLUtils.jl, except that it counts places from 1.
 * Errors: weber/error.h. */
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
    double at[WB_MOST_PARTS - 1];      /* part p's fraction of the observations, above 0 */
    int64_t counts[WB_MOST_PARTS - 1]; /* or its number of observations, above 0 */
    bool shuffle;                      /* choose the observations of each part at random */
    uint64_t seed;
    /* labels: the observations of each label are split separately; a part has those of the
     * smallest label first, then those of the next one */
    wb_array *stratified;
} wb_split_desc;

/* Splits `count` arrays of n observations in the same way, into one part more than there are
 * fractions or numbers in the desc; the last part has the rest. parts[p * count + i] is part p of
 * arrays[i]:
 *
 *     wb_array *both[] = {x, y}, *parts[2][2];
 *     wb_splitobs_all(2, both, parts[0], .at = {0.8}, .shuffle = true, .seed = 1);
 *
 * Each part is rounded to whole observations, ties to even: 7 observations at 0.5 become 4 and 3.
 * Parts are views, unless observations are shuffled or stratified. Fails if neither fractions nor
 * numbers are given, fractions sum to more than 1, numbers to more than n, or arrays differ in n;
 * parts are NULL then. */
#define wb_splitobs_all(...) WB_SPLITOBS_ALL(__VA_ARGS__, WB_NO_MORE)
#define WB_SPLITOBS_ALL(count, arrays, parts, ...)                                                 \
    WB_QUIET_(wb_splitobs_all_make(count, arrays, parts, WB_GIVEN_(split, __VA_ARGS__)))
WB_API wb_status wb_splitobs_all_make(int count, wb_array *const *arrays, wb_array **parts,
                                      wb_split_desc desc);

/* shuffled[i] is arrays[i] with its observations in a random order, the same for all arrays. */
WB_API wb_status wb_shuffleobs(int count, wb_array *const *arrays, uint64_t seed,
                               wb_array **shuffled);

/* The observations of x for which keep(user, place, observation) is true; it gets each as (...,
 * 1). */
typedef bool wb_keep_fn(void *user, int64_t place, wb_array *observation);
WB_API wb_array *wb_filterobs(wb_keep_fn *keep, void *user, wb_array *x);

/* Joins arrays along their last dimension, one after another; all other sizes must agree. */
#define wb_joinobs(...) wb_concat(-1, __VA_ARGS__)

/* ---- folds: lists of places; train and held have k entries ---- */

/* Cuts the places 0 ... n - 1 into k consecutive blocks, the first n % k of which are longer by
 * one: held[i] is block i, train[i] all others. 2 <= k <= n. */
WB_API wb_status wb_kfolds(int64_t n, int k, wb_array **train, wb_array **held);

/* The same for each label by itself; the places of all labels are then joined and sorted, so that
 * each fold has the labels in the same proportions as the data. A label with fewer than k
 * observations is an error that names it. */
WB_API wb_status wb_kfolds_stratified(wb_array *labels, int k, wb_array **train, wb_array **held);

/* For time series: held[i] is block i of the last k blocks of n / (k + 1) observations; train[i]
 * has the observations before that block without the last `gap` of them, and of these at most the
 * last `most` (0: all). 1 <= k < n. */
WB_API wb_status wb_timeseries_kfolds(int64_t n, int k, int64_t gap, int64_t most, wb_array **train,
                                      wb_array **held);

/* wb_kfolds with k = floor(n / p), so that held[i] has p observations or a few more.
 * wb_leavepout_folds(n, p) returns k. 1 <= p <= n / 2; otherwise k is 0, and wb_leavepout fails. */
WB_API int wb_leavepout_folds(int64_t n, int64_t p);
WB_API wb_status wb_leavepout(int64_t n, int64_t p, wb_array **train, wb_array **held);

/* ---- labels ---- */

typedef struct wb_group {
    int64_t label, count;
    wb_array *places; /* (count), ascending; NULL from wb_frequencies */
} wb_group;

/* The places of each label, smallest label first: fills at most capacity groups and returns how
 * many labels there are; -1 on failure. wb_frequencies only counts the places. */
WB_API int64_t wb_groupobs(wb_array *labels, int64_t capacity, wb_group *groups);
WB_API int64_t wb_frequencies(wb_array *labels, int64_t capacity, wb_group *groups);

typedef struct wb_sample_desc {
    WB_START_MEMBER;
    double fraction WB_DEFAULT(1); /* wb_oversample only; above 0, at most 1 */
    bool shuffle;                  /* choose at random, and shuffle the result */
    uint64_t seed;
} wb_sample_desc;

/* Places such that every label occurs at least round(fraction * count of the most frequent label)
 * times: all places in order; then, for each label with too few places, repetitions of all of its
 * places, followed by some of them until the number is reached: the first ones, or with .shuffle a
 * random choice without replacement. */
#define wb_oversample(...)         WB_OVERSAMPLE(__VA_ARGS__, WB_NO_MORE)
#define WB_OVERSAMPLE(labels, ...) WB_MAKE_OF(wb_oversample_make, labels, sample, __VA_ARGS__)
WB_API wb_array *wb_oversample_make(wb_array *labels, wb_sample_desc desc);

/* Places such that every label occurs as often as the rarest one: the first places of each label,
 * in ascending order, or with .shuffle a random choice, in random order. */
#define wb_undersample(...)         WB_UNDERSAMPLE(__VA_ARGS__, WB_NO_MORE)
#define WB_UNDERSAMPLE(labels, ...) WB_MAKE_OF(wb_undersample_make, labels, sample, __VA_ARGS__)
WB_API wb_array *wb_undersample_make(wb_array *labels, wb_sample_desc desc);

/* wb_onehot for labels of any value: the result (count, ...), bool, is true in row i where the
 * label is values[i]. A label that is not in values counts as *other, which must be in values; if
 * other is NULL, it is an error that names the label. */
WB_API wb_array *wb_onehot_of(wb_array *labels, int64_t count, const int64_t *values,
                              const int64_t *other);

/* ---- windows, chunks, sequences ---- */

/* x (..., n) to (..., size, windows): window i begins at observation i * stride; windows = floor((n
 * - size + stride) / stride). 1 <= size <= n, stride >= 1. */
WB_API wb_array *wb_slidingwindow(wb_array *x, int64_t size, int64_t stride);

/* Cuts x along dim into views of size ceil(size / n); the last one may be smaller. There may be
 * fewer than n (size 9, n 4: 3, 3, 3). chunks has room for n. Returns how many there are; -1 on
 * failure. */
WB_API int64_t wb_chunk(wb_array *x, int64_t n, int dim, wb_array **chunks);
/* Cuts x along dim into views of the given sizes, which must add up to x's size along dim. */
WB_API wb_status wb_chunk_sizes(wb_array *x, int count, const int64_t *sizes, int dim,
                                wb_array **chunks);

/* Pads x along dim, at its end, with value up to the given size; an x of this size or more is
 * unchanged. Fails with WB_ERROR_ARGUMENT where value is outside the range of x's type. */
WB_API wb_array *wb_rpad(wb_array *x, int64_t size, double value, int dim);

/* Sequences (..., L_i) of different lengths as one batch (..., L, count), where L is the largest
 * L_i; each sequence is padded at its end. */
WB_API wb_array *wb_batchseq(int count, wb_array *const *sequences, double pad);

/* ---- scaling ---- */

/* (x - min) / (max - min + eps), and (x - mean) / (std + eps), along dim. The standard
 * deviation std divides by n, not by n - 1. An eps of 0 means 1e-5. */
WB_API wb_array *wb_rescale(wb_array *x, int dim, double eps);
WB_API wb_array *wb_standardise(wb_array *x, int dim, double eps);

/* ---- random changes of images (W, H, C, N), drawn for each image: for .map of a loader ---- */

/* A part of size (width, height) at a random position, after padding each side with `pad` zeros. */
WB_API wb_array *wb_random_crop(wb_array *x, int64_t width, int64_t height, int64_t pad);

/* Mirrored along dimension dim (0: left and right) with probability p. */
WB_API wb_array *wb_random_flip(wb_array *x, int dim, double p);

/* ---- files ---- */

/* A file in CIFAR's binary format (Krizhevsky 2009): records of label_bytes labels (1 for CIFAR-10;
 * 2 for CIFAR-100, coarse and fine) and 32 x 32 pixels in three planes. images (32, 32, 3, n) u8,
 * first dimension from left to right; labels (n) or (2, n) i32. A file whose last record is
 * incomplete is an error. */
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
