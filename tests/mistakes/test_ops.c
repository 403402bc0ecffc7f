/* Mistakes with arrays and operations: a call, its status, and words of its message. */
#include <weber.h>

#include "mistakes/refused.h"

static void calls_alone(void **state) {
    (void)state;
    REFUSED(wb_forget_recipe(NULL), ARGUMENT, "wb_forget_recipe: x is NULL");
    REFUSED(wb_xlogx(NULL), ARGUMENT, "xlogx: x is NULL");
    REFUSED(wb_glu(NULL), ARGUMENT, "glu: x is NULL");
    REFUSED(wb_rrelu(NULL), ARGUMENT, "rrelu: x is NULL");
    REFUSED(wb_conv_op(wb_ones(WB_F32, 8, 8, 3, 1), wb_ones(WB_F32, 3, 3, 1, 10), .groups = 2),
            SHAPE, "conv: the filter takes 2 input channels, but x has 3 in (8, 8, 3, 1)");
    REFUSED(wb_conv_op(wb_ones(WB_F32, 8, 8, 4, 1), wb_ones(WB_F32, 3, 3, 2, 5), .groups = 2),
            SHAPE, "conv: 2 groups do not divide 5 filters");
    REFUSED(wb_einsum("ij", NULL), ARGUMENT, "einsum: an array is NULL");
    REFUSED(wb_clamp(NULL, 0, 1), ARGUMENT, "clamp: x is NULL");
    REFUSED(wb_isnan(NULL), ARGUMENT, "isnan: x is NULL");
    REFUSED(wb_isinf(NULL), ARGUMENT, "isinf: x is NULL");
    REFUSED(wb_isfinite(NULL), ARGUMENT, "isfinite: x is NULL");
    REFUSED(wb_number_sub(1, NULL), ARGUMENT, "sub: y is NULL");
    REFUSED(wb_read_begin(NULL), ARGUMENT, "read_begin: x is NULL");
    REFUSED(wb_pad(wb_vector(1, 2), 0, INT64_MAX, INT64_MAX, 0), SHAPE,
            "pad: (9223372036854775807) has more elements than memory can hold");
    REFUSED(wb_matmul(wb_ones(WB_I32, 2, 2), wb_ones(WB_I32, 2, 2)), DTYPE,
            "matmul: A and B must have floating types, got i32 and i32");
    FAILS(wb_matmul_precision("low"), ARGUMENT,
          "matmul_precision: expected \"highest\", \"high\" or \"medium\"");
    FAILS(wb_matmul_precision(NULL), ARGUMENT, "matmul_precision: precision is NULL");
    REFUSED(wb_add(wb_vector_of(WB_U8, 250), 300), ARGUMENT,
            "add: u8 holds whole numbers from 0 to 255, got 300");
    REFUSED(wb_and(wb_vector(1, 2), 1), DTYPE, "and");
    REFUSED(wb_read_begin(NULL), ARGUMENT, "read_begin: x is NULL");
    REFUSED(wb_copy(NULL), ARGUMENT, "copy: x is NULL");
    FAILS(wb_eval(wb_vector(1), NULL), ARGUMENT, "NULL");
    REFUSED(wb_argmin(wb_zeros(WB_F32, 0, 3), 0), SHAPE,
            "argmin: x must have at least one element, got (0, 3)");
    REFUSED(wb_roll(NULL, 1, 0), ARGUMENT, "roll: x is NULL");
    REFUSED(wb_repeat(NULL, 1, 0), ARGUMENT, "repeat: x is NULL");
    REFUSED(wb_tile(NULL, 2), ARGUMENT, "tile: x is NULL");
    REFUSED(wb_truncated_normal(WB_F32, 0, -1, -2, 2, 3), ARGUMENT,
            "truncated_normal: mean and std must be finite, std not negative, low not above high, "
            "got mean 0, std -1, low -2, high 2");
    REFUSED(wb_truncated_normal(WB_F32, 0, 1, 2, -2, 3), ARGUMENT, "low 2, high -2");
    REFUSED(wb_truncated_normal(WB_I32, 0, 1, -2, 2, 3), DTYPE,
            "uniform: the type must be floating, got i32");
    REFUSED(wb_categorical(wb_zeros(WB_F32, 0, 2), 0), SHAPE,
            "categorical: there must be at least one logit, got (0, 2)");
    REFUSED(wb_categorical(NULL, 0), ARGUMENT, "categorical: logits is NULL");
    REFUSED(wb_permutation(-1), SHAPE, "permutation: size -1 of dimension 0 in (-1) is negative");
    REFUSED(wb_softmax(wb_scalar(WB_F32, 3)), ARGUMENT,
            "softmax: dimension 0 is outside an array of 0 dimensions");
    REFUSED(wb_logsumexp(wb_zeros(WB_F32, 0, 3)), SHAPE,
            "logsumexp: x must have at least one element, got (0, 3)");
    REFUSED(wb_sort(NULL, 0, false), ARGUMENT, "sort: x is NULL");
    REFUSED(wb_argsort(NULL, 0, false), ARGUMENT, "argsort: x is NULL");
    REFUSED(wb_top_k(NULL, 1, 0, NULL), ARGUMENT, "top_k: x is NULL");
    REFUSED(wb_uniform(WB_I32, 3), DTYPE, "uniform: the type must be floating, got i32");
    REFUSED(wb_normal(WB_BOOL, 3), DTYPE, "normal: the type must be floating, got bool");
    REFUSED(wb_bernoulli(1.5, 3), ARGUMENT, "bernoulli: p must be between 0 and 1, got 1.5");
    REFUSED(wb_bernoulli((double)NAN, 3), ARGUMENT, "bernoulli: p must be between 0 and 1");
    REFUSED(wb_linspace(WB_I32, 0, 1, 2), DTYPE, "linspace: the type must be floating, got i32");
    REFUSED(wb_linspace(WB_F32, 0, 1, -1), SHAPE,
            "linspace: size -1 of dimension 0 in (-1) is negative");
    REFUSED(wb_matrix_make(WB_F32, NULL, 2, 2), ARGUMENT, "matrix: data is NULL");
}

