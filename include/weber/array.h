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
 * thread itself when none is open); wb_keep makes an array outlive its scope, until wb_free. A loop
 * that makes arrays should open a scope for each step: arrays made outside of any scope stay until
 * the thread ends (a warning says so, once, when a scope holds 100,000 entries). Using an array
 * after it was released is a mistake. It is reported as an error until 1,024 further arrays have
 * been released (65,536 with WEBER_DEBUG=mem); after that its memory may belong to another array.
 * Errors: weber/error.h.
 *
 * Who owns what:
 *
 *     what                                     whose it is           how it is released
 *     an array that an operation returns,      the scope's           wb_scope_close; sooner by
 *       wb_get, a batch's arrays                                       wb_free
 *     the same after wb_keep                   yours                 wb_free, one for each wb_keep
 *     the same after wb_take                   yours                 wb_free or wb_give, one for
 *                                                                      each wb_take
 *     a model, optimiser, loader, gradients,   yours                 wb_free
 *       schedule, file, tree from its maker
 *     a layer given to a container or chain    the container's       with the container, or at once
 *                                                                      if the call fails
 *     the same layer in two containers         both containers'      with the last of them; call
 *                                                                      wb_keep_layer once before
 *     an array given to a maker (.given_bias)  the layer's and       with the layer; your own
 *                                                yours                 reference stays yours
 *     wb_get_layer, wb_chain_at                the model's           not by you; wb_keep_layer and
 *                                                                      wb_free to outlive the model
 *     texts of wb_error_message, wb_sizes, ... the library's         not by you
 */
#ifndef WEBER_ARRAY_H
#define WEBER_ARRAY_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array (see above), and a device that arrays are on (weber/device.h). Both are opaque. */
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
 * memory) no scope was opened. A function that you give to Weber, such as a loss, a map or a
 * layer's forward function, must close each scope that it opens, and no other one; otherwise its
 * call fails with WB_ERROR_ARGUMENT. */
WB_API wb_status wb_scope_open(void);

/* Closes the innermost scope: arrays that were kept, or put into a model, are evaluated in one plan
 * and lose their recipes; everything else made in the scope is released. Returns the status of the
 * evaluation. */
WB_API wb_status wb_scope_close(void);

/* Makes x outlive its scope; returns x. Each wb_keep needs one wb_free. */
WB_API wb_array *wb_keep(wb_array *x);

/* Releases anything of Weber's: an array, model, optimiser, loader, gradients, tree. NULL is fine.
 * An array that was neither kept nor taken is released before its scope closes. Called on another
 * thread than the object's own, it leaves the release to the object's thread, which does it when it
 * next opens a scope or calls wb_free. */
WB_API void wb_free(void *object);

/* ---- references of other languages ----
 *
 * An object of another language lives until its finaliser is called, whatever scopes do meanwhile.
 * Each call of the binding opens a scope, takes the result out of it, and leaves the scope:
 *
 *     wb_scope_open();
 *     wb_array *y = wb_forget_recipe(wb_take(wb_apply(model, x)));
 *     wb_scope_leave();                             // nothing is computed, y is still a recipe
 *     ... wb_free(y);                               // the finaliser
 *
 * wb_keep, for programs in C, differs: a kept array is computed when its scope closes. */

/* Makes an object outlive the innermost scope, whose closing then neither computes nor releases it;
 * returns it. For an array the caller gets one more reference, which wb_free or wb_give takes back;
 * the array stays pending or computed, as it is, and keeps its recipe. Any other object, such as
 * gradients, becomes the caller's, unless it is already. NULL in, NULL out. */
WB_API void *wb_take(void *object);

/* The opposite of wb_take: an object that is the caller's, by wb_take, by wb_keep or from its
 * maker, becomes the innermost scope's, which will release it; returns it. A function that Weber
 * calls, and that returns an array y of which your program keeps a reference, returns
 * wb_give(wb_take(y)). NULL in, NULL out. Fails with WB_ERROR_ARGUMENT on an object that is not the
 * caller's. */
WB_API void *wb_give(void *object);

/* Once x is computed, it becomes plain data, as an array from C memory is: its recipe is dropped,
 * the arrays that only the recipe needed are released, and gradients end at x. Until then x is a
 * recipe, through which gradients flow. Returns x. Do not call it where a gradient has to flow
 * through x later, as in a loss. */
