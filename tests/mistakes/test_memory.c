/* Memory runs out at the n-th allocation of a tool: the error says so, nothing is left behind, and
 * the model is as it was. */
#include <unistd.h>

#include <weber.h>

#include "base/memory.h"
#include "support/numbers.h"
#include "support/scoped.h"

/* Sizes that no plan was made for yet. */
static wb_layer *new_model(int64_t n) {
    return wb_chain(wb_dense(2, 2 + n, wb_tanh), wb_batchnorm(2 + n),
                    wb_skip(wb_dense(2 + n, 2 + n), wb_connect_add), wb_dense(2 + n, 1));
}

static wb_array *input(void) { return wb_full(WB_F32, 0.5, 2, 3); }

static void compute(wb_array *x) {
    if (x) (void)wb_eval(x);
}

/* ---- models ---- */

static void use_trees(wb_layer *model, int64_t n) {
    (void)n;
    wb_layer *ps = wb_parameter_tree(model), *st = ps ? wb_state_tree(model) : NULL, *next = NULL;
    const bool before = wb_training(true);
    if (st) compute(wb_apply_tree(model, input(), ps, st, &next));
    (void)wb_training(before);
    wb_free(ps), wb_free(st), wb_free(next);
}

static void use_vector(wb_layer *model, int64_t n) {
    (void)n;
    wb_array *flat = wb_destructure(model);
    compute(flat ? wb_apply_with(model, flat, input()) : NULL);
    wb_layer *made = wb_failed() ? NULL : wb_rebuild(model, flat);
    wb_layer *halves = made ? wb_f16(made) : NULL;
    wb_free(made), wb_free(halves);
}

static void list_modules(wb_layer *model, int64_t n) {
    (void)n;
    for (wb_module m = {0}; wb_next_module(model, &m);) continue;
}

static void look_at_sizes(wb_layer *model, int64_t n) {
    (void)n;
    FILE *file = fopen("/dev/null", "w");
    (void)wb_show_sizes(file, model, {{2, 3}});
    (void)fclose(file);
}

static void draw(wb_layer *model, int64_t n) {
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/weber-memory-%ld.dot", (long)getpid() + (long)n * 0);
    (void)wb_draw_model(path, model, {{2, 3}});
    (void)unlink(path);
}

static bool is_no_dropout(void *user, const wb_load_layer *layer) {
    (void)user;
    return !layer->type || strcmp(layer->type, "Dropout") != 0;
}

static void load_another(wb_layer *model, int64_t n) {
    wb_layer *other = wb_chain(wb_dense(2, 2 + n, wb_tanh), wb_batchnorm(2 + n), wb_dropout(0.5),
                               wb_skip(wb_dense(2 + n, 2 + n), wb_connect_add), wb_dense(2 + n, 1));
    if (other) (void)wb_load_from(other, model, .layers = is_no_dropout);
    wb_free(other);
}

static void ignore(void *user, const char *path, wb_array *x, bool is_gradient) {
    (void)user, (void)path, (void)x, (void)is_gradient;
}

static void watch(wb_layer *model, int64_t n) {
    (void)n;
    wb_watch_layers(ignore, NULL);
    wb_array *w = wb_get(model, "layers.1.weight"), *g = NULL;
    wb_array *y = wb_apply(model, input());
    if (y && w && wb_gradient_of(wb_sum(y), 1, &w, &g) == WB_OK) compute(g);
    wb_watch_layers(NULL, NULL);
}

/* ---- derivatives ---- */

static wb_array *cube_of(void *unused, int count, wb_array *const *x) {
    (void)unused, (void)count;
    return wb_mul(wb_square(x[0]), x[0]);
}

static wb_array *sum_of(void *unused, int count, wb_array *const *x) {
    return wb_sum(cube_of(unused, count, x));
}

