/* The program of `make demo`: a convolutional network in the manner of LeNet learns Fashion-MNIST.
 *
 * A twentieth of the training images is kept for validation; the learning rate rises for half an
 * epoch and falls along a cosine; the model of the best epoch is the one that is tested. Prints the
 * model, the device, how long the first step took, a line per epoch, and at the end the confusion
 * matrix, images per second and peak memory; draws the curves as a picture; saves the model, loads
 * it into a fresh one and tests that. The same seed gives the same accuracy to the last digit.
 * demo --help lists the options.
 *
 * A device's kernels are compiled when they are first wanted, which may take seconds, and kept on
 * disk: the first step is timed by itself, and counts in no images per second. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <weber.h>

enum { CLASSES = 10, MOST_EPOCHS = 1000 };

typedef struct options {
    uint64_t seed;
    int epochs, batchsize, threads;
    const char *device, *data, *picture, *model;
} options;

typedef struct history {
    double loss[MOST_EPOCHS], accuracy[MOST_EPOCHS]; /* of training, of validation */
    double began, seconds; /* of the epoch; in all, with validation, without the first step */
    int64_t images, all;   /* since the epoch began; in all, in those seconds */
    int64_t batches, batchsize;
    int epochs, best;
} history;

typedef struct confusion {
    int64_t count[CLASSES][CLASSES]; /* [right answer][model's answer] */
} confusion;

/* ---- options ---- */

static int usage(FILE *file, const char *program) {
    fprintf(file,
            "usage: %s [options]\n"
            "  --seed N       first weights, order of the images, dropout (default 1)\n"
            "  --epochs N     passes over the training images (default 5)\n"
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

typedef struct parts {
    wb_loader *training, *validation, *test;
} parts;

static wb_loader *loader(wb_array *images, wb_array *labels, bool trains, const wb_device *device,
                         const options *o) {
    return wb_loader_new(.x = wb_reshape(images, 28, 28, 1, -1), .y = labels, .map = to_numbers,
                         .seed = o->seed, .device = device, .shuffle = trains,
                         .batchsize = trains ? o->batchsize : 500);
}

static parts load(const wb_device *device, const options *o) {
    parts p = {NULL, NULL, NULL};
    wb_array *images, *labels, *x[2], *y[2];
    wb_scope_open();
    if (wb_fashion_mnist(WB_SPLIT_TRAIN, &images, &labels) == WB_OK &&
        wb_splitobs(images, x, 0.95) == WB_OK && wb_splitobs(labels, y, 0.95) == WB_OK) {
        p.training = loader(x[0], y[0], true, device, o);
        p.validation = loader(x[1], y[1], false, device, o);
    }
    if (wb_fashion_mnist(WB_SPLIT_TEST, &images, &labels) == WB_OK)
        p.test = loader(images, labels, false, device, o);
    wb_scope_close();
    return p;
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* ---- training and testing ---- */

/* The share of right answers; all answers are counted in table. */
static double test(wb_layer *model, wb_loader *data, confusion *table) {
    wb_scope_open();
    const wb_evaluation e = wb_evaluate(model, data);
    if (e.status == WB_OK) wb_read(e.confusion, table->count, sizeof table->count);
    wb_scope_close();
    return e.accuracy;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool note_first(const wb_train_event *event) {
    history *h = event->user;
    if (event->epoch > 1 || event->step > 1) return true;
    printf("first step: %.2f s\n", now() - h->began);
    fflush(stdout);
    h->images = -h->batchsize, h->began = now();
    return true;
}

static bool note(const wb_train_event *event) {
    history *h = event->user;
    const double seconds = now() - h->began, accuracy = event->validation->accuracy;
    h->loss[event->epoch - 1] = event->mean_loss, h->accuracy[event->epoch - 1] = accuracy;
    h->epochs = (int)event->epoch, h->best = (int)event->best_epoch;
    h->images += h->batches * h->batchsize;
    h->all += h->images, h->seconds += seconds;
    printf("epoch %d: loss %.4f, validation loss %.4f, accuracy %.2f%%, %.1f s, %.0f images/s\n",
           h->epochs, event->mean_loss, event->validation->loss, 100 * accuracy, seconds,
           (double)h->images / seconds);
    fflush(stdout);
    h->images = 0, h->began = now();
    return true;
}

static void run(wb_layer *model, const parts *p, const options *o, history *h) {
    const int64_t batches = wb_loader_length(p->training), rising = (batches + 1) / 2;
    wb_optimiser *adam = wb_setup(wb_adam(), model);
    wb_schedule *rate = wb_schedule_sequence(
        {wb_schedule_warm_up(1e-4, 2e-3, rising), rising},
        {wb_schedule_cosine(2e-3, 1e-5, batches * o->epochs - rising), INT64_MAX});
    h->batches = batches, h->batchsize = o->batchsize, h->began = now();
    wb_train(loss, model, p->training, adam, .epochs = o->epochs, .progress = true,
             .validation = p->validation, .schedules = {{"eta", rate, NULL}}, .keep_best = true,
             .on_step = note_first, .on_epoch = note, .user = h);
    wb_free(rate), wb_free(adam);
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

static void report(const options *o, const history *h, const confusion *table, double accuracy) {
    struct rusage usage;
    print_confusion(table);
    getrusage(RUSAGE_SELF, &usage);
    printf("\ntest accuracy %.2f%% of the model of epoch %d, after %d epochs and %.1f s of "
           "training: %.0f images/s\n",
           100 * accuracy, h->best, h->epochs, h->seconds, (double)h->all / h->seconds);
    printf("peak memory %.0f MB\n", (double)usage.ru_maxrss * 1024e-6);
    char message[512];
    if (wb_plot_curves(o->picture, {"training loss", h->loss, h->epochs, false},
                       {"validation accuracy", h->accuracy, h->epochs, true}) == WB_OK)
        printf("curves: %s\n", o->picture);
    else
        wb_take_error(message, sizeof message), printf("no picture: %s\n", message);
}

/* Into a file and back into a fresh model, which has to give the same answers. */
static bool save_and_load(wb_layer *model, wb_loader *data, const options *o,
                          const confusion *table) {
    static confusion again;
    wb_layer *fresh = lenet();
    wb_move(wb_device_of(model), fresh);
    if (wb_save(o->model, model) == WB_OK && wb_load(o->model, fresh) == WB_OK) {
        const double accuracy = test(fresh, data, &again);
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
                 .epochs = 5,
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
    const parts p = load(device, &o);
    if (!wb_failed()) run(model, &p, &o, &h);
    const double accuracy = wb_failed() ? 0 : test(model, p.test, &table);
    if (!wb_failed()) report(&o, &h, &table, accuracy);
    const bool same = wb_failed() || save_and_load(model, p.test, &o, &table);
    wb_free(p.training), wb_free(p.validation), wb_free(p.test), wb_free(model);
    return wb_report("demo") || !same;
}
