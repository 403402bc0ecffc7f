/* Optimisers whose states are divided among ranks: the same bits as without, for every rule, and
 * states that are divided by the number of ranks. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/files.h"
#include "support/ranks.h"

enum { OBSERVATIONS = 59, BATCH = 12, EPOCHS = 3 };

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_array *numbers(int rows, int columns, double step) {
    wb_array *i = wb_iota_make(WB_F32, 1, 2, (int64_t[]){rows, columns});
    wb_array *j = wb_iota_make(WB_F32, 0, 2, (int64_t[]){rows, columns});
    return wb_sin(wb_add(wb_mul(i, wb_number(step)), j));
}

/* ---- models: arrays that N does not divide, fewer elements than ranks ---- */

static wb_layer *dense(void) {
    return wb_chain(wb_dense(3, 17, wb_tanh), wb_batchnorm(17), wb_dropout(0.2),
                    wb_dense(17, 7, wb_tanh), wb_dense(7, 1, wb_tanh), wb_dense(1, 2));
}
static wb_layer *f64(void) {
    return wb_chain(wb_dense(3, 17, wb_tanh, .dtype = WB_F64), wb_dense(17, 2, .dtype = WB_F64));
}
static wb_layer *bf16(void) {
    return wb_chain(wb_dense(3, 17, wb_tanh, .dtype = WB_BF16), wb_dense(17, 2, .dtype = WB_BF16));
}
static wb_layer *matrices(void) {
    return wb_chain(wb_dense(3, 17, wb_tanh, .bias = false),
                    wb_dense(17, 5, wb_tanh, .bias = false), wb_dense(5, 2, .bias = false));
}
static wb_layer *large(void) {
    return wb_chain(wb_dense(3, 700, wb_tanh), wb_dense(700, 700, wb_tanh), wb_dense(700, 2));
}

/* ---- one training ---- */

typedef struct setting {
    const char *name;
    wb_rule rule;
    wb_layer *(*model)(void); /* NULL: dense */
    double clip;
    int micro_batches;
    wb_path_rule path;
    const char *frozen;
    wb_dtype compute;
    double loss_scale;
    wb_dtype send;
} setting;

static wb_loader *data_of(wb_dtype dtype, int batch) {
    return wb_loader_new(.x = wb_cast(numbers(3, OBSERVATIONS, 0.7), dtype),
                         .y = wb_cast(numbers(2, OBSERVATIONS, 0.3), dtype), .batchsize = batch,
                         .shuffle = true, .shard = true);
}

static wb_layer *model_of(const setting *s) { return s->model ? s->model() : dense(); }

/* Trains the model that it makes; its arrays are compared by the caller. */
static wb_layer *trained(const setting *s, int zero, wb_optimiser **optimiser, double *last) {
    wb_seed(7);
    wb_layer *model = model_of(s);
    wb_optimiser *o =
        wb_setup(s->rule, model, .distributed = true, .zero = zero, .clip_total_norm = s->clip,
                 .micro_batches = s->micro_batches, .paths = {s->path}, .compute = s->compute,
                 .loss_scale = s->loss_scale, .send = s->send);
    CHECK(o);
    if (s->frozen) CHECK(wb_freeze(o, s->frozen) == WB_OK);
    wb_loader *data = data_of(s->model == f64 ? WB_F64 : WB_F32, BATCH / wb_total_workers());
    for (int e = 0; e < EPOCHS; e++)
        for (wb_batch batch = {0}; wb_next(data, &batch);) {
            wb_array *l = wb_train_step(loss, model, &batch, NULL, o);
            CHECK(l);
            *last = wb_item(l);
        }
    CHECK(!wb_failed());
    wb_free(data);
    *optimiser = o;
    return model;
}

/* Eagerly, norms inside a rule were seen to differ in a last bit where buckets are others. */
static double tolerance;

static void check_same(const char *name, wb_layer *a, wb_layer *b) {
    wb_parameter p = {0}, q = {0};
    char where[64];
    while (wb_next_parameter(a, &p)) {
        CHECK(wb_next_parameter(b, &q));
        if (wb_approx(p.array, q.array, 0, tolerance, where, sizeof where)) continue;
        (void)fprintf(stderr, "%s: %s differs at %s\n", name, p.path, where);
        exit(1);
    }
}

static void has_bits_of(const setting *s) {
    double whole_loss = 0, divided_loss = 0;
    wb_optimiser *o, *p;
    wb_scope_open();
    wb_layer *whole = trained(s, 0, &o, &whole_loss);
    wb_layer *divided = trained(s, 1, &p, &divided_loss);
    tolerance = s->path.path && getenv("WEBER_EAGER") ? 1e-6 : 0;
    check_same(s->name, whole, divided);
    CHECK(fabs(whole_loss - divided_loss) <= tolerance);
    wb_free(o), wb_free(p), wb_free(whole), wb_free(divided);
    CHECK(wb_scope_close() == WB_OK);
}

