/* A model trained by several ranks is the model that one process trains on their batches together.
 * N5 and N7 are rows of the acceptance cases. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "ranks/models.h"
#include "support/files.h"
#include "support/ranks.h"

enum { OBSERVATIONS = 96, BATCH = 24, EPOCHS = 5 };

/* A loss over the deviations from the mean over the whole batch of all ranks. */
static wb_array *centred_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *y = wb_apply(model, batch->x), *n = wb_late((double)batch->size);
    wb_array *sum = wb_div(wb_sum(wb_square(y)), wb_number((double)wb_size(y, 0)));
    wb_array *mean = wb_div(wb_allreduce(sum, WB_REDUCE_SUM), wb_allreduce(n, WB_REDUCE_SUM));
    return wb_add(wb_mse(y, batch->y), wb_mean(wb_square(wb_sub(wb_square(y), mean))));
}

/* A mean over what a mask leaves: parts count by how much they have of that. */
static wb_array *masked_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *first = wb_slice(batch->y, 0, 0, 1, 1);
    return wb_mse(wb_apply(model, batch->x), batch->y, .weights = wb_gt(first, wb_number(0.3)));
}

/* The same with weights, and over deviations from a mean of all ranks. */
static wb_array *weighted_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *w = wb_exp(wb_slice(batch->y, 0, 0, 1, 1)), *total = wb_sum(w);
    wb_array *y = wb_mean_dims(wb_square(wb_apply(model, batch->x)), 0);
    wb_array *own = wb_sum(wb_mul(y, w)), *all = wb_allreduce(total, WB_REDUCE_SUM);
    wb_array *mean = wb_div(wb_allreduce(own, WB_REDUCE_SUM), all);
    wb_array *l = wb_sum(wb_mul(wb_square(wb_sub(y, mean)), w));
    return wb_divided_by(wb_div(l, total), total);
}

/* ---- one training, whatever the number of ranks ---- */

typedef struct setting {
    const char *name;
    int observations, batch; /* of all ranks together */
    double clip;
    wb_rule (*rule)(void);
    wb_layer *(*model)(void);
    wb_loss_fn *loss; /* NULL: the squared error */
    bool f64;
    wb_dtype send, compute;
    int epochs;   /* 0: EPOCHS */
    int parts;    /* micro-batches of all ranks together; 0: one of each rank */
    bool by_hand; /* a step of the mean of two batches' gradients */
} setting;

static setting current;

static wb_rule descent(void) { return wb_descent(.eta = 0.05); }
static wb_rule momentum(void) { return wb_momentum(.eta = 0.02); }
static wb_rule adam(void) { return wb_adam(.eta = 1e-3); }

/* The last mask is one for all observations. */
static wb_layer *with_masks(void) {
    return wb_chain(wb_dense(3, 16, wb_tanh), wb_dropout(0.4), wb_dense(16, 8),
                    wb_dropout(0.3, .dims = WB_DIM(0)), wb_dense(8, 2));
}

/* Several buckets, the first ones under way while the backward pass goes on. */
static wb_layer *wide(void) {
    return wb_chain(wb_dense(3, 520, wb_tanh), wb_dense(520, 520, wb_tanh),
                    wb_dense(520, 520, wb_tanh), wb_dense(520, 2));
}

static wb_layer *with_sync(void) {
    return wb_chain(wb_dense(3, 8), wb_batchnorm(8, wb_relu, .sync = true), wb_dense(8, 2));
}
static wb_layer *without_sync(void) {
    return wb_chain(wb_dense(3, 8), wb_batchnorm(8, wb_relu), wb_dense(8, 2));
}
static wb_layer *with_sync_f64(void) {
    return wb_chain(wb_dense(3, 8, .dtype = WB_F64),
                    wb_batchnorm(8, wb_tanh, .sync = true, .dtype = WB_F64),
                    wb_dense(8, 2, .dtype = WB_F64));
}