static void of_attention(void **state) {
    (void)state;
    wb_array *q = wb_ones(WB_F32, 6, 2), *k = wb_ones(WB_F32, 6, 3), *v = wb_ones(WB_F32, 4, 3);
    REFUSED(wb_attention(q, k, v, .heads = 4), ARGUMENT,
            "attention: the features of q must be divisible by 4 heads, got 6");
    REFUSED(wb_attention(q, v, v), SHAPE,
            "attention: a head of q and one of k must have the same features");
    REFUSED(wb_attention(q, k, wb_ones(WB_F32, 4, 2)), SHAPE,
            "attention: k and v must have the same length, got");
    REFUSED(wb_attention(q, k, wb_ones(WB_F32, 4, 3, 2)), SHAPE,
            "attention: q, k and v must have the same sizes from the third on");
    REFUSED(wb_attention(q, k, v, .bias = wb_ones(WB_F32, 2, 3)), SHAPE,
            "attention: bias must broadcast to (keys, queries, heads, ...) = (3, 2, 1), got");
    REFUSED(wb_attention(q, k, v, .mask = wb_ones(WB_F32, 3, 2)), DTYPE,
            "attention: mask must be bool, got f32 (");
    REFUSED(wb_attention(q, k, v, .bias = wb_ones(WB_BOOL, 3, 2)), DTYPE,
            "attention: bias is added to the scores, but (3, 2) is bool: give it as .mask");
    REFUSED(wb_attention(q, k, v, .dropout = 1.5), ARGUMENT,
            "attention: dropout must be between 0 and 1, got 1.5");
    REFUSED(wb_attention(q, k, v, .heads = 2, .kv_heads = 3), ARGUMENT,
            "attention: heads must be a multiple of kv_heads, got 2 and 3");
    REFUSED(wb_attention(q, NULL, v), ARGUMENT, "attention: k is NULL");
    REFUSED(wb_attention(wb_ones(WB_I32, 6, 2), k, v), SHAPE,
            "attention: q must be floating and (features, length, ...), got");
    REFUSED(wb_rotary(wb_ones(WB_F32, 5, 2)), ARGUMENT,
            "rotary: features must be even for each of 1 heads, got 5");
    REFUSED(wb_sinusoidal(WB_F32, 3, 2), ARGUMENT,
            "sinusoidal: features must be even and at least 4, ");
}

