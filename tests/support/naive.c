#include "support/naive.h"

#include "ops/ops.h"
#include "support/naive_rules.h"
#include "support/support.h"

struct naive_table {
    naive *buckets[256];
};

/* ---- types ---- */

static long double round_bits(long double x, int precision, int least_exponent,
                              long double largest) {
    if (x == 0 || isnan(x) || isinf(x)) return x;
    int exponent;
    (void)frexpl(x, &exponent);
    const int last = (exponent < least_exponent ? least_exponent : exponent) - precision;
    const long double rounded = ldexpl(rintl(ldexpl(x, -last)), last);
    return fabsl(rounded) > largest ? copysignl(INFINITY, x) : rounded;
}

long double naive_round(wb_dtype dtype, long double x) {
    switch (dtype) {
    case WB_F32:
        return (long double)(float)x;
    case WB_F64:
        return (long double)(double)x;
    case WB_F16:
        return round_bits(x, 11, -13, 65504);
    case WB_BF16:
        return round_bits((long double)(float)x, 8, -125, 0x1.fep127L);
    case WB_I32:
        return (long double)(int32_t)(uint32_t)(uint64_t)(int64_t)x;
    case WB_I64:
        return (long double)(int64_t)x;
    case WB_U8:
        return (long double)(uint8_t)(int64_t)x;
    default:
        return x != 0;
    }
}

/* ---- the table ---- */

naive_table *naive_new(void) {
    naive_table *table = calloc(1, sizeof *table);
    assert_non_null(table);
    return table;
}

void naive_free(naive_table *table) {
    for (int b = 0; b < 256; b++)
        while (table->buckets[b]) {
            naive *n = table->buckets[b];
            table->buckets[b] = n->next;
            if (n->values != n->results[0]) free(n->values);
            for (int i = 0; i < NAIVE_RESULTS; i++) free(n->results[i]);
            free(n);
        }
    free(table);
}

bool naive_is_coarse(const naive_table *table) {
    for (int b = 0; b < 256; b++)
        for (const naive *n = table->buckets[b]; n; n = n->next)
            if (wb_dtype_is_float(n->dtype) && n->dtype != WB_F64) return true;
    return false;
}

static naive **bucket_of(naive_table *table, const wb_array *x) {
    return &table->buckets[(uintptr_t)x / 64 % 256];
}

long double *naive_numbers(int64_t count) {
    long double *list = calloc((size_t)count + 1, sizeof *list);
    assert_non_null(list);
    return list;
}

/* ---- places ---- */

void naive_unravel(int64_t linear, int ndim, const int64_t *sizes, int64_t *index) {
    for (int d = 0; d < WB_MAX_DIMS; d++) index[d] = 0;
    for (int d = 0; d < ndim; d++) {
        index[d] = linear % sizes[d];
        linear /= sizes[d];
    }
}

int64_t naive_ravel(int ndim, const int64_t *sizes, const int64_t *index) {
    int64_t linear = 0, stride = 1;
    for (int d = 0; d < ndim; d++) {
        linear += index[d] * stride;
        stride *= sizes[d];
    }
    return linear;
}

long double naive_spread(const naive *x, int64_t i, int ndim, const int64_t *sizes) {
    int64_t index[WB_MAX_DIMS];
    naive_unravel(i, ndim, sizes, index);
    for (int d = 0; d < x->ndim; d++)
        if (x->sizes[d] == 1) index[d] = 0;
    return x->values[naive_ravel(x->ndim, x->sizes, index)];
}

/* ---- movement ---- */

static void move(naive *o, naive *const *in) {
    const naive *x = in[0];
    const wb_array *node = o->node;
    for (int64_t i = 0; i < o->count; i++) {
        int64_t index[WB_MAX_DIMS], from[WB_MAX_DIMS] = {0};
        naive_unravel(i, o->ndim, o->sizes, index);
        int64_t place = i;
        if (node->op == WB_OP_permute) {
            for (int d = 0; d < o->ndim; d++)
                from[node->attributes.permute.order >> (4 * d) & 15] = index[d];
            place = naive_ravel(x->ndim, x->sizes, from);
        } else if (node->op == WB_OP_slice) {
            index[node->attributes.slice.dim] =
                node->attributes.slice.start +
                index[node->attributes.slice.dim] * node->attributes.slice.step;
            place = naive_ravel(x->ndim, x->sizes, index);
        }
        o->values[i] =
            node->op == WB_OP_expand ? naive_spread(x, i, o->ndim, o->sizes) : x->values[place];
    }
}

