/* Engines: which of cuDNN's heuristics' proposals is taken, and the plans that have been made. */
#include <string.h>

#include "cudnn.h"

enum {
    MOST_PROPOSALS = 64, /* of one mode of the heuristics: those for TF32 come first */
    MOST_NOTES = 16,
    MOST_WORKSPACE_BYTES = 1 << 28,
    MOST_PLANS = 512 /* then those that nobody uses go */
};

/* What a device keeps for cuDNN. */
typedef struct dnn_device {
    dnn_handle handle;
    pthread_mutex_t lock; /* the handle has one stream, and the list is changed */
    wb_dnn_plan *plans;
    int count;
} dnn_device;

/* ---- life ---- */

static void release_plan(wb_dnn_plan *plan) {
    if (plan->plan) (void)dnn.BackendDestroyDescriptor(plan->plan);
    if (plan->config) (void)dnn.BackendDestroyDescriptor(plan->config);
    wb_dnn_graph_release(&plan->graph);
    wb_gpu_host->release(plan);
}

/* Plans that no kernel uses; all of them where the device goes, since its kernels went before. */
static void drop_unused(dnn_device *d) {
    for (wb_dnn_plan **link = &d->plans; *link;) {
        wb_dnn_plan *plan = *link;
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
    dnn_device *d = kept;
    const wb_gpu_outcome o = DNN_TRY(Create, &d->handle);
    if (!o.error) (void)pthread_mutex_init(&d->lock, NULL);
    return o;
}

static dnn_device *device_of(wb_gpu_device *device, wb_gpu_outcome *outcome) {
    static const wb_gpu_keeping keeping = {sizeof(dnn_device), init, wb_dnn_load};
    return wb_gpu_kept(device, &device->convolutions, &keeping, outcome);
}

void wb_dnn_device_close(wb_gpu_device *device) {
    dnn_device *d = device->convolutions;
    if (!d) return;
    drop_unused(d);
    (void)dnn.Destroy(d->handle);
    (void)pthread_mutex_destroy(&d->lock);
    wb_gpu_host->release(d);
    device->convolutions = NULL;
}

/* ---- engines ---- */

static wb_gpu_outcome set(dnn_descriptor descriptor, int name, int type, const void *element) {
    return DNN_TRY(BackendSetAttribute, descriptor, (dnn_name)name, (dnn_type)type, 1, element);
}

static wb_gpu_outcome get_list(dnn_descriptor descriptor, int name, int type, int64_t most,
                               int64_t *count, void *list) {
    return DNN_TRY(BackendGetAttribute, descriptor, (dnn_name)name, (dnn_type)type, most, count,
                   list);
}

/* Engines that give other bits from run to run, compute in less than was asked for, or lose digits to large transforms are not taken. */
static bool is_forbidden(const wb_dnn_shape *shape, int note) {
    const bool is_whole = shape->dtype == WB_F64 || (shape->dtype == WB_F32 && !shape->fast);
    switch (note) {
    case DNN_NOTE_NONDETERMINISTIC:
    case DNN_NOTE_REDUCED_REDUCTION:
        return true;
    case DNN_NOTE_DOWN_CONVERT:
    case DNN_NOTE_FFT:
    case DNN_NOTE_WINOGRAD_4: /* 2x2, which has no note of its own, is about as good as a sum */
    case DNN_NOTE_WINOGRAD_6:
    case DNN_NOTE_WINOGRAD_13:
        return is_whole;
    case DNN_NOTE_TENSOR_CORE: /* of f32: TF32 */
        return is_whole && shape->dtype == WB_F32;
    default:
        return false;
    }
}

static bool is_suitable(const wb_dnn_shape *shape, dnn_descriptor config) {
    dnn_descriptor engine = NULL;
    int notes[MOST_NOTES];
    int64_t count = 0;
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_ENGINE, &engine);
    if (!o.error) o = get_list(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine);
    if (!o.error)
        o = get_list(engine, DNN_ENGINE_NOTES, DNN_TYPE_NUMERICAL_NOTE, MOST_NOTES, &count, notes);
    bool suits = !o.error;
    for (int64_t i = 0; suits && i < count && i < MOST_NOTES; i++)
        suits = !is_forbidden(shape, notes[i]);
    if (engine) (void)dnn.BackendDestroyDescriptor(engine);
    return suits;
}

/* ---- plans ---- */

/* A proposal need not work: that shows when its plan is made. */
static bool make_plan(dnn_handle handle, dnn_descriptor config, wb_dnn_plan *p) {
    dnn_descriptor plan = NULL;
    int64_t bytes = 0, count = 0;
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_PLAN, &plan);
    if (!o.error) o = set(plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, &handle);
    if (!o.error) o = set(plan, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, &config);
    if (!o.error) o = DNN_TRY(BackendFinalize, plan);
    if (!o.error) o = get_list(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &bytes);
    if (!o.error && bytes <= MOST_WORKSPACE_BYTES) {
        p->plan = plan, p->workspace_bytes = bytes;
        return true;
    }
    if (plan) (void)dnn.BackendDestroyDescriptor(plan);
    return false;
}

