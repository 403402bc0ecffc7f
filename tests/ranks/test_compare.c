/* Ranks that do not train one model say so, and who has what: before the first step, while they
 * train, at the end, and where they go on from files. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "ranks/facts.h"
#include "support/files.h"
#include "support/ranks.h"

static void expect(wb_status status, const char *text) {
    if (status != WB_OK && strstr(wb_error_message(), text)) {
        wb_clear_error();
        return;
    }
    (void)fprintf(stderr, "rank %d: expected \"%s\", got %d \"%s\"\n", wb_rank(), text, (int)status,
                  wb_error_message());
    exit(1);
}

/* ---- facts ---- */

static void each_fact_that_differs_is_told(void **state) {
    (void)state;
    char text[512];
    wb_facts_tell("all must be alike", 3,
                  (const char *[]){"a\t1\nb\t2\n", "a\t1\nb\t3\n", "b\t2\n"}, text, sizeof text);
    assert_string_equal(text,
                        "all must be alike, but a is 1 on ranks 0, 1, missing on rank 2; b is "
                        "2 on ranks 0, 2, 3 on rank 1");
    wb_facts_tell("all must be alike", 2, (const char *[]){"a\t1\n", "a\t1\n"}, text, sizeof text);
    assert_string_equal(text, "");
    wb_facts_tell("-", 2, (const char *[]){"", "\033[2J\t1\n"}, text, sizeof text);
    assert_string_equal(text, "-, but ?[2J is missing on rank 0, 1 on rank 1");
}

/* What another rank sends may be anything. */
static void lists_that_are_none_are_read_to_their_end(void **state) {
    (void)state;
    char text[64];
    wb_facts_tell("-", 2, (const char *[]){"no tab\n", "no end\t1"}, text, sizeof text);
    assert_string_equal(text, "");
    wb_facts_tell("-", 2, (const char *[]){"a\t1\nb", "\n\n\t\n"}, text, sizeof text);
    assert_non_null(strstr(text, "a is 1 on rank 0"));
}

/* ---- a training ---- */

typedef struct difference {
    double p, eps, eta; /* of Dropout, BatchNorm, Adam */
    int64_t batchsize, observations;
    uint64_t seed;
    bool no_shard;
    int64_t epochs;
} difference;

static const difference usual = {0.5, 1e-5, 1e-3, 4, 24, 0, false, 2};

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_loader *data_of(const difference *d) {
    return wb_loader_new(.x = wb_ones(WB_F32, 3, d->observations),
                         .y = wb_ones(WB_F32, 2, d->observations), .batchsize = d->batchsize,
                         .seed = d->seed, .shuffle = true, .shard = !d->no_shard);
}

static wb_status train(const difference *d) {
    wb_scope_open();
    wb_seed(3);
    wb_layer *model =
        wb_chain(wb_dense(3, 8), wb_batchnorm(8, .eps = d->eps), wb_dropout(d->p), wb_dense(8, 2));
    wb_optimiser *o = wb_setup(wb_adam(.eta = d->eta), model, .distributed = true);
    wb_loader *data = data_of(d);
    CHECK(model && o && data);
    const wb_status status = wb_train(loss, model, data, o, .epochs = d->epochs);
    wb_free(o), wb_free(model), wb_free(data);
    return status;
}

typedef struct row {
    difference other; /* of rank 1 */
    const char *says; /* NULL: they train */
} row;
static const row rows[] = {
    {{0.5, 1e-5, 1e-3, 4, 24, 0, false, 2}, NULL},
    {{0.25, 1e-5, 1e-3, 4, 24, 0, false, 2}, "layers.3.p is 0.5 on ranks 0, 2, 0.25 on rank 1"},
    {{0.5, 1e-3, 1e-3, 4, 24, 0, false, 2}, "on ranks 0, 2, 0.001 on rank 1"},
    {{0.5, 1e-5, 2e-3, 4, 24, 0, false, 2}, "eta of Adam is 0.001 on ranks 0, 2, 0.002 on rank 1"},
    {{0.5, 1e-5, 1e-3, 2, 24, 0, false, 2}, ".batchsize of the loader is 4 on ranks 0, 2, 2 on"},
    {{0.5, 1e-5, 1e-3, 4, 36, 0, false, 2},
     "the number of observations of the loader is 24 on ranks 0, 2, 36 on rank 1"},
    {{0.5, 1e-5, 1e-3, 4, 24, 7, false, 2}, ".seed of the loader is 0 on ranks 0, 2, 7 on rank 1"},
    {{0.5, 1e-5, 1e-3, 4, 24, 0, true, 2}, ".shard of the loader is true on ranks 0, 2, false on"},
    {{0.5, 1e-5, 1e-3, 4, 24, 0, false, 3}, ".epochs is 2 on ranks 0, 2, 3 on rank 1"},
};