static wb_loss_fn *loss_of_setting(void) { return current.loss ? current.loss : loss; }

/* The last loss of an epoch. */
static double by_steps(wb_loader *data, wb_layer *model, wb_optimiser *o) {
    double last = 0;
    wb_batch batch = {0};
    while (wb_next(data, &batch)) {
        wb_array *l = wb_train_step(loss_of_setting(), model, &batch, NULL, o);
        CHECK(l);
        last = wb_item(l);
    }
    return last;
}

static double by_hand(wb_loader *data, wb_layer *model, wb_optimiser *o) {
    wb_gradients *sum = NULL, *g = NULL;
    wb_batch batch = {0};
    while (wb_next(data, &batch)) {
        CHECK(wb_withgradient_for(o, loss_of_setting(), model, &batch, NULL, &g));
        if (!sum) {
            sum = wb_gradients_keep(g);
            CHECK(sum);
            continue;
        }
        CHECK(wb_gradients_add(sum, g) == WB_OK && wb_gradients_scale(sum, 0.5) == WB_OK);
        CHECK(wb_update(o, model, sum) == WB_OK);
        wb_free(sum), sum = NULL;
    }
    wb_free(sum);
    return 0;
}

/* Trains, and writes the model to ranks-N.npz; the last loss. */
static double trained(const char *path) {
    const setting *s = &current;
    wb_scope_open();
    wb_seed(7 + (uint64_t)wb_rank()); /* rank 0's parameters count */
    const wb_dtype dtype = s->f64 ? WB_F64 : WB_F32;
    wb_array *x = wb_cast(numbers(3, s->observations, 0.7), dtype);
    wb_array *y = wb_cast(numbers(2, s->observations, 0.3), dtype);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = s->batch / wb_total_workers(),
                                    .shuffle = true, .shard = true);
    wb_layer *model = s->model();
    wb_optimiser *o = wb_setup(s->rule(), model, .distributed = true, .clip_total_norm = s->clip,
                               .micro_batches = s->parts / wb_total_workers(), .send = s->send,
                               .compute = s->compute);
    CHECK(o && data);
    wb_seed(5); /* of masks */
    double last = 0;
    for (int e = 0; e < (s->epochs ? s->epochs : EPOCHS); e++)
        last = s->by_hand ? by_hand(data, model, o) : by_steps(data, model, o);
    CHECK(!wb_failed());
    if (wb_rank() == 0) CHECK(wb_save(path, model) == WB_OK);
    if ((s->model == dense || s->model == wide) && !s->by_hand && !getenv("WEBER_EAGER"))
        CHECK(wb_plan_status().missed_donations == 0);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
    return last;
}

static void train(void) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s-%d.npz", current.name, wb_total_workers());
    const double last = trained(path_of(name));
    (void)snprintf(name, sizeof name, "%s-%d.loss", current.name, wb_total_workers());
    if (wb_rank() == 0) write_file(path_of(name), &last, sizeof last);
    wb_array *common = wb_allreduce(wb_cast(wb_number(last), WB_F64), WB_REDUCE_MAX);
    CHECK(wb_item(common) == last); /* all show the same loss */
}

static double loss_of(const char *setting, int ranks) {
    char name[64];
    size_t size;
    (void)snprintf(name, sizeof name, "%s-%d.loss", setting, ranks);
    unsigned char *bytes = read_file(path_of(name), &size);
    double value = NAN;
    if (bytes && size == sizeof value) memcpy(&value, bytes, size);
    free(bytes);
    return value;
}

/* ---- what a loss draws ---- */

enum { DRAWS = 7, DRAWN_BATCH = 48 };

static int drawn_batch = DRAWN_BATCH;

static void draw_in_step(void *context, wb_array **carries, wb_array *const *inputs,
                         wb_array **outputs) {
    (void)context;
    outputs[0] = wb_normal(WB_F32, 4, wb_size(inputs[0], 0));
    carries[0] = wb_add(carries[0], wb_number(1));
}

