/* Convolutions as the vendors' libraries know them, and the plans that have been made. */
#include "conv.h"

#include <string.h>

static const wb_conv_library *const library = &wb_conv_library_table;

/* ---- shapes ---- */

static int64_t reach(const wb_conv_shape *s, int d) {
    return s->dilation[d] * (s->kernel[d] - 1) + 1;
}

int64_t wb_conv_pad_after(const wb_conv_shape *s, int d) {
    const int64_t missing = (s->out[d] - 1) * s->stride[d] + reach(s, d) - s->in[d] - s->pad[d];
    return missing > 0 ? missing : 0;
}

/* False if the libraries, which compute the output's size themselves, would get another one. */
static bool is_cropped(const wb_conv_shape *s, int d) {
    const int64_t padded = s->in[d] + s->pad[d] + wb_conv_pad_after(s, d);
    return (padded - reach(s, d)) / s->stride[d] + 1 != s->out[d];
}

bool wb_conv_shape_of(const wb_call *call, wb_conv_shape *s) {
    const wb_window_call *w = &call->window;
    memset(s, 0, sizeof *s);
    s->channels = w->channels, s->filters = w->filters, s->groups = w->groups, s->batch = w->batch;
    s->kind = (int32_t)call->kind, s->dtype = (int32_t)call->dtype, s->fast = call->is_fast;
    bool fits = s->channels > 0 && s->filters > 0 && s->batch > 0;
    for (int d = 0; d < 3; d++) {
        s->in[d] = w->in[d], s->out[d] = w->out[d], s->kernel[d] = w->kernel[d];
        s->stride[d] = w->stride[d], s->dilation[d] = w->dilation[d], s->pad[d] = w->pad[d];
        fits = fits && s->in[d] > 0 && s->out[d] > 0 && !is_cropped(s, d);
    }
    return fits;
}

int wb_conv_argument(int32_t kind, int tensor) {
    static const int8_t argument_of[][WB_CONV_TENSORS] = {
        [WB_CALL_conv_forward] = {0, 1, 2},
        [WB_CALL_conv_data] = {2, 1, 0},
        [WB_CALL_conv_filter] = {0, 2, 1},
    };
    return argument_of[kind][tensor];
}

int wb_conv_spatial(const wb_conv_shape *s) {
    return s->in[2] == 1 && s->out[2] == 1 && s->kernel[2] == 1 ? 2 : 3;
}

void wb_conv_reverse(const wb_conv_shape *s, const int64_t values[3], int64_t *reversed) {
    const int count = wb_conv_spatial(s);
    for (int d = 0; d < count; d++) reversed[d] = values[count - 1 - d];
}

/* Groups: how many times as many channels x has as w. */
int wb_conv_sizes(const wb_conv_shape *s, int tensor, int64_t sizes[5], int64_t strides[5]) {
    const int64_t *const spatial[] = {
        [WB_CONV_X] = s->in, [WB_CONV_W] = s->kernel, [WB_CONV_Y] = s->out};
    const int last = wb_conv_spatial(s) + 1;
    sizes[0] = tensor == WB_CONV_W ? s->filters : s->batch;
    sizes[1] = tensor == WB_CONV_X   ? s->channels
               : tensor == WB_CONV_W ? s->channels / s->groups
                                     : s->filters;
    wb_conv_reverse(s, spatial[tensor], sizes + 2);
    strides[last] = 1;
    for (int d = last - 1; d >= 0; d--) strides[d] = strides[d + 1] * sizes[d + 1];
    return last + 1;
}

/* ---- what a device keeps ---- */

enum { MOST_PLANS = 512 }; /* above this number unused ones are dropped */

typedef struct conv_device {
    void *handle;
    pthread_mutex_t lock; /* the handle has one stream, and the list is changed */
    wb_conv_plan *plans;
    int count;
} conv_device;

static void release_plan(wb_conv_plan *plan) {
    if (plan->by) library->drop(plan->by);
    wb_gpu_host->release(plan);
}

/* Drops plans that no kernel uses; when the device is closed these are all, since its kernels were
 * released before. Nothing that was queued runs any more. */
