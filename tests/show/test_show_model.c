/* src/show/show_model.c */
#include <string.h>

#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/show.h>

#include "support/numbers.h"
#include "support/scoped.h"

/* Elsewhere than on the CPU a model says where it is. */
static void take_place_off(char *text) {
    char place[80];
    snprintf(place, sizeof place, "# on %s\n", wb_device_name(wb_default_device()));
    char *at = strstr(text, "# on ");
    if (is_on_host()) return;
    assert_true(!at || strcmp(at, place) == 0);
    if (at) *at = 0;
}

static void assert_shown(void *object, const char *wanted) {
    char text[4096];
    assert_int_equal(wb_show_text(object, text, sizeof text), WB_OK);
    take_place_off(text);
    assert_string_equal(text, wanted);
}

static void a_model_says_where_it_is(void **state) {
    (void)state;
    char text[4096];
    wb_layer *model = wb_chain(wb_dense(2, 3), wb_dense(3, 4));
    const wb_device *device = wb_get_device("checked", 1);
    assert_int_equal(wb_move(device, model), WB_OK);
    assert_int_equal(wb_show_text(model, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "# on checked(1)\n"));
    assert_int_equal(wb_move(wb_cpu_device(), wb_get_layer(model, "layers.2")), WB_OK);
    assert_int_equal(wb_show_text(model, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "# on several devices\n"));
    wb_free(model);
    assert_int_equal(wb_device_sync(device), WB_OK);
}

static void the_guides_network(void **state) { /* D18, D20 */
    (void)state;
    wb_layer *model = wb_chain(wb_dense(1, 256, wb_tanh), wb_dense(256, 1));
    assert_int_equal(wb_parameter_count(model), 769);
    assert_shown(model, "Chain(\n"
                        "  Dense(1 => 256, tanh),                # 512 parameters\n"
                        "  Dense(256 => 1),                      # 257 parameters\n"
                        ")                   # Total: 4 arrays, 769 parameters, 3076 bytes.\n");
    wb_free(model);
}

static void a_long_chain(void **state) { /* D19 */
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3), wb_dense(3, 4), wb_dense(4, 5), wb_fn(wb_softmax));
    assert_shown(model, "Chain(\n"
                        "  Dense(2 => 3),                        # 9 parameters\n"
                        "  Dense(3 => 4),                        # 16 parameters\n"
                        "  Dense(4 => 5),                        # 25 parameters\n"
                        "  softmax,\n"
                        ")                   # Total: 6 arrays, 50 parameters, 200 bytes.\n");
    wb_free(model);
}

static void short_ones_have_no_total(void **state) { /* D19 */
    (void)state;
    wb_layer *chain = wb_chain(wb_dense(2, 3)), *dense = wb_dense(2, 3);
    assert_shown(chain, "Chain(\n  Dense(2 => 3),                        # 9 parameters\n)\n");
    assert_shown(dense, "Dense(2 => 3)       # 9 parameters\n");
    wb_free(chain), wb_free(dense);
}

static wb_array *mine(wb_array *x) { return wb_mul(x, wb_sigmoid(x)); }
static wb_array *steep(wb_array *x) { return wb_elu_with(x, 2); }

static void assert_layer(wb_layer *layer, const char *wanted) {
    assert_shown(layer, wanted);
    wb_free(layer);
}

