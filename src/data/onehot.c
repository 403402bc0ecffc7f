/* Labels as one-hot arrays, and back. Labels are read and checked on the host: one that is out of
 * range would otherwise become a column of zeros and go unnoticed. */
#include <weber/data.h>
#include <weber/ops.h>

#include "array/use.h"
#include "ops/ops.h"

static bool check_labels(wb_array *labels, int64_t classes) {
    const void *values = wb_read_begin(labels);
    if (!values) return false;
    const int64_t count = wb_count(labels);
    int64_t place = 0;
    while (place < count) {
        const int64_t label = wb_whole_in(values, wb_dtype_of(labels), place);
        if (label < 0 || label >= classes) break;
        place++;
    }
    if (place < count)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "onehot: label %lld at place %lld of %s is outside 0 to %lld",
                      (long long)wb_whole_in(values, wb_dtype_of(labels), place), (long long)place,
                      wb_text_of(labels), (long long)classes - 1);
    wb_read_end(labels);
    return place == count;
}

wb_array *wb_onehot(wb_array *labels, int64_t classes) {
    if (!wb_may_use_array("onehot", labels, "labels")) return NULL;
    if (wb_dtype_is_float(wb_dtype_of(labels)))
        return wb_fail_null(WB_ERROR_DTYPE,
                            "onehot: labels must be integers, got %s: wb_cast(labels, WB_I32)",
                            wb_dtype_name(wb_dtype_of(labels)));
    if (classes < 1)
        return wb_fail_null(WB_ERROR_ARGUMENT, "onehot: there must be at least one class, got %lld",
                            (long long)classes);
    if (wb_count(labels) && !check_labels(labels, classes)) return NULL;
    return wb_eq(wb_iota(WB_I64, 0, classes), wb_unsqueeze(labels, 0));
}

wb_array *wb_onecold(wb_array *y) {
    if (!wb_may_use_array("onecold", y, "y")) return NULL;
    return wb_squeeze(wb_argmax(y, 0), 0);
}
