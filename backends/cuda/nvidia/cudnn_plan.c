/* Engines: which of cuDNN's heuristics' proposals is taken. */
#include <float.h>
#include <math.h>

#include "cudnn.h"

enum {
    MOST_PROPOSALS = 64, /* of one mode of the heuristics: those for TF32 come first */
    MOST_NOTES = 16,
};

/* What a plan holds of cuDNN's. */
typedef struct dnn_plan {
    wb_dnn_graph graph;
    dnn_descriptor config, plan;
    float scale, low, one; /* what attention is given by value: see WB_DNN_SCALE */
} dnn_plan;

/* ---- engines ---- */

static wb_gpu_outcome set(dnn_descriptor descriptor, int name, int type, const void *element) {
    return wb_dnn_set(descriptor, name, type, 1, element);
}

static wb_gpu_outcome get_list(dnn_descriptor descriptor, int name, int type, int64_t most,
                               int64_t *count, void *list) {
    return DNN_TRY(BackendGetAttribute, descriptor, (dnn_name)name, (dnn_type)type, most, count,
                   list);
}

/* Engines that give other bits from run to run, compute in less than was asked for, or lose digits
 * to large transforms are not taken. */
static bool is_forbidden(const wb_conv_shape *shape, int note) {
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

bool wb_dnn_is_suitable(const wb_conv_shape *shape, dnn_descriptor config) {
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
static bool make_plan(dnn_handle handle, dnn_descriptor config, dnn_plan *p, wb_conv_plan *of) {
    dnn_descriptor plan = NULL;
    int64_t bytes = 0, count = 0;
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_PLAN, &plan);
    if (!o.error) o = set(plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, &handle);
    if (!o.error) o = set(plan, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, &config);
    if (!o.error) o = DNN_TRY(BackendFinalize, plan);
    if (!o.error) o = get_list(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &bytes);
    if (!o.error && wb_dnn_fits(&of->shape, bytes)) {
        p->plan = plan, of->workspace_bytes = bytes;
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
static void try_mode(dnn_handle handle, int mode, wb_conv_plan *plan, dnn_plan *p) {
    dnn_descriptor heuristic = NULL, configs[MOST_PROPOSALS] = {NULL};
    int64_t count = 0;
    const wb_gpu_outcome o = propose(&p->graph, mode, &heuristic, &count, configs);
    for (int64_t i = 0; i < count && i < MOST_PROPOSALS && !o.error && !p->plan; i++) {
        if (!wb_dnn_is_suitable(&plan->shape, configs[i]) ||
            !make_plan(handle, configs[i], p, plan))
            continue;
        p->config = configs[i];
        configs[i] = NULL;
    }
    for (int i = 0; i < MOST_PROPOSALS; i++)
        if (configs[i]) (void)dnn.BackendDestroyDescriptor(configs[i]);
    if (heuristic) (void)dnn.BackendDestroyDescriptor(heuristic);
}

static void release_plan(void *by) {
    dnn_plan *p = by;
    if (p->plan) (void)dnn.BackendDestroyDescriptor(p->plan);
    if (p->config) (void)dnn.BackendDestroyDescriptor(p->config);
    wb_dnn_graph_release(&p->graph);
    wb_gpu_host->release(p);
}

/* Older versions compute NaN where the hidden scores are infinite. */
static void set_values(const wb_attention_shape *a, dnn_plan *p) {
    p->scale = a->dk > 0 ? (float)(1 / sqrt((double)a->dk)) : 0;
    p->one = 1;
    p->low = dnn.GetVersion() < 91000 ? -FLT_MAX : -INFINITY;
}

static wb_gpu_outcome make(void *handle, wb_conv_plan *plan) {
    dnn_plan *p = wb_gpu_host->alloc(sizeof *p);
    if (!p) return (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
    set_values(&plan->shape.attention, p);
    const wb_gpu_outcome o = wb_dnn_graph_make(&plan->shape, handle, &p->graph);
    if (!o.error) try_mode(handle, DNN_MODE_A, plan, p);
    if (!o.error && !p->plan) try_mode(handle, DNN_MODE_FALLBACK, plan, p);
    if (p->plan)
        plan->by = p;
    else
        release_plan(p);
    return o;
}

/* ---- running ---- */

enum { MOST_POINTERS = WB_DNN_VALUES_END };

/* What the graph is given, by identifier; returns how many. */
static int collect(const wb_conv_plan *plan, const gpu_pointer *at, int64_t *ids,
                   const void **pointers) {
    const dnn_plan *p = plan->by;
    const bool is_attention = wb_conv_is_attention(&plan->shape),
               is_backward = plan->shape.kind == WB_CALL_attention_backward;
    const int arrays = is_backward    ? (int)WB_ATTENTION_TENSORS
                       : is_attention ? (int)WB_ATTENTION_SUMS + 1
                                      : (int)WB_CONV_TENSORS;
    int count = arrays;
    for (int t = 0; t < arrays; t++) ids[t] = t, pointers[t] = (void *)at[t];
    if (is_attention) ids[count] = WB_DNN_SCALE, pointers[count++] = &p->scale;
    if (is_attention && plan->shape.attention.is_causal)
        ids[count] = WB_DNN_LOW, pointers[count++] = &p->low;
    if (is_backward) ids[count] = WB_DNN_ONE, pointers[count++] = &p->one;
    return count;
}

static wb_gpu_outcome make_pack(const wb_conv_plan *plan, const gpu_pointer *at,
                                gpu_pointer workspace, dnn_descriptor *pack) {
    int64_t ids[MOST_POINTERS];
    const void *pointers[MOST_POINTERS];
    void *scratch = (void *)workspace;
    const int count = collect(plan, at, ids, pointers);
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_VARIANT_PACK, pack);
    if (!o.error) o = wb_dnn_set(*pack, DNN_PACK_IDS, DNN_TYPE_INT64, count, ids);
    if (!o.error) o = wb_dnn_set(*pack, DNN_PACK_POINTERS, DNN_TYPE_POINTER, count, pointers);
    if (!o.error) o = set(*pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, &scratch);
    return o.error ? o : DNN_TRY(BackendFinalize, *pack);
}

static wb_gpu_outcome run(void *handle, const wb_conv_plan *plan, const gpu_pointer *at,
                          gpu_pointer workspace, gpu_stream stream) {
    const dnn_plan *p = plan->by;
    dnn_descriptor pack = NULL;
    wb_gpu_outcome o = make_pack(plan, at, workspace, &pack);
    if (!o.error) o = DNN_TRY(SetStream, handle, stream);
    if (!o.error) o = DNN_TRY(BackendExecute, handle, p->plan, pack);
    if (pack) (void)dnn.BackendDestroyDescriptor(pack);
    return o;
}

/* ---- the library ---- */

static wb_gpu_outcome open_handle(void **handle) {
    dnn_handle made = NULL;
    const wb_gpu_outcome o = DNN_TRY(Create, &made);
    *handle = made;
    return o;
}

static void close_handle(void *handle) { (void)dnn.Destroy(handle); }

const wb_conv_library wb_conv_library_table = {
    .name = "cuDNN",
    .load = wb_dnn_load,
    .open = open_handle,
    .close = close_handle,
    .make = make,
    .drop = release_plan,
    .run = run,
};
