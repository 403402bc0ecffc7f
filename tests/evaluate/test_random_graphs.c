/* Random graphs: fused, WEBER_FUSE=0 and WEBER_EAGER=1 against the naive evaluator, and the same
 * bits for 1, 2 and 3 threads. */
#include "array/array.h"
#include "ops/ops.h"
#include "support/naive.h"
#include "support/support.h"

enum { GRAPHS = 200, LARGE_GRAPHS = 12, MOST_VALUES = 48, MOST_OUTPUTS = 4 };

/* A value of the graph in the making. exact: small whole numbers made by exact operations, so that
 * every way of computing it gives the same bits, and steps (comparisons, floors, casts to integers)
 * may be put upon it. */
typedef struct value {
    wb_array *x;
    bool exact;
} value;

typedef struct builder {
    test_random r;
    naive_table *table;
    wb_dtype real; /* f32 or f64 */
    int64_t most;  /* largest size of a dimension */
    value values[MOST_VALUES];
    int count;
    wb_array *leaves[MOST_VALUES];
    int leaf_count;
    bool reads; /* values in the middle, while the graph is made */
} builder;

static int64_t below(builder *b, int64_t n) { return random_below(&b->r, n); }
static bool chance(builder *b, int percent) { return below(b, 100) < percent; }

/* ---- leaves ---- */

static int64_t random_size(builder *b) {
    const int64_t kind = below(b, 12);
    return kind == 0 ? 0 : kind < 4 ? 1 : 1 + below(b, b->most);
}

static value leaf(builder *b, wb_dtype dtype, int ndim, const int64_t *sizes) {
    const bool exact = !wb_dtype_is_float(dtype) || chance(b, 50);
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    double *numbers = malloc(((size_t)count + 1) * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = dtype == WB_BOOL ? (double)below(b, 2)
                     : dtype == WB_U8 ? (double)below(b, 9)
                     : exact          ? (double)(below(b, 9) - 4)
                                      : random_between(&b->r, -2, 2);
    value v = {array_of(dtype, numbers, ndim, sizes), exact};
    free(numbers);
    if (wb_dtype_is_float(dtype)) b->leaves[b->leaf_count++] = v.x;
    return v;
}

static value random_leaf(builder *b) {
    static const wb_dtype integers[] = {WB_I32, WB_I64, WB_U8, WB_BOOL};
    int64_t sizes[WB_MAX_DIMS];
    const int ndim = (int)below(b, 4);
    for (int d = 0; d < ndim; d++) sizes[d] = random_size(b);
    return leaf(b, chance(b, 75) ? b->real : integers[below(b, 4)], ndim, sizes);
}

static value pick(builder *b) { return b->values[below(b, b->count)]; }

/* An operand that broadcasts with x. */
static value partner(builder *b, value x) {
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < 6; i++) {
        const value v = pick(b);
        if (wb_broadcast(x.x->ndim, x.x->sizes, v.x->ndim, v.x->sizes, sizes) >= 0) return v;
    }
    if (chance(b, 30)) return (value){wb_number((double)(below(b, 5) - 2)), true};
    for (int d = 0; d < x.x->ndim; d++) sizes[d] = chance(b, 30) ? 1 : x.x->sizes[d];
    return leaf(b, b->real, (int)(x.x->ndim - (x.x->ndim && chance(b, 20))), sizes);
}

/* ---- operations ---- */

typedef wb_array *unary_fn(wb_array *);
typedef wb_array *binary_fn(wb_array *, wb_array *);

