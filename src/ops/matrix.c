/* Triangles, diagonals, outer products: made of positions and selections. */
#include "ops/build.h"

/* The row i of each element of a matrix as a column (m, 1), its column j as a row (1, n); j - i. */
static wb_array *distance(int64_t m, int64_t n) {
    const bool is_small = m < 1 << 30 && n < 1 << 30;
    const wb_dtype dtype = is_small ? WB_I32 : WB_I64;
    wb_array *row = wb_iota_make(dtype, 0, 2, (const int64_t[]){m, 1});
    wb_array *column = wb_iota_make(dtype, 1, 2, (const int64_t[]){1, n});
    return SUB(column, row);
}

/* Diagonals beyond the matrix are all the same. */
static wb_array *number_of(int64_t k, int64_t m, int64_t n) {
    return NUM((double)(k < -m ? -m : k > n ? n : k));
}

static wb_array *where(wb_array *condition, wb_array *x) {
    return SELECT(condition, x, (wb_scalar)((wb_dtype)x->dtype, 0));
}

static bool has_rows(const char *function, wb_array *x) {
    if (!wb_is_usable(x)) {
        (void)wb_refuse(function, x, "x");
        return false;
    }
    if (x->ndim >= 2) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: x must have at least 2 dimensions, got %s", function,
                  wb_text_of(x));
    return false;
}

wb_array *wb_tril(wb_array *x, int64_t k) {
    if (!has_rows("tril", x)) return NULL;
    const int64_t m = x->sizes[0], n = x->sizes[1];
    return where(LE(distance(m, n), number_of(k, m, n)), x);
}

wb_array *wb_triu(wb_array *x, int64_t k) {
    if (!has_rows("triu", x)) return NULL;
    const int64_t m = x->sizes[0], n = x->sizes[1];
    return where(GE(distance(m, n), number_of(k, m, n)), x);
}

wb_array *wb_eye_make(wb_dtype dtype, int64_t rows, int64_t columns) {
    const int64_t sizes[2] = {rows, columns};
    if (!wb_check_dtype("eye", dtype) || !wb_check_sizes("eye", 2, sizes)) return NULL;
    wb_array *is_one = EQ(distance(rows, columns), NUM(0));
    return is_one ? wb_cast(is_one, dtype) : NULL;
}

wb_array *wb_outer(wb_array *x, wb_array *y) {
    if (!wb_is_usable(x)) return wb_refuse("outer", x, "x");
    if (!wb_is_usable(y)) return wb_refuse("outer", y, "y");
    if (x->ndim != 1 || y->ndim != 1)
        return wb_fail_null(WB_ERROR_SHAPE, "outer: x and y must be vectors, got %s and %s",
                            wb_text_of(x), wb_text_of(y));
    return MUL(x, wb_transpose(y));
}

/* ---- diagonals ---- */

/* A step of m + 1 elements goes one row down and one column to the right. */
static wb_array *diagonal_of(wb_array *x, int64_t k) {
    const int64_t m = x->sizes[0], n = x->sizes[1], down = k < 0 ? -k : 0, right = k > 0 ? k : 0;
    const int64_t rows = m - down, columns = n - right, count = rows < columns ? rows : columns;
    const int64_t first = right * m + down;
    wb_array *flat = wb_reshape(x, m * n);
    return count > 0 ? wb_slice(flat, 0, first, first + (count - 1) * (m + 1) + 1, m + 1)
                     : wb_slice(flat, 0, 0, 0, 1);
}

static wb_array *with_diagonal(wb_array *x, int64_t k) {
    const int64_t size = k < 0 ? -k : k, n = x->sizes[0] + size, sizes[2] = {n, n};
    if (!wb_check_sizes("diag", 2, sizes)) return NULL;
    wb_array *line = wb_pad(x, 0, 0, size, 0); /* by rows, or by columns */
    line = line && k < 0 ? wb_transpose(line) : line;
    return line ? where(EQ(distance(n, n), NUM((double)k)), line) : NULL;
}

wb_array *wb_diag(wb_array *x, int64_t k) {
    enum { FAR = 1 << 30 };
    if (!wb_is_usable(x)) return wb_refuse("diag", x, "x");
    if (x->ndim != 1 && x->ndim != 2)
        return wb_fail_null(WB_ERROR_SHAPE, "diag: x must be a vector or a matrix, got %s",
                            wb_text_of(x));
    if (k < -FAR || k > FAR)
        return wb_fail_null(WB_ERROR_ARGUMENT, "diag: k must be between -2^30 and 2^30, got %lld",
                            (long long)k);
    return x->ndim == 1 ? with_diagonal(x, k) : diagonal_of(x, k);
}
