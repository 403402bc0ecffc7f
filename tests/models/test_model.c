/* Models and parameters that Flux wrote: src/models/build.c, catalogue.c, flux.c. The files of all
 * its versions are made by hand. */
#include <weber/state.h>

#include "layers/layer.h"
#include "models/flux_structs.h"
#include "models/structure.h"
#include "support/support.h"

static const char fixtures[] = WB_TESTS_DIR "/formats/fixtures/bson";
/* ---- files that Julia wrote ---- */

static const char *fixture(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", fixtures, name);
    return path;
}

/* The README of the fixtures: logits by another framework, kernels flipped as Flux does. */
static void a_cnn_of_flux_gives_its_logits(void **state) {
    (void)state;
    static const double logits[20] = {-8.386890, -10.821486, -8.183759,  -2.621297, -20.367081,
                                      -4.207835, -6.955294,  -12.214521, -1.001847, -17.396008,
                                      -8.608419, -10.642031, -7.698138,  -3.221952, -19.524084,
                                      -4.585126, -7.318094,  -12.585784, -0.841831, -18.388811};
    float pixels[28 * 28 * 2];
    for (int i = 0; i < 28 * 28 * 2; i++) pixels[i] = (float)(37 * i % 101) / 101;
    wb_layer *model = wb_load_model(fixture("flux_cnn_mnist.bson"), "model");
    assert_non_null(model);
    wb_array *y = wb_apply(model, wb_from(WB_F32, pixels, 28, 28, 1, 2));
    double got[20];
    assert_int_equal(wb_read_f64(y, got, 20), WB_OK);
    for (int i = 0; i < 20; i++) assert_true(fabs(got[i] - logits[i]) < 1e-4);
    assert_structure(model, "Chain(Conv((3, 3), 1 => 16, relu, pad=1), MaxPool((2, 2)), "
                            "Conv((3, 3), 16 => 32, relu, pad=1), MaxPool((2, 2)), "
                            "Conv((3, 3), 32 => 32, relu, pad=1), MaxPool((2, 2)), flatten, "
                            "Dense(288 => 10))");
    wb_free(model);
}

static void the_model_of_the_docs_is_built(void **state) {
    (void)state;
    wb_layer *model = wb_load_model(fixture("flux_docs_mymodel.bson"), NULL);
    assert_non_null(model);
    assert_structure(model, "Chain(Dense(10 => 5, relu), Dense(5 => 2), softmax)");
    wb_array *y = wb_apply(model, wb_ones(WB_F32, 10, 3));
    assert_true(wb_approx(wb_sum_dims(y, 0), wb_ones(WB_F32, 1, 3), 1e-6, 0, NULL, 0));
    wb_free(model);
}

static void arrays_of_a_flux_model_load_into_a_given_one(void **state) {
    (void)state;
    wb_layer *built = wb_load_model(fixture("flux_docs_mymodel.bson"), NULL);
    wb_layer *given = wb_chain(wb_dense(10, 5), wb_dense(5, 2));
    assert_int_equal(wb_load(fixture("flux_docs_mymodel.bson"), given), WB_OK);
    assert_same_bits(wb_get(built, "layers.2.weight"), wb_get(given, "layers.2.weight"), "weight");
    assert_same_bits(wb_get(built, "layers.1.bias"), wb_get(given, "layers.1.bias"), "bias");
    wb_free(built), wb_free(given);
}

static void a_state_of_flux_loads_by_name(void **state) {
    (void)state;
    const char *path = fixture("flux_docs_checkpoint.bson");
    wb_layer *model = wb_chain(wb_dense(1, 2, wb_tanh), wb_dense(2, 1, .dtype = WB_F64));
    wb_layer *wide = wb_chain(wb_dense(1, 3), wb_dense(3, 1));
    assert_int_equal(wb_load(path, model, .key = "model_state"), WB_OK);
    wb_file *file = wb_open(path);
    wb_array *w =
        wb_record_array(file, wb_record_get(wb_file_root(file), "model_state.layers.2.weight"));
    assert_same_bits(wb_cpu(wb_get(model, "layers.2.weight")), w, "weight");
    assert_int_equal(wb_load(path, wide, .key = "model_state"), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "layers.1.weight is (2, 1) in the file, (3, 1) in the model");
    assert_null(wb_load_model(path, "model_state"));
    assert_error(WB_ERROR_UNSUPPORTED, "a model needs a structure");
    wb_free(file), wb_free(model), wb_free(wide);
}

