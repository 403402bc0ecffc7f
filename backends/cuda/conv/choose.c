/* Which way computes a convolution. Each shape's ways are timed once, on memory taken for it: the
 * library's proposals, Weber's own text, and products of matrices. The fastest is taken, and kept
 * on disk for the card, the driver and the library's version, so that other processes take the
 * same. Ways differ in rounding. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../lt/lt.h"
#include "bench.h"
#include "product.h"

enum {
    NAME_BYTES = 768,
    KEPT_FORMAT = 2,   /* increased when a way of Weber's own has become faster */
    MOST_SHAPES = 200, /* at most this many shapes are timed: sizes may change for ever */
    RIVALS = WB_CONV_WAYS - 1
};

static const wb_conv_library *const library = &wb_conv_library_table;

/* Ways that are not the library's. */
typedef struct rival {
    int32_t way;
    wb_gpu_kernel *kernel; /* NULL: there is none */
} rival;

typedef struct choosing {
    wb_gpu_device *device;
    const wb_conv_shape *shape;
    rival rivals[RIVALS];
    wb_conv_choice choice; /* from the disk, or the fastest */
    /* while ways are timed */
    void *handle;
    wb_conv_plan *plan; /* the best so far */
    wb_bench bench;
    int count;
    bool is_timed; /* all of them, or as many as there was time for */
    bool is_stale; /* what was on the disk */
} choosing;

/* ---- on disk ---- */

/* All that a choice depends on. */
static void name_of(const choosing *c, char name[NAME_BYTES]) {
    char card[128] = "", version[128] = "", products[256] = "";
    (void)gpu.DeviceGetName(card, (int)sizeof card - 1, c->device->ordinal);
    (void)library->load(version, sizeof version);
    (void)wb_lt_load(products, sizeof products);
    int used = snprintf(name, NAME_BYTES, "convolution %d, %s, %016llx, %s, %s:", KEPT_FORMAT, card,
                        (unsigned long long)c->device->compiler, version, products);
    const int64_t *numbers = (const void *)c->shape; /* up to `kind` it has nothing else */
    const size_t count = offsetof(wb_conv_shape, kind) / sizeof *numbers;
    for (size_t i = 0; i < count && used < NAME_BYTES; i++)
        used += snprintf(name + used, (size_t)(NAME_BYTES - used), " %lld", (long long)numbers[i]);
    if (used < NAME_BYTES)
        (void)snprintf(name + used, (size_t)(NAME_BYTES - used), ", %d %d %d", c->shape->kind,
                       c->shape->dtype, c->shape->fast);
}

/* A damaged entry counts as missing. */
static bool read_choice(choosing *c) {
    char name[NAME_BYTES];
    void *data = NULL;
    size_t bytes = 0;
    name_of(c, name);
    if (!wb_gpu_host->cache_read(wb_gpu_vendor_table.backend, name, &data, &bytes)) return false;
    const bool is_whole = bytes == sizeof c->choice;
    if (is_whole) memcpy(&c->choice, data, bytes);
    wb_gpu_host->release(data);
    /* with more time now others may be found */
    return is_whole && c->choice.way >= 0 && c->choice.way < WB_CONV_WAYS &&
           c->choice.tune_ms >= c->device->tune_ms;
}

static void write_choice(const choosing *c) {
    char name[NAME_BYTES];
    name_of(c, name);
    wb_gpu_host->cache_write(wb_gpu_vendor_table.backend, name, &c->choice, sizeof c->choice);
}

static void describe(const wb_conv_choice *choice, char text[64]) {
    static const char *const ways[] = {[WB_CONV_LIBRARY] = "",
                                       [WB_CONV_TEXT] = "Weber's text",
                                       [WB_CONV_PRODUCT] = "a product for each image",
                                       [WB_CONV_COLUMNS] = "a product of columns"};
    if (choice->way == WB_CONV_LIBRARY)
        (void)snprintf(text, 64, "%s's engine %d (list %d, %d)", library->name, choice->engine,
                       choice->source, choice->index);
    else
        (void)snprintf(text, 64, "%s", ways[choice->way]);
}

/* ---- timing ---- */

static void take(choosing *c, const wb_conv_plan *plan, double us) {
    if (c->plan->by) library->drop(c->plan->by);
    c->plan->by = plan->by, c->plan->workspace_bytes = plan->workspace_bytes;
    c->plan->choice = plan->choice;
    c->plan->choice.microseconds = us;
}

typedef struct library_run {
    void *handle;
    const wb_conv_plan *plan;
} library_run;

