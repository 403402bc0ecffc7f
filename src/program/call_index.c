/* gather and scatter_add. */
#include "program/call_source.h"
#include <src/program/call_common.txt.h>
#include <src/program/call_index.txt.h>

enum { SERIAL_PARTS = 16, PARTS = 1024 };

static void add_lists(wb_call_source *s, const wb_index_call *i) {
    const int64_t most = s->dialect->is_serial ? SERIAL_PARTS : PARTS;
    const int64_t part = wb_call_most(wb_call_ceil(i->size, most), 1);
    wb_call_word(s, "PART", part);
    wb_call_word(s, "PARTS", wb_call_ceil(i->size, part));
    wb_call_scratch(s, "HEAD", i->size * (int64_t)sizeof(int64_t));
    wb_call_scratch(s, "TAIL", i->size * (int64_t)sizeof(int64_t));
    wb_call_scratch(s, "NEXT", i->count * (int64_t)sizeof(int64_t));
    wb_call_launch_items(s, "k_lists", wb_call_ceil(i->size, part), 1);
}

wb_source *wb_call_render_index(const wb_call *call, const wb_dialect *dialect) {
    const wb_index_call *i = &call->index;
    const bool gathers = call->kind == WB_CALL_gather;
    wb_call_source s = wb_call_source_new(call, dialect);
    s.uses_status = true;
    wb_call_reaches(&s, i->inner * i->outer * wb_call_most(i->size, i->count));
    wb_call_reaches(&s, i->size + i->count);
    wb_call_constant(&s, "GATHER", gathers);
    wb_text_add(&s.lines, "#define index_t wb_%s\n#define INDEX_ARGUMENT ARGUMENT_%d(%s)\n",
                wb_dtype_name((wb_dtype)i->index_dtype), gathers ? 1 : 0,
                wb_dtype_name((wb_dtype)i->index_dtype));
    wb_call_word(&s, "INNER", i->inner);
    wb_call_word(&s, "SIZE", i->size);
    wb_call_word(&s, "OUTER", i->outer);
    wb_call_word(&s, "COUNT", i->count);
    wb_call_launch(&s, "k_check", 1);
    if (!gathers) add_lists(&s, i);
    wb_call_launch_items(&s, gathers ? "k_gather" : "k_add", i->inner * i->count * i->outer,
                         dialect->is_serial ? 4096 : 1);
    return wb_call_source_finish(&s, 3,
                                 (const char *const[]){call_common_text, call_index_text, NULL});
}
