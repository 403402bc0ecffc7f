/* The table of operations: private side of weber/ops.def. */
#ifndef WB_OPS_OPS_H
#define WB_OPS_OPS_H

#include <weber/calls.h>
#include <weber/device.h>
#include <weber/ops.h>

#include "array/array.h"
#include "array/payload.h"

typedef enum wb_kind {
    WB_KIND_SOURCE,
    WB_KIND_ELEMENT,  /* an instruction of a program */
    WB_KIND_MACRO,    /* expanded to others when planned */
    WB_KIND_CALLABLE, /* the same, and programs list it by its name */
    WB_KIND_VIEW,
    WB_KIND_JOIN, /* copies of its inputs into parts of the result */
    WB_KIND_REDUCE,
    WB_KIND_CALL,   /* a library operation of the backend */
    WB_KIND_RESULT, /* one of several results */
    WB_KIND_MOVE,   /* copied between devices, between plans */
} wb_kind;

typedef enum wb_type_class {
    WB_CLASS_NONE,
    WB_CLASS_FLOAT,
    WB_CLASS_NUMBER,
    WB_CLASS_COMPARE,
    WB_CLASS_LOGIC
} wb_type_class;

/* out[i] = cotangent of input i where want[i]; NULL: none. Cotangents of elementwise operations may
 * have the broadcast size; the walk sums them. */
typedef void wb_vjp_fn(wb_array *o, wb_array *g, const bool *want, wb_array **out);

/* Writes the node in terms of other operations: parts[0], or one for each of several results; then
 * nodes that wb_describe_callable needs. False when out of memory. */
typedef bool wb_expand_fn(wb_array *node, wb_array **parts);

/* What a program lists about a callable: its name, and as operands nodes that the expansion reads.
 * The sizes are those of wb_callable in weber/plugin.h. */
enum { WB_OFFER_INPUTS = 12, WB_OFFER_RESULTS = 4, WB_OFFER_NUMBERS = 8 };
typedef struct wb_offer {
    const char *name;
    wb_array *in[WB_OFFER_INPUTS];
    double numbers[WB_OFFER_NUMBERS];
    int input_count, result_count;
} wb_offer;
/* Fills in the offer for an expanded node; false: there is none. */
bool wb_describe_callable(wb_array *node, wb_array *const *parts, wb_offer *offer);

/* An example for the gradient checker: arrays of these sizes, filled with numbers between lo and
 * hi, and the function to call. */
typedef struct wb_check {
    int count;
    struct {
        int ndim;
        int64_t sizes[5];
    } inputs[3];
    double lo, hi;
    wb_array *(*call)(void *context, int count, wb_array *const *arrays);
} wb_check;
typedef const wb_check *wb_check_fn(void);

typedef struct wb_op_row {
    const char *name, *doc;
    wb_kind kind;
    wb_type_class type_class; /* elementwise rows */
    int arity;                /* elementwise rows; else 0 */
    wb_vjp_fn *vjp;           /* NULL: no gradient */
    wb_expand_fn *expand;     /* macros and callables */
    wb_check_fn *check;
    double lo, hi;    /* test range */
    double parameter; /* default of a macro's a */
    const char *text; /* scalar text of a primitive */
} wb_op_row;

extern const wb_op_row wb_op_rows[WB_OP_COUNT];

/* Functions that the rows of ops.def name; each is in its family's file. */
wb_vjp_fn wb_vjp_select, wb_vjp_cast, wb_vjp_copy, wb_vjp_reshape, wb_vjp_permute, wb_vjp_slice,
    wb_vjp_expand, wb_vjp_slice_put, wb_vjp_pad, wb_vjp_concat, wb_vjp_sum, wb_vjp_max_reduce,
    wb_vjp_mean, wb_vjp_normalise, wb_vjp_logsumexp, wb_vjp_softmax, wb_vjp_logsoftmax,
    wb_vjp_result, wb_vjp_move, wb_vjp_collective, wb_vjp_custom;
wb_expand_fn wb_expand_identity, wb_expand_mean, wb_expand_normalise, wb_expand_logsumexp,
    wb_expand_softmax, wb_expand_logsoftmax, wb_expand_step, wb_expand_step_numbers;
wb_check_fn wb_check_select, wb_check_copy, wb_check_cast, wb_check_reshape, wb_check_permute,
    wb_check_slice, wb_check_expand, wb_check_slice_put, wb_check_pad, wb_check_concat,
    wb_check_sum, wb_check_max_reduce, wb_check_mean, wb_check_normalise, wb_check_logsumexp,
    wb_check_softmax, wb_check_logsoftmax, wb_check_move, wb_check_collective, wb_check_custom;
