/* Arrays without inputs (constants, random numbers), and from C memory. */
#include <string.h>

#include "array/thread.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "ops/build.h"

static wb_array *source(const char *function, wb_op op, wb_dtype dtype, int ndim,
                        const int64_t *sizes, int count, const int64_t *words) {
    if (!wb_check_dtype(function, dtype) || !wb_check_sizes(function, ndim, sizes)) return NULL;
    return wb_node_with(op, dtype, ndim, sizes, 0, NULL, count, words);
}

static wb_array *full(const char *function, wb_dtype dtype, double value, int ndim,
                      const int64_t *sizes) {
    if (!wb_check_dtype(function, dtype) || !wb_check_number(function, dtype, value)) return NULL;
    return source(function, WB_OP_full, dtype, ndim, sizes, WB_WORDS(number, value));
}

wb_array *wb_full_make(wb_dtype dtype, double value, int ndim, const int64_t *sizes) {
    return full("full", dtype, value, ndim, sizes);
}

wb_array *(wb_scalar)(wb_dtype dtype, double value) {
    return full("scalar", dtype, value, 0, NULL);
}

wb_array *wb_late(double value) {
    wb_array *node = wb_node_new(WB_OP_late, WB_F64, 0, NULL, 0, NULL);
    if (!node) return NULL;
    node->flags |= WB_NODE_WEAK;
    node->late[0] = wb_bits_of(value);
    return node;
}

wb_array *wb_iota_make(wb_dtype dtype, int dim, int ndim, const int64_t *sizes) {
    if (!wb_check_sizes("iota", ndim, sizes)) return NULL;
    dim = wb_check_dim("iota", dim, ndim);
    if (dim < 0 || !wb_check_dtype("iota", dtype)) return NULL;
    const int64_t last = sizes[dim] > 0 ? sizes[dim] - 1 : 0;
    if (!wb_check_number("iota", dtype, (double)last)) return NULL;
    return source("iota", WB_OP_iota, dtype, ndim, sizes, WB_WORDS(along, dim));
}

/* From the nearer end, so that both are exact. */
static wb_array *spread(wb_dtype dtype, double first, double last, int64_t count) {
    wb_array *place = wb_iota_make(dtype, 0, 1, &count);
    const double step = (last - first) / (double)(count - 1);
    wb_array *after = ADD(NUM(first), MUL(place, NUM(step)));
    wb_array *before = SUB(NUM(last), MUL(SUB(NUM((double)(count - 1)), place), NUM(step)));
    return SELECT(LT(place, NUM((double)count / 2)), after, before);
}

wb_array *wb_linspace_make(wb_dtype dtype, double first, double last, int64_t count) {
    if (!wb_check_dtype("linspace", dtype) || !wb_check_sizes("linspace", 1, &count)) return NULL;
    if (!wb_dtype_is_float(dtype))
        return wb_fail_null(WB_ERROR_DTYPE, "linspace: the type must be floating, got %s",
                            wb_dtype_name(dtype));
    if (count < 2) return wb_full_make(dtype, first, 1, &count);
    wb_array *x = spread(wb_is_half(dtype) ? WB_F32 : dtype, first, last, count);
    return x ? wb_cast(x, dtype) : NULL;
}

/* ---- random ---- */

void wb_seed(uint64_t seed) {
    wb_thread *thread = wb_thread_get();
    if (!thread || wb_is_tracing("wb_seed")) return;
    thread->seed = seed, thread->counter = 0;
}

/* A range for each call in a step of several parts: wide enough for the arrays of all parts, and
 * equally wide in each part, however many observations it has. */
#define SHARED_BLOCKS (UINT64_C(1) << 32)
#define OF_A_PART     UINT64_C(0xD1B54A32D192ED03)

/* The elements that lie before this part's in the array of all parts; -1: not known. An array whose
 * last dimension is not the observations is the same in all parts. */
static int64_t elements_before(const wb_drawing *d, int ndim, const int64_t *sizes) {
    if (!d->is_shared) return 0;
    if (d->count < 0) return -1;
    if (d->is_common || ndim == 0 || d->count == 0 || sizes[ndim - 1] % d->count != 0) return 0;
    return wb_count_sizes(ndim, sizes) / d->count * d->first;
}

