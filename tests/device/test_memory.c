/* src/device/allocator.c: memory of each place, counted, limited and given back. */
#include <pthread.h>

#include <weber/losses.h>
#include <weber/optimise.h>

#include "array/array.h"
#include "base/memory.h"
#include "platform/memory.h"

#include "support/places.h"
#include "support/sanitized.h"

enum { MEGA = 1 << 20 };

/* Each test runs once for each place: arrays are made there. */
static const wb_device *here;

static int work_here(void **state) {
    here = *(const wb_device **)*state;
    const wb_device *before = wb_default_device();
    wb_memory_reclaim(here);
    if (open_scope(state) != 0) return 1;
    *state = (void *)(uintptr_t)before;
    wb_set_default_device(here);
    return 0;
}

static int close_here(void **state) {
    wb_set_default_device(*state);
    if (wb_memory_limit(here, 0) != WB_OK) return 1;
    return close_places(state);
}

static wb_memory_info now(void) {
    if (wb_device_sync(here) != WB_OK) fail_msg("%s", wb_error_message());
    return wb_memory_status(here);
}

/* An array of so many bytes, computed. */
static wb_array *piece(int64_t bytes) {
    wb_array *x = wb_full(WB_F32, 1, bytes / 4);
    if (wb_eval(x) != WB_OK) return NULL;
    return x;
}

/* ---- counting ---- */

static void memory_is_counted(void **state) {
    (void)state;
    const wb_memory_info before = now();
    wb_array *x = piece(3 * MEGA), *y = piece(MEGA);
    const wb_memory_info with = now();
    assert_true(with.live >= before.live + 4 * MEGA);
    assert_true(with.live <= before.live + 5 * MEGA); /* size classes: a fifth at most */
    assert_true(with.peak >= with.live);
    wb_free(x);
    const wb_memory_info without = now();
    assert_true(without.live <= with.live - 3 * MEGA);
    assert_true(without.cached >= with.cached + 3 * MEGA);
    assert_true(without.peak == with.peak);
    x = piece(3 * MEGA); /* the cached one */
    assert_int_equal(now().live, with.live);
    assert_int_equal(now().cached, with.cached);
    wb_free(x), wb_free(y);
    wb_memory_reclaim(here);
    assert_int_equal(now().cached, 0);
    assert_int_equal(now().live, before.live);
}

static void take_pieces(wb_array **pieces, int count) {
    for (int i = 0; i < count; i++) assert_non_null(pieces[i] = piece(MEGA));
}

static void memory_depends_on_what_is_free_alone(void **state) {
    (void)state;
    enum { PIECES = 7 };
    static const int orders[][PIECES] = {
        {0, 1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1, 0}, {3, 0, 6, 1, 5, 2, 4}, {2, 6, 4, 0, 5, 1, 3}};
    wb_array *pieces[PIECES];
    const void *places[PIECES];
    take_pieces(pieces, PIECES); /* those that were there before are now in use, or among these */
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        for (int i = 0; i < PIECES; i++) wb_free(pieces[orders[o][i]]);
        take_pieces(pieces, PIECES);
        for (int i = 0; i < PIECES; i++) {
            const void *at = pieces[i]->buffer->handle;
            if (o > 0 && at != places[i]) fail_msg("order %zu: piece %d is elsewhere", o, i);
            places[i] = at;
        }
    }
    for (int i = 0; i < PIECES; i++) wb_free(pieces[i]);
}

static void views_cost_nothing(void **state) {
    (void)state;
    wb_array *x = piece(MEGA);
    const wb_memory_info before = now();
    wb_array *view = wb_reshape(wb_flip(x, 0), 64, MEGA / 4 / 64);
    assert_int_equal(wb_eval(view, wb_transpose(view)), WB_OK);
    assert_int_equal(now().live, before.live);
    wb_scope_open();
    wb_array *part = wb_keep(wb_slice(x, 0, 0, 10, 1));
    assert_int_equal(wb_scope_close(), WB_OK);
    wb_free(view), wb_free(x); /* the part holds the whole */
    assert_true(now().live >= MEGA);
    wb_free(part);
}

static void *work_elsewhere(void *unused) {
    (void)unused;
    wb_scope_open();
    wb_array *x = wb_uniform(WB_F32, 300, 300);
    const double sum = wb_item(wb_sum(wb_softmax(wb_matmul(x, wb_exp(wb_matmul(x, x))))));
    (void)wb_scope_close();
    return wb_memory_status(here).workspace > 0 && isfinite(sum) ? NULL : "no workspace";
}

