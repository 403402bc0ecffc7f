#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bench_case {
    char letter;
    bool tiny;
    bench_transformer transformer; /* of case e */
    bench_attention attention;     /* of case k */
    bench_rows rows;               /* of case l */
    int64_t batch, steps;
    int inputs;
    wb_layer *model;
    wb_optimiser *optimiser;
    wb_array *x[BENCH_INPUTS], *y[BENCH_INPUTS];
    wb_array *last, *gradient; /* held: the loss or the outputs; the gradient of g, k and l */
};

/* ---- numbers ---- */

float bench_uniform(uint32_t sequence, uint32_t i) {
    uint32_t h = i * 2654435761u + sequence * 40503u + 12345u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    h *= 3266489917u;
    h ^= h >> 16;
    return (float)(h >> 8) * 0x1p-24f;
}

void bench_matrix(uint32_t sequence, float bound, int64_t out, int64_t in, float *w) {
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            const float u = bench_uniform(sequence, (uint32_t)(o * in + i));
            w[o + out * i] = (2 * u - 1) * bound;
        }
}

void bench_weight(uint32_t sequence, int64_t out, int64_t in, float *w) {
    bench_matrix(sequence, sqrtf(6.0f / (float)(in + out)), out, in, w);
}

void bench_values(uint32_t sequence, float low, float high, int64_t count, float *x) {
    for (int64_t i = 0; i < count; i++)
        x[i] = low + (high - low) * bench_uniform(sequence, (uint32_t)i);
}

void bench_labels(uint32_t sequence, int64_t classes, int64_t count, int32_t *labels) {
    for (int64_t i = 0; i < count; i++)
        labels[i] = (int32_t)(bench_uniform(sequence, (uint32_t)i) * (float)classes);
}

void bench_target(int64_t count, const float *x, float *y) {
    for (int64_t i = 0; i < count; i++) y[i] = x[i] * (2 - x[i] * x[i]);
}

/* ---- models ---- */

wb_array *bench_array(uint32_t sequence, float low, float high, int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    float *data = malloc((size_t)count * sizeof *data);
    if (!data) return NULL;
    bench_values(sequence, low, high, count, data);
    wb_array *x = wb_from_make(WB_F32, data, ndim, sizes);
    free(data);
    return x;
}

static wb_layer *dense(uint32_t layer, int64_t in, int64_t out, wb_activation *activation) {
    float *w = malloc((size_t)(in * out) * sizeof *w);
    if (!w) return NULL;
    bench_weight(SEQUENCE_WEIGHT + layer, out, in, w);
    wb_layer *made = wb_dense(in, out, activation, .weight = wb_from(WB_F32, w, out, in));
    free(w);
    return made;
}

/* torch's kernel (out, in, kh, kw) is ours (kw, kh, in, out): the same memory. */
static wb_layer *conv(uint32_t layer, int64_t in, int64_t out, bool is_normed) {
    const float bound = sqrtf(6.0f / (float)(9 * (in + out)));
    const int64_t sizes[4] = {3, 3, in, out};
    wb_layer *made =
        is_normed
            ? wb_cross_cor(.kernel = {3, 3}, .in = in, .out = out, .pad = {1, 1}, .no_bias = true)
            : wb_cross_cor(.kernel = {3, 3}, .in = in, .out = out, .activation = wb_relu);
    if (wb_set(made, "weight", bench_array(SEQUENCE_WEIGHT + layer, -bound, bound, 4, sizes)) ==
        WB_OK)
        return made;
    wb_free(made);
    return NULL;
}

/* Without a bias, as a norm follows; the norm, and relu. */
static wb_layer *normed(uint32_t layer, int64_t in, int64_t out) {
    return wb_chain(conv(layer, in, out, true), wb_batchnorm(out, wb_relu));
}

