/* Rule 21: releasing a chain of a million nodes, walking it and differentiating it use no
 * recursion. */
#include <pthread.h>

#include "support/sanitized.h"
#include "values/modes.h"

enum {
    NODES = SANITIZED ? 100000 : 1000000,
    EVALUATED = NODES / 10, /* every node takes its part in a plan */
    STACK_BYTES = 256 << 10,
};

typedef wb_array *link_fn(wb_array *x);

static wb_array *negated(wb_array *x) { return wb_neg(x); }
static wb_array *doubled_in_width(wb_array *x) { return wb_mul_number(wb_add(x, x), 0.5); }
static wb_array *reshaped(wb_array *x) {
    return wb_ndim(x) == 1 ? wb_reshape(x, 3, 1) : wb_reshape(x, 3);
}

static const struct row {
    const char *name;
    link_fn *link;
    int nodes_per_link;
} rows[] = {
    {"a chain of a million nodes", negated, 1},
    {"a chain whose links read their predecessor twice", doubled_in_width, 2},
    {"a chain of views", reshaped, 1},
};

static wb_array *chain(const struct row *row, wb_array *x, int nodes) {
    for (int i = 0; i < nodes / row->nodes_per_link && x; i++) x = row->link(x);
    return x;
}

/* In a scope of its own; what it found goes to the thread that asked. */
static bool build_walk_and_release(const struct row *row) {
    bool good = wb_scope_open() == WB_OK;
    wb_array *x = wb_exp(wb_vector(0, 0, 0)), *g[1]; /* pending, so that views are no data */
    wb_array *l = wb_sum(chain(row, x, NODES));
    good = good && l && wb_gradient_of(l, 1, &x, g) == WB_OK && g[0];
    return wb_scope_close() == WB_OK && good;
}

static bool build_and_compute(const struct row *row) {
    bool good = wb_scope_open() == WB_OK;
    wb_array *x = wb_exp(wb_vector(0, 0, 0)), *g[1];
    wb_array *l = wb_sum(chain(row, x, EVALUATED));
    good = good && l && wb_gradient_of(l, 1, &x, g) == WB_OK;
    good = good && wb_item(l) == 3 && wb_item(wb_sum(g[0])) == 3;
    return wb_scope_close() == WB_OK && good;
}

/* One reference to the end: it goes, and all go. */
static bool release_from_the_end(const struct row *row) {
    (void)wb_scope_open();
    wb_array *end = wb_keep(chain(row, wb_exp(wb_vector(0, 0, 0)), NODES));
    const bool closed =
        wb_scope_close_leaving(0, NULL) == WB_OK; /* pending, and held by us alone */
    wb_free(end);
    return closed && end;
}

typedef struct task {
    const struct row *row;
    bool (*run)(const struct row *row);
    bool passed;
    char message[256];
} task;

static void *run_task(void *context) {
    task *t = context;
    t->passed = t->run(t->row);
    (void)wb_take_error(t->message, sizeof t->message);
    return NULL;
}

static void run_on_a_small_stack(const struct row *row, bool (*function)(const struct row *)) {
    task t = {.row = row, .run = function};
    pthread_attr_t attributes;
    pthread_t thread;
    const wb_live_counts before = live_now();
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_task, &t), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    if (!t.passed) fail_msg("%s: %s", row->name, t.message);
    assert_int_equal(live_now().arrays, before.arrays);
    assert_int_equal(live_now().buffers, before.buffers);
}

static void building_walking_and_releasing(void **state) {
    run_on_a_small_stack(*state, build_walk_and_release);
}
static void releasing_from_the_end(void **state) {
    run_on_a_small_stack(*state, release_from_the_end);
}
static void computing(void **state) { run_on_a_small_stack(*state, build_and_compute); }

static int run(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[3 * ROWS];
    for (int i = 0; i < ROWS; i++) {
        tests[3 * i] = TEST_ROW(&rows[i], building_walking_and_releasing);
        tests[3 * i + 1] = TEST_ROW(&rows[i], releasing_from_the_end);
        tests[3 * i + 2] = TEST_ROW(&rows[i], computing);
    }
    return cmocka_run_group_tests_name("values 21", tests, NULL, NULL);
}

int main(void) { return run(); }
