/* merge_runs: one item computes one position. */
#include "program/call_source.h"
#include <src/program/call_common.txt.h>
#include <src/program/call_sort.txt.h>

wb_source *wb_call_render_sort(const wb_call *call, const wb_dialect *dialect) {
    const wb_index_call *k = &call->index;
    wb_call_source s = wb_call_source_new(call, dialect);
    if (!wb_call_keys(&s, "sorting")) return NULL;
    wb_call_reaches(&s, k->inner * k->size * k->outer);
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
