/* Initialisers. */
#include <math.h>

#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"

typedef struct fans {
    double in, out;
} fans;

/* The fans; where a size is zero there is nothing to scale, and they are 1. */
static fans fans_of(int ndim, const int64_t *sizes) {
    int64_t in, out;
    wb_nfan(ndim, sizes, &in, &out);
    return (fans){in > 0 ? (double)in : 1, out > 0 ? (double)out : 1};
}

void wb_nfan(int ndim, const int64_t *sizes, int64_t *fan_in, int64_t *fan_out) {
    if (!sizes) ndim = 0;
    const int64_t rows = ndim > 1 ? sizes[ndim - 2] : 1;
    int64_t window = 1;
    for (int d = 0; d < ndim - 2; d++) window = wb_times(window, sizes[d]);
    const int64_t in = ndim > 2 ? wb_times(window, rows) : ndim == 2 ? sizes[1] : 1;
    const int64_t columns = ndim ? sizes[ndim - 1] : 1;
    const int64_t out = ndim == 2 ? rows : wb_times(window, columns);
    if (fan_in) *fan_in = in;
    if (fan_out) *fan_out = out;
}

/* Parameters are data: evaluates x, made in the innermost scope, and passes it on to the one
 * around. */
static wb_array *finish(wb_array *x) {
    wb_array *left = x && wb_evaluate_roots(1, &x) == WB_OK ? x : NULL;
    return wb_scope_close_leaving(1, &left) == WB_OK ? left : NULL;
}

/* Settings must be finite numbers; opens a scope, which finish closes. */
static bool begin(const char *function, const char *setting, double value) {
    if (isfinite(value)) return wb_scope_begin();
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be finite, got %g", function, setting, value);
    return false;
}

/* ---- uniform, normal, constant ---- */

static wb_array *uniform(const char *function, int ndim, const int64_t *sizes, wb_dtype dtype,
                         double gain, double bound) {
    if (!begin(function, "gain", gain)) return NULL;
    wb_array *u = wb_uniform_make(dtype, ndim, sizes);
    return finish(wb_mul_number(wb_add_number(u, -0.5), 2 * gain * bound));
}

static wb_array *normal(const char *function, int ndim, const int64_t *sizes, wb_dtype dtype,
                        double gain, double deviation) {
    if (!begin(function, "gain", gain)) return NULL;
    return finish(wb_mul_number(wb_normal_make(dtype, ndim, sizes), gain * deviation));
}

static wb_array *full(int ndim, const int64_t *sizes, wb_dtype dtype, double value) {
    return wb_scope_begin() ? finish(wb_full_make(dtype, value, ndim, sizes)) : NULL;
}

wb_array *wb_glorot_uniform_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain) {
    const fans f = fans_of(ndim, sizes);
    return uniform("glorot_uniform", ndim, sizes, dtype, gain, sqrt(6 / (f.in + f.out)));
}

wb_array *wb_glorot_normal_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain) {
    const fans f = fans_of(ndim, sizes);
    return normal("glorot_normal", ndim, sizes, dtype, gain, sqrt(2 / (f.in + f.out)));
}

wb_array *wb_kaiming_uniform_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain) {
    const fans f = fans_of(ndim, sizes);
    return uniform("kaiming_uniform", ndim, sizes, dtype, gain, sqrt(3 / f.in));
}

wb_array *wb_kaiming_normal_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain) {
    const fans f = fans_of(ndim, sizes);
    return normal("kaiming_normal", ndim, sizes, dtype, gain, sqrt(1 / f.in));
}

wb_array *wb_lecun_normal_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain) {
    const double deviation = fabs(gain) * sqrt(1 / fans_of(ndim, sizes).in);
    if (!begin("lecun_normal", "gain", gain)) return NULL;
    return finish(wb_truncated_normal_make(dtype, 0, deviation, -2, 2, ndim, sizes));
}

