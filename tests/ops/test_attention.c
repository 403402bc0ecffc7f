/* attention, rotary and sinusoidal positions. The numbers are computed by hand from the formulas
 * of the header; rows I2 to I5 are properties that Flux's own tests ask for. */
#include "support/support.h"

/* q, k, v with two features, one head; columns are positions. */
static wb_array *q_of(void) { return wb_cast(wb_matrix_of(WB_F32, 2, {1, 0}, {0, 2}), widest()); }
static wb_array *k_of(void) {
    return wb_cast(wb_matrix_of(WB_F32, 3, {1, 0, 2}, {1, 1, 0}), widest());
}
static wb_array *v_of(void) {
    return wb_cast(wb_matrix_of(WB_F32, 3, {1, 0, 1}, {0, 1, 1}), widest());
}

static void numbers(void **state) {
    (void)state;
    wb_array *q = q_of(), *k = k_of(), *v = v_of(), *g[3];
    wb_array *y = wb_attention(q, k, v);
    assert_values(y, coarse(1e-8, 1e-6), .859970755, .716004590, .554191726, .554191726);
    wb_array *l = wb_sum(wb_mul(y, wb_cast(wb_matrix_of(WB_F32, 2, {1, 0}, {0, 1}), widest())));
    assert_int_equal(wb_gradient_of(l, 3, (wb_array *[]){q, k, v}, g), WB_OK);
    assert_values(g[0], 1e-5, .142181, -.057031, -.106368, -.034166);
    assert_values(g[1], 1e-5, .028120, -.349400, -.085151, .281068, .057031, .068332);
}

/* I2: the weights of each query sum to 1, for any batch and any heads that divide 15. */
static void weights_sum_to_one(void **state) {
    (void)state;
    static const struct {
        int n;
        int64_t batch[3];
    } batches[] = {{0, {0}}, {1, {1}}, {1, {2}}, {3, {2, 1, 3}}};
    for (int b = 0; b < 4; b++)
        for (int64_t heads = 1; heads <= 5; heads += 2) {
            int64_t sizes[3][5] = {{15, 4}, {15, 6}, {15, 6}}, total = 1;
            for (int a = 0; a < 3; a++)
                memcpy(sizes[a] + 2, batches[b].batch, sizeof batches[b].batch);
            for (int d = 0; d < batches[b].n; d++) total *= batches[b].batch[d];
            const int ndim = 2 + batches[b].n;
            wb_array *weights, *x[3];
            for (int a = 0; a < 3; a++) x[a] = wb_normal_make(widest(), ndim, sizes[a]);
            wb_array *y = wb_attention(x[0], x[1], x[2], .heads = heads, .weights = &weights);
            assert_sizes_make(y, ndim, sizes[0]);
            assert_int_equal(wb_ndim(weights), ndim + 1);
            assert_int_equal(wb_size(weights, 2), heads);
            wb_array *sums = wb_sum_dims(weights, 0);
            assert_int_equal(wb_count(sums), 4 * heads * total);
            assert_value(wb_maximum(wb_abs(wb_add_number(sums, -1))), 0, coarse(1e-12, 1e-6));
        }
}

/* Each head is an attention of its own; keys and values of one head serve a group of queries. */
static void heads_are_independent(void **state) {
    (void)state;
    enum { HEADS = 4, D = 3 };
    for (int64_t kv_heads = 1; kv_heads <= HEADS; kv_heads *= 2) {
        wb_array *q = wb_normal(widest(), HEADS * D, 5, 2), *y[HEADS];
        wb_array *k = wb_normal(widest(), kv_heads * D, 4, 2);
        wb_array *v = wb_normal(widest(), kv_heads * D, 4, 2);
        for (int64_t h = 0; h < HEADS; h++) {
            const int64_t at = h / (HEADS / kv_heads) * D;
            wb_array *k_h = wb_slice(k, 0, at, at + D, 1), *v_h = wb_slice(v, 0, at, at + D, 1);
            y[h] = wb_attention(wb_slice(q, 0, h * D, (h + 1) * D, 1), k_h, v_h);
        }
        wb_array *all = wb_attention(q, k, v, .heads = HEADS, .kv_heads = kv_heads);
        assert_true(wb_approx(all, wb_concat_make(0, HEADS, y), coarse(1e-12, 1e-5),
                              coarse(1e-12, 1e-5), NULL, 0));
    }
}