static wb_gpu_outcome propose(const wb_dnn_graph *graph, int mode, dnn_descriptor *heuristic,
                              int64_t *count, dnn_descriptor *configs) {
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_HEURISTIC, heuristic);
    if (!o.error) o = set(*heuristic, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, &graph->graph);
    if (!o.error) o = set(*heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC, &mode);
    if (!o.error) o = DNN_TRY(BackendFinalize, *heuristic);
    for (int i = 0; i < MOST_PROPOSALS && !o.error; i++)
        o = DNN_TRY(BackendCreateDescriptor, DNN_ENGINE_CONFIG, &configs[i]);
    return o.error ? o
                   : get_list(*heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR,
                              MOST_PROPOSALS, count, configs);
}

/* The first proposal of a mode that suits and works. */
static void try_mode(dnn_handle handle, int mode, wb_dnn_plan *p) {
    dnn_descriptor heuristic = NULL, configs[MOST_PROPOSALS] = {NULL};
    int64_t count = 0;
    const wb_gpu_outcome o = propose(&p->graph, mode, &heuristic, &count, configs);
    for (int64_t i = 0; i < count && i < MOST_PROPOSALS && !o.error && !p->plan; i++) {
        if (!is_suitable(&p->shape, configs[i]) || !make_plan(handle, configs[i], p)) continue;
        p->config = configs[i];
        configs[i] = NULL;
    }
    for (int i = 0; i < MOST_PROPOSALS; i++)
        if (configs[i]) (void)dnn.BackendDestroyDescriptor(configs[i]);
    if (heuristic) (void)dnn.BackendDestroyDescriptor(heuristic);
}

static wb_dnn_plan *plan_new(dnn_handle handle, const wb_dnn_shape *shape,
                             wb_gpu_outcome *outcome) {
    wb_dnn_plan *p = wb_gpu_host->alloc(sizeof *p);
    if (!p) {
        *outcome = (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
        return NULL;
    }
    p->shape = *shape;
    *outcome = wb_dnn_graph_make(shape, handle, &p->graph);
    if (!outcome->error) try_mode(handle, DNN_MODE_A, p);
    if (!outcome->error && !p->plan) try_mode(handle, DNN_MODE_FALLBACK, p);
    if (!outcome->error) return p; /* with no plan, too: so that it is not looked for again */
    release_plan(p);
    return NULL;
}

static wb_dnn_plan *find_or_make(dnn_device *d, const wb_dnn_shape *shape,
                                 wb_gpu_outcome *outcome) {
    for (wb_dnn_plan *p = d->plans; p; p = p->next)
        if (memcmp(&p->shape, shape, sizeof *shape) == 0) return p;
    if (d->count >= MOST_PLANS) drop_unused(d);
    wb_dnn_plan *made = plan_new(d->handle, shape, outcome);
    if (!made) return NULL;
    made->next = d->plans;
    d->plans = made;
    d->count++;
    return made;
}

wb_dnn_plan *wb_dnn_plan_get(wb_gpu_device *device, const wb_dnn_shape *shape,
                             wb_gpu_outcome *outcome) {
    dnn_device *d = device_of(device, outcome);
    if (!d) return NULL;
    wb_gpu_pause_graphs(device);
    pthread_mutex_lock(&d->lock);
    wb_dnn_plan *p = find_or_make(d, shape, outcome);
    const bool works = p && p->plan;
    if (works) p->references++;
    pthread_mutex_unlock(&d->lock);
    wb_gpu_resume_graphs(device);
    return works ? p : NULL;
}

void wb_dnn_plan_put(wb_gpu_device *device, wb_dnn_plan *plan) {
    dnn_device *d = device->convolutions;
    if (!plan) return;
    pthread_mutex_lock(&d->lock);
    plan->references--;
    pthread_mutex_unlock(&d->lock);
}

/* ---- running ---- */

static wb_gpu_outcome make_pack(const gpu_pointer at[WB_DNN_TENSORS], gpu_pointer workspace,
                                dnn_descriptor *pack) {
    static const int64_t ids[WB_DNN_TENSORS] = {WB_DNN_X, WB_DNN_W, WB_DNN_Y};
    void *pointers[WB_DNN_TENSORS], *scratch = (void *)workspace;
    for (int t = 0; t < WB_DNN_TENSORS; t++) pointers[t] = (void *)at[t];
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_VARIANT_PACK, pack);
    if (!o.error)
        o = DNN_TRY(BackendSetAttribute, *pack, DNN_PACK_IDS, DNN_TYPE_INT64, WB_DNN_TENSORS, ids);
    if (!o.error)
        o = DNN_TRY(BackendSetAttribute, *pack, DNN_PACK_POINTERS, DNN_TYPE_POINTER, WB_DNN_TENSORS,
                    pointers);
    if (!o.error) o = set(*pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, &scratch);
    return o.error ? o : DNN_TRY(BackendFinalize, *pack);
}

wb_gpu_outcome wb_dnn_plan_run(wb_gpu_device *device, const wb_dnn_plan *plan,
                               const gpu_pointer at[WB_DNN_TENSORS], gpu_pointer workspace,
                               gpu_stream stream) {
    dnn_device *d = device->convolutions;
    dnn_descriptor pack = NULL;
    wb_gpu_outcome o = make_pack(at, workspace, &pack);
    pthread_mutex_lock(&d->lock);
    if (!o.error) o = DNN_TRY(SetStream, d->handle, stream);
    if (!o.error) o = DNN_TRY(BackendExecute, d->handle, plan->plan, pack);
    pthread_mutex_unlock(&d->lock);
    if (pack) (void)dnn.BackendDestroyDescriptor(pack);
    return o;
}
