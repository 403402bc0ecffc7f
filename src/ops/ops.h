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
    WB_KIND_CALLABLE, /* that too, and programs know it by its name */
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

/* The node in terms of other operations; parts[0] .. for an operation of several results, after
 * them what wb_describe_callable wants to know. False: out of memory. */
typedef bool wb_expand_fn(wb_array *node, wb_array **parts);

/* What programs are to know of a callable by name: operands are nodes that the expansion reads. The
 * sizes are those of wb_callable in weber/plugin.h. */
enum { WB_OFFER_INPUTS = 12, WB_OFFER_RESULTS = 4, WB_OFFER_NUMBERS = 8 };
typedef struct wb_offer {
    const char *name;
    wb_array *in[WB_OFFER_INPUTS];
    double numbers[WB_OFFER_NUMBERS];
    int input_count, result_count;
} wb_offer;
/* Of an expanded node; false: nothing. */
bool wb_describe_callable(wb_array *node, wb_array *const *parts, wb_offer *offer);

/* An example of the row for the gradient checker: arrays of these sizes filled between lo and hi,
 * and what to call. */
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

/* What the rows of ops.def refer to; each stands in its family's file. */
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

/* True unless dtype is of whole numbers and c none of them; false with the error, which names
 * both. */
bool wb_check_number(const char *function, wb_dtype dtype, double c);
/* x as dtype, where a C number has to be one of dtype's. */
wb_array *wb_stored_as(const char *function, wb_array *x, wb_dtype dtype);
/* x, whole numbers and bool as f32; and the halves, too, where sums or squares could overflow. */
wb_array *wb_floating(wb_array *x);
wb_array *wb_wide(wb_array *x);
/* x, whole numbers and bool as i64: as sums, products and running ones are computed. */
wb_array *wb_widened(wb_array *x);
/* True and the value if number is a C number, and x is an array of whole numbers or bool. */
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

/* x on the device: a node of its own even where x is there already. The copy happens when it is
 * evaluated. */
wb_array *wb_move_node(const wb_device *device, wb_array *x);

/* What all functions that scatter ask: the index has an integer type and positions of updates that
 * fit into base, which is not bool. index, updates and dim become what operations take; false with
 * an error. */
bool wb_scatter_check(const char *function, wb_array *base, wb_array **index, wb_array **updates,
                      int *dim);

/* x in the type that it has on the device, by the policy (weber/device.h). */
wb_array *wb_cast_for(const wb_device *device, wb_array *x, wb_eltype eltype);

/* x, which is moved to where `like` is if it is numbers alone: by itself it would be at home on the
 * default device. */
wb_array *wb_beside(const wb_array *like, wb_array *x);

/* x on the device, its floating type by the policy; x itself where nothing has to change, NULL if x
 * is. */
wb_array *wb_move_array(const wb_device *device, wb_array *x, wb_eltype eltype);

/* x in the opposite order: -x, except where -x wraps (at the least integer, at every u8). */
wb_array *wb_turned(wb_array *x);
/* x in a type that keys of sorting have: f32, f64, i32 or i64. */
wb_array *wb_keys_of(wb_array *x);

/* True if x lies in host memory, one after another, where looking at it costs nothing. */
bool wb_is_readable(const wb_array *x);
int64_t wb_whole_at(const wb_array *x, int64_t i); /* of whole numbers that are readable */
/* Number i of a list of u8, i32, i64 or bool. */
int64_t wb_whole_in(const void *data, wb_dtype dtype, int64_t i);

/* True if all readable numbers are positions 0 .. size - 1; else the error names `what` ("gather:
 * index") and the first that is not. */
bool wb_check_positions(const char *what, const wb_array *index, int64_t size);

/* wb_gather, where errors call the index `what` ("logitcrossentropy: label"), after the layers at
 * hand: also the error of a device that finds a bad one when it computes. */
wb_array *wb_gather_named(const char *what, wb_array *x, wb_array *index, int dim);
/* Zeros of the index's sizes; to compute them is such an error if it is bad. They are added to what
 * must not be used with a bad index. */
wb_array *wb_index_guard(const char *what, wb_array *index, int64_t size);
/* The index, 0 where it is out of range, which is such an error: what uses it cannot be a second
 * one, which a device might tell first. */
wb_array *wb_guarded_index(const char *what, wb_array *index, int64_t size);
/* What a command that finds a bad index is called: the name that its node has, else the
 * operation. */
const char *wb_index_name(wb_op op, const wb_attributes *attributes);

/* Whether f64 is there and holds the square of every number of x's type. */
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

/* g summed to the given sizes (broadcasting backwards). */
wb_array *wb_sum_to(wb_array *g, int ndim, const int64_t *sizes);

/* wb_normalise, then times gain, plus bias, which broadcast with x. NULL if one of them is. */
wb_array *wb_normalise_with(wb_array *x, double eps, int ndim, const int64_t *dims, wb_array *gain,
                            wb_array *bias);

/* Mean and variance, divided by n, along dimensions, which stay with size 1: each of both where the
 * other is rounded. NULL with the error. */
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
/* Nodes of the adjoints; zeros of sizes with x in the slice. */
wb_array *wb_slice_put(wb_array *x, int ndim, const int64_t *sizes, int dim, int64_t start,
                       int64_t step);

/* True if x is such a node, with step 1 and still a recipe. */
bool wb_is_slice_put(const wb_array *x);
/* Of such nodes, all of the same sizes and type, makes fewer with the same sum: slices that touch
 * are put together by copies. Returns how many are left in the list, in any order; 0: an error. */
int wb_join_puts(int count, wb_array **puts);

/* What the calls of these shapes (ops.def) do, as devices get it: the payload of their nodes. */
static inline const wb_window_call *wb_window_of(const wb_array *node) {
    return wb_payload_words(node->payload);
}
static inline const wb_attention_call *wb_attention_of(const wb_array *node) {
    return wb_payload_words(node->payload);
}

/* True if a gradient goes through what the operation is made of. */
static inline bool wb_expands_for_gradient(int op) {
    return wb_op_rows[op].kind == WB_KIND_CALL && wb_op_rows[op].expand && !wb_op_rows[op].vjp;
}

/* Type and sizes of a further result of a call that has several, into those members of part. */
void wb_call_result(const wb_array *node, int number, wb_array *part);

/* The same value with memory of its own once it is computed, whatever memory x has by then. */
wb_array *wb_copied(wb_array *x);

/* Of n numbers, whether a 0 stands before one that is given. */
bool wb_has_gap(int n, const int64_t *numbers);
/* Of n numbers, those after the last one that is given (not 0) become equal to it. */
void wb_repeat_last(int n, int64_t *numbers);
/* Of three numbers, WB_ALL's for n dimensions: those that are the number before. */
void wb_spread_all(int n, int64_t *numbers);
/* The same, and of WB_EACH's those that are a 0: numbers as they count. */
void wb_plain_numbers(int n, int64_t *numbers);
/* Fails, with both ways to write it, if only the first of n paddings are given; then WB_NONE_ and
 * WB_SAME_ become what they stand for. pad has three numbers. */
bool wb_check_padding(const char *function, int n, int64_t *pad);
/* At least low, and small enough for a window: sizes, strides, dilations and padding all are. */
bool wb_window_takes(int64_t value, int64_t low);

#endif