static value unary(builder *b, value v) {
    static const struct {
        unary_fn *fn;
        bool steps, keeps_exact;
    } list[] = {{wb_neg, false, true},         {wb_abs, false, true},
                {wb_sign, true, true},         {wb_tanh, false, false},
                {wb_erf, false, false},        {wb_sigmoid, false, false},
                {wb_softplus, false, false},   {wb_sin, false, false},
                {wb_cos, false, false},        {wb_square, false, true},
                {wb_floor, true, true},        {wb_relu, false, true},
                {wb_leakyrelu, false, false},  {wb_elu, false, false},
                {wb_gelu, false, false},       {wb_gelu_erf, false, false},
                {wb_swish, false, false},      {wb_hardsigmoid, false, false},
                {wb_hardtanh, false, true},    {wb_mish, false, false},
                {wb_softsign, false, false},   {wb_logsigmoid, false, false},
                {wb_logcosh, false, false},    {wb_lisht, false, false},
                {wb_trelu, true, true},        {wb_softshrink, false, false},
                {wb_tanhshrink, false, false}, {wb_selu, false, false},
                {wb_celu, false, false},       {wb_relu6, false, true},
                {wb_hardswish, false, false},  {wb_stop_gradient, false, true},
                {wb_exp, false, false},        {wb_expm1, false, false}};
    const int64_t i = below(b, (int64_t)(sizeof list / sizeof *list));
    if (list[i].steps && !v.exact) return (value){wb_tanh(v.x), false};
    return (value){list[i].fn(v.x), v.exact && list[i].keeps_exact};
}

/* Functions that are not defined everywhere, of something that lies where they are. */
static value partial(builder *b, value v) {
    wb_array *positive = wb_add_number(wb_square(v.x), 0.5);
    switch (below(b, 6)) {
    case 0:
        return (value){wb_log(positive), false};
    case 1:
        return (value){wb_sqrt(positive), false};
    case 2:
        return (value){wb_rsqrt(positive), false};
    case 3:
        return (value){wb_recip(positive), false};
    case 4:
        return (value){wb_log1p(positive), false};
    default:
        return (value){wb_pow(positive, wb_number(below(b, 2) ? 1.5 : -1)), false};
    }
}

static value binary(builder *b, value x) {
    static binary_fn *const smooth[] = {wb_add, wb_sub, wb_mul, wb_max, wb_min};
    static binary_fn *const steps[] = {wb_eq, wb_ne, wb_lt, wb_le, wb_gt, wb_ge};
    const value y = partner(b, x);
    const bool exact = x.exact && y.exact;
    if (exact && chance(b, 25)) return (value){steps[below(b, 6)](x.x, y.x), true};
    if (exact && chance(b, 10)) return (value){wb_mod(x.x, wb_add_number(wb_abs(y.x), 1)), true};
    if (chance(b, 10)) return (value){wb_div(x.x, wb_add_number(wb_square(y.x), 0.5)), false};
    const int64_t i = below(b, 5);
    return chance(b, 50) ? (value){smooth[i](x.x, y.x), exact}
                         : (value){smooth[i](y.x, x.x), exact};
}

static value choose(builder *b, value x) {
    const value c = pick(b), y = partner(b, x);
    int64_t sizes[WB_MAX_DIMS];
    if (!c.exact) return (value){wb_tanh(x.x), false};
    wb_array *condition = wb_gt(c.x, wb_number(0));
    int ndim = wb_broadcast(x.x->ndim, x.x->sizes, y.x->ndim, y.x->sizes, sizes);
    if (ndim >= 0) ndim = wb_broadcast(c.x->ndim, c.x->sizes, ndim, sizes, sizes);
    if (ndim < 0) condition = wb_gt(wb_sum(c.x), wb_number(0));
    return (value){wb_select(condition, x.x, y.x), x.exact && y.exact};
}

static value reshaped(builder *b, value v) {
    int64_t count = wb_count(v.x), sizes[4] = {1, 1, 1, 1};
    if (count == 0) return (value){wb_reshape(v.x, 0, 2), v.exact};
    for (int64_t f = 2; count > 1; f++)
        while (count % f == 0) sizes[below(b, 4)] *= f, count /= f;
    return (value){wb_reshape_make(v.x, 4, sizes), v.exact};
}

