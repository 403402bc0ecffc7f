/* The arithmetic of conv_plan.h: plans, boxes, and where each tap finds its elements. It works on
 * shapes and offsets only and touches no array. */
#include "conv_plan.h"

static wb_conv_axis forward_axis(const wb_window *w, int d) {
    return (wb_conv_axis){.in = w->call.in[d],
                          .grid = w->call.out[d],
                          .step = w->call.stride[d],
                          .taps = w->call.kernel[d],
                          .offset = -w->call.pad[d],
                          .offset_step = w->call.dilation[d],
                          .tap = w->call.flip ? w->call.kernel[d] - 1 : 0,
                          .tap_step = w->call.flip ? -1 : 1,
                          .kernel = w->call.kernel[d],
                          .out = w->call.out[d],
                          .out_step = 1};
}

static int64_t divisor(int64_t a, int64_t b) { return b == 0 ? a : divisor(b, a % b); }

/* Position q = phase + stride i of dx meets y at (q + pad - dilation t) / stride, where that is
 * whole. */
static wb_conv_axis data_axis(const wb_window *w, int d, int64_t phase) {
    const int64_t kernel = w->call.kernel[d], stride = w->call.stride[d],
                  dilation = w->call.dilation[d];
    const int64_t common = divisor(stride, dilation), spacing = stride / common;
    wb_conv_axis axis = {.in = w->call.out[d],
                         .grid = w->call.in[d] > phase ? wb_conv_ceil(w->call.in[d] - phase, stride)
                                                       : 0,
                         .step = 1,
                         .offset_step = -dilation / common,
                         .kernel = kernel,
                         .out = w->call.in[d],
                         .first = phase,
                         .out_step = stride};
    int64_t tap = 0;
    while (tap < spacing && (phase + w->call.pad[d] - tap * dilation) % stride != 0) tap++;
    if (tap == spacing || tap >= kernel) return axis;
    axis.taps = (kernel - 1 - tap) / spacing + 1;
    axis.offset = (phase + w->call.pad[d] - tap * dilation) / stride;
    axis.tap = w->call.flip ? kernel - 1 - tap : tap;
    axis.tap_step = w->call.flip ? -spacing : spacing;
    return axis;
}

static void finish(wb_conv_plan *plan) {
    plan->positions = plan->taps = plan->source_plane = plan->out_plane = 1;
    for (int d = 0; d < 3; d++) {
        plan->positions *= plan->axis[d].grid;
        plan->taps *= plan->axis[d].taps;
        plan->source_plane *= plan->axis[d].in;
        plan->out_plane *= plan->axis[d].out;
    }
    plan->source_image = plan->source_plane * plan->inner * plan->groups;
    plan->out_image = plan->out_plane * plan->outer * plan->groups;
}

wb_conv_plan wb_conv_forward_plan(const wb_window *w) {
    const int64_t taps = w->call.kernel[0] * w->call.kernel[1] * w->call.kernel[2];
    wb_conv_plan plan = {.size = wb_dtype_size(w->dtype),
                         .axis = {forward_axis(w, 0), forward_axis(w, 1), forward_axis(w, 2)},
                         .inner = w->call.channels / w->call.groups,
                         .outer = w->call.filters / w->call.groups,
                         .groups = w->call.groups,
                         .batch = w->call.batch,
                         .inner_stride = taps,
                         .outer_stride = taps * (w->call.channels / w->call.groups)};
    finish(&plan);
    return plan;
}

int64_t wb_conv_phases(const wb_window *w) {
    return w->call.stride[0] * w->call.stride[1] * w->call.stride[2];
}

wb_conv_plan wb_conv_data_plan(const wb_window *w, int64_t phase) {
    wb_conv_plan plan = wb_conv_forward_plan(w);
    for (int d = 0; d < 3; d++, phase /= w->call.stride[d - 1])
        plan.axis[d] = data_axis(w, d, phase % w->call.stride[d]);
    plan.inner = w->call.filters / w->call.groups;
    plan.outer = w->call.channels / w->call.groups;
    const int64_t stride = plan.inner_stride;
    plan.inner_stride = plan.outer_stride;
    plan.outer_stride = stride;
    finish(&plan);
    return plan;
}

