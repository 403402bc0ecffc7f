/* Rule 23: a maker that takes ownership takes it always, also when it fails. */
#include "base/memory.h"
#include "values/modes.h"

static wb_layer *good(void) { return wb_dense(2, 2); }
static wb_layer *failed(void) { return wb_dense(-1, 2); }

typedef struct row {
    const char *name;
    wb_layer *(*make)(void);
    const char *message;
} row;

static wb_layer *first_fails(void) { return wb_chain(failed(), good(), good()); }
static wb_layer *second_fails(void) { return wb_chain(good(), failed(), good()); }
static wb_layer *last_fails(void) { return wb_chain(good(), good(), failed()); }
static wb_layer *all_fail(void) { return wb_chain(failed(), failed()); }
static wb_layer *plain_null(void) { return wb_chain(good(), NULL, good()); }
static wb_layer *inner_fails(void) { return wb_chain(good(), wb_chain(good(), failed())); }
static wb_layer *named_fails(void) { return wb_chain_named({"a", good()}, {"b", failed()}); }
static wb_layer *named_twice(void) { return wb_chain_named({"a", good()}, {"a", good()}); }
static wb_layer *tree_fails(void) { return wb_tree(good(), wb_vector(1), failed()); }
static wb_layer *named_tree_fails(void) { return wb_tree_named({"a", good()}, {"b", NULL}); }
static wb_layer *wrong_kind(void) {
    return wb_chain(good(), (wb_layer *)(void *)wb_vector(1)); /* an array is no layer */
}

static const row rows[] = {
    {"a failed first layer", first_fails, "got NULL as layer 1"},
    {"a failed layer in the middle", second_fails, "got NULL as layer 2"},
    {"a failed last layer", last_fails, "got NULL as layer 3"},
    {"of several the first is named", all_fail, "got NULL as layer 1"},
    {"NULL without a reason", plain_null, "wb_chain: layer 2 is NULL"},
    {"a chain that failed inside", inner_fails, "; so wb_chain got NULL as layer 2"},
    {"a named layer that failed", named_fails, "got NULL as layer 2"},
    {"a name that was taken", named_twice, "entry 2 cannot be named \"a\""},
    {"an entry of a tree that failed", tree_fails, "got NULL as entry 3"},
    {"a named entry that is not there", named_tree_fails, "entry 2 is NULL"},
    {"an array where a layer belongs", wrong_kind, "layer 2 is not a layer"},
};

/* The count of open_row and close_row says whether the others were released. */
static void the_others_are_released(void **state) {
    const row *r = *state;
    const int64_t objects = live_now().objects;
    assert_null(r->make());
    assert_int_equal(live_now().objects, objects);
    assert_true(wb_failed());
    if (!strstr(wb_error_message(), r->message))
        fail_msg("\"%s\" does not say \"%s\"", wb_error_message(), r->message);
    wb_clear_error();
}

/* Lists are counted, not ended by NULL; empty ones are lists, too. */
static void lists_are_counted(void **state) {
    (void)state;
    wb_layer *empty = wb_chain(), *one = wb_chain(good());
    assert_non_null(empty);
    assert_values(wb_apply(empty, wb_vector(1, 2)), 0, 1, 2);
    assert_int_equal(wb_parameter_count(one), 6);
    wb_layer *tree = wb_tree();
    assert_int_equal(wb_parameter_count(tree), 0);
    wb_free(empty), wb_free(one), wb_free(tree);
}

/* A layer in two places has two owners, of which each is taken. */
static void a_retained_layer_has_two_owners(void **state) {
    (void)state;
    wb_layer *dense = good();
    assert_null(wb_chain(wb_keep_layer(dense), failed()));
    wb_clear_error();
    assert_int_equal(wb_parameter_count(dense), 6); /* ours is left */
    wb_layer *chain = wb_chain(dense, wb_keep_layer(dense));
    wb_free(chain);
}

/* With the n-th allocation failing, for every n: the layers are gone, or the chain has them. */
static void memory_that_ends_takes_them_too(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        assert_true(n < 200);
        wb_layer *a = good(), *b = good();
        const int64_t with_two = live_now().objects;
        (void)wb_fail_allocation(n);
        wb_layer *chain = wb_chain_named({"a", a}, {"b", b});
        (void)wb_fail_allocation(0);
        done = chain != NULL;
        if (!done) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        assert_int_equal(live_now().objects, done ? with_two + 1 : with_two - 2);
        wb_free(chain);
    }
}

/* ---- memory of the user ---- */

static int releases;
static void count_release(void *context, void *data) {
    (void)context, (void)data;
    releases++;
}

static void adopted_memory_is_released_once_in_any_case(void **state) {
    (void)state;
    static float numbers[4];
    releases = 0;
    wb_scope_open();
    assert_non_null(wb_adopt(WB_F32, numbers, count_release, NULL, 4));
    assert_int_equal(releases, 0);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(releases, 1);
    assert_null(wb_adopt(WB_F32, numbers, count_release, NULL, -4));
    assert_int_equal(releases, 2);
    wb_clear_error();
    assert_null(wb_adopt((wb_dtype)99, numbers, count_release, NULL, 4));
    assert_int_equal(releases, 3);
    wb_clear_error();
    assert_null(wb_borrow(WB_F32, numbers, count_release, NULL, -4));
    assert_int_equal(releases, 4);
    wb_clear_error();
    bool done = false;
    for (int64_t n = 1; !done; n++) { /* out of memory at any place */
        assert_true(n < 50);
        releases = 0;
        wb_scope_open();
        (void)wb_fail_allocation(n);
        done = wb_adopt(WB_F32, numbers, count_release, NULL, 4) != NULL;
        (void)wb_fail_allocation(0);
        wb_clear_error();
        assert_int_equal(wb_scope_close(), WB_OK);
        assert_int_equal(releases, 1);
    }
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(lists_are_counted),
        TEST(a_retained_layer_has_two_owners),
        TEST(memory_that_ends_takes_them_too),
        TEST(adopted_memory_is_released_once_in_any_case),
    };
    ADD_ROWS(&tests, rows, the_others_are_released);
    ADD_TESTS(&tests, others);
    return run_test_list("values 23", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
