/* wb_train and wb_evaluate by ranks: checkpoints, a rank that dies, other numbers of ranks, ends,
 * metrics. */
#include <math.h>
#include <signal.h>
#include <string.h>

#include <weber.h>

#include "ranks/models.h"
#include "support/files.h"
#include "support/ranks.h"

/* ---- one rank writes, all go on ---- */

static int killed_at; /* call of on_step on rank 1; 0: never */

static bool may_die(const wb_train_event *event) {
    static int calls;
    (void)event;
    if (++calls == killed_at && wb_rank() == 1) (void)raise(SIGKILL);
    return true;
}

static void train_with_checkpoints(void) {
    wb_scope_open();
    wb_seed(11);
    wb_array *x = numbers(3, 50, 0.7), *y = numbers(2, 50, 0.3);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 8, .shuffle = true, .shard = true);
    wb_loader *more = wb_loader_new(.x = x, .y = y, .batchsize = 7, .shard = true);
    wb_loader *all = wb_loader_new(.x = x, .y = y, .batchsize = 50);
    wb_layer *model = with_norm();
    wb_optimiser *o = wb_setup(wb_adam(.eta = 1e-2), model, .distributed = true);
    const wb_status status =
        wb_train(loss, model, data, o, .epochs = 3, .validation = more, .keep_best = true,
                 .checkpoint = path_of("run"), .every = 2, .on_step = may_die);
    if (status != WB_OK) {
        CHECK(strstr(wb_error_message(), "rank 1 has died"));
        wb_clear_error();
        exit(0);
    }
    /* the same metrics by parts as by a whole loader */
    const wb_evaluation parts = wb_evaluate(model, more, .loss = loss),
                        whole = wb_evaluate(model, all, .loss = loss);
    CHECK(parts.observations == 50 && fabs(parts.loss - whole.loss) < 1e-6);
    CHECK(fabs(parts.mae - whole.mae) < 1e-6 && fabs(parts.r2 - whole.r2) < 1e-5);
    if (wb_rank() == 0)
        CHECK(wb_save(path_of(killed_at ? "second.npz" : "first.npz"), model) == WB_OK);
    wb_free(o), wb_free(model), wb_free(data), wb_free(more), wb_free(all);
    CHECK(wb_scope_close() == WB_OK);
}

/* A collective in a function of a layer's own, which one rank's checkpoints ask for its name. */
static wb_array *centred(wb_array *x) {
    return wb_sub(x, wb_allreduce(wb_mean(x), WB_REDUCE_MEAN));
}

static void train_centred(void) {
    wb_scope_open();
    wb_array *x = numbers(3, 48, 0.7), *y = numbers(2, 48, 0.3);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 8, .shard = true);
    wb_layer *model = wb_chain(wb_dense(3, 4, centred), wb_fn(centred), wb_dense(4, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    CHECK(wb_outputsize(model, {{3, 5}}).sizes[0] == 2);
    CHECK(wb_train(loss, model, data, o, .epochs = 2, .checkpoint = path_of("centred"),
                   .every = 2) == WB_OK);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

/* ---- ranks end together ---- */

static bool ends_on_rank_1(const wb_train_event *event) {
    static int calls;
    (void)event;
    return ++calls < 3 || wb_rank() != 1;
}

static bool ends(const wb_train_event *event) {
    (void)event;
    return false;
}

/* Steps, and then epochs, of which one rank has a callback, or one says that it is over. */
static void ends_alike(void) {
    wb_scope_open();
    wb_array *x = numbers(3, 48, 0.7), *y = numbers(2, 48, 0.3);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 4, .shard = true);
    wb_layer *model = dense();
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    CHECK(wb_train(loss, model, data, o, .epochs = 3, .on_step = ends_on_rank_1) == WB_OK);
    CHECK(wb_step_count(o) == 3);
    const int64_t batches = wb_loader_length(data);
    CHECK(wb_train(loss, model, data, o, .epochs = 3, .on_epoch = wb_rank() ? NULL : ends) ==
          WB_OK);
    CHECK(wb_step_count(o) == 3 + batches);
    CHECK(wb_barrier() == WB_OK);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

static void all_end_when_one_does(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, ends_alike), 0);
}

/* ---- yes or no ---- */

static wb_layer *scores(void) { return wb_chain(wb_dense(3, 1, wb_sigmoid)); }