WB_API wb_array *wb_forget_recipe(wb_array *x);

/* Closes the innermost scope as wb_scope_close does, but computes nothing: arrays that were kept,
 * and states that layers have written, are computed in the next plan. */
WB_API wb_status wb_scope_leave(void);

/* How many objects of this process are alive, for tests: all zero when everything was released. */
typedef struct wb_live_counts {
    int64_t arrays;  /* nodes of the graph */
    int64_t buffers; /* pieces of memory in use */
    int64_t objects; /* models, optimisers, loaders, gradients, trees */
} wb_live_counts;
WB_API wb_live_counts wb_live(void);

/* ---- making ---- */

/* Arrays of one value. For an integer type the value must be an integer within the type's range,
 * else WB_ERROR_ARGUMENT; for bool, any value but 0 is true. */
#define wb_zeros(dtype, ...)       wb_full_make(WB_DTYPE(dtype), 0.0, WB_INTS(__VA_ARGS__))
#define wb_ones(dtype, ...)        wb_full_make(WB_DTYPE(dtype), 1.0, WB_INTS(__VA_ARGS__))
#define wb_full(dtype, value, ...) wb_full_make(WB_DTYPE(dtype), value, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_full_make(wb_dtype dtype, double value, int ndim, const int64_t *sizes);

/* A number without dimensions. wb_scalar has the given type; wb_number is weak: it takes the type
 * of the array that it is combined with, by the rule at the top of weber/ops.h. wb_whole_number is
 * wb_number for integers from -2^53 to 2^53, and an i64 for others, which a double may round. */
#define wb_scalar(dtype, value) wb_scalar(WB_DTYPE(dtype), value)
WB_API wb_array *(wb_scalar)(wb_dtype dtype, double value);
WB_API wb_array *wb_number(double value);
WB_API wb_array *wb_whole_number(int64_t value);

/* A copy of a text, to be saved in one file with a model (wb_save_named); it belongs to the scope.
 * Fails with WB_ERROR_ARGUMENT if the text is not UTF-8. wb_text_of_entry returns the text, which
 * is valid as long as the entry. */
typedef struct wb_text_entry wb_text_entry;
#define wb_text(text) wb_text_make(text)
WB_API wb_text_entry *wb_text_make(const char *text);
WB_API const char *wb_text_of_entry(const wb_text_entry *entry);

/* A weak number like wb_number, but its value is not part of the plan's key: for a learning rate, a
 * bias correction, a counter. A wb_number that changes in each step needs a new plan each time. */
WB_API wb_array *wb_late(double value);

/* 0, 1, 2, ... along dimension dim, constant along all others. Fails with WB_ERROR_ARGUMENT if the
 * last number is outside an integer type's range. */
#define wb_iota(dtype, dim, ...) wb_iota_make(WB_DTYPE(dtype), dim, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_iota_make(wb_dtype dtype, int dim, int ndim, const int64_t *sizes);

/* A matrix with ones on the main diagonal, zeros elsewhere. */
#define wb_eye(dtype, rows, columns) wb_eye_make(WB_DTYPE(dtype), rows, columns)
WB_API wb_array *wb_eye_make(wb_dtype dtype, int64_t rows, int64_t columns);

/* count numbers from first to last at equal distances, both ends exact; with count 1, only first.
 * Fails with WB_ERROR_DTYPE unless the type is floating. */
#define wb_linspace(dtype, first, last, count) wb_linspace_make(WB_DTYPE(dtype), first, last, count)
WB_API wb_array *wb_linspace_make(wb_dtype dtype, double first, double last, int64_t count);