/* I3: a weight is positive exactly where the mask is true; causal is the upper triangle. */
static void masks(void **state) {
    (void)state;
    wb_array *q = wb_normal(WB_F32, 6, 4, 2), *k = wb_normal(WB_F32, 6, 4, 2), *weights;
    wb_array *mask = wb_gt(wb_uniform(WB_F32, 4, 4), wb_number(0.5));
    (void)wb_attention(q, k, k, .heads = 2, .mask = mask, .weights = &weights);
    wb_array *seen = wb_gt(weights, wb_number(0));
    wb_array *differs = wb_ne(seen, wb_and(mask, wb_ge(weights, wb_number(0))));
    assert_value(wb_sum(wb_cast(differs, WB_I32)), 0, 0);
    (void)wb_attention(q, k, k, .causal = true, .weights = &weights);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 4; j++) assert_true((wb_at(weights, j, i, 0, 1) > 0) == (j <= i));
    /* one new query after three earlier ones: it sees all */
    (void)wb_attention(wb_slice(q, 1, 3, 4, 1), k, k, .causal = true, .weights = &weights);
    assert_value(wb_sum(wb_cast(wb_gt(weights, wb_number(0)), WB_I32)), 8, 0);
}

/* The last position of k and v is NaN or infinite: the queries before it do not see that. */
static void what_causal_hides_does_not_show(void **state) {
    (void)state;
    if (!is_on_host()) skip(); /* elsewhere 0 NaN is NaN */
    static const int64_t lengths[] = {2, 13, 64, 150};
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int64_t bad = 0; bad < lengths[i]; bad += 1 + bad / 3) {
                const int64_t n = lengths[i], d = 2 * 5;
                const wb_dtype type = t ? widest() : WB_F32;
                wb_array *q = wb_normal(type, d, n), *k = wb_normal(type, d, n);
                wb_array *v = wb_normal(type, d, n);
                wb_array *is_bad = wb_eq(wb_iota(WB_I64, 1, 1, n), wb_number((double)bad));
                wb_array *wanted = wb_attention(q, k, v, .heads = 2, .causal = true);
                k = wb_select(is_bad, wb_number((double)NAN), k);
                v = wb_select(is_bad, wb_number(bad % 2 ? (double)NAN : -(double)INFINITY), v);
                wb_array *y = wb_attention(q, k, v, .heads = 2, .causal = true);
                assert_true(wb_approx(wb_slice(y, 1, 0, bad, 1), wb_slice(wanted, 1, 0, bad, 1),
                                      1e-5, 1e-6, NULL, 0));
                assert_value(wb_sum(wb_isnan(wb_slice(y, 1, bad, n, 1))), (double)(d * (n - bad)),
                             0);
            }
}

static void a_query_without_keys_gives_zeros(void **state) {
    (void)state;
    wb_array *q = q_of(), *g[1];
    wb_array *mask = wb_ne(wb_matrix(2, {1, 0}, {0, 0}, {1, 0}), wb_number(0));
    wb_array *y = wb_attention(q, k_of(), v_of(), .mask = mask);
    assert_values(wb_slice(y, 1, 1, 2, 1), 0, 0, 0);
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &q, g), WB_OK);
    assert_values(wb_slice(g[0], 1, 1, 2, 1), 0, 0, 0);
    for (int t = 0; t < 2; t++) {
        const wb_dtype type = t ? WB_F16 : WB_BF16;
        y = wb_attention(wb_cast(q, type), wb_cast(k_of(), type), wb_cast(v_of(), type),
                         .mask = mask);
        assert_int_equal(wb_dtype_of(y), type);
        assert_values(wb_slice(y, 1, 1, 2, 1), 0, 0, 0);
    }
}