/* ---- Flux's structs of all versions, by hand ---- */

#define TRACKED(x)                                                                                 \
    STRUCT("Tracker", "TrackedArray",                                                              \
           STRUCT("Tracker", "Tracked", "1, null, true, null") ", " x ", " W)

#define FAULT(name, bson, error)                                                                   \
    { name, bson, error }

static const flux_row flux_rows[] = {
    FLUX("a Dense alone", MODEL(DENSE(W, B, RELU)), "Dense(1 => 2, relu)", "weight"),
    FLUX(
        "names of types may begin with Main",
        MODEL(
            "{tag: 'struct', type: {tag: 'datatype', params: [], name: ['Main', 'Flux', 'Dense']}, "
            "data: [" W ", " B
            ", {tag: 'struct', type: {tag: 'datatype', params: [], name: ['Main', "
            "'NNlib', '#σ']}, data: []}]}"),
        "Dense(1 => 2, sigmoid)", "weight"),
    FLUX("a chain of a tuple", MODEL(CHAIN(DENSE(W, B, IDENTITY) ", " RELU)),
         "Chain(Dense(1 => 2), relu)", "layers.1.weight"),
    FLUX("a chain of a vector", MODEL(STRUCT("Flux", "Chain", "[" DENSE(W, B, IDENTITY) "]")),
         "Chain(Dense(1 => 2))", "layers.1.weight"),
    FLUX("a chain with names",
         MODEL(STRUCT("Flux", "Chain", NAMED("enc", "dec", DENSE(W, B, IDENTITY) ", " RELU))),
         "Chain(enc = Dense(1 => 2), dec = relu)", "layers.enc.weight"),
    FLUX("a chain in a chain", MODEL(CHAIN(CHAIN(DENSE(W, B, IDENTITY)) ", " CHAIN(""))),
         "Chain(Chain(Dense(1 => 2)), Chain())", "layers.1.layers.1.weight"),
    FLUX("bias = false", MODEL(DENSE(W, "false", IDENTITY)), "Dense(1 => 2; bias=false)", "weight"),
    FLUX("Flux.Zeros for a bias", MODEL(DENSE(W, STRUCT("Flux", "Zeros", ""), IDENTITY)),
         "Dense(1 => 2; bias=false)", "weight"),
    FLUX("tracked arrays of Flux 0.8", MODEL(DENSE(TRACKED(W), TRACKED(B), IDENTITY)),
         "Dense(1 => 2)", "weight"),
    FLUX("parameters in a Param", MODEL(DENSE(STRUCT("Knet", "Param", W ", null"), B, IDENTITY)),
         "Dense(1 => 2)", "weight"),
    FLUX("a Conv of Flux 0.8, without groups",
         MODEL(STRUCT("Flux", "Conv",
                      RELU ", " TRACKED(KERNEL) ", " B1 ", " TUPLE("1, 2") ", " TUPLE(
                          "0, 1") ", " TUPLE("1, 1"))),
         "Conv((2, 1), 1 => 1, relu, pad=(0, 1), stride=(1, 2))", "weight"),
    FLUX("a Conv with all there is",
         MODEL(STRUCT("Flux", "Conv",
                      IDENTITY ", " ARRAY("Float32", "1, 1, 2", ONE " " TWO) ", false, " TUPLE(
                          "3") ", " TUPLE("1, 2") ", " TUPLE("2") ", 2")),
         "Conv((1,), 2 => 2, pad=(1, 2), stride=3, dilation=2, groups=2, bias=false)", "weight"),
    FLUX("a DepthwiseConv of Flux 0.7 to 0.12, which is a Conv",
         MODEL(STRUCT("Flux", "DepthwiseConv",
                      RELU ", " ARRAY("Float32", "1, 1, 2",
                                      ONE " " TWO) ", " B ", " TUPLE("1") ", " TUPLE("0"))),
         "Conv((1,), 2 => 2, relu, groups=2)", "weight"),
    FLUX("a CrossCor",
         MODEL(STRUCT("Flux", "CrossCor",
                      FUNCTION("Base", "tanh") ", " KERNEL ", " B1 ", " TUPLE("1, 1") ", " TUPLE(
                          "0, 0, 0, 0") ", " TUPLE("1, 1"))),
         "CrossCor((2, 1), 1 => 1, tanh)", "weight"),
    FLUX("pools",
         MODEL(CHAIN(STRUCT(
             "Flux", "MaxPool",
             TUPLE("2, 2") ", " TUPLE("0, 0, 0, 0") ", " TUPLE(
                 "2, 2")) ", " STRUCT("Flux", "MeanPool",
                                      TUPLE("3, 2") ", " TUPLE("1, 1") ", " TUPLE(
                                          "1, 1")) ", " STRUCT("Flux", "MaxPool",
                                                               TUPLE("3,") ", " TUPLE(
                                                                   "1, 0") ", " TUPLE("3,")))),
         "Chain(MaxPool((2, 2)), MeanPool((3, 2), pad=1, stride=1), MaxPool((3,), pad=(1, 0)))",
         NULL),
    FLUX("a Dropout of Flux 0.8", MODEL(STRUCT("Flux", "Dropout", "0.25, true")), "Dropout(0.25)",
         NULL),
    FLUX("a Dropout of Flux 0.10",
         MODEL(STRUCT("Flux", "Dropout", "0.25, " STRUCT("Base", "Colon", "") ", null")),
         "Dropout(0.25)", NULL),
    FLUX(
        "a Dropout of Flux 0.14 with dims",
        MODEL(STRUCT("Flux", "Dropout",
                     F32_TENTH ", " TUPLE("1, 3") ", null, " STRUCT("Random", "TaskLocalRNG", ""))),
        "Dropout(0.1f0, dims=(1, 3))", NULL),
    FLUX("a BatchNorm of Flux 0.8",
         MODEL(STRUCT("Flux", "BatchNorm",
                      RELU ", " B ", " W1 ", " B ", " B ", " F32_TENTH ", " F32_TENTH ", true")),
         "BatchNorm(2, relu, eps=0.1f0)", "γ"),
    FLUX("a BatchNorm of Flux 0.14",
         MODEL(STRUCT("Flux", "BatchNorm",
                      IDENTITY ", " B ", " B ", " W1 ", " B ", 1.0e-5, " F32_TENTH
                               ", true, true, null, 2")),
         "BatchNorm(2)", "μ"),
    FLUX("a BatchNorm without arrays",
         MODEL(STRUCT("Flux", "BatchNorm",
                      IDENTITY ", null, null, null, null, 1.0e-5, 0.25, false, false, null, 7")),
         "BatchNorm(7, affine=false, track_stats=false, momentum=0.25)", NULL),
    FLUX(
        "functions by name",
        MODEL(CHAIN(FUNCTION("Flux", "flatten") ", " FUNCTION("MLUtils", "flatten") ", " FUNCTION(
            "NNlib", "logsoftmax") ", " FUNCTION("NNlib", "gelu") ", " IDENTITY
                                                                  ", " FUNCTION("NNlib", "hardσ"))),
        "Chain(flatten, flatten, logsoftmax, gelu, identity, hardsigmoid)", NULL),
    FLUX("models in a tuple", MODEL(TUPLE(DENSE(W, B, IDENTITY) ", " W)),
         "(Dense(1 => 2), zeros(Float32, 2, 1))", "1.weight"),
    FLUX("integer weights",
         MODEL(DENSE(ARRAY("Int64", "2, 1", "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00"), B,
                     IDENTITY)),
         "Dense(1 => 2)", "weight"),
    FLUX("ties by back-references",
         "{_backrefs: [" W
         "], model: " CHAIN(DENSE(REF("1"), B, IDENTITY) ", " DENSE(REF("1"), "false", RELU)) "}",
         "Chain(Dense(1 => 2), Dense(1 => 2, relu; bias=false))", "layers.2.weight"),
};

