/* weber/array.h: arrays, their making, views, reading and lifetime.
 *
 * An array is data or a recipe: operations check sizes, types and devices at the call and return at
 * once; the numbers are computed when one is needed (wb_item, wb_read, printing, wb_update, or a
 * kept array leaving a scope).
 *
 *     wb_scope_open();
 *     wb_array *x = wb_vector(1, 2, 3);
 *     printf("%g\n", wb_item(wb_sum(wb_mul(x, x))));          // 14
 *     wb_scope_close();                                       // releases everything made since
 *
 * Sizes are written fastest first, as in Flux: (features, batch), (W, H, C, N). In memory that is
 * C's float x[batch][features] and Julia's column-major order. Dimensions count from 0; a negative
 * one counts from the end. At most 8 dimensions.
 *
 * Ownership: what an operation returns belongs to the innermost open scope of the thread (to the
 * thread itself when none is open); wb_keep takes one out, to be released by wb_free. A loop whose
 * steps make arrays opens a scope for each of them: outside of any, what they make stays until the
 * thread ends (a warning says so, once, when a scope holds 100,000 entries). To use an array after
 * it was released is a mistake. It is an error until 1,024 further arrays have been released
 * (65,536 with WEBER_DEBUG=mem); after that its memory may be another array's. Errors:
 * weber/error.h.
 *
 * Who owns what:
 *
 *     what                                     whose it is           how it is released
 *     an array that an operation returns,      the scope's           wb_scope_close; sooner by
 *       wb_get, a batch's arrays                                       wb_free
 *     the same after wb_keep                   yours                 wb_free, one for each wb_keep
 *     the same after wb_take                   yours, as it is       wb_free or wb_give, one for
 *                                                                      each wb_take
 *     a model, optimiser, loader, gradients,   yours                 wb_free
 *       schedule, file, tree from its maker
 *     a layer given to a container or chain    the container's       with it, also where the call
 *                                                                      fails
 *     the same, to stand in two of them        each has one hold     wb_keep_layer, once more
 *     an array given to a maker (.given_bias)  held by the layer     with it; your hold stays yours
 *     wb_get_layer, wb_chain_at                the model's           not at all; wb_keep_layer and
 *                                                                      wb_free to outlive it
 *     texts of wb_error_message, wb_sizes, ... the library's         not at all
 */
#ifndef WEBER_ARRAY_H
#define WEBER_ARRAY_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array, as above, and where one lives (weber/device.h). Both are known by pointers alone. */
typedef struct wb_array wb_array;
typedef struct wb_device wb_device;

/* A list of sizes or dimensions as two arguments, count and pointer. */
#define WB_INTS(...)                                                                               \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {           \
        __VA_ARGS__                                                                                \
    }
/* A list of arrays as two arguments. */
#define WB_ARRAYS(...)                                                                             \
    (int)(sizeof((wb_array *const[]){__VA_ARGS__}) / sizeof(wb_array *)), (wb_array *const[]) {    \
        __VA_ARGS__                                                                                \
    }

/* ---- scopes and lifetime ---- */

/* Opens a scope on this thread; the next wb_scope_close closes it. Scopes nest. On failure (out of
 * memory) none was opened. A function that you give to Weber, as a loss, a map or a layer's forward
 * function, closes each scope that it opens and no other: else its call fails with
 * WB_ERROR_ARGUMENT. */
WB_API wb_status wb_scope_open(void);

/* Closes the innermost scope: what was kept, or put into a model, is evaluated in one plan and
 * detached from its recipe; everything else made in the scope is released. Returns the status of
 * the evaluation. */
WB_API wb_status wb_scope_close(void);

/* Holds x beyond its scope; returns x. Each wb_keep wants one wb_free. */
WB_API wb_array *wb_keep(wb_array *x);

/* Releases anything of Weber's: an array, model, optimiser, loader, gradients, tree. NULL is fine.
 * An array that was neither kept nor taken leaves its scope early. On a thread that is not the
 * object's, that one releases it, when it next opens a scope or calls wb_free. */
WB_API void wb_free(void *object);

