#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The two factors of case m are square. */
typedef struct product {
    int64_t size;
    wb_dtype type;
} product;

/* What a case may be told by the text after its letter. */
typedef struct settings {
    bool tiny;
    int64_t batch;
    wb_dtype compute; /* what the loss sees f32 parameters as; WB_F32: as they are */
    bench_transformer transformer;
    bench_lstm lstm;
    bench_attention attention;
    bench_rows rows;
    product product;
    bench_first first;
} settings;

/* A case: inputs x and y number k, and a network that is trained with a loss, or applied without
 * one; or a step of its own. */
typedef struct row {
    char letter;
    settings own, tiny;
    bool (*parse)(const char *text, settings *settings); /* NULL: it has one size */
    wb_layer *(*network)(const settings *settings);      /* NULL: it has none */
    wb_loss_fn *loss;                                    /* NULL: nothing is learnt */
    void (*input)(const settings *settings, uint32_t k, wb_array **x, wb_array **y);
    bench_values_of_step (*step)(const settings *settings, wb_array *x, wb_array *y);
} row;

struct bench_case {
    const row *row;
    settings settings;
    int64_t steps;
    int inputs;
    wb_layer *model;
    wb_optimiser *optimiser;
    wb_array *x[BENCH_INPUTS], *y[BENCH_INPUTS];
    wb_array *last, *gradient; /* held: the loss or the outputs; the gradient of g, k and l */
};

/* ---- texts ---- */

static bool parse_type(const char *name, wb_dtype *type) {
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_BF16, WB_F16};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, wb_dtype_name(types[i])) == 0) {
            *type = types[i];
            return true;
        }
    return false;
}

static bool parse_batch(const char *text, settings *s) {
    char name[8] = "";
    long long batch = 0;
    const int read = sscanf(text, "%lld,%7s", &batch, name);
    s->batch = batch;
    return read >= 1 && batch > 0 && (read == 1 || parse_type(name, &s->compute));
}

static bool parse_transformer(const char *text, settings *s) {
    if (!bench_transformer_parse(text, &s->transformer)) return false;
    s->batch = s->transformer.batch;
    return true;
}

static bool parse_lstm(const char *text, settings *s) {
    long long n[4];
    if (sscanf(text, "%lld,%lld,%lld,%lld", &n[0], &n[1], &n[2], &n[3]) != 4) return false;
    s->lstm = (bench_lstm){n[0], n[1], n[2], n[3]};
    s->batch = n[3];
    return n[0] > 0 && n[1] > 0 && n[2] > 0 && n[3] > 0;
}

static bool parse_attention(const char *text, settings *s) {
    return bench_attention_parse(text, &s->attention);
}

static bool parse_rows(const char *text, settings *s) { return bench_rows_parse(text, &s->rows); }

static bool parse_product(const char *text, settings *s) {
    char name[8] = "";
    long long size = 0;
    const int read = sscanf(text, "%lld,%7s", &size, name);
    s->product.size = size;
    return read == 2 && size > 0 && parse_type(name, &s->product.type);
}

static bool parse_first(const char *text, settings *s) {
    return bench_first_parse(text, &s->first);
}

/* ---- networks ---- */

static wb_layer *curve_mlp(const settings *s) { return bench_curve_mlp(s->tiny); }
static wb_layer *mlp(const settings *s) { return bench_mlp(s->tiny); }
static wb_layer *wide_mlp(const settings *s) { return bench_wide_mlp(s->tiny); }
static wb_layer *cnn(const settings *s) { return bench_cnn(s->tiny); }
static wb_layer *vgg(const settings *s) { return bench_vgg(s->tiny); }
static wb_layer *resnet(const settings *s) { return bench_resnet(s->tiny); }
static wb_layer *resnet50(const settings *s) { return bench_resnet50(s->tiny); }
static wb_layer *mobilenet(const settings *s) { return bench_mobilenet(s->tiny); }
static wb_layer *lstm(const settings *s) { return bench_lstm_make(&s->lstm); }
static wb_layer *transformer(const settings *s) { return bench_transformer_make(&s->transformer); }
static wb_layer *first(const settings *s) { return bench_first_make(&s->first); }