static wb_gpu_outcome run_library(const void *what, const wb_bench *b) {
    const library_run *r = what;
    return library->run(r->handle, r->plan, b->at, b->workspace, b->stream);
}

typedef struct kernel_run {
    const wb_conv_shape *shape;
    wb_gpu_kernel *kernel;
} kernel_run;

static wb_gpu_outcome run_kernel(const void *what, const wb_bench *b) {
    const kernel_run *r = what;
    wb_memory memory[WB_CONV_TENSORS + 1] = {{NULL, 0}};
    wb_argument arguments[WB_CONV_TENSORS + 1] = {{0, 0}};
    for (int t = 0; t < WB_CONV_TENSORS; t++)
        memory[wb_conv_argument(r->shape->kind, t)].handle = (void *)b->at[t];
    memory[WB_CONV_TENSORS].handle = (void *)b->workspace;
    for (uint32_t i = 0; i <= WB_CONV_TENSORS; i++) arguments[i].memory = i;
    const wb_gpu_run run = {
        .device = b->device, .queue = &b->device->own, .stream = b->stream, .memory = memory};
    const wb_command command = {.kernel = r->kernel,
                                .narguments = WB_CONV_TENSORS + 1,
                                .arguments = arguments,
                                .what = "convolution"};
    return r->kernel->run(r->kernel, &run, &command);
}

/* Takes the plan, or drops it. A plan that is hardly faster is not taken, because the next process
 * might then choose differently. */
static void compare(choosing *c, const wb_conv_plan *plan, double us) {
    const double worth = 0.97;
    char by[64];
    describe(&plan->choice, by);
    wb_gpu_host->log(WB_LOG_DEBUG, "%s:   %s: %.1f us, after %.0f ms", wb_gpu_vendor_table.backend,
                     by, us, wb_bench_spent_ms(&c->bench));
    if (c->count++ == 0 || us < worth * c->plan->choice.microseconds)
        take(c, plan, us);
    else if (plan->by)
        library->drop(plan->by);
}

static void time_rivals(choosing *c) {
    for (int i = 0; i < RIVALS; i++) {
        const kernel_run r = {c->shape, c->rivals[i].kernel};
        const wb_conv_plan plan = {.choice = {.way = c->rivals[i].way}};
        if (!r.kernel) continue;
        compare(c, &plan,
                wb_bench_time(&c->bench, (int64_t)r.kernel->scratch_bytes, run_kernel, &r));
    }
}

/* Weber's own ways come right after the library's favourite, since the time may not be enough for
 * all. */
static bool offer(void *context, const wb_conv_plan *plan) {
    choosing *c = context;
    const library_run r = {c->handle, plan};
    const bool is_first = c->count == 0;
    compare(c, plan, wb_bench_time(&c->bench, plan->workspace_bytes, run_library, &r));
    if (is_first && c->bench.is_short) return false;
    if (is_first) time_rivals(c);
    return !wb_bench_is_over(&c->bench);
}

/* ---- makers ---- */

static wb_gpu_outcome make_fastest(void *context, void *handle, wb_conv_plan *plan) {
    choosing *c = context;
    c->handle = handle, c->plan = plan;
    plan->choice = (wb_conv_choice){.way = WB_CONV_LIBRARY};
    if (!wb_bench_open(&c->bench, c->device, c->shape)) return library->make(handle, plan);
    const wb_gpu_outcome o = library->propose(handle, c->shape, offer, c);
    wb_bench_close(&c->bench);
    c->device->tuned_ms += (int64_t)wb_bench_spent_ms(&c->bench) + 1;
    c->is_timed =
        !o.error && c->count > 0 && !c->bench.is_short && isfinite(plan->choice.microseconds);
    plan->choice.tune_ms = c->device->tune_ms;
    c->choice = plan->choice;
    return o;
}

/* An entry on disk may name a proposal that the library no longer has, or names differently: then
 * there is no plan. */
static wb_gpu_outcome make_known(void *context, void *handle, wb_conv_plan *plan) {
    choosing *c = context;
    plan->choice = c->choice;
    if (c->choice.way != WB_CONV_LIBRARY) return (wb_gpu_outcome){.error = NULL};
    const wb_gpu_outcome o = library->make(handle, plan);
    if (o.error || plan->by) return o;
    c->is_stale = true;
    return (wb_gpu_outcome){.call = "a kept choice", .error = "the library no longer has it"};
}

/* ---- choosing ---- */