static void differentiate(wb_layer *model, int64_t n) {
    (void)model;
    wb_array *x = wb_full(WB_F32, 2, 2 + n % 7), *y = cube_of(NULL, 1, &x), *products;
    compute(y ? wb_jacobian(y, x) : NULL);
    if (!wb_failed()) compute(wb_hessian_diagonal(wb_sum(y), x));
    if (!wb_failed() && wb_hvp(wb_sum(y), 1, &x, &x, &products) == WB_OK) compute(products);
    if (!wb_failed()) compute(wb_jvp(y, 1, &x, &x));
}

static void differentiate_each(wb_layer *model, int64_t n) {
    wb_array *x = wb_full(WB_F32, 2, 2, 3 + n), *w = wb_get(model, "layers.4.bias"), *g;
    if (wb_gradient_each(sum_of, NULL, 1, &x, 1, &w, &g) == WB_OK) compute(g);
}

static void recompute(wb_layer *model, int64_t n) {
    (void)model;
    wb_array *x = wb_full(WB_F32, 2, 2 + n), *g;
    wb_array *y = wb_recompute(cube_of, NULL, 1, &x);
    if (y && wb_gradient_of(wb_sum(y), 1, &x, &g) == WB_OK) compute(g);
}

static wb_status pull(void *unused, wb_array *y, wb_array *dy, int count, wb_array *const *x,
                      wb_array **dx) {
    (void)unused, (void)y, (void)count, (void)x;
    dx[0] = dy;
    return WB_OK;
}

static wb_array *same(void *unused, wb_array *dy) {
    (void)unused;
    return dy;
}

static wb_status host_value(void *unused, int count, const void *const *x, void *y) {
    (void)unused, (void)count;
    memcpy(y, x[0], 2 * sizeof(float));
    return WB_OK;
}

static wb_status host_pull(void *unused, int count, const void *const *x, const void *y,
                           const void *dy, void *const *dx) {
    (void)unused, (void)count, (void)x, (void)y;
    memcpy(dx[0], dy, 2 * sizeof(float));
    return WB_OK;
}

static void use_functions(wb_layer *model, int64_t n) {
    (void)model, (void)n;
    wb_array *x = wb_full(WB_F32, 2, 2), *g;
    wb_array *y = wb_function(1, &x, .value = cube_of, .pullback = pull);
    y = y ? wb_hook(y, same, NULL) : NULL;
    wb_array *z = y ? wb_host_function(1, &y, .value = host_value, .pullback = host_pull, .ndim = 1,
                                       .sizes = {2})
                    : NULL;
    if (z && wb_gradient_of(wb_sum(z), 1, &x, &g) == WB_OK) compute(g);
}

/* ---- data ---- */

static wb_status observe(int64_t place, wb_array **arrays, void *user) {
    (void)user;
    arrays[0] = wb_full(WB_F32, (double)place, place + 1);
    return arrays[0] ? WB_OK : WB_ERROR_MEMORY;
}

static wb_status collate(wb_batch *batch, wb_array *const *const *lists, void *user) {
    (void)user;
    batch->x = wb_batchseq((int)batch->size, lists[0], 0);
    return batch->x ? WB_OK : WB_ERROR_MEMORY;
}

static void load_batches(wb_layer *model, int64_t n) {
    (void)model;
    wb_loader *data = wb_loader_new(.numobs = 4 + n, .observe = observe, .collate = collate,
                                    .batchsize = 2, .background = false);
    wb_batch batch = {0};
    if (data && wb_next(data, &batch)) compute(batch.x);
    (void)wb_batch_end(&batch);
    wb_free(data);
}

static void read_table(wb_layer *model, int64_t n) {
    char path[64];
    (void)model, (void)n;
    (void)snprintf(path, sizeof path, "/tmp/weber-memory-%ld.csv", (long)getpid());
    FILE *file = fopen(path, "w");
    (void)fputs("a,b,c\n1,0.5,x\n2,1.5,\"y\"\n3,2.5,x\n", file);
    (void)fclose(file);
    wb_csv *csv = wb_read_csv(path);
    const char *const names[] = {"a", "b"};
    if (csv) compute(wb_csv_matrix(csv, 2, names));
    if (csv && !wb_failed()) compute(wb_csv_labels(csv, "c", NULL));
    wb_free(csv);
    (void)unlink(path);
}

