/* The program of `make demo`: a convolutional network in the manner of LeNet learns Fashion-MNIST.
 *
 * Prints the model, the device, a line per epoch, and at the end the confusion matrix, examples per
 * second and peak memory; draws the curves as a picture; saves the model, loads it into a fresh one
 * and tests that. The same seed gives the same accuracy to the last digit. demo --help lists the
 * options. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <weber.h>

enum { CLASSES = 10, MOST_EPOCHS = 1000 };

typedef struct options {
    uint64_t seed;
    int epochs, batchsize, threads;
    const char *device, *data, *picture, *model;
} options;

typedef struct history {
    double loss[MOST_EPOCHS], accuracy[MOST_EPOCHS];
    double seconds; /* of training alone */
} history;

typedef struct confusion {
    int64_t count[CLASSES][CLASSES]; /* [right answer][model's answer] */
} confusion;

/* ---- options ---- */

static int usage(FILE *file, const char *program) {
    fprintf(file,
            "usage: %s [options]\n"
            "  --seed N       first weights, order of the images, dropout (default 1)\n"
            "  --epochs N     passes over the 60000 training images (default 6)\n"
            "  --batch N      images per step (default 64)\n"
            "  --device NAME  where to compute: OpenCL, OpenCL:1, CPU, ... (default: a GPU, else "
            "the CPU)\n"
            "  --threads N    threads of the CPU (default: all cores)\n"
            "  --data DIR     folder with Fashion-MNIST (default: WEBER_DATA, then Debian's)\n"
            "  --picture PATH where the curves go, .png or .svg (default build/demo.png)\n"
            "  --model PATH   where the model goes: .bson, .safetensors, .npz (default "
            "build/demo.bson)\n"
            "  --help         this list\n",
            program);
    return file == stderr ? 2 : 0;
}