static wb_layer *vgg(int64_t side, int64_t narrow, int64_t middle, int64_t wide) {
    const int64_t left = side / 4;
    return wb_chain(normed(1, 3, narrow), normed(2, narrow, narrow), wb_maxpool(.kernel = {2, 2}),
                    normed(3, narrow, middle), normed(4, middle, middle),
                    wb_maxpool(.kernel = {2, 2}), normed(5, middle, wide),
                    wb_meanpool(.kernel = {left, left}), wb_flatten(),
                    dense(6, wide, CLASSES, NULL));
}

static wb_layer *model_of(char letter, bool tiny) {
    const int64_t side = tiny ? 6 : D_SIDE, in = tiny ? 2 : B_IN, wide = tiny ? 2 : C_HIDDEN;
    const int64_t flat = ((side - 4) / 2) * ((side - 4) / 2) * (tiny ? 2 : 64);
    switch (letter) {
    case 'a':
        return wb_chain(dense(1, 1, tiny ? 1 : A_HIDDEN, wb_tanh),
                        dense(2, tiny ? 1 : A_HIDDEN, 1, NULL));
    case 'b':
    case 'h':
        return wb_chain(dense(1, in, tiny ? 2 : B_HIDDEN, wb_relu),
                        dense(2, tiny ? 2 : B_HIDDEN, CLASSES, NULL));
    case 'c':
        return wb_chain(dense(1, in, wide, wb_relu), dense(2, wide, wide, wb_relu),
                        dense(3, wide, CLASSES, NULL));
    case 'i':
    case 'j':
        return tiny ? vgg(4, 2, 2, 2) : vgg(I_SIDE, 64, 128, 256);
    default:
        return wb_chain(conv(1, 1, tiny ? 2 : 32, false),
                        conv(2, tiny ? 2 : 32, tiny ? 2 : 64, false), wb_maxpool(.kernel = {2, 2}),
                        wb_flatten(), dense(3, flat, tiny ? 2 : 128, wb_relu),
                        dense(4, tiny ? 2 : 128, CLASSES, NULL));
    }
}

/* ---- inputs ---- */

static wb_array *labels_of(uint32_t sequence, int64_t classes, int64_t count) {
    int32_t *labels = malloc((size_t)count * sizeof *labels);
    if (!labels) return NULL;
    bench_labels(sequence, classes, count, labels);
    wb_array *y = wb_from(WB_I32, labels, count);
    free(labels);
    return y;
}

static wb_array *symbols_of(const bench_case *c, uint32_t sequence) {
    const bench_transformer *t = &c->transformer;
    wb_array *symbols = labels_of(sequence, t->symbols, t->context * c->batch);
    return wb_reshape(symbols, t->context, c->batch);
}

static void target_of(bench_case *c, int k) {
    float x[4096], y[4096];
    const int64_t count = c->batch < 4096 ? c->batch : 4096;
    bench_values(SEQUENCE_INPUT + (uint32_t)k, -1.5f, 1.5f, count, x);
    bench_target(count, x, y);
    c->x[k] = wb_from(WB_F32, x, 1, count);
    c->y[k] = wb_from(WB_F32, y, 1, count);
}

static void make_input(bench_case *c, int k) {
    const uint32_t input = SEQUENCE_INPUT + (uint32_t)k, label = SEQUENCE_LABEL + (uint32_t)k;
    const int64_t in = c->tiny ? 2 : B_IN, side = c->tiny ? 6 : D_SIDE;
    const int64_t photo = c->tiny ? 4 : I_SIDE, matrix[2] = {c->rows.length, c->rows.count};
    const int64_t heads[4] = {BENCH_ATTENTION_FEATURES, c->attention.length, c->attention.heads, 3};
    if (c->letter == 'a')
        target_of(c, k);
    else if (c->letter == 'g')
        c->x[k] = bench_array(input, -2, 2, 1, (const int64_t[]){c->tiny ? 2 : G_COUNT});
    else if (c->letter == 'd')
        c->x[k] = bench_array(input, 0, 1, 4, (const int64_t[]){side, side, 1, c->batch});
    else if (c->letter == 'e')
        c->x[k] = symbols_of(c, input), c->y[k] = symbols_of(c, label);
    else if (c->letter == 'i' || c->letter == 'j')
        c->x[k] = bench_array(input, -1, 1, 4, (const int64_t[]){photo, photo, 3, c->batch});
    else if (c->letter == 'k')
        c->x[k] = bench_array(input, -2, 2, 4, heads),
        c->y[k] = bench_array(label, -1, 1, 3, heads);
    else if (c->letter == 'l')
        c->x[k] = bench_array(input, -2, 2, 2, matrix),
        c->y[k] = bench_array(label, -1, 1, 2, matrix);
    else
        c->x[k] = bench_array(input, 0, 1, 2, (const int64_t[]){in, c->batch});
    if (strchr("bcdi", c->letter)) c->y[k] = labels_of(label, CLASSES, c->batch);
    wb_keep(c->x[k]);
    wb_keep(c->y[k]);
}