static void a_threads_workspace_ends_with_it(void **state) {
    (void)state;
    const wb_memory_info before = now();
    pthread_t thread;
    void *wrong;
    assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    if (wrong) fail_msg("%s", (char *)wrong);
    assert_int_equal(now().workspace, before.workspace);
    assert_int_equal(now().live, before.live);
}

static void questions_about_nothing(void **state) {
    (void)state;
    wb_memory_holder holder;
    assert_int_equal(wb_memory_status(NULL).live, 0);
    assert_int_equal(wb_memory_holders(NULL, 1, &holder), 0);
    assert_int_equal(wb_memory_holders(here, 0, NULL), 0);
    assert_int_equal(wb_memory_holders(here, 3, NULL), 0);
    wb_memory_reclaim(NULL);
    assert_false(wb_failed());
    assert_int_equal(wb_memory_limit(NULL, 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_memory_limit: the device is NULL");
    assert_int_equal(wb_memory_limit(here, -1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_memory_limit: bytes must not be negative, got -1");
}

/* ---- who holds it ---- */

static int64_t bytes_of_tag(const char *tag, int64_t *arrays) {
    wb_memory_holder holders[64];
    const int count = wb_memory_holders(here, 64, holders);
    for (int i = 1; i < count; i++) assert_true(holders[i - 1].bytes >= holders[i].bytes);
    *arrays = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(holders[i].tag, tag) == 0) {
            *arrays = holders[i].arrays;
            return holders[i].bytes;
        }
    return 0;
}

static void holders_are_named_by_what_made_them(void **state) {
    (void)state;
    int64_t arrays, others;
    const int64_t data = bytes_of_tag("data", &arrays);
    float *numbers = calloc(MEGA, sizeof *numbers);
    wb_array *x = wb_from(WB_F32, numbers, 1024, 1024);
    free(numbers);
    assert_int_equal(bytes_of_tag("data", &others), data + 4 * MEGA);
    assert_int_equal(others, arrays + 1);

    wb_array *products[2], *sines = wb_sin(x), *small = wb_exp(wb_vector(1));
    for (int i = 0; i < 2; i++) products[i] = wb_matmul(x, wb_add_number(x, i));
    assert_int_equal(wb_eval(products[0], products[1], sines, small), WB_OK);
    assert_int_equal(bytes_of_tag("matmul", &arrays), 8 * MEGA);
    assert_int_equal(arrays, 2);
    assert_int_equal(bytes_of_tag("sin", &arrays), 4 * MEGA);

    wb_memory_holder most[2];
    assert_true(wb_memory_holders(here, 2, most) > 3); /* how many there are, the largest given */
    assert_string_equal(most[0].tag, "matmul");
    wb_free(products[0]);
    assert_int_equal(bytes_of_tag("matmul", &arrays), 4 * MEGA);
    assert_int_equal(arrays, 1);
}

static void what_was_moved_keeps_its_name(void **state) {
    (void)state;
    int64_t arrays, others;
    const int64_t before = bytes_of_tag("sin", &arrays);
    wb_array *x = put(here == cpu ? first : cpu, wb_from(WB_F32, (float[256]){0}, 256));
    wb_array *there = put(here, wb_sin(x));
    assert_int_equal(wb_eval(there), WB_OK);
    assert_int_equal(bytes_of_tag("sin", &others), before + 1024);
    assert_int_equal(others, arrays + 1);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void step(wb_optimiser *o, wb_layer *model, const wb_batch *batch) {
    wb_scope_open();
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss, model, batch, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void of_a_model_the_optimiser_holds_most(void **state) {
    (void)state;
    wb_layer *model = wb_dense(1024, 1024);
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = {.x = wb_ones(WB_F32, 1024, 1), .y = wb_ones(WB_F32, 1024, 1)};
    for (int i = 0; i < 3; i++) step(o, model, &batch);
    wb_memory_holder most;
    assert_true(wb_memory_holders(here, 1, &most) > 0);
    assert_string_equal(most.tag, "step"); /* weight and two moments, bias and its two */
    assert_true(most.arrays == 6 && most.bytes >= 12 * MEGA);
    wb_free(o), wb_free(model);
}

/* ---- limits ---- */

static void a_limit_is_kept(void **state) {
    (void)state;
    wb_array *x = piece(8 * MEGA), *y = piece(2 * MEGA);
    wb_memory_reclaim(here);
    const wb_memory_info before = now();
    const int64_t limit = before.live + before.workspace + 4 * MEGA;
    assert_int_equal(wb_memory_limit(here, limit), WB_OK);
    assert_int_equal(now().limit, limit);
    assert_null(piece(6 * MEGA));
    char text[1024], part[64];
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_MEMORY);
    (void)snprintf(part, sizeof part, "limit %lld", (long long)limit);
    if (!strstr(text, "out of memory") || !strstr(text, part) || !strstr(text, "most in full (") ||
        !strstr(text, wb_device_name(here)))
        fail_msg("\"%s\" does not say \"%s\", holders and device", text, part);
    assert_int_equal(now().live, before.live);
    wb_array *z = piece(3 * MEGA); /* what fits is given */
    assert_non_null(z);
    wb_free(z), wb_free(y);
    z = piece(5 * MEGA); /* and the cache gives way */
    assert_non_null(z);
    assert_int_equal(wb_memory_limit(here, 0), WB_OK);
    assert_int_equal(now().limit, 0);
    assert_non_null(piece(16 * MEGA));
    assert_value(wb_maximum(x), 1, 0);
}

static void a_step_over_the_limit_changes_nothing(void **state) {
    if (getenv("WEBER_EAGER")) skip(); /* a plan is what asks for the memory */
    (void)state;
    wb_layer *model = wb_dense(256, 256, .init = wb_ones_init);
    wb_optimiser *o = wb_setup(wb_momentum(), model);
    wb_array *x = piece(256 * 512 * 4), *y = piece(256 * 512 * 4);
    const wb_batch batch = {.x = wb_reshape(x, 256, 512), .y = wb_reshape(y, 256, 512)};
    wb_array *weight = wb_get(model, "weight");
    wb_memory_reclaim(here);
    const wb_memory_info before = now();
    assert_int_equal(wb_memory_limit(here, before.live + before.workspace + 1000), WB_OK);
    wb_scope_open();
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss, model, &batch, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_ERROR_MEMORY);
    assert_error(WB_ERROR_MEMORY, "out of memory");
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(wb_step_count(o), 0);
    assert_ptr_equal(wb_get(model, "weight"), weight);
    assert_int_equal(wb_memory_limit(here, 0), WB_OK);
    assert_value(wb_minimum(weight), 1, 0);
    step(o, model, &batch);
    assert_int_equal(wb_step_count(o), 1);
    wb_free(o), wb_free(model);
}

static void a_move_over_the_limit_changes_nothing(void **state) {
    (void)state;
    wb_set_default_device(here == cpu ? first : cpu);
    wb_layer *model = wb_tree(piece(2 * MEGA), piece(MEGA));
    const wb_device *home = wb_device_of(model);
    wb_memory_reclaim(here);
    const wb_memory_info before = now();
    assert_int_equal(wb_memory_limit(here, before.live + before.workspace + 5 * MEGA / 2), WB_OK);
    assert_null(wb_to(here, model));
    assert_error(WB_ERROR_MEMORY, "most in");
    assert_int_equal(wb_move(here, model), WB_ERROR_MEMORY);
    assert_error(WB_ERROR_MEMORY, wb_device_name(here));
    assert_ptr_equal(wb_device_of(model), home);
    assert_int_equal(now().live, before.live);
    assert_int_equal(wb_memory_limit(here, 0), WB_OK);
    assert_int_equal(wb_move(here, model), WB_OK);
    assert_value(wb_minimum(wb_get(model, "1")), 1, 0);
    wb_free(model);
}

static void more_than_there_is(void **state) {
    if (getenv("WEBER_EAGER")) skip(); /* a plan is what asks for the memory */
    NEEDS_64_BITS();
    (void)state;
    wb_array *x = piece(MEGA);
    const wb_memory_info before = now();
    wb_array *huge = wb_iota(WB_F32, 0, (int64_t)1 << 46);
    assert_int_equal(wb_eval(huge), WB_ERROR_MEMORY);
    char text[1024];
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_MEMORY);
    if (!strstr(text, "out of memory") || !strstr(text, "most in full (1"))
        fail_msg("\"%s\" does not name the largest holder", text);
    assert_int_equal(now().live, before.live);
    assert_value(wb_maximum(x), 1, 0);
}

/* ---- flat ---- */

static void ten_thousand_steps_are_flat(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(3, 8, wb_tanh), wb_dense(8, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    wb_array *x = wb_full(WB_F32, 0.5, 3, 16), *y = wb_full(WB_F32, 0.25, 2, 16);
    assert_int_equal(wb_eval(x, y), WB_OK);
    const wb_batch batch = {.x = x, .y = y};
    wb_memory_info at_first = {0};
    int64_t heap = 0, pieces = 0;
    for (int i = 0; i < 10000; i++) {
        step(o, model, &batch);
        if (i != 1000) continue;
        at_first = now();
        heap = wb_platform_heap_bytes(), pieces = live_now().buffers;
    }
    const wb_memory_info at_last = now();
    assert_int_equal(at_last.live, at_first.live);
    assert_int_equal(at_last.cached, at_first.cached);
    assert_int_equal(at_last.workspace, at_first.workspace);
    assert_int_equal(at_last.peak, at_first.peak);
    assert_int_equal(live_now().buffers, pieces);
    if (heap && !NODES_REST) assert_true(wb_platform_heap_bytes() - heap < MEGA);
    wb_free(o), wb_free(model);
}

/* Pieces of all sizes, several at a time: the cache holds no more than the sizes that were live
 * together. */
static void ten_thousand_sizes_are_flat(void **state) {
    (void)state;
    enum { SIZES = 10000, TOGETHER = 4 };
    wb_array *ring[TOGETHER] = {NULL};
    float *numbers = calloc(2 * SIZES, sizeof *numbers);
    const wb_memory_info before = now();
    int64_t heap = 0;
    for (int i = 0; i < 2 * SIZES; i++) {
        const int64_t size = (int64_t)i * 7919 % SIZES + 1; /* each size twice */
        wb_free(ring[i % TOGETHER]);
        wb_scope_open();
        ring[i % TOGETHER] = wb_keep(wb_from(WB_F32, numbers, size));
        assert_int_equal(wb_scope_close(), WB_OK);
        assert_non_null(ring[i % TOGETHER]);
        if (i == SIZES) heap = wb_platform_heap_bytes();
    }
    for (int i = 0; i < TOGETHER; i++) wb_free(ring[i]);
    free(numbers);
    const wb_memory_info after = now();
    assert_int_equal(after.live, before.live);
    /* on the way to a device memory of the host waits for the next sync, which comes after some
     * hundred */
    const int64_t largest = 4 * SIZES;
    assert_true(after.cached <= 16 * TOGETHER * largest);
    if (heap) assert_true(wb_platform_heap_bytes() - heap < 8 * MEGA);
}

static void *allocate_and_free(void *seed) {
    test_random r = {(uint64_t)(uintptr_t)seed};
    for (int i = 0; i < 300; i++) {
        wb_scope_open();
        const int64_t n = 1 + random_below(&r, 5000);
        wb_array *x = wb_full(WB_F32, 2, n), *y = wb_keep(wb_mul(wb_exp(wb_log(x)), x));
        if (wb_scope_close() != WB_OK) return "a scope failed";
        wb_scope_open();
        const bool right = fabs(wb_item(wb_sum(y)) - 4 * (double)n) < 1e-2 * (double)n;
        (void)wb_scope_close();
        wb_free(y);
        if (!right) return "a wrong sum";
    }
    return NULL;
}

static void threads_share_the_allocator(void **state) {
    (void)state;
    const wb_memory_info before = now();
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, allocate_and_free, (void *)(i + test_seed())), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        if (wrong) fail_msg("%s", (char *)wrong);
    }
    assert_int_equal(now().live, before.live);
    assert_int_equal(now().workspace, before.workspace);
}

/* ---- each test in each place ---- */

static const struct test_of_a_place {
    const char *name;
    void (*function)(void **state);
} rows[] = {
#define ROW(function)                                                                              \
    { #function, function }
    ROW(memory_is_counted),
    ROW(memory_depends_on_what_is_free_alone),
    ROW(views_cost_nothing),
    ROW(a_threads_workspace_ends_with_it),
    ROW(questions_about_nothing),
    ROW(holders_are_named_by_what_made_them),
    ROW(what_was_moved_keeps_its_name),
    ROW(of_a_model_the_optimiser_holds_most),
    ROW(a_limit_is_kept),
    ROW(a_step_over_the_limit_changes_nothing),
    ROW(a_move_over_the_limit_changes_nothing),
    ROW(more_than_there_is),
    ROW(ten_thousand_steps_are_flat),
    ROW(ten_thousand_sizes_are_flat),
    ROW(threads_share_the_allocator),
};

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[2 * ROWS];
    for (int p = 0; p < 2; p++) /* the CPU, and the device of the tests */
        for (int i = 0; i < ROWS; i++)
            tests[p * ROWS + i] = (struct CMUnitTest){rows[i].name, rows[i].function, work_here,
                                                      close_here, &places[p]};
    return cmocka_run_group_tests_name("device/test_memory", tests, find_places, NULL);
}