static wb_array *loss_of_numbers(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_array *loss_of_classes(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* ---- inputs ---- */

static void curve_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    float in[4096], out[4096];
    const int64_t count = s->batch < 4096 ? s->batch : 4096;
    bench_values(SEQUENCE_INPUT + k, -1.5f, 1.5f, count, in);
    bench_target(count, in, out);
    *x = wb_from(WB_F32, in, 1, count);
    *y = wb_from(WB_F32, out, 1, count);
}

static void class_input(const settings *s, uint32_t k, float low, int ndim, const int64_t *sizes,
                        wb_array **x, wb_array **y) {
    *x = bench_array(SEQUENCE_INPUT + k, low, 1, ndim, sizes);
    *y = bench_label_array(SEQUENCE_LABEL + k, CLASSES, 1, &s->batch);
}

static void vector_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t sizes[2] = {s->tiny ? 2 : B_IN, s->batch};
    class_input(s, k, 0, 2, sizes, x, y);
}

static void digit_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t side = s->tiny ? TINY_D_SIDE : D_SIDE, sizes[4] = {side, side, 1, s->batch};
    class_input(s, k, 0, 4, sizes, x, y);
}

static void photo_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t side = s->tiny ? TINY_I_SIDE : I_SIDE, sizes[4] = {side, side, 3, s->batch};
    class_input(s, k, -1, 4, sizes, x, y);
}

static void square_photo_input(const settings *s, int64_t side, uint32_t k, wb_array **x,
                               wb_array **y) {
    const int64_t sizes[4] = {side, side, 3, s->batch};
    class_input(s, k, -1, 4, sizes, x, y);
}

static void large_photo_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    square_photo_input(s, s->tiny ? TINY_N_SIDE : N_SIDE, k, x, y);
}

static void wide_photo_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    square_photo_input(s, s->tiny ? TINY_N_SIDE : S_SIDE, k, x, y);
}

static void symbol_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t symbols = s->transformer.symbols, sizes[2] = {s->transformer.context, s->batch};
    *x = bench_label_array(SEQUENCE_INPUT + k, symbols, 2, sizes);
    *y = bench_label_array(SEQUENCE_LABEL + k, symbols, 2, sizes);
}

static void series_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t in[3] = {s->lstm.inputs, s->lstm.length, s->batch};
    const int64_t out[3] = {s->lstm.cells, s->lstm.length, s->batch};
    *x = bench_array(SEQUENCE_INPUT + k, -1, 1, 3, in);
    *y = bench_array(SEQUENCE_LABEL + k, -1, 1, 3, out);
}

static void number_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t count = s->tiny ? 2 : G_COUNT;
    (void)y;
    *x = bench_array(SEQUENCE_INPUT + k, -2, 2, 1, &count);
}

static void head_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t sizes[4] = {BENCH_ATTENTION_FEATURES, s->attention.length, s->attention.heads, 3};
    *x = wb_cast(bench_array(SEQUENCE_INPUT + k, -2, 2, 4, sizes), s->attention.type);
    *y = bench_array(SEQUENCE_LABEL + k, -1, 1, 3, sizes);
}

static void row_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t sizes[2] = {s->rows.length, s->rows.count};
    *x = bench_array(SEQUENCE_INPUT + k, -2, 2, 2, sizes);
    *y = bench_array(SEQUENCE_LABEL + k, -1, 1, 2, sizes);
}

static void factor_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    const int64_t sizes[2] = {s->product.size, s->product.size};
    *x = wb_cast(bench_array(SEQUENCE_INPUT + k, -1, 1, 2, sizes), s->product.type);
    *y = wb_cast(bench_array(SEQUENCE_LABEL + k, -1, 1, 2, sizes), s->product.type);
}

static void first_input(const settings *s, uint32_t k, wb_array **x, wb_array **y) {
    bench_first_batch(&s->first, k, x, y);
}

/* ---- steps of their own ---- */

static bench_values_of_step elementwise_step(const settings *s, wb_array *x, wb_array *y) {
    wb_array *gradient = NULL;
    wb_array *terms = wb_add(wb_mul(wb_tanh(x), x), wb_exp(wb_neg(wb_mul(x, x))));
    wb_array *sum = wb_sum(wb_square(terms));
    (void)s, (void)y;
    wb_gradient_of(sum, 1, &x, &gradient);
    wb_eval(sum, gradient);
    return (bench_values_of_step){sum, gradient};
}

static bench_values_of_step attention_step(const settings *s, wb_array *x, wb_array *y) {
    return bench_attention_step(&s->attention, x, y);
}

static bench_values_of_step rows_step(const settings *s, wb_array *x, wb_array *y) {
    return bench_rows_step(&s->rows, x, y);
}

static bench_values_of_step product_step(const settings *s, wb_array *x, wb_array *y) {
    wb_array *xy = wb_matmul(x, y);
    (void)s;
    wb_eval(xy);
    return (bench_values_of_step){xy, NULL};
}