/* I4: the bias is added to the scores. */
static void a_bias_is_added(void **state) {
    (void)state;
    wb_array *weights, *bias = wb_normal(widest(), 3, 2);
    (void)wb_attention(q_of(), k_of(), v_of(), .bias = bias, .weights = &weights);
    wb_array *scores =
        wb_mul_number(wb_matmul_transposed(k_of(), q_of(), true, false), 1 / sqrt(2));
    wb_array *wanted = wb_softmax(wb_add(scores, bias));
    assert_true(wb_approx(wb_reshape(weights, 3, 2), wanted, coarse(1e-12, 1e-6),
                          coarse(1e-12, 1e-6), NULL, 0));
}

static void dropout_keeps_the_mean(void **state) {
    (void)state;
    wb_array *q = wb_ones(WB_F32, 2, 50), *k = wb_ones(WB_F32, 2, 80), *weights;
    (void)wb_attention(q, k, k, .dropout = 0.25, .weights = &weights);
    assert_value(wb_mean(wb_cast(wb_eq(weights, wb_number(0)), WB_F32)), 0.25, 0.03);
    assert_value(wb_maximum(weights), 1.0 / 80 / 0.75, 1e-5);
    assert_value(wb_sum(wb_attention(q, k, k, .dropout = 1)), 0, 0);
}

static wb_array *attend(void *context, int count, wb_array *const *x) {
    (void)count;
    const int which = *(const int *)context;
    wb_array *mask = wb_ge(wb_iota(WB_I32, 1, 3, 2), wb_iota(WB_I32, 0, 3, 2));
    return which == 0   ? wb_attention(x[0], x[1], x[2])
           : which == 1 ? wb_attention(x[0], x[1], x[2], .heads = 2, .bias = x[3], .causal = true)
           : which == 2 ? wb_attention(x[0], x[1], x[2], .heads = 2, .mask = mask)
                        : wb_rotary(x[0], .heads = 2, .first = 3);
}

static void gradients(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++) {
        wb_array *x[] = {wb_normal(WB_F64, 4, 2), wb_normal(WB_F64, 4, 3), wb_normal(WB_F64, 6, 3),
                         wb_normal(WB_F64, 3, 2)};
        const int count = which == 1 ? 4 : which == 3 ? 1 : 3;
        assert_int_equal(wb_gradient_check(attend, &which, count, x, 2, 0), WB_OK);
    }
}

static void an_empty_batch_has_gradients(void **state) {
    (void)state;
    wb_array *q = wb_zeros(WB_F32, 8, 3, 0), *k = wb_zeros(WB_F32, 8, 70, 0), *g[2];
    wb_array *y = wb_attention(q, k, k, .heads = 2);
    assert_int_equal(wb_gradient_of(wb_sum(y), 2, (wb_array *[]){q, k}, g), WB_OK);
    assert_int_equal(wb_eval(g[0], g[1]), WB_OK);
    assert_sizes(g[0], 8, 3, 0);
    assert_sizes(g[1], 8, 70, 0);
    wb_array *w = wb_ones(WB_F32, 8, 8);
    wb_array *p = wb_matmul(w, q), *r = wb_matmul(w, k);
    y = wb_attention(p, r, r, .heads = 2); /* w's gradient is there, made of empty ones */
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &w, g), WB_OK);
    assert_value(wb_sum(g[0]), 0, 0);
}

/* ---- in tiles beside products and a softmax, which those have that are asked for weights ---- */

typedef struct tiles_row {
    const char *name;
    wb_dtype dtype;
    int64_t dk, dv, heads, kv_heads, queries, keys, batch[2];
    bool causal;
    int64_t mask[5], bias[5]; /* sizes, then 0; all 0: none */
    bool hides_queries;       /* the mask is false for every third query */
    bool is_brief;            /* also for devices that compile a kernel for each plan */
} tiles_row;

