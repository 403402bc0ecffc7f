#include "program/call.h"

#include "base/error.h"
#include "program/call_source.h"
#include "program/render.h"

/* What has no text. */
wb_source *wb_call_render_none(const wb_call *call, const wb_dialect *dialect) {
    (void)call, (void)dialect;
    return NULL;
}

wb_source *wb_render_call(const wb_call *call, const wb_program *epilogue, int split,
                          const wb_dialect *dialect) {
    (void)split;
    if (epilogue || wb_check_dialect(dialect) != WB_OK) return NULL;
    const bool copies = wb_call_row_of(call->kind).uses & WB_CALL_COPIES;
    if (call->dtype == WB_F64 && !dialect->has_f64 && !copies)
        return wb_fail_null(WB_ERROR_UNSUPPORTED, "%s has no f64 on this device", dialect->name);
    static wb_call_render_fn *const rows[] = {
#define WB_CALL(name, shape, x, y, uses, text, doc) wb_call_render_##text,
#include <weber/ops.def>
    };
    return rows[call->kind](call, dialect);
}
