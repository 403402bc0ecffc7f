/* `weber evaluate MODEL --data fashion-mnist`: how good a saved classifier is. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber.h>

#include "tool.h"

static const char help[] =
    "usage: weber evaluate MODEL --data=fashion-mnist [options]\n"
    "\n"
    "Builds the model from the file, runs it over the images and prints loss, accuracy and "
    "confusion matrix. Images are\n"
    "28 x 28 numbers from 0 to 1, as (28, 28, 1, N) or, for a model that begins with a Dense "
    "layer, (784, N).\n"
    "\n"
    "  --data=NAME       fashion-mnist, from WEBER_DATA or where Debian's dataset-fashion-mnist "
    "puts it\n"
    "  --split=NAME      test (default) or train\n"
    "  --key=NAME        the model's key in the file (default model)\n"
    "  --structure=TEXT  the layers of a file of arrays alone: \"Chain(Dense(784 => 10))\"\n"
    "  --loss=NAME       logitcrossentropy or crossentropy (default: the second where the model "
    "gives probabilities)\n"
    "  --batch=N         images at a time (default 500)\n"
    "  --device=NAME     where to compute: CPU, OpenCL, OpenCL:1, ... (default: a GPU, else the "
    "CPU)\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 for a command line that is not understood.\n";

enum { CLASSES = 10 };

typedef struct settings {
    const char *model, *data, *split, *key, *structure, *loss, *device;
    int64_t batchsize;
} settings;

/* What the model wants and gives. */
typedef struct manner {
    bool is_probability, is_flat;
} manner;

/* ---- the data ---- */

/* Bytes 0 .. 255 to numbers 0 .. 1. */
static void to_numbers(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_mul_number(wb_cast(batch->x, WB_F32), 1.0 / 255);
}

static wb_loader *open_data(const settings *s, const wb_device *device) {
    const bool is_train = strcmp(s->split, "train") == 0;
    wb_array *images, *labels;
    wb_loader *data = NULL;
    wb_scope_open();
    if (wb_fashion_mnist(is_train ? WB_SPLIT_TRAIN : WB_SPLIT_TEST, &images, &labels) == WB_OK)
        data = wb_loader_new(.x = wb_reshape(images, 28, 28, 1, -1), .y = labels, .map = to_numbers,
                             .device = device, .batchsize = s->batchsize);
    wb_scope_close();
    return data;
}

/* ---- the model on a batch ---- */

static wb_array *answer(wb_layer *model, wb_array *x, bool is_flat) {
    return wb_apply(model, is_flat ? wb_flatten_batch(x) : x);
}

/* Whether each column is a distribution. */
static bool is_probability(wb_array *y) {
    wb_array *one = wb_ones(WB_F32, 1, wb_size(y, 1));
    return wb_item(wb_minimum(y)) >= 0 &&
           wb_approx(wb_cpu(wb_sum_dims(wb_cast(y, WB_F32), 0)), one, 0, 1e-3, NULL, 0);
}

/* What the model wants and gives, from the first batch. */
static bool explore(wb_layer *model, wb_loader *data, const settings *s, manner *m) {
    wb_batch batch;
    char message[1024];
    wb_scope_open();
    wb_array *y = wb_first(data, &batch) ? answer(model, batch.x, false) : NULL;
    if (!y && wb_error_status() == WB_ERROR_SHAPE) {
        (void)wb_take_error(message, sizeof message);
        y = answer(model, batch.x, m->is_flat = true);
        wb_clear_error();
        if (!y) {
            (void)fputs("weber evaluate: ", stderr);
            put_plain_to(stderr, message, sizeof message);
            (void)fputc('\n', stderr);
        }
    }
    const bool is_fine = y && wb_ndim(y) == 2 && wb_size(y, 0) == CLASSES;
    if (y && !is_fine)
        (void)fprintf(stderr,
                      "weber evaluate: %s gives (%" PRId64 "%s) for an image, not %d numbers\n",
                      s->model, wb_size(y, 0), wb_ndim(y) == 2 ? "" : ", ...", CLASSES);
    if (is_fine)
        m->is_probability = s->loss ? strcmp(s->loss, "crossentropy") == 0 : is_probability(y);
    wb_scope_close();
    return is_fine && !wb_failed();
}

