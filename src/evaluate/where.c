/* wb_where: the positions of true elements. Their number depends on values, so the condition is
 * read. */
#include "base/memory.h"
#include "ops/build.h"

static int64_t count_true(const uint8_t *bits, int64_t count) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += bits[i] != 0;
    return found;
}

/* A column of places for each. */
static void list_true(const wb_array *condition, const uint8_t *bits, int64_t *places) {
    int64_t at[WB_MAX_DIMS] = {0};
    const int ndim = condition->ndim;
    for (int64_t i = 0; i < wb_count(condition); i++) {
        for (int d = 0; bits[i] && d < ndim; d++) *places++ = at[d];
        for (int d = 0; d < ndim && ++at[d] == condition->sizes[d]; d++) at[d] = 0;
    }
}

static wb_array *places_of(const wb_array *condition, const uint8_t *bits) {
    const int64_t found = count_true(bits, wb_count(condition));
    int64_t *places = wb_alloc_list(condition->ndim * found + 1, sizeof *places);
    if (!places) return NULL;
    list_true(condition, bits, places);
    wb_array *y = wb_from(WB_I64, places, condition->ndim, found);
    wb_release(places);
    return wb_move_array(wb_node_device(condition), y, WB_ELTYPE_PRESERVE);
}

wb_array *wb_where(wb_array *condition) {
    if (!wb_is_usable(condition)) return wb_refuse("where", condition, "condition");
    if (wb_is_tracing("wb_where")) return NULL;
    wb_array *is_true = condition->dtype == WB_BOOL ? condition : NE(condition, NUM(0));
    const uint8_t *bits = is_true ? wb_read_begin(is_true) : NULL;
    if (!bits) return NULL;
    wb_array *y = places_of(is_true, bits);
    wb_read_end(is_true);
    return y;
}