/* ---- references of other languages ----
 *
 * An object of another language lives until its finaliser is called, whatever scopes do meanwhile.
 * Each call of the binding opens a scope, takes the result out of it, and leaves the scope:
 *
 *     wb_scope_open();
 *     wb_array *y = wb_forget_recipe(wb_take(wb_apply(model, x)));
 *     wb_scope_leave();                             // nothing is computed, y is a recipe still
 *     ... wb_free(y);                               // the finaliser
 *
 * wb_keep, for programs in C, is otherwise: a kept array is computed when its scope closes. */

/* Takes an object out of the innermost scope, whose closing does not touch it any more; returns it.
 * Of an array it is one more reference, which is the caller's: it stays pending or computed, as it
 * is, and keeps its recipe. wb_free gives it back, or wb_give. Anything else, such as gradients,
 * becomes the caller's, unless it is already. NULL in, NULL out. */
WB_API void *wb_take(void *object);

/* The opposite: what is the caller's, by wb_take, wb_keep or from its maker, belongs to the
 * innermost scope, which releases it; returns it. A function that Weber calls returns an array of
 * which the caller goes on having a reference as wb_give(wb_take(y)). NULL in, NULL out; fails with
 * WB_ERROR_ARGUMENT on what is not the caller's. */
WB_API void *wb_give(void *object);

/* From when x is computed it is data as if it had been made of memory: it has no recipe, what that
 * held is released, and gradients end at x. Until then it is a recipe, through which they flow.
 * Returns x. Not to be called where a gradient is to flow through x later, as in a loss. */
WB_API wb_array *wb_forget_recipe(wb_array *x);

/* Closes the innermost scope as wb_scope_close does, but computes nothing: what was kept, and what
 * layers have written as their state, is computed in the next plan. */
WB_API wb_status wb_scope_leave(void);

/* Live objects of this process by our own counters, for tests: all zero when everything was
 * released. */
typedef struct wb_live_counts {
    int64_t arrays;  /* nodes of the graph */
    int64_t buffers; /* pieces of memory in use */
    int64_t objects; /* models, optimisers, loaders, gradients, trees */
} wb_live_counts;
WB_API wb_live_counts wb_live(void);

/* ---- making ---- */

/* Arrays of one value. Whole-number types take whole numbers that they hold, else it is
 * WB_ERROR_ARGUMENT; bool is whether the value differs from 0. */
#define wb_zeros(dtype, ...)       wb_full_make(WB_DTYPE(dtype), 0.0, WB_INTS(__VA_ARGS__))
#define wb_ones(dtype, ...)        wb_full_make(WB_DTYPE(dtype), 1.0, WB_INTS(__VA_ARGS__))
#define wb_full(dtype, value, ...) wb_full_make(WB_DTYPE(dtype), value, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_full_make(wb_dtype dtype, double value, int ndim, const int64_t *sizes);

/* A number without dimensions. wb_scalar has the type you say; wb_number is weak: it takes the type
 * of what it meets, by the rule at the top of weber/ops.h. */
#define wb_scalar(dtype, value) wb_scalar(WB_DTYPE(dtype), value)
WB_API wb_array *(wb_scalar)(wb_dtype dtype, double value);
WB_API wb_array *wb_number(double value);

/* A copy of a text, to be saved beside a model (wb_save_named); it belongs to the scope. Fails with
 * WB_ERROR_ARGUMENT if it is not UTF-8. wb_text_of_entry is the text, as long as the entry
 * lives. */
typedef struct wb_text_entry wb_text_entry;
#define wb_text(text) wb_text_make(text)
WB_API wb_text_entry *wb_text_make(const char *text);
WB_API const char *wb_text_of_entry(const wb_text_entry *entry);

/* A number, weak as wb_number, whose value is not part of the plan: a learning rate, a bias
 * correction, a counter. A constant that changes each step would be planned again each time. */
WB_API wb_array *wb_late(double value);

/* 0, 1, 2, ... along dimension dim, the same along all others. Fails with WB_ERROR_ARGUMENT where a
 * whole-number type does not hold the last one. */