/* Arrays from literals. The type is one of the names WB_F32 to WB_BOOL, not a variable or a macro's
 * argument; numbers for f16 and bf16 are written as floats.
 *
 *     wb_vector(1, 2, 3)                                    f32 (3)
 *     wb_vector_of(WB_I32, 1, 2, 3)                         i32 (3)
 *     wb_matrix(3, {1, 2, 3},                               f32 (2, 3): 2 rows of 3 columns;
 *                  {4, 5, 6})                               the first argument counts the columns
 *     wb_matrix_of(WB_F64, 3, {1, 2, 3}, {4, 5, 6})         f64 (2, 3)
 *
 * A row with fewer numbers is filled with zeros, as C does; one with more does not compile. (An
 * array literal with commas cannot be an argument of a macro: wb_from(WB_F32, (float[]){1, 2}, 2)
 * does not compile.) */
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
 * never written; wb_adopt takes the memory over and may write to it. release(context, data) runs
 * after the last use, also when the call fails; it may be NULL for wb_borrow. data is dense, first
 * dimension fastest.
 *
 * data points to numbers of the element type: float for f32, int32_t or uint32_t for i32, uint16_t
 * for f16 and bf16, uint8_t or bool for u8 and bool. In C11 a pointer to other numbers does not
 * compile where dtype is a constant, and is WB_ERROR_DTYPE otherwise; C99 and C++ do not check it.
 * Pointers to void, char, structs and arrays are never checked. Bytes of bool: wb_from takes any
 * but 0 as true; wb_borrow and wb_adopt need 0 or 1. */
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

/* Random arrays from Philox4x32-10 (Salmon et al. 2011). The key is drawn at the call, so the bits
 * are the same on every device, for any number of threads and however often the array is
 * recomputed. uniform in [0, 1); normal with mean 0 and standard deviation 1 (Box and Muller);
 * bernoulli, of type bool, is true with probability p. Uniform numbers are multiples of 2^-24 (f64:
 * 2^-53); where p or 1 - p is below 2^-12, bernoulli uses more than one of them for each element,
 * so that rare values have the right probability. wb_seed restarts this thread's sequence. */
#define wb_uniform(dtype, ...) wb_uniform_make(WB_DTYPE(dtype), WB_INTS(__VA_ARGS__))
#define wb_normal(dtype, ...)  wb_normal_make(WB_DTYPE(dtype), WB_INTS(__VA_ARGS__))
#define wb_bernoulli(p, ...)   wb_bernoulli_make(p, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_uniform_make(wb_dtype dtype, int ndim, const int64_t *sizes);
WB_API wb_array *wb_normal_make(wb_dtype dtype, int ndim, const int64_t *sizes);
WB_API wb_array *wb_bernoulli_make(double p, int ndim, const int64_t *sizes);
WB_API void wb_seed(uint64_t seed);

/* A normal distribution with mean mean and standard deviation std, restricted to [low, high].
 * Sampled by the inverse of its distribution function, accurate to 1e-6 even where [low, high] is
 * far from the mean. The standard deviation of the result is smaller than std. Fails with
 * WB_ERROR_ARGUMENT unless mean and std are finite, std >= 0 and low <= high. */