wb_conv_plan wb_conv_plan_of(wb_conv_kind kind, const wb_window *window, int64_t phase) {
    return kind == WB_CONV_DATA ? wb_conv_data_plan(window, phase) : wb_conv_forward_plan(window);
}

/* Source positions that `grid` neighbouring positions read. */
static int64_t extent_of(const wb_conv_axis *axis, int64_t grid) {
    const int64_t reach = axis->offset_step < 0 ? -axis->offset_step : axis->offset_step;
    return (grid - 1) * axis->step + (axis->taps - 1) * reach + 1;
}

static int64_t least_offset(const wb_conv_axis *axis) {
    return axis->offset + (axis->offset_step < 0 ? (axis->taps - 1) * axis->offset_step : 0);
}

static void measure(const wb_conv_plan *plan, wb_conv_box *box, const int64_t grid[3]) {
    for (int d = 0; d < 3; d++) {
        const wb_conv_axis *axis = &plan->axis[d];
        box->origin[d] = box->low[d] * axis->step + least_offset(axis);
        box->extent[d] = extent_of(axis, grid[d]);
        box->part[d] = wb_conv_ceil(box->extent[d], axis->step);
    }
    box->block = box->part[0] * box->part[1] * box->part[2];
    const int64_t remainders = plan->axis[0].step * plan->axis[1].step * plan->axis[2].step;
    if (remainders > 1) box->block += WB_CONV_VECTOR_BYTES / (int64_t)plan->size;
    box->volume = box->block * remainders;
}

wb_conv_box wb_conv_box_of(const wb_conv_plan *plan, int64_t first, int64_t count) {
    const int64_t row = plan->axis[0].grid, plane = row * plan->axis[1].grid;
    const int64_t last = first + count - 1;
    wb_conv_box box = {.low = {0, 0, first / plane}};
    int64_t grid[3] = {row, plan->axis[1].grid, last / plane - box.low[2] + 1};
    if (grid[2] == 1) {
        box.low[1] = first % plane / row;
        grid[1] = last % plane / row - box.low[1] + 1;
    }
    measure(plan, &box, grid);
    return box;
}

int64_t wb_conv_box_bound(const wb_conv_plan *plan, int64_t count) {
    const int64_t row = plan->axis[0].grid, plane = row * plan->axis[1].grid;
    int64_t grid[3] = {row, plan->axis[1].grid, plan->axis[2].grid};
    if (count < plan->positions) {
        if (grid[2] > 1)
            grid[2] = wb_conv_least(grid[2], (count + plane - 2) / plane + 1);
        else
            grid[1] = wb_conv_least(grid[1], (count + row - 2) / row + 1);
    }
    wb_conv_box box = {.low = {0}};
    measure(plan, &box, grid);
    return box.volume;
}

/* Along one axis: a position relative to the box, without the neighbours' strides. */
static int64_t axis_offset(const wb_conv_plan *plan, const wb_conv_box *box, int d, int64_t tap) {
    const wb_conv_axis *axis = &plan->axis[d];
    const int64_t at = axis->offset - least_offset(axis) + tap * axis->offset_step;
    int64_t remainder_stride = box->block, stride = 1;
    for (int e = 0; e < d; e++) {
        remainder_stride *= plan->axis[e].step;
        stride *= box->part[e];
    }
    return at % axis->step * remainder_stride + at / axis->step * stride;
}

void wb_conv_offsets(const wb_conv_plan *plan, const wb_conv_box *box, int64_t channels,
                     int64_t *offsets) {
    int64_t i = 0;
    for (int64_t t2 = 0; t2 < plan->axis[2].taps; t2++)
        for (int64_t t1 = 0; t1 < plan->axis[1].taps; t1++) {
            const int64_t row = axis_offset(plan, box, 1, t1) + axis_offset(plan, box, 2, t2);
            for (int64_t t0 = 0; t0 < plan->axis[0].taps; t0++)
                offsets[i++] = row + axis_offset(plan, box, 0, t0);
        }
    for (; i < channels * plan->taps; i++) offsets[i] = offsets[i - plan->taps] + box->volume;
}

