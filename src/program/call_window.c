/* Pools, unfold and fold: one item for each place of the result; sums are in the CPU's order. */
#include "program/call_geometry.h"
#include "program/call_source.h"
#include <src/program/call_common.txt.h>
#include <src/program/call_window.txt.h>
#include <src/program/call_window_serial.txt.h>

enum { PIECE = 4096 /* elements that are worth a group of a wide core */ };

static const char *const names[] = {
    [WB_CALL_maxpool] = "MAXPOOL",
    [WB_CALL_pool_scatter] = "POOL_SCATTER",
    [WB_CALL_pool_gather] = "POOL_GATHER",
    [WB_CALL_meanpool] = "MEANPOOL",
    [WB_CALL_meanpool_data] = "MEANPOOL_DATA",
    [WB_CALL_unfold] = "UNFOLD",
    [WB_CALL_fold] = "FOLD",
};

static bool writes_x(wb_call_kind kind) { return wb_call_row_of(kind).x < 0; }

static int arguments_of(wb_call_kind kind) {
    return kind == WB_CALL_maxpool || kind == WB_CALL_pool_scatter || kind == WB_CALL_pool_gather
               ? 3
               : 2;
}

/* On a wide core whole planes are better, if the type in memory can hold a part of a sum. */
static bool goes_by_planes(const wb_call *call, const wb_dialect *dialect) {
    return dialect->is_serial && call->dtype == wb_call_real(call) &&
           call->kind != WB_CALL_pool_gather && call->kind != WB_CALL_unfold;
}

wb_source *wb_call_render_window(const wb_call *call, const wb_dialect *dialect) {
    const wb_window_call *window = &call->window;
    const int64_t planes = window->channels * window->batch, taps = wb_call_volume(window->kernel);
    const int64_t columns = call->kind == WB_CALL_unfold || call->kind == WB_CALL_fold ? taps : 1;
    const int64_t x = wb_call_volume(window->in) * planes;
    const int64_t y = wb_call_volume(window->out) * planes * columns;
    wb_call_source s = wb_call_source_new(call, dialect);
    wb_call_reaches(&s, x);
    wb_call_reaches(&s, y);
    wb_call_constant(&s, names[call->kind], 1);
    if (call->kind == WB_CALL_maxpool)
        wb_text_add(&s.lines, "#define LEAST %s\n",
                    call->dtype == WB_F64 ? "WB_F64(WB_U64(0xfff00000u, 0))"
                                          : "WB_F32(0xff800000u)");
    wb_call_geometry(&s, window, true);
    wb_call_word(&s, "PLANES", planes);
    const bool by_planes = goes_by_planes(call, dialect);
    const int64_t items = wb_call_most(x, y);
    wb_call_launch_items(&s, "k_window",
                         by_planes              ? wb_call_least(planes, items / PIECE)
                         : writes_x(call->kind) ? x
                                                : y,
                         dialect->is_serial && !by_planes ? PIECE : 1);
    const char *const text = by_planes ? call_window_serial_text : call_window_text;
    return wb_call_source_finish(&s, arguments_of(call->kind),
                                 (const char *const[]){call_common_text, text, NULL});
}