/* ---- the table ---- */

enum { MOST_SETTINGS = 40 };

/* Every rule; how many settings. */
static int list(setting *all) {
    const setting settings[] = {
        {.name = "Descent", .rule = wb_descent(.eta = 0.05)},
        {.name = "Momentum", .rule = wb_momentum(.eta = 0.02)},
        {.name = "Nesterov", .rule = wb_nesterov()},
        {.name = "Rprop", .rule = wb_rprop()},
        {.name = "RMSProp", .rule = wb_rmsprop()},
        {.name = "AdaGrad", .rule = wb_adagrad()},
        {.name = "AdaDelta", .rule = wb_adadelta()},
        {.name = "Adam", .rule = wb_adam(.eta = 0.01)},
        {.name = "AdamW", .rule = wb_adamw(.lambda = 0.1)},
        {.name = "AdaMax", .rule = wb_adamax()},
        {.name = "NAdam", .rule = wb_nadam()},
        {.name = "RAdam", .rule = wb_radam()},
        {.name = "AMSGrad", .rule = wb_amsgrad()},
        {.name = "OAdam", .rule = wb_oadam()},
        {.name = "AdaBelief", .rule = wb_adabelief()},
        {.name = "Lion", .rule = wb_lion()},
        {.name = "Lamb", .rule = wb_lamb(.eta = 0.01)},
        {.name = "Muon", .rule = wb_muon(), .model = matrices},
        {.name = "schedule-free", .rule = wb_schedule_free()},
        {.name = "EMA", .rule = wb_rule_chain(wb_adam(), wb_ema(.decay = 0.9))},
        {.name = "weight decay", .rule = wb_rule_chain(wb_weight_decay(), wb_momentum())},
        {.name = "sign decay", .rule = wb_rule_chain(wb_sign_decay(), wb_adam())},
        {.name = "clipped values", .rule = wb_rule_chain(wb_clip_grad(.delta = 0.01), wb_adam())},
        {.name = "clipped norms", .rule = wb_rule_chain(wb_clip_norm(.omega = 0.01), wb_adam())},
        {.name = "accumulated", .rule = wb_rule_chain(wb_accum_grad(.n = 2), wb_adam())},
        {.name = "f64", .rule = wb_adam(), .model = f64},
        {.name = "bf16", .rule = wb_mixed_precision(wb_adam()), .model = bf16},
        {.name = "clipped", .rule = wb_adam(), .clip = 0.05, .micro_batches = 1},
        {.name = "micro-batches", .rule = wb_adam(), .model = matrices, .micro_batches = 2},
        {.name = "parts", .rule = wb_adam(), .path = {"*.weight", wb_lamb()}},
        {.name = "frozen", .rule = wb_adam(), .frozen = "layers.4"},
        {.name = "buckets", .rule = wb_adam(), .model = large},
        {.name = "sent in bf16", .rule = wb_adam(), .send = WB_BF16},
        {.name = "computed in bf16", .rule = wb_adam(), .compute = WB_BF16},
        {.name = "computed in f16", .rule = wb_adam(), .compute = WB_F16, .loss_scale = 1024},
    };
    memcpy(all, settings, sizeof settings);
    return (int)(sizeof settings / sizeof *settings);
}

static void has_bits(void) {
    setting all[MOST_SETTINGS];
    const int count = list(all);
    for (int i = 0; i < count; i++) has_bits_of(&all[i]);
}

static void same_bits_for_every_rule(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, has_bits), 0);
}

/* ---- by parts, one process and several ---- */

static void trains_in_parts(void) {
    setting all[MOST_SETTINGS];
    const int count = list(all), ranks = wb_total_workers();
    for (int i = 0; i < count; i++) {
        char name[64];
        double last;
        wb_optimiser *o;
        wb_scope_open();
        all[i].micro_batches = 4 / ranks;
        all[i].send = WB_F32; /* what is rounded on its way depends on who sends */
        wb_layer *model = trained(&all[i], 1, &o, &last);
        (void)snprintf(name, sizeof name, "%d-%d.npz", i, ranks);
        if (wb_rank() == 0) CHECK(wb_save(path_of(name), model) == WB_OK);
        wb_free(o), wb_free(model);
        CHECK(wb_scope_close() == WB_OK);
    }
}