static const tiles_row tiles[] = {
    {"one key and query", WB_F32, 1, 1, 1, 1, 1, 1, {0}, false, {0}, {0}, false, false},
    {"smaller than a vector", WB_F32, 3, 2, 1, 1, 5, 7, {0}, false, {0}, {0}, false, false},
    {"whole tiles", WB_F32, 64, 64, 2, 2, 96, 128, {2}, false, {0}, {0}, false, false},
    {"no whole tiles", WB_F32, 19, 35, 3, 3, 101, 77, {2, 3}, false, {0}, {0}, false, true},
    {"more than a block of keys", WB_F32, 16, 8, 1, 1, 7, 1100, {0}, false, {0}, {0}, false, false},
    {"two pieces of queries", WB_F32, 8, 16, 1, 1, 400, 9, {0}, false, {0}, {0}, false, false},
    {"many features", WB_F32, 1500, 70, 1, 1, 9, 150, {0}, false, {0}, {0}, false, false},
    {"causal", WB_F32, 16, 16, 2, 2, 600, 600, {0}, true, {0}, {0}, false, false},
    {"one long head", WB_F32, 8, 8, 1, 1, 50, 2300, {0}, false, {0}, {0}, false, false},
    {"one long head, causal", WB_F64, 8, 8, 2, 1, 1200, 1200, {0}, true, {0}, {0}, false, false},
    {"causal, queries at the end", WB_F32, 8, 8, 2, 1, 33, 700, {2}, true, {0}, {0}, false, false},
    {"causal, queries that see none", WB_F32, 8, 8, 1, 1, 70, 50, {2}, true, {0}, {0}, false, true},
    {"grouped heads", WB_F32, 8, 12, 6, 2, 40, 50, {3}, false, {0}, {0}, false, true},
    {"one mask", WB_F32, 8, 8, 2, 2, 40, 600, {2}, false, {600, 40}, {0}, true, false},
    {"a mask of keys", WB_F32, 8, 8, 2, 2, 40, 60, {2}, true, {60, 1, 1, 2}, {0}, false, false},
    {"a query mask", WB_F32, 8, 8, 2, 2, 40, 60, {2, 3}, false, {1, 40, 2, 1, 3}, {0}, true, false},
    {"a bias", WB_F32, 8, 8, 2, 2, 40, 600, {2}, false, {0}, {600, 40, 2, 2}, false, false},
    {"a bias of heads", WB_F32, 8, 8, 2, 2, 40, 60, {2, 3}, true, {0}, {1, 1, 2, 2}, false, false},
    {"a mask and a bias", WB_F32, 8, 8, 4, 2, 40, 60, {3}, true, {60, 40}, {60, 1, 4}, true, true},
    {"f64", WB_F64, 19, 35, 4, 2, 101, 577, {2}, true, {577, 101}, {577, 101}, true, false},
    {"f16", WB_F16, 16, 16, 2, 2, 40, 50, {2}, true, {50, 40}, {50, 40}, true, true},
    {"bf16", WB_BF16, 16, 16, 2, 2, 40, 50, {2}, false, {0}, {0}, false, false},
};

static double tolerance_of(wb_dtype dtype) {
    return dtype == WB_F64   ? coarse(1e-12, 2e-5)
           : dtype == WB_F32 ? 2e-5
           : dtype == WB_F16 ? 8e-3
                             : 6e-2;
}

/* Rows of f64 are of f32 where there is none. */
static wb_dtype own(wb_dtype dtype) { return dtype == WB_F64 ? widest() : dtype; }

static wb_array *random_for(const tiles_row *r, int64_t rows, int64_t length) {
    const int64_t sizes[4] = {rows, length, r->batch[0], r->batch[1]};
    const int ndim = r->batch[1] ? 4 : r->batch[0] ? 3 : 2;
    return wb_cast(wb_normal_make(widest(), ndim, sizes), own(r->dtype));
}

static int ndim_of(const int64_t sizes[5]) {
    int ndim = 0;
    while (ndim < 5 && sizes[ndim]) ndim++;
    return ndim;
}

static wb_array *mask_for(const tiles_row *r) {
    const int ndim = ndim_of(r->mask);
    if (ndim == 0) return NULL;
    wb_array *mask = wb_bernoulli_make(0.6, ndim, r->mask);
    if (!r->hides_queries) return mask;
    wb_array *query = wb_iota_make(WB_I32, 1, ndim, r->mask);
    return wb_and(mask, wb_ne(wb_mod(query, wb_number(3)), wb_number(0)));
}

static void assert_alike(const tiles_row *r, const char *what, wb_array *got, wb_array *wanted) {
    const double size = wb_item(wb_maximum(wb_abs(wb_cast(wanted, widest()))));
    const double most =
        wb_item(wb_maximum(wb_abs(wb_sub(wb_cast(got, widest()), wb_cast(wanted, widest())))));
    if (!(most <= tolerance_of(r->dtype) * (1 + size)))
        fail_msg("%s: %s differs by %g of %g", r->name, what, most, size);
}

