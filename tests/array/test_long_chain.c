/* Rule 21: a chain of a million nodes is built, walked, differentiated, evaluated and released
 * without recursion: on a stack of 256 KiB. */
#include <pthread.h>
#include <sys/resource.h>

#include "array/array.h"
#include "base/clock.h"
#include "support/support.h"

enum { LINKS = 1000000, STACK_BYTES = 256 << 10 };

static double lap(double *since, const char *what) {
    const double now = wb_clock(), passed = now - *since;
    print_message("    %-14s %6.2f s\n", what, passed);
    *since = now;
    return passed;
}

/* x (1 + 1e-7) a million times: 1 becomes 1.1052, and so does its derivative. */
static wb_array *chain_of(wb_array *x, int64_t links) {
    wb_array *factor = wb_number(1 + 1e-7);
    for (int64_t i = 0; x && i < links; i++) x = i % 2 ? wb_mul(factor, x) : wb_mul(x, factor);
    return x;
}

static const char *evaluate_chain(void) {
    double since = wb_clock();
    wb_scope_open();
    wb_array *x = wb_ones(WB_F64, 1), *y = chain_of(x, LINKS), *l = wb_sum(y), *g[1];
    (void)lap(&since, "built");
    if (!l) return wb_error_message();
    if (wb_gradient_of(l, 1, &x, g) != WB_OK) return wb_error_message();
    (void)lap(&since, "differentiated");
    const double wanted = pow(1 + 1e-7, LINKS);
    if (!(fabs(wb_item(l) - wanted) < 1e-7)) return "another value";
    (void)lap(&since, "evaluated");
    if (!(fabs(wb_item(g[0]) - wanted) < 1e-7)) return "another derivative";
    (void)lap(&since, "its gradient");
    if (wb_scope_close() != WB_OK) return wb_error_message();
    (void)lap(&since, "released");
    return NULL;
}

/* A chain that nobody reads: the scope's end releases it, link by link from its end. */
static const char *leave_unread(void) {
    wb_scope_open();
    wb_array *x = wb_ones(WB_F64, 1), *kept[1] = {NULL};
    wb_scope_open();
    wb_array *y = chain_of(x, LINKS);
    kept[0] = wb_stop_gradient(y);
    if (wb_scope_close_leaving(1, kept) != WB_OK) return wb_error_message();
    wb_free(kept[0]); /* the last reference to the first of a million */
    if (live_now().arrays > 100) return "something is left behind";
    return wb_scope_close() == WB_OK ? NULL : wb_error_message();
}

/* Each value is used twice: a walk that forgets where it was takes 2^n steps. */
static const char *diamonds(void) {
    wb_scope_open();
    wb_array *x = wb_full(WB_F64, 0.5, 1), *y = x, *g[1];
    for (int i = 0; i < 20000; i++) y = wb_mul_number(wb_add(y, y), 0.5);
    if (wb_gradient_of(wb_sum(y), 1, &x, g) != WB_OK) return wb_error_message();
    if (wb_item(y) != 0.5 || wb_item(g[0]) != 1) return "another value";
    return wb_scope_close() == WB_OK ? NULL : wb_error_message();
}

typedef const char *task(void);

static void *on_small_stack(void *function) {
    union {
        void *pointer;
        task *function;
    } any = {.pointer = function};
    const char *wrong = any.function();
    return (void *)(uintptr_t)wrong;
}

static void run_small(task *function) {
    union {
        task *function;
        void *pointer;
    } any = {.function = function};
    pthread_attr_t attributes;
    pthread_t thread;
    void *wrong;
    (void)pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, on_small_stack, any.pointer), 0);
    (void)pthread_join(thread, &wrong);
    (void)pthread_attr_destroy(&attributes);
    if (wrong) fail_msg("%s", (const char *)wrong);
}

static void a_million_links(void **state) {
    (void)state;
    run_small(evaluate_chain);
}

static void a_million_links_are_released_unread(void **state) {
    (void)state;
    run_small(leave_unread);
}

static void values_used_twice(void **state) {
    (void)state;
    run_small(diamonds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_million_links), TEST(a_million_links_are_released_unread), TEST(values_used_twice)};
    return cmocka_run_group_tests_name("array/test_long_chain", tests, NULL, NULL);
}