/* x written into o along dimension dim, beginning at start, step apart. */
static void put(naive *o, const naive *x, int dim, int64_t start, int64_t step) {
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[WB_MAX_DIMS];
        naive_unravel(i, x->ndim, x->sizes, index);
        index[dim] = start + index[dim] * step;
        o->values[naive_ravel(o->ndim, o->sizes, index)] = x->values[i];
    }
}

static void join(naive *o, naive *const *in) {
    const wb_array *node = o->node;
    const int dim = (int)node->attributes.along.dim;
    if (node->op == WB_OP_slice_put) {
        put(o, in[0], dim, node->attributes.slice.start, node->attributes.slice.step);
        return;
    }
    if (node->op == WB_OP_pad)
        for (int64_t i = 0; i < o->count; i++) o->values[i] = node->attributes.pad.value;
    int64_t start = node->op == WB_OP_pad ? node->attributes.pad.start : 0;
    for (int k = 0; k < node->ninputs; k++) {
        put(o, in[k], dim, start, 1);
        start += in[k]->sizes[dim];
    }
}

/* ---- reductions ---- */

/* Which row of the reduction over mask element i of x belongs to. */
static int64_t row_of(const naive *x, int64_t mask, int64_t i) {
    int64_t index[WB_MAX_DIMS], sizes[WB_MAX_DIMS];
    naive_unravel(i, x->ndim, x->sizes, index);
    for (int d = 0; d < x->ndim; d++) {
        sizes[d] = mask >> d & 1 ? 1 : x->sizes[d];
        if (mask >> d & 1) index[d] = 0;
    }
    return naive_ravel(x->ndim, sizes, index);
}

static void sum_rows(naive *o, naive *const *in) {
    const naive *x = in[0];
    const int64_t mask = o->node->attributes.reduce.dims;
    const bool integer = !wb_dtype_is_float(o->dtype);
    for (int64_t i = 0; i < x->count; i++) {
        long double *to = &o->values[row_of(x, mask, i)];
        *to = integer ? (long double)naive_wrap_add((int64_t)*to, (int64_t)x->values[i])
                      : *to + x->values[i];
    }
    if (o->node->op != WB_OP_mean) return;
    for (int64_t i = 0; i < o->count; i++)
        o->values[i] /= (long double)x->count / (long double)o->count;
}

static void largest_rows(naive *o, naive *const *in) {
    const naive *x = in[0];
    const int64_t mask = o->node->attributes.reduce.dims;
    for (int64_t i = 0; i < o->count; i++) o->values[i] = -INFINITY;
    for (int64_t i = 0; i < x->count; i++) {
        long double *to = &o->values[row_of(x, mask, i)];
        *to = naive_larger(*to, x->values[i]);
    }
}

static void running_sums(naive *o, naive *const *in) {
    const naive *x = in[0];
    const int dim = (int)o->node->attributes.along.dim;
    const bool integer = !wb_dtype_is_float(o->dtype);
    int64_t step = 1;
    for (int d = 0; d < dim; d++) step *= x->sizes[d];
    for (int64_t i = 0; i < x->count; i++) {
        const bool first = i / step % x->sizes[dim] == 0;
        const long double before = first ? 0 : o->values[i - step], own = x->values[i];
        o->values[i] =
            integer ? (long double)naive_wrap_add((int64_t)before, (int64_t)own) : before + own;
    }
}

static void argmax(naive *o, naive *const *in) {
    const naive *x = in[0];
    const int64_t dim = o->node->attributes.runs.dim, run = o->node->attributes.runs.run;
    long double *best = naive_numbers(o->count);
    for (int64_t i = 0; i < o->count; i++) o->values[i] = -1;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t index[WB_MAX_DIMS];
        naive_unravel(i, x->ndim, x->sizes, index);
        const long double position = (long double)index[dim];
        index[dim] /= run;
        const int64_t at = naive_ravel(o->ndim, o->sizes, index);
        const bool better = o->values[at] < 0 ||
                            (!isnan(best[at]) && (x->values[i] > best[at] || isnan(x->values[i])));
        if (better) o->values[at] = position, best[at] = x->values[i];
    }
    free(best);
}

/* Without gain and bias. */
static void normal_rows(naive *o, naive *const *in) {
    const naive *x = in[0];
    const int64_t mask = o->node->attributes.reduce.dims;
    const long double eps = (long double)o->node->attributes.reduce.eps;
    long double *mean = naive_numbers(x->count), *square = naive_numbers(x->count),
                *count = naive_numbers(x->count);
    for (int64_t i = 0; i < x->count; i++) count[row_of(x, mask, i)]++;
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t row = row_of(x, mask, i);
        mean[row] += x->values[i] / count[row];
    }
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t row = row_of(x, mask, i);
        square[row] += (x->values[i] - mean[row]) * (x->values[i] - mean[row]) / count[row];
    }
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t row = row_of(x, mask, i);
        o->values[i] = (x->values[i] - mean[row]) / sqrtl(square[row] + eps);
    }
    free(mean);
    free(square);
    free(count);
}