/* A whole number from least to most, or the program ends. */
static long long number(const char *name, const char *text, long long least, long long most) {
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (*text && !*end && value >= least && value <= most) return value;
    fprintf(stderr, "demo: --%s wants a number from %lld to %lld, not \"%s\"\n", name, least, most,
            text);
    exit(2);
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, options *o) {
    static const struct option list[] = {
        {"seed", required_argument, NULL, 's'},    {"epochs", required_argument, NULL, 'e'},
        {"batch", required_argument, NULL, 'b'},   {"device", required_argument, NULL, 'd'},
        {"threads", required_argument, NULL, 't'}, {"data", required_argument, NULL, 'f'},
        {"picture", required_argument, NULL, 'p'}, {"model", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    for (int letter; (letter = getopt_long(argc, argv, "", list, NULL)) != -1;) switch (letter) {
        case 's':
            o->seed = (uint64_t)number("seed", optarg, 0, INT64_MAX);
            break;
        case 'e':
            o->epochs = (int)number("epochs", optarg, 1, MOST_EPOCHS);
            break;
        case 'b':
            o->batchsize = (int)number("batch", optarg, 1, 60000);
            break;
        case 't':
            o->threads = (int)number("threads", optarg, 1, 1024);
            break;
        case 'd':
            o->device = optarg;
            break;
        case 'f':
            o->data = optarg;
            break;
        case 'p':
            o->picture = optarg;
            break;
        case 'm':
            o->model = optarg;
            break;
        case 'h':
            return usage(stdout, argv[0]);
        default:
            return usage(stderr, argv[0]);
        }
    if (optind < argc) return usage(stderr, argv[0]);
    return -1;
}

/* ---- model and data ---- */

static wb_layer *lenet(void) {
    return wb_chain(wb_conv({3, 3}, 1, 16, wb_relu, .pad = {1, 1}), wb_maxpool({2, 2}),
                    wb_conv({3, 3}, 16, 32, wb_relu, .pad = {1, 1}), wb_maxpool({2, 2}),
                    wb_flatten(), wb_dense(7 * 7 * 32, 128, wb_relu), wb_dropout(.p = 0.3),
                    wb_dense(128, CLASSES));
}

/* bytes 0 .. 255 to numbers 0 .. 1, batch by batch: the images stay bytes in memory */
static void to_numbers(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_mul_number(wb_cast(batch->x, WB_F32), 1.0 / 255);
}

static wb_loader *loader(wb_split split, const wb_device *device, const options *o) {
    wb_array *images, *labels;
    wb_loader *data = NULL;
    wb_scope_open();
    if (wb_fashion_mnist(split, &images, &labels) == WB_OK)
        data = wb_loader_new(.x = wb_reshape(images, 28, 28, 1, -1), .y = labels, .map = to_numbers,
                             .seed = o->seed, .device = device,
                             .batchsize = split == WB_SPLIT_TRAIN ? o->batchsize : 500,
                             .shuffle = split == WB_SPLIT_TRAIN);
    wb_scope_close();
    return data;
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* ---- training and testing ---- */

/* The mean loss of an epoch. */
static double train(wb_layer *model, wb_loader *data, wb_optimiser *adam, wb_progress *bar) {
    double sum = 0;
    int64_t count = 0;
    wb_batch batch = {0};
    while (wb_next(data, &batch)) {
        wb_gradients *grads;
        wb_array *l = wb_withgradient(loss, model, &batch, NULL, &grads);
        wb_update(adam, model, grads);
        sum += wb_item(l) * (double)batch.size;
        count += batch.size;
        wb_progress_step(bar, l);
    }
    return count ? sum / (double)count : 0;
}

/* The share of right answers; all answers are counted in table. */
static double test(wb_layer *model, wb_loader *data, confusion *table) {
    wb_scope_open();
    const wb_evaluation e = wb_evaluate(model, data);
    if (e.status == WB_OK) wb_read(e.confusion, table->count, sizeof table->count);
    wb_scope_close();
    return e.accuracy;
}

static void run(wb_layer *model, wb_loader *data, wb_loader *held_out, const options *o, history *h,
                confusion *table) {
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 1e-3), model);
    for (int epoch = 0; epoch < o->epochs && !wb_failed(); epoch++) {
        char what[64];
        snprintf(what, sizeof what, "epoch %d/%d", epoch + 1, o->epochs);
        if (epoch > 0 && epoch == o->epochs * 2 / 3)
            wb_adjust(adam, 3e-4); /* smaller steps at the end */
        wb_progress *bar =
            wb_progress_begin(.what = what, .total = wb_loader_length(data), .items = o->batchsize);
        h->loss[epoch] = train(model, data, adam, bar);
        const double seconds = wb_progress_end(bar);
        h->seconds += seconds;
        h->accuracy[epoch] = test(model, held_out, table);
        if (wb_failed()) break;
        printf("%s: loss %.4f, test accuracy %.2f%%, %.1f s, %.0f images/s\n", what, h->loss[epoch],
               100 * h->accuracy[epoch], seconds, 60000 / seconds);
        fflush(stdout);
    }
    wb_free(adam);
}

/* ---- the report ---- */

static void print_confusion(const confusion *table) {
    printf("\nconfusion matrix: right answer down, model's answer across\n%12s", "");
    for (int c = 0; c < CLASSES; c++) printf("%6.5s", wb_fashion_mnist_class(c));
    printf("\n");
    for (int r = 0; r < CLASSES; r++) {
        printf("%12s", wb_fashion_mnist_class(r));
        for (int c = 0; c < CLASSES; c++) printf("%6lld", (long long)table->count[r][c]);
        printf("\n");
    }
}

static void report(const options *o, const history *h, const confusion *table) {
    struct rusage usage;
    print_confusion(table);
    getrusage(RUSAGE_SELF, &usage);
    printf("\ntest accuracy %.2f%% after %d epochs and %.1f s of training: %.0f images/s\n",
           100 * h->accuracy[o->epochs - 1], o->epochs, h->seconds,
           60000.0 * o->epochs / h->seconds);
    printf("peak memory %.0f MB\n", (double)usage.ru_maxrss * 1024e-6);
    char message[512];
    if (wb_plot_curves(o->picture, {"training loss", h->loss, o->epochs, false},
                       {"test accuracy", h->accuracy, o->epochs, true}) == WB_OK)
        printf("curves: %s\n", o->picture);
    else
        wb_take_error(message, sizeof message), printf("no picture: %s\n", message);
}

/* Into a file and back into a fresh model, which has to give the same answers. */
static bool save_and_load(wb_layer *model, wb_loader *held_out, const options *o,
                          const confusion *table) {
    static confusion again;
    wb_layer *fresh = lenet();
    wb_move(wb_device_of(model), fresh);
    if (wb_save(o->model, model) == WB_OK && wb_load(o->model, fresh) == WB_OK) {
        const double accuracy = test(fresh, held_out, &again);
        printf("model: %s; loaded into a fresh one: test accuracy %.2f%%\n", o->model,
               100 * accuracy);
    }
    wb_free(fresh);
    if (wb_failed() || memcmp(table, &again, sizeof again) == 0) return true;
    fprintf(stderr, "demo: the loaded model gives other answers than the saved one\n");
    return false;
}

int main(int argc, char **argv) {
    static history h;
    static confusion table;
    options o = {.seed = 1,
                 .epochs = 6,
                 .batchsize = 64,
                 .picture = "build/demo.png",
                 .model = "build/demo.bson"};
    const int status = parse(argc, argv, &o);
    if (status >= 0) return status;
    if (o.data) setenv("WEBER_DATA", o.data, 1);
    if (o.threads) wb_set_threads(o.threads);
    wb_seed(o.seed);

    const wb_device *device =
        o.device ? wb_get_device_named(o.device) : wb_get_device(.verbose = true);
    if (!device) return wb_report("demo");
    wb_layer *model = lenet();
    wb_show(model);
    printf("\ndevice: %s (%s), %d threads; seed %llu\n\n", wb_device_name(device),
           wb_device_properties(device).name, wb_threads(), (unsigned long long)o.seed);
    fflush(stdout);
    wb_move(device, model);
    wb_loader *data = loader(WB_SPLIT_TRAIN, device, &o),
              *held_out = loader(WB_SPLIT_TEST, device, &o);
    if (!wb_failed()) run(model, data, held_out, &o, &h, &table);
    if (!wb_failed()) report(&o, &h, &table);
    const bool same = wb_failed() || save_and_load(model, held_out, &o, &table);
    wb_free(held_out), wb_free(data), wb_free(model);
    return wb_report("demo") || !same;
}
