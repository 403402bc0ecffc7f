/* The data that `weber evaluate` reads: Fashion-MNIST, arrays of a file, IDX, tables of text; with
 * the layout of images and a scale. */
#include "dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/plain.h"
#include "tool.h"

static bool refuse(const char *file, const char *what) {
    (void)fputs("weber evaluate: ", stderr);
    put_plain_to(stderr, file, strlen(file));
    (void)fprintf(stderr, "%s\n", what);
    return false;
}

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), bytes = strlen(end);
    return length > bytes && strcmp(text + length - bytes, end) == 0;
}

static bool is_any_of(const char *path, int count, const char *const *ends) {
    for (int i = 0; i < count; i++)
        if (ends_with(path, ends[i])) return true;
    return false;
}

/* ---- files of arrays ---- */

/* "x" or "x_test", where no other name is given. */
static wb_array *array_named(const wb_file *file, const char *given, const char *name,
                             const char *split) {
    char longer[64];
    const wb_record *root = wb_file_root(file), *r = NULL;
    if (wb_record_kind_of(root) == WB_RECORD_ARRAY) return wb_record_array(file, root);
    (void)snprintf(longer, sizeof longer, "%s_%s", name, split);
    for (int64_t i = 0; !given && !r && i < wb_record_count(root); i++)
        if (wb_record_name(root, i) && strcmp(wb_record_name(root, i), longer) == 0)
            r = wb_record_at(root, i);
    if (!r) r = wb_record_get(root, given ? given : name);
    return r ? wb_record_array(file, r) : NULL;
}

static wb_array *read_array(const char *path, const char *given, const char *name,
                            const char *split) {
    static const char *const trees[] = {".npz", ".npy", ".bson", ".safetensors"};
    if (!is_any_of(path, 4, trees)) return wb_read_idx(path);
    wb_file *file = wb_open(path);
    wb_array *x = file ? array_named(file, given, name, split) : NULL;
    wb_free(file);
    return x;
}

/* A 1 in each column, and else zeros. */
static bool is_onehot(wb_array *y) {
    wb_array *is_bit = wb_or(wb_eq(y, wb_number(0)), wb_eq(y, wb_number(1)));
    wb_array *ones = wb_sum_dims(wb_cast(y, WB_F32), 0);
    return wb_item(wb_and(wb_all(is_bit), wb_all(wb_eq(ones, wb_number(1))))) != 0;
}

static bool refuse_labels(const char *path, wb_array *y) {
    const bool is_real = wb_dtype_is_float(wb_dtype_of(y));
    char text[400];
    int used = snprintf(text, sizeof text,
                        ": labels must be whole numbers (N), or one-hot: as many rows as there are "
                        "classes, with a 1 in each column; got %s (",
                        wb_dtype_name(wb_dtype_of(y)));
    for (int d = 0; d < wb_ndim(y); d++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%" PRId64, d ? ", " : "",
                         wb_size(y, d));
    (void)snprintf(text + used, sizeof text - (size_t)used, ")%s",
                   is_real ? "; in NumPy y.astype(\"int64\") makes whole numbers" : "");
    return refuse(path, text);
}