#define WB_OFFERED_CALL(name, ...)                                                                 \
    wb_vjp_fn wb_vjp_##name;                                                                       \
    wb_expand_fn wb_expand_##name;                                                                 \
    wb_check_fn wb_check_##name;
#define WB_CALL(name, ...)                                                                         \
    wb_vjp_fn wb_vjp_##name;                                                                       \
    wb_check_fn wb_check_##name;
#include <weber/ops.def>

/* ---- building blocks of the families ---- */

bool wb_is_matmul_fast(wb_dtype dtype);

/* ---- C numbers beside whole numbers: the rule of weber/ops.h ---- */

/* True unless dtype is an integer type that does not hold c; false with an error that names
 * both. */
bool wb_check_number(const char *function, wb_dtype dtype, double c);
/* x as dtype; fails if x is a C number that dtype does not hold. */
wb_array *wb_stored_as(const char *function, wb_array *x, wb_dtype dtype);
/* wb_floating: x, with integers and bool cast to f32. The next function casts halves, too, since
 * sums or squares could overflow. */
wb_array *wb_floating(wb_array *x);
wb_array *wb_wide(wb_array *x);
/* x, with integers and bool cast to i64, the type of sums, products and running ones. */
wb_array *wb_widened(wb_array *x);
/* True, with the value, if number is a C number and x is an array of integers or bool. */
bool wb_is_number_beside(const wb_array *number, const wb_array *x, double *c);
/* The type in which such an x and c are computed; false with the error. */
bool wb_type_beside(const char *function, const wb_array *x, double c, wb_dtype *dtype);
/* The larger or smaller one (op max or min) of such an x and c. */
wb_array *wb_bounded(const char *function, wb_op op, wb_array *x, double c);
/* Any operation of two operands, of class FLOAT, NUMBER or COMPARE, on such an x and c. */
wb_array *wb_with_number(wb_op op, wb_array *x, double c, bool number_first);

/* x op y in dtype, broadcast; NULL with the error. */
wb_array *wb_binary_node(wb_op op, wb_dtype dtype, wb_array *x, wb_array *y);

/* Sizes of a and b broadcast together into sizes; the number of dimensions, or -1. */
int wb_broadcast(int andim, const int64_t *a, int bndim, const int64_t *b, int64_t *sizes);

/* x on the device: a new node even if x is there already. The copy is made when the node is
 * evaluated. */
wb_array *wb_move_node(const wb_device *device, wb_array *x);

/* The checks of all scatter functions: index has an integer type, its sizes fit updates, updates
 * fit into base, and base is not bool. Converts index, updates and dim to the form that operations
 * take. False with the error recorded. */
bool wb_scatter_check(const char *function, wb_array *base, wb_array **index, wb_array **updates,
                      int *dim);

/* x in the element type that the policy (weber/device.h) gives it on the device. */
wb_array *wb_cast_for(const wb_device *device, wb_array *x, wb_eltype eltype);

/* x; if it is a recipe of numbers alone, moved to the device of `like`, since it would be computed
 * on the default device otherwise. */
wb_array *wb_beside(const wb_array *like, wb_array *x);

/* x on the device, with the floating type of the policy; x itself if nothing changes; NULL if x is
 * NULL. */
wb_array *wb_move_array(const wb_device *device, wb_array *x, wb_eltype eltype);

/* x in the opposite order, without wrapping: -x of floats, 255 - x of u8, -1 - x of other integers,
 * not x of bool. */
wb_array *wb_turned(wb_array *x);
/* x in one of the types of sorting keys: f32, f64, i32 or i64. */
wb_array *wb_keys_of(wb_array *x);

/* True if x is dense in host memory and evaluated, so that reading it costs nothing. */
bool wb_is_readable(const wb_array *x);
int64_t wb_whole_at(const wb_array *x, int64_t i); /* element i of readable integers */
/* Element i of a list of u8, i32, i64 or bool. */
int64_t wb_whole_in(const void *data, wb_dtype dtype, int64_t i);

/* True if x is not readable, or all its numbers are in 0 .. size - 1; else the error has `what`
 * ("gather: index") and the first number that is not. */
bool wb_check_positions(const char *what, const wb_array *index, int64_t size);

/* wb_gather whose errors call the index `what` ("logitcrossentropy: label"), after the names of the
 * current layers; so does the error of a device that finds a bad index later. */
wb_array *wb_gather_named(const char *what, wb_array *x, wb_array *index, int dim);
/* Zeros of the index's sizes, whose computation fails with such an error if the index is bad. Add
 * them to a value that must not be used with a bad index. */
wb_array *wb_index_guard(const char *what, wb_array *index, int64_t size);
/* The index with 0 where it is out of range, which is such an error. So the operation that uses it
 * cannot fail as well, with an error that a device might report first. */
