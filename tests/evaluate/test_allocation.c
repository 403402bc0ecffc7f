/* The n-th allocation fails, for n = 1, 2, 3 ...: building, evaluating and differentiating end with
 * an error, nothing leaks, and the same work succeeds afterwards. */
#include <pthread.h>

#include "base/memory.h"
#include "support/support.h"

typedef double work_fn(
    wb_array *x); /* a number made of everything the work made; NaN if something failed */

static double step(wb_array *x) {
    wb_array *w = wb_full(WB_F32, 0.5, 3, 4), *b = wb_vector(0.1f, 0.2f, 0.3f), *g[2];
    wb_array *h = wb_relu(wb_add(wb_matmul(w, x), b));
    wb_array *l = wb_mean(wb_square(wb_sub(wb_softmax(h), wb_number(0.25))));
    if (wb_gradient_of(l, 2, (wb_array *[]){w, b}, g) != WB_OK) return (double)NAN;
    wb_array *new_w = wb_sub(w, wb_mul(g[0], wb_late(0.1))),
             *new_b = wb_sub(b, wb_mul(g[1], wb_late(0.1)));
    if (wb_eval_make(3, (wb_array *[]){new_w, new_b, l}) != WB_OK) return (double)NAN;
    return wb_item(wb_sum(new_w)) + wb_item(wb_sum(new_b)) + wb_item(l);
}

static double windows(wb_array *x) {
    wb_array *image = wb_reshape(wb_concat(0, x, x, wb_flip(x, 1)), 6, 5, 1, -1),
             *f = wb_full(WB_F32, 0.1, 3, 2, 1, 2), *g[1];
    wb_array *y = wb_maxpool_op(wb_conv_op(image, f, .pad = {1, 1}), .kernel = {2, 2});
    wb_array *l = wb_sum(wb_square(wb_meanpool_op(y, .kernel = {2, 1})));
    if (wb_gradient_of(l, 1, &f, g) != WB_OK) return (double)NAN;
    return wb_item(wb_sum(g[0])) + wb_item(l);
}

static double views(wb_array *x) {
    const int32_t places[3] = {1, 0, 1};
    wb_array *taken = wb_gather(x, wb_from(WB_I32, places, 3), 0);
    wb_array *many[20];
    for (int i = 0; i < 20; i++)
        many[i] = wb_mul_number(wb_slice(taken, 1, i % 3, 5, 1 + i % 2), i + 0.5);
    wb_array *joined = wb_concat_make(1, 20, many), *g[1];
    wb_array *turned = wb_reshape(wb_transpose(joined), 3, -1);
    wb_array *l = wb_sum(wb_mul(turned, wb_normal(WB_F32, 3, wb_size(turned, 1))));
    if (wb_gradient_of(l, 1, &x, g) != WB_OK) return (double)NAN;
    if (wb_eval(joined) != WB_OK) return (double)NAN;
    return wb_item(wb_sum(g[0])) + wb_item(l);
}

static void leak(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    wb_array *z = wb_add(wb_matmul(context, carries[0]), inputs[0]);
    outputs[0] = carries[0] = wb_tanh(wb_mul(z, wb_uniform(WB_F32, 4)));
}

static double scans(wb_array *x) {
    wb_array *w = wb_full(WB_F32, 0.25, 4, 4), *h = wb_full(WB_F32, 1, 4), *y, *g[2];
    if (wb_scan(leak, w, 1, &h, 1, &x, 1, &y) != WB_OK) return (double)NAN;
    wb_array *l = wb_add(wb_sum(wb_square(y)), wb_sum(h));
    if (wb_gradient_of(l, 2, (wb_array *[]){w, x}, g) != WB_OK) return (double)NAN;
    if (wb_eval(l, g[0], g[1]) != WB_OK) return (double)NAN;
    return wb_item(l) + wb_item(wb_sum(g[0])) + wb_item(wb_sum(g[1]));
}

static double kept_and_scoped(wb_array *x) {
    double result = (double)NAN;
    wb_array *kept = NULL;
    for (int i = 0; i < 20; i++) wb_scope_open(); /* deeper than the first list of scopes */
    kept = wb_keep(wb_exp(wb_mul_number(x, 0.1)));
    bool closed = true;
    for (int i = 0; i < 20; i++) closed = wb_scope_close() == WB_OK && closed;
    if (kept && closed) result = wb_item(wb_sum(kept));
    wb_free(kept);
    return result;
}

