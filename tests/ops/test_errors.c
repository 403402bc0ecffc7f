/* What arrays and operations refuse: status, and the exact message with names and sizes. Nothing is
 * left behind. */
#include "array/array.h"
#include "base/memory.h"
#include "support/support.h"

typedef wb_array *call_fn(void);

#define DESC(...)  ((wb_window_desc){.start_ = 0, __VA_ARGS__})
#define F(...)     wb_zeros(WB_F32, __VA_ARGS__)
#define I(...)     wb_zeros(WB_I32, __VA_ARGS__)
#define SIZES(...) ((const int64_t[]){__VA_ARGS__})
#define NINE       1, 1, 1, 1, 1, 1, 1, 1, 1

/* X(sentence, call, status, message) */
#define CALLS(X)                                                                                   \
    X(0, "sizes that differ do not broadcast", wb_add(F(3, 4), F(3, 5)), SHAPE,                    \
      "add: sizes (3, 4) and (3, 5) do not broadcast")                                             \
    X(1, "a vector goes along the first dimension", wb_mul(F(3, 4), F(4)), SHAPE,                  \
      "mul: sizes (3, 4) and (4) do not broadcast")                                                \
    X(2, "nothing and two do not broadcast", wb_sub(F(0), F(2)), SHAPE,                            \
      "sub: sizes (0) and (2) do not broadcast")                                                   \
    X(3, "comparisons broadcast as sums do", wb_lt(F(2), F(3)), SHAPE,                             \
      "lt: sizes (2) and (3) do not broadcast")                                                    \
    X(4, "a selection wants three that broadcast", wb_select(wb_zeros(WB_BOOL, 2), F(3), F(1)),    \
      SHAPE, "select: sizes (2), (3) and (1) do not broadcast")                                    \
    X(5, "a condition is bool", wb_select(F(2), F(2), F(2)), DTYPE,                                \
      "select: the condition must be bool, got f32")                                               \
    X(6, "logic wants bool", wb_and(wb_zeros(WB_BOOL, 2), F(2)), DTYPE,                            \
      "and: operands must be bool, got f32")                                                       \
    X(7, "not wants bool", wb_not(I(2)), DTYPE, "not: operands must be bool, got i32")             \
    X(8, "there is no such type", wb_cast(F(2), (wb_dtype)77), DTYPE,                              \
      "cast: 77 is not an element type: write WB_F32, WB_F64, ...")                                \
    X(9, "nor for an array of one value", wb_full_make((wb_dtype)-1, 0, 0, NULL), DTYPE,           \
      "full: -1 is not an element type: write WB_F32, WB_F64, ...")                                \
    X(10, "inner sizes of a matrix product agree", wb_matmul(F(2, 5), F(4, 3)), SHAPE,             \
      "matmul: A is (2, 5), so B needs 5 rows, but is (4, 3)")                                     \
    X(11, "a matrix and a vector", wb_matmul(F(2, 5), F(4)), SHAPE,                                \
      "matmul: A is (2, 5), so B needs 5 elements, but is (4)")                                    \
    X(12, "with flags", wb_matmul_transposed(F(2, 5), F(4, 3), true, true), SHAPE,                 \
      "matmul: A is (2, 5) transposed, so B needs 2 columns, but is (4, 3) transposed")            \
    X(13, "a vector is no matrix", wb_matmul(F(5), F(5, 2)), SHAPE,                                \
      "matmul: A must be a matrix, got (5)")                                                       \
    X(14, "batches broadcast", wb_matmul(F(2, 3, 4), F(3, 2, 5)), SHAPE,                           \
      "matmul: the batches of A (2, 3, 4) and B (3, 2, 5) do not broadcast")                       \
    X(15, "integers have no matrix product", wb_matmul(I(2, 2), I(2, 2)), DTYPE,                   \
      "matmul: A and B must have floating types, got i32 and i32")                                 \
    X(16, "channels of a convolution agree",                                                       \
      wb_conv_op(F(32, 32, 4, 8), F(3, 3, 3, 16), .groups = 1), SHAPE,                             \
      "conv: the filter takes 3 input channels, but x has 4 in (32, 32, 4, 8)")                    \
    X(17, "groups divide the filters", wb_conv_op(F(8, 8, 4, 1), F(3, 3, 2, 5), .groups = 2),      \
      SHAPE, "conv: 2 groups do not divide 5 filters")                                             \
    X(18, "x and filter have as many dimensions",                                                  \
      wb_conv_op(F(8, 8, 4, 1), F(3, 4, 5), .groups = 1), SHAPE,                                   \
      "conv: x is (8, 8, 4, 1), so the filter needs as many dimensions, but is (3, 4, 5)")         \
    X(19, "a window does not reach beyond the padding",                                            \
      wb_conv_op(F(4, 2, 1, 1), F(3, 3, 1, 1), .groups = 1), SHAPE,                                \
      "conv: the window covers 3 elements of dimension 1, but x is (4, 2, 1, 1) with 0 elements "  \
      "of padding")                                                                                \
    X(20, "a dilated one neither", wb_conv_op(F(4, 1, 1), F(3, 1, 1), .dilation = {2}), SHAPE,     \
      "conv: the window covers 5 elements of dimension 0, but x is (4, 1, 1) with 0 elements of "  \
      "padding")                                                                                   \
    X(21, "no convolution without spatial dimensions", wb_conv_op(F(4, 1), F(3, 1), .groups = 1),  \
      SHAPE, "conv: x must have 1 to 3 spatial dimensions, channels and batch, got (4, 1)")        \
    X(22, "a negative stride", wb_conv_op(F(4, 1, 1), F(3, 1, 1), .stride = {-1}), ARGUMENT,       \
      "conv: stride must be at least 1, got -1")                                                   \
    X(23, "a negative padding", wb_conv_op(F(4, 1, 1), F(3, 1, 1), .pad = {-1}), ARGUMENT,         \
      "conv: padding must be at least 0, got -1")                                                  \
    X(24, "integers have no convolution", wb_conv_op(I(4, 1, 1), I(3, 1, 1), .groups = 1), DTYPE,  \
      "conv: the type must be floating, got i32")                                                  \
    X(25, "a result of other sizes",                                                               \
      wb_conv_data_make(F(4, 1, 1), F(3, 1, 1), SIZES(5, 1, 1), DESC(.groups = 1)), SHAPE,         \
      "conv_data: y must be (3, 1, 1), got (4, 1, 1)")                                             \
    X(26, "a filter of other sizes",                                                               \
      wb_conv_filter_make(F(5, 1, 1), F(4, 1, 1), SIZES(3, 1, 1), DESC(.groups = 1)), SHAPE,       \
      "conv_filter: y must be (3, 1, 1), got (4, 1, 1)")                                           \
    X(27, "an empty kernel", wb_conv_op(F(4, 1, 1), F(0, 1, 1), .stride = {1}), ARGUMENT,          \
      "conv: kernel size must be at least 1, got 0")                                               \
    X(28, "a pool over a vector", wb_maxpool_op(F(4), .kernel = {2}), SHAPE,                       \
      "maxpool: x must have 1 to 3 spatial dimensions, channels and batch, got (4)")               \
    X(29, "a pool of integers", wb_maxpool_op(I(4, 1, 1), .kernel = {2}), DTYPE,                   \
      "maxpool: the type must be floating, got i32")                                               \
    X(30, "a pool larger than the picture", wb_meanpool_op(F(4, 4, 1, 1), .kernel = {2, 5}),       \
      SHAPE,                                                                                       \
      "meanpool: the window covers 5 elements of dimension 1, but x is (4, 4, 1, 1) with 0 "       \
      "elements of padding")                                                                       \
    X(31, "a window in the padding has no largest",                                                \
      wb_maxpool_op(F(4, 1, 1), .kernel = {2}, .pad = {2}), SHAPE,                                 \
      "maxpool: padding 2 must be smaller than window 2 in dimension 0 of (4, 1, 1)")              \
    X(32, "columns of other sizes",                                                                \
      wb_fold_make(F(3, 2, 2), 3, SIZES(5, 1, 2), DESC(.kernel = {2})), SHAPE,                     \
      "fold: columns must be (4, 2, 2), got (3, 2, 2)")                                            \
    X(33, "nine dimensions", wb_zeros(WB_F32, NINE), SHAPE,                                        \
      "full: 9 dimensions; an array has 0 to 8")                                                   \
    X(34, "nine dimensions of C memory", wb_from(WB_F32, &(float){0}, NINE), SHAPE,                \
      "from: 9 dimensions; an array has 0 to 8")                                                   \
    X(35, "nine dimensions of a reshape", wb_reshape(F(1), NINE), SHAPE,                           \
      "reshape: 9 dimensions; an array has 0 to 8")                                                \
    X(36, "nine dimensions of an expansion", wb_expand(F(1), NINE), SHAPE,                         \
      "expand: 9 dimensions; an array has 0 to 8")                                                 \
    X(37, "a ninth dimension", wb_unsqueeze(F(1, 1, 1, 1, 1, 1, 1, 1), 0), SHAPE,                  \
      "unsqueeze: 9 dimensions; an array has 0 to 8")                                              \
    X(38, "a stack with a ninth dimension", wb_stack(0, F(1, 1, 1, 1, 1, 1, 1, 1)), SHAPE,         \
      "unsqueeze: 9 dimensions; an array has 0 to 8")                                              \
    X(39, "a negative size", wb_ones(WB_F32, 3, -4), SHAPE,                                        \
      "full: size -4 of dimension 1 in (3, -4) is negative")                                       \
    X(40, "a negative size of chance", wb_uniform(WB_F32, -2), SHAPE,                              \
      "uniform: size -2 of dimension 0 in (-2) is negative")                                       \
    X(41, "sizes that overflow", wb_zeros(WB_U8, INT64_MAX, 2), SHAPE,                             \
      "full: (9223372036854775807, 2) has more elements than memory can hold")                     \
    X(42, "sizes whose bytes overflow", wb_zeros(WB_F64, 1ll << 31, 1ll << 31), SHAPE,             \
      "full: (2147483648, 2147483648) has more elements than memory can hold")                     \
    X(43, "sizes that overflow beside a zero", wb_expand(F(1, 1), INT64_MAX, INT64_MAX), SHAPE,    \
      "expand: (9223372036854775807, 9223372036854775807) has more elements than memory can hold") \
    X(44, "an axis too large", wb_sum_dims(F(2, 3), 2), ARGUMENT,                                  \
      "sum: dimension 2 is outside an array of 2 dimensions, (2, 3)")                              \
    X(45, "an axis too small", wb_mean_dims(F(2, 3), -3), ARGUMENT,                                \
      "mean: dimension -3 is outside an array of 2 dimensions, (2, 3)")                            \
    X(46, "an axis of a scalar", wb_softmax(wb_scalar(WB_F32, 1)), ARGUMENT,                       \
      "softmax: dimension 0 is outside an array of 0 dimensions, ()")                              \
    X(47, "an axis of argmax", wb_argmax(F(2), 1), ARGUMENT,                                       \
      "argmax: dimension 1 is outside an array of 1 dimensions, (2)")                              \
    X(48, "an axis of a slice", wb_slice(F(2), 1, 0, 1, 1), ARGUMENT,                              \
      "slice: dimension 1 is outside an array of 1 dimensions, (2)")                               \
    X(49, "an axis of a join", wb_concat(3, F(2), F(2)), ARGUMENT,                                 \
      "concat: dimension 3 is outside an array of 1 dimensions, (2)")                              \
    X(50, "an axis of a padding", wb_pad(F(2), -2, 1, 1, 0), ARGUMENT,                             \
      "pad: dimension -2 is outside an array of 1 dimensions, (2)")                                \
    X(51, "an axis of iota", wb_iota(WB_F32, 2, 3, 3), ARGUMENT,                                   \
      "iota: dimension 2 is outside an array of 2 dimensions")                                     \
    X(52, "a variance along no axis of x", wb_var_dims(F(2), true, 5), ARGUMENT,                   \
      "var: dimension 5 is outside an array of 1 dimensions, (2)")                                 \
    X(53, "an axis that is no int", wb_sum_dims(F(2, 3), 1ll << 32), ARGUMENT,                     \
      "sum: dimension 4294967296 is outside an array of 2 dimensions, (2, 3)")                     \
    X(54, "the largest of nothing", wb_maximum(F(0, 3)), SHAPE,                                    \
      "maximum: x must have at least one element, got (0, 3)")                                     \
    X(55, "the smallest of nothing", wb_minimum(F(0, 3)), SHAPE,                                   \
      "minimum: x must have at least one element, got (0, 3)")                                     \
    X(56, "a reshape to other counts", wb_reshape(F(2, 3), 4, 2), SHAPE,                           \
      "reshape: (2, 3) has 6 elements and cannot become (4, 2)")                                   \
    X(57, "a rest that is no whole number", wb_reshape(F(2, 3), 4, -1), SHAPE,                     \
      "reshape: (2, 3) has 6 elements and cannot become (4, -1)")                                  \
    X(58, "two unknown sizes", wb_reshape(F(2, 3), -1, -1), SHAPE,                                 \
      "reshape: (2, 3) has 6 elements and cannot become (-1, -1)")                                 \
    X(59, "two negative sizes", wb_reshape(F(2, 3), -2, -3), SHAPE,                                \
      "reshape: (2, 3) has 6 elements and cannot become (-2, -3)")                                 \
    X(60, "an unknown size beside 0", wb_reshape(F(0), 0, -1), SHAPE,                              \
      "reshape: (0) has 0 elements and cannot become (0, -1)")                                     \
    X(61, "a reshape that overflows", wb_reshape(F(2, 3), 1ll << 62, 4, -1), SHAPE,                \
      "reshape: (2, 3) has 6 elements and cannot become (4611686018427387904, 4, -1)")             \
    X(62, "no order of dimensions", wb_permute(F(2, 3), 0, 0), ARGUMENT,                           \
      "permute: (0, 0) must name each of the 2 dimensions of (2, 3) once")                         \
    X(63, "too few dimensions", wb_permute(F(2, 3), 0), ARGUMENT,                                  \
      "permute: (0) must name each of the 2 dimensions of (2, 3) once")                            \
    X(64, "a slice beyond the end", wb_slice(F(5), 0, 2, 6, 1), ARGUMENT,                          \
      "slice: start 2, stop 6, step 1 do not fit dimension 0 of (5)")                              \
    X(65, "a slice from before the start", wb_slice(F(5), 0, -1, 3, 1), ARGUMENT,                  \
      "slice: start -1, stop 3, step 1 do not fit dimension 0 of (5)")                             \
    X(66, "a slice without a step", wb_slice(F(5), 0, 0, 3, 0), ARGUMENT,                          \
      "slice: the step must not be 0")                                                             \
    X(67, "a slice against its step", wb_slice(F(5), 0, 1, 3, -1), ARGUMENT,                       \
      "slice: start 1, stop 3, step -1 do not fit dimension 0 of (5)")                             \
    X(68, "an expansion of 2 to 3", wb_expand(F(2), 3), SHAPE,                                     \
      "expand: (2) cannot be repeated to (3)")                                                     \
    X(69, "an expansion to fewer dimensions", wb_expand(F(1, 1), 3), SHAPE,                        \
      "expand: (1, 1) cannot be repeated to (3)")                                                  \
    X(70, "a squeeze of 2", wb_squeeze(F(2, 1), 0), SHAPE,                                         \
      "squeeze: dimension 0 of (2, 1) must have size 1")                                           \
    X(71, "a batch of a scalar", wb_flatten_batch(wb_scalar(WB_F32, 1)), SHAPE,                    \
      "flatten: a scalar has no batch dimension")                                                  \
    X(72, "a join of other sizes", wb_concat(0, F(2, 3), F(2, 4)), SHAPE,                          \
      "concat: all sizes but that of dimension 0 must be equal, but array 0 is (2, 3) and array "  \
      "1 (2, 4)")                                                                                  \
    X(73, "a join of other dimensions", wb_concat(0, F(2, 3), F(2, 3), F(2)), SHAPE,               \
      "concat: all sizes but that of dimension 0 must be equal, but array 0 is (2, 3) and array "  \
      "2 (2)")                                                                                     \
    X(74, "a stack of other sizes", wb_stack(0, F(2), F(3)), SHAPE,                                \
      "concat: all sizes but that of dimension 0 must be equal, but array 0 is (1, 2) and array "  \
      "1 (1, 3)")                                                                                  \
    X(75, "a join of nothing", wb_concat_make(0, 0, NULL), ARGUMENT,                               \
      "concat: needs at least one array")                                                          \
    X(76, "a negative border", wb_pad(F(2), 0, -1, 1, 0), ARGUMENT,                                \
      "pad: paddings must not be negative, got -1 before and 1 after")                             \
    X(77, "a border that overflows", wb_pad(F(2), 0, INT64_MAX, INT64_MAX, 0), SHAPE,              \
      "pad: (9223372036854775807) has more elements than memory can hold")                         \
    X(78, "NULL is no number", wb_exp(NULL), ARGUMENT, "exp: x is NULL")                           \
    X(79, "NULL is no operand", wb_add(F(2), NULL), ARGUMENT, "add: y is NULL")                    \
    X(80, "NULL is no first operand", wb_add(NULL, NULL), ARGUMENT, "add: x is NULL")              \
    X(81, "NULL is no activation's input", wb_gelu(NULL), ARGUMENT, "gelu: x is NULL")             \
    X(82, "NULL is no condition", wb_select(NULL, F(1), F(1)), ARGUMENT,                           \
      "select: condition is NULL")                                                                 \
    X(83, "NULL is no matrix", wb_matmul(NULL, F(2, 2)), ARGUMENT, "matmul: A is NULL")            \
    X(84, "NULL is no second matrix", wb_matmul(F(2, 2), NULL), ARGUMENT, "matmul: B is NULL")     \
    X(85, "NULL is no filter", wb_conv_op(F(4, 1, 1), NULL, .groups = 1), ARGUMENT,                \
      "conv: w is NULL")                                                                           \
    X(86, "NULL has no sum", wb_sum(NULL), ARGUMENT, "sum: x is NULL")                             \
    X(87, "NULL has no softmax", wb_softmax(NULL), ARGUMENT, "softmax: x is NULL")                 \
    X(88, "NULL has no sizes", wb_reshape(NULL, 3), ARGUMENT, "reshape: x is NULL")                \
    X(89, "NULL has no slices", wb_slice(NULL, 0, 0, 1, 1), ARGUMENT, "slice: x is NULL")          \
    X(90, "NULL joins nothing", wb_concat(0, F(2), NULL), ARGUMENT, "concat: array 1 is NULL")     \
    X(91, "NULL is not stacked", wb_stack(0, NULL, F(2)), ARGUMENT, "stack: array 0 is NULL")      \
    X(92, "NULL is no index", wb_gather(F(2), NULL, 0), ARGUMENT, "gather: index is NULL")         \
    X(93, "NULL is no base", wb_scatter_add(NULL, I(1), F(1), 0), ARGUMENT,                        \
      "scatter_add: base is NULL")                                                                 \
    X(94, "NULL is no memory", wb_from(WB_F32, NULL, 3), ARGUMENT, "from: data is NULL")           \
    X(95, "NULL is not cast", wb_cast(NULL, WB_F32), ARGUMENT, "cast: x is NULL")                  \
    X(96, "NULL is not pooled", wb_maxpool_op(NULL, .kernel = {2}), ARGUMENT,                      \
      "maxpool: x is NULL")                                                                        \
    X(97, "NULL is not stopped", wb_stop_gradient(NULL), ARGUMENT, "stop_gradient: x is NULL")     \
    X(98, "NULL is not normalised", wb_normalise(NULL, 1, 0), ARGUMENT, "normalise: x is NULL")    \
    X(99, "NULL has no smallest", wb_minimum_dims(NULL, 0), ARGUMENT, "minimum: x is NULL")        \
    X(100, "a padding after that overflows",                                                       \
      wb_conv_op(F(4, 1, 1), F(3, 1, 1), .pad = {1}, .pad_more = {INT64_MAX}), ARGUMENT,           \
      "conv: more padding after must be below 1048576, got 9223372036854775807")                   \
    X(101, "a number of groups that overflows",                                                    \
      wb_conv_op(F(4, 2, 1), F(3, 2, 1), .groups = INT64_MAX), ARGUMENT,                           \
      "conv: groups must be below 1048576, got 9223372036854775807")                               \
    X(102, "negative groups", wb_conv_op(F(4, 2, 1), F(3, 2, 1), .groups = -1), ARGUMENT,          \
      "conv: groups must be at least 1, got -1")                                                   \
    X(103, "fewer than no dimensions", wb_reshape_make(F(1), -1, NULL), SHAPE,                     \
      "reshape: -1 dimensions; an array has 0 to 8")                                               \
    X(104, "a gather to nine dimensions", wb_gather(F(1, 1, 1, 1, 1, 1, 1, 1), I(1, 1), 0), SHAPE, \
      "gather: (1, 1, 1, 1, 1, 1, 1, 1) at (1, 1) positions has more than 8 dimensions")           \
    X(105, "an order beyond 32 bits", wb_permute(F(2, 3), 0, (1ll << 32) + 1), ARGUMENT,           \
      "permute: (0, 4294967297) must name each of the 2 dimensions of (2, 3) once")                \
    X(106, "an axis to flip", wb_flip(F(2, 3), 2), ARGUMENT,                                       \
      "flip: dimension 2 is outside an array of 2 dimensions, (2, 3)")                             \
    X(107, "a negative axis of argmax", wb_argmax(F(2, 3), -3), ARGUMENT,                          \
      "argmax: dimension -3 is outside an array of 2 dimensions, (2, 3)")                          \
    X(108, "a backward slice from behind the end", wb_slice(F(2, 3), 1, 3, -1, -1), ARGUMENT,      \
      "slice: start 3, stop -1, step -1 do not fit dimension 1 of (2, 3)")                         \
    X(109, "bool added to", wb_scatter_add(wb_zeros(WB_BOOL, 3), I(1), wb_zeros(WB_BOOL, 1), 0),   \
      DTYPE, "scatter_add: base must not be bool")                                                 \
    X(110, "an iota without dimensions", wb_iota_make(WB_F32, 0, 0, NULL), ARGUMENT,               \
      "iota: dimension 0 is outside an array of 0 dimensions")