static value viewed(builder *b, value v) {
    const int ndim = v.x->ndim;
    if (ndim == 0) return (value){wb_reshape(v.x, 1, 1), v.exact};
    const int dim = (int)below(b, ndim);
    const int64_t size = v.x->sizes[dim];
    int64_t sizes[WB_MAX_DIMS], order[WB_MAX_DIMS];
    switch (below(b, 8)) {
    case 0:
        return reshaped(b, v);
    case 1:
        return (value){wb_flip(v.x, dim), v.exact};
    case 2:
        return (value){wb_transpose(v.x), v.exact};
    case 3:
        for (int d = 0; d < ndim; d++) order[d] = (d + dim) % ndim;
        return (value){wb_permute_make(v.x, ndim, order), v.exact};
    case 4: {
        const int64_t start = below(b, size + 1), stop = start + below(b, size - start + 1);
        return (value){wb_slice(v.x, dim, start, stop, 1 + below(b, 3)), v.exact};
    }
    case 5: {
        if (size == 0) return v;
        const int64_t start = below(b, size), stop = start - below(b, start + 2);
        return (value){wb_slice(v.x, dim, start, stop, -1 - below(b, 3)), v.exact};
    }
    case 6:
        if (ndim >= 4) return v;
        for (int d = 0; d < ndim; d++)
            sizes[d] = v.x->sizes[d] == 1 ? 1 + below(b, 3) : v.x->sizes[d];
        sizes[ndim] = 1 + below(b, 3);
        return (value){wb_expand_make(v.x, ndim + 1, sizes), v.exact};
    default:
        return ndim < 4 ? (value){wb_unsqueeze(v.x, dim), v.exact}
                        : (value){wb_flip(v.x, dim), v.exact};
    }
}

static value reduced(builder *b, value v) {
    int64_t dims[WB_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < v.x->ndim; d++)
        if (chance(b, 50)) dims[ndim++] = d;
    const bool all = chance(b, 25);
    switch (below(b, 9)) {
    case 0:
        return (value){all ? wb_sum(v.x) : wb_sum_make(v.x, ndim, dims), v.exact};
    case 1:
        return (value){all ? wb_mean(v.x) : wb_mean_make(v.x, ndim, dims), false};
    case 2:
        return (value){all ? wb_maximum(v.x) : wb_maximum_make(v.x, ndim, dims), v.exact};
    case 3:
        return (value){all ? wb_minimum(v.x) : wb_minimum_make(v.x, ndim, dims), v.exact};
    case 4:
        return (value){wb_softmax_make(v.x, ndim, dims), false};
    case 5:
        return (value){wb_logsoftmax_make(v.x, ndim, dims), false};
    case 6:
        return (value){wb_logsumexp_make(v.x, ndim, dims), false};
    case 7:
        return (value){wb_normalise_make(v.x, 0.1, ndim, dims), false};
    default:
        if (v.x->ndim == 0 || !v.exact) return (value){wb_var_make(v.x, false, ndim, dims), false};
        return (value){wb_argmax(v.x, (int)below(b, v.x->ndim)), true};
    }
}

static value product(builder *b, value v) {
    if (v.x->ndim < 2 || wb_dtype_of(v.x) != b->real)
        v = leaf(b, b->real, 2, (const int64_t[]){random_size(b), random_size(b)});
    const bool ta = chance(b, 40), tb = chance(b, 40);
    const int64_t k = v.x->sizes[ta ? 0 : 1], n = random_size(b);
    const value w = leaf(b, b->real, 2, tb ? (const int64_t[]){n, k} : (const int64_t[]){k, n});
    wb_array *right = chance(b, 30) ? wb_transpose(wb_transpose(w.x)) : w.x;
    return (value){wb_matmul_transposed(v.x, right, ta, tb), v.exact && w.exact};
}

static value joined(builder *b, value v) {
    if (v.x->ndim == 0) v = (value){wb_reshape(v.x, 1), v.exact};
    const int dim = (int)below(b, v.x->ndim);
    switch (below(b, 4)) {
    case 0:
        return (value){wb_pad(v.x, dim, below(b, 3), below(b, 3), (double)below(b, 3)), v.exact};
    case 1:
        return (value){wb_concat(dim, v.x, wb_flip(v.x, dim), wb_neg(v.x)), v.exact};
    case 2:
        return v.x->ndim < 4 ? (value){wb_stack(dim, v.x, wb_square(v.x)), v.exact} : v;
    default:
        return (value){wb_concat(dim, wb_slice(v.x, dim, 0, v.x->sizes[dim] / 2, 1), v.x, v.x,
                                 wb_flip(v.x, dim)),
                       v.exact};
    }
}

