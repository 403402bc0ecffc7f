/* What is called while an error is pending does its work, or says that it did not run and why. */
#include <weber.h>

#include "support/support.h"

static wb_layer *model;
static wb_loader *loader;
static wb_optimiser *optimiser;
static wb_batch batch;

static wb_array *sum_of(wb_layer *m, const wb_batch *b, void *user) {
    (void)user;
    return wb_sum(wb_apply(m, b->x));
}

static void loader_new(void) { assert_null(wb_loader_new(.x = wb_ones(WB_F32, 2, 4))); }
static void next(void) { assert_false(wb_next(loader, &batch)); }
static void first(void) { assert_false(wb_first(loader, &batch)); }
static void read_idx(void) { assert_null(wb_read_idx("/no/such/file")); }
static void image_read(void) { assert_null(wb_image_read("/no/such/file")); }
static void read_csv(void) { assert_null(wb_read_csv("/no/such/file")); }
static void fashion_mnist(void) {
    wb_array *x, *y;
    assert_int_not_equal(wb_fashion_mnist(WB_SPLIT_TEST, &x, &y), WB_OK);
}
static void save(void) { assert_int_not_equal(wb_save("/no/such/file.bson", model), WB_OK); }
static void load_model(void) { assert_null(wb_load_model("/no/such/file.bson", NULL)); }
static void convert(void) {
    assert_int_not_equal(wb_convert("/no/such/a.bson", "/no/such/b.bson"), WB_OK);
}
static void checkpoint(void) {
    assert_int_not_equal(wb_checkpoint_save("/no/such/run/", 1, 1, {"model", model}), WB_OK);
}
static void train(void) {
    (void)wb_train(.loss = sum_of, .model = model, .loader = loader, .optimiser = optimiser);
}
static void evaluate(void) { (void)wb_evaluate(model, loader, .loss = sum_of); }

static void apply(void) { assert_non_null(wb_apply(model, wb_ones(WB_F32, 2, 4))); }
static void apply_many(void) {
    wb_array *x = wb_ones(WB_F32, 2, 4), *y;
    assert_int_equal(wb_apply_many(model, 1, &x, 1, &y), 1);
}
static void train_step(void) {
    assert_non_null(wb_train_step(sum_of, model, &(wb_batch){.x = wb_ones(WB_F32, 2, 4), .size = 4},
                                  NULL, optimiser));
}
static void eval(void) { assert_int_equal(wb_eval(wb_ones(WB_F32, 2)), WB_OK); }

static const struct row {
    const char *name;
    void (*call)(void);
    const char *said; /* as what it did not run; NULL: it ran */
} rows[] = {
    {"a loader is made", loader_new, "wb_loader_new"},
    {"a loader is asked for a batch", next, "wb_next"},
    {"a loader is asked for its first batch", first, "wb_first"},
    {"a file of IDX is read", read_idx, "wb_read_idx"},
    {"a picture is read", image_read, "wb_image_read"},
    {"a table is read", read_csv, "wb_read_csv"},
    {"a set of data is read", fashion_mnist, "wb_fashion_mnist"},
    {"a model is saved", save, "wb_save"},
    {"a model is loaded", load_model, "wb_load_model"},
    {"a file is converted", convert, "wb_convert"},
    {"a checkpoint is saved", checkpoint, "wb_checkpoint_save"},
    {"a model is trained", train, "wb_train"},
    {"a model is evaluated", evaluate, "wb_evaluate"},
    {"a chain is applied", apply, NULL},
    {"a chain is applied to a list", apply_many, NULL},
    {"a step is trained", train_step, NULL},
    {"an array is evaluated", eval, NULL},
};

static char told[600];

static void keep_line(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level <= WB_LOG_WARN) (void)snprintf(told, sizeof told, "%s", line);
}

static void runs_or_says_why_not(void **state) {
    const struct row *row = *state;
    model = wb_chain(wb_dense(2, 2));
    optimiser = wb_setup(wb_descent(.1), model);
    loader = wb_loader_new(.x = wb_ones(WB_F32, 2, 4), .batchsize = 2);
    char wanted[200] = "";
    if (row->said)
        (void)snprintf(wanted, sizeof wanted,
                       "%s: not run: an earlier error is pending: add: sizes (2) and (3)",
                       row->said);
    assert_null(wb_add(wb_vector(1, 2), wb_vector(1, 2, 3)));
    told[0] = 0;
    wb_log_to(keep_line, NULL);
    row->call();
    wb_log_to(NULL, NULL);
    assert_error(WB_ERROR_SHAPE, "add: sizes (2) and (3)"); /* the first error stays */
    if (row->said ? !strstr(told, wanted) : told[0] != 0)
        fail_msg("said \"%s\", not \"%s\"", told, wanted);
    wb_free(loader), wb_free(optimiser), wb_free(model);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, rows, runs_or_says_why_not);
    return run_test_list("mistakes/test_pending", &tests, NULL, NULL);
}
