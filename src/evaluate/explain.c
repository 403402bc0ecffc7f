/* Prints a planned graph, line by line, with WEBER_DEBUG=plan.
 *
 * Reads the graph and the plan. */
#include <stdio.h>
#include <stdlib.h>

#include "base/switch.h"
#include "evaluate/plan.h"

/* Read for each plan, because a program may change it. */
bool wb_plan_is_explained(void) { return wb_has_word(getenv("WEBER_DEBUG"), "plan"); }

static void explain_unit(const wb_graph *g, const wb_unit *u) {
    char line[1024];
    size_t used = 0;
    for (int64_t m = 0; m < u->member_count && used < sizeof line - 64; m++) {
        const wb_value *v = &g->values[u->members[m]];
        const wb_placement *place = &g->places.of[u->members[m]];
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s%s", m ? " " : "",
                                 wb_op_name((wb_op)v->op),
                                 place->holder >= 0 ? ">"
                                 : place->stored    ? "!"
                                                    : "");
    }
    const wb_value *last = &g->values[u->members[u->member_count - 1]];
    static const char *const kinds[] = {"program", "call", "copy"};
    wb_log_always("plan: %s over %s%s: %s%s", kinds[u->kind],
                  wb_sizes_text(u->kind == WB_UNIT_PROGRAM ? u->ndim : last->ndim,
                                u->kind == WB_UNIT_PROGRAM ? u->sizes : last->sizes),
                  u->phases > 1 ? " in phases" : "", line,
                  u->epilogue >= 0 ? ", the next one fused to its end" : "");
    const char *apart = g->units.of[u->members[0]].apart;
    if (u->kind == WB_UNIT_PROGRAM && apart)
        wb_log_always("plan:     a new kernel because: %s", apart);
    if (u->epilogue >= 0) explain_unit(g, &g->units.at[u->epilogue]);
}

void wb_plan_explain(const wb_graph *g, const wb_plan *plan) {
    wb_log_always("plan: %lld nodes, %lld values, %lld units, %d commands, %d leaves, %d outputs, "
                  "%lld bytes of workspace, %d missed donations; ! is stored, > in place of a copy",
                  (long long)g->tape->count, (long long)g->count, (long long)g->order.count,
                  plan->command_count, g->places.leaf_count, g->places.output_count,
                  (long long)plan->workspace_bytes, g->places.missed_donations);
    for (int64_t i = 0; i < g->order.count; i++) explain_unit(g, &g->units.at[g->order.units[i]]);
}