#define X(number, name, call, status, message)                                                     \
    static wb_array *call_##number(void) { return call; }
CALLS(X)
#undef X

typedef struct row {
    const char *name;
    call_fn *call;
    wb_status status;
    const char *message;
} row;

static const row rows[] = {
#define X(number, name, call, status, message) {name, call_##number, WB_ERROR_##status, message},
    CALLS(X)
#undef X
};

static void is_refused(void **state) {
    const row *r = *state;
    assert_null(r->call());
    assert_true(wb_failed());
    assert_int_equal(wb_error_status(), r->status);
    assert_string_equal(wb_error_message(), r->message);
    wb_clear_error();
    assert_true(wb_item(wb_sum(wb_ones(WB_F32, 2, 3))) == 6); /* and life goes on */
}

static void doers_say_why(void **state) {
    (void)state;
    float numbers[6];
    wb_array *x = wb_ones(WB_F32, 2, 3), *g[1];
    assert_true(isnan(wb_item(x)));
    assert_error(WB_ERROR_SHAPE, "item: the array must have one element, but (2, 3) has 6");
    assert_true(isnan(wb_item(NULL)));
    assert_error(WB_ERROR_ARGUMENT, "item: x is NULL");
    assert_int_equal(wb_read(x, numbers, 20), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read: (2, 3) of f32 needs 24 bytes, but there is room for 20");
    assert_int_equal(wb_read_f32(x, numbers, 5), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_f32: (2, 3) has 6 elements, but there is room for 5");
    assert_true(isnan(wb_at(x, 2, 0)));
    assert_error(WB_ERROR_ARGUMENT, "at: there is no element (2, 0) in (2, 3)");
    assert_true(isnan(wb_at(x, 0)));
    assert_error(WB_ERROR_ARGUMENT, "at: there is no element (0) in (2, 3)");
    assert_int_equal(wb_eval(x, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "eval: array 1 is NULL");
    g[0] = x;
    assert_int_equal(wb_gradient_of(x, 1, &x, g), WB_ERROR_GRADIENT);
    assert_null(g[0]);
    assert_error(WB_ERROR_GRADIENT, "gradient: the loss must be one number, but has 6 "
                                    "elements in (2, 3)");
    assert_int_equal(wb_gradient_of(wb_sum(wb_cast(x, WB_I32)), 1, &x, g), WB_ERROR_DTYPE);
    assert_error(WB_ERROR_DTYPE, "gradient: the result must have a floating type, got i64");
    assert_int_equal(wb_pullback(x, wb_ones(WB_F32, 3, 2), 1, &x, g), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE,
                 "pullback: the cotangent must have the result's sizes (2, 3), got (3, 2)");
    assert_int_equal(wb_gradient_of(wb_sum(x), 1, (wb_array *[]){NULL}, g), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "gradient: array 0 is NULL");
    assert_false(wb_approx(x, wb_ones(WB_F32, 3, 2), 0, 0, NULL, 0));
    assert_false(wb_failed());
}

static void odd_slices(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 3);
    assert_values(wb_slice(x, 0, 1, 3, INT64_MAX), 0, 2);
    assert_values(wb_slice(x, 0, 1, -1, INT64_MIN), 0, 2);
    assert_int_equal(wb_count(wb_slice(x, 0, 3, 3, 1)), 0);
    assert_int_equal(wb_count(wb_slice(x, 0, 2, 2, -1)), 0);
    assert_int_equal(wb_count(wb_slice(wb_zeros(WB_F32, 0), 0, 0, 0, 2)), 0);
    assert_values(wb_flip(wb_slice(x, 0, 2, -1, -2), 0), 0, 1, 3);
}

/* The first error stays, whatever fails afterwards; NULLs pass through without a word of their
 * own. */
static void the_first_error_stays(void **state) {
    (void)state;
    wb_array *y = wb_exp(wb_add(F(3), F(4)));
    assert_null(wb_sum(wb_matmul(y, wb_reshape(F(2), 3))));
    assert_null(wb_concat(0, y, F(2)));
    assert_true(isnan(wb_item(y)));
    double number;
    assert_int_equal(wb_read_f64(y, &number, 1), WB_ERROR_SHAPE);
    assert_int_equal(wb_error_status(), WB_ERROR_SHAPE);
    assert_string_equal(wb_error_message(), "add: sizes (3) and (4) do not broadcast");
    wb_clear_error();
    assert_false(wb_failed());
    assert_string_equal(wb_error_message(), "");
}

static void an_error_does_not_stop_what_is_right(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *good = wb_add(x, x);
    assert_null(wb_add(x, F(5)));
    assert_values(good, 0, 2, 4);
    assert_values(wb_mul_number(x, 3), 0, 3, 6);
    assert_true(wb_failed());
    wb_clear_error();
}

static void taking_an_error_clears_it(void **state) {
    (void)state;
    char text[16];
    assert_int_equal(wb_take_error(text, sizeof text), WB_OK);
    assert_string_equal(text, "");
    assert_null(wb_add(F(3), F(4)));
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_SHAPE);
    assert_string_equal(text, "add: sizes (3) ");
    assert_false(wb_failed());
    assert_null(wb_slice(F(3), 0, 0, 1, 0));
    assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_ARGUMENT);
    assert_int_equal(wb_error_status(), WB_OK);
}