static void compare_tiles(const tiles_row *r) {
    wb_array *x[4] = {random_for(r, r->dk * r->heads, r->queries),
                      random_for(r, r->dk * r->kv_heads, r->keys),
                      random_for(r, r->dv * r->kv_heads, r->keys), NULL};
    const int bias_ndim = ndim_of(r->bias), count = bias_ndim ? 4 : 3;
    if (bias_ndim) x[3] = wb_cast(wb_normal_make(widest(), bias_ndim, r->bias), own(r->dtype));
    wb_array *mask = mask_for(r), *weights, *g[2][4], *y[2];
    wb_array *dy = random_for(r, r->dv * r->heads, r->queries);
    for (int i = 0; i < 2; i++) {
        y[i] = wb_attention(x[0], x[1], x[2], .heads = r->heads, .kv_heads = r->kv_heads,
                            .causal = r->causal, .mask = mask, .bias = x[3],
                            .weights = i ? &weights : NULL);
        assert_int_equal(wb_pullback(y[i], dy, count, x, g[i]), WB_OK);
    }
    assert_alike(r, "y", y[0], y[1]);
    static const char *const names[] = {"dq", "dk", "dv", "dbias"};
    for (int k = 0; k < count; k++) assert_alike(r, names[k], g[0][k], g[1][k]);
}

static bool is_on_cpu(void) {
    const char *backend = wb_device_backend_name(wb_default_device());
    return strcmp(backend, "CPU") == 0 || strcmp(backend, "checked") == 0;
}

/* The scores would take 16 MB; what is there are y, three gradients (0.5 MB each) and blocks, of
 * which OpenCL's have 6 MB. The first test: the peak is one of all so far. */
static void memory_grows_with_the_length(void **state) {
    (void)state;
    const char *backend = wb_device_backend_name(wb_default_device());
    const int64_t most = (is_on_cpu() ? 6 : 14) << 20;
    if (!is_on_cpu() && strcmp(backend, "OpenCL") != 0) skip();
    wb_array *x[3], *g[3];
    for (int i = 0; i < 3; i++) x[i] = wb_normal(WB_F32, 64, 2048);
    wb_eval(x[0], x[1], x[2]);
    const int64_t before = wb_memory_status(wb_default_device()).live;
    wb_array *y = wb_attention(x[0], x[1], x[2], .causal = true);
    assert_int_equal(wb_pullback(y, x[0], 3, x, g), WB_OK);
    wb_eval(y, g[0], g[1], g[2]);
    const int64_t peak = wb_memory_status(wb_default_device()).peak;
    if (peak - before > most) fail_msg("%lld bytes", (long long)(peak - before));
}

/* Infinite scores are limits, as softmax has them; where all are -inf the query sees no key. */
static void infinite_scores_are_limits(void **state) {
    (void)state;
    const float inf = INFINITY;
    const float biases[] = {inf, 0, inf, -inf, -inf, 0, -inf, -inf, -inf};
    wb_array *x = wb_ones(WB_F32, 2, 3), *v = wb_matrix(3, {1, 2, 3}, {3, 4, 8});
    wb_array *y = wb_attention(x, x, v, .bias = wb_from(WB_F32, biases, 3, 3));
    assert_values(y, 1e-6, 2, 5.5, 3, 8, 0, 0);
}

/* Weights are at most 1, whatever rounding does to scores in billions; a NaN goes through. */
static void scores_may_be_large(void **state) {
    (void)state;
    if (!is_on_cpu()) skip();
    wb_array *q = wb_full(WB_F32, 3e9, 3, 40), *k = wb_iota(WB_F32, 1, 3, 40), *g[3];
    wb_array *y = wb_attention(q, k, k, .causal = true);
    assert_true(wb_approx(y, k, 0, 0, NULL, 0));
    assert_int_equal(wb_pullback(y, k, 3, (wb_array *[]){q, k, k}, g), WB_OK);
    assert_true(wb_item(wb_maximum(wb_abs(g[2]))) <= 40 * 39);
    wb_array *x = wb_ones(WB_F32, 1, 3);
    y = wb_attention(wb_matrix(3, {1, NAN, 1}), x, wb_matrix(3, {1, 2, 6}), .causal = true);
    assert_values(y, 1e-6, 1, NAN, 3);
}