/* (4, n, steps) as (4, steps, n), so that parts follow each other. */
static wb_array *drawn_in_scan(int64_t n) {
    wb_array *h = wb_zeros(WB_F32, 1), *x = wb_zeros(WB_F32, n, 3), *y = NULL;
    CHECK(wb_scan(draw_in_step, NULL, 1, &h, 1, &x, 1, &y) == WB_OK);
    return wb_permute(y, 0, 2, 1);
}

/* The first are of the observations, the last two of none. */
static wb_array *drawn(int which, int64_t n) {
    switch (which) {
    case 0:
        return wb_uniform(WB_F32, 5, n);
    case 1:
        return wb_normal(WB_F64, 3, 4, n);
    case 2:
        return wb_uniform(WB_F16, n);
    case 3:
        return wb_cast(wb_bernoulli(0.4, 7, 2 * n), WB_F32);
    case 4:
        return drawn_in_scan(n);
    case 5:
        return wb_normal(WB_F32, 11);
    default:
        return wb_uniform(WB_F32, 3, n + 1);
    }
}

static const char *name_of_draw(int which, int ranks, int rank) {
    static char name[64];
    (void)snprintf(name, sizeof name, "draw-%d-%d-%d", which, ranks, rank);
    return path_of(name);
}

/* Each part appends what it has drawn. */
static wb_array *drawing_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    for (int i = 0; i < DRAWS; i++) {
        wb_array *x = wb_cast(drawn(i, wb_numobs(batch->x)), WB_F64);
        double values[4096];
        CHECK(wb_count(x) <= 4096 && wb_read_f64(x, values, wb_count(x)) == WB_OK);
        FILE *file = fopen(name_of_draw(i, wb_total_workers(), wb_rank()), "ab");
        CHECK(file && fwrite(values, sizeof *values, (size_t)wb_count(x), file) > 0);
        fclose(file);
    }
    return loss(model, batch, NULL);
}

static int drawn_parts;