static const struct row {
    const char *name;
    work_fn *fn;
} rows[] = {{"a small training step", step},
            {"convolutions and pools", windows},
            {"views and joins", views},
            {"a scan and its gradient", scans},
            {"kept arrays and deep scopes", kept_and_scoped}};

static double once(work_fn *fn) {
    float numbers[20];
    for (int i = 0; i < 20; i++) numbers[i] = (float)((i * 7) % 11) * 0.25f - 1;
    wb_seed(5);
    wb_scope_open();
    wb_array *x = wb_from(WB_F32, numbers, 4, 5);
    const double result = x ? fn(x) : (double)NAN;
    const bool closed = wb_scope_close() == WB_OK;
    return closed ? result : (double)NAN;
}

/* On a thread of its own, so that lists, caches and pools are empty at first. */
static void *fail_each(void *argument) {
    const struct row *row = argument;
    static char wrong[256];
    const double wanted = once(row->fn);
    const wb_live_counts before = live_now();
    wb_clear_error();
    for (int64_t n = 1;; n++) {
        (void)wb_fail_allocation(n);
        const double got = once(row->fn);
        (void)wb_fail_allocation(0);
        const wb_status status = wb_error_status();
        wb_clear_error();
        const wb_live_counts live = live_now();
        (void)snprintf(wrong, sizeof wrong,
                       "allocation %lld: %.9g for %.9g, status %d, %lld arrays, %lld buffers",
                       (long long)n, got, wanted, (int)status,
                       (long long)(live.arrays - before.arrays),
                       (long long)(live.buffers - before.buffers));
        if (live.arrays != before.arrays || live.buffers != before.buffers) return wrong;
        if (status == WB_OK && got == wanted) return NULL; /* there are fewer than n */
        if (status != WB_ERROR_MEMORY) return wrong;
        if (once(row->fn) != wanted || wb_failed()) return wrong;
        if (n > 100000) return wrong;
    }
}

/* The same, each time with everything new: nothing of an earlier run is there to help. */
static void *fail_fresh(void *argument) {
    const struct row *row = ((void **)argument)[0];
    const int64_t n = *(const int64_t *)((void **)argument)[1];
    (void)wb_fail_allocation(n);
    const double got = once(row->fn);
    (void)wb_fail_allocation(0);
    const bool failed = wb_failed();
    wb_clear_error();
    const double again = once(row->fn);
    if (wb_failed()) return "the same work failed afterwards";
    if (failed) return isnan(got) ? NULL : "a number in spite of an error";
    return got == again ? argument : "another number";
}

static void every_allocation_may_fail(void **state) {
    const struct row *row = *state;
    pthread_t thread;
    void *wrong;
    assert_int_equal(pthread_create(&thread, NULL, fail_each, (void *)(uintptr_t)row), 0);
    (void)pthread_join(thread, &wrong);
    if (wrong) fail_msg("%s", (const char *)wrong);
}

static void every_first_allocation_may_fail(void **state) {
    const struct row *row = *state;
    for (int64_t n = 1; n < 100000; n += n < 200 ? 1 : 17) {
        void *arguments[2] = {(void *)(uintptr_t)row, &n};
        pthread_t thread;
        void *wrong;
        const wb_live_counts before = live_now();
        assert_int_equal(pthread_create(&thread, NULL, fail_fresh, arguments), 0);
        (void)pthread_join(thread, &wrong);
        const wb_live_counts live = live_now();
        if (live.arrays != before.arrays || live.buffers != before.buffers)
            fail_msg("allocation %lld: %lld arrays, %lld buffers left", (long long)n,
                     (long long)(live.arrays - before.arrays),
                     (long long)(live.buffers - before.buffers));
        if (wrong == (void *)arguments) return;
        if (wrong) fail_msg("allocation %lld: %s", (long long)n, (const char *)wrong);
    }
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    static char names[ROWS][96];
    struct CMUnitTest tests[2 * ROWS];
    for (int i = 0; i < ROWS; i++) {
        tests[2 * i] = TEST_ROW(&rows[i], every_allocation_may_fail);
        (void)snprintf(names[i], sizeof names[i], "%s on a new thread", rows[i].name);
        tests[2 * i + 1] = TEST_ROW(&rows[i], every_first_allocation_may_fail);
        tests[2 * i + 1].name = names[i];
    }
    return cmocka_run_group_tests_name("evaluate/test_allocation", tests, NULL, NULL);
}