static void of_grid(void **state) {
    (void)state;
    wb_array *x = wb_zeros(WB_F32, 4, 5, 3, 2), *grid = wb_zeros(WB_F32, 2, 6, 7, 2);
    REFUSED(wb_grid_sample(x, wb_zeros(WB_F32, 3, 6, 7, 2)), SHAPE,
            "got x (4, 5, 3, 2) and grid (3, 6, 7, 2)");
    REFUSED(wb_grid_sample(x, wb_zeros(WB_F32, 2, 6, 7, 1)), SHAPE,
            "and grid (1, 2 or 3 coordinates, W', [H', [D',]] N)");
    REFUSED(wb_grid_sample(wb_zeros(WB_F32, 0, 5, 3, 2), grid), SHAPE, "W, H and D at least 1");
    REFUSED(wb_grid_sample_make(x, grid, (wb_grid_sample_desc){.padding = WB_GRID_BORDER}),
            ARGUMENT, "grid_sample: the desc lacks its defaults");
    REFUSED(wb_grid_sample(x, grid, .padding = 3), ARGUMENT,
            "padding must be a wb_grid_padding, got 3");
    REFUSED(wb_grid_sample(wb_zeros(WB_I32, 4, 5, 3, 2), wb_zeros(WB_I32, 2, 6, 7, 2)), DTYPE,
            "x or grid must be floating, got i32 and i32");
}

static void of_index(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3);
    REFUSED(wb_gather(x, wb_vector(1), 0), DTYPE,
            "gather: the index must have an integer type, got f32");
    REFUSED(wb_scatter_add(x, wb_ones(WB_BOOL, 1), x, 0), DTYPE,
            "scatter_add: the index must have an integer type, got bool");
    REFUSED(wb_gather(x, wb_ones(WB_I32, 1), 2), ARGUMENT,
            "gather: dimension 2 is outside an array of 2 dimensions");
    REFUSED(wb_gather(wb_ones(WB_F32, 2, 0), wb_ones(WB_I32, 1), 1), SHAPE,
            "gather: dimension 1 of (2, 0) is empty");
    REFUSED(wb_gather(wb_ones(WB_F32, 1, 1, 1, 1, 1), wb_ones(WB_I32, 1, 1, 1, 1, 1), 1), SHAPE,
            "gather: (1, 1, 1, 1, 1) at (1, 1, 1, 1, 1) positions has more than 8 dimensions");
    REFUSED(
        wb_scatter_add(x, wb_ones(WB_I32, 2), wb_ones(WB_F32, 2, 3), 1), SHAPE,
        "scatter_add: base is (2, 3) and index (2) along dimension 1, so updates must be (2, 2), "
        "got (2, 3)");
}

static void of_matmul(void **state) {
    (void)state;
    wb_array *a = wb_ones(WB_F32, 2, 5);
    REFUSED(wb_matmul(a, wb_ones(WB_F32, 4)), SHAPE,
            "matmul: A is (2, 5), so B needs 5 elements, but is (4)");
    REFUSED(wb_matmul(a, wb_ones(WB_F32, 4, 3)), SHAPE,
            "matmul: A is (2, 5), so B needs 5 rows, but is (4, 3)");
    REFUSED(wb_matmul_transposed(a, wb_ones(WB_F32, 5, 3), true, false), SHAPE,
            "matmul: A is (2, 5) transposed, so B needs 2 rows, but is (5, 3)");
    REFUSED(wb_matmul(wb_ones(WB_F32, 5), a), SHAPE, "matmul: A must be a matrix, got (5)");
    REFUSED(wb_matmul(wb_ones(WB_F32, 2, 5, 2), wb_ones(WB_F32, 5, 3, 3)), SHAPE,
            "matmul: the batches of A (2, 5, 2) and B (5, 3, 3) do not broadcast");
    REFUSED(wb_matmul(NULL, a), ARGUMENT, "matmul: A is NULL");
}

