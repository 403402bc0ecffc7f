/* src/layers/move.c, src/optimise/move.c: models, structs and optimisers between devices. M4, M5:
 * rows of the acceptance list. */
#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/show.h>

#include "array/array.h"
#include "base/memory.h"

#include "support/places.h"

/* ---- models ---- */

static wb_layer *small_model(void) {
    return wb_chain(wb_dense(4, 8, wb_tanh), wb_dropout(.p = 0.5), wb_dense(8, 2));
}

/* y = model(x), wherever the model is, as numbers. */
static void predict(wb_layer *model, wb_array *x, float *y, int64_t count) {
    wb_array *p = wb_apply(model, put(wb_device_of(model), x));
    if (!p || wb_read_f32(p, y, count) != WB_OK) fail_msg("%s", wb_error_message());
}

static void assert_close(const float *a, const float *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i]))))
            fail_msg("number %lld: %.9g and %.9g", (long long)i, (double)a[i], (double)b[i]);
}

static void a_model_goes_round(void **state) {
    (void)state;
    wb_layer *model = small_model();
    wb_array *x = wb_uniform(WB_F32, 4, 5);
    assert_int_equal(wb_move(cpu, model), WB_OK);
    float wanted[10], got[10];
    predict(model, x, wanted, 10);
    wb_array *weight = wb_get(model, "layers.1.weight");
    wb_layer *there = wb_to(first, model), *further = wb_to(second, there), *back = wb_cpu(further);
    wb_layer *const all[] = {model, there, further, back};
    const wb_device *const devices[] = {cpu, first, second, cpu};
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(wb_device_of(all[i]), devices[i]);
        assert_int_equal(wb_parameter_count(all[i]), 4 * 8 + 8 + 8 * 2 + 2);
        predict(all[i], x, got, 10);
        assert_close(got, wanted, 10);
    }
    assert_ptr_equal(wb_get(model, "layers.1.weight"), weight); /* the given one stays */
    wb_free(model), wb_free(there), wb_free(further), wb_free(back);
}

static void a_model_that_is_there_is_the_same(void **state) { /* M3 */
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        wb_layer *model = wb_dense(3, 2);
        assert_int_equal(wb_move(places[i], model), WB_OK);
        wb_array *weight = wb_get(model, "weight");
        wb_layer *same = wb_to(places[i], model);
        assert_ptr_equal(same, model);
        wb_free(model); /* one of two references */
        assert_ptr_equal(wb_get(same, "weight"), weight);
        assert_int_equal(wb_move(places[i], same), WB_OK);
        assert_ptr_equal(wb_get(same, "weight"), weight);
        wb_free(same);
    }
    wb_layer *empty = wb_chain(wb_fn(wb_relu)), *same = wb_to(first, empty);
    assert_ptr_equal(same, empty);
    wb_free(same), wb_free(empty);
}

static void types_follow_the_policy(void **state) { /* M2, M14 */
    (void)state;
    wb_layer *model = wb_tree_named({"wide", put(cpu, wb_from(WB_F64, ((double[]){0.5, 1}), 2))},
                                    {"half", put(cpu, wb_ones(WB_F16, 2))},
                                    {"index", put(cpu, wb_ones(WB_I64, 2))},
                                    {"mask", put(cpu, wb_ones(WB_BOOL, 2))});
    const struct {
        wb_eltype policy;
        wb_dtype wide, half;
    } rows[] = {
        {WB_ELTYPE_DEFAULT, WB_F32, WB_F16},
        {WB_ELTYPE_F32, WB_F32, WB_F32},
        {WB_ELTYPE_BF16, WB_BF16, WB_BF16},
    };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) { /* there; and here, where the default changes nothing */
            wb_layer *moved = wb_to(k ? cpu : first, model, .eltype = rows[i].policy);
            const bool same = k == 1 && rows[i].policy == WB_ELTYPE_DEFAULT;
            assert_int_equal(moved == model, same);
            if (!same) assert_int_equal(wb_dtype_of(wb_get(moved, "wide")), rows[i].wide);
            assert_int_equal(wb_dtype_of(wb_get(moved, "half")), rows[i].half);
            assert_int_equal(wb_dtype_of(wb_get(moved, "index")), WB_I64);
            assert_int_equal(wb_dtype_of(wb_get(moved, "mask")), WB_BOOL);
            assert_values(wb_get(moved, "wide"), 0, 0.5, 1);
            wb_free(moved);
        }
    wb_free(model);
}

