/* Positions of the largest elements. A call finds one position in each run of elements along a
 * dimension; if there are several runs, the same is done with the elements at these positions. */
#include "ops/check.h"

/* A dimension of more than MOST elements is searched in runs, and devices search each run by an
 * item. */
enum { MOST = 1024, RUN = 256 };

static wb_array *in_runs(wb_array *x, int dim, int64_t run) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
    sizes[dim] = (x->sizes[dim] + run - 1) / run;
    return wb_node_with(WB_OP_argmax, WB_I64, x->ndim, sizes, 1, &x,
                        WB_WORDS(runs, .dim = dim, .run = run));
}

static wb_array *positions(wb_array *x, int dim) {
    if (!x || x->sizes[dim] <= MOST) return x ? in_runs(x, dim, x->sizes[dim]) : NULL;
    wb_array *firsts = in_runs(x, dim, RUN);
    wb_array *best = firsts ? positions(wb_take_along(x, firsts, dim), dim) : NULL;
    return best ? wb_take_along(firsts, best, dim) : NULL;
}

static wb_array *position(const char *function, wb_array *x, int dim, bool of_smallest) {
    if (!wb_is_usable(x)) return wb_refuse(function, x, "x");
    dim = wb_check_dim_of(function, dim, x);
    if (dim < 0) return NULL;
    if (x->sizes[dim] == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "%s: x must have at least one element, got %s",
                            function, wb_text_of(x));
    if (of_smallest) x = wb_turned(x);
    return x ? positions(wb_keys_of(x), dim) : NULL;
}

wb_array *wb_argmax(wb_array *x, int dim) { return position("argmax", x, dim, false); }
wb_array *wb_argmin(wb_array *x, int dim) { return position("argmin", x, dim, true); }

/* Positions have no derivative; that of values at them is gather's. */
void wb_vjp_argmax(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)o, (void)g, (void)want, (void)out;
}

CHECK(argmax, SQUARE(wb_take_along(SQUARE(x), wb_argmax(SQUARE(x), 1), 1)), 1, {{2, {2, 5}}}, 0.2,
      4)
