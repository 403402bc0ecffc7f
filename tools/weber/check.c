/* What a model makes of an input beside what another library made of it: --check of `weber
 * convert`. */
#include <stdio.h>
#include <string.h>

#include <weber/model.h>
#include <weber/state.h>

#include "tool.h"

enum { MOST_INPUTS = 8 };

static bool has(const wb_record *root, const char *name) {
    for (int64_t i = 0; i < wb_record_count(root); i++)
        if (wb_record_name(root, i) && strcmp(wb_record_name(root, i), name) == 0) return true;
    return false;
}

/* The file's arrays x, or x1, x2, ...; returns how many there are. */
static int read_inputs(const wb_file *file, wb_array **inputs) {
    const wb_record *root = wb_file_root(file);
    int count = 0;
    if (has(root, "x")) inputs[count++] = wb_file_array(file, "x");
    while (count < MOST_INPUTS) {
        char name[16];
        (void)snprintf(name, sizeof name, "x%d", count + 1);
        if (!has(root, name)) break;
        inputs[count++] = wb_file_array(file, name);
    }
    return count;
}

static double largest(wb_array *x) { return x ? wb_item(wb_maximum(wb_abs(x))) : 0; }

/* "(3, 4)" */
static const char *sizes_of(const wb_array *x, char text[], size_t size) {
    size_t used = (size_t)snprintf(text, size, "(");
    for (int d = 0; d < wb_ndim(x) && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? ", " : "",
                                 (long long)wb_sizes(x)[d]);
    if (used < size) (void)snprintf(text + used, size - used, ")");
    return text;
}

/* Arrays of other sizes might broadcast. */
static bool has_same_sizes(const char *path, const wb_array *y, const wb_array *wanted) {
    char own[200], theirs[200];
    if (strcmp(sizes_of(y, own, sizeof own), sizes_of(wanted, theirs, sizeof theirs)) == 0)
        return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the model's result has sizes %s, but y has %s", path, own,
                  theirs);
    return false;
}

/* Prints the difference; false if it is more than rounding explains. */
static bool compare(const char *path, wb_array *y, wb_array *wanted) {
    if (!has_same_sizes(path, y, wanted)) return false;
    wb_array *difference = wb_sub(wb_cast(y, WB_F64), wb_cast(wanted, WB_F64));
    const double most = largest(difference), values = largest(wanted);
    if (wb_failed()) return false;
    (void)printf("# %s: the largest difference is %.2g, the largest value of y %.2g\n", path, most,
                 values);
    if (most <= 1e-3 * (values > 1 ? values : 1)) return true;
    (void)fprintf(stderr,
                  "weber convert: %s: the model's results are not y; settings that are not in the "
                  "file may differ (padding, stride, eps, which gelu), and x and y must be of the "
                  "module in eval mode\n",
                  path);
    return false;
}

bool tool_check(const char *path, wb_layer *model) {
    wb_array *inputs[MOST_INPUTS], *results[WB_MOST_ARRAYS];
    wb_file *file = wb_open(path);
    const int count = file ? read_inputs(file, inputs) : 0;
    wb_array *wanted = file ? wb_file_array(file, "y") : NULL;
    if (file && count == 0)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: --check needs arrays x (or x1, x2) and y", path);
    const bool is_applied =
        wanted && count && !wb_failed() && wb_apply_many(model, count, inputs, 1, results) > 0;
    const bool good = is_applied && compare(path, results[0], wanted);
    wb_free(file);
    return good;
}
