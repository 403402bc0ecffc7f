/* Walks over trees whose records may be shared. */
#include "formats/record.h"

/* Recursive, as below: no tree is deeper than WB_RECORD_DEPTH. */
static bool walk(wb_record *r, wb_record_visit *visit, void *context) {
    if (r->number) return true;
    r->number = 1;
    if (!visit(r, context)) return false;
    for (int64_t i = 0; i < r->count; i++)
        if (!walk(r->children[i], visit, context)) return false;
    return true;
}

void wb_record_forget_numbers(wb_record *r) {
    if (!r->number) return;
    r->number = 0;
    for (int64_t i = 0; i < r->count; i++) wb_record_forget_numbers(r->children[i]);
}

bool wb_record_walk(wb_record *root, wb_record_visit *visit, void *context) {
    const bool is_good = walk(root, visit, context);
    wb_record_forget_numbers(root);
    return is_good;
}

static bool count_array(wb_record *r, void *context) {
    int64_t *count = context;
    *count += r->kind == WB_RECORD_ARRAY;
    return true;
}

int64_t wb_record_arrays(wb_record *root) {
    int64_t count = 0;
    (void)wb_record_walk(root, count_array, &count);
    return count;
}