static void draws(void) {
    wb_scope_open();
    for (int i = 0; i < DRAWS; i++) (void)unlink(name_of_draw(i, wb_total_workers(), wb_rank()));
    wb_layer *model = wb_dense(3, 2);
    wb_optimiser *o =
        wb_setup(wb_descent(), model, .distributed = true, .micro_batches = drawn_parts);
    const int64_t own = drawn_batch / wb_total_workers();
    const wb_batch batch = {.x = wb_zeros(WB_F32, 3, own), .y = wb_zeros(WB_F32, 2, own)};
    wb_seed(9);
    (void)wb_uniform(WB_F32, 1 + wb_rank()); /* no matter what was drawn before */
    for (int step = 0; step < 1 + (drawn_parts == 0 && wb_total_workers() == 1); step++)
        CHECK(wb_train_step(drawing_loss, model, &batch, NULL, o));
    wb_free(o), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

/* The first step of one process, and what the ranks have, one after another. */
static void compare_draws(int ranks, int parts) {
    for (int i = 0; i < DRAWS - 2; i++) {
        size_t all = 0, size = 0;
        unsigned char *one = read_file(name_of_draw(i, 1, 0), &all);
        size_t at = 0;
        bool is_same = true;
        for (int r = 0; r < ranks; r++) {
            unsigned char *part = read_file(name_of_draw(i, ranks, r), &size);
            assert_non_null(part);
            assert_true(at + size <= all / 2);
            is_same = is_same && memcmp(one + at, part, size) == 0;
            at += size;
            free(part);
        }
        assert_int_equal(at, all / 2);
        assert_memory_not_equal(one, one + at, at); /* another step */
        if (!is_same) fail_msg("draw %d by %d ranks with %d parts", i, ranks, parts);
        free(one);
    }
}

static double first_number(int which, int ranks, int rank) {
    size_t size = 0;
    unsigned char *bytes = read_file(name_of_draw(which, ranks, rank), &size);
    double number = -1;
    if (bytes) memcpy(&number, bytes, sizeof number);
    free(bytes);
    return number;
}

static void draw_as_one_process(int batch, int n, int parts) {
    drawn_batch = batch, drawn_parts = parts;
    assert_int_equal(ranks_run(n, draws), 0);
    compare_draws(n, parts);
    for (int r = 0; r < n; r++)
        assert_true(first_number(5, n, r) == first_number(5, 1, 0) &&
                    first_number(6, n, r) == first_number(6, 1, 0));
}

/* As one process draws for the whole batch: whoever computes a part, whatever the order in which
 * its arrays are made inside a scan. */
static void draws_for_observations(void **state) {
    (void)state;
    static const int rows[][2] = {{2, 0}, {3, 0}, {4, 0}, {2, 2}, {2, 1}, {4, 1}};
    drawn_batch = DRAWN_BATCH, drawn_parts = 0;
    assert_int_equal(ranks_run(1, draws), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        draw_as_one_process(DRAWN_BATCH, rows[i][0], rows[i][1]);
}

/* Also where a part's numbers begin inside a block of four. */
static void draws_inside_blocks(void **state) {
    (void)state;
    static const int rows[][2] = {{2, 0}, {3, 0}, {5, 0}, {2, 5}, {3, 2}};
    drawn_batch = 30, drawn_parts = 0;
    assert_int_equal(ranks_run(1, draws), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        draw_as_one_process(30, rows[i][0], rows[i][1]);
}

/* ---- against one process ---- */

static double tolerance;

/* All arrays of two models, one by one. */
static void compare_models(const char *one, const char *other) {
    wb_scope_open();
    wb_layer *a = current.model(), *b = current.model();
    CHECK(wb_load(path_of(one), a) == WB_OK && wb_load(path_of(other), b) == WB_OK);
    wb_parameter p = {0}, q = {0};
    char where[128];
    while (wb_next_parameter(a, &p)) {
        CHECK(wb_next_parameter(b, &q));
        if (wb_approx(p.array, q.array, 0, tolerance, where, sizeof where)) continue;
        (void)fprintf(stderr, "%s and %s differ: %s at %s\n", one, other, p.path, where);
        exit(1);
    }
    wb_free(a), wb_free(b);
    CHECK(wb_scope_close() == WB_OK);
}

static void compare(void) {
    char one[64], many[64];
    (void)snprintf(one, sizeof one, "%s-1.npz", current.name);
    for (int n = 2; n <= 4; n++) {
        (void)snprintf(many, sizeof many, "%s-%d.npz", current.name, n);
        compare_models(one, many);
    }
}

static void compare_parts(void) {
    char one[64], many[64];
    (void)snprintf(one, sizeof one, "%s-1.npz", current.name);
    for (int n = 2; n <= 4; n *= 2) {
        (void)snprintf(many, sizeof many, "%s-%d.npz", current.name, n);
        compare_models(one, many);
    }
}

/* N7. The parameters for rules whose steps are as large as gradients; Adam's step turns where a
 * gradient is near 0, so that the losses are compared. */
static void is_one_process(void **state) {
    (void)state;
    const setting settings[] = {
        {"descent", OBSERVATIONS, BATCH, .rule = descent, .model = dense},
        {"momentum", OBSERVATIONS, BATCH, .rule = momentum, .model = dense},
        {"hundred steps", OBSERVATIONS, BATCH, .rule = momentum, .model = dense, .epochs = 25},
        {"clipped", OBSERVATIONS, BATCH, .clip = 0.05, .rule = momentum, .model = dense},
        {"adam", OBSERVATIONS, BATCH, .rule = adam, .model = dense}, /* N5 */
        {"uneven", OBSERVATIONS - 13, BATCH, .rule = descent, .model = dense},
        {"few", 10, 12, .rule = descent, .model = dense}, /* ranks without data */
        {"wide", OBSERVATIONS, BATCH, .rule = descent, .model = wide},
        {"sent in bf16", OBSERVATIONS - 13, BATCH, .rule = descent, .model = wide, .send = WB_BF16},
        {"masks", OBSERVATIONS, BATCH, .rule = descent, .model = with_masks},
        {"masks, uneven", OBSERVATIONS - 13, BATCH, .rule = descent, .model = with_masks},
        {"masks, few", 10, 12, .rule = descent, .model = with_masks},
        {"sync", OBSERVATIONS - 13, BATCH, .rule = descent, .model = with_sync},
        {"sync f64", OBSERVATIONS - 13, BATCH, .rule = descent, .model = with_sync_f64,
         .f64 = true},
        {"sync, few", 10, 12, .rule = descent, .model = with_sync_f64, .f64 = true},
        {"by hand", OBSERVATIONS - 13, BATCH, .rule = momentum, .model = dense, .by_hand = true},
        {"collective", OBSERVATIONS - 13, BATCH, .rule = descent, .model = dense,
         .loss = centred_loss},
        {"collective, few", 10, 12, .rule = descent, .model = dense, .loss = centred_loss},
        {"collective by hand", OBSERVATIONS - 13, BATCH, .rule = descent, .model = dense,
         .loss = centred_loss, .by_hand = true},
        {"a mask", OBSERVATIONS - 13, BATCH, .rule = descent, .model = dense, .loss = masked_loss},
        {"a mask, few", 10, 12, .rule = descent, .model = dense, .loss = masked_loss},
        {"a mask by hand", OBSERVATIONS - 13, BATCH, .rule = descent, .model = dense,
         .loss = masked_loss, .by_hand = true},
        {"a mask in f16", OBSERVATIONS - 13, BATCH, .rule = descent, .model = dense,
         .loss = masked_loss, .compute = WB_F16},
        {"weights", OBSERVATIONS - 13, BATCH, .rule = descent, .model = with_sync_f64,
         .loss = weighted_loss, .f64 = true},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        current = settings[i];
        const bool is_coarse = current.send == WB_BF16 || current.compute == WB_F16;
        tolerance = is_coarse ? 1e-3 : current.rule == adam ? 1e-4 : current.f64 ? 1e-10 : 1e-6;
        for (int n = 1; n <= 4; n++) assert_int_equal(ranks_run(n, train), 0);
        assert_int_equal(ranks_run(1, compare), 0);
        for (int n = 2; n <= 4; n++)
            assert_true(fabs(loss_of(current.name, n) - loss_of(current.name, 1)) <
                        (is_coarse ? 1e-3 : 1e-5));
    }
}

/* ---- gradients that some ranks lack ---- */

enum { BRANCH_OBSERVATIONS = 12, BRANCH_STEPS = 6 };

static bool is_divided_among_ranks;

/* Of three branches the first half of the observations reaches two, the second half one; in every
 * third step all reach the third. With ranks, the last rank has the second half. */
static wb_array *branches(wb_layer *model, wb_array *x, bool has_second, bool has_third) {
    wb_array *y = wb_apply(wb_chain_at(model, 1), x);
    if (has_second) y = wb_add(y, wb_apply(wb_chain_at(model, 2), x));
    if (has_third) y = wb_add(y, wb_apply(wb_chain_at(model, 3), x));
    return wb_mean(wb_square(wb_sub(y, wb_number(0.5))));
}

static wb_array *loss_of_branches(wb_layer *model, const wb_batch *batch, void *user) {
    const bool has_third = *(const int *)user % 3 == 1;
    const int64_t n = wb_numobs(batch->x);
    if (wb_total_workers() == 2) return branches(model, batch->x, wb_rank() == 0, has_third);
    wb_array *a = branches(model, wb_getobs(batch->x, 0, n / 2), true, has_third);
    wb_array *b = branches(model, wb_getobs(batch->x, n / 2, n), false, has_third);
    return wb_mul(wb_add(a, b), wb_number(0.5));
}

static wb_layer *three_branches(void) {
    return wb_chain(wb_dense(3, 2), wb_dense(3, 2, wb_tanh), wb_dense(3, 2));
}

static void train_branches(void) {
    wb_scope_open();
    wb_seed(4);
    wb_array *x = numbers(3, BRANCH_OBSERVATIONS, 0.7);
    wb_layer *model = three_branches();
    wb_optimiser *o =
        wb_setup(wb_adamw(.eta = 0.01, .lambda = 0.1), model, .distributed = true, .may_miss = true,
                 .clip_total_norm = 0.5, .zero = is_divided_among_ranks);
    const int64_t n = BRANCH_OBSERVATIONS / wb_total_workers();
    const wb_batch batch = {.x = wb_getobs(x, wb_rank() * n, (wb_rank() + 1) * n)};
    for (int step = 0; step < BRANCH_STEPS; step++)
        CHECK(wb_train_step(loss_of_branches, model, &batch, &step, o));
    char name[64];
    (void)snprintf(name, sizeof name, "branches-%d.npz", wb_total_workers());
    if (wb_rank() == 0) CHECK(wb_save(path_of(name), model) == WB_OK);
    wb_free(o), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void compare_branches(void) { compare_models("branches-1.npz", "branches-2.npz"); }

static void lacks_a_gradient(void) {
    wb_scope_open();
    wb_layer *model = three_branches();
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 4)};
    int step = 0;
    CHECK(!wb_train_step(loss_of_branches, model, &batch, &step, o));
    CHECK(strstr(wb_error_message(), "distributed: "));
    wb_clear_error();
    wb_free(o), wb_free(model);
}

static void may_lack_gradients(void **state) {
    (void)state;
    current = (setting){.model = three_branches};
    tolerance = 1e-5;
    is_divided_among_ranks = false;
    assert_int_equal(ranks_run(1, train_branches), 0);
    for (int zero = 0; zero < 2; zero++) {
        is_divided_among_ranks = zero;
        assert_int_equal(ranks_run(2, train_branches), 0);
        assert_int_equal(ranks_run(1, compare_branches), 0);
    }
    assert_int_equal(ranks_run(2, lacks_a_gradient), 0);
}

static void mixes(void) {
    wb_scope_open();
    wb_layer *model = dense();
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 8), .y = wb_ones(WB_F32, 2, 8)};
    wb_gradients *part, *plain;
    CHECK(wb_withgradient_for(o, loss, model, &batch, NULL, &part));
    CHECK(wb_withgradient(loss, model, &batch, NULL, &plain));
    CHECK(wb_gradients_add(part, plain) == WB_ERROR_ARGUMENT);
    CHECK(strstr(wb_error_message(), "wb_withgradient_for, or neither"));
    wb_clear_error();
    wb_free(o), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void refuses_a_mixture(void **state) {
    (void)state;
    assert_int_equal(ranks_run(2, mixes), 0);
}

/* Kernels of a second step, in one process. */
static int64_t kernels_of_step(wb_layer *(*make)(void), bool distributed) {
    wb_layer *model = make();
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = distributed);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 8), .y = wb_ones(WB_F32, 2, 8)};
    CHECK(wb_train_step(loss, model, &batch, NULL, o));
    const int64_t before = wb_plan_status().kernels;
    CHECK(wb_train_step(loss, model, &batch, NULL, o));
    const int64_t kernels = wb_plan_status().kernels - before;
    wb_free(o), wb_free(model);
    return kernels;
}