/* With the settings of its default. */
#define BY_DEFAULT(name, ...)                                                                      \
    wb_array *wb_##name(int ndim, const int64_t *sizes, wb_dtype dtype) {                          \
        return wb_##name##_with(ndim, sizes, dtype, __VA_ARGS__);                                  \
    }
static const double root_of_2 = 1.4142135623730951;
BY_DEFAULT(glorot_uniform, 1)
BY_DEFAULT(glorot_normal, 1)
BY_DEFAULT(kaiming_uniform, root_of_2)
BY_DEFAULT(kaiming_normal, root_of_2)
BY_DEFAULT(lecun_normal, 1)
BY_DEFAULT(orthogonal, 1)
BY_DEFAULT(identity_init, 1, NULL)
BY_DEFAULT(sparse_init, 0.1, 0.01)

wb_array *wb_truncated_normal_init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    if (!wb_scope_begin()) return NULL;
    return finish(wb_truncated_normal_make(dtype, 0, 1, -2, 2, ndim, sizes));
}

wb_array *wb_uniform_init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return wb_scope_begin() ? finish(wb_uniform_make(dtype, ndim, sizes)) : NULL;
}

wb_array *wb_normal_init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return wb_scope_begin() ? finish(wb_normal_make(dtype, ndim, sizes)) : NULL;
}

wb_array *wb_zeros_init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return full(ndim, sizes, dtype, 0);
}

wb_array *wb_ones_init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return full(ndim, sizes, dtype, 1);
}

wb_array *wb_sparse_init_with(int ndim, const int64_t *sizes, wb_dtype dtype, double sparsity,
                              double std) {
    if (!wb_check_list("sparse_init", ndim, sizes)) return NULL;
    if (ndim != 2)
        return wb_fail_null(WB_ERROR_SHAPE, "sparse_init: 2 dimensions are expected, got %d", ndim);
    if (!(sparsity >= 0))
        return wb_fail_null(WB_ERROR_ARGUMENT, "sparse_init: sparsity must be at least 0, got %g",
                            sparsity);
    if (!begin("sparse_init", "std", std)) return NULL;
    /* in each column random numbers say which come first */
    const double zeros = ceil(fmin(sparsity, 1) * (double)sizes[0]);
    wb_array *w = wb_mul_number(wb_normal_make(dtype, ndim, sizes), std);
    wb_array *order = w ? wb_argsort(wb_uniform_make(WB_F32, ndim, sizes), 0, false) : NULL;
    return finish(wb_select(wb_lt(order, wb_constant(zeros)), wb_scalar(dtype, 0), w));
}

/* ---- computed on the host ---- */

/* The numbers, which it releases, as an array of the type; the scope that is open is closed. */
static wb_array *finish_numbers(int ndim, const int64_t *sizes, wb_dtype dtype, double *numbers) {
    const int64_t count = wb_count_sizes(ndim, sizes);
    if (dtype == WB_F64) {
        wb_array *x = wb_from_make(dtype, numbers, ndim, sizes);
        wb_release(numbers);
        return finish(x);
    }
    float *rounded = wb_alloc_list(count + 1, sizeof *rounded);
    for (int64_t i = 0; rounded && i < count; i++) rounded[i] = (float)numbers[i];
    wb_array *x = rounded ? wb_from_make(WB_F32, rounded, ndim, sizes) : NULL;
    wb_release(rounded);
    wb_release(numbers);
    return finish(x ? wb_cast(x, dtype) : NULL);
}

/* Sizes and type that numbers can be computed for. */
static bool takes(const char *function, int ndim, const int64_t *sizes, wb_dtype dtype) {
    if (!wb_check_dtype(function, dtype) || !wb_check_sizes(function, ndim, sizes)) return false;
    if (wb_dtype_is_float(dtype)) return true;
    (void)wb_fail(WB_ERROR_DTYPE, "%s: the type must be floating, got %s", function,
                  wb_dtype_name(dtype));
    return false;
}

