/* Rule 22: makers return the thing or NULL and take NULL for an answer; the first error stays. */
#include "values/modes.h"

/* ---- NULL in, NULL out: every operation of the table ---- */

typedef struct one_row {
    const char *name;
    wb_array *(*fn)(wb_array *x);
} one_row;
typedef struct two_row {
    const char *name;
    wb_array *(*fn)(wb_array *x, wb_array *y);
} two_row;

static const one_row ones[] = {
#define WB_UNARY(name, ...) {#name, wb_##name},
#define WB_MACRO(name, ...) {#name, wb_##name},
#include <weber/ops.def>
};
static const two_row twos[] = {
#define WB_BINARY(name, ...) {#name, wb_##name},
#include <weber/ops.def>
};

/* The call gave NULL and recorded what was NULL; with an error pending it leaves that one. */
#define assert_null_argument(call, text)                                                           \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_error(WB_ERROR_ARGUMENT, text);                                                     \
        assert_null(wb_reshape(wb_vector(1, 2, 3), 2));                                            \
        assert_null(call);                                                                         \
        assert_error(WB_ERROR_SHAPE, "reshape: (3) has 3 elements");                               \
    } while (0)

static void operations_take_null_for_an_answer(void **state) {
    (void)state;
    char text[64];
    wb_array *x = wb_vector(1, 2, 3);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        (void)snprintf(text, sizeof text, "%s: x is NULL", ones[i].name);
        assert_null_argument(ones[i].fn(NULL), text);
    }
    for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) {
        (void)snprintf(text, sizeof text, "%s: x is NULL", twos[i].name);
        assert_null_argument(twos[i].fn(NULL, x), text);
        assert_null_argument(twos[i].fn(NULL, NULL), text);
        (void)snprintf(text, sizeof text, "%s: y is NULL", twos[i].name);
        assert_null_argument(twos[i].fn(x, NULL), text);
    }
}

static void the_others_do_too(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 2);
    wb_layer *dense = wb_dense(2, 2);
    assert_null_argument(wb_sum(NULL), "NULL");
    assert_null_argument(wb_mean(NULL), "NULL");
    assert_null_argument(wb_maximum_dims(NULL, 0), "NULL");
    assert_null_argument(wb_var(NULL, true), "NULL");
    assert_null_argument(wb_argmax(NULL, 0), "NULL");
    assert_null_argument(wb_softmax(NULL), "NULL");
    assert_null_argument(wb_logsumexp(NULL), "NULL");
    assert_null_argument(wb_normalise(NULL, 0.1, 0), "NULL");
    assert_null_argument(wb_matmul(x, NULL), "NULL");
    assert_null_argument(wb_matmul(NULL, x), "NULL");
    assert_null_argument(wb_select(NULL, x, x), "NULL");
    assert_null_argument(wb_select(wb_gt(x, x), x, NULL), "NULL");
    assert_null_argument(wb_conv_op(NULL, x, .stride = {1}), "NULL");
    assert_null_argument(wb_maxpool_op(NULL, .kernel = {2}), "NULL");
    assert_null_argument(wb_unfold(NULL, .kernel = {2}), "NULL");
    assert_null_argument(wb_gather(x, NULL, 0), "NULL");
    assert_null_argument(wb_scatter_add(NULL, x, x, 0), "NULL");
    assert_null_argument(wb_reshape(NULL, 1), "NULL");
    assert_null_argument(wb_permute(NULL, 1, 0), "NULL");
    assert_null_argument(wb_transpose(NULL), "NULL");
    assert_null_argument(wb_slice(NULL, 0, 0, 1, 1), "NULL");
    assert_null_argument(wb_flip(NULL, 0), "NULL");
    assert_null_argument(wb_expand(NULL, 2), "NULL");
    assert_null_argument(wb_concat(0, x, NULL), "NULL");
    assert_null_argument(wb_stack(0, NULL, x), "NULL");
    assert_null_argument(wb_pad(NULL, 0, 1, 1, 0), "NULL");
    assert_null_argument(wb_cast(NULL, WB_F64), "NULL");
    assert_null_argument(wb_copy(NULL), "NULL");
    assert_null_argument(wb_stop_gradient(NULL), "NULL");
    assert_null_argument(wb_apply(dense, NULL), "NULL");
    assert_null_argument(wb_apply(NULL, x), "NULL");
    assert_null_argument(wb_get(NULL, "weight"), "NULL");
    assert_null_argument(wb_map(NULL, NULL, dense), "NULL");
    assert_null_argument(wb_clone(NULL), "NULL");
    assert_null_argument(wb_share(NULL), "NULL");
    assert_null_argument(wb_setup(wb_adam(), NULL), "NULL");
    assert_null_argument(wb_gradient(NULL, dense), "NULL");
    assert_null_argument(wb_mse(x, NULL), "NULL");
    assert_null_argument(wb_logitcrossentropy(NULL, x), "NULL");
    assert_null_argument(wb_accuracy(NULL, x), "NULL");
    assert_null_argument(wb_onehot(NULL, 3), "NULL");
    assert_null_argument(wb_getobs(NULL, 0, 1), "NULL");
    wb_free(dense);
}