static wb_array *predict(wb_layer *model, const wb_batch *batch, void *user) {
    return answer(model, batch->x, ((const manner *)user)->is_flat);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *y = predict(model, batch, user);
    return ((const manner *)user)->is_probability ? wb_crossentropy(y, batch->y)
                                                  : wb_logitcrossentropy(y, batch->y);
}

/* ---- the report ---- */

static void print_matrix(wb_array *confusion) {
    int64_t count[CLASSES][CLASSES]; /* [right answer][model's answer] */
    if (wb_read(confusion, count, sizeof count) != WB_OK) return;
    (void)printf("\nright answer down, model's answer across; share of right answers\n%12s", "");
    for (int c = 0; c < CLASSES; c++) (void)printf("%7.5s", wb_fashion_mnist_class(c));
    (void)printf("\n");
    for (int right = 0; right < CLASSES; right++) {
        int64_t all = 0;
        (void)printf("%12s", wb_fashion_mnist_class(right));
        for (int c = 0; c < CLASSES; c++) {
            (void)printf("%7" PRId64, count[right][c]);
            all += count[right][c];
        }
        (void)printf("  %6.2f%%\n", all ? 100.0 * (double)count[right][right] / (double)all : 0.0);
    }
}

static void print_results(const settings *s, const manner *m, const wb_evaluation *e) {
    (void)printf("%s: %" PRId64 " %s images of %s\n", s->model, e->observations, s->split, s->data);
    (void)printf("loss %.6f (%s)\n", e->loss,
                 m->is_probability ? "crossentropy" : "logitcrossentropy");
    (void)printf("accuracy %.2f%%\n", 100.0 * e->accuracy);
    print_matrix(e->confusion);
}

static bool evaluate(wb_layer *model, wb_loader *data, const settings *s) {
    manner m = {.is_flat = false};
    if (!explore(model, data, s, &m)) return false;
    wb_scope_open();
    const wb_evaluation e = wb_evaluate(model, data, .loss = loss, .predict = predict, .user = &m);
    if (e.status == WB_OK) print_results(s, &m, &e);
    wb_scope_close();
    return true;
}

static int run(const settings *s) {
    const wb_device *device = s->device ? wb_get_device_named(s->device) : wb_get_device();
    const char *key = s->key || s->structure ? s->key : "model";
    wb_layer *model = device ? wb_load_model_as(s->model, key, s->structure) : NULL;
    wb_loader *data = model ? open_data(s, device) : NULL;
    if (data && wb_device_of(model) != device) (void)wb_move(device, model);
    if (data) (void)wb_test_mode(model);
    const bool is_done = data && !wb_failed() && evaluate(model, data, s);
    wb_free(data), wb_free(model);
    return wb_report("weber evaluate") || !is_done;
}

/* ---- the command line ---- */

static bool is_one_of(const char *name, const char *a, const char *b) {
    return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

static bool is_understood(const settings *s) {
    return s->data && strcmp(s->data, "fashion-mnist") == 0 &&
           is_one_of(s->split, "test", "train") && s->batchsize > 0 && s->batchsize <= 60000 &&
           (!s->loss || is_one_of(s->loss, "crossentropy", "logitcrossentropy"));
}

int tool_evaluate(int count, char **arguments) {
    static const struct option options[] = {{"data", required_argument, NULL, 'd'},
                                            {"split", required_argument, NULL, 's'},
                                            {"key", required_argument, NULL, 'k'},
                                            {"loss", required_argument, NULL, 'l'},
                                            {"structure", required_argument, NULL, 't'},
                                            {"batch", required_argument, NULL, 'b'},
                                            {"device", required_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    settings s = {.split = "test", .batchsize = 500};
    const char *batch = "500";
    for (int letter; (letter = getopt_long(count + 1, arguments - 1, "", options, NULL)) != -1;) {
        const char **place = letter == 'd'   ? &s.data
                             : letter == 's' ? &s.split
                             : letter == 'k' ? &s.key
                             : letter == 't' ? &s.structure
                             : letter == 'l' ? &s.loss
                             : letter == 'b' ? &batch
                             : letter == 'v' ? &s.device
                                             : NULL;
        if (!place) return tool_help(help, letter == 'h');
        *place = optarg;
    }
    char *end;
    s.batchsize = strtoll(batch, &end, 10);
    if (*end || count + 1 - optind != 1 || !is_understood(&s)) return tool_help(help, false);
    s.model = arguments[optind - 1];
    return run(&s);
}
