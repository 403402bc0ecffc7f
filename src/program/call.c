#include "program/call.h"

#include "base/error.h"
#include "program/call_source.h"
#include "program/render.h"

wb_source *wb_render_call(const wb_call *call, const wb_program *epilogue, int split,
                          const wb_dialect *dialect) {
    (void)split;
    if (epilogue || wb_check_dialect(dialect) != WB_OK) return NULL;
    const bool moves = call->kind == WB_CALL_gather; /* which computes nothing */
    if (call->dtype == WB_F64 && !dialect->has_f64 && !moves)
        return wb_fail_null(WB_ERROR_UNSUPPORTED, "%s has no f64 on this device", dialect->name);
    switch (call->kind) {
    case WB_CALL_matmul:
        return wb_call_render_matmul(call, dialect);
    case WB_CALL_conv_forward:
    case WB_CALL_conv_data:
    case WB_CALL_conv_filter:
        return wb_call_render_conv(call, dialect);
    case WB_CALL_gather:
    case WB_CALL_scatter_add:
        return wb_call_render_index(call, dialect);
    default:
        return wb_call_render_window(call, dialect);
    }
}