static const row *current;

static void train_as_in_row(void) {
    const wb_status status = train(wb_rank() == 1 ? &current->other : &usual);
    if (current->says)
        expect(status, current->says);
    else
        CHECK(status == WB_OK);
}

static void settings_that_differ_are_named_before_the_first_step(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        current = &rows[i];
        if (ranks_run(3, train_as_in_row)) fail_msg("row %d", (int)i);
    }
}

/* ---- loaders with data of their own ---- */

static void train_own_data(void) {
    difference d = usual;
    d.no_shard = true, d.seed = (uint64_t)wb_rank();
    d.observations = 24 - wb_rank();
    CHECK(train(&d) == WB_OK);
}

static void loaders_of_own_data_need_only_as_many_batches(void **state) {
    (void)state;
    assert_int_equal(ranks_run(3, train_own_data), 0);
}

/* ---- gradients ---- */

static wb_array *partial_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *w = wb_get(model, wb_rank() == 1 ? "layers.1.weight" : "layers.2.weight");
    return wb_add(wb_mean(wb_square(wb_get(model, "layers.1.bias"))),
                  wb_mul(wb_sum(wb_square(w)), wb_mean(batch->x)));
}

static void miss_a_gradient(void) {
    wb_scope_open();
    wb_layer *model = wb_chain(wb_dense(3, 8), wb_dense(8, 2));
    wb_optimiser *o = wb_setup(wb_descent(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    wb_array *l = wb_train_step(partial_loss, model, &batch, NULL, o);
    expect(l ? WB_OK : wb_error_status(),
           "the gradient of layers.2.weight is there on ranks 0, 2, missing on rank 1");
    wb_free(o), wb_free(model);
}

static void a_gradient_that_a_rank_lacks_is_named(void **state) {
    (void)state;
    assert_int_equal(ranks_run(3, miss_a_gradient), 0);
}

/* ---- states ---- */

/* y = x; in training a step is counted, as an integer or as a real number. */
typedef struct Counter {
    wb_layer layer;
    wb_array *count;
} Counter;

static wb_array *count_on(wb_layer *layer, wb_array *x) {
    const Counter *c = (const Counter *)(const void *)layer;
    return wb_set(layer, "count", wb_add_number(c->count, 1)) == WB_OK ? x : NULL;
}

WB_FUNCTOR(Counter, count_on, WB_STATE_FIELD(Counter, count));

static wb_dtype counted_in;

/* Of two layers, rank 1 leaves one out. */
static wb_array *passing_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *h = wb_apply(wb_chain_at(model, 1), batch->x);
    if (wb_rank() != 1) h = wb_apply(wb_chain_at(model, 2), h);
    return wb_mse(h, batch->y);
}

static void miss_a_state(void) {
    wb_scope_open();
    Counter *c = wb_new(Counter);
    c->count = wb_keep(wb_scalar(counted_in, 0));
    wb_layer *model = wb_chain(wb_dense(3, 2), &c->layer);
    wb_optimiser *o = wb_setup(wb_descent(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    wb_array *l = wb_train_step(passing_loss, model, &batch, NULL, o);
    expect(l ? WB_OK : wb_error_status(),
           "the new value of layers.2.count is there on ranks 0, 2, missing on rank 1");
    wb_free(o), wb_free(model);
}

static void a_state_that_a_rank_does_not_write_is_named(void **state) {
    (void)state;
    counted_in = WB_F32;
    assert_int_equal(ranks_run(3, miss_a_state), 0);
    counted_in = WB_I32;
    assert_int_equal(ranks_run(3, miss_a_state), 0);
}

/* ---- models ---- */

static int more_layers;

static void set_up_others(void) {
    wb_scope_open();
    const int64_t width = wb_rank() == 1 && !more_layers ? 5 : 4;
    wb_layer *model = wb_chain(wb_dense(3, width), wb_dense(width, 2));
    if (wb_rank() == 1 && more_layers) {
        wb_free(model);
        model = wb_chain(wb_dense(3, 4), wb_dense(4, 2), wb_dense(2, 2));
    }
    wb_optimiser *o = wb_setup(wb_descent(), model, .distributed = true);
    expect(o ? WB_OK : wb_error_status(),
           more_layers ? "layers.3.weight is missing on ranks 0, 2, f32 (2, 2) on rank 1"
                       : "layers.1.weight is f32 (4, 3) on ranks 0, 2, f32 (5, 3) on rank 1");
    wb_free(o), wb_free(model);
}

static void models_that_differ_are_named_by_wb_setup(void **state) {
    (void)state;
    for (more_layers = 0; more_layers < 2; more_layers++)
        assert_int_equal(ranks_run(3, set_up_others), 0);
}

/* ---- parameters ---- */

enum { EVERY = 3 };

static int changed_at;   /* step before which rank 1's parameters change */
static int zero;         /* ZeRO's stage */
static char warned[512]; /* the last warning */
static int warned_at = -1;

static void listen(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_WARN) (void)snprintf(warned, sizeof warned, "%s", line);
}

static bool step(wb_layer *model, wb_optimiser *o) {
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 5), .y = wb_ones(WB_F32, 2, 5)};
    return wb_train_step(loss, model, &batch, NULL, o) != NULL;
}