/* ---- the first error stays ---- */

static void the_first_error_stays(void **state) {
    (void)state;
    wb_array *bad = wb_add(wb_vector(1, 2), wb_vector(1, 2, 3));
    wb_array *worse = wb_matmul(wb_tanh(bad), wb_vector(1));
    assert_null(worse);
    (void)wb_reshape(wb_vector(1), 7);
    assert_true(isnan(wb_item(worse)));
    assert_int_equal(wb_error_status(), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "add: sizes (2) and (3) do not broadcast");
    assert_false(wb_failed());
    assert_string_equal(wb_error_message(), "");
}

static char logged[256];
static void keep_line(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_ERROR) (void)snprintf(logged, sizeof logged, "%s", line);
}

static void reporting_takes_and_clearing_clears(void **state) {
    (void)state;
    wb_log_to(keep_line, NULL);
    assert_int_equal(wb_report("nothing"), 0);
    assert_string_equal(logged, "");
    (void)wb_transpose(NULL);
    assert_int_equal(wb_report("here"), 1);
    assert_non_null(strstr(logged, "here: transpose: "));
    assert_false(wb_failed());
    (void)wb_transpose(NULL);
    wb_clear_error();
    assert_int_equal(wb_report("here"), 0);
    wb_log_to(NULL, NULL);
}

/* ---- questions ---- */

static void questions_never_touch_it(void **state) {
    (void)state;
    for (int pending = 0; pending < 2; pending++) {
        if (pending) (void)wb_flip(NULL, 0);
        wb_layer *none = NULL;
        wb_array *x = wb_vector(1, 2);
        (void)wb_ndim(x), (void)wb_size(x, 0), (void)wb_size(x, 5), (void)wb_count(x);
        (void)wb_dtype_of(x), (void)wb_device_of(x), (void)wb_numobs(x), (void)wb_numobs(NULL);
        (void)wb_dtype_name((wb_dtype)99), (void)wb_dtype_size((wb_dtype)99);
        (void)wb_status_text((wb_status)99), (void)wb_fashion_mnist_class(11);
        (void)live_now(), (void)wb_plan_status(), (void)wb_memory_status(wb_cpu_device());
        (void)wb_threads(), (void)wb_device_name(NULL);
        wb_free(none);
        assert_int_equal(wb_failed(), pending);
    }
    assert_error(WB_ERROR_ARGUMENT, "flip");
}

/* ---- doers ---- */

static wb_array *itself(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return x;
}

/* With an old error pending, what succeeds says so. */
static void a_status_is_about_its_own_call(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    wb_array *x = wb_vector(1, 2), *y = wb_exp(x), *g[1], *parts[2];
    wb_array *l = wb_sum(wb_square(wb_get(model, "1")));
    wb_gradients *gradients = wb_gradient(l, model);
    float two[2];
    (void)wb_flip(NULL, 0);
    assert_int_equal(wb_scope_open(), WB_OK);
    assert_int_equal(wb_eval(y), WB_OK);
    assert_int_equal(wb_read(x, two, sizeof two), WB_OK);
    assert_int_equal(wb_read_f32(y, two, 2), WB_OK);
    assert_int_equal(wb_gradient_of(wb_sum(x), 1, &x, g), WB_OK);
    assert_int_equal(wb_splitobs(x, parts, 0.5), WB_OK);
    assert_int_equal(wb_update(o, model, gradients), WB_OK);
    assert_int_equal(wb_adjust(o, 0.5), WB_OK);
    assert_int_equal(wb_walk(itself, NULL, model), WB_OK);
    assert_int_equal(wb_set(model, "1", wb_vector(3, 4)), WB_OK);
    assert_int_equal(wb_train_mode(model), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_error(WB_ERROR_ARGUMENT, "flip");
    assert_values(wb_get(model, "1"), 0, 3, 4);
    wb_free(o), wb_free(model);
}

static wb_array *no_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)model, (void)batch, (void)user;
    return NULL;
}