static void ties_are_kept(void **state) { /* M4 */
    (void)state;
    wb_array *x = put(cpu, wb_from(WB_F32, ((float[]){1, 2, 3, 4, 5, 6}), 2, 3));
    wb_layer *dense = wb_dense(2, 2);
    wb_layer *model =
        wb_tree(x, wb_transpose(x), wb_tree(x), wb_chain(dense, wb_keep_layer(dense)));
    assert_int_equal(wb_move(cpu, model), WB_OK);
    const int64_t count = wb_parameter_count(model);
    wb_layer *moved = wb_to(first, model);
    assert_int_equal(wb_move(second, model), WB_OK);
    wb_layer *const both[] = {moved, model};
    for (int i = 0; i < 2; i++) {
        wb_array *one = wb_get(both[i], "1"), *turned = wb_get(both[i], "2");
        assert_ptr_equal(wb_get(both[i], "3.1"), one);
        assert_ptr_equal(turned->buffer, one->buffer);
        assert_sizes(turned, 3, 2);
        assert_values(turned, 0, 1, 3, 5, 2, 4, 6);
        assert_ptr_equal(wb_get_layer(both[i], "4.layers.1"), wb_get_layer(both[i], "4.layers.2"));
        assert_int_equal(wb_parameter_count(both[i]), count);
    }
    wb_free(moved), wb_free(model);
}

static void a_slot_takes_arrays_of_its_device(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 2);
    assert_int_equal(wb_move(first, model), WB_OK);
    wb_array *weight = wb_get(model, "weight");
    assert_int_equal(wb_set(model, "weight", put(second, wb_vector(1, 2))), WB_ERROR_SHAPE);
    wb_clear_error();
    assert_int_equal(wb_set(model, "bias", put(second, wb_vector(1, 2))), WB_ERROR_ARGUMENT);
    char wanted[160];
    (void)snprintf(wanted, sizeof wanted, "wb_set: bias is on %s, the new array on %s; wb_to",
                   wb_device_name(first), wb_device_name(second));
    assert_error(WB_ERROR_ARGUMENT, wanted);
    assert_ptr_equal(wb_get(model, "weight"), weight);
    assert_int_equal(wb_set(model, "bias", put(first, wb_vector(3, 4))), WB_OK);
    assert_values(wb_get(model, "bias"), 0, 3, 4);
    wb_array *numbers =
        wb_add_number(wb_iota(WB_F32, 0, 2), 5); /* at home anywhere, also when they were read */
    assert_int_equal(wb_set(model, "bias", numbers), WB_OK);
    assert_values(numbers, 0, 5, 6);
    assert_ptr_equal(wb_device_of(model), first);
    assert_values(wb_get(model, "bias"), 0, 5, 6);
    assert_int_equal(wb_set(model, "bias", numbers), WB_OK);
    assert_ptr_equal(wb_device_of(model), first);
    wb_free(model);
}

/* ---- structs of the user's own ---- */

typedef struct Agent {
    wb_layer layer;
    wb_layer *actor, *critic, *memory, *rival;
    wb_array *scale, *mean, *absent, *table;
    const char *name;
    wb_array *(*score)(wb_array *x);
    int64_t range[3];
    double discount;
} Agent;
WB_FUNCTOR(Agent, NULL, WB_CHILD_FIELD(Agent, actor), WB_FROZEN_FIELD(Agent, critic),
           WB_CHILD_FIELD(Agent, memory), WB_FIXED_CHILD_FIELD(Agent, rival),
           WB_ARRAY_FIELD(Agent, scale), WB_STATE_FIELD(Agent, mean), WB_ARRAY_FIELD(Agent, absent),
           WB_FIXED_FIELD(Agent, table), WB_VALUE_FIELD(Agent, name));

static Agent *new_agent(void) {
    Agent *a = wb_new(Agent);
    a->actor = wb_chain(wb_dense(2, 3, wb_relu), wb_dense(3, 1));
    a->critic = wb_dense(2, 1);
    a->memory = wb_tree_named({"seen", wb_vector(1, 2)}, {"inner", wb_tree(wb_vector(3))});
    a->rival = wb_dense(1, 1);
    a->scale = wb_keep(wb_vector(1, 2));
    a->mean = wb_keep(wb_vector(3, 4));
    a->table = wb_keep(put(cpu, wb_vector(5, 6)));
    a->name = "ada", a->score = wb_sum, a->discount = 0.5;
    a->range[0] = 1, a->range[1] = 2, a->range[2] = 10;
    return a;
}