#define W11           ARRAY("Float32", "1, 1", ONE)
#define DROPOUT(data) STRUCT("Flux", "Dropout", data)
typedef struct fault_row {
    const char *name, *bson, *error;
} fault_row;

static const fault_row fault_rows[] = {
    FAULT(
        "an anonymous function",
        MODEL(CHAIN(DENSE(W, B, IDENTITY) ", {tag: 'struct', type: {tag: 'jl_anonymous', typename: "
                                          "'#3#4', params: []}, data: []}")),
        "made.bson: model.layers.2: an anonymous function cannot be made from a file; "
        "wb_load_model_as makes the model of a text that you give; wb_load puts a file's arrays "
        "into a model that you give"),
    FAULT("a function that Weber lacks", MODEL(CHAIN(FUNCTION("Main", "mine"))),
          "model.layers.1: there is no function \"mine\""),
    FAULT("a layer that Weber lacks", MODEL(CHAIN(RELU ", " STRUCT("Flux", "Cascade", W))),
          "model.layers.2: Flux.Cascade is neither a layer nor a function that Weber knows"),
    FAULT("a DepthwiseConv without channels",
          MODEL(STRUCT(
              "Flux", "DepthwiseConv",
              RELU ", " ARRAY("Float32", "1, 2, 0", "") ", false, " TUPLE("1") ", " TUPLE("0"))),
          "model: Conv: weight must be (1, 1, 0), got (1, 2, 0)"),
    FAULT("an activation that Weber lacks", MODEL(DENSE(W, B, FUNCTION("NNlib", "quickgelu"))),
          "model: there is no function \"quickgelu\""),
    FAULT("arrays on a GPU", MODEL(CHAIN(DENSE(STRUCT("CUDA", "CuArray", "1, 2"), B, RELU))),
          "model.layers.1: the file does not have the values of a CUDA.CuArray, which is memory "
          "of a GPU; in Julia, save cpu(model)"),
    FAULT("a weight that is none", MODEL(CHAIN(DENSE("1", B, RELU))),
          "model.layers.1: its weight is a number"),
    FAULT("a weight of other dimensions", MODEL(CHAIN(DENSE(KERNEL, B, RELU))),
          "model.layers.1: Dense: weight must have 2 dimensions, got (2, 1, 1, 1)"),
    FAULT("a bias of another size", MODEL(CHAIN(DENSE(W, B1, RELU))),
          "model.layers.1: Dense: bias must be (2), got (1)"),
    FAULT("groups that do not divide",
          MODEL(STRUCT("Flux", "Conv",
                       RELU ", " KERNEL ", " B1
                            ", " TUPLE("1, 1") ", " TUPLE("0, 0") ", " TUPLE("1, 1") ", 3")),
          "3 groups do not divide"),
    FAULT("groups without end",
          MODEL(STRUCT("Flux", "Conv",
                       RELU ", " ARRAY("Float32", "1, 1, 2, 1", ONE " " TWO) ", " B1 ", " TUPLE(
                           "1, 1") ", " TUPLE("0, 0") ", " TUPLE("1, 1") ", 9223372036854775807")),
          "model: Conv: 9223372036854775807 groups do not divide"),
    FAULT("a stride that is none",
          MODEL(STRUCT("Flux", "Conv",
                       RELU ", " KERNEL ", " B1
                            ", " TUPLE("1, -1") ", " TUPLE("0, 0") ", " TUPLE("1, 1"))),
          "model: Conv: stride must be from 1 to 1048575, got (1, -1)"),
    FAULT("a probability that is none", MODEL(STRUCT("Flux", "Dropout", "1.5, true")),
          "model: Dropout: p must be from 0 to 1, got 1.5"),
    FAULT(
        "more heads than features",
        MODEL(STRUCT("Flux", "MultiHeadAttention",
                     "9, " DENSE(W, B, IDENTITY) ", " DENSE(W11, B1, IDENTITY) ", " DENSE(
                         W11, B1, IDENTITY) ", " DROPOUT("0.5, true") ", " DENSE(W, B, IDENTITY))),
        "model: MultiHeadAttention: qk must be divisible by heads, got 2 features and 9 heads"),
    FAULT("a layer within itself", "{_backrefs: [" CHAIN(REF("1")) "], model: " REF("1") "}",
          "model.layers.1: cycle is neither a layer"),
    FAULT("a number", MODEL("3"), "model: a number is neither a layer"),
    FAULT("another key", "{net: " DENSE(W, B, RELU) "}", "there is no \"model\"; it has net"),
};

