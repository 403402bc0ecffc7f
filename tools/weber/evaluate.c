/* `weber evaluate MODEL --data=DATA`: how good a saved classifier is. */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber.h>

#include "dataset.h"
#include "tool.h"

static const char help[] =
    "usage: weber evaluate MODEL --data=DATA [options]\n"
    "\n"
    "Builds the classifier from the file MODEL, runs it over the data and prints loss, accuracy "
    "and "
    "confusion matrix.\n"
    "Images reach it as (width, height, channels, N), bytes as numbers from 0 to 1; a model that "
    "does not take them\n"
    "gets them flat. Labels are whole numbers from 0, or one-hot.\n"
    "\n"
    "  --data=DATA       fashion-mnist, from WEBER_DATA or where Debian's dataset-fashion-mnist "
    "puts it, or a file:\n"
    "                    .npz, .bson, .safetensors with arrays x and y (or x_test and y_test), "
    ".npy, IDX, .csv, .tsv\n"
    "  --labels=FILE     the labels that belong to an IDX or .npy file\n"
    "  --x=NAME          the observations' name in the file\n"
    "  --y=NAME          the labels' name in the file; of a CSV their column (default the last "
    "one)\n"
    "  --layout=LETTERS  what the dimensions of x are: NCHW (PyTorch's, WHCN in Weber and Flux), "
    "NHWC (TensorFlow's),\n"
    "                    NHW (grey), HWCN, ...; N is the slowest in memory at either end\n"
    "  --scale=NUMBER    x is multiplied by this (default 1/255 for bytes, else 1)\n"
    "  --separator=C     between the fields of a CSV (default a comma; \\t is a tab)\n"
    "  --no-header       the first line of a CSV has values\n"
    "  --split=NAME      test (default) or train\n"
    "  --key=NAME        the model's key in the file (default model)\n"
    "  --structure=TEXT  the layers of a file of arrays alone, by their names or in a list: "
    "\"Chain(Dense(784 => 10))\"\n"
    "  --loss=NAME       logitcrossentropy or crossentropy (default: the second where the model "
    "gives probabilities)\n"
    "  --batch=N         observations at a time (default 500)\n"
    "  --device=NAME     where to compute: CPU, OpenCL, OpenCL:1, ... (default: a GPU, else the "
    "CPU)\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 for a command line that is not understood.\n";

enum { MOST_SHOWN = 20 }; /* classes of a confusion matrix */

typedef struct settings {
    dataset_desc data;
    const char *model, *key, *structure, *loss, *device;
    int64_t batchsize;
} settings;

/* The sizes that the model takes and gives. */
typedef struct manner {
    bool is_probability, is_flat;
    int64_t classes;
} manner;

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

/* A number for each class of the data. */
static bool has_classes(wb_array *y, const dataset *set, const settings *s, manner *m) {
    const int64_t wanted = set->classes;
    m->classes = wb_size(y, 0);
    if (wb_ndim(y) == 2 && (wanted ? m->classes == wanted : m->classes > 1)) return true;
    (void)fprintf(stderr, "weber evaluate: %s gives (%" PRId64 "%s) for an %s, not ", s->model,
                  m->classes, wb_ndim(y) == 2 ? "" : ", ...",
                  set->is_image ? "image" : "observation");
    if (wanted)
        (void)fprintf(stderr, "%" PRId64 " numbers\n", wanted);
    else
        (void)fputs("a number for each class\n", stderr);
    return false;
}

/* Removes advice that only a program in C could follow. */
static void cut_advice(char *message) {
    static const char *const beginnings[] = {"; wb_", "; sizes must be (width,"};
    for (int i = 0; i < 2; i++) {
        char *advice = strstr(message, beginnings[i]);
        if (advice) *advice = 0;
    }
}

