/* Pools, unfold and fold: planes are independent, threads share them. */
#include "window_plane.h"

#include "pool.h"

#define WB_ENUM(name, unused) WINDOW_##name,
typedef enum window_op { WB_WINDOW_LIST(WB_ENUM, ) WINDOW_OPS } window_op;
#undef WB_ENUM

#define WB_PAIR(name, suffix)                                                                      \
    [WINDOW_##name] = {wb_##name##_f32_##suffix, wb_##name##_f64_##suffix},
#define WB_ENTRY(enumerator, suffix) [enumerator] = {WB_WINDOW_LIST(WB_PAIR, suffix)},
static wb_window_plane_fn *const table[WB_ISA_COUNT][WINDOW_OPS][2] = {WB_ISA_LIST(WB_ENTRY)};
#undef WB_ENTRY
#undef WB_PAIR

enum { PIECE = 32768 /* elements of x and y that are worth a thread */ };

typedef struct planes {
    wb_window_plane plane; /* the first */
    wb_window_plane_fn *run;
    int64_t count, each;       /* planes, and of a piece */
    int64_t in_step, out_step; /* elements from plane to plane */
    int64_t index_step;
} planes;

static void planes_task(void *context, int64_t piece, int worker) {
    const planes *p = context;
    const wb_window_plane *first = &p->plane;
    const size_t size = wb_dtype_size(first->window->dtype);
    const int64_t from = piece * p->each;
    const int64_t to = from + p->each < p->count ? from + p->each : p->count;
    (void)worker;
    for (int64_t i = from; i < to; i++) {
        const int64_t index = i * p->index_step;
        const wb_window_plane plane = {
            .window = first->window,
            .in = (const char *)first->in + (size_t)(i * p->in_step) * size,
            .out = (char *)first->out + (size_t)(i * p->out_step) * size,
            .index_out = first->index_out ? first->index_out + index : NULL,
            .index_in = first->index_in ? first->index_in + index : NULL};
        p->run(&plane);
    }
}

/* All planes; `small` is the size of a plane of y, or of columns. Reversed: from y to x. */
static void run(window_op op, bool reversed, int64_t small, wb_window_plane plane) {
    const wb_window *w = plane.window;
    const int64_t large = wb_window_plane_in(w);
    const int64_t work = small + large;
    planes p = {.plane = plane,
                .run = table[wb_cpu_isa()][op][w->dtype == WB_F64],
                .count = w->call.channels * w->call.batch,
                .in_step = reversed ? small : large,
                .out_step = reversed ? large : small,
                .index_step = small};
    p.each = work < PIECE ? PIECE / (work > 0 ? work : 1) : 1;
    wb_cpu_parallel((p.count + p.each - 1) / p.each, planes_task, &p);
}

void wb_cpu_maxpool(const wb_window *window, const void *x, void *y, int32_t *index) {
    run(WINDOW_maxpool, false, wb_window_plane_out(window),
        (wb_window_plane){.window = window, .in = x, .out = y, .index_out = index});
}

void wb_cpu_pool_scatter(const wb_window *window, const void *y, const int32_t *index, void *x) {
    run(WINDOW_pool_scatter, true, wb_window_plane_out(window),
        (wb_window_plane){.window = window, .in = y, .out = x, .index_in = index});
}

void wb_cpu_pool_gather(const wb_window *window, const void *x, const int32_t *index, void *y) {
    run(WINDOW_pool_gather, false, wb_window_plane_out(window),
        (wb_window_plane){.window = window, .in = x, .out = y, .index_in = index});
}

void wb_cpu_meanpool(const wb_window *window, const void *x, void *y) {
    run(WINDOW_meanpool, false, wb_window_plane_out(window),
        (wb_window_plane){.window = window, .in = x, .out = y});
}

void wb_cpu_meanpool_data(const wb_window *window, const void *y, void *x) {
    run(WINDOW_meanpool_data, true, wb_window_plane_out(window),
        (wb_window_plane){.window = window, .in = y, .out = x});
}

void wb_cpu_unfold(const wb_window *window, const void *x, void *columns) {
    run(WINDOW_unfold, false, wb_window_plane_out(window) * wb_window_taps(window),
        (wb_window_plane){.window = window, .in = x, .out = columns});
}

void wb_cpu_fold(const wb_window *window, const void *columns, void *x) {
    run(WINDOW_fold, true, wb_window_plane_out(window) * wb_window_taps(window),
        (wb_window_plane){.window = window, .in = columns, .out = x});
}