static void every_rule_is_that_of_one_process(void **state) {
    (void)state;
    setting all[MOST_SETTINGS];
    for (int n = 1; n <= 4; n *= 2) assert_int_equal(ranks_run(n, trains_in_parts), 0);
    const int count = list(all);
    for (int i = 0; i < count; i++)
        for (int n = 2; n <= 4; n *= 2) {
            char one[64], many[64];
            (void)snprintf(one, sizeof one, "%d-1.npz", i);
            (void)snprintf(many, sizeof many, "%d-%d.npz", i, n);
            assert_same_files(path_of(one), path_of(many));
        }
}

/* ---- memory ---- */

static int64_t bytes_of_states(int zero) {
    const setting s = {.name = "large", .rule = wb_adam(), .model = large};
    wb_seed(1);
    wb_layer *model = large();
    CHECK(wb_device_sync(wb_default_device()) == WB_OK);
    const int64_t before = wb_memory_status(wb_default_device()).live;
    wb_optimiser *o = wb_setup(s.rule, model, .distributed = true, .zero = zero);
    CHECK(o && wb_device_sync(wb_default_device()) == WB_OK);
    const int64_t bytes = wb_memory_status(wb_default_device()).live - before;
    wb_free(o), wb_free(model);
    return bytes;
}

static void divides_memory(void) {
    wb_scope_open();
    const int64_t parameters = 700 * (3 + 1) + 700 * (700 + 1) + 2 * (700 + 1);
    const int64_t whole = bytes_of_states(0), part = bytes_of_states(1);
    CHECK(whole >= 8 * parameters); /* m and v in f32 */
    CHECK(part * wb_total_workers() < whole + whole / 50);
    CHECK(wb_scope_close() == WB_OK);
}

static void states_are_divided(void **state) {
    (void)state;
    for (int n = 2; n <= 4; n++) assert_int_equal(ranks_run(n, divides_memory), 0);
}

/* ---- states that are asked for ---- */

static void gives_states(void) {
    const setting rows[] = {{.name = "cut", .rule = wb_rule_chain(wb_adam(), wb_ema())},
                            {.name = "whole", .rule = wb_rule_chain(wb_lamb(), wb_ema())}};
    for (int i = 0; i < 2; i++) {
        double last;
        wb_optimiser *o, *p;
        wb_scope_open();
        wb_layer *whole = trained(&rows[i], 0, &o, &last);
        wb_layer *divided = trained(&rows[i], 1, &p, &last);
        static const char *const paths[] = {"layers.1.weight", "layers.5.bias"};
        for (int k = 0; k < 2; k++) {
            wb_array *m = wb_optimiser_get(o, paths[k], "m");
            wb_array *n = wb_optimiser_get(p, paths[k], "m");
            CHECK(m && n && wb_approx(m, n, 0, 0, NULL, 0));
            CHECK(wb_optimiser_set(p, paths[k], "v", wb_mul_number(m, 3)) == WB_OK);
            n = wb_optimiser_get(p, paths[k], "v");
            CHECK(n && wb_approx(wb_mul_number(m, 3), n, 0, 0, NULL, 0));
        }
        CHECK(wb_optimiser_set(p, paths[0], "m", wb_ones(WB_F32, 2)) == WB_ERROR_SHAPE);
        CHECK(strstr(wb_error_message(), "has sizes (17, 3), the new array (2)"));
        wb_clear_error();
        wb_layer *a = wb_averaged(o), *b = wb_averaged(p);
        CHECK(a && b);
        check_same(rows[i].name, a, b);
        wb_free(o), wb_free(p), wb_free(whole), wb_free(divided), wb_free(a), wb_free(b);
        CHECK(wb_scope_close() == WB_OK);
    }
}

static void states_are_whole_for_who_asks(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, gives_states), 0);
}

/* ---- arrays that are replaced ---- */

typedef struct Pair {
    wb_layer layer;
    wb_array *a, *b;
} Pair;
WB_FUNCTOR(Pair, NULL, WB_ARRAY_FIELD(Pair, a), WB_ARRAY_FIELD(Pair, b));

static wb_array *squares(wb_layer *model, const wb_batch *batch, void *user) {
    const Pair *p = (const Pair *)(void *)model;
    (void)batch, (void)user;
    return wb_add(wb_sum(wb_square(p->a)), wb_sum(wb_square(wb_cast(p->b, WB_F32))));
}

static void put(wb_array **slot, wb_dtype dtype, int64_t count) {
    wb_array *old = *slot;
    *slot = wb_keep(wb_cast(wb_add(wb_iota_make(WB_F32, 0, 1, &count), wb_number(1)), dtype));
    CHECK(*slot && wb_eval(*slot) == WB_OK);
    wb_free(old);
}