/* Finds the sizes that the model takes and gives, from the first batch. */
static bool explore(wb_layer *model, wb_loader *data, const dataset *set, const settings *s,
                    manner *m) {
    wb_batch batch;
    char message[1024];
    wb_scope_open();
    wb_array *y = wb_first(data, &batch) ? answer(model, batch.x, false) : NULL;
    if (!y && wb_error_status() == WB_ERROR_SHAPE) {
        (void)wb_take_error(message, sizeof message);
        cut_advice(message);
        y = answer(model, batch.x, m->is_flat = true);
        wb_clear_error();
        if (!y) {
            (void)fputs("weber evaluate: ", stderr);
            put_plain_to(stderr, message, sizeof message);
            (void)fprintf(stderr, "%s\n",
                          set->ndim > 2 && !s->data.layout
                              ? "; --layout=NHWC and the like say what the dimensions of x are"
                              : "");
        }
    }
    const bool is_fine = y && has_classes(y, set, s, m);
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

static void print_row(const dataset *set, const int64_t *answers, int64_t right, int64_t classes) {
    int64_t all = 0;
    dataset_put_class(set, right, 12, 12);
    for (int64_t c = 0; c < classes; c++) {
        (void)printf("%7" PRId64, answers[c]);
        all += answers[c];
    }
    if (all)
        (void)printf("  %6.2f%%\n", 100.0 * (double)answers[right] / (double)all);
    else
        (void)printf("        -\n"); /* the class has no observation */
}

static void print_matrix(const dataset *set, wb_array *confusion, int64_t classes) {
    int64_t count[MOST_SHOWN * MOST_SHOWN]; /* [right answer][model's answer] */
    if (classes > MOST_SHOWN) {
        (void)printf("\nno confusion matrix of %" PRId64 " classes: more than %d\n", classes,
                     MOST_SHOWN);
        return;
    }
    if (wb_read(confusion, count, (size_t)(classes * classes) * sizeof *count) != WB_OK) return;
    (void)printf("\nright answer down, model's answer across; share of right answers\n%12s", "");
    for (int64_t c = 0; c < classes; c++) dataset_put_class(set, c, 5, 7);
    (void)printf("\n");
    for (int64_t right = 0; right < classes; right++)
        print_row(set, count + right * classes, right, classes);
}

static void print_results(const settings *s, const manner *m, const dataset *set,
                          const wb_evaluation *e) {
    const bool is_named = strcmp(s->data.data, "fashion-mnist") == 0;
    (void)printf("%s: %" PRId64 " %s%s%s of ", s->model, e->observations,
                 is_named ? s->data.split : "", is_named ? " " : "",
                 e->observations == 1 ? set->is_image ? "image" : "observation"
                 : set->is_image      ? "images"
                                      : "observations");
    put_plain(s->data.data);
    (void)printf("\nloss %.6f (%s)\n", isnan(e->loss) ? (double)NAN : e->loss,
                 m->is_probability ? "crossentropy" : "logitcrossentropy");
    (void)printf("accuracy %.2f%%\n", 100.0 * e->accuracy);
    print_matrix(set, e->confusion, m->classes);
}

static bool evaluate(wb_layer *model, wb_loader *data, const dataset *set, const settings *s) {
    manner m = {.is_flat = false};
    if (!explore(model, data, set, s, &m)) return false;
    wb_scope_open();
    const wb_evaluation e = wb_evaluate(model, data, .loss = loss, .predict = predict, .user = &m,
                                        .task = WB_TASK_CLASSES);
    if (e.status == WB_OK) print_results(s, &m, set, &e);
    wb_scope_close();
    return e.status == WB_OK;
}

/* The model over the data, which has been opened. */
static bool run_over(dataset *set, const settings *s, const wb_device *device) {
    const char *key = s->key || s->structure ? s->key : "model";
    wb_layer *model = wb_load_model_as(s->model, key, s->structure);
    wb_loader *data = model
                          ? wb_loader_new(.x = set->x, .y = set->y, .map = dataset_prepare,
                                          .user = set, .device = device, .batchsize = s->batchsize)
                          : NULL;
    if (data && wb_device_of(model) != device) (void)wb_move(device, model);
    if (data) (void)wb_test_mode(model);
    const bool is_done = data && !wb_failed() && evaluate(model, data, set, s);
    wb_free(data), wb_free(model);
    return is_done;
}

static int run(const settings *s) {
    dataset set = {.names = NULL};
    const wb_device *device = s->device ? wb_get_device_named(s->device) : wb_get_device();
    wb_scope_open();
    const bool is_done = device && dataset_open(&set, &s->data) && run_over(&set, s, device);
    wb_scope_close();
    dataset_close(&set);
    return wb_report("weber evaluate") || !is_done;
}

/* ---- the command line ---- */

static bool is_one_of(const char *name, const char *a, const char *b) {
    return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

/* "0.5" or "1/255"; 0: neither. */
static double read_scale(const char *text) {
    char *end;
    const double number = strtod(text, &end);
    const double divisor = *end == '/' ? strtod(end + 1, &end) : 1;
    const bool is_number = !*end && end != text && isfinite(number) && isfinite(divisor);
    return is_number && divisor != 0 ? number / divisor : 0;
}

/* A character, or \t for a tab; 0: neither. */
static char read_separator(const char *text) {
    if (strcmp(text, "\\t") == 0) return '\t';
    return strlen(text) == 1 ? *text : 0;
}

static bool read_batch(const char *text, int64_t *size) {
    char *end;
    *size = strtoll(text, &end, 10);
    return *text && !*end && *size > 0 && *size <= 60000;
}

/* The first have a text. */
enum option_number {
    DATA,
    LABELS,
    X,
    Y,
    LAYOUT,
    SCALE,
    SEPARATOR,
    SPLIT,
    KEY,
    STRUCTURE,
    LOSS,
    BATCH,
    DEVICE,
    TEXTS,
    NO_HEADER = TEXTS,
    HELP
};

static const struct option options[] = {{"data", required_argument, NULL, DATA},
                                        {"labels", required_argument, NULL, LABELS},
                                        {"x", required_argument, NULL, X},
                                        {"y", required_argument, NULL, Y},
                                        {"layout", required_argument, NULL, LAYOUT},
                                        {"scale", required_argument, NULL, SCALE},
                                        {"separator", required_argument, NULL, SEPARATOR},
                                        {"split", required_argument, NULL, SPLIT},
                                        {"key", required_argument, NULL, KEY},
                                        {"structure", required_argument, NULL, STRUCTURE},
                                        {"loss", required_argument, NULL, LOSS},
                                        {"batch", required_argument, NULL, BATCH},
                                        {"device", required_argument, NULL, DEVICE},
                                        {"no-header", no_argument, NULL, NO_HEADER},
                                        {"help", no_argument, NULL, HELP},
                                        {NULL, 0, NULL, 0}};

/* 0, or 2 with what is wrong. */
static int check(const char *const texts[TEXTS]) {
    int64_t size;
    const char *separator = texts[SEPARATOR], *loss = texts[LOSS];
    if (!texts[DATA]) return tool_wrong(help, "evaluate: --data is missing");
    if (!*texts[DATA])
        return tool_wrong(help, "evaluate: --data must be fashion-mnist or a file, got nothing");
    if (!is_one_of(texts[SPLIT], "test", "train"))
        return tool_wrong(help, "evaluate: --split must be test or train, got %s", texts[SPLIT]);
    if (loss && !is_one_of(loss, "crossentropy", "logitcrossentropy"))
        return tool_wrong(
            help, "evaluate: --loss must be crossentropy or logitcrossentropy, got %s", loss);
    if (!read_batch(texts[BATCH], &size))
        return tool_wrong(help, "evaluate: --batch must be a whole number from 1 to 60000, got %s",
                          texts[BATCH]);
    if (texts[SCALE] && read_scale(texts[SCALE]) == 0)
        return tool_wrong(help, "evaluate: --scale must be a number such as 0.5 or 1/255, got %s",
                          texts[SCALE]);
    if (separator && !read_separator(separator))
        return tool_wrong(help,
                          "evaluate: --separator must be one character, as in --separator=';', or "
                          "\\t, got \"%s\"",
                          separator);
    return 0;
}

static void take_texts(settings *s, const char *const texts[TEXTS]) {
    const char *separator = texts[SEPARATOR];
    (void)read_batch(texts[BATCH], &s->batchsize);
    s->data.data = texts[DATA], s->data.labels = texts[LABELS];
    s->data.x = texts[X], s->data.y = texts[Y];
    s->data.layout = texts[LAYOUT], s->data.split = texts[SPLIT];
    s->data.scale = texts[SCALE] ? read_scale(texts[SCALE]) : 0;
    s->data.separator = separator ? read_separator(separator) : 0;
    s->key = texts[KEY], s->structure = texts[STRUCTURE];
    s->loss = texts[LOSS], s->device = texts[DEVICE];
}

int tool_evaluate(int count, char **arguments) {
    settings s = {.batchsize = 0};
    const char *texts[TEXTS] = {[SPLIT] = "test", [BATCH] = "500"};
    for (int i; (i = getopt_long(count + 1, arguments - 1, "", options, NULL)) != -1;) {
        if (i == HELP || i < 0 || i > HELP) return tool_help(help, i == HELP);
        if (i == NO_HEADER)
            s.data.no_header = true;
        else
            texts[i] = optarg;
    }
    if (count + 1 - optind != 1)
        return tool_wrong_count(help, "evaluate", "one file MODEL", count + 1 - optind);
    if (check(texts)) return 2;
    take_texts(&s, texts);
    s.model = s.data.model = arguments[optind - 1];
    return run(&s);
}