static value indexed(builder *b, value v) {
    if (v.x->ndim == 0) return v;
    const int dim = (int)below(b, v.x->ndim);
    if (v.x->sizes[dim] == 0) return v;
    double places[6];
    const int64_t count = 1 + below(b, 5);
    for (int64_t i = 0; i < count; i++) places[i] = (double)below(b, v.x->sizes[dim]);
    wb_array *index = array_of(chance(b, 50) ? WB_I32 : WB_I64, places, 1, &count);
    wb_array *taken = wb_gather(v.x, index, dim);
    if (chance(b, 50) || wb_dtype_of(v.x) == WB_BOOL) return (value){taken, v.exact};
    return (value){wb_scatter_add(v.x, index, wb_add_number(taken, 1), dim), v.exact};
}

static value windowed(builder *b) {
    const int64_t w = 3 + below(b, 4), h = 2 + below(b, 4), c = 1 + below(b, 3),
                  n = 1 + below(b, 2), k = 1 + below(b, 4);
    const value x = leaf(b, b->real, 4, (const int64_t[]){w, h, c, n});
    const value f = leaf(b, b->real, 4, (const int64_t[]){2, 1 + below(b, 2), c, k});
    wb_array *turned = chance(b, 30) ? wb_flip(x.x, 0) : x.x;
    const wb_window_desc desc = {.stride = {1 + below(b, 2), 1 + below(b, 2)},
                                 .pad = {padding(below(b, 2)), padding(below(b, 2))},
                                 .pad_more = {below(b, 2)},
                                 .dilation = {1 + below(b, 2)},
                                 .cross_correlation = chance(b, 50)};
    switch (below(b, 4)) {
    case 0:
        return (value){wb_conv_op_make(turned, f.x, desc), x.exact && f.exact};
    case 1:
        return (value){wb_maxpool_op(turned, .kernel = {2, 2}, .stride = {1 + below(b, 2)},
                                     .pad = {padding(below(b, 2)), padding(below(b, 2))}),
                       x.exact};
    case 2:
        return (value){wb_meanpool_op(turned, .kernel = {2, 2}, .stride = {1 + below(b, 2)},
                                      .pad = {padding(below(b, 2)), padding(below(b, 2))}),
                       false};
    default:
        return (value){wb_unfold(turned, .kernel = {2, 2},
                                 .pad = {padding(below(b, 2)), padding(below(b, 2))},
                                 .cross_correlation = chance(b, 50)),
                       x.exact};
    }
}

/* Products with what goes around them: a chain whose links read one of the last three values, a fan
 * that is added up again, a grid in which each place reads its two neighbours. */
static value deep(builder *b) {
    enum { MOST_LINKS = 8 };
    const int64_t rows = 1 + below(b, 4), columns = 1 + below(b, 3);
    wb_array *w = leaf(b, b->real, 2, (const int64_t[]){rows, rows}).x;
    wb_array *x[MOST_LINKS + 1] = {leaf(b, b->real, 2, (const int64_t[]){rows, columns}).x};
    const int links = 2 + (int)below(b, MOST_LINKS - 1);
    const int64_t form = below(b, 3), width = 1 + below(b, 3);
    for (int i = 1; i <= links; i++) {
        const int64_t back = form == 2 ? (i > width ? width : i) : 1 + below(b, i < 3 ? i : 3);
        wb_array *product = wb_tanh(wb_matmul(w, x[form == 1 ? 0 : i - 1]));
        x[i] =
            form == 1 ? wb_add(wb_mul_number(product, i), x[i - 1]) : wb_add(product, x[i - back]);
    }
    return (value){x[links], false};
}

static value operation(builder *b) {
    const value v = pick(b);
    const int64_t kind = below(b, 106);
    if (kind < 25) return unary(b, v);
    if (kind < 30) return partial(b, v);
    if (kind < 50) return binary(b, v);
    if (kind < 55) return choose(b, v);
    if (kind < 70) return viewed(b, v);
    if (kind < 83) return reduced(b, v);
    if (kind < 88) return product(b, v);
    if (kind < 92) return joined(b, v);
    if (kind < 95) return indexed(b, v);
    if (kind < 98 && b->most < 20) return windowed(b);
    return kind < 100 ? random_leaf(b) : deep(b);
}

/* Only values that are finite and not large, so that rounding stays small. */
static bool is_tame(builder *b, wb_array *x) {
    const naive *n = naive_of(b->table, x);
    if (n->count > 60000) return false;
    for (int64_t i = 0; i < n->count; i++)
        if (!(fabsl(n->values[i]) < 200)) return false;
    return true;
}