/* Element (..., i, i) at the centre of the kernel, moved by shift, cyclically. */
static int64_t place_of_one(int ndim, const int64_t *sizes, const int64_t *shift, int64_t i) {
    int64_t place = 0, stride = 1;
    for (int d = 0; d < ndim; d++) {
        const int64_t from = d < ndim - 2 ? (sizes[d] - 1) / 2 : i;
        const int64_t by = shift ? shift[d] % sizes[d] : 0;
        place += (from + by + sizes[d]) % sizes[d] * stride;
        stride *= sizes[d];
    }
    return place;
}

wb_array *wb_identity_init_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain,
                                const int64_t *shift) {
    if (!takes("identity_init", ndim, sizes, dtype)) return NULL;
    const int64_t count = wb_count_sizes(ndim, sizes);
    if (!begin("identity_init", "gain", gain)) return NULL;
    double *numbers = wb_alloc_list(count + 1, sizeof *numbers);
    if (!numbers) return finish(NULL);
    const int64_t rows = ndim > 1 ? sizes[ndim - 2] : 0, columns = ndim > 1 ? sizes[ndim - 1] : 0;
    for (int64_t i = 0; count > 0 && i < rows && i < columns; i++)
        numbers[place_of_one(ndim, sizes, shift, i)] = gain;
    return finish_numbers(ndim, sizes, dtype, numbers);
}

/* In LANES separate sums, so that the compiler makes vector code. */
static double dot(int64_t n, const double *x, const double *y) {
    enum { LANES = 8 };
    double sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) sums[k] += x[i + k] * y[i + k];
    for (; i < n; i++) sum += x[i] * y[i];
    for (int k = 0; k < LANES; k++) sum += sums[k];
    return sum;
}

/* The Q of QR, with a positive diagonal of R, by Gram and Schmidt: each column loses its parts
 * along the earlier ones, twice, since once is not enough where they are nearly parallel. */
static void orthogonalise(int64_t rows, int64_t columns, double *a) {
    for (int64_t j = 0; j < columns; j++) {
        double *column = a + j * rows;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < j; i++) {
                const double *other = a + i * rows, along = dot(rows, column, other);
                for (int64_t r = 0; r < rows; r++) column[r] -= along * other[r];
            }
        const double length = sqrt(dot(rows, column, column));
        for (int64_t r = 0; r < rows && length > 0; r++) column[r] /= length;
    }
}

/* Orthogonal columns (high, low), high >= low, times gain; turned where rows < columns. */
static void fill_orthogonal(int64_t rows, int64_t columns, double gain, double *numbers,
                            double *work) {
    const bool is_turned = rows < columns;
    const int64_t high = is_turned ? columns : rows, low = is_turned ? rows : columns;
    for (int64_t i = 0; i < rows * columns; i++) work[i] = numbers[i];
    orthogonalise(high, low, work);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            numbers[c * rows + r] = gain * (is_turned ? work[r * high + c] : work[c * high + r]);
}

wb_array *wb_orthogonal_with(int ndim, const int64_t *sizes, wb_dtype dtype, double gain) {
    if (!takes("orthogonal", ndim, sizes, dtype)) return NULL;
    if (ndim < 2)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "orthogonal: at least 2 dimensions are expected, got %d", ndim);
    if (!begin("orthogonal", "gain", gain)) return NULL;
    const int64_t count = wb_count_sizes(ndim, sizes), columns = sizes[ndim - 1];
    double *numbers = wb_alloc_list(count + 1, sizeof *numbers);
    double *work = wb_alloc_list(count + 1, sizeof *work);
    wb_array *x = wb_normal_make(dtype == WB_F64 ? WB_F64 : WB_F32, ndim, sizes);
    const bool is_read = numbers && work && x && wb_read_f64(x, numbers, count) == WB_OK;
    if (is_read && count > 0) fill_orthogonal(count / columns, columns, gain, numbers, work);
    wb_release(work);
    if (is_read) return finish_numbers(ndim, sizes, dtype, numbers);
    wb_release(numbers);
    return finish(NULL);
}
