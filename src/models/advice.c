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
static bool advise_on_prefix(const wb_source *source, const char *path) {
    const wb_record *root = source->root;
    for (int64_t i = 0; root->names && !source->is_renamed && i < root->count; i++) {
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

static bool says_torch(const wb_file *file) {
    const wb_record *format = file->metadata ? wb_record_below(file->metadata, "format") : NULL;
    return format && format->kind == WB_RECORD_TEXT && strcmp(format->text, "pt") == 0;
}

/* Whether a path to a first array has a part "0", as only PyTorch's lists have. */
static bool counts_from_0(const wb_record *r) {
    for (; r->names && r->count; r = r->children[0])
        if (strcmp(r->names[0], "0") == 0) return true;
    return false;
}

static bool is_torch(const wb_source *s) {
    if (s->is_renamed) return false;
    if (counts_from_0(s->root) || s->file->order_count || says_torch(s->file)) return true;
    for (int64_t i = 0; s->root->names && i < s->root->count; i++)
        if (counts_from_0(s->root->children[i])) return true;
    return false;
}

void wb_advise_on_torch(const wb_source *source) {
    if (is_torch(source))
        wb_error_add("the names look like PyTorch's: make the model by wb_parse, and load it by "
                     "wb_load with .from = \"torch\" (docs/files.md)");
}

void wb_advise_on_name(const wb_source *source, const char *path) {
    if (source->is_renamed)
        wb_error_add("these are the names after the rename table");
    else if (!advise_on_prefix(source, path) && is_torch(source))
        wb_error_add("the names look like PyTorch's: .from = \"torch\" finds out which is which "
                     "(docs/files.md)");
}

void wb_advise_on_keys(const wb_file *file) {
    char names[300];
    size_t used = 0;
    for (int64_t i = 0; i < file->part_count && used + 100 < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.80s", i ? ", " : "",
                                 file->parts[i]);
    if (file->part_count > 1)
        wb_error_add("the file has several dictionaries of arrays, %s: .key chooses one", names);
}
