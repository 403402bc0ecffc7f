/* Renders a call by the function that its row in ops.def names, after checking what the dialect
 * lacks. */
#include "program/call.h"

#include "base/error.h"
#include "program/call_source.h"
#include "program/render.h"

static bool copies(const wb_call *call) { return wb_call_row_of(call->kind).uses & WB_CALL_COPIES; }

/* The text of attention computes in f32 and f64, and stores what it computes in. */
static bool is_half(const wb_call *call) { return call->dtype == WB_F16 || call->dtype == WB_BF16; }

bool wb_call_has_text(const wb_call *call, const wb_dialect *dialect) {
    if (call->dtype == WB_F64 && !dialect->has_f64 && !copies(call)) return false;
    return wb_call_row_of(call->kind).shape != WB_SHAPE_attention ||
           (!is_half(call) && wb_call_fits_attention(call, dialect));
}

wb_source *wb_render_call(const wb_call *call, const wb_program *epilogue, int split,
                          const wb_dialect *dialect) {
    static const char *const names[] = {
#define WB_CALL(name, shape, x, y, uses, text, doc) #name,
#include <weber/ops.def>
    };
    (void)split;
    if (epilogue || wb_check_dialect(dialect) != WB_OK) return NULL;
    if (call->dtype == WB_F64 && !dialect->has_f64 && !copies(call))
        return (void)wb_fail_f64(names[call->kind], dialect), NULL;
    static wb_call_render_fn *const rows[] = {
#define WB_CALL(name, shape, x, y, uses, text, doc) wb_call_render_##text,
#include <weber/ops.def>
    };
    return rows[call->kind](call, dialect);
}