static char last_line[256];
static void remember(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_ERROR) (void)snprintf(last_line, sizeof last_line, "%s", line);
}

static void reports_go_to_the_log(void **state) {
    (void)state;
    wb_log_to(remember, NULL);
    assert_int_equal(wb_report("predict"), 0);
    assert_null(wb_matmul(F(2, 5), F(4)));
    assert_int_equal(wb_report("predict"), 1);
    wb_log_to(NULL, NULL);
    assert_string_equal(last_line, "predict: matmul: A is (2, 5), so B needs 5 elements, "
                                   "but is (4)");
    assert_false(wb_failed());
}

static void every_status_has_a_text(void **state) {
    (void)state;
    assert_string_equal(wb_status_text(WB_OK), "success");
    assert_string_equal(wb_status_text(WB_ERROR_SHAPE), "sizes do not fit");
    assert_string_equal(wb_status_text((wb_status)999), "unknown status");
}

static void memory_that_cannot_be_had_is_an_error(void **state) {
    (void)state;
    NEEDS_64_BITS();
    wb_array *x = wb_add_number(wb_zeros(WB_F64, 1ll << 30, 1ll << 24), 1);
    assert_non_null(x);
    assert_int_equal(wb_eval(x), WB_ERROR_MEMORY);
    assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
    assert_null(wb_copy(x));
    assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
}

