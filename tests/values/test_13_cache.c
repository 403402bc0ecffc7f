/* Rule 13: the cache is bounded in bytes. Ten thousand different batch sizes: flat memory, misses
 * counted. */

#include "platform/memory.h"
#include "support/sanitized.h"
#include "values/modes.h"

enum {
    SIZES = 10000,
    CACHE_LIMIT = 64 << 20, /* src/evaluate/run.c */
    SLACK = 16 << 20,
};

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void step(wb_optimiser *o, wb_layer *model, int64_t size) {
    wb_scope_open();
    const wb_batch batch = {.x = wb_full(WB_F32, 0.5, 3, size),
                            .y = wb_full(WB_F32, 0.25, 2, size)};
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss, model, &batch, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void ten_thousand_batch_sizes_leave_memory_flat(void **state) {
    (void)state;
    if (compiles_kernels() || SANITIZED)
        skip(); /* plans are the host's; device/test_memory has the device's side */
    wb_layer *model = wb_chain(wb_dense(3, 4, wb_tanh), wb_dense(4, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    step(o, model, SIZES); /* the largest workspace and the largest buffers */
    const wb_plan_counts before = wb_plan_status();
    const wb_memory_info at_first = wb_memory_status(wb_cpu_device());
    int64_t full = 0, largest = 0, evicted_at = 0;
    for (int64_t size = 1; size < SIZES; size++) {
        step(o, model, size);
        const int64_t bytes = wb_plan_status().cache_bytes;
        if (bytes > largest) largest = bytes;
        if (!evicted_at && bytes < largest) evicted_at = size, full = wb_platform_heap_bytes();
    }
    const wb_plan_counts after = wb_plan_status();
    const wb_memory_info at_last = wb_memory_status(wb_cpu_device());
    assert_true(after.misses - before.misses >= SIZES - 1);
    assert_true(evicted_at > 0 &&
                evicted_at < SIZES * 3 / 4); /* the limit was reached early enough */
    assert_true(largest <= CACHE_LIMIT);
    assert_int_equal(at_last.live, at_first.live);
    assert_int_equal(at_last.workspace, at_first.workspace);
    assert_true(at_last.cached <= at_first.cached + SLACK);
    if (full) {
        /* the count is honest: what malloc handed out did not grow once the cache was full */
        const int64_t growth = wb_platform_heap_bytes() - full;
        if (growth > SLACK) fail_msg("%lld bytes more", (long long)growth);
        /* elsewhere a compiler's heap may be in it */
        if (is_on_host() && full > 3 * (int64_t)CACHE_LIMIT / 2)
            fail_msg("%lld bytes in all", (long long)full);
    }
    const int64_t misses = wb_plan_status().misses;
    step(o, model, SIZES - 1); /* the newest are still there, */
    assert_int_equal(wb_plan_status().misses, misses);
    step(o, model, 1); /* the oldest are not */
    assert_true(wb_plan_status().misses > misses);
    wb_free(o), wb_free(model);
}

static void what_is_used_again_stays(void **state) {
    (void)state;
    if (!is_planned()) skip(); /* the many small plans of a step fill the cache too slowly */
    wb_layer *model = wb_chain(wb_dense(3, 4, wb_tanh), wb_dense(4, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    step(o, model, 1), step(o, model, 1);
    bool evicted = false;
    for (int64_t size = 2; !evicted; size++) {
        assert_true(size < 2 * SIZES);
        const int64_t before = wb_plan_status().cache_bytes;
        step(o, model, size);
        evicted = wb_plan_status().cache_bytes < before;
        const int64_t misses = wb_plan_status().misses;
        step(o, model, 1);
        assert_int_equal(wb_plan_status().misses, misses);
    }
    wb_free(o), wb_free(model);
}

/* One workspace, as large as the largest plan wants it. */
static void plans_share_one_workspace(void **state) {
    (void)state;
    const int64_t sizes[] = {40, 300, 40, 170, 300, 299};
    int64_t workspace = 0;
    for (int i = 0; i < 6; i++) {
        wb_scope_open();
        wb_array *x = wb_full(WB_F32, 0.01, sizes[i], sizes[i]);
        (void)wb_item(wb_sum(wb_matmul(wb_softmax(wb_matmul(x, x)), x)));
        assert_int_equal(wb_scope_close(), WB_OK);
        if (i == 1) workspace = wb_memory_status(wb_cpu_device()).workspace;
    }
    assert_int_equal(wb_memory_status(wb_cpu_device()).workspace, workspace);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(plans_share_one_workspace),
        TEST(ten_thousand_batch_sizes_leave_memory_flat),
        TEST(what_is_used_again_stays),
    };
    return cmocka_run_group_tests_name("values 13", tests, NULL, NULL);
}

int main(void) { return run(); }