static void assert_says(const char *error) {
    char message[1024];
    assert_true(wb_take_error(message, sizeof message) != WB_OK);
    if (!strstr(message, error)) fail_msg("\"%s\" does not say \"%s\"", message, error);
}

static void what_cannot_be_made_is_told(void **state) {
    const fault_row *r = *state;
    assert_null(wb_load_model(write_bson(r->bson), "model"));
    assert_says(r->error);
}

/* Chains of the next chain twice: a short file, 2^17 layers to who counts them, and not more than
 * it has. */
static void what_stands_over_and_over_is_made_once(void **state) {
    (void)state;
    enum { LEVELS = 18 };
    static char bson[LEVELS * 400];
    int used = snprintf(bson, sizeof bson, "{_backrefs: [");
    for (int i = 2; i <= LEVELS; i++)
        used += snprintf(bson + used, sizeof bson - (size_t)used,
                         CHAIN(REF("%d") ", " REF("%d")) ", ", i, i);
    (void)snprintf(bson + used, sizeof bson - (size_t)used,
                   DENSE(W, B, RELU) "], model: " REF("1") "}");
    const int64_t before = wb_live().objects;
    wb_layer *model = wb_load_model(write_bson(bson), "model");
    assert_non_null(model);
    assert_int_equal(wb_live().objects - before, LEVELS);
    assert_int_equal(wb_parameter_count(model), 4);
    wb_free(model);
}

