/* Deep graphs of products with skips around them: planned and differentiated without recursion, on
 * a small stack, in time that grows with their size (a quadratic step would take minutes here). */
#include <pthread.h>

#include "support/support.h"

#ifdef NDEBUG
enum { MANY = 100000, BLOCKS = 20000 };
#else
enum { MANY = 5000, BLOCKS = 5000 }; /* with sanitizers */
#endif

enum { STACK_BYTES = 256 << 10, ROWS = 3, COLUMNS = 2 };

/* It is about planning: a device that compiles kernels for each text runs a few blocks. */
static int64_t blocks(int64_t usual) { return compiles_kernels() ? usual / 100 : usual; }

/* With weights of 0 all products are 0, so that a value is what its skips carry. */
typedef struct operands {
    wb_array *w, *x;
} operands;

static wb_array *product(operands o, wb_array *x) { return wb_tanh(wb_matmul(o.w, x)); }

static wb_array *residual_chain(operands o) {
    wb_array *y = o.x;
    for (int64_t i = 0; i < blocks(MANY); i++) y = wb_add(product(o, y), y);
    return y;
}

static wb_array *skips_over_two_blocks(operands o) {
    wb_array *y = o.x, *before = o.x;
    for (int64_t i = 0; i < blocks(BLOCKS); i++) {
        wb_array *next = wb_add(product(o, y), before);
        before = y, y = next;
    }
    return y;
}

static wb_array *skips_to_the_beginning(operands o) {
    wb_array *y = o.x;
    for (int64_t i = 0; i < blocks(BLOCKS); i++) y = wb_add(product(o, y), o.x);
    return y;
}

static wb_array *fan(operands o) {
    wb_array *y = o.x;
    for (int64_t i = 0; i < blocks(BLOCKS); i++) y = wb_add(y, product(o, o.x));
    return y;
}

static wb_array *grid(operands o) {
    enum { WIDTH = 50 };
    wb_array *row[WIDTH];
    for (int k = 0; k < WIDTH; k++) row[k] = o.x;
    for (int64_t i = 0; i < blocks(BLOCKS); i++) {
        wb_array **at = &row[i % WIDTH];
        *at = wb_add(product(o, wb_add(*at, row[(i + WIDTH - 1) % WIDTH])), *at);
    }
    return row[WIDTH - 1];
}

static wb_array *steps_that_are_read_one_by_one(operands o) {
    wb_array *steps = wb_expand(wb_unsqueeze(o.x, 2), ROWS, COLUMNS, blocks(BLOCKS));
    wb_array *y = wb_zeros(WB_F32, ROWS, COLUMNS, 1);
    for (int64_t i = 0; i < blocks(BLOCKS); i++)
        y = wb_add(wb_mul_number(y, 0), wb_slice(steps, 2, i, i + 1, 1));
    return wb_reshape(y, ROWS, COLUMNS);
}

static const struct row {
    const char *name;
    wb_array *(*build)(operands o);
} rows[] = {
    {"products in a chain, each with a skip around it", residual_chain},
    {"skips that reach over two blocks", skips_over_two_blocks},
    {"skips that all begin at the same array", skips_to_the_beginning},
    {"products side by side, added up", fan},
    {"a grid: each place reads the one above and the one beside", grid},
    {"slices of one array, read in a chain", steps_that_are_read_one_by_one},
};

static bool values_and_gradient(const struct row *row) {
    bool good = wb_scope_open() == WB_OK;
    const double zeros[ROWS * ROWS] = {0}, ones[ROWS * COLUMNS] = {1, 1, 1, 1, 1, 1};
    const operands o = {array_of(WB_F32, zeros, 2, (const int64_t[]){ROWS, ROWS}),
                        array_of(WB_F32, ones, 2, (const int64_t[]){ROWS, COLUMNS})};
    wb_array *wanted[] = {o.x, o.w}, *g[2] = {NULL};
    wb_array *loss = wb_sum(row->build(o));
    const bool reads_w = row->build != steps_that_are_read_one_by_one;
    good = good && loss && wb_gradient_of(loss, 1 + reads_w, wanted, g) == WB_OK;
    good = good && wb_eval_make(1, &g[0]) == WB_OK;
    good = good && wb_item(loss) == ROWS * COLUMNS && wb_item(wb_sum(g[0])) == ROWS * COLUMNS;
    good = good && (!reads_w || isfinite(wb_item(wb_sum(g[1]))));
    return wb_scope_close() == WB_OK && good;
}

typedef struct task {
    const struct row *row;
    bool passed;
    char message[256];
} task;

static void *run_task(void *context) {
    task *t = context;
    wb_training(true);
    t->passed = values_and_gradient(t->row);
    (void)wb_take_error(t->message, sizeof t->message);
    return NULL;
}

static void on_a_small_stack(void **state) {
    task t = {.row = *state};
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_task, &t), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    if (!t.passed) fail_msg("%s: %s", t.row->name, t.message);
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    enum { COUNT = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++) tests[i] = TEST_ROW(&rows[i], on_a_small_stack);
    return cmocka_run_group_tests_name("deep graphs", tests, NULL, NULL);
}