/* q, k and v are parts of one array, or the same for the whole batch: as copies of them. */
static void parts_are_read_where_they_lie(void **state) {
    (void)state;
    wb_array *x = wb_normal(WB_F32, 60, 40, 2, 3), *one = wb_normal(WB_F32, 10, 40);
    wb_array *y[2], *g[2][2];
    for (int i = 0; i < 2; i++) {
        wb_array *part[3] = {wb_slice(x, 0, 0, 20, 1), wb_slice(x, 0, 30, 40, 1),
                             wb_expand(one, 10, 40, 2, 3)};
        for (int p = 0; p < 3 && i; p++) part[p] = wb_neg(wb_neg(part[p]));
        y[i] = wb_attention(part[0], part[1], part[2], .heads = 2, .kv_heads = 1, .causal = true);
        assert_int_equal(wb_gradient_of(wb_sum(wb_square(y[i])), 2, (wb_array *[]){x, one}, g[i]),
                         WB_OK);
        wb_eval(y[i], g[i][0], g[i][1]);
    }
    assert_same_bits(y[0], y[1], "y");
    assert_same_bits(g[0][0], g[1][0], "the gradient of all parts");
    assert_same_bits(g[0][1], g[1][1], "that of one for all");
}

static void check_threads(int64_t heads, int64_t length, bool causal) {
    const int before = wb_threads();
    wb_array *x = wb_normal(WB_F32, 16 * heads, length, heads == 1 ? 1 : 2), *y[2], *g[2];
    for (int i = 0; i < 2; i++) {
        wb_set_threads(i ? 5 : 1);
        y[i] = wb_attention(x, x, x, .heads = heads, .causal = causal);
        assert_int_equal(wb_pullback(y[i], x, 1, &x, &g[i]), WB_OK);
        wb_eval(y[i], g[i]);
        wb_device_sync(wb_default_device()); /* what is queued runs with the threads of its plan */
    }
    wb_set_threads(before);
    assert_same_bits(y[0], y[1], "y");
    assert_same_bits(g[0], g[1], "its gradient");
}

/* Of one long head the derivative is cut by its keys. */
static void threads_do_not_show(void **state) {
    (void)state;
    check_threads(3, 700, true);
    if (!is_on_cpu()) return;
    check_threads(1, 2100, true);
    check_threads(1, 2100, false);
}

/* A device's groups end in any order; what they add up does not depend on it. */
static void runs_do_not_show(void **state) {
    enum { RUNS = 20 };
    static const wb_dtype dtypes[] = {WB_F32, WB_BF16};
    static const char *const names[] = {"y", "dq", "dk", "dv"};
    (void)state;
    for (int t = 0; t < 2; t++) {
        wb_array *q = wb_cast(wb_normal(WB_F32, 32, 256), dtypes[t]), *first[4];
        wb_array *k = wb_cast(wb_normal(WB_F32, 16, 256), dtypes[t]);
        wb_array *v = wb_cast(wb_normal(WB_F32, 16, 256), dtypes[t]);
        for (int run = 0; run < RUNS; run++) {
            wb_array *x[] = {q, k, v}, *got[4];
            got[0] = wb_attention(q, k, v, .heads = 2, .kv_heads = 1, .causal = true);
            assert_int_equal(wb_pullback(got[0], q, 3, x, got + 1), WB_OK);
            wb_eval(got[0], got[1], got[2], got[3]);
            for (int i = 0; i < 4 && run > 0; i++) assert_same_bits(got[i], first[i], names[i]);
            if (run == 0) memcpy(first, got, sizeof first);
        }
    }
}

static void tiles_are_products_and_a_softmax(void **state) {
    const tiles_row *row = *state;
    if (!row->is_brief && !is_on_cpu()) skip();
    compare_tiles(row);
}

/* ---- positions ---- */

