/* grid_sample and grid_put. */
#include "program/call_geometry.h"
#include "program/call_source.h"
#include <src/program/call_common.txt.h>
#include <src/program/call_grid.txt.h>

wb_source *wb_call_render_grid(const wb_call *call, const wb_dialect *dialect) {
    const wb_grid_call *g = &call->grid;
    const bool samples = call->kind == WB_CALL_grid_sample, is_f64 = wb_call_real(call) == WB_F64;
    const int64_t in = wb_call_volume(g->in), out = wb_call_volume(g->out),
                  planes = g->channels * g->batch;
    wb_call_source s = wb_call_source_new(call, dialect);
    wb_call_reaches(&s, in * planes);
    wb_call_reaches(&s, out * planes);
    wb_call_reaches(&s, out * g->batch * g->dims);
    wb_call_constant(&s, "SAMPLE", samples);
    wb_call_constant(&s, "NEAREST", g->nearest);
    wb_call_constant(&s, "PADDING", g->padding);
    wb_call_constant(&s, "ALIGN", g->align_corners);
    wb_call_constant(&s, "SLOPES", g->slopes);
    wb_call_constant(&s, "SKIPS", g->skips);
    wb_call_constant(&s, "DIMS", g->dims);
    wb_text_add(&s.lines, "#define NOT_A_NUMBER %s\n",
                is_f64 ? "WB_F64(WB_U64(0x7ff80000u, 0))" : "WB_F32(0x7fc00000u)");
    for (int d = 0; d < 3; d++) wb_call_word_at(&s, "IN", d, g->in[d]);
    wb_call_word(&s, "OUT", out);
    wb_call_word(&s, "CHANNELS", g->channels);
    wb_call_word(&s, "BATCH", g->batch);
    wb_call_launch_items(&s, "k_grid", samples ? out * planes : planes,
                         samples && dialect->is_serial ? 4096 : 1);
    return wb_call_source_finish(&s, 3,
                                 (const char *const[]){call_common_text, call_grid_text, NULL});
}