/* Some values are read before others are asked for: plans find what earlier ones computed. */
static void may_read(builder *b, wb_array *x, int percent) {
    if (chance(b, percent) && wb_eval(x) != WB_OK) fail_msg("eval: %s", wb_error_message());
}

static void grow(builder *b, int wanted) {
    b->values[b->count++] = random_leaf(b);
    b->values[b->count++] =
        leaf(b, b->real, 2, (const int64_t[]){1 + below(b, b->most), 1 + below(b, b->most)});
    for (int tries = 0; tries < 3 * wanted && b->count < wanted && b->leaf_count < MOST_VALUES - 6;
         tries++) {
        const value v = operation(b);
        if (!v.x) { /* largest of nothing and the like: refused */
            wb_clear_error();
            continue;
        }
        if (is_tame(b, v.x)) b->values[b->count++] = v;
        if (b->reads) may_read(b, v.x, 6);
    }
}

/* ---- one graph ---- */

typedef struct outputs {
    wb_array *arrays[MOST_OUTPUTS + MOST_VALUES];
    int count;
} outputs;

/* The loss of which second derivatives are taken. */
static wb_array *loss_of_gradients(builder *b, int count, wb_array *const *gradients) {
    wb_array *l = NULL;
    for (int i = 0; i < count; i++) {
        if (!gradients[i] || !is_tame(b, gradients[i])) continue;
        wb_array *term = wb_mean(wb_square(wb_tanh(gradients[i])));
        l = l && term ? wb_add(l, term) : term;
        may_read(b, gradients[i], 20);
    }
    wb_clear_error(); /* the mean of nothing */
    return l;
}

/* Gradients of a sum over what was made last with respect to all leaves; or, of the sum of these,
 * their own gradients. */
static void add_gradients(builder *b, outputs *o) {
    wb_array *gradients[MOST_VALUES];
    wb_array *last = NULL;
    for (int i = b->count - 1; i >= 0 && !last; i--)
        if (wb_dtype_of(b->values[i].x) == b->real && b->values[i].x->op != WB_OP_data)
            last = b->values[i].x;
    if (!last) return;
    wb_array *l = wb_sum(wb_mul(last, wb_sin(last)));
    may_read(b, l, 50);
    if (wb_gradient_of(l, b->leaf_count, b->leaves, gradients) != WB_OK)
        fail_msg("gradient: %s", wb_error_message());
    if (b->real == WB_F64 && chance(b, 40)) {
        wb_array *second = loss_of_gradients(b, b->leaf_count, gradients);
        if (second) may_read(b, l = second, 50);
        if (second && wb_gradient_of(l, b->leaf_count, b->leaves, gradients) != WB_OK)
            fail_msg("second gradient: %s", wb_error_message());
    }
    for (int i = 0; i < b->leaf_count && o->count < MOST_OUTPUTS + 3; i++)
        if (gradients[i]) o->arrays[o->count++] = gradients[i];
    o->arrays[o->count++] = l;
}

static outputs build(builder *b, uint64_t seed, int64_t most) {
    *b = (builder){.r = {seed}, .table = naive_new(), .most = most};
    b->reads = chance(b, 40);
    b->real = chance(b, 70) ? WB_F64 : WB_F32;
    grow(b, 6 + (int)below(b, 24));
    outputs o = {.count = 0};
    for (int i = 0; i < MOST_OUTPUTS; i++)
        o.arrays[o.count++] =
            chance(b, 60) ? b->values[b->count - 1 - below(b, b->count / 2)].x : pick(b).x;
    if (chance(b, 60)) add_gradients(b, &o);
    return o;
}

/* All at once, or one after another: later plans find earlier results. */
static void evaluate(builder *b, const outputs *o) {
    if (chance(b, 50)) {
        for (int i = 0; i < o->count; i++)
            if (wb_eval(o->arrays[i]) != WB_OK) fail_msg("eval: %s", wb_error_message());
    } else if (wb_eval_make(o->count, o->arrays) != WB_OK)
        fail_msg("eval: %s", wb_error_message());
}