static void rotary_turns_pairs(void **state) {
    (void)state;
    wb_array *x = wb_ones(widest(), 4, 3);
    /* angles p and p / 100 */
    double wanted[12];
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < 2; i++) {
            const double a = i ? (p + 5) / 100.0 : p + 5;
            wanted[4 * p + i] = cos(a) - sin(a), wanted[4 * p + i + 2] = cos(a) + sin(a);
        }
    assert_numbers(wb_rotary(x, .first = 5), 12, wanted, coarse(1e-12, 1e-6));
    /* scores depend on distances alone */
    wb_array *q = wb_normal(widest(), 8, 1), *k = wb_normal(widest(), 8, 1);
    wb_array *near = wb_dot(wb_rotary(q, .first = 2), wb_rotary(k, .first = 7));
    wb_array *far = wb_dot(wb_rotary(q, .first = 40), wb_rotary(k, .first = 45));
    assert_value(near, wb_item(far), coarse(1e-10, 1e-4));
    assert_int_equal(wb_dtype_of(wb_rotary(wb_ones(WB_F16, 4, 3))), WB_F16);
}

/* The angle of pair i at position p is p times rates[i]. */
static void assert_rates(wb_array *turned, int64_t p, double r0, double r1) {
    const double wanted[] = {cos((double)p * r0), cos((double)p * r1), sin((double)p * r0),
                             sin((double)p * r1)};
    assert_numbers(turned, 4, wanted, coarse(1e-12, 1e-5));
}

/* Rates 1 and 1/100 make 64 / 2 pi = 10.19 and 0.1019 turns in 64 positions. */
static void rotary_is_slowed(void **state) {
    (void)state;
    wb_array *x = wb_concat(0, wb_ones(widest(), 2, 1), wb_zeros(widest(), 2, 1));
    assert_rates(wb_rotary(x, .first = 9, .factor = 4), 9, 0.25, 0.0025);
    assert_rates(wb_rotary(x, .first = 9, .factor = 4, .low = 1, .high = 4, .length = 64), 9, 1,
                 0.0025);
    const double kept = (64 / (2 * acos(-1)) - 8) / (12 - 8);
    assert_rates(wb_rotary(x, .first = 9, .factor = 4, .low = 8, .high = 12, .length = 64), 9,
                 0.25 + kept * 0.75, 0.0025);
    assert_sizes(wb_rotary(wb_zeros(widest(), 4, 0)), 4, 0);
    assert_null(wb_rotary(x, .low = 1, .high = 4, .length = 64));
    assert_error(WB_ERROR_ARGUMENT, "rotary: factor must be positive and finite");
    assert_null(wb_rotary(x, .factor = 4, .low = 4, .high = 4, .length = 64));
    assert_error(WB_ERROR_ARGUMENT, "rotary: low must be below high, and length positive");
}

static void sinusoidal_is_a_table(void **state) {
    (void)state;
    wb_array *y = wb_sinusoidal(widest(), 4, 2);
    const double s = sqrt(0.5);
    assert_values(y, coarse(1e-12, 1e-6), 0, 0, s, s, s * sin(1), s * sin(1e-4), s * cos(1),
                  s * cos(1e-4));
}

/* ---- mistakes ---- */

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {TEST(memory_grows_with_the_length),
                                     TEST(numbers),
                                     TEST(weights_sum_to_one),
                                     TEST(heads_are_independent),
                                     TEST(masks),
                                     TEST(what_causal_hides_does_not_show),
                                     TEST(a_query_without_keys_gives_zeros),
                                     TEST(a_bias_is_added),
                                     TEST(dropout_keeps_the_mean),
                                     TEST(gradients),
                                     TEST(an_empty_batch_has_gradients),
                                     TEST(infinite_scores_are_limits),
                                     TEST(scores_may_be_large),
                                     TEST(parts_are_read_where_they_lie),
                                     TEST(threads_do_not_show),
                                     TEST(runs_do_not_show),
                                     TEST(rotary_turns_pairs),
                                     TEST(rotary_is_slowed),
                                     TEST(sinusoidal_is_a_table)};
    ADD_TESTS(&tests, all);
    ADD_ROWS(&tests, tiles, tiles_are_products_and_a_softmax);
    return run_test_list("ops/test_attention", &tests, NULL, NULL);
}