/* The key and the first block; each call takes a range of Philox blocks of its own. */
static void begin_at(wb_thread *thread, wb_array *node, int64_t before, int64_t in_block) {
    const wb_drawing *d = &thread->drawing;
    uint64_t key = thread->seed;
    if (d->is_shared) key += d->key;
    if (before < 0) key += OF_A_PART * (uint64_t)(d->part + 1), before = 0;
    node->late[0] = (int64_t)key;
    node->late[1] = (int64_t)thread->counter + before / in_block;
    thread->counter += d->is_shared ? SHARED_BLOCKS : (uint64_t)wb_count(node) / 2 + 1;
}

/* Where a part begins inside a block, that block is drawn from its first number on. */
static wb_array *random_node(const char *function, wb_op op, wb_dtype dtype, int ndim,
                             const int64_t *sizes) {
    if (!wb_check_dtype(function, dtype) || !wb_check_sizes(function, ndim, sizes)) return NULL;
    if (!wb_dtype_is_float(dtype))
        return wb_fail_null(WB_ERROR_DTYPE, "%s: the type must be floating, got %s", function,
                            wb_dtype_name(dtype));
    wb_thread *thread = wb_thread_get();
    if (!thread) return NULL;
    const int64_t in_block = dtype == WB_F64 ? 2 : 4;
    const int64_t before = elements_before(&thread->drawing, ndim, sizes);
    const int64_t left_out = before > 0 ? before % in_block : 0;
    const int64_t all = wb_count_sizes(ndim, sizes) + left_out;
    wb_array *node = left_out ? source(function, op, dtype, 1, &all, 0, NULL)
                              : source(function, op, dtype, ndim, sizes, 0, NULL);
    if (!node) return NULL;
    begin_at(thread, node, before, in_block);
    if (left_out) node = wb_reshape_make(wb_slice(node, 0, left_out, all, 1), ndim, sizes);
    return node;
}

/* Numbers just below 1 would round to 1 in 16 bits, so there they are multiples of the distance
 * from 1 to the next smaller number. */
static wb_array *uniform_half(wb_dtype dtype, int ndim, const int64_t *sizes) {
    const double steps = dtype == WB_F16 ? 2048 : 256;
    wb_array *u = random_node("uniform", WB_OP_uniform, WB_F32, ndim, sizes);
    wb_array *step = u ? wb_floor(wb_mul_number(u, steps)) : NULL;
    return step ? wb_cast(wb_mul_number(step, 1 / steps), dtype) : NULL;
}

wb_array *wb_uniform_make(wb_dtype dtype, int ndim, const int64_t *sizes) {
    return wb_is_half(dtype) ? uniform_half(dtype, ndim, sizes)
                             : random_node("uniform", WB_OP_uniform, dtype, ndim, sizes);
}

wb_array *wb_normal_make(wb_dtype dtype, int ndim, const int64_t *sizes) {
    return random_node("normal", WB_OP_normal, dtype, ndim, sizes);
}

/* ---- C memory ---- */

static size_t bytes_of(wb_dtype dtype, int ndim, const int64_t *sizes) {
    return (size_t)wb_count_sizes(ndim, sizes) * wb_dtype_size(dtype);
}

/* The element type alone, without what the pointer to the numbers said (WB_DTYPE_AT). */
enum { ALL_NUMBERS = 0x7f * WB_WHOLE_NUMBERS | WB_OTHER_NUMBERS };
static wb_dtype type_of(wb_dtype given) {
    return (int)given < 0 ? given : (wb_dtype)((int)given & ~ALL_NUMBERS);
}

static bool check_memory(const char *function, wb_dtype given, const void *data, int ndim,
                         const int64_t *sizes) {
    const wb_dtype dtype = type_of(given);
    if (!wb_check_dtype(function, dtype) || !wb_check_sizes(function, ndim, sizes) ||
        !wb_check_numbers(function, dtype, (int)given & ALL_NUMBERS))
        return false;
    if (data || wb_count_sizes(ndim, sizes) == 0) return true;
    (void)wb_fail_argument_null(function, "data");
    return false;
}

/* The buffer, or its bytes where the default device is elsewhere. NULL on failure. */
static wb_buffer *on_default_device(wb_buffer *buffer, size_t bytes) {
    const wb_device *device = wb_default_device();
    if (device == wb_cpu_device()) return buffer;
    wb_buffer *there = wb_buffer_new(device, bytes, "data");
    if (there && wb_buffer_copy(there, 0, buffer, 0, bytes) != WB_OK) {
        wb_buffer_unref(there);
        there = NULL;
    }
    wb_buffer_unref(buffer);
    return there;
}