/* logsumexp (into o), or softmax and logsoftmax, of rows; infinities as limits. */
static void soft_rows(naive *o, naive *const *in) {
    const naive *x = in[0];
    const int64_t mask = o->node->attributes.reduce.dims;
    const int op = o->node->op;
    long double *largest = naive_numbers(x->count), *sum = naive_numbers(x->count);
    for (int64_t i = 0; i < x->count; i++) largest[i] = -INFINITY;
    for (int64_t i = 0; i < x->count; i++)
        largest[row_of(x, mask, i)] = naive_larger(largest[row_of(x, mask, i)], x->values[i]);
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t row = row_of(x, mask, i);
        sum[row] += x->values[i] == largest[row] ? 1 : expl(x->values[i] - largest[row]);
    }
    for (int64_t i = 0; i < (op == WB_OP_logsumexp ? o->count : x->count); i++) {
        const int64_t row = op == WB_OP_logsumexp ? i : row_of(x, mask, i);
        const long double distance = x->values[i] == largest[row] ? 0 : x->values[i] - largest[row];
        o->values[i] = op == WB_OP_softmax      ? expl(distance) / sum[row]
                       : op == WB_OP_logsoftmax ? distance - logl(sum[row])
                                                : largest[row] + logl(sum[row]);
    }
    free(largest);
    free(sum);
}

/* ---- indexing ---- */

static void gather(naive *o, naive *const *in) {
    const naive *x = in[0], *index = in[1];
    const int dim = (int)o->node->attributes.along.dim;
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < dim; d++) inner *= x->sizes[d];
    for (int d = dim + 1; d < x->ndim; d++) outer *= x->sizes[d];
    for (int64_t q = 0; q < outer; q++)
        for (int64_t p = 0; p < index->count; p++)
            for (int64_t i = 0; i < inner; i++)
                o->values[i + inner * (p + index->count * q)] =
                    x->values[i + inner * ((int64_t)index->values[p] + x->sizes[dim] * q)];
}

static void scatter_add(naive *o, naive *const *in) {
    const naive *base = in[0], *index = in[1], *updates = in[2];
    const int dim = (int)o->node->attributes.along.dim;
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < dim; d++) inner *= o->sizes[d];
    for (int d = dim + 1; d < o->ndim; d++) outer *= o->sizes[d];
    for (int64_t i = 0; i < o->count; i++) o->values[i] = base->values[i];
    for (int64_t q = 0; q < outer; q++)
        for (int64_t p = 0; p < index->count; p++)
            for (int64_t i = 0; i < inner; i++)
                o->values[i + inner * ((int64_t)index->values[p] + o->sizes[dim] * q)] +=
                    updates->values[i + inner * (p + index->count * q)];
}

/* ---- sources, leaves ---- */

static void source(naive *o, naive *const *in) {
    (void)in;
    const wb_array *x = o->node;
    for (int64_t i = 0; i < o->count; i++) {
        int64_t index[WB_MAX_DIMS];
        naive_unravel(i, o->ndim, o->sizes, index);
        o->values[i] = x->op == WB_OP_full   ? x->attributes.number.value
                       : x->op == WB_OP_late ? wb_value_of(x->late[0])
                                             : (long double)index[x->attributes.along.dim];
    }
}

static void read_memory(naive *o, naive *const *in) {
    wb_array *x = (wb_array *)(uintptr_t)o->node;
    (void)in;
    double *list = malloc(((size_t)o->count + 1) * sizeof *list);
    assert_non_null(list);
    assert_int_equal(wb_read_f64(x, list, o->count), WB_OK);
    for (int64_t i = 0; i < o->count; i++) o->values[i] = list[i];
    free(list);
}

/* ---- the walk ---- */

static void result_of(naive *o, naive *const *in) {
    const long double *values = in[0]->results[o->node->attributes.part.number];
    for (int64_t i = 0; i < o->count; i++) o->values[i] = values[i];
}

