/* Running sums: one item computes one row. */
#include "program/call_source.h"
#include <src/program/call_common.txt.h>

static const char text[] = "WB_KERNEL(k_cumsum, GROUP)(PARAMETERS) {\n"
                           "    WB_GLOBAL const stored_t *x = ARGUMENT_0(stored);\n"
                           "    WB_GLOBAL stored_t *y = ARGUMENT_1(stored);\n"
                           "    EACH_PLACE(o, i, OUTER, INNER) {\n"
                           "        const integer first = o * INNER * SIZE + i;\n"
                           "        real_t sum = 0;\n"
                           "        for (integer s = 0; s < SIZE; s++) {\n"
                           "            sum += LOAD(x, first + s * INNER);\n"
                           "            STORE(y, first + s * INNER, sum);\n"
                           "        }\n"
                           "    }\n"
                           "}\n";

wb_source *wb_call_render_cumsum(const wb_call *call, const wb_dialect *dialect) {
    const wb_index_call *k = &call->index;
    wb_call_source s = wb_call_source_new(call, dialect);
    wb_call_reaches(&s, k->inner * k->size * k->outer);
    wb_call_word(&s, "INNER", k->inner);
    wb_call_word(&s, "SIZE", k->size);
    wb_call_word(&s, "OUTER", k->outer);
    wb_call_launch_items(&s, "k_cumsum", k->inner * k->outer, 1);
    return wb_call_source_finish(&s, 2, (const char *const[]){call_common_text, text, NULL});
}