/* Where row i1, i2 of the grid begins in the result. */
static int64_t target_of(const wb_conv_plan *plan, int64_t i1, int64_t i2) {
    const wb_conv_axis *axis = plan->axis;
    return axis[0].first + axis[0].out * (axis[1].first + i1 * axis[1].out_step +
                                          axis[1].out * (axis[2].first + i2 * axis[2].out_step));
}

static int64_t row_in_box(const wb_conv_box *box, int64_t i1, int64_t i2) {
    return box->part[0] * (i1 - box->low[1] + box->part[1] * (i2 - box->low[2]));
}

int wb_conv_runs(const wb_conv_piece *piece, const wb_conv_box *box, int64_t at, int64_t count,
                 wb_conv_run *runs) {
    const wb_conv_plan *plan = piece->plan;
    const wb_conv_axis *axis = plan->axis;
    int64_t image = at / piece->count, position = piece->first + at % piece->count;
    int64_t i0 = position % axis[0].grid, row = position / axis[0].grid;
    int n = 0;
    for (int64_t done = 0; done < count; n++) {
        const int64_t left = piece->first + piece->count - row * axis[0].grid - i0;
        const int64_t fits = wb_conv_least(wb_conv_least(axis[0].grid - i0, left), count - done);
        const int64_t i1 = row % axis[1].grid, i2 = row / axis[1].grid;
        runs[n] = (wb_conv_run){
            .at = done,
            .source = image * plan->inner * box->volume + i0 + row_in_box(box, i1, i2),
            .target = image * plan->out_image + i0 * axis[0].out_step + target_of(plan, i1, i2),
            .length = fits};
        done += fits;
        i0 = 0;
        row++;
        if (fits == left) { /* the next image, whose grid is whole */
            image++;
            row = 0;
        }
    }
    return n;
}

int wb_conv_flat_runs(const wb_conv_piece *piece, const wb_conv_box *box, int64_t at, int64_t count,
                      wb_conv_run *runs) {
    const wb_conv_plan *plan = piece->plan;
    const wb_conv_axis *axis = plan->axis;
    const int64_t row = at / box->part[0];
    int64_t i1 = row % box->part[1], i2 = box->low[2] + row / box->part[1];
    int n = 0;
    for (int64_t place = row * box->part[0]; place < at + count; place += box->part[0], i1++) {
        if (i1 == box->part[1]) {
            i1 = 0;
            i2++;
        }
        if (box->low[1] + i1 >= axis[1].grid) continue;
        const int64_t position = axis[0].grid * (box->low[1] + i1 + axis[1].grid * i2);
        int64_t from = wb_conv_most(at - place, piece->first - position);
        int64_t to = wb_conv_least(at + count - place, piece->first + piece->count - position);
        from = wb_conv_most(from, 0);
        to = wb_conv_least(to, axis[0].grid);
        if (from >= to) continue;
        runs[n++] =
            (wb_conv_run){.at = place + from - at,
                          .source = place + from,
                          .target = from * axis[0].out_step + target_of(plan, box->low[1] + i1, i2),
                          .length = to - from};
    }
    return n;
}

void wb_conv_span(const wb_conv_piece *piece, const wb_conv_box *box, int64_t *first,
                  int64_t *end) {
    wb_conv_run run;
    wb_conv_runs(piece, box, 0, 1, &run);
    *first = run.source;
    wb_conv_runs(piece, box, piece->count - 1, 1, &run);
    *end = run.source + 1;
}

int64_t wb_conv_tap(const wb_conv_plan *plan, int64_t tap) {
    int64_t place = 0, stride = 1;
    for (int d = 0; d < 3; d++) {
        const wb_conv_axis *axis = &plan->axis[d];
        place += stride * (axis->tap + tap % axis->taps * axis->tap_step);
        stride *= axis->kernel;
        tap /= axis->taps;
    }
    return place;
}