wb_array *wb_guarded_index(const char *what, wb_array *index, int64_t size);
/* The name, in errors, of a command that finds a bad index: the name in its node, else the
 * operation's. */
const char *wb_index_name(wb_op op, const wb_attributes *attributes);

/* Whether the device has f64, and f64 holds the square of every number of x's type. */
bool wb_fits_f64(const wb_array *x);

/* A pending node with integer attributes. */
wb_array *wb_node_with(wb_op op, wb_dtype dtype, int ndim, const int64_t *sizes, int ninputs,
                       wb_array *const *inputs, int nattributes, const int64_t *attributes);
/* The same with a payload; takes over the reference to it, also on failure. */
wb_array *wb_node_described(wb_op op, wb_dtype dtype, int ndim, const int64_t *sizes, int ninputs,
                            wb_array *const *inputs, int nattributes, const int64_t *attributes,
                            wb_payload *payload);

/* Number `index` of the results of a node that has several: a part node. */
wb_array *wb_result_of(wb_array *node, int index, wb_dtype dtype, int ndim, const int64_t *sizes);

/* g summed to the given sizes: the derivative of broadcasting. */
wb_array *wb_sum_to(wb_array *g, int ndim, const int64_t *sizes);

/* wb_normalise of x, times gain, plus bias, which broadcast with x. NULL if an argument is NULL. */
wb_array *wb_normalise_with(wb_array *x, double eps, int ndim, const int64_t *dims, wb_array *gain,
                            wb_array *bias);

/* Mean and variance (divided by n) along dimensions, which stay with size 1, in the type of x; for
 * halves both are computed in f32. NULL with the error recorded. */
typedef struct wb_moments {
    wb_array *mean, *variance;
} wb_moments;
wb_moments wb_moments_make(wb_array *x, int ndim, const int64_t *dims);

/* True and the value if x is one number everywhere (op full). */
bool wb_constant_value(const wb_array *x, double *value);

int64_t wb_bits_of(double value);
double wb_value_of(int64_t bits);

/* The dimensions as a bit mask; false with the error recorded. ndim 0 means none. */
bool wb_dims_mask(const char *function, const wb_array *x, int ndim, const int64_t *dims,
                  int64_t *mask);

/* count elements from start on, `step` apart, within x. */
wb_array *wb_slice_node(wb_array *x, int dim, int64_t start, int64_t count, int64_t step);
/* The derivative of a slice: zeros of these sizes with x in the slice. */
wb_array *wb_slice_put(wb_array *x, int ndim, const int64_t *sizes, int dim, int64_t start,
                       int64_t step);

/* True if x is such a node with step 1, and has its recipe. */
bool wb_is_slice_put(const wb_array *x);
/* Replaces a list of such nodes, of the same sizes and type, by fewer with the same sum: slices
 * that touch are joined by copies. Returns how many are left, in any order; 0: an error. */
int wb_join_puts(int count, wb_array **puts);

/* The description of a call that devices get: the payload of its node. */
static inline const wb_window_call *wb_window_of(const wb_array *node) {
    return wb_payload_words(node->payload);
}
/* Whether wb_rotary can have these, with the settings' name for messages. */
bool wb_check_rotary(const char *name, double factor, double low, double high, int64_t length);

static inline const wb_attention_call *wb_attention_of(const wb_array *node) {
    return wb_payload_words(node->payload);
}

/* True if the gradient uses the expansion of the operation. */
static inline bool wb_expands_for_gradient(int op) {
    return wb_op_rows[op].kind == WB_KIND_CALL && wb_op_rows[op].expand && !wb_op_rows[op].vjp;
}

/* Writes type and sizes of a further result of a call to these members of part. */
void wb_call_result(const wb_array *node, int number, wb_array *part);

/* A copy of x, with memory of its own once it is computed, even if x has no memory then. */
wb_array *wb_copied(wb_array *x);

/* Whether, among n numbers, a 0 (not given) comes before one that is given. */
bool wb_has_gap(int n, const int64_t *numbers);
/* Sets those of n numbers that come after the last one given (not 0) to that one. */
void wb_repeat_last(int n, int64_t *numbers);
/* Replaces the marks that WB_ALL put among three numbers by the number before them, for n
 * dimensions. */
void wb_spread_all(int n, int64_t *numbers);
/* The same, and replaces the marks of WB_EACH by 0: the numbers as they are meant. */
void wb_plain_numbers(int n, int64_t *numbers);
/* Fails, naming both ways to write it, if only the first of n paddings are given. Else replaces
 * WB_NONE_ and WB_SAME_ by the numbers that they stand for. pad has three numbers. */
bool wb_check_padding(const char *function, int n, int64_t *pad);
/* True if a size, stride, dilation or padding of a window is at least low and not too large. */
bool wb_window_takes(int64_t value, int64_t low);

#endif