wb_array *wb_from_make(wb_dtype given, const void *data, int ndim, const int64_t *sizes) {
    if (!check_memory("from", given, data, ndim, sizes)) return NULL;
    const wb_dtype dtype = type_of(given);
    const size_t bytes = bytes_of(dtype, ndim, sizes);
    wb_buffer *buffer = wb_buffer_new(wb_cpu_device(), bytes, "data");
    if (!buffer) return NULL;
    const unsigned char *from = data;
    bool *truth = buffer->handle;
    if (dtype != WB_BOOL && bytes) memcpy(buffer->handle, data, bytes);
    for (size_t i = 0; dtype == WB_BOOL && i < bytes; i++) truth[i] = from[i] != 0;
    return wb_node_data(dtype, ndim, sizes, on_default_device(buffer, bytes));
}

/* ---- literals ---- */

/* Halves are written as floats. */
static wb_dtype literal_type(wb_dtype dtype) { return wb_is_half(dtype) ? WB_F32 : dtype; }

static wb_array *as_type(wb_array *x, wb_dtype dtype) { return x ? wb_cast(x, dtype) : NULL; }

wb_array *wb_vector_make(wb_dtype dtype, const void *numbers, int64_t count) {
    if (!wb_check_dtype("vector", dtype)) return NULL;
    return as_type(wb_from_make(literal_type(dtype), numbers, 1, &count), dtype);
}

/* Rows of C memory are columns of the array's: they are turned here, so that the matrix is
 * dense. */
wb_array *wb_matrix_make(wb_dtype dtype, const void *numbers, int64_t columns, int64_t rows) {
    const int64_t sizes[] = {rows, columns};
    if (!wb_check_dtype("matrix", dtype)) return NULL;
    if (!check_memory("matrix", dtype, numbers, 2, sizes)) return NULL;
    const size_t size = wb_dtype_size(literal_type(dtype));
    char *turned = wb_alloc_list(rows * columns, size);
    if (!turned) return NULL;
    for (int64_t i = 0; i < rows * columns; i++)
        memcpy(turned + (size_t)(i % columns * rows + i / columns) * size,
               (const char *)numbers + (size_t)i * size, size);
    wb_array *x = wb_from_make(literal_type(dtype), turned, 2, sizes);
    wb_release(turned);
    return as_type(x, dtype);
}

/* How the user gets memory back. */
typedef struct owner {
    wb_release_fn *release;
    void *context;
} owner;

static void give_back(const owner *o, void *data) {
    wb_user_call call;
    wb_user_call_begin(&call, "its release");
    o->release(o->context, data);
    (void)wb_user_call_end(&call, "the memory of an array");
}

static void release_owned(void *context, void *data) {
    give_back(context, data);
    wb_release(context);
}

/* NULL where nothing is released, and when out of memory. */
static owner *owner_new(wb_release_fn *release, void *context) {
    owner *o = release ? wb_alloc(sizeof *o) : NULL;
    if (o) *o = (owner){release, context};
    return o;
}

/* Foreign memory as a node; on failure it is released, as it would be after its last use. */
static wb_array *over_memory(const char *function, wb_dtype given, void *data, bool read_only,
                             wb_release_fn *release, void *context, int ndim,
                             const int64_t *sizes) {
    const wb_dtype dtype = type_of(given);
    owner *o = owner_new(release, context);
    wb_buffer *buffer = NULL;
    if (check_memory(function, given, data, ndim, sizes) && (o || !release))
        buffer = wb_buffer_foreign(wb_cpu_device(), data, bytes_of(dtype, ndim, sizes), read_only,
                                   o ? release_owned : NULL, o);
    if (buffer) return wb_node_data(dtype, ndim, sizes, buffer);
    if (release && data) give_back(&(owner){release, context}, data);
    wb_release(o);
    return NULL;
}

wb_array *wb_borrow_make(wb_dtype dtype, const void *data, wb_release_fn *release, void *context,
                         int ndim, const int64_t *sizes) {
    union {
        const void *read;
        void *write; /* never written: the buffer is read-only */
    } memory = {.read = data};
    return over_memory("borrow", dtype, memory.write, true, release, context, ndim, sizes);
}

wb_array *wb_adopt_make(wb_dtype dtype, void *data, wb_release_fn *release, void *context, int ndim,
                        const int64_t *sizes) {
    return over_memory("adopt", dtype, data, false, release, context, ndim, sizes);
}