static void makes_the_same_plans(void) {
    wb_scope_open();
    CHECK(kernels_of_step(with_norm, true) == kernels_of_step(with_norm, false));
    CHECK(kernels_of_step(with_sync, true) == kernels_of_step(without_sync, false));
    CHECK(wb_scope_close() == WB_OK);
}

static void costs_nothing_alone(void **state) {
    (void)state;
    assert_int_equal(ranks_run(1, makes_the_same_plans), 0);
}

/* ---- bits ---- */

static void train_again(void) {
    char first[64], name[64];
    (void)snprintf(first, sizeof first, "%s-%d.npz", current.name, wb_total_workers());
    (void)snprintf(name, sizeof name, "again-%d.npz", wb_total_workers());
    (void)trained(path_of(name));
    tolerance = 0;
    if (wb_rank() == 0) compare_models(first, name);
}

/* Whatever a rank does besides; and running statistics are the same everywhere. */
static void has_the_same_bits(void **state) {
    (void)state;
    const setting s = {"norm", OBSERVATIONS - 5, BATCH, .rule = adam, .model = with_norm};
    current = s;
    for (int n = 2; n <= 3; n++) {
        assert_int_equal(ranks_run(n, train), 0);
        assert_int_equal(ranks_run(n, train_again), 0);
    }
}