static void ties_of_flux_are_ties(void **state) {
    (void)state;
    const char *path = write_bson("{_backrefs: [" W "], model: " CHAIN(
        DENSE(REF("1"), B, IDENTITY) ", " DENSE(REF("1"), B, IDENTITY)) "}");
    wb_layer *model = wb_load_model(path, NULL);
    assert_ptr_equal(wb_get(model, "layers.1.weight"), wb_get(model, "layers.2.weight"));
    assert_int_equal(wb_parameter_count(model), 6);
    wb_free(model);
}

static void the_mode_of_a_dropout_is_kept(void **state) {
    (void)state;
    wb_layer *model =
        wb_load_model(write_bson(MODEL(STRUCT("Flux", "Dropout",
                                              "0.5, " STRUCT("Base", "Colon", "") ", true, 1"))),
                      NULL);
    assert_int_equal(model->mode_, WB_MODE_TRAIN);
    assert_int_equal(wb_test_mode(model), WB_OK);
    assert_int_equal(wb_save(path_of("mode.npz"), model), WB_OK);
    wb_layer *again = wb_load_model(path_of("mode.npz"), NULL);
    assert_int_equal(again->mode_, WB_MODE_TEST);
    wb_free(model), wb_free(again);
}

typedef struct mode_row {
    const char *name, *bson;
    int mode;
} mode_row;
#define NORM(data)                                                                                 \
    STRUCT("Flux", "BatchNorm", IDENTITY ", " B ", " B ", " B ", " B ", 1.0e-5, 0.1, " data)
#define MODE(name, layer, mode)                                                                    \
    { name, MODEL(layer), mode }