/* Whole numbers (N), also (1, N), or one-hot. */
static bool take_labels(dataset *set, const char *path, wb_array *y) {
    if (!y) return false;
    const bool is_real = wb_dtype_is_float(wb_dtype_of(y));
    if (!is_real && wb_ndim(y) == 2 && wb_size(y, 0) == 1) y = wb_reshape(y, -1);
    const bool are_numbers = !is_real && wb_ndim(y) == 1;
    if (!are_numbers && (wb_ndim(y) != 2 || wb_size(y, 0) == 1 || !is_onehot(y)))
        return refuse_labels(path, y);
    set->y = wb_cast(y, are_numbers ? WB_I64 : WB_F32);
    return set->y != NULL;
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool open_arrays(dataset *set, const dataset_desc *d) {
    if (is_folder(d->data)) return refuse(d->data, " is a folder; --data needs a file");
    const char *labels = d->labels ? d->labels : d->data;
    static const char *const with_labels[] = {".npz", ".bson", ".safetensors"};
    if (!d->labels && !is_any_of(d->data, 3, with_labels))
        return refuse(d->data,
                      " has no labels: --labels=FILE says where they are; the only data set by "
                      "name is fashion-mnist");
    set->x = read_array(d->data, d->x, "x", d->split);
    return set->x && take_labels(set, labels, read_array(labels, d->y, "y", d->split));
}

/* ---- Fashion-MNIST ---- */

static bool open_fashion(dataset *set, const dataset_desc *d) {
    const bool is_train = strcmp(d->split, "train") == 0;
    if (wb_fashion_mnist(is_train ? WB_SPLIT_TRAIN : WB_SPLIT_TEST, &set->x, &set->y) != WB_OK)
        return false;
    set->classes = 10;
    set->names = calloc(1, 256);
    for (int i = 0; i < 10 && set->names; i++)
        (void)strcat(strcat(set->names, wb_fashion_mnist_class(i)), "\n");
    return set->names != NULL;
}

/* ---- tables ---- */

/* The vocabulary that was saved with the model and gives texts their numbers; NULL: none. */
static char *saved_vocabulary(const char *model, const char *column) {
    wb_file *file = wb_open(model);
    const char *text = file ? wb_file_text(file, column) : NULL;
    char *copy = text ? strdup(text) : NULL;
    wb_free(file);
    wb_clear_error();
    return copy;
}

/* The texts of this table alone, in order. */
static char *own_vocabulary(const wb_csv *table, const char *column, int64_t classes) {
    size_t bytes = 1, used = 0;
    for (int64_t i = 0; i < classes; i++) bytes += strlen(wb_csv_label(table, column, i)) + 1;
    char *text = calloc(1, bytes);
    for (int64_t i = 0; i < classes && text; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s\n", wb_csv_label(table, column, i));
    return text;
}

static int64_t count_lines(const char *text) {
    int64_t count = 0;
    for (; *text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : text + strlen(text)) count++;
    return count;
}

/* Whole numbers are classes; texts are numbered. */
static wb_array *labels_of(dataset *set, const wb_csv *table, const char *column,
                           const char *model) {
    wb_array *y = wb_csv_column(table, column);
    if (y) return y;
    wb_clear_error();
    set->names = saved_vocabulary(model, column);
    if (set->names) {
        set->classes = count_lines(set->names);
        return wb_csv_labels_in(table, column, set->names);
    }
    y = wb_csv_labels(table, column, &set->classes);
    if (y) set->names = own_vocabulary(table, column, set->classes);
    return set->names ? y : NULL;
}

static wb_array *features_of(const wb_csv *table, const char *column) {
    const int64_t columns = wb_csv_columns(table);
    const char **names = calloc((size_t)columns + 1, sizeof *names);
    int count = 0;
    for (int64_t i = 0; i < columns && names; i++)
        if (strcmp(wb_csv_name(table, i), column) != 0) names[count++] = wb_csv_name(table, i);
    wb_array *x = count ? wb_csv_matrix(table, count, names) : NULL;
    free(names);
    return x;
}

/* What the library says to a program in C, as the options of this one. */
static bool say_for_tool(void) {
    static const char *const words[][2] = {
        {"; .missing_is_nan makes it NaN", "; give it a value, or leave the line out"},
        {"; wb_csv_labels reads names", "; names may be in the column of labels alone, --y=NAME"},
        {"; .missing says which text means no value", ""},
        {"perhaps .separator = ", "perhaps --separator="}};
    tool_say_error("evaluate", words, sizeof words / sizeof *words);
    return false;
}

/* A table of one column: the separator may be another one. */
static bool refuse_one_column(const wb_csv *table, const char *path) {
    char text[120] = " must have two columns or more, of numbers and of labels";
    const char *name = wb_csv_name(table, 0), *other = name ? strpbrk(name, ",;\t|") : NULL;
    if (other)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "; perhaps --separator='%s'",
                       *other == '\t' ? "\\t" : (const char[]){*other, 0});
    return refuse(path, text);
}

static bool is_table(const char *path) {
    static const char *const ends[] = {".csv", ".tsv", ".csv.gz", ".tsv.gz"};
    return is_any_of(path, 4, ends);
}

static bool open_table(dataset *set, const dataset_desc *d) {
    const bool has_tabs = ends_with(d->data, ".tsv") || ends_with(d->data, ".tsv.gz");
    const char separator = has_tabs ? '\t' : ',';
    if (d->labels) return refuse(d->data, ": the labels of a CSV are one of its columns, --y=NAME");
    wb_csv *table = wb_read_csv(d->data, .separator = d->separator ? d->separator : separator,
                                .header = !d->no_header);
    const char *last = wb_csv_name(table, wb_csv_columns(table) - 1), *column = d->y ? d->y : last;
    if (table && wb_csv_columns(table) > 1) {
        wb_array *y = labels_of(set, table, column, d->model);
        set->x = y ? features_of(table, column) : NULL;
        if (set->x) (void)take_labels(set, d->data, y);
    } else if (table) {
        (void)refuse_one_column(table, d->data);
    }
    wb_free(table);
    return wb_failed() ? say_for_tool() : set->y != NULL;
}

/* ---- layouts ---- */

/* The dimensions of x in the order of memory, the fastest first. N is the slowest, so it says which
 * end that is: NCHW is WHCN. False: it is no layout. */
static bool read_layout(const char *text, char letters[WB_MAX_DIMS + 1]) {
    const size_t count = strlen(text);
    if (count < 2 || count > 5 || (*text != 'N' && text[count - 1] != 'N')) return false;
    for (size_t i = 0; i < count; i++) {
        letters[i] = text[*text == 'N' ? count - 1 - i : i];
        if (!strchr("WHDCN", letters[i]) || strchr(text, letters[i]) != strrchr(text, letters[i]))
            return false;
    }
    letters[count] = 0;
    return true;
}

/* Bytes (W, H, N) are grey images. */
static bool take_layout(dataset *set, const dataset_desc *d) {
    const bool is_bytes = wb_dtype_of(set->x) == WB_U8;
    const bool is_grey = is_bytes && wb_ndim(set->x) == 3;
    const char *text = d->layout ? d->layout : is_grey ? "WHN" : NULL;
    char letters[WB_MAX_DIMS + 1];
    int count = 0;
    set->ndim = wb_ndim(set->x);
    set->scale = d->scale != 0 ? d->scale : is_bytes ? 1.0 / 255 : 1;
    set->is_image = is_bytes && (set->ndim == 3 || set->ndim == 4);
    if (!text) return true;
    if (!read_layout(text, letters))
        return refuse(text, ": a layout has N, for observations, at one end, and W, H, D and C, "
                            "such as NCHW, NHWC or WHCN");
    if ((int)strlen(letters) != set->ndim) {
        (void)fprintf(stderr, "weber evaluate: the layout %s has %zu dimensions, x has %d\n", text,
                      strlen(letters), set->ndim);
        return false;
    }
    for (const char *wanted = "WHDCN"; *wanted; wanted++) {
        const char *place = strchr(letters, *wanted);
        if (place) set->order[count++] = place - letters;
    }
    set->add_channel = !strchr(letters, 'C');
    return true;
}

/* ---- all of it ---- */

bool dataset_open(dataset *set, const dataset_desc *d) {
    *set = (dataset){.scale = 1};
    const bool is_open = strcmp(d->data, "fashion-mnist") == 0 ? open_fashion(set, d)
                         : is_table(d->data)                   ? open_table(set, d)
                                                               : open_arrays(set, d);
    return is_open && take_layout(set, d);
}

void dataset_close(dataset *set) { free(set->names); }

void dataset_prepare(wb_batch *batch, void *user) {
    const dataset *set = user;
    wb_array *x = batch->x;
    const wb_dtype dtype = wb_dtype_of(x); /* f64 is NumPy's default, and seldom meant */
    if (set->scale != 1 || dtype == WB_BOOL || dtype == WB_F64)
        x = wb_mul_number(wb_cast(x, WB_F32), set->scale);
    if (set->order[0] || set->order[1]) x = wb_permute_make(x, set->ndim, set->order);
    if (set->add_channel) {
        int64_t sizes[WB_MAX_DIMS] = {0};
        for (int d = 0; d < set->ndim; d++) sizes[d + (d == set->ndim - 1)] = wb_size(x, d);
        sizes[set->ndim - 1] = 1;
        x = wb_reshape_make(x, set->ndim + 1, sizes);
    }
    batch->x = x;
}

void dataset_put_class(const dataset *set, int64_t label, int letters, int width) {
    char number[24];
    const char *text = set->names;
    for (int64_t i = 0; text && i < label; i++)
        text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    (void)snprintf(number, sizeof number, "%" PRId64, label);
    if (!text || !*text) text = number;
    const char *end = text;
    int count = 0;
    for (; *end && *end != '\n' && count < letters; count++) {
        const int bytes = wb_letter_bytes((const unsigned char *)end);
        end += bytes ? bytes : 1;
    }
    (void)printf("%*s", width > count ? width - count : 0, "");
    put_plain_to(stdout, text, (size_t)(end - text));
}