#define wb_truncated_normal(dtype, mean, std, low, high, ...)                                      \
    wb_truncated_normal_make(WB_DTYPE(dtype), mean, std, low, high, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_truncated_normal_make(wb_dtype dtype, double mean, double std, double low,
                                          double high, int ndim, const int64_t *sizes);

/* Draws a position (i64) along dim for each row of logits: position i with probability e^logits_i /
 * sum over j of e^logits_j. dim keeps size 1. Pass probabilities p as wb_log(p); a logit of
 * -INFINITY is never drawn, and p may be as small as 1e-12. A NaN in a row is an error when the row
 * is computed: an index out of range. */
WB_API wb_array *wb_categorical(wb_array *logits, int dim);

/* 0 ... n - 1 (i64) in random order. */
WB_API wb_array *wb_permutation(int64_t n);

/* This thread's random sequence as an object for files (weber/state.h): {"random",
 * wb_random_state()}. The object belongs to the thread; it needs no wb_free. */
typedef struct wb_random wb_random;
WB_API wb_random *wb_random_state(void);

/* ---- asking ---- */

/* An array's type and number of dimensions; WB_F32 and 0 for NULL. */
WB_API wb_dtype wb_dtype_of(const wb_array *x);
WB_API int wb_ndim(const wb_array *x);
WB_API int64_t wb_size(const wb_array *x, int dim); /* 1 beyond the last dimension */
WB_API const int64_t *wb_sizes(const wb_array *x);  /* wb_ndim(x) numbers */
WB_API int64_t wb_count(const wb_array *x);         /* number of elements */

/* Whether messages and prints write an array's sizes slowest first, (batch, features), as NumPy
 * does, instead of fastest first: for programs in languages that do so. It holds for the whole
 * process. Returns what held before. */
WB_API bool wb_sizes_slowest_first(bool slowest_first);

/* ---- views: no data is copied if strides can express the result ---- */

/* The same elements in other sizes; one size may be -1: it is computed from the others. */
#define wb_reshape(x, ...) wb_reshape_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_reshape_make(wb_array *x, int ndim, const int64_t *sizes);

/* y's dimension i is x's dimension dims[i]. */
#define wb_permute(x, ...) wb_permute_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_permute_make(wb_array *x, int ndim, const int64_t *dims);

/* Exchanges the first two dimensions; a vector (n) becomes (1, n). */
WB_API wb_array *wb_transpose(wb_array *x);

/* Elements start, start + step, ... of dimension dim, before stop (not included). A negative start
 * counts from the end, and so does a negative stop: wb_slice(x, 0, -3, WB_END, 1) gives the last
 * three, wb_slice(x, 0, 0, -1, 1) all but the last. step may be negative: then start >= stop, and a
 * stop of -1 means that the first element is included: wb_slice(x, 0, -1, -1, -1) is x in reverse.
 * With stop WB_END the slice ends at the last element, or at the first one for a negative step.
 * Fails with WB_ERROR_ARGUMENT where start or stop is out of range: unlike in Python, they are not
 * clipped. */
#define WB_END INT64_MAX
WB_API wb_array *wb_slice(wb_array *x, int dim, int64_t start, int64_t stop, int64_t step);

/* A new array: x with the elements of this slice replaced by y. x itself does not change. y is
 * broadcast to the sizes of the slice and converted to x's type. Fails with WB_ERROR_SHAPE where y
 * does not broadcast, with WB_ERROR_ARGUMENT where y is a C number outside the range of x's
 * type. */
WB_API wb_array *wb_slice_set(wb_array *x, wb_array *y, int dim, int64_t start, int64_t stop,
                              int64_t step);

/* Reverses x along dimension dim. */
WB_API wb_array *wb_flip(wb_array *x, int dim);

/* Broadcasts x to the given sizes: dimensions of size 1, and missing trailing ones, are
 * repeated. */
#define wb_expand(x, ...) wb_expand_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_expand_make(wb_array *x, int ndim, const int64_t *sizes);

/* wb_unsqueeze inserts a dimension of size 1 before dim; wb_squeeze removes dimension dim, of size
 * 1. */
WB_API wb_array *wb_unsqueeze(wb_array *x, int dim);
WB_API wb_array *wb_squeeze(wb_array *x, int dim);

/* Merges all dimensions but the last one: (5, 5, 3, 10) becomes (75, 10). */
WB_API wb_array *wb_flatten_batch(wb_array *x);

/* ---- putting together ---- */

/* Joins along dim: wb_concat(0, a, b). All other sizes agree. */
#define wb_concat(dim, ...) wb_concat_make(dim, WB_ARRAYS(__VA_ARGS__))
WB_API wb_array *wb_concat_make(int dim, int count, wb_array *const *arrays);

/* Joins along a new dimension dim. */
#define wb_stack(dim, ...) wb_stack_make(dim, WB_ARRAYS(__VA_ARGS__))
WB_API wb_array *wb_stack_make(int dim, int count, wb_array *const *arrays);

/* The opposite of wb_stack: parts[i] is a view of x at position i of dim, without that dimension.
 * count must be x's size along dim, else WB_ERROR_SHAPE. parts has room for count arrays, which are
 * NULL on failure. */
WB_API wb_status wb_unstack(wb_array *x, int dim, int count, wb_array **parts);

/* x shifted along dim, cyclically: element i moves to position i + shift, modulo the size. */
WB_API wb_array *wb_roll(wb_array *x, int64_t shift, int dim);

/* Repeats each element along dim `times` times: (1, 2) with times 2 gives (1, 1, 2, 2). NumPy's
 * repeat, PyTorch's repeat_interleave. */
WB_API wb_array *wb_repeat(wb_array *x, int64_t times, int dim);

/* Repeats x as a whole, times[d] times along dimension d: wb_tile(x, 2, 3). (1, 2) with times 2
 * gives (1, 2, 1, 2). Dimensions that x lacks have size 1. NumPy's tile, and PyTorch's repeat. */
#define wb_tile(x, ...) wb_tile_make(x, WB_INTS(__VA_ARGS__))
WB_API wb_array *wb_tile_make(wb_array *x, int ndim, const int64_t *times);

/* Pads x along dim with value: lo elements before x and hi after it. Fails with WB_ERROR_ARGUMENT
 * where value is outside the range of x's type. */
WB_API wb_array *wb_pad(wb_array *x, int dim, int64_t lo, int64_t hi, double value);

/* Pads x along dim with elements of x itself, lo before and hi after it; (1, 2, 3) with lo 2 and hi
 * 2:
 *
 *   wb_pad_edge       1 1 | 1 2 3 | 3 3     NumPy's "edge", PyTorch's replicate, NNlib's pad_repeat
 *   wb_pad_reflect    3 2 | 1 2 3 | 2 1     "reflect" in all three
 *   wb_pad_symmetric  2 1 | 1 2 3 | 3 2     NumPy's and NNlib's "symmetric"
 *   wb_pad_wrap       2 3 | 1 2 3 | 1 2     NumPy's "wrap", PyTorch's and NNlib's circular
 *
 * lo and hi may be larger than x's size; the pattern then continues, as in NumPy. If x has one
 * element, all four repeat it. Fails with WB_ERROR_ARGUMENT on negative lo or hi, with
 * WB_ERROR_SHAPE where dim has size 0 and lo or hi is not 0. */
WB_API wb_array *wb_pad_edge(wb_array *x, int dim, int64_t lo, int64_t hi);
WB_API wb_array *wb_pad_reflect(wb_array *x, int dim, int64_t lo, int64_t hi);
WB_API wb_array *wb_pad_symmetric(wb_array *x, int dim, int64_t lo, int64_t hi);
WB_API wb_array *wb_pad_wrap(wb_array *x, int dim, int64_t lo, int64_t hi);

/* The same numbers in another type: floats become integers by truncation towards zero; bool is x !=
 * 0. */
#define wb_cast(x, dtype) wb_cast(x, WB_DTYPE(dtype))
WB_API wb_array *(wb_cast)(wb_array *x, wb_dtype dtype);

/* ---- values ---- */

/* Computes the arrays in one plan. The functions below compute the array that they read. */
WB_API wb_status wb_eval_make(int count, wb_array *const *arrays);
#define wb_eval(...) wb_eval_make(WB_ARRAYS(__VA_ARGS__))

/* The value of an array of one element; NaN on failure. */
WB_API double wb_item(wb_array *x);

/* Copies x to the host, dense and first dimension fastest, in x's own type; size_bytes must be
 * wb_count(x) * wb_dtype_size(wb_dtype_of(x)). out must point to numbers of x's type, as for
 * wb_from, else WB_ERROR_DTYPE. */
WB_API wb_status wb_read(wb_array *x, void *out, size_t size_bytes);
#define wb_read(x, out, size_bytes) wb_read_make(x, out, size_bytes, WB_NUMBERS_IN(out))
WB_API wb_status wb_read_make(wb_array *x, void *out, size_t size_bytes, int numbers);

/* The same, each element converted to double or float; count must be wb_count(x). */
WB_API wb_status wb_read_f64(wb_array *x, double *out, int64_t count);
WB_API wb_status wb_read_f32(wb_array *x, float *out, int64_t count);

/* A pointer to x's numbers: dense, first dimension fastest, valid until wb_read_end. NULL on
 * failure; then wb_read_end does nothing. */
WB_API const void *wb_read_begin(wb_array *x);
WB_API void wb_read_end(wb_array *x);

/* One element: wb_at(x, 2, 0); negative numbers count from the end. NaN on failure. */
#define wb_at(x, ...) wb_at_make(x, WB_INTS(__VA_ARGS__))
WB_API double wb_at_make(wb_array *x, int ndim, const int64_t *index);

/* True if sizes agree and |a - b| <= absolute + relative * max(|a|, |b|) everywhere (NaN equals
 * NaN, equal infinities are equal). If false, and if where is not NULL, the first position that
 * differs is written there: "(2, 0): 1.5 and 1.25". */
WB_API bool wb_approx(wb_array *a, wb_array *b, double relative, double absolute, char *where,
                      size_t where_bytes);

/* A dense copy in its own memory, computed at once. Gradients flow through it to x. */
WB_API wb_array *wb_copy(wb_array *x);

/* The same value, through which no gradient flows. */
WB_API wb_array *wb_stop_gradient(wb_array *x);

#ifdef __cplusplus
}
#endif
#endif