#define wb_iota(dtype, dim, ...) wb_iota_make(WB_DTYPE(dtype), dim, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_iota_make(wb_dtype dtype, int dim, int ndim, const int64_t *sizes);

/* A matrix with ones on the main diagonal, zeros elsewhere. */
#define wb_eye(dtype, rows, columns) wb_eye_make(WB_DTYPE(dtype), rows, columns)
WB_API wb_array *wb_eye_make(wb_dtype dtype, int64_t rows, int64_t columns);

/* count numbers from first to last at equal distances, both ends exact; one number is first. Fails
 * with WB_ERROR_DTYPE unless the type is floating. */
#define wb_linspace(dtype, first, last, count) wb_linspace_make(WB_DTYPE(dtype), first, last, count)
WB_API wb_array *wb_linspace_make(wb_dtype dtype, double first, double last, int64_t count);

/* Literals, as one reads them. The type is one of the names WB_F32 to WB_BOOL, not a variable or a
 * macro's argument; numbers for f16 and bf16 are written as floats.
 *
 *     wb_vector(1, 2, 3)                                    f32 (3)
 *     wb_vector_of(WB_I32, 1, 2, 3)                         i32 (3)
 *     wb_matrix(3, {1, 2, 3},                               f32 (2, 3): 2 rows of 3 columns;
 *                  {4, 5, 6})                               the first argument counts the columns
 *     wb_matrix_of(WB_F64, 3, {1, 2, 3}, {4, 5, 6})         f64 (2, 3)
 *
 * A row with fewer numbers is filled with zeros, as C does; one with more does not compile. (An
 * array literal with commas cannot stand in the argument of a macro: wb_from(WB_F32, (float[]){1,
 * 2}, 2) does not compile.) */