static void drop_inputs(bench_case *c) {
    for (int k = 0; k < c->inputs; k++) {
        wb_free(c->x[k]), wb_free(c->y[k]);
        c->x[k] = c->y[k] = NULL;
    }
}

void bench_case_set_batch(bench_case *c, int64_t batch) {
    drop_inputs(c);
    c->batch = batch;
    wb_scope_open();
    for (int k = 0; k < c->inputs; k++) make_input(c, k);
    wb_scope_close();
}

static int64_t batch_of(char letter) {
    switch (letter) {
    case 'a':
        return A_BATCH;
    case 'c':
        return C_BATCH;
    case 'e':
        return bench_transformer_e.batch;
    case 'h':
        return 1;
    case 'i':
    case 'j':
        return I_BATCH;
    default:
        return B_BATCH;
    }
}

/* ---- a case ---- */

bench_case *bench_case_open(char letter, bool tiny) {
    return bench_case_open_batch(letter, tiny, tiny ? 1 : batch_of(letter));
}

static bool has_model(char letter) { return strchr("gkl", letter) == NULL; }

bool bench_case_is_fixed(char letter) { return strchr("ghjkl", letter) != NULL; }

static bench_case *open_case(bench_case settings) {
    bench_case *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = settings;
    c->inputs = has_model(c->letter) ? BENCH_INPUTS : G_INPUTS;
    wb_scope_open();
    if (c->letter == 'e')
        c->model = bench_transformer_make(&c->transformer);
    else if (has_model(c->letter))
        c->model = model_of(c->letter, c->tiny);
    if (c->letter == 'j') wb_test_mode(c->model);
    if (c->letter == 'e')
        c->optimiser = wb_setup(wb_adamw(.eta = 1e-3, .lambda = 0.01), c->model);
    else if (!bench_case_is_fixed(c->letter))
        c->optimiser = wb_setup(wb_adam(.eta = 1e-3), c->model);
    wb_scope_close();
    bench_case_set_batch(c, c->batch);
    if (!wb_failed()) return c;
    bench_case_close(c);
    return NULL;
}

bench_case *bench_case_open_batch(char letter, bool tiny, int64_t batch) {
    static const bench_transformer tiniest = {.layers = 1, 2, 1, 1, 2, 1, WB_F32, WB_F32};
    static const bench_rows smallest = {.length = 2, .count = 1};
    static const bench_attention shortest = {.length = 2, .heads = 1};
    return open_case((bench_case){.letter = letter,
                                  .tiny = tiny,
                                  .transformer = tiny ? tiniest : bench_transformer_e,
                                  .attention = tiny ? shortest : bench_attention_k,
                                  .rows = tiny ? smallest : bench_rows_l,
                                  .batch = batch});
}

bench_case *bench_case_open_transformer(const bench_transformer *sizes) {
    return open_case((bench_case){.letter = 'e', .transformer = *sizes, .batch = sizes->batch});
}

bench_case *bench_case_open_attention(const bench_attention *attention) {
    return open_case((bench_case){.letter = 'k', .attention = *attention, .batch = 1});
}

bench_case *bench_case_open_rows(const bench_rows *rows) {
    return open_case((bench_case){.letter = 'l', .rows = *rows, .batch = 1});
}