/* The n-th allocation fails, for every n, until none does: each time an error, and nothing left
 * behind. */
static wb_array *some_work(void) {
    wb_array *x = wb_from(WB_F32, ((float[]){1, 2, 3, 4}), 2, 2),
             *y = wb_softmax(wb_matmul(x, wb_transpose(x)));
    wb_array *z = wb_stack(0, y, wb_uniform(WB_F32, 2, 2)), *g = NULL;
    if (!z || wb_gradient_of(wb_sum(wb_mul(z, z)), 1, &x, &g) != WB_OK) return NULL;
    return wb_read_begin(g) ? wb_read_end(g), wb_gather(g, wb_zeros(WB_I32, 3), 1) : NULL;
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    for (int64_t n = 1; n < 2000; n++) {
        const wb_live_counts before = live_now();
        assert_int_equal(wb_scope_open(), WB_OK);
        (void)wb_fail_allocation(n);
        wb_array *y = some_work();
        const bool done = y && wb_eval(y) == WB_OK;
        (void)wb_fail_allocation(0);
        const wb_status status = wb_take_error(NULL, 0);
        assert_int_equal(status, done ? WB_OK : WB_ERROR_MEMORY);
        assert_int_equal(wb_scope_close(), WB_OK);
        const wb_live_counts after = live_now();
        assert_int_equal(after.arrays, before.arrays);
        assert_int_equal(after.buffers, before.buffers);
        if (done) return;
    }
    fail_msg("it never succeeded");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(doers_say_why),
        TEST(odd_slices),
        TEST(any_allocation_may_fail),
        TEST(the_first_error_stays),
        TEST(an_error_does_not_stop_what_is_right),
        TEST(taking_an_error_clears_it),
        TEST(reports_go_to_the_log),
        TEST(every_status_has_a_text),
        TEST(memory_that_cannot_be_had_is_an_error),
    };
    ADD_ROWS(&tests, rows, is_refused);
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_errors", &tests, NULL, NULL);
}