static void of_matrix(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3);
    REFUSED(wb_tril(wb_vector(1, 2), 0), SHAPE, "tril: x must have at least 2 dimensions, got (2)");
    REFUSED(wb_triu(NULL, 0), ARGUMENT, "triu: x is NULL");
    REFUSED(wb_diag(wb_ones(WB_F32, 2, 3, 1), 0), SHAPE,
            "diag: x must be a vector or a matrix, got (2, 3, 1)");
    REFUSED(wb_diag(x, INT64_MIN), ARGUMENT, "diag: k must be between -2^30 and 2^30, got -9223");
    REFUSED(wb_diag(NULL, 0), ARGUMENT, "diag: x is NULL");
    REFUSED(wb_outer(x, wb_vector(1, 2)), SHAPE,
            "outer: x and y must be vectors, got (2, 3) and (2)");
    REFUSED(wb_outer(NULL, x), ARGUMENT, "outer: x is NULL");
    REFUSED(wb_eye(WB_F32, -1, 2), SHAPE, "eye: size -1 of dimension 0 in (-1, 2) is negative");
}

static void of_pool(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 5, 4, 1, 1);
    REFUSED(wb_maxpool_op(x, .kernel = {6, 2}), SHAPE,
            "maxpool: the window covers 6 elements of dimension 0, but x is (5, 4, 1, 1) with 0 "
            "elements of padding");
    REFUSED(wb_maxpool_op(x, .kernel = {2, 2}, .pad = WB_EACH(2, 0)), SHAPE,
            "maxpool: padding 2 must be smaller than window 2 in dimension 0 of (5, 4, 1, 1)");
    REFUSED(wb_meanpool_op(wb_ones(WB_I32, 5, 4, 1, 1), .kernel = {2, 2}), DTYPE,
            "meanpool: the type must be floating, got i32");
    REFUSED(wb_fold_make(wb_ones(WB_F32, 3, 4, 1), 4, (const int64_t[]){5, 4, 1, 1},
                         (wb_window_desc){.kernel = {2, 2}}),
            SHAPE, "fold: columns must be (12, 4, 1), got (3, 4, 1)");
}

static void of_product(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3);
    REFUSED(wb_prod_dims(x, 2), ARGUMENT, "prod: dimension 2 is outside an array of 2 dimensions");
    REFUSED(wb_prod(NULL), ARGUMENT, "prod: x is NULL");
    REFUSED(wb_cumprod(x, 2), ARGUMENT, "cumprod: dimension 2 is outside an array of 2 dimensions");
    REFUSED(wb_cumprod(NULL, 0), ARGUMENT, "cumprod: x is NULL");
}

static void of_statistics(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3);
    REFUSED(wb_std_dims(x, true, 2), ARGUMENT,
            "std: dimension 2 is outside an array of 2 dimensions");
    REFUSED(wb_std(NULL, true), ARGUMENT, "std: x is NULL");
    REFUSED(wb_norm_dims(x, 2, -3), ARGUMENT,
            "norm: dimension -3 is outside an array of 2 dimensions");
    REFUSED(wb_norm(x, (double)NAN), ARGUMENT, "norm: p must be a number, got nan");
    REFUSED(wb_norm(NULL, 2), ARGUMENT, "norm: x is NULL");
    REFUSED(wb_dot(x, wb_ones(WB_F32, 2)), SHAPE, "dot: x is (2, 3), so y must be too, got (2)");
    REFUSED(wb_dot(x, NULL), ARGUMENT, "dot: y is NULL");
    REFUSED(wb_any_dims(x, 2), ARGUMENT, "any: dimension 2 is outside an array of 2 dimensions");
    REFUSED(wb_all(NULL), ARGUMENT, "all: x is NULL");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {TEST(calls_alone), TEST(of_attention), TEST(of_grid),
                                     TEST(of_index),    TEST(of_matmul),    TEST(of_matrix),
                                     TEST(of_pool),     TEST(of_product),   TEST(of_statistics)};
    ADD_TESTS(&tests, all);
    return run_test_list("mistakes/test_ops", &tests, NULL, NULL);
}