/* Steps that were made before a difference was noticed; at most 10. */
static int steps_until_noticed(void) {
    wb_log_to(listen, NULL);
    wb_scope_open();
    wb_layer *model = wb_chain(wb_dense(3, 8), wb_dense(8, 2));
    wb_optimiser *o =
        wb_setup(wb_adam(), model, .distributed = true, .compare_every = EVERY, .zero = zero);
    int done = 0;
    for (; done < 10; done++) {
        if (done == changed_at && wb_rank() == 1)
            CHECK(wb_set(model, "layers.2.weight",
                         wb_add(wb_get(model, "layers.2.weight"), wb_number(0.25))) == WB_OK);
        if (!step(model, o)) break;
        if (warned[0] && warned_at < 0) warned_at = done;
    }
    wb_free(o), wb_free(model);
    return done;
}

static void notice(void) {
    CHECK(steps_until_noticed() == EVERY * ((changed_at + EVERY - 1) / EVERY));
    CHECK(strstr(wb_error_message(), "layers.2.weight is of hash"));
    CHECK(strstr(wb_error_message(), "on ranks 0, 2, of hash"));
    wb_clear_error();
}

static void parameters_that_differ_are_noticed_in_time(void **state) {
    (void)state;
    for (changed_at = 0; changed_at <= 4; changed_at++) assert_int_equal(ranks_run(3, notice), 0);
}

static void notice_nothing(void) { CHECK(steps_until_noticed() == 10 && !warned[0]); }

static void divided_states_are_not_compared(void **state) {
    (void)state;
    changed_at = -1, zero = 1;
    assert_int_equal(ranks_run(3, notice_nothing), 0);
    changed_at = -1, zero = 0;
}

static bool has_other_processor(void) {
    if (wb_rank() == 1) (void)setenv("WEBER_ISA", "baseline", 1);
    return strcmp(wb_device_properties(wb_cpu_device()).driver, "baseline") != 0;
}

static void warn(void) {
    const bool differs = has_other_processor();
    if (wb_rank() == 1) CHECK(!differs);
    if (wb_rank() != 1 && !differs) exit(0);
    CHECK(steps_until_noticed() == 10 && !wb_failed());
    CHECK(warned_at == (wb_rank() == 0 ? EVERY : -1));
    if (wb_rank() == 0) CHECK(strstr(warned, "parameters differ by up to 0.25"));
}

/* ---- at the end of a training ---- */

static bool spoil(const wb_train_event *e) {
    if (wb_rank() == 1)
        CHECK(wb_set(e->model, "bias", wb_add(wb_get(e->model, "bias"), wb_number(1))) == WB_OK);
    return true;
}

static void train_and_spoil(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o = wb_setup(wb_descent(), model, .distributed = true);
    wb_loader *data = data_of(&usual);
    expect(wb_train(loss, model, data, o, .on_epoch = spoil), "bias is of hash");
    wb_free(o), wb_free(model), wb_free(data);
}

static void parameters_that_differ_at_the_end_are_an_error(void **state) {
    (void)state;
    assert_int_equal(ranks_run(3, train_and_spoil), 0);
}

/* ---- scores ---- */

static double own_score(const wb_train_event *e) { return wb_rank() == 0 ? -(double)e->epoch : 5; }

static bool count_epoch(const wb_train_event *e) {
    CHECK(e->score == -(double)e->epoch && e->best_epoch == e->epoch);
    ++*(int *)e->user;
    return true;
}

static void train_by_score(void) {
    int epochs = 0;
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o = wb_setup(wb_descent(), model, .distributed = true);
    wb_loader *data = data_of(&usual);
    CHECK(wb_train(loss, model, data, o, .epochs = 6, .score = own_score, .user = &epochs,
                   .on_epoch = count_epoch, .early_stopping = {.patience = 2},
                   .plateau = WB_PLATEAU(.patience = 1), .keep_best = true) == WB_OK);
    CHECK(epochs == 6);
    wb_free(o), wb_free(model), wb_free(data);
}