/* All others are elementwise. */
static naive_rule *const rules[WB_OP_COUNT] = {
    [WB_OP_data] = read_memory,
    [WB_OP_uniform] = read_memory,
    [WB_OP_normal] = read_memory,
    [WB_OP_full] = source,
    [WB_OP_late] = source,
    [WB_OP_iota] = source,
    [WB_OP_select] = naive_select_or_cast,
    [WB_OP_cast] = naive_select_or_cast,
    [WB_OP_copy] = move,
    [WB_OP_stop_gradient] = move,
    [WB_OP_custom] = move, /* of its first input */
    [WB_OP_reshape] = move,
    [WB_OP_permute] = move,
    [WB_OP_slice] = move,
    [WB_OP_expand] = move,
    [WB_OP_slice_put] = join,
    [WB_OP_pad] = join,
    [WB_OP_concat] = join,
    [WB_OP_sum] = sum_rows,
    [WB_OP_mean] = sum_rows,
    [WB_OP_max_reduce] = largest_rows,
    [WB_OP_argmax] = argmax,
    [WB_OP_cumsum] = running_sums,
    [WB_OP_logsumexp] = soft_rows,
    [WB_OP_normalise] = normal_rows,
    [WB_OP_softmax] = soft_rows,
    [WB_OP_logsoftmax] = soft_rows,
    [WB_OP_matmul] = naive_matmul,
    [WB_OP_conv_forward] = naive_conv,
    [WB_OP_conv_data] = naive_conv,
    [WB_OP_conv_filter] = naive_conv,
    [WB_OP_maxpool] = naive_maxpool,
    [WB_OP_pool_scatter] = naive_pool_scatter,
    [WB_OP_pool_gather] = naive_pool_gather,
    [WB_OP_meanpool] = naive_meanpool,
    [WB_OP_meanpool_data] = naive_meanpool,
    [WB_OP_unfold] = naive_unfold,
    [WB_OP_fold] = naive_unfold,
    [WB_OP_gather] = gather,
    [WB_OP_scatter_add] = scatter_add,
    [WB_OP_result] = result_of,
};

const naive *naive_of(naive_table *table, wb_array *x) {
    naive **bucket = bucket_of(table, x);
    for (naive *n = *bucket; n; n = n->next)
        if (n->node == x) return n;
    naive *in[64] = {NULL};
    assert_true(x->ninputs <= 64);
    for (int k = 0; k < x->ninputs; k++) in[k] = (naive *)(uintptr_t)naive_of(table, x->inputs[k]);
    naive *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->node = x, o->dtype = (wb_dtype)x->dtype, o->ndim = x->ndim, o->count = wb_count(x);
    for (int d = 0; d < x->ndim; d++) o->sizes[d] = x->sizes[d];
    o->values = o->results[0] = naive_numbers(o->count);
    if (!rules[x->op] && wb_op_rows[x->op].arity == 0)
        fail_msg("the reference has no %s", wb_op_name((wb_op)x->op));
    (rules[x->op] ? rules[x->op] : naive_elementwise)(o, in);
    for (int r = 0; r < NAIVE_RESULTS; r++)
        for (int64_t i = 0; o->results[r] && i < o->count; i++)
            if (r == 0 || x->op != WB_OP_maxpool)
                o->results[r][i] = naive_round(o->dtype, o->results[r][i]);
    o->next = *bucket;
    return *bucket = o;
}

static void dump_node(naive_table *table, wb_array *x, int depth) {
    const naive *n = naive_of(table, x);
    print_error("%*s%s %s %s [", 2 * depth, "", wb_op_name((wb_op)x->op), wb_dtype_name(n->dtype),
                wb_text_of(x));
    for (int64_t i = 0; i < n->count && i < 6; i++) print_error(" %.6Lg", n->values[i]);
    print_error(" ]%s\n", wb_is_evaluated(x) ? " evaluated" : "");
    for (int k = 0; k < x->ninputs; k++) dump_node(table, x->inputs[k], depth + 1);
}

void naive_dump(naive_table *table, wb_array *x) {
    if (getenv("WEBER_TEST_DUMP")) dump_node(table, x, 0);
}

void assert_as_naive(naive_table *table, wb_array *x, double tolerance, const char *what) {
    const naive *n = naive_of(table, x);
    double *list = malloc(((size_t)n->count + 1) * sizeof *list);
    assert_non_null(list);
    if (wb_read_f64(x, list, n->count) != WB_OK) fail_msg("%s: %s", what, wb_error_message());
    double largest = 0; /* sums of large numbers that cancel are not better than these */
    for (int64_t i = 0; i < n->count; i++)
        if (isfinite(n->values[i])) largest = fmax(largest, fabs((double)n->values[i]));
    for (int64_t i = 0; i < n->count; i++) {
        const double wanted = (double)n->values[i],
                     allowed = tolerance * (1 + fabs(wanted) + largest / 16);
        const bool same = isnan(wanted)   ? isnan(list[i])
                          : isinf(wanted) ? list[i] == wanted
                                          : fabs(list[i] - wanted) <= allowed;
        if (!same) naive_dump(table, x);
        if (!same)
            fail_msg("%s: element %lld of %s %s is %.17g, the reference says %.17g", what,
                     (long long)i, wb_op_name((wb_op)x->op), wb_text_of(x), list[i], wanted);
    }
    free(list);
}