/* Whichever rank computes a part: with masks, and with what BatchNorm writes. */
static void depends_on_parts_alone(void **state) {
    (void)state;
    const setting settings[] = {
        {"parts", OBSERVATIONS, BATCH, .rule = momentum, .model = dense, .parts = 4},
        {"uneven parts", OBSERVATIONS - 13, BATCH, .rule = adam, .model = with_norm, .parts = 4},
        {"masked parts", OBSERVATIONS - 13, BATCH, .rule = adam, .model = with_masks, .parts = 4},
        {"few parts", 10, 16, .rule = adam, .model = with_norm, .parts = 8, .clip = 0.05},
        {"wide parts", OBSERVATIONS, BATCH, .rule = adam, .model = wide, .parts = 4},
        {"parts of a mask", OBSERVATIONS - 13, BATCH, .rule = adam, .model = with_norm, .parts = 4,
         .loss = masked_loss},
        {"collective parts", OBSERVATIONS - 13, BATCH, .rule = adam, .model = with_sync_f64,
         .parts = 4, .f64 = true},
    };
    tolerance = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        current = settings[i];
        for (int n = 1; n <= 4; n *= 2) assert_int_equal(ranks_run(n, train), 0);
        if (current.model == with_sync_f64) continue; /* synchronised part by part */
        assert_int_equal(ranks_run(1, compare_parts), 0);
        for (int n = 2; n <= 4; n *= 2)
            assert_true(loss_of(current.name, n) == loss_of(current.name, 1));
    }
}