static void checks_area(int observations, int batch) {
    wb_scope_open();
    wb_seed(2);
    wb_layer *model = scores();
    CHECK(wb_synchronize(model) == WB_OK);
    wb_array *x = wb_round(numbers(3, observations, 0.7)); /* with equal scores */
    wb_array *y = wb_gt(wb_sum_dims(numbers(3, observations, 0.9), 0), wb_number(0.2));
    wb_loader *part = wb_loader_new(.x = x, .y = y, .batchsize = batch, .shard = true);
    wb_loader *all = wb_loader_new(.x = x, .y = y, .batchsize = observations);
    const wb_evaluation parts = wb_evaluate(model, part), whole = wb_evaluate(model, all);
    CHECK(parts.status == WB_OK && whole.auc > 0 && whole.auc <= 1);
    CHECK(parts.auc == whole.auc && parts.count == whole.count);
    CHECK(parts.accuracy == whole.accuracy && parts.f1 == whole.f1);
    wb_free(model), wb_free(part), wb_free(all);
    CHECK(wb_scope_close() == WB_OK);
}

static void measures_areas(void) {
    checks_area(50, 7), checks_area(48, 8);
    checks_area(5, 4); /* a rank without data */
}

static wb_array *square_of_answers(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *p = wb_apply(model, batch->x);
    return wb_mse(p, wb_zeros(WB_F32, wb_size(p, 0), wb_size(p, 1)), .weights = batch->y);
}

/* Over the answers that are yes, of which ranks and batches have different numbers. */
static void measures_losses(void) {
    wb_scope_open();
    wb_seed(2);
    wb_layer *model = scores();
    CHECK(wb_synchronize(model) == WB_OK);
    wb_array *x = numbers(3, 50, 0.7), *y = wb_gt(numbers(1, 50, 0.9), wb_number(0.2));
    wb_loader *part = wb_loader_new(.x = x, .y = y, .batchsize = 7, .shard = true);
    const wb_batch all = {.x = x, .y = wb_reshape(y, -1)};
    const double loss = wb_evaluate(model, part, .loss = square_of_answers).loss;
    CHECK(fabs(loss - wb_item(square_of_answers(model, &all, NULL))) < 1e-6);
    wb_free(model), wb_free(part);
    CHECK(wb_scope_close() == WB_OK);
}

static void loss_is_over_what_counts(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, measures_losses), 0);
}

static void area_is_that_of_all(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, measures_areas), 0);
}

/* ---- another number of ranks goes on ---- */

static const char *checkpoint;
static int last_call;

static bool stops(const wb_train_event *event) {
    static int calls;
    (void)event;
    return ++calls != last_call;
}

static void train_parts(void) {
    const int n = wb_total_workers();
    char name[64];
    wb_scope_open();
    wb_seed(11);
    wb_array *x = numbers(3, 83, 0.7), *y = numbers(2, 83, 0.3);
    wb_loader *data =
        wb_loader_new(.x = x, .y = y, .batchsize = 24 / n, .shuffle = true, .shard = true);
    wb_layer *model = with_norm();
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true, .micro_batches = 4 / n);
    CHECK(wb_train(loss, model, data, o, .epochs = 3, .checkpoint = path_of(checkpoint),
                   .on_step = stops) == WB_OK);
    (void)snprintf(name, sizeof name, "%s.npz", checkpoint);
    if (wb_rank() == 0) CHECK(wb_save(path_of(name), model) == WB_OK);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

static void goes_on_with_other_ranks(void **state) {
    (void)state;
    static const int ranks[][3] = {{4, 4, 4}, {4, 2, 1}, {1, 4, 2}};
    static const char *const names[] = {"alike", "fewer", "more"};
    for (int i = 0; i < 3; i++) {
        checkpoint = names[i];
        for (int k = 0; k < 3; k++) { /* the second, and the fifth step of all twelve end a run */
            last_call = k == 0 ? 2 : k == 1 ? 3 : 0;
            assert_int_equal(ranks_run(ranks[i][k], train_parts), 0);
        }
    }
    assert_same_files(path_of("alike.npz"), path_of("fewer.npz"));
    assert_same_files(path_of("alike.npz"), path_of("more.npz"));
}

static void names_have_no_effect(void **state) {
    (void)state;
    assert_int_equal(ranks_run(2, train_centred), 0);
}

static void goes_on_after_a_death(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) {
        char command[256];
        (void)snprintf(command, sizeof command, "rm -rf %s", path_of("run"));
        killed_at = 0;
        assert_int_equal(system(command) | ranks_run(n, train_with_checkpoints), 0);
        assert_int_equal(system(command), 0);
        killed_at = 5;
        (void)ranks_start(n, train_with_checkpoints);
        for (int r = 0; r < n; r++) assert_int_equal(ranks_wait(r), r == 1 ? 128 + SIGKILL : 0);
        killed_at = 1000;
        assert_int_equal(ranks_run(n, train_with_checkpoints), 0);
        assert_same_files(path_of("first.npz"), path_of("second.npz"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_after_a_death), cmocka_unit_test(names_have_no_effect),
        cmocka_unit_test(all_end_when_one_does), cmocka_unit_test(loss_is_over_what_counts),
        cmocka_unit_test(area_is_that_of_all),   cmocka_unit_test(goes_on_with_other_ranks),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