static const mode_row modes[] = {
    MODE("true was the default of Flux 0.8", DROPOUT("0.5, true"), WB_MODE_AUTO),
    MODE("false was testmode! in Flux 0.8", DROPOUT("0.5, false"), WB_MODE_TEST),
    MODE("true may be the default of Flux 0.9", DROPOUT("0.5, 1, true"), WB_MODE_AUTO),
    MODE("nothing is automatic", DROPOUT("0.5, 1, null, 1"), WB_MODE_AUTO),
    MODE("false is testmode!", DROPOUT("0.5, 1, false, 1"), WB_MODE_TEST),
    MODE("true is trainmode!", DROPOUT("0.5, 1, true, 1"), WB_MODE_TRAIN),
    MODE("a norm of Flux 0.8", NORM("true"), WB_MODE_AUTO),
    MODE("a norm of Flux 0.8 in testmode!", NORM("false"), WB_MODE_TEST),
    MODE("a norm of Flux 0.14", NORM("true, true, null, 2"), WB_MODE_AUTO),
    MODE("a norm of Flux 0.14 in testmode!", NORM("true, true, false, 2"), WB_MODE_TEST),
    MODE("a norm of Flux 0.14 in trainmode!", NORM("true, true, true, 2"), WB_MODE_TRAIN),
};

static void modes_of_flux_are_kept(void **state) {
    const mode_row *r = *state;
    wb_layer *model = wb_load_model(write_bson(r->bson), "model");
    assert_non_null(model);
    assert_int_equal(model->mode_, r->mode);
    wb_free(model);
}

/* ---- parameters without a model ---- */

#define LIST      W ", " B ", " KERNEL
#define BUFFER(x) STRUCT("Zygote", "Buffer", x ", false")
static const fault_row lists[] = {
    FAULT("a vector of arrays", MODEL("[" LIST "]"), NULL),
    FAULT("a tuple of tracked arrays", MODEL(TUPLE(TRACKED(W) ", " TRACKED(B) ", " KERNEL)), NULL),
    FAULT("Params of Tracker", MODEL(STRUCT("Tracker", "Params", "[" LIST "], null")), NULL),
    FAULT("Params of Zygote", MODEL(STRUCT("Zygote", "Params", BUFFER("[" LIST "]") ", null")),
          NULL),
    FAULT("a list that ends early", MODEL("[" W ", " B "]"),
          "the list of 2 arrays ends before layers.2.weight"),
    FAULT("a list that goes on", MODEL("[" LIST ", " B "]"), "the model has no array for 4 (2)"),
    FAULT("a list of other sizes", MODEL("[" B ", " W ", " KERNEL "]"),
          "layers.1.weight is (2) in the file, (2, 1) in the model"),
    FAULT("a list of arrays on a GPU", MODEL("[" W ", " STRUCT("CuArrays", "CuArray", "1") "]"),
          "layers.1.weight"),
};

static void lists_load_in_order(void **state) {
    const fault_row *r = *state;
    wb_layer *model = wb_chain(wb_dense(1, 2), wb_conv({2, 1}, 1, 1, .bias = false));
    const wb_status status = wb_load(write_bson(r->bson), model);
    assert_true((status == WB_OK) == !r->error);
    if (r->error) {
        assert_says(r->error);
    } else {
        assert_one_and_two(wb_get(model, "layers.1.weight"));
        assert_one_and_two(wb_get(model, "layers.2.weight"));
    }
    wb_free(model);
}

/* A struct of one's own in Julia and in C: fields in the same order. */
typedef struct ActorCritic {
    wb_layer layer;
    wb_layer *actor;
    wb_array *critic;
} ActorCritic;
WB_FUNCTOR(ActorCritic, NULL, WB_CHILD_FIELD(ActorCritic, actor),
           WB_ARRAY_FIELD(ActorCritic, critic));

static wb_layer *actor_critic(void) {
    ActorCritic *m = wb_new(ActorCritic);
    m->actor = wb_dense(1, 2);
    m->critic = wb_keep(wb_zeros(WB_F32, 2));
    return &m->layer;
}