/* ---- what ranks hold ---- */

static double sum_of_all(wb_layer *model) {
    double sum = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) sum += wb_item(wb_sum(p.array));
    return sum;
}

static void stays_equal(void) {
    wb_scope_open();
    wb_seed(100 + (uint64_t)wb_rank());
    wb_array *x = numbers(3, 58, 0.7), *y = numbers(2, 58, 0.3);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 7, .shard = true);
    wb_layer *model = with_norm();
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    wb_batch batch = {0};
    while (wb_next(data, &batch)) CHECK(wb_train_step(loss, model, &batch, NULL, o));
    wb_array *own = wb_cast(wb_number(sum_of_all(model)), WB_F64);
    wb_array *most = wb_allreduce(own, WB_REDUCE_MAX), *least = wb_allreduce(own, WB_REDUCE_MIN);
    CHECK(wb_item(most) == wb_item(least));
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

static void holds_the_same(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, stays_equal), 0);
}

/* Arrays, states, counts; N1 for a model. */
static void synchronizes(void) {
    wb_scope_open();
    wb_seed(5 + (uint64_t)wb_rank());
    wb_layer *model = dense();
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = {.x = wb_uniform(WB_F32, 3, 8), .y = wb_uniform(WB_F32, 2, 8)};
    for (int i = 0; i <= wb_rank(); i++) CHECK(wb_train_step(loss, model, &batch, NULL, o));
    CHECK(wb_step_count(o) == wb_rank() + 1);
    CHECK(wb_synchronize(o) == WB_OK);
    CHECK(wb_step_count(o) == 1 && wb_skipped(o) == 0);
    const wb_batch same = {.x = wb_ones(WB_F32, 3, 8), .y = wb_ones(WB_F32, 2, 8)};
    CHECK(wb_train_step(loss, model, &same, NULL, o));
    wb_array *own = wb_cast(wb_number(sum_of_all(model)), WB_F64);
    CHECK(wb_item(wb_allreduce(own, WB_REDUCE_MAX)) == wb_item(wb_allreduce(own, WB_REDUCE_MIN)));
    wb_free(o), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void has_one_state(void **state) {
    (void)state;
    assert_int_equal(ranks_run(3, synchronizes), 0);
}

/* ---- integers that layers write ---- */

/* y = w x; in training: one more in count, and whether there was an x above 1. */
typedef struct Notes {
    wb_layer layer;
    wb_array *w, *count, *flag;
} Notes;

static wb_array *note(wb_layer *layer, wb_array *x) {
    const Notes *n = (const Notes *)(const void *)layer;
    wb_array *flag = wb_or(n->flag, wb_gt(wb_maximum(x), wb_number(1)));
    if (wb_is_active(layer) && (wb_set(layer, "count", wb_add_number(n->count, 1)) != WB_OK ||
                                wb_set(layer, "flag", flag) != WB_OK))
        return NULL;
    return wb_mul(x, n->w);
}

WB_FUNCTOR(Notes, note, WB_ARRAY_FIELD(Notes, w), WB_STATE_FIELD(Notes, count),
           WB_STATE_FIELD(Notes, flag));

static int64_t noted_parts;

/* A step that fails ends the group. */
static void writes_integers(void) {
    wb_scope_open();
    Notes *n = wb_new(Notes);
    n->w = wb_keep(wb_scalar(WB_F32, 1));
    n->count = wb_keep(wb_scalar(WB_I32, 0));
    n->flag = wb_keep(wb_scalar(WB_BOOL, 0));
    wb_layer *model = &n->layer;
    wb_optimiser *o =
        wb_setup(wb_descent(), model, .distributed = true, .micro_batches = noted_parts);
    const double large = wb_rank() == 1 ? 2 : 0; /* on one rank alone */
    const wb_batch alike = {.x = wb_zeros(WB_F32, 1, 4), .y = wb_ones(WB_F32, 1, 4)};
    const wb_batch unlike = {.x = wb_full(WB_F32, large, 1, 4), .y = wb_ones(WB_F32, 1, 4)};
    for (int i = 0; i < 3; i++) CHECK(wb_train_step(loss, model, &alike, NULL, o));
    CHECK(wb_item(wb_get(model, "count")) == 3);
    CHECK(!wb_train_step(loss, model, &unlike, NULL, o));
    CHECK(strstr(wb_error_message(), "must write the same to flag, but 1 of 1 elements"));
    wb_clear_error();
    CHECK(wb_item(wb_get(model, "count")) == 3);
    CHECK(wb_item(wb_sum(wb_get(model, "flag"))) == 0);
    wb_free(o), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void has_one_count(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++)
        for (noted_parts = 0; noted_parts < 3; noted_parts++)
            assert_int_equal(ranks_run(n, writes_integers), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_one_process),         cmocka_unit_test(costs_nothing_alone),
        cmocka_unit_test(has_the_same_bits),      cmocka_unit_test(holds_the_same),
        cmocka_unit_test(has_one_state),          cmocka_unit_test(refuses_a_mixture),
        cmocka_unit_test(depends_on_parts_alone), cmocka_unit_test(may_lack_gradients),
        cmocka_unit_test(draws_for_observations), cmocka_unit_test(draws_inside_blocks),
        cmocka_unit_test(has_one_count),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
