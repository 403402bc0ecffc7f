/* Where a device joins them, small updates come last and side by side: seen by a backend that is
 * the CPU and looks at what it is given. */
#include "evaluate/graph.h"
#include "support/scoped.h"

#include <math.h>
#include <weber.h>

enum { MOST = 64 };

typedef struct spied_kernel {
    void *kernel;
    bool is_update;
} spied_kernel;

static wb_backend spy;
static const wb_device *spied;
typedef struct list {
    struct {
        bool is_update, is_concurrent;
    } commands[MOST];
    int count;
} list;
static list seen; /* the last one that was run */

/* ---- the spy ---- */

static void *keep(void *kernel, bool is_update) {
    spied_kernel *k = kernel ? malloc(sizeof *k) : NULL;
    if (k) *k = (spied_kernel){kernel, is_update};
    return k;
}

static void *kernel_new(void *context, const wb_program *program) {
    return keep(wb_cpu_backend.kernel(context, program), program->is_update);
}

static void *lower(void *context, const wb_call *call, const wb_program *epilogue, int split) {
    return keep(wb_cpu_backend.lower(context, call, epilogue, split), false);
}

static void release(void *kernel) {
    if (kernel) wb_cpu_backend.release(((spied_kernel *)kernel)->kernel);
    free(kernel);
}

static size_t scratch_bytes(const void *kernel) {
    return wb_cpu_backend.scratch_bytes(((const spied_kernel *)kernel)->kernel);
}

static wb_status run(void *context, void *queue, const wb_command *commands, int count,
                     const wb_memory *memory, const uint64_t *late) {
    wb_status status = WB_OK;
    seen.count = 0;
    for (int i = 0; i < count && status == WB_OK; i++) {
        const spied_kernel *k = commands[i].kernel;
        wb_command command = commands[i];
        command.kernel = k->kernel;
        assert_true(seen.count < MOST);
        seen.commands[seen.count].is_update = k->is_update;
        seen.commands[seen.count++].is_concurrent = command.is_concurrent;
        status = wb_cpu_backend.run(context, queue, &command, 1, memory, late);
    }
    return status;
}

static wb_status info(int index, wb_device_info *info) {
    const wb_status status = wb_cpu_backend.info(index, info);
    info->joins_updates = true;
    return status;
}

/* ---- training ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

typedef struct row {
    const char *name;
    int64_t inner, classes;
    double clip_norm;
    int last; /* updates at the end */
} row;

/* One step of Adam on the device and its list; the loss after it. */
static double step_of(const wb_device *device, const row *r, list *step) {
    float points[8][2];
    int32_t labels[8];
    for (int i = 0; i < 8; i++)
        labels[i] = i % 3, points[i][0] = (float)i / 8, points[i][1] = (float)labels[i];
    wb_seed(1);
    wb_layer *model = wb_chain(wb_dense(2, r->inner, wb_tanh), wb_dense(r->inner, r->classes));
    wb_move(device, model);
    const wb_batch batch = {.x = wb_to(device, wb_from(WB_F32, points, 2, 8)),
                            .y = wb_to(device, wb_from(WB_I32, labels, 8))};
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.1), model, .clip_total_norm = r->clip_norm);
    wb_gradients *grads;
    (void)wb_withgradient(loss, model, &batch, NULL, &grads);
    assert_int_equal(wb_update(adam, model, grads), WB_OK);
    *step = seen;
    const double after = wb_item(loss(model, &batch, NULL));
    wb_free(adam), wb_free(model);
    return after;
}

static void small_updates_come_last(void **state) {
    (void)state;
    static const row rows[] = {
        {"all are small", 16, 3, 0, 4},
        {"one stays behind", 2048, 512, 0, 3},
        {"all wait for the norm", 16, 3, 1, 3},       /* whose program the last bias joins */
        {"a large one waits alone", 2048, 512, 1, 2}, /* the count joins the norm, too */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        list there, here;
        const double loss_there = step_of(spied, r, &there);
        const double loss_here = step_of(wb_cpu_device(), r, &here);
        int last = 0, concurrent = 0;
        for (int k = 0; k < there.count; k++) concurrent += there.commands[k].is_concurrent;
        while (last < there.count && there.commands[there.count - 1 - last].is_update) last++;
        if (last != r->last || concurrent != last - 1 ||
            there.commands[there.count - last].is_concurrent)
            fail_msg("%s: the last %d are updates, %d concurrent", r->name, last, concurrent);
        if (fabs(loss_there - loss_here) > 1e-6 * loss_here)
            fail_msg("%s: %.9g, not %.9g", r->name, loss_there, loss_here);
    }
}

/* What a unit has to wait for ends the run of those that go at once. */
static void an_update_waits_for_who_reads_what_it_overwrites(void **state) {
    (void)state;
    enum { UNITS = 5 };
    wb_unit units[UNITS] = {{.is_update = false}};
    int32_t order[UNITS], needs[] = {1 << 1};
    wb_graph graph = {.units.at = units, .order = {.units = order, .count = UNITS}};
    for (int32_t i = 0; i < UNITS; i++) {
        units[i].is_update = i > 0;
        units[i].position = order[i] = i;
        units[i].merged_into = units[i].fused_into = -1;
    }
    units[3].needs = needs;
    static const int64_t reading_first[] = {0, 1, 1, 3, 3}; /* 3 waits for 1 */
    for (int pass = 0; pass < 2; pass++) {
        int64_t first = 0;
        units[3].need_count = pass;
        for (int64_t i = 0; i < UNITS; i++) {
            const int64_t want = pass || i < 1 ? reading_first[i] : 1;
            assert_int_equal(wb_graph_is_concurrent(&graph, i, &first), want < i);
            assert_int_equal(first, want);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    spy = wb_cpu_backend;
    spy.name = "Spy";
    spy.info = info, spy.kernel = kernel_new, spy.lower = lower, spy.run = run;
    spy.release = release, spy.scratch_bytes = scratch_bytes;
    spy.prepare = NULL; /* its kernels are not the CPU's */
    spied = wb_device_new(&spy, 0);
    if (!spied) return 1;
    const struct CMUnitTest tests[] = {TEST(small_updates_come_last),
                                       TEST(an_update_waits_for_who_reads_what_it_overwrites)};
    return cmocka_run_group_tests_name("evaluate/test_updates", tests, NULL, NULL);
}