static void results_through_pointers_are_null(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *a[3] = {x, x, x}, *wanted[2] = {x, NULL};
    assert_int_not_equal(wb_gradient_of(x, 1, &x, a), WB_OK); /* not one number */
    assert_null(a[0]);
    wb_clear_error();
    a[0] = a[1] = x;
    assert_int_not_equal(wb_gradient_of(wb_sum(x), 2, wanted, a), WB_OK);
    assert_true(!a[0] && !a[1]);
    wb_clear_error();
    a[0] = a[1] = x;
    assert_int_not_equal(wb_splitobs(x, a, 1.5), WB_OK);
    assert_true(!a[0] && !a[1]);
    wb_clear_error();
    wb_layer *model = wb_dense(2, 1);
    wb_gradients *g = (wb_gradients *)(void *)x;
    const wb_batch batch = {0};
    assert_null(wb_withgradient(no_loss, model, &batch, NULL, &g));
    assert_null(g);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_withgradient: the loss function returned NULL without an error");
    wb_layer *chain = wb_chain(model, wb_dense(3, 1));
    a[0] = a[1] = a[2] = x;
    assert_int_equal(wb_activations(chain, wb_ones(WB_F32, 2, 1), 3, a), 0);
    assert_true(!a[0] && !a[1]);
    assert_error(WB_ERROR_SHAPE, "input has 1 features");
    wb_free(chain);
}

static void numbers_are_nan_on_failure(void **state) {
    (void)state;
    assert_true(isnan(wb_item(NULL)));
    assert_error(WB_ERROR_ARGUMENT, "item: x is NULL");
    assert_true(isnan(wb_item(wb_vector(1, 2))));
    assert_error(WB_ERROR_SHAPE, "item: the array must have one element, but (2) has 2");
    assert_true(isnan(wb_at(wb_vector(1, 2), 2)));
    assert_error(WB_ERROR_ARGUMENT, "at: there is no element (2) in (2)");
    assert_true(isnan(wb_at(NULL, 0)));
    wb_clear_error();
    assert_null(wb_read_begin(NULL));
    wb_clear_error();
}

/* A maker with a bad argument of its own fails for that, and leaves nothing behind. */
static void makers_that_fail_give_null(void **state) {
    (void)state;
    const wb_live_counts before = live_now();
    assert_null(wb_dense(-1, 1));
    assert_true(wb_failed()), wb_clear_error();
    assert_null(wb_conv({3, 3}, 0, 2));
    assert_true(wb_failed()), wb_clear_error();
    assert_null(wb_dropout(.p = 2));
    assert_true(wb_failed()), wb_clear_error();
    assert_null(wb_loader_new(.x = NULL));
    assert_true(wb_failed()), wb_clear_error();
    assert_null(wb_zeros(WB_F32, -1));
    assert_true(wb_failed()), wb_clear_error();
    assert_null(wb_zeros(WB_F32, (int64_t)1 << 40, (int64_t)1 << 40));
    assert_true(wb_failed()), wb_clear_error();
    assert_null(wb_read_idx("/nowhere/at/all"));
    assert_error(WB_ERROR_IO, "/nowhere/at/all");
    assert_int_equal(live_now().arrays, before.arrays);
    assert_int_equal(live_now().buffers, before.buffers);
    assert_int_equal(live_now().objects, before.objects);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(operations_take_null_for_an_answer),
        TEST(the_others_do_too),
        TEST(the_first_error_stays),
        TEST(reporting_takes_and_clearing_clears),
        TEST(questions_never_touch_it),
        TEST(a_status_is_about_its_own_call),
        TEST(results_through_pointers_are_null),
        TEST(numbers_are_nan_on_failure),
        TEST(makers_that_fail_give_null),
    };
    return cmocka_run_group_tests_name("values 22", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
