/* merge_runs: an item for each position. */
#include "program/call_source.h"
#include "program/render.h"
#include <src/program/call_common.txt.h>
#include <src/program/call_sort.txt.h>

/* What keys are compared as. */
static const char *order_of(wb_dtype dtype) {
    return dtype == WB_F64 || dtype == WB_I64 ? "i64" : "i32";
}

wb_source *wb_call_render_sort(const wb_call *call, const wb_dialect *dialect) {
    const wb_index_call *k = &call->index;
    const wb_dtype dtype = (wb_dtype)k->index_dtype;
    const char *name = wb_dtype_name(dtype);
    if (dtype == WB_F64 && !dialect->has_f64) return (void)wb_fail_f64("sorting", dialect), NULL;
    wb_call_source s = wb_call_source_new(call, dialect);
    wb_call_reaches(&s, k->inner * k->size * k->outer);
    wb_text_add(&s.lines, "#define KEY %s\n#define key_t wb_%s\n", name, name);
    wb_text_add(&s.lines, "#define ORDER(x) wb_order_%s(x)\n", name);
    wb_text_add(&s.lines, "#define order_t wb_%s\n", order_of(dtype));
    wb_call_word(&s, "INNER", k->inner);
    wb_call_word(&s, "SIZE", k->size);
    wb_call_word(&s, "OUTER", k->outer);
    wb_call_word(&s, "RUN", k->run);
    wb_call_word(&s, "MERGED", k->merged);
    wb_call_launch_items(&s, "k_merge", k->inner * k->size * k->outer,
                         dialect->is_serial ? 4096 : 1);
    return wb_call_source_finish(&s, 3,
                                 (const char *const[]){call_common_text, call_sort_text, NULL});
}