static void compare(builder *b, const outputs *o, uint64_t seed) {
    char what[64];
    for (int i = 0; i < o->count; i++) (void)naive_of(b->table, o->arrays[i]);
    const double tolerance = naive_is_coarse(b->table) ? 2e-3 : 1e-9;
    for (int i = 0; i < o->count; i++) {
        (void)snprintf(what, sizeof what, "graph %llu, output %d", (unsigned long long)seed, i);
        assert_as_naive(b->table, o->arrays[i], tolerance, what);
    }
}

static void one_graph(uint64_t seed, int64_t most) {
    builder b;
    void *bytes[MOST_OUTPUTS + MOST_VALUES] = {NULL};
    size_t sizes[MOST_OUTPUTS + MOST_VALUES];
    for (int threads = 1; threads <= 3; threads++) {
        wb_set_threads(threads);
        wb_scope_open();
        const outputs o = build(&b, seed, most);
        if (threads == 1 &&
            chance(&b, 50)) { /* the reference first: nothing of it may depend on evaluation */
            for (int i = 0; i < o.count; i++) (void)naive_of(b.table, o.arrays[i]);
        } else if (threads == 1)
            (void)chance(&b, 50);
        b.r.state = seed + 1;
        evaluate(&b, &o);
        if (threads == 1) compare(&b, &o, seed);
        for (int i = 0; i < o.count; i++) {
            size_t size;
            void *now = bytes_of(o.arrays[i], &size);
            if (threads == 1) {
                bytes[i] = now, sizes[i] = size;
                continue;
            }
            if (size != sizes[i] || memcmp(now, bytes[i], size) != 0)
                fail_msg("graph %llu, output %d: other bits with %d threads",
                         (unsigned long long)seed, i, threads);
            free(now);
        }
        naive_free(b.table);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) free(bytes[i]);
    wb_set_threads(0);
}

/* Everything is made in a scope that only the outputs leave: nobody else will read the leaves, and
 * their memory may be written over. */
static void one_graph_that_leaves(uint64_t seed, int64_t most) {
    builder b;
    wb_scope_open();
    wb_scope_open();
    outputs o = build(&b, seed, most);
    for (int i = 0; i < o.count; i++) naive_dump(b.table, o.arrays[i]);
    for (int i = 0; i < o.count; i++) (void)naive_of(b.table, o.arrays[i]);
    assert_int_equal(wb_scope_close_leaving(o.count, o.arrays), WB_OK);
    evaluate(&b, &o);
    compare(&b, &o, seed);
    naive_free(b.table);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static int64_t graphs_wanted(int64_t usual) {
    const char *text = getenv("WEBER_TEST_GRAPHS");
    if (text) return strtoll(text, NULL, 10);
    return compiles_kernels() ? usual / 40 : usual; /* each has programs of its own */
}

static void small_graphs_agree(void **state) {
    (void)state;
    const int64_t count = graphs_wanted(GRAPHS);
    for (int64_t i = 0; i < count; i++) one_graph(test_seed() + (uint64_t)i, 6);
}

static void graphs_that_threads_share_agree(void **state) {
    (void)state;
    const int64_t count = graphs_wanted(LARGE_GRAPHS);
    for (int64_t i = 0; i < count; i++) one_graph(test_seed() + 1000003u * (uint64_t)(i + 1), 220);
}

static void graphs_that_leave_their_scope_agree(void **state) {
    (void)state;
    const int64_t count = graphs_wanted(2 * GRAPHS);
    for (int64_t i = 0; i < count; i++)
        one_graph_that_leaves(test_seed() + 500000u + (uint64_t)i, 6);
}

static int run(void) {
    const struct CMUnitTest tests[] = {TEST(small_graphs_agree),
                                       TEST(graphs_that_threads_share_agree),
                                       TEST(graphs_that_leave_their_scope_agree)};
    (void)test_seed();
    return cmocka_run_group_tests_name("evaluate/test_random_graphs", tests, NULL, NULL);
}

int main(void) {
    int failed = run_with(NULL, NULL, run);
    if (compiles_kernels()) return failed != 0;
    failed += run_with("WEBER_FUSE", "0", run);
    failed += run_with("WEBER_EAGER", "1", run);
    return failed != 0;
}
