/* Hints that are added to an error when a file does not fit a model: transposed sizes, names with a
 * prefix, names of PyTorch. */
#include "models/advice.h"

#include <string.h>

#include "formats/flat.h"

/* Two common cases: the weight of PyTorch's Linear is the transpose of Dense's; and GPT-2's weights
 * consist of parts that do not lie along the last dimension. */
const char *wb_advice_on_sizes(const wb_record *r, const wb_array *x) {
    const bool is_cut = r->turn && r->turn->end;
    if (is_cut && r->ndim == x->ndim && wb_count_sizes(r->ndim, r->sizes) == wb_count(x))
        return ", which are as many numbers: perhaps the part is to be cut along another "
               "dimension: add `along 0` in the rename table";
    const bool is_transpose = r->ndim == 2 && x->ndim == 2 && !r->turn &&
                              r->sizes[0] == x->sizes[1] && r->sizes[1] == x->sizes[0];
    return is_transpose
               ? ", which is its transpose: `transpose` in a rename table (.rename) turns it"
               : "";
}

/* Adds a hint if all names begin with the same additional word, such as DataParallel's
 * "module.". */
static bool advise_on_prefix(const wb_record *root, const char *path) {
    for (int64_t i = 0; root->names && i < root->count; i++) {
        if (!wb_record_is_container(root->children[i]) || !wb_record_below(root->children[i], path))
            continue;
        wb_error_add("there is \"%.60s.%.80s\": the row %.60s.** -> ** in a rename table (.rename) "
                     "removes the prefix",
                     root->names[i], path, root->names[i]);
        return true;
    }
    return false;
}

/* ---- PyTorch ---- */

/* The record that holds the first array below r, and its path; NULL: there is no array.
 * *counts_from_0: the path has a part "0", as only PyTorch's lists have. */
static const wb_record *first_module(const wb_record *r, char path[WB_PATH_BYTES],
                                     bool *counts_from_0) {
    size_t used = 0;
    *counts_from_0 = false;
    while (r->names && r->count && r->children[0]->kind != WB_RECORD_ARRAY) {
        const int length = snprintf(path + used, WB_PATH_BYTES - used, "%s.", r->names[0]);
        if (length < 0 || (used += (size_t)length) >= WB_PATH_BYTES) return NULL;
        *counts_from_0 = *counts_from_0 || strcmp(r->names[0], "0") == 0;
        r = r->children[0];
    }
    path[used] = 0;
    return r->names && r->count ? r : NULL;
}

static bool says_torch(const wb_file *file) {
    const wb_record *format = file->metadata ? wb_record_below(file->metadata, "format") : NULL;
    return format && format->kind == WB_RECORD_TEXT && strcmp(format->text, "pt") == 0;
}

static bool is_torch(const wb_source *s) {
    char unused[WB_PATH_BYTES];
    bool counts_from_0 = false;
    for (int64_t i = 0; s->root->names && i < s->root->count && !counts_from_0; i++)
        counts_from_0 =
            strcmp(s->root->names[i], "0") == 0 ||
            (first_module(s->root->children[i], unused, &counts_from_0) && counts_from_0);
    return counts_from_0 || says_torch(s->file);
}

void wb_advise_on_torch(const wb_source *source) {
    if (is_torch(source))
        wb_error_add("the names look like PyTorch's: make the model by wb_parse, and map the names "
                     "by a rename table, .rename (docs/files.md)");
}

/* The table's row for the place, where the file's first module has an array of its name. */
void wb_advise_on_name(const wb_source *source, const char *path, const wb_array *place) {
    char module[WB_PATH_BYTES];
    bool unused;
    if (advise_on_prefix(source->root, path) || !is_torch(source)) return;
    const char *last = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
    const wb_record *holder = first_module(source->root, module, &unused);
    const wb_record *r = holder ? wb_record_below(holder, last) : NULL;
    const bool is_turned = r && r->ndim == 2 && place->ndim == 2 &&
                           r->sizes[0] == place->sizes[1] && r->sizes[1] == place->sizes[0];
    if (r)
        wb_error_add("the names look like PyTorch's: map them by a rename table, .rename, with the "
                     "row \"%.60s%.30s -> %.40s%s\" and one for each other array (docs/files.md)",
                     module, last, path, is_turned ? " transpose" : "");
    else
        wb_error_add("the names look like PyTorch's: map them to the model's by a rename table, "
                     ".rename (docs/files.md)");
}