static wb_array *loss_of_numbers(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_array *loss_of_classes(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

wb_loss_fn *bench_case_loss(const bench_case *c) {
    return c->letter == 'a' ? loss_of_numbers : loss_of_classes;
}

wb_layer *bench_case_model(const bench_case *c) { return c->model; }

wb_optimiser *bench_case_optimiser(const bench_case *c) { return c->optimiser; }

void bench_case_batch(const bench_case *c, int64_t k, wb_batch *batch) {
    *batch = (wb_batch){
        .x = c->x[k % c->inputs], .y = c->y[k % c->inputs], .index = k, .size = c->batch};
}

static void hold(wb_array **place, wb_array *x) {
    wb_free(*place);
    *place = wb_keep(x);
}

static void train_step(bench_case *c) {
    wb_batch batch;
    bench_case_batch(c, c->steps, &batch);
    hold(&c->last, wb_train_step(bench_case_loss(c), c->model, &batch, NULL, c->optimiser));
}

static void elementwise_step(bench_case *c) {
    wb_array *x = c->x[c->steps % c->inputs], *gradient = NULL;
    wb_array *terms = wb_add(wb_mul(wb_tanh(x), x), wb_exp(wb_neg(wb_mul(x, x))));
    wb_array *sum = wb_sum(wb_square(terms));
    wb_gradient_of(sum, 1, &x, &gradient);
    wb_eval(sum, gradient);
    hold(&c->last, sum);
    hold(&c->gradient, gradient);
}

static void rows_step(bench_case *c) {
    const int k = (int)(c->steps % c->inputs);
    const bench_rows_result result = bench_rows_step(&c->rows, c->x[k], c->y[k]);
    hold(&c->last, result.value);
    hold(&c->gradient, result.gradient);
}

static void attention_step(bench_case *c) {
    const int k = (int)(c->steps % c->inputs);
    const bench_attention_result result = bench_attention_step(&c->attention, c->x[k], c->y[k]);
    hold(&c->last, result.value);
    hold(&c->gradient, result.gradient);
}

static void inference_step(bench_case *c) {
    wb_array *y = wb_apply(c->model, c->x[c->steps % c->inputs]);
    wb_eval(y);
    hold(&c->last, y);
}

void bench_case_step(bench_case *c) {
    wb_scope_open();
    if (c->letter == 'g')
        elementwise_step(c);
    else if (c->letter == 'k')
        attention_step(c);
    else if (c->letter == 'l')
        rows_step(c);
    else if (bench_case_is_fixed(c->letter))
        inference_step(c);
    else
        train_step(c);
    wb_scope_close();
    c->steps++;
}

/* ---- results ---- */

double bench_sum_of_magnitudes(wb_array *x) {
    const float *values = wb_read_begin(x);
    double sum = 0;
    for (int64_t i = 0; values && i < wb_count(x); i++) sum += fabs((double)values[i]);
    wb_read_end(x);
    return sum;
}

static wb_array *add_leaf(void *user, const char *path, wb_array *x) {
    (void)path;
    *(double *)user += bench_sum_of_magnitudes(x);
    return x;
}

bench_result bench_case_result(bench_case *c) {
    bench_result r = {0};
    if (!c->last) return r;
    wb_scope_open();
    if (bench_case_is_fixed(c->letter) && !c->gradient) {
        r.loss = r.checksum = bench_sum_of_magnitudes(c->last);
    } else {
        r.loss = wb_item(c->last);
        if (c->gradient)
            r.checksum = bench_sum_of_magnitudes(c->gradient);
        else
            wb_walk(add_leaf, &r.checksum, c->model);
    }
    wb_scope_close();
    return r;
}

void bench_case_close(bench_case *c) {
    if (!c) return;
    drop_inputs(c);
    wb_free(c->last), wb_free(c->gradient);
    wb_free(c->optimiser), wb_free(c->model);
    free(c);
}

bool bench_choose_device(void) {
    if (!getenv("WEBER_DEVICE")) return true;
    const wb_device *device = wb_get_device();
    if (device) wb_set_default_device(device);
    return device != NULL;
}