/* ---- the cases ---- */

#define OF_BATCH(n, least) {.batch = (n)}, {.tiny = true, .batch = (least)}, parse_batch
#define OF_TRANSFORMER(...)                                                                        \
    {.transformer = {__VA_ARGS__}}, {.transformer = {1, 2, 1, 1, 2, 1, WB_F32, WB_F32}},           \
        parse_transformer

static const row rows[] = {
    {'a', OF_BATCH(A_BATCH, 1), curve_mlp, loss_of_numbers, curve_input, NULL},
    {'b', OF_BATCH(B_BATCH, 1), mlp, loss_of_classes, vector_input, NULL},
    {'c', OF_BATCH(C_BATCH, 1), wide_mlp, loss_of_classes, vector_input, NULL},
    {'d', OF_BATCH(D_BATCH, 1), cnn, loss_of_classes, digit_input, NULL},
    {'e', OF_TRANSFORMER(4, 256, 4, 128, 96, 16, WB_F32, WB_F32), transformer, loss_of_classes,
     symbol_input, NULL},
    {'f',
     {.lstm = {128, 128, 32, 64}},
     {.lstm = {1, 1, 2, 1}},
     parse_lstm,
     lstm,
     loss_of_numbers,
     series_input,
     NULL},
    {'g', {.batch = 1}, {.tiny = true}, NULL, NULL, NULL, number_input, elementwise_step},
    {'h', OF_BATCH(1, 1), mlp, NULL, vector_input, NULL},
    {'i', OF_BATCH(I_BATCH, 2), vgg, loss_of_classes, photo_input, NULL},
    {'j', OF_BATCH(I_BATCH, 2), vgg, NULL, photo_input, NULL},
    {'k',
     {.attention = {.length = 512, .heads = BENCH_ATTENTION_QUERIES / 512}},
     {.attention = {.length = 2, .heads = 1}},
     parse_attention,
     NULL,
     NULL,
     head_input,
     attention_step},
    {'l',
     {.rows = {.length = 1024, .count = 4096}},
     {.rows = {.length = 2, .count = 1}},
     parse_rows,
     NULL,
     NULL,
     row_input,
     rows_step},
    {'m',
     {.product = {1024, WB_BF16}},
     {.product = {2, WB_BF16}},
     parse_product,
     NULL,
     NULL,
     factor_input,
     product_step},
    {'n', OF_BATCH(N_BATCH, 2), resnet, loss_of_classes, large_photo_input, NULL},
    {'o', OF_TRANSFORMER(12, 768, 12, 256, 96, 1, WB_F32, WB_F32), transformer, loss_of_classes,
     symbol_input, NULL},
    {'p',
     {.first = {FIRST_TRANSFORMER, 24}},
     {.first = {FIRST_TRANSFORMER, 1}},
     parse_first,
     first,
     bench_first_loss,
     first_input,
     NULL},
    {'q', OF_BATCH(1, 1), resnet, NULL, large_photo_input, NULL},
    {'r', OF_BATCH(N_BATCH, 2), mobilenet, loss_of_classes, large_photo_input, NULL},
    {'s', OF_BATCH(N_BATCH, 2), resnet50, loss_of_classes, wide_photo_input, NULL},
};

/* The row and the sizes of a name, or NULL. */
static const row *find_row(const char *name, settings *s) {
    const row *r = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].letter == name[0]) r = &rows[i];
    if (!r || (name[1] && name[1] != ':')) return NULL;
    const bool is_tiny = strcmp(name + 1, ":tiny") == 0;
    *s = is_tiny ? r->tiny : r->own;
    if (r->own.transformer.layers) s->batch = s->transformer.batch;
    if (r->own.lstm.length) s->batch = s->lstm.batch;
    if (!name[1] || is_tiny) return r;
    return r->parse && r->parse(name + 2, s) ? r : NULL;
}

/* ---- a case ---- */

bool bench_case_is_fixed(const bench_case *c) { return !c->row->loss; }

static void drop_inputs(bench_case *c) {
    for (int k = 0; k < c->inputs; k++) {
        wb_free(c->x[k]), wb_free(c->y[k]);
        c->x[k] = c->y[k] = NULL;
    }
}

