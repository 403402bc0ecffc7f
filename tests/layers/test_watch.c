/* src/layers/watch.c: values and gradients by path. */
#include <weber/watch.h>

#include "support/support.h"

enum { MOST = 24 };

typedef struct seen {
    char paths[MOST][64];
    bool are_gradients[MOST];
    wb_array *arrays[MOST];
    int count;
} seen;

static void note(void *user, const char *path, wb_array *x, bool is_gradient) {
    seen *s = user;
    snprintf(s->paths[s->count], sizeof s->paths[0], "%s", path);
    s->arrays[s->count] = x;
    s->are_gradients[s->count++] = is_gradient;
}

static void assert_seen(const seen *s, int count, const char *const *paths, int values) {
    assert_int_equal(s->count, count);
    for (int i = 0; i < count; i++) {
        assert_string_equal(s->paths[i], paths[i]);
        assert_int_equal(s->are_gradients[i], i >= values);
    }
}

static void values_and_gradients_have_paths(void **state) {
    (void)state;
    wb_layer *inner = wb_chain(wb_dense(3, 3, wb_tanh), wb_skip(wb_dense(3, 3), wb_connect_add));
    wb_layer *model = wb_chain(wb_dense(2, 3), inner);
    wb_array *x = wb_ones(WB_F32, 2, 4), *weight = wb_get(model, "layers.1.weight"), *g, *plain;
    assert_int_equal(wb_gradient_of(wb_sum(wb_apply(model, x)), 1, &weight, &plain), WB_OK);
    seen s = {.count = 0};
    wb_watch_layers(note, &s);
    wb_array *y = wb_apply(model, x);
    assert_int_equal(wb_gradient_of(wb_sum(y), 1, &weight, &g), WB_OK);
    wb_watch_layers(NULL, NULL);
    static const char *const paths[] = {"layers.1",
                                        "layers.2.layers.1",
                                        "layers.2.layers.2.layers",
                                        "layers.2.layers.2",
                                        "layers.2",
                                        "",
                                        "",
                                        "layers.2",
                                        "layers.2.layers.2",
                                        "layers.2.layers.2.layers",
                                        "layers.2.layers.1",
                                        "layers.1"};
    assert_seen(&s, 12, paths, 6);
    assert_same_bits(g, plain, "the gradient");
    assert_same_bits(s.arrays[5], y, "the last value");
    wb_array *sum = wb_matmul(s.arrays[11], wb_transpose(x)); /* of the first layer's cotangent */
    assert_true(wb_approx(sum, g, 1e-5, 1e-6, NULL, 0));
    (void)wb_apply(model, x);
    assert_int_equal(s.count, 12);
    wb_free(model);
}

static void sizes_are_seen_without_numbers(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_conv(.kernel = {3, 3}, .in = 1, .out = 4), wb_flatten(),
                               wb_dense(4 * 26 * 26, 10));
    seen s = {.count = 0};
    wb_watch_layers(note, &s);
    assert_int_equal(wb_outputsize(model, {{28, 28, 1, 32}}).sizes[0], 10);
    wb_watch_layers(NULL, NULL);
    assert_int_equal(s.count, 4);
    assert_string_equal(s.paths[1], "layers.2");
    wb_free(model);
}

static void fail_here(void *user, const char *path, wb_array *x, bool is_gradient) {
    (void)user, (void)path, (void)is_gradient;
    (void)wb_add(x, wb_zeros(WB_F32, 77));
}

static void a_watcher_may_fail(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 3);
    wb_watch_layers(fail_here, NULL);
    assert_null(wb_apply(model, wb_ones(WB_F32, 2, 4)));
    wb_watch_layers(NULL, NULL);
    assert_error(WB_ERROR_SHAPE, "do not broadcast");
    wb_free(model);
}

static void note_first(void *user, const char *path, wb_array *x, bool is_gradient) {
    note(user, path, x, is_gradient);
    wb_watch_layers(NULL, NULL);
}

/* The layer that is shown then is shown whole. */
static void a_watcher_may_end_itself(void **state) {
    (void)state;
    wb_layer *model = wb_lstm(2, 3, .return_state = true);
    wb_array *x = wb_ones(WB_F32, 2, 4), *y[WB_MOST_ARRAYS], *g;
    seen s = {.count = 0};
    wb_watch_layers(note_first, &s);
    const int given = wb_apply_many(model, 1, &x, WB_MOST_ARRAYS, y);
    assert_true(given > 1);
    assert_int_equal(s.count, given);
    assert_int_equal(wb_gradient_of(wb_sum(y[0]), 1, &x, &g), WB_OK);
    assert_true(s.count > given && s.are_gradients[given]);
    wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(values_and_gradients_have_paths),
                                       TEST(sizes_are_seen_without_numbers),
                                       TEST(a_watcher_may_fail), TEST(a_watcher_may_end_itself)};
    return cmocka_run_group_tests_name("layers/test_watch", tests, NULL, NULL);
}