static void assert_agent(Agent *a, const wb_device *device) {
    const char *paths[] = {"actor.layers.2.weight", "critic.bias", "memory.seen",
                           "memory.inner.1",        "scale",       "mean"};
    for (int i = 0; i < 6; i++) assert_ptr_equal(wb_device_of(wb_get(&a->layer, paths[i])), device);
    assert_null(a->absent);
    assert_ptr_equal(wb_device_of(a->table), cpu); /* belongs to it, but stays */
    assert_values(a->mean, 0, 3, 4);
    assert_values(wb_get(&a->layer, "memory.inner.1"), 0, 3);
    assert_string_equal(a->name, "ada");
    assert_true(a->score == wb_sum && a->discount == 0.5 && a->range[2] == 10);
}

static void of_a_struct_the_arrays_are_moved(void **state) { /* M5 */
    (void)state;
    Agent *a = new_agent();
    wb_layer *rival = a->rival;
    assert_int_equal(wb_move(cpu, rival), WB_OK);
    assert_int_equal(wb_move(cpu, a), WB_OK);
    Agent *b = wb_to(first, a), *c = wb_to(second, b);
    assert_agent(a, cpu), assert_agent(b, first), assert_agent(c, second);
    assert_ptr_equal(b->rival, rival);
    assert_ptr_equal(wb_device_of(rival), cpu);
    assert_int_equal(wb_move(cpu, c), WB_OK);
    assert_agent(c, cpu);
    wb_free(a), wb_free(b), wb_free(c);
}

/* ---- where they are ---- */

static void models_say_where_they_are(void **state) {
    (void)state;
    wb_layer *model = wb_tree(put(first, wb_vector(1)), wb_tree(put(second, wb_vector(2))));
    assert_null(wb_device_of(model));
    char text[512];
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_ARGUMENT);
    char wanted[256];
    (void)snprintf(wanted, sizeof wanted, "1 on %s, 2.1 on %s", wb_device_name(first),
                   wb_device_name(second));
    if (!strstr(text, wanted)) fail_msg("\"%s\" does not say \"%s\"", text, wanted);
    assert_int_equal(wb_show_text(model, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "# on several devices\n"));
    assert_int_equal(wb_move(second, model), WB_OK); /* brings all together */
    assert_ptr_equal(wb_device_of(model), second);
    wb_layer *nothing = wb_tree(), *function = wb_chain(wb_fn(wb_relu));
    assert_null(wb_device_of(nothing));
    assert_null(wb_device_of(function));
    assert_false(wb_failed());
    wb_free(model), wb_free(nothing), wb_free(function);
}

static void models_are_printed_where_they_are(void **state) { /* M11 */
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3), wb_dense(3, 2));
    char wanted[1024], text[1024];
    assert_int_equal(wb_move(cpu, model), WB_OK);
    assert_int_equal(wb_show_text(model, wanted, sizeof wanted), WB_OK);
    const size_t length = strlen(wanted);
    for (int i = 0; i < PLACES; i++) {
        assert_int_equal(wb_move(places[i], model), WB_OK);
        if (places[i] != cpu)
            (void)snprintf(wanted + length, sizeof wanted - length, "# on %s\n",
                           wb_device_name(places[i]));
        assert_int_equal(wb_show_text(model, text, sizeof text), WB_OK);
        assert_string_equal(text, wanted);
        assert_ptr_equal(wb_device_of(model), places[i]);
    }
    wb_free(model);
}

/* ---- optimisers ---- */

static wb_array *along(wb_layer *model, const char *path) {
    wb_array *x = wb_get(model, path);
    return wb_sum(wb_square(wb_sub(x, wb_number(1))));
}

static wb_status step(wb_optimiser *o, wb_layer *model) {
    wb_scope_open();
    wb_status status = wb_update(o, model, wb_gradient(along(model, "1"), model));
    const wb_status closed = wb_scope_close();
    return status == WB_OK ? closed : status;
}

static wb_layer *three(void) { return wb_tree(put(cpu, wb_vector(3, -1, 0.5f))); }