static void a_struct_of_ones_own_loads_by_place(void **state) {
    (void)state;
    wb_layer *m = actor_critic();
    const char *path = write_bson(MODEL(STRUCT("Main", "ActorCritic", DENSE(W, B, RELU) ", " B)));
    assert_int_equal(wb_load(path, m), WB_OK);
    assert_one_and_two(wb_get(m, "actor.weight"));
    assert_true(wb_item(wb_sum(wb_get(m, "critic"))) == 4);
    assert_null(wb_load_model(path, NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "model: ActorCritic is neither a layer");
    assert_int_equal(wb_save(path_of("own.bson"), m), WB_OK);
    assert_null(wb_load_model(path_of("own.bson"), NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "model: ActorCritic is not a layer that Weber knows");
    wb_layer *again = actor_critic();
    assert_int_equal(wb_load(path_of("own.bson"), again), WB_OK);
    assert_one_and_two(wb_get(again, "actor.weight"));
    wb_free(m), wb_free(again);
}

static void arrays_of_a_gpu_are_told(void **state) {
    (void)state;
    wb_layer *model = wb_dense(1, 2);
    const char *path = write_bson(MODEL(DENSE(STRUCT("AMDGPU", "ROCArray", "1"), B, RELU)));
    assert_int_equal(wb_load(path, model), WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED, "the file does not have the values of weight, a "
                                       "AMDGPU.ROCArray");
    wb_free(model);
}

/* An RNG's numbers are no parameters. */
static void the_rng_of_a_dropout_is_passed_over(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(1, 2), wb_dropout(.p = 0.5));
    const char *path = write_bson(MODEL(
        CHAIN(DENSE(W, B, RELU) ", " STRUCT("Flux", "Dropout",
                                            "0.25, " STRUCT("Base", "Colon", "") ", null, " STRUCT(
                                                "Random", "MersenneTwister", W ", " B)))));
    assert_int_equal(wb_load(path, model), WB_OK);
    assert_one_and_two(wb_get(model, "layers.1.weight"));
    wb_free(model);
}

/* acceptance L6; in Julia the numbers are Int64 */
static void the_example_of_flux_comes_back(void **state) {
    (void)state;
    const float w[6] = {1, 3, 5, 2, 4, 6}, b[3] = {7, 8, 9};
    wb_layer *m = wb_chain(
        wb_dense(.given_weight = wb_from(WB_F32, w, 3, 2), .given_bias = wb_from(WB_F32, b, 3)),
        wb_dense(3, 1));
    wb_layer *zeros =
        wb_chain(wb_dense(2, 3, .init = wb_zeros_init), wb_dense(3, 1, .init = wb_zeros_init));
    assert_int_equal(wb_save(path_of("l6.bson"), m), WB_OK);
    assert_int_equal(wb_load(path_of("l6.bson"), zeros), WB_OK);
    assert_same_bits(wb_get(m, "layers.1.weight"), wb_get(zeros, "layers.1.weight"), "weight");
    assert_same_bits(wb_get(m, "layers.1.bias"), wb_get(zeros, "layers.1.bias"), "bias");
    assert_same_bits(wb_get(m, "layers.2.weight"), wb_get(zeros, "layers.2.weight"), "second");
    wb_free(m), wb_free(zeros);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(a_cnn_of_flux_gives_its_logits),
        TEST(the_model_of_the_docs_is_built),
        TEST(arrays_of_a_flux_model_load_into_a_given_one),
        TEST(a_state_of_flux_loads_by_name),
        TEST(ties_of_flux_are_ties),
        TEST(what_stands_over_and_over_is_made_once),
        TEST(the_mode_of_a_dropout_is_kept),
        TEST(a_struct_of_ones_own_loads_by_place),
        TEST(arrays_of_a_gpu_are_told),
        TEST(the_rng_of_a_dropout_is_passed_over),
        TEST(the_example_of_flux_comes_back),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, flux_rows, flux_is_understood);
    ADD_ROWS(&tests, fault_rows, what_cannot_be_made_is_told);
    ADD_ROWS(&tests, modes, modes_of_flux_are_kept);
    ADD_ROWS(&tests, lists, lists_load_in_order);
    return run_test_list("models/test_model", &tests, make_folder, drop_folder);
}