static void layers_name_their_settings(void **state) {
    (void)state;
    assert_layer(wb_dense(5, 2, wb_tanh, .bias = false),
                 "Dense(5 => 2, tanh; bias=false)  # 10 parameters\n");
    assert_layer(wb_conv({3, 3}, 3, 16, wb_relu, .pad = {1, 1}, .stride = {2, 2}),
                 "Conv((3, 3), 3 => 16, relu, pad=1, stride=2)  # 448 parameters\n");
    assert_layer(wb_conv({3}, 4, 8, .pad_more = {1}, .groups = 2, .dilation = {2}),
                 "Conv((3,), 4 => 8, pad=(0, 1), dilation=2, groups=2)  # 56 parameters\n");
    assert_layer(wb_cross_cor({2, 2}, 1, 1, wb_gelu),
                 "CrossCor((2, 2), 1 => 1, gelu)  # 5 parameters\n");
    assert_layer(wb_maxpool({2, 2}), "MaxPool((2, 2))\n");
    assert_layer(wb_meanpool({2, 2}, .stride = {1, 1}, .pad = {1, 1}),
                 "MeanPool((2, 2), pad=1, stride=1)\n");
    assert_layer(wb_dropout(.p = 0.1f), "Dropout(0.1)\n");
    assert_layer(wb_dropout(.p = 0.1f, .dims = WB_DIM(1)), "Dropout(0.1, dims=2)\n");
    assert_layer(wb_dropout(.p = 0.1f, .dims = WB_DIM(0) | WB_DIM(2)),
                 "Dropout(0.1, dims=(1, 3))\n");
    assert_layer(wb_flatten(), "flatten\n");
    assert_layer(wb_sinusoidal_positions(), "SinusoidalPositions()\n");
    wb_layer *norm = wb_batchnorm(64, wb_relu, .affine = false);
    assert_int_equal(wb_train_mode(norm), WB_OK);
    assert_layer(norm, "BatchNorm(64, relu, affine=false, active=true)  # 0 parameters, plus 128 "
                       "non-trainable\n");
    assert_layer(wb_fn(wb_logsoftmax), "logsoftmax\n");
    assert_layer(wb_fn(mine), "function\n");
    assert_layer(wb_fn(steep), "function\n");
    assert_layer(wb_fn_named("swish2", mine), "swish2\n");
    assert_layer(wb_dense(1, 1, .init = wb_zeros_init),
                 "Dense(1 => 1)       # 2 parameters  (all zero)\n");
}

typedef struct ActorCritic {
    wb_layer layer;
    wb_layer *actor;
    wb_array *critic, *mean;
} ActorCritic;
WB_FUNCTOR(ActorCritic, NULL, WB_CHILD_FIELD(ActorCritic, actor),
           WB_ARRAY_FIELD(ActorCritic, critic), WB_STATE_FIELD(ActorCritic, mean));

static void structs_name_their_fields(void **state) {
    (void)state;
    ActorCritic *m = wb_new(ActorCritic);
    m->actor = wb_chain_named({"first", wb_dense(40, 50)}, {"last", wb_dense(50, 2)});
    m->critic = wb_keep(wb_ones(WB_F32, 2));
    m->mean = wb_keep(wb_ones(WB_F32, 64));
    assert_shown(m, "ActorCritic(\n"
                    "  actor = Chain(\n"
                    "    first = Dense(40 => 50),            # 2_050 parameters\n"
                    "    last = Dense(50 => 2),              # 102 parameters\n"
                    "  ),\n"
                    "  critic = f32 (2),                     # 2 parameters\n"
                    "  mean = f32 (64),                      # 0 parameters, plus 64\n"
                    ")                   # Total: 5 trainable arrays, 2_154 parameters,\n"
                    "                    # plus 1 non-trainable, 64 parameters, 8872 bytes.\n");
    wb_free(m);
}

static void optimisers(void **state) {
    (void)state;
    wb_array *w = wb_vector(1, 2);
    wb_layer *model = wb_tree(w, wb_dense(1, 1), w);
    wb_optimiser *o = wb_setup(wb_adam(), model),
                 *p = wb_setup(wb_momentum(.eta = 0.1), model, .clip_total_norm = 1);
    assert_shown(o, "Adam(eta=0.001, beta=(0.9, 0.999), epsilon=1e-08), 0 steps (\n"
                    "  1 = Leaf(m, v: f32 (2)),\n"
                    "  2.weight = Leaf(m, v: f32 (1, 1)),\n"
                    "  2.bias = Leaf(m, v: f32 (1)),\n"
                    "  3 = tied,\n"
                    ")\n");
    char text[46];
    assert_int_equal(wb_show_text(p, text, sizeof text), WB_OK);
    assert_string_equal(text, "Momentum(eta=0.1, rho=0.9), clip_total_norm=1");
    wb_free(o), wb_free(p), wb_free(model);
}

static void arrays_and_nothing(void **state) {
    (void)state;
    char text[200];
    assert_int_equal(wb_show_text(wb_vector(1, 2), text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "f32"));
    assert_int_equal(wb_show_text(NULL, text, sizeof text), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_show: the object is NULL");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(the_guides_network),        TEST(a_long_chain),
        TEST(short_ones_have_no_total),  TEST(layers_name_their_settings),
        TEST(structs_name_their_fields), TEST(optimisers),
        TEST(arrays_and_nothing),        TEST(a_model_says_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