/* Another number of elements, with as many for each rank; then another type. */
static Pair *replaced(wb_rule rule, int zero) {
    Pair *p = wb_new(Pair);
    put(&p->a, WB_F32, 7), put(&p->b, WB_F32, 7);
    wb_optimiser *o = wb_setup(rule, &p->layer, .distributed = true, .zero = zero);
    for (int round = 0; round < 3; round++) {
        if (round == 1) put(&p->a, WB_F32, 8);
        if (round == 2) put(&p->b, WB_F64, 7);
        for (int i = 0; i < 3; i++) CHECK(wb_train_step(squares, &p->layer, NULL, NULL, o));
    }
    wb_free(o);
    return p;
}

static void replaces(void) {
    const setting rows[] = {{.name = "cut", .rule = wb_adam(.eta = 0.1)},
                            {.name = "whole", .rule = wb_lamb(.eta = 0.1)}};
    for (int i = 0; i < 2; i++) {
        wb_scope_open();
        Pair *whole = replaced(rows[i].rule, 0), *divided = replaced(rows[i].rule, 1);
        check_same(rows[i].name, &whole->layer, &divided->layer);
        wb_free(whole), wb_free(divided);
        CHECK(wb_scope_close() == WB_OK);
    }
}

static void new_arrays_begin_anew(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, replaces), 0);
}

/* ---- files ---- */

static int zero_of_run; /* and of which run the checkpoint is */
static const char *run_name;

static bool stops(const wb_train_event *event) {
    (void)event;
    return false;
}

/* Goes on, or begins; a path with a rule of whole arrays among others. */
static void train_some(void) {
    wb_scope_open();
    wb_seed(9);
    const int n = wb_total_workers();
    wb_layer *model = dense();
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true, .zero = zero_of_run,
                               .micro_batches = 4 / n, .paths = {{"layers.4.weight", wb_lamb()}});
    wb_loader *data = data_of(WB_F32, 12 / n);
    char name[64];
    CHECK(wb_train(loss, model, data, o, .epochs = 2, .checkpoint = path_of(run_name), .every = 1,
                   .on_epoch = stops) == WB_OK);
    (void)snprintf(name, sizeof name, "%s.npz", run_name);
    CHECK(wb_rank() != 0 || wb_save(path_of(name), model) == WB_OK);
    (void)snprintf(name, sizeof name, "%s.bson", run_name);
    if (zero_of_run || wb_rank() == 0) CHECK(wb_save_named(path_of(name), {"o", o}) == WB_OK);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

/* An epoch by some ranks, the next one by others: the same model and states as without. */
static void files_know_nothing_of_ranks(void **state) {
    (void)state;
    static const struct {
        const char *run_name;
        int ranks[2], zero[2];
    } rows[] = {{"plain", {1, 1}, {0, 0}},
                {"divided", {4, 2}, {1, 1}},
                {"then whole", {2, 1}, {1, 0}},
                {"then divided", {1, 4}, {0, 1}}};
    for (int i = 0; i < 4; i++) {
        run_name = rows[i].run_name;
        for (int k = 0; k < 2; k++) {
            zero_of_run = rows[i].zero[k];
            assert_int_equal(ranks_run(rows[i].ranks[k], train_some), 0);
        }
        if (i == 0) continue;
        char name[64];
        (void)snprintf(name, sizeof name, "%s.npz", run_name);
        assert_same_files(path_of("plain.npz"), path_of(name));
        (void)snprintf(name, sizeof name, "%s.bson", run_name);
        assert_same_files(path_of("plain.bson"), path_of(name));
    }
}

/* ---- mistakes ---- */

static void refuses(void **state) {
    (void)state;
    wb_scope_open();
    wb_layer *model = dense();
    assert_null(wb_setup(wb_adam(), model, .distributed = true, .zero = 2));
    assert_string_equal(wb_error_message(), "wb_setup: zero must be 0 or 1, got 2");
    wb_clear_error();
    assert_null(wb_setup(wb_adam(), model, .distributed = true, .send = WB_F64));
    assert_string_equal(wb_error_message(), "wb_setup: send must be bf16 or f32, got f64");
    wb_clear_error();
    assert_null(wb_setup(wb_adam(), model, .send = WB_BF16));
    assert_non_null(
        strstr(wb_error_message(), "wb_setup: send is the type in which ranks send gradients"));
    wb_clear_error();
    assert_null(wb_setup(wb_adam(), model, .zero = 1));
    assert_non_null(strstr(wb_error_message(), "needs .distributed = true"));
    wb_clear_error();
    wb_free(model);
    assert_int_equal(wb_scope_close(), WB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_every_rule),
        cmocka_unit_test(every_rule_is_that_of_one_process),
        cmocka_unit_test(states_are_divided),
        cmocka_unit_test(states_are_whole_for_who_asks),
        cmocka_unit_test(new_arrays_begin_anew),
        cmocka_unit_test(files_know_nothing_of_ranks),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