static wb_rule rule_of(int kind) {
    return kind == 0   ? wb_descent(.eta = 0.1)
           : kind == 1 ? wb_momentum(.eta = 0.1)
           : kind == 2 ? wb_adam(.eta = 0.1)
                       : wb_adamw(.eta = 0.1, .lambda = 0.1);
}

/* A training that wanders over devices is the one that stays at home. */
static void an_optimiser_is_moved_with_its_model(void **state) { /* M4 */
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        wb_layer *home = three(), *model = three();
        wb_optimiser *at_home = wb_setup(rule_of(kind), home), *o = wb_setup(rule_of(kind), model);
        for (int i = 0; i < 12; i++) {
            const wb_device *device = places[i / 2 % PLACES];
            assert_int_equal(wb_move(device, o), WB_OK);
            assert_ptr_equal(wb_device_of(o), device);
            assert_ptr_equal(wb_device_of(model), device);
            assert_int_equal(step(o, model), WB_OK);
            assert_int_equal(step(at_home, home), WB_OK);
            float wanted[3], got[3];
            assert_int_equal(wb_read_f32(wb_get(home, "1"), wanted, 3), WB_OK);
            assert_int_equal(wb_read_f32(wb_get(model, "1"), got, 3), WB_OK);
            assert_close(got, wanted, 3);
        }
        assert_int_equal(wb_step_count(o), 12);
        wb_free(at_home), wb_free(o), wb_free(home), wb_free(model);
    }
}

static void an_optimiser_left_behind_says_so(void **state) {
    (void)state;
    wb_layer *model = three();
    wb_optimiser *o = wb_setup(wb_momentum(), model);
    assert_int_equal(step(o, model), WB_OK);
    assert_int_equal(wb_move(first, model), WB_OK);
    float before[3], after[3];
    assert_int_equal(wb_read_f32(wb_get(model, "1"), before, 3), WB_OK);
    assert_int_equal(step(o, model), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_move(device, optimiser) moves both");
    assert_null(wb_device_of(o));
    assert_error(WB_ERROR_ARGUMENT, "its optimiser's state on CPU");
    assert_int_equal(wb_read_f32(wb_get(model, "1"), after, 3), WB_OK);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(wb_move(first, o), WB_OK);
    assert_int_equal(step(o, model), WB_OK);
    assert_int_equal(wb_step_count(o), 2);
    assert_null(wb_to(first, o));
    assert_error(WB_ERROR_ARGUMENT, "wb_to: optimiser is neither array nor model; wb_move");
    wb_free(o), wb_free(model);
}

static void ties_stay_one_parameter(void **state) { /* M4 */
    (void)state;
    wb_array *x = put(cpu, wb_from(WB_F32, ((float[]){1, 2, 3, 4, 5, 6}), 2, 3));
    wb_layer *model = wb_tree(x, wb_transpose(x), x);
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 1, .rho = 0.5), model);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_move(places[(i + 1) % PLACES], o), WB_OK);
        wb_scope_open();
        wb_array *l = wb_add(wb_sum(wb_get(model, "1")), /* a slope of 1 + 2 at each place */
                             wb_mul_number(wb_sum(wb_get(model, "2")), 2));
        assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
        assert_int_equal(wb_scope_close(), WB_OK);
        wb_array *one = wb_get(model, "1"), *turned = wb_get(model, "2");
        assert_ptr_equal(one, wb_get(model, "3"));
        assert_ptr_equal(one->buffer, turned->buffer);
        const double down[] = {3, 3 + 4.5, 3 + 4.5 + 5.25}, d = down[i];
        assert_values(turned, 1e-6, 1 - d, 3 - d, 5 - d, 2 - d, 4 - d, 6 - d);
    }
    wb_free(o), wb_free(model);
}

static void state_takes_the_type_of_the_policy(void **state) {
    (void)state;
    wb_layer *model = wb_tree(put(cpu, wb_from(WB_F64, ((double[]){1, 2, 3}), 3)));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.5), model);
    assert_int_equal(step(o, model), WB_OK);
    assert_int_equal(wb_move(first, o), WB_OK);
    assert_int_equal(wb_dtype_of(wb_get(model, "1")), WB_F32);
    assert_int_equal(step(o, model), WB_OK);
    assert_int_equal(wb_move(first, o, .eltype = WB_ELTYPE_F16), WB_OK);
    assert_int_equal(wb_dtype_of(wb_get(model, "1")), WB_F16);
    assert_int_equal(step(o, model), WB_OK);
    assert_true(fabs(wb_item(wb_slice(wb_get(model, "1"), 0, 2, 3, 1)) - 1.5) < 0.05);
    wb_free(o), wb_free(model);
}