static void the_score_of_rank_0_decides(void **state) {
    (void)state;
    assert_int_equal(ranks_run(3, train_by_score), 0);
}

/* ---- checkpoints ---- */

static bool own_folders, shares;
static int64_t epochs_of_training;
static const char *says;

static const char *folder_of_rank(void) {
    char name[32];
    (void)snprintf(name, sizeof name, own_folders ? "run-%d/" : "run/", wb_rank());
    return path_of(name);
}

static void train_from_files(void) {
    wb_scope_open();
    wb_seed(1 + (uint64_t)wb_rank());
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    wb_loader *data = data_of(&usual);
    const wb_status status = wb_train(loss, model, data, o, .epochs = epochs_of_training,
                                      .checkpoint = folder_of_rank(), .share_checkpoint = shares);
    if (says)
        expect(status, says);
    else
        CHECK(status == WB_OK && wb_step_count(o) == 2 * epochs_of_training);
    wb_free(o), wb_free(model), wb_free(data);
}

static void train_alone_into_folder_of_rank_1(void) {
    wb_scope_open();
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o = wb_setup(wb_adam(), model);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 3, 24), .y = wb_ones(WB_F32, 2, 24),
                                    .batchsize = 12, .shuffle = true);
    CHECK(wb_train(loss, model, data, o, .epochs = 3, .checkpoint = path_of("run-1/")) == WB_OK);
    wb_free(o), wb_free(model), wb_free(data);
}

static void begin_files(bool own, bool are_shared) {
    char command[256];
    (void)snprintf(command, sizeof command, "rm -rf %s %s %s %s", path_of("run"), path_of("run-0"),
                   path_of("run-1"), path_of("run-2"));
    assert_int_equal(system(command), 0);
    own_folders = own, shares = are_shared, says = NULL, epochs_of_training = 2;
}

static void train_on(const char *message) {
    says = message;
    if (ranks_run(3, train_from_files))
        fail_msg("own folders %d, shared %d, \"%s\"", own_folders, shares, message);
    epochs_of_training = 5;
}

/* A folder per machine: rank 0 alone finds what rank 0 alone has written. */
static void ranks_without_rank_0_s_file_do_not_go_on(void **state) {
    (void)state;
    begin_files(true, false);
    train_on(NULL);
    train_on("the checkpoint is 4 on rank 0, none on ranks 1, 2; the number of steps is 4 on rank "
             "0, 0 on ranks 1, 2; the epoch is 2 on rank 0, 0 on ranks 1, 2");
}

/* Another job writes into the folder of rank 1. */
static void ranks_with_other_files_do_not_go_on(void **state) {
    (void)state;
    begin_files(true, false);
    assert_int_equal(ranks_run(1, train_alone_into_folder_of_rank_1), 0);
    train_on("the number of steps is 0 on ranks 0, 2, 6 on rank 1");
}

static void the_file_of_rank_0_is_sent_to_all(void **state) {
    (void)state;
    for (int own = 0; own <= 1; own++) {
        begin_files(own, true);
        if (own) assert_int_equal(ranks_run(1, train_alone_into_folder_of_rank_1), 0);
        train_on(NULL);
        train_on(NULL);
    }
}

static void one_folder_needs_no_sending(void **state) {
    (void)state;
    begin_files(false, false);
    train_on(NULL);
    train_on(NULL);
}

static void another_processor_is_a_warning_that_says_how_much(void **state) {
    (void)state;
    changed_at = 2;
    assert_int_equal(ranks_run(2, warn), 0);
    changed_at = -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fact_that_differs_is_told),
        cmocka_unit_test(lists_that_are_none_are_read_to_their_end),
        cmocka_unit_test(settings_that_differ_are_named_before_the_first_step),
        cmocka_unit_test(loaders_of_own_data_need_only_as_many_batches),
        cmocka_unit_test(a_gradient_that_a_rank_lacks_is_named),
        cmocka_unit_test(a_state_that_a_rank_does_not_write_is_named),
        cmocka_unit_test(models_that_differ_are_named_by_wb_setup),
        cmocka_unit_test(parameters_that_differ_are_noticed_in_time),
        cmocka_unit_test(divided_states_are_not_compared),
        cmocka_unit_test(another_processor_is_a_warning_that_says_how_much),
        cmocka_unit_test(parameters_that_differ_at_the_end_are_an_error),
        cmocka_unit_test(the_score_of_rank_0_decides),
        cmocka_unit_test(ranks_without_rank_0_s_file_do_not_go_on),
        cmocka_unit_test(ranks_with_other_files_do_not_go_on),
        cmocka_unit_test(the_file_of_rank_0_is_sent_to_all),
        cmocka_unit_test(one_folder_needs_no_sending),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