static void tell(const choosing *c) {
    static const char *const kinds[] = {[WB_CALL_conv_forward] = "conv_forward",
                                        [WB_CALL_conv_data] = "conv_data",
                                        [WB_CALL_conv_filter] = "conv_filter"};
    const wb_conv_shape *s = c->shape;
    char by[64], of[64] = "as before";
    describe(&c->choice, by);
    if (c->count) (void)snprintf(of, sizeof of, "the fastest of %d", c->count);
    wb_gpu_host->log(WB_LOG_INFO,
                     "%s: %s, kernel (%lld, %lld, %lld), %lld => %lld channels, output (%lld, "
                     "%lld, %lld), batch %lld: %s, %s: %.1f us",
                     wb_gpu_vendor_table.backend, kinds[s->kind], (long long)s->kernel[0],
                     (long long)s->kernel[1], (long long)s->kernel[2], (long long)s->channels,
                     (long long)s->filters, (long long)s->out[0], (long long)s->out[1],
                     (long long)s->out[2], (long long)s->batch, by, of, c->choice.microseconds);
}

/* False with an error recorded. */
static bool make_rivals(choosing *c, const wb_call *call) {
    c->rivals[0] = (rival){WB_CONV_TEXT, wb_gpu_text_of_call(c->device, call)};
    bool done = c->rivals[0].kernel;
    for (int i = 1; i < RIVALS && done; i++) {
        rival *r = &c->rivals[i];
        r->way = WB_CONV_TEXT + i;
        done = wb_conv_product_new(c->device, call, c->shape, (wb_conv_way)r->way, &r->kernel) ==
                   WB_GPU_PASS ||
               r->kernel;
    }
    return done;
}

static void release_rivals(choosing *c) {
    for (int i = 0; i < RIVALS; i++)
        if (c->rivals[i].kernel) c->rivals[i].kernel->release(c->rivals[i].kernel);
}

/* Without a kept choice the next process might choose differently. */
static bool keeps_choices(void) {
    static const char name[] = "whether choices are kept";
    const char *backend = wb_gpu_vendor_table.backend;
    void *data = NULL;
    size_t bytes = 0;
    wb_gpu_host->cache_write(backend, name, name, sizeof name);
    if (!wb_gpu_host->cache_read(backend, name, &data, &bytes)) return false;
    wb_gpu_host->release(data);
    return true;
}

static int64_t decide_tune_ms(wb_gpu_device *device) {
    enum { DEFAULT_MS = 100 };
    if (device->tune_ms < 0) device->tune_ms = keeps_choices() ? DEFAULT_MS : 0;
    return device->tune_ms;
}

static bool is_settled(const choosing *c) {
    return !library->propose || decide_tune_ms(c->device) == 0 ||
           wb_conv_plan_is_known(c->device, c->shape);
}

/* False: there is nothing on the disk, or nothing that works. */
static bool take_kept(choosing *c, wb_conv_plan **plan, wb_gpu_outcome *o) {
    if (!read_choice(c)) return false;
    *plan = wb_conv_plan_by(c->device, c->shape, make_known, c, o);
    if (c->is_stale) {
        *o = (wb_gpu_outcome){.error = NULL};
        c->choice = (wb_conv_choice){.way = WB_CONV_LIBRARY};
        return false;
    }
    tell(c);
    return true;
}

/* False with an error recorded. */
static bool find_plan(choosing *c, const wb_call *call, wb_conv_plan **plan, wb_gpu_outcome *o) {
    wb_gpu_device *device = c->device;
    const bool is_open = !is_settled(c);
    if (is_open && take_kept(c, plan, o)) return true;
    const bool is_timed = is_open && device->tuned_ms < MOST_SHAPES * device->tune_ms;
    const bool done = !is_timed || make_rivals(c, call);
    if (done && is_timed)
        *plan = wb_conv_plan_by(device, c->shape, make_fastest, c, o);
    else if (done)
        *plan = wb_conv_plan_get(device, c->shape, o);
    release_rivals(c);
    if (c->is_timed) write_choice(c);
    if (c->is_timed) tell(c);
    return done;
}

wb_gpu_answer wb_conv_choose(wb_gpu_device *device, const wb_call *call, const wb_conv_shape *shape,
                             wb_conv_plan **plan) {
    choosing c = {.device = device, .shape = shape};
    wb_gpu_outcome o = {.error = NULL};
    *plan = NULL;
    if (!find_plan(&c, call, plan, &o)) return WB_GPU_TAKEN;
    if (o.error)
        wb_gpu_host->log(WB_LOG_DEBUG, "%s: convolution without %s: %s: %s",
                         wb_gpu_vendor_table.backend, library->name, o.call, o.error);
    return *plan ? WB_GPU_TAKEN : WB_GPU_PASS;
}