/* A loss may take its data along: the model is there, the data here. */
static wb_array *regression(wb_layer *model, const wb_batch *batch, void *user) {
    const wb_device *device = user;
    return wb_mse(wb_apply(model, wb_to(device, batch->x)), wb_to(device, batch->y));
}

static void a_loss_may_move_its_batch(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 1, .init = wb_zeros_init);
    assert_int_equal(wb_move(first, model), WB_OK);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.5), model);
    wb_array *x = put(cpu, wb_sub(wb_uniform(WB_F32, 3, 32), wb_number(0.5)));
    const wb_batch batch = {.x = x, .y = wb_sum_dims(x, 0)};
    union {
        const wb_device *from;
        void *to;
    } device = {.from = first};
    double loss = 1;
    for (int i = 0; i < 60; i++) {
        wb_scope_open();
        wb_gradients *g;
        wb_array *l = wb_withgradient(regression, model, &batch, device.to, &g);
        assert_int_equal(wb_update(o, model, g), WB_OK);
        loss = wb_item(l);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_true(loss < 1e-3);
    assert_ptr_equal(wb_device_of(model), first);
    wb_free(o), wb_free(model);
}

/* ---- failure ---- */

/* Moves that fail half way leave everything as it was: the same arrays, with the same numbers. */
typedef enum what { TO_MODEL, MOVE_MODEL, MOVE_OPTIMISER } what;

static wb_status move_with(what w, wb_layer *model, wb_optimiser *o) {
    if (w == MOVE_MODEL) return wb_move(first, model);
    if (w == MOVE_OPTIMISER) return wb_move(first, o);
    wb_layer *moved = wb_to(first, model);
    const wb_status status = moved ? WB_OK : wb_error_status();
    wb_free(moved);
    return status;
}

static void a_move_without_memory_changes_nothing(void **state) {
    (void)state;
    for (int w = TO_MODEL; w <= MOVE_OPTIMISER; w++) {
        wb_array *x = put(cpu, wb_vector(1, 2, 3, 4));
        wb_layer *model = wb_tree(x, wb_reshape(x, 2, 2), put(cpu, wb_vector(5, 6)), wb_tree(x));
        wb_optimiser *o = wb_setup(wb_momentum(), model);
        bool done = false;
        for (int64_t n = 1; !done; n++) {
            assert_true(n < 1000);
            wb_scope_open();
            wb_array *before[3];
            const char *const paths[] = {"1", "2", "3"};
            for (int i = 0; i < 3; i++) before[i] = wb_get(model, paths[i]);
            for (int i = 0; i < PLACES; i++) wb_memory_reclaim(places[i]);
            (void)wb_fail_allocation(n);
            const wb_status status = move_with((what)w, model, o);
            (void)wb_fail_allocation(0);
            done = status == WB_OK;
            if (!done) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
            for (int i = 0; i < 3 && !done; i++)
                assert_ptr_equal(wb_get(model, paths[i]), before[i]);
            assert_ptr_equal(wb_device_of(model), done && w != TO_MODEL ? first : cpu);
            if (!done) assert_ptr_equal(wb_device_of(o), cpu);
            assert_values(wb_get(model, "4.1"), 0, 1, 2, 3, 4);
            assert_values(wb_get(model, "3"), 0, 5, 6);
            assert_int_equal(wb_scope_close(), WB_OK);
            assert_int_equal(sync_places(), WB_OK);
        }
        wb_free(o), wb_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        MOVES(a_model_goes_round),
        MOVES(a_model_that_is_there_is_the_same),
        MOVES(types_follow_the_policy),
        MOVES(ties_are_kept),
        MOVES(a_slot_takes_arrays_of_its_device),
        MOVES(of_a_struct_the_arrays_are_moved),
        MOVES(models_say_where_they_are),
        MOVES(models_are_printed_where_they_are),
        MOVES(an_optimiser_is_moved_with_its_model),
        MOVES(an_optimiser_left_behind_says_so),
        MOVES(ties_stay_one_parameter),
        MOVES(state_takes_the_type_of_the_policy),
        MOVES(a_loss_may_move_its_batch),
        MOVES(a_move_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests_name("device/test_move_model", tests, find_places, NULL);
}
