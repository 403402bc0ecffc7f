/* argmax: one item computes one run. */
#include "program/call_source.h"
#include <src/program/call_common.txt.h>

static const char text[] =
    "WB_KERNEL(k_argmax, GROUP)(PARAMETERS) {\n"
    "    WB_GLOBAL const key_t *x = ARGUMENT_0(KEY);\n"
    "    WB_GLOBAL wb_i64 *y = ARGUMENT_1(i64);\n"
    "    EACH_PLACE(line, i, RUNS * OUTER, INNER) {\n"
    "        const integer outer = line / RUNS, first = (line - outer * RUNS) * RUN;\n"
    "        const integer end = first + RUN < SIZE ? first + RUN : SIZE;\n"
    "        const integer row = outer * SIZE * INNER + i;\n"
    "        integer best = first;\n"
    "        order_t largest = ORDER(x[row + first * INNER]);\n"
    "        for (integer s = first + 1; s < end; s++) {\n"
    "            const order_t key = ORDER(x[row + s * INNER]);\n"
    "            best = key > largest ? s : best;\n"
    "            largest = key > largest ? key : largest;\n"
    "        }\n"
    "        y[line * INNER + i] = best;\n"
    "    }\n"
    "}\n";

wb_source *wb_call_render_argmax(const wb_call *call, const wb_dialect *dialect) {
    const wb_index_call *k = &call->index;
    wb_call_source s = wb_call_source_new(call, dialect);
    const int64_t runs = (k->size + k->run - 1) / k->run;
    if (!wb_call_keys(&s, "argmax")) return NULL;
    wb_call_reaches(&s, k->inner * k->size * k->outer);
    wb_call_word(&s, "INNER", k->inner);
    wb_call_word(&s, "SIZE", k->size);
    wb_call_word(&s, "OUTER", k->outer);
    wb_call_word(&s, "RUN", k->run);
    wb_call_word(&s, "RUNS", runs);
    wb_call_launch_items(&s, "k_argmax", k->inner * runs * k->outer, 1);
    return wb_call_source_finish(&s, 2, (const char *const[]){call_common_text, text, NULL});
}