#define wb_vector(...) wb_vector_of(WB_F32, __VA_ARGS__)
#define wb_vector_of(dtype, ...)                                                                   \
    wb_vector_make(                                                                                \
        dtype, (const WB_LITERAL_##dtype[]){__VA_ARGS__},                                          \
        (int64_t)(sizeof((const WB_LITERAL_##dtype[]){__VA_ARGS__}) / sizeof(WB_LITERAL_##dtype)))
#define wb_matrix(columns, ...) wb_matrix_of(WB_F32, columns, __VA_ARGS__)
#define wb_matrix_of(dtype, columns, ...)                                                          \
    wb_matrix_make(dtype, (const WB_LITERAL_##dtype[][columns]){__VA_ARGS__}, columns,             \
                   (int64_t)(sizeof((const WB_LITERAL_##dtype[][columns]){__VA_ARGS__}) /          \
                             sizeof(WB_LITERAL_##dtype[columns])))
WB_API wb_array *wb_vector_make(wb_dtype dtype, const void *numbers, int64_t count);
WB_API wb_array *wb_matrix_make(wb_dtype dtype, const void *numbers, int64_t columns, int64_t rows);

/* The C type of the numbers in a literal. */
#define WB_LITERAL_WB_F32  float
#define WB_LITERAL_WB_F64  double
#define WB_LITERAL_WB_F16  float
#define WB_LITERAL_WB_BF16 float
#define WB_LITERAL_WB_I32  int32_t
#define WB_LITERAL_WB_I64  int64_t
#define WB_LITERAL_WB_U8   uint8_t
#define WB_LITERAL_WB_BOOL bool

/* From C memory. wb_from copies; wb_borrow reads the caller's bytes, which must stay valid and
 * unchanged until release is called (or, without one, for as long as the array lives), and are
 * never written; wb_adopt takes the memory over and may write it. release(context, data) runs after
 * the last use, also when the call fails, and may be NULL for wb_borrow. data is dense, first
 * dimension fastest.
 *
 * data points to numbers of the element type: float for f32, int32_t or uint32_t for i32, uint16_t
 * for halves, uint8_t or bool for u8 and bool. Another pointer does not compile where the type is a
 * constant, else it is WB_ERROR_DTYPE (in C11; C99 and C++ cannot ask). Pointers to void, char,
 * structs and arrays are taken as they are. Bytes of bool: wb_from takes any but 0 as true; those
 * that are borrowed or adopted must be 0 or 1. */
typedef void wb_release_fn(void *context, void *data);
#define wb_from(dtype, data, ...) wb_from_make(WB_DTYPE_AT(dtype, data), data, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_from_make(wb_dtype dtype, const void *data, int ndim, const int64_t *sizes);
#define wb_borrow(dtype, data, release, context, ...)                                              \
    wb_borrow_make(WB_DTYPE_AT(dtype, data), data, release, context, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_borrow_make(wb_dtype dtype, const void *data, wb_release_fn *release,
                                void *context, int ndim, const int64_t *sizes);
#define wb_adopt(dtype, data, release, context, ...)                                               \
    wb_adopt_make(WB_DTYPE_AT(dtype, data), data, release, context, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_adopt_make(wb_dtype dtype, void *data, wb_release_fn *release, void *context,
                               int ndim, const int64_t *sizes);

/* Random arrays: Philox4x32-10 (Salmon et al. 2011), keyed at the call, the same bits on every
 * device, for any number of threads and however often they are recomputed. uniform in [0, 1);
 * normal with mean 0 and deviation 1 (Box and Muller); bernoulli is 1 with probability p, else 0,
 * of type bool. Uniform numbers are multiples of 2^-24 (f64: 2^-53); bernoulli draws more than one
 * where p or 1 - p is below 2^-12, so that what is rare comes as often as p says. wb_seed
 * restarts this thread's sequence. */
#define wb_uniform(dtype, ...) wb_uniform_make(WB_DTYPE(dtype), WB_INTS(__VA_ARGS__))
#define wb_normal(dtype, ...)  wb_normal_make(WB_DTYPE(dtype), WB_INTS(__VA_ARGS__))
#define wb_bernoulli(p, ...)   wb_bernoulli_make(p, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_uniform_make(wb_dtype dtype, int ndim, const int64_t *sizes);
WB_API wb_array *wb_normal_make(wb_dtype dtype, int ndim, const int64_t *sizes);
WB_API wb_array *wb_bernoulli_make(double p, int ndim, const int64_t *sizes);
WB_API void wb_seed(uint64_t seed);

/* Normal numbers with this mean and deviation, those outside [low, high] left out: by the inverse
 * of the distribution, to 1e-6, however far out they lie. The deviation of the result is smaller
 * than std. Fails with WB_ERROR_ARGUMENT unless mean and std are finite, std >= 0 and low <=
 * high. */
#define wb_truncated_normal(dtype, mean, std, low, high, ...)                                      \
    wb_truncated_normal_make(WB_DTYPE(dtype), mean, std, low, high, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_truncated_normal_make(wb_dtype dtype, double mean, double std, double low,
                                          double high, int ndim, const int64_t *sizes);

/* For each row of logits along dim a random position (i64), which dim keeps with size 1: i with
 * probability e^logits_i over their sum. Probabilities p are given as wb_log(p); -INFINITY is never
 * drawn, and p may be as small as 1e-12. A NaN among them is an error when the row is computed: an
 * index out of range. */
WB_API wb_array *wb_categorical(wb_array *logits, int dim);

/* 0 ... n - 1 (i64) in random order. */
WB_API wb_array *wb_permutation(int64_t n);

/* This thread's sequence as an object for files (weber/state.h): {"random", wb_random_state()}. It
 * is the thread's, and needs no wb_free. */
typedef struct wb_random wb_random;
WB_API wb_random *wb_random_state(void);

/* ---- asking ---- */

/* An array's type and number of dimensions; WB_F32 and 0 for NULL. */
WB_API wb_dtype wb_dtype_of(const wb_array *x);
WB_API int wb_ndim(const wb_array *x);
WB_API int64_t wb_size(const wb_array *x, int dim); /* 1 beyond the last dimension */
WB_API const int64_t *wb_sizes(const wb_array *x);  /* wb_ndim(x) numbers */
WB_API int64_t wb_count(const wb_array *x);         /* number of elements */

/* ---- views: no data is copied where strides can say it ---- */

/* The same elements in other sizes; one size may be -1 and follows from the rest. */
#define wb_reshape(x, ...) wb_reshape_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_reshape_make(wb_array *x, int ndim, const int64_t *sizes);

/* y's dimension i is x's dimension dims[i]. */
#define wb_permute(x, ...) wb_permute_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_permute_make(wb_array *x, int ndim, const int64_t *dims);

/* Exchanges the first two dimensions; a vector (n) becomes (1, n). */
WB_API wb_array *wb_transpose(wb_array *x);

/* Elements start, start + step, ... of dimension dim, before stop (not included). A negative start
 * counts from the end, and so does a negative stop: wb_slice(x, 0, -3, WB_END, 1) are the last
 * three, wb_slice(x, 0, 0, -1, 1) all but the last. step may be negative: then start >= stop, and a
 * stop of -1 means that the first element is included: wb_slice(x, 0, -1, -1, -1) is x in reverse.
 * WB_END as stop goes on to the end, in whichever direction.
 * Fails with WB_ERROR_ARGUMENT where start or stop lies outside: nothing is cut off to fit. */
#define WB_END INT64_MAX
WB_API wb_array *wb_slice(wb_array *x, int dim, int64_t start, int64_t stop, int64_t step);

/* x with these elements replaced by y, as a value: x itself stays. y is broadcast to the sizes of
 * the slice and converted to x's type. Fails with WB_ERROR_SHAPE where y does not fit, with
 * WB_ERROR_ARGUMENT where it is a C number that x's type does not hold. */
WB_API wb_array *wb_slice_set(wb_array *x, wb_array *y, int dim, int64_t start, int64_t stop,
                              int64_t step);

/* Reads dimension dim backwards. */
WB_API wb_array *wb_flip(wb_array *x, int dim);

/* Repeats sizes of 1 (and missing trailing dimensions) up to the given sizes. */
#define wb_expand(x, ...) wb_expand_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_expand_make(wb_array *x, int ndim, const int64_t *sizes);

/* Inserts a dimension of size 1 before dim; removes one of size 1. */
WB_API wb_array *wb_unsqueeze(wb_array *x, int dim);
WB_API wb_array *wb_squeeze(wb_array *x, int dim);

/* All dimensions but the last in one: (5, 5, 3, 10) becomes (75, 10). */
WB_API wb_array *wb_flatten_batch(wb_array *x);

/* ---- putting together ---- */

/* Joins along dim: wb_concat(0, a, b). All other sizes agree. */
#define wb_concat(dim, ...) wb_concat_make(dim, WB_ARRAYS(__VA_ARGS__))
WB_API wb_array *wb_concat_make(int dim, int count, wb_array *const *arrays);

/* Joins along a new dimension dim. */
#define wb_stack(dim, ...) wb_stack_make(dim, WB_ARRAYS(__VA_ARGS__))
WB_API wb_array *wb_stack_make(int dim, int count, wb_array *const *arrays);

/* The opposite: parts[i] is x at position i of dim, without that dimension; views. count must be
 * x's size there, else it is WB_ERROR_SHAPE; parts has room for it, and holds NULL on failure. */
WB_API wb_status wb_unstack(wb_array *x, int dim, int count, wb_array **parts);

/* x moved along dim by shift places, round its end: element i comes to place i + shift. */
WB_API wb_array *wb_roll(wb_array *x, int64_t shift, int dim);

/* Each element of dim so many times in a row: (1, 2) twice is (1, 1, 2, 2). NumPy's repeat. */
WB_API wb_array *wb_repeat(wb_array *x, int64_t times, int dim);

/* x so many times along dimension 0, 1, ...: wb_tile(x, 2, 3). (1, 2) twice is (1, 2, 1, 2).
 * Dimensions that x lacks have size 1. NumPy's tile, and PyTorch's repeat. */
#define wb_tile(x, ...) wb_tile_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_tile_make(wb_array *x, int ndim, const int64_t *times);

/* lo elements of value before, and hi after, along dim. Fails with WB_ERROR_ARGUMENT where x's type
 * does not hold the value. */
WB_API wb_array *wb_pad(wb_array *x, int dim, int64_t lo, int64_t hi, double value);

/* lo elements before and hi after, along dim, from x itself; of (1, 2, 3) by 2 and 2:
 *
 *   wb_pad_edge       1 1 | 1 2 3 | 3 3     NumPy's "edge", PyTorch's replicate, NNlib's pad_repeat
 *   wb_pad_reflect    3 2 | 1 2 3 | 2 1     "reflect" of all three
 *   wb_pad_symmetric  2 1 | 1 2 3 | 3 2     NumPy's and NNlib's "symmetric"
 *   wb_pad_wrap       2 3 | 1 2 3 | 1 2     NumPy's "wrap", PyTorch's and NNlib's circular
 *
 * Paddings may be longer than x, and go on in the same way, as in NumPy; a single element is
 * repeated by each of them. Fails with WB_ERROR_ARGUMENT on negative paddings, with WB_ERROR_SHAPE
 * where dim has size 0 and there is something to fill. */
WB_API wb_array *wb_pad_edge(wb_array *x, int dim, int64_t lo, int64_t hi);
WB_API wb_array *wb_pad_reflect(wb_array *x, int dim, int64_t lo, int64_t hi);
WB_API wb_array *wb_pad_symmetric(wb_array *x, int dim, int64_t lo, int64_t hi);
WB_API wb_array *wb_pad_wrap(wb_array *x, int dim, int64_t lo, int64_t hi);

/* The same numbers in another type: floats to integers cut towards zero, anything to bool is x !=
 * 0. */
#define wb_cast(x, dtype) wb_cast(x, WB_DTYPE(dtype))
WB_API wb_array *(wb_cast)(wb_array *x, wb_dtype dtype);

/* ---- values ---- */

/* Computes the arrays in one plan. Each reading function below does so for its own. */
WB_API wb_status wb_eval_make(int count, wb_array *const *arrays);
#define wb_eval(...) wb_eval_make(WB_ARRAYS(__VA_ARGS__))

/* The value of an array of one element; NaN on failure. */
WB_API double wb_item(wb_array *x);

/* Copies x to the host, dense and first dimension fastest, in x's own type; size_bytes must be
 * wb_count(x) * wb_dtype_size(wb_dtype_of(x)). out points to numbers of x's type, as for wb_from;
 * else it is WB_ERROR_DTYPE. */
WB_API wb_status wb_read(wb_array *x, void *out, size_t size_bytes);
#define wb_read(x, out, size_bytes) wb_read_make(x, out, size_bytes, WB_NUMBERS_IN(out))
WB_API wb_status wb_read_make(wb_array *x, void *out, size_t size_bytes, int numbers);

/* The same, each element converted to double or float; count must be wb_count(x). */
WB_API wb_status wb_read_f64(wb_array *x, double *out, int64_t count);
WB_API wb_status wb_read_f32(wb_array *x, float *out, int64_t count);

/* Borrows x's numbers: dense, first dimension fastest, valid until wb_read_end. NULL on failure;
 * then wb_read_end does nothing. */
WB_API const void *wb_read_begin(wb_array *x);
WB_API void wb_read_end(wb_array *x);

/* One element: wb_at(x, 2, 0); negative numbers count from the end. NaN on failure. */
#define wb_at(x, ...) wb_at_make(x, WB_INTS(__VA_ARGS__))
WB_API double wb_at_make(wb_array *x, int ndim, const int64_t *index);

/* True if sizes agree and |a - b| <= absolute + relative * max(|a|, |b|) everywhere (NaN equals
 * NaN, equal infinities are equal). Where not, and if where is not NULL, says the first place
 * there: "(2, 0): 1.5 and 1.25". */
WB_API bool wb_approx(wb_array *a, wb_array *b, double relative, double absolute, char *where,
                      size_t where_bytes);

/* A dense copy with memory of its own, computed now. Gradients go through it to x; through
 * wb_stop_gradient they do not. */
WB_API wb_array *wb_copy(wb_array *x);

/* The same value, through which no gradient flows. */
WB_API wb_array *wb_stop_gradient(wb_array *x);

#ifdef __cplusplus
}
#endif
#endif