void bench_case_set_batch(bench_case *c, int64_t batch) {
    drop_inputs(c);
    c->settings.batch = batch;
    wb_scope_open();
    for (int k = 0; k < c->inputs; k++) {
        c->row->input(&c->settings, (uint32_t)k, &c->x[k], &c->y[k]);
        c->x[k] = wb_keep(c->x[k]), c->y[k] = wb_keep(c->y[k]);
    }
    wb_scope_close();
}

int64_t bench_case_batch_size(const bench_case *c) { return c->settings.batch; }

static void setup(bench_case *c) {
    const wb_dtype compute = c->settings.compute == WB_F32 ? 0 : c->settings.compute;
    c->model = c->row->network(&c->settings);
    if (!c->row->loss)
        wb_test_mode(c->model);
    else if (c->row->network == transformer)
        c->optimiser = wb_setup(wb_adamw(.eta = 1e-3, .lambda = 0.01), c->model);
    else
        c->optimiser = wb_setup(wb_adam(.eta = 1e-3), c->model, .compute = compute);
}

/* name without a trailing ",medium", which sets the precision of products of f32. */
static bool take_precision(const char *name, size_t size, char *rest) {
    static const char medium[] = ",medium";
    const size_t length = strlen(name), cut = sizeof medium - 1;
    const bool is_medium = length > cut && strcmp(name + length - cut, medium) == 0;
    (void)snprintf(rest, size, "%.*s", (int)(is_medium ? length - cut : length), name);
    return wb_matmul_precision(is_medium ? "medium" : "highest") == WB_OK;
}

bench_case *bench_case_open(const char *name) {
    settings s;
    char rest[128];
    if (!take_precision(name, sizeof rest, rest)) return NULL;
    const row *r = find_row(rest, &s);
    bench_case *c = r ? calloc(1, sizeof *c) : NULL;
    if (!c) return NULL;
    *c = (bench_case){.row = r, .settings = s, .inputs = r->network ? BENCH_INPUTS : G_INPUTS};
    wb_scope_open();
    if (r->network) setup(c);
    wb_scope_close();
    bench_case_set_batch(c, s.batch);
    if (!wb_failed()) return c;
    bench_case_close(c);
    return NULL;
}

wb_loss_fn *bench_case_loss(const bench_case *c) { return c->row->loss; }

wb_layer *bench_case_model(const bench_case *c) { return c->model; }

wb_optimiser *bench_case_optimiser(const bench_case *c) { return c->optimiser; }

void bench_case_batch(const bench_case *c, int64_t k, wb_batch *batch) {
    *batch = (wb_batch){
        .x = c->x[k % c->inputs], .y = c->y[k % c->inputs], .index = k, .size = c->settings.batch};
}

static void hold(wb_array **place, wb_array *x) {
    wb_free(*place);
    *place = wb_keep(x);
}

static wb_array *train_step(bench_case *c) {
    wb_batch batch;
    bench_case_batch(c, c->steps, &batch);
    return wb_train_step(c->row->loss, c->model, &batch, NULL, c->optimiser);
}

static wb_array *inference_step(bench_case *c, wb_array *x) {
    wb_array *y = wb_apply(c->model, x);
    wb_eval(y);
    return y;
}

void bench_case_step(bench_case *c) {
    const int64_t k = c->steps % c->inputs;
    bench_values_of_step values = {NULL, NULL};
    wb_scope_open();
    if (c->row->step)
        values = c->row->step(&c->settings, c->x[k], c->y[k]);
    else
        values.value = c->row->loss ? train_step(c) : inference_step(c, c->x[k]);
    hold(&c->last, values.value);
    hold(&c->gradient, values.gradient);
    wb_scope_close();
    c->steps++;
}

static void note_nodes(void *context, wb_log_level level, const char *line) {
    long long nodes;
    (void)level;
    if (sscanf(line, "plan: %lld nodes", &nodes) == 1) *(int64_t *)context = nodes;
}

/* They are told while a new plan is made. */
int64_t bench_case_nodes(bench_case *c) {
    int64_t nodes = 1;
    setenv("WEBER_DEBUG", "plan", 1);
    wb_log_to(note_nodes, &nodes);
    bench_case_step(c);
    wb_log_to(NULL, NULL);
    unsetenv("WEBER_DEBUG");
    return nodes;
}

/* ---- results ---- */

static wb_array *add_leaf(void *user, const char *path, wb_array *x) {
    (void)path;
    *(double *)user += bench_sum_of_magnitudes(x);
    return x;
}

bench_result bench_case_result(bench_case *c) {
    bench_result r = {0};
    if (!c->last) return r;
    wb_scope_open();
    if (bench_case_is_fixed(c) && !c->gradient) {
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
