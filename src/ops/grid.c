/* Sampling at places between elements. It is linear in x, and piecewise linear in each coordinate
 * of the grid: a derivative by a coordinate is the same sum with other weights
 * (wb_grid_call.slopes), so that two calls, each the adjoint of the other in x, have all
 * derivatives of any order. */
#include "ops/check.h"

static wb_grid_call call_of(const wb_array *node) {
    return *(const wb_grid_call *)wb_payload_words(node->payload);
}

static wb_array *grid_node(wb_op op, const wb_grid_call *c, wb_array *a, wb_array *grid) {
    const int64_t *spatial = op == WB_OP_grid_sample ? c->out : c->in;
    int64_t sizes[WB_MAX_DIMS];
    const int dims = (int)c->dims;
    for (int d = 0; d < dims; d++) sizes[d] = spatial[d];
    sizes[dims] = c->channels, sizes[dims + 1] = c->batch;
    wb_payload *payload = wb_payload_of_words(c, sizeof *c);
    return payload ? wb_node_described(op, (wb_dtype)a->dtype, dims + 2, sizes, 2,
                                       (wb_array *[]){a, grid}, 0, NULL, payload)
                   : NULL;
}

/* ---- what is asked for ---- */

static bool fits(const wb_array *x, const wb_array *grid) {
    const int dims = x->ndim - 2;
    bool good = dims >= 1 && dims <= 3 && grid->ndim == x->ndim && grid->sizes[0] == dims &&
                grid->sizes[dims + 1] == x->sizes[dims + 1];
    for (int d = 0; good && d < dims; d++) good = x->sizes[d] > 0 || wb_count(grid) == 0;
    if (!good)
        (void)wb_fail(
            WB_ERROR_SHAPE,
            "grid_sample: x must be (W, [H, [D,]] C, N) with W, H and D at least 1, and grid "
            "(1, 2 or 3 coordinates, W', [H', [D',]] N), got x %s and grid %s",
            wb_text_of(x), wb_text_of(grid));
    return good;
}

static bool is_padding(int padding) {
    if (padding >= WB_GRID_ZEROS && padding <= WB_GRID_REFLECTION) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "grid_sample: padding must be a wb_grid_padding, got %d",
                  padding);
    return false;
}

wb_array *wb_grid_sample_make(wb_array *x, wb_array *grid, wb_grid_sample_desc desc) {
    if (!wb_is_usable(x)) return wb_refuse("grid_sample", x, "x");
    if (!wb_is_usable(grid)) return wb_refuse("grid_sample", grid, "grid");
    if (!wb_check_start("grid_sample", desc.start_) || !fits(x, grid) || !is_padding(desc.padding))
        return NULL;
    const wb_dtype dtype = wb_promote((wb_dtype)x->dtype, (wb_dtype)grid->dtype);
    if (!wb_dtype_is_float(dtype))
        return wb_fail_null(
            WB_ERROR_DTYPE, "grid_sample: x or grid must be floating, got %s and %s",
            wb_dtype_name((wb_dtype)x->dtype), wb_dtype_name((wb_dtype)grid->dtype));
    const int dims = x->ndim - 2;
    wb_grid_call c = {.channels = x->sizes[dims],
                      .batch = x->sizes[dims + 1],
                      .dims = dims,
                      .nearest = desc.nearest,
                      .padding = desc.padding,
                      .align_corners = desc.align_corners};
    for (int d = 0; d < 3; d++) {
        c.in[d] = d < dims ? x->sizes[d] : 1;
        c.out[d] = d < dims ? grid->sizes[1 + d] : 1;
    }
    x = wb_cast(x, dtype), grid = wb_cast(grid, dtype);
    return x && grid ? grid_node(WB_OP_grid_sample, &c, x, grid) : NULL;
}

/* ---- derivatives ---- */

/* The slope of y along coordinate d, which has the sizes of y, times g, summed over channels:
 * (1, out..., batch). */
static wb_array *along(wb_grid_call c, int d, wb_array *x, wb_array *g, wb_array *grid) {
    const int dims = (int)c.dims;
    int64_t sizes[WB_MAX_DIMS] = {1};
    for (int i = 1; i < grid->ndim; i++) sizes[i] = grid->sizes[i];
    if (c.nearest || c.slopes >> d & 1)
        return wb_full_make((wb_dtype)g->dtype, 0, grid->ndim, sizes);
    c.slopes |= 1 << d;
    wb_array *slope = grid_node(WB_OP_grid_sample, &c, x, grid);
    wb_array *sum = slope ? wb_sum_dims(MUL(g, slope), dims) : NULL;
    return sum ? wb_reshape_make(sum, grid->ndim, sizes) : NULL;
}

/* The grid's cotangent, where y of x has the cotangent g. */
static wb_array *of_grid(const wb_grid_call *c, wb_array *grid, wb_array *x, wb_array *g) {
    wb_array *parts[3] = {NULL};
    for (int d = 0; d < (int)c->dims; d++)
        if (!(parts[d] = along(*c, d, x, g, grid))) return NULL;
    return wb_concat_make(0, (int)c->dims, parts);
}

void wb_vjp_grid_sample(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_grid_call c = call_of(o);
    if (want[0]) out[0] = grid_node(WB_OP_grid_put, &c, g, o->inputs[1]);
    if (want[1]) out[1] = of_grid(&c, o->inputs[1], o->inputs[0], g);
}

/* A grid coordinate outside contributes nothing, also to the derivatives. */
void wb_vjp_grid_put(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    wb_grid_call c = call_of(o);
    c.skips = 1;
    if (want[0]) out[0] = grid_node(WB_OP_grid_sample, &c, g, o->inputs[1]);
    if (want[1]) out[1] = of_grid(&c, o->inputs[1], g, o->inputs[0]);
}

/* Coordinates between -0.9 and 0.9, beside which lie no kinks for these sizes. */
static wb_array *checked(wb_array *x, wb_array *y, int power) {
    wb_array *grid = wb_mul_number(wb_sin(y), 0.3);
    wb_array *z = wb_grid_sample(x, grid, .align_corners = false);
    return power > 1 ? SQUARE(z) : z;
}

CHECK(grid_sample, checked(SQUARE(x), y, 2), 2, {{4, {3, 4, 2, 2}}, {4, {2, 2, 3, 2}}}, 0.2, 0.9)
CHECK(grid_put, checked(SQUARE(x), y, 1), 2, {{4, {3, 4, 2, 2}}, {4, {2, 2, 3, 2}}}, 0.2, 0.9)
