/* Integer labels. */
#include "losses/labels.h"

#include <stdio.h>

#include "base/error.h"
#include "ops/ops.h"

bool wb_is_integer(const wb_array *y) {
    return y->dtype == WB_I32 || y->dtype == WB_I64 || y->dtype == WB_U8;
}

bool wb_are_labels(const wb_array *p, const wb_array *y, int dim) {
    if (!wb_is_integer(y) || y->ndim != p->ndim - 1) return false;
    for (int i = 0; i < y->ndim; i++)
        if (y->sizes[i] != p->sizes[i + (i >= dim)]) return false;
    return true;
}

bool wb_check_labels(const char *name, const wb_array *y, int64_t classes, int64_t ignore) {
    const int64_t count = wb_count(y);
    for (int64_t i = 0; i < count; i++) {
        const int64_t label = wb_whole_at(y, i);
        if ((label >= 0 && label < classes) || label == ignore) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: label %lld at position %lld is out of range: %lld classes, 0 to %lld",
                      name, (long long)label, (long long)i, (long long)classes,
                      (long long)classes - 1);
        return false;
    }
    return true;
}

wb_array *wb_labels_guard(const char *name, wb_array *labels, int64_t classes) {
    char what[64];
    (void)snprintf(what, sizeof what, "%s: label", name);
    return wb_index_guard(what, labels, classes);
}

/* The maximum of numbers with a NaN among them is NaN. */
wb_array *wb_is_answer(wb_array *p) {
    wb_array *largest = wb_maximum_dims(p, 0);
    return wb_eq(largest, largest);
}
