/* argmax: of each run of a row the position of the first largest key; a NaN is above all. */
#include "calls.h"
#include "pool.h"

enum { LANES = 64 /* rows side by side that are searched together */, LEAST_WORK = 1 << 14 };

/* Never true for an integer. */
#define IS_NAN(x) ((x) != (x))

#define KEY  float
#define LOOK look_f32
#include "argmax_look.h"

#define KEY  double
#define LOOK look_f64
#include "argmax_look.h"

#define KEY  int32_t
#define LOOK look_i32
#include "argmax_look.h"

#define KEY  int64_t
#define LOOK look_i64
#include "argmax_look.h"

typedef void look_fn(const wb_index_call *k, const void *keys, int64_t from, int64_t count,
                     int64_t first, int64_t end, int64_t *y);
static look_fn *const looks[WB_DTYPE_COUNT] = {
    [WB_F32] = look_f32, [WB_F64] = look_f64, [WB_I32] = look_i32, [WB_I64] = look_i64};

static int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Runs of all neighbours; a piece has several where they are short. */
static int64_t runs_of_a_piece(const wb_index_call *k) {
    const int64_t elements = k->inner * (k->run < k->size ? k->run : k->size);
    return ceil_of(LEAST_WORK, elements > 0 ? elements : 1);
}

static void run_piece(void *context, int64_t piece, int worker) {
    const wb_cpu_call *c = context;
    const wb_index_call *k = &c->call->index;
    const int64_t runs = ceil_of(k->size, k->run), each = runs_of_a_piece(k), all = runs * k->outer;
    const int64_t bytes = k->inner * k->size * (int64_t)wb_dtype_size((wb_dtype)k->index_dtype);
    look_fn *look = looks[k->index_dtype];
    (void)worker;
    for (int64_t n = piece * each; n < all && n < (piece + 1) * each; n++) {
        const int64_t from = n % runs * k->run, left = k->size - from;
        const int64_t count = left < k->run ? left : k->run;
        int64_t *y = (int64_t *)(void *)c->a[1] + n * k->inner;
        for (int64_t first = 0; first < k->inner; first += LANES)
            look(k, c->a[0] + n / runs * bytes, from, count, first,
                 first + LANES < k->inner ? first + LANES : k->inner, y);
    }
}

wb_status wb_cpu_call_argmax(const wb_cpu_call *c) {
    const wb_index_call *k = &c->call->index;
    wb_cpu_parallel(ceil_of(ceil_of(k->size, k->run) * k->outer, runs_of_a_piece(k)), run_piece,
                    (void *)(uintptr_t)c);
    return WB_OK;
}