static void drop_unused(conv_device *d) {
    for (wb_conv_plan **link = &d->plans; *link;) {
        wb_conv_plan *plan = *link;
        if (plan->references > 0) {
            link = &plan->next;
            continue;
        }
        *link = plan->next;
        release_plan(plan);
        d->count--;
    }
}

static wb_gpu_outcome init(void *kept) {
    conv_device *d = kept;
    const wb_gpu_outcome o = library->open(&d->handle);
    if (!o.error) (void)pthread_mutex_init(&d->lock, NULL);
    return o;
}

static conv_device *device_of(wb_gpu_device *device, wb_gpu_outcome *outcome) {
    const wb_gpu_keeping keeping = {sizeof(conv_device), init, library->load};
    return wb_gpu_kept(device, &device->convolutions, &keeping, outcome);
}

void wb_conv_device_close(wb_gpu_device *device) {
    conv_device *d = device->convolutions;
    if (!d) return;
    drop_unused(d);
    library->close(d->handle);
    (void)pthread_mutex_destroy(&d->lock);
    wb_gpu_host->release(d);
    device->convolutions = NULL;
}

/* ---- plans ---- */

static wb_conv_plan *find(const conv_device *d, const wb_conv_shape *shape) {
    wb_conv_plan *p = d->plans;
    while (p && memcmp(&p->shape, shape, sizeof *shape) != 0) p = p->next;
    return p;
}

/* Also if there is no plan, so that it is not searched for again. */
static wb_conv_plan *make(conv_device *d, const wb_conv_shape *shape, wb_conv_maker *maker,
                          void *context, wb_gpu_outcome *outcome) {
    if (d->count >= MOST_PLANS) {
        (void)gpu.CtxSynchronize(); /* a released kernel may have queued its plan */
        drop_unused(d);
    }
    wb_conv_plan *p = wb_gpu_host->alloc(sizeof *p);
    if (!p) {
        *outcome = (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
        return NULL;
    }
    p->shape = *shape;
    *outcome = maker(context, d->handle, p);
    if (outcome->error) {
        release_plan(p);
        return NULL;
    }
    p->next = d->plans;
    d->count++;
    return d->plans = p;
}

wb_conv_plan *wb_conv_plan_by(wb_gpu_device *device, const wb_conv_shape *shape,
                              wb_conv_maker *maker, void *context, wb_gpu_outcome *outcome) {
    conv_device *d = device_of(device, outcome);
    if (!d) return NULL;
    wb_gpu_pause_graphs(device);
    pthread_mutex_lock(&d->lock);
    wb_conv_plan *p = find(d, shape);
    if (!p) p = make(d, shape, maker, context, outcome);
    const bool works = p && (p->by || p->choice.way >= WB_CONV_PRODUCT);
    if (works) p->references++;
    pthread_mutex_unlock(&d->lock);
    wb_gpu_resume_graphs(device);
    return works ? p : NULL;
}

static wb_gpu_outcome make_first(void *context, void *handle, wb_conv_plan *plan) {
    (void)context;
    return library->make(handle, plan);
}

wb_conv_plan *wb_conv_plan_get(wb_gpu_device *device, const wb_conv_shape *shape,
                               wb_gpu_outcome *outcome) {
    return wb_conv_plan_by(device, shape, make_first, NULL, outcome);
}

bool wb_conv_plan_is_known(wb_gpu_device *device, const wb_conv_shape *shape) {
    wb_gpu_outcome o;
    conv_device *d = device_of(device, &o);
    if (!d) return false;
    pthread_mutex_lock(&d->lock);
    const bool is_known = find(d, shape);
    pthread_mutex_unlock(&d->lock);
    return is_known;
}

void wb_conv_plan_put(wb_gpu_device *device, wb_conv_plan *plan) {
    conv_device *d = device->convolutions;
    if (!plan) return;
    pthread_mutex_lock(&d->lock);
    plan->references--;
    pthread_mutex_unlock(&d->lock);
}

wb_gpu_outcome wb_conv_plan_run(wb_gpu_device *device, const wb_conv_plan *plan,
                                const gpu_pointer *at, gpu_pointer workspace, gpu_stream stream) {
    conv_device *d = device->convolutions;
    pthread_mutex_lock(&d->lock);
    const wb_gpu_outcome o = library->run(d->handle, plan, at, workspace, stream);
    pthread_mutex_unlock(&d->lock);
    return o;
}