static void choose_places(wb_layer *model, int64_t n) {
    (void)model;
    wb_array *x = wb_iota(WB_F32, 0, 12 + n), *y = wb_cast(wb_mod(x, wb_number(3)), WB_I64);
    wb_array *train[3], *held[3], *parts[2];
    wb_group groups[3];
    if (!wb_failed() && wb_kfolds(12 + n, 3, train, held) == WB_OK) compute(train[0]);
    if (!wb_failed()) (void)wb_kfolds_stratified(y, 3, train, held);
    if (!wb_failed()) (void)wb_splitobs_all(1, &x, parts, .at = {0.5}, .shuffle = true);
    if (!wb_failed()) (void)wb_groupobs(y, 3, groups);
    if (!wb_failed()) compute(wb_oversample(y, .shuffle = true));
    if (!wb_failed()) compute(wb_undersample(y));
    if (!wb_failed()) compute(wb_slidingwindow(x, 4, 2));
}

/* ---- all ---- */

typedef struct tool {
    const char *name;
    void (*use)(wb_layer *model, int64_t n);
} tool;

static const tool tools[] = {
    {"trees", use_trees},         {"a vector", use_vector},
    {"modules", list_modules},    {"sizes", look_at_sizes},
    {"a drawing", draw},          {"loading", load_another},
    {"watching", watch},          {"derivatives", differentiate},
    {"each", differentiate_each}, {"computing again", recompute},
    {"functions", use_functions}, {"a loader", load_batches},
    {"a table", read_table},      {"places", choose_places},
};

/* True if it had all the memory that it wanted. */
static bool fail_at(const tool *t, int64_t n) {
    const wb_live_counts live = live_now();
    wb_scope_open();
    wb_layer *model = new_model(n), *before = wb_clone(model);
    (void)wb_fail_allocation(n);
    t->use(model, n);
    (void)wb_fail_allocation(0);
    const bool good = !wb_failed();
    if (!good && wb_error_status() != WB_ERROR_MEMORY)
        fail_msg("%s at %lld: %s", t->name, (long long)n, wb_error_message());
    wb_clear_error();
    for (wb_parameter p = {0}; wb_next_parameter(before, &p);)
        assert_true(wb_approx(wb_get(model, p.path), p.array, 0, 0, NULL, 0));
    assert_non_null(wb_apply(model, input()));
    wb_free(model), wb_free(before);
    if (wb_scope_close() != WB_OK) fail_msg("%s: %s", t->name, wb_error_message());
    const wb_live_counts now = live_now();
    if (now.arrays != live.arrays || now.objects != live.objects || now.buffers != live.buffers)
        fail_msg("%s at %lld leaves %lld arrays, %lld buffers, %lld objects behind", t->name,
                 (long long)n, (long long)(now.arrays - live.arrays),
                 (long long)(now.buffers - live.buffers), (long long)(now.objects - live.objects));
    return good;
}

/* Every place at first, then one in thirty. */
static void memory_runs_out_anywhere(void **state) {
    const tool *t = *state;
    int64_t n = 1;
    while (!fail_at(t, n)) {
        n += 1 + n / 30;
        assert_true(n < 100000);
    }
    assert_true(n > 4);
}

int main(void) {
    enum { COUNT = sizeof tools / sizeof *tools };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        union {
            const void *given;
            void *state;
        } row = {.given = &tools[i]};
        tests[i] =
            (struct CMUnitTest){tools[i].name, memory_runs_out_anywhere, NULL, NULL, row.state};
    }
    return _cmocka_run_group_tests("mistakes/test_memory", tests, COUNT, NULL, NULL);
}
