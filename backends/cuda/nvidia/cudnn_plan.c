/* Plans: which engines cuDNN proposes for a graph, which of them suit, and how one runs. */
#include <float.h>
#include <math.h>

#include "cudnn.h"

enum {
    MOST_PROPOSALS = 128, /* of one source: those for TF32 come first */
    MOST_NOTES = 16,
};

/* Where proposals come from; these numbers are kept on disk. Engines: each of the graph's, with the
 * settings that it has on its own; the heuristics may name none of the good ones. */
typedef enum source { NO_SOURCE, MODE_A, MODE_B, FALLBACK, ENGINES, SOURCES } source;

/* Plans of one search have one graph. */
typedef struct shared_graph {
    wb_dnn_graph graph;
    int references;
} shared_graph;

/* What a plan holds of cuDNN's. */
typedef struct dnn_plan {
    shared_graph *of;
    dnn_descriptor engine, config, plan; /* engine: NULL where the heuristics made the config */
    float scale, low, one;               /* what attention is given by value: see WB_DNN_SCALE */
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

/* The configuration's engine, to be destroyed. NULL: unknown. */
static dnn_descriptor engine_of(dnn_descriptor config) {
    dnn_descriptor engine = NULL;
    int64_t count = 0;
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_ENGINE, &engine);
    if (!o.error) o = get_list(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine);
    if (!o.error) return engine;
    if (engine) (void)dnn.BackendDestroyDescriptor(engine);
    return NULL;
}

bool wb_dnn_is_suitable(const wb_conv_shape *shape, dnn_descriptor config) {
    const dnn_descriptor engine = engine_of(config);
    int notes[MOST_NOTES];
    int64_t count = 0;
    if (!engine) return false;
    const wb_gpu_outcome o =
        get_list(engine, DNN_ENGINE_NOTES, DNN_TYPE_NUMERICAL_NOTE, MOST_NOTES, &count, notes);
    bool suits = !o.error;
    for (int64_t i = 0; suits && i < count && i < MOST_NOTES; i++)
        suits = !is_forbidden(shape, notes[i]);
    (void)dnn.BackendDestroyDescriptor(engine);
    return suits;
}

/* -1: unknown. */
static int32_t engine_number(dnn_descriptor config) {
    const dnn_descriptor engine = engine_of(config);
    int64_t number = -1, count = 0;
    if (!engine) return -1;
    if (get_list(engine, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, &count, &number).error) number = -1;
    (void)dnn.BackendDestroyDescriptor(engine);
    return (int32_t)number;
}

/* ---- proposals of one source ---- */

typedef struct proposals {
    dnn_descriptor heuristic, engines[MOST_PROPOSALS];
    dnn_descriptor configs[MOST_PROPOSALS]; /* NULL: there is none, or the plan has it now */
    int64_t count;
} proposals;

static wb_gpu_outcome ask_heuristics(dnn_descriptor graph, int mode, proposals *p) {
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_HEURISTIC, &p->heuristic);
    if (!o.error) o = set(p->heuristic, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, &graph);
    if (!o.error) o = set(p->heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC, &mode);
    if (!o.error) o = DNN_TRY(BackendFinalize, p->heuristic);
    for (int i = 0; i < MOST_PROPOSALS && !o.error; i++)
        o = DNN_TRY(BackendCreateDescriptor, DNN_ENGINE_CONFIG, &p->configs[i]);
    return o.error ? o
                   : get_list(p->heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR,
                              MOST_PROPOSALS, &p->count, p->configs);
}

/* Most engines do not support the graph, which becomes known here. */
static bool configure(dnn_descriptor graph, int64_t number, dnn_descriptor *engine,
                      dnn_descriptor *config) {
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_ENGINE, engine);
    if (!o.error) o = set(*engine, DNN_ENGINE_GRAPH, DNN_TYPE_DESCRIPTOR, &graph);
    if (!o.error) o = set(*engine, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, &number);
    if (!o.error) o = DNN_TRY(BackendFinalize, *engine);
    if (!o.error) o = DNN_TRY(BackendCreateDescriptor, DNN_ENGINE_CONFIG, config);
    if (!o.error) o = set(*config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, engine);
    if (!o.error) o = DNN_TRY(BackendFinalize, *config);
    return !o.error;
}

static void drop(dnn_descriptor *descriptor) {
    if (*descriptor) (void)dnn.BackendDestroyDescriptor(*descriptor);
    *descriptor = NULL;
}

static wb_gpu_outcome ask_engines(dnn_descriptor graph, proposals *p) {
    int64_t count = 0;
    const wb_gpu_outcome o =
        get_list(graph, DNN_GRAPH_ENGINES, DNN_TYPE_INT64, 1, &count, &p->count);
    if (p->count > MOST_PROPOSALS) p->count = MOST_PROPOSALS;
    for (int64_t i = 0; i < p->count && !o.error; i++)
        if (!configure(graph, i, &p->engines[i], &p->configs[i])) drop(&p->configs[i]);
    return o;
}

static wb_gpu_outcome ask(dnn_descriptor graph, source from, proposals *p) {
    static const int modes[] = {
        [MODE_A] = DNN_MODE_A, [MODE_B] = DNN_MODE_B, [FALLBACK] = DNN_MODE_FALLBACK};
    return from == ENGINES ? ask_engines(graph, p) : ask_heuristics(graph, modes[from], p);
}

static void forget(proposals *p) {
    for (int i = 0; i < MOST_PROPOSALS; i++) {
        drop(&p->configs[i]);
        drop(&p->engines[i]);
    }
    drop(&p->heuristic);
}

/* ---- plans ---- */

static void release_plan(void *by) {
    dnn_plan *p = by;
    drop(&p->plan);
    drop(&p->config);
    drop(&p->engine);
    if (--p->of->references == 0) {
        wb_dnn_graph_release(&p->of->graph);
        wb_gpu_host->release(p->of);
    }
    wb_gpu_host->release(p);
}

/* Whether a proposal works is known only when its plan is made. */
static bool make_plan(dnn_handle handle, const wb_conv_shape *shape, dnn_descriptor config,
                      dnn_descriptor *plan, int64_t *workspace_bytes) {
    int64_t count = 0;
    wb_gpu_outcome o = DNN_TRY(BackendCreateDescriptor, DNN_PLAN, plan);
    if (!o.error) o = set(*plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, &handle);
    if (!o.error) o = set(*plan, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, &config);
    if (!o.error) o = DNN_TRY(BackendFinalize, *plan);
    if (!o.error)
        o = get_list(*plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, workspace_bytes);
    if (!o.error && wb_dnn_fits(shape, *workspace_bytes)) return true;
    drop(plan);
    return false;
}

/* Older versions compute NaN where the hidden scores are infinite. */
static void set_values(const wb_attention_shape *a, dnn_plan *p) {
    p->scale = a->dk > 0 ? (float)(1 / sqrt((double)a->dk)) : 0;
    p->one = 1;
    p->low = dnn.GetVersion() < 91000 ? -FLT_MAX : -INFINITY;
}

/* ---- searching ---- */

typedef struct search {
    dnn_handle handle;
    const wb_conv_shape *shape;
    shared_graph *graph;
    wb_conv_offer *offer;
    void *context;
    bool is_over;
} search;

/* If a plan is made of the proposal, the plan takes over its descriptors. */
static void offer_one(search *s, source from, int32_t index, proposals *proposed) {
    dnn_descriptor *config = &proposed->configs[index], *engine = &proposed->engines[index];
    wb_conv_plan offered = {
        .shape = *s->shape,
        .choice = {.way = WB_CONV_LIBRARY, .source = (int32_t)from, .index = index}};
    dnn_descriptor plan = NULL;
    if (!wb_dnn_is_suitable(s->shape, *config) ||
        !make_plan(s->handle, s->shape, *config, &plan, &offered.workspace_bytes))
        return;
    dnn_plan *p = wb_gpu_host->alloc(sizeof *p);
    if (!p) {
        drop(&plan);
        return;
    }
    *p = (dnn_plan){.of = s->graph, .engine = *engine, .config = *config, .plan = plan};
    set_values(&s->shape->attention, p);
    s->graph->references++;
    offered.choice.engine = engine_number(*config);
    offered.by = p;
    *config = *engine = NULL;
    s->is_over = !s->offer(s->context, &offered);
}

/* only: -1 for all. */
static void try_source(search *s, source from, int32_t only) {
    proposals p = {.heuristic = NULL};
    const wb_gpu_outcome o = ask(s->graph->graph.graph, from, &p);
    for (int32_t i = 0; i < p.count && i < MOST_PROPOSALS && !o.error && !s->is_over; i++)
        if ((only < 0 || i == only) && p.configs[i]) offer_one(s, from, i, &p);
    forget(&p);
}

/* The sources up to the first 0, until the offer says that it is over. */
static wb_gpu_outcome search_sources(search *s, const source *sources, int32_t only) {
    s->graph = wb_gpu_host->alloc(sizeof *s->graph);
    if (!s->graph) return (wb_gpu_outcome){.call = "memory", .error = "out of memory"};
    s->graph->references = 1;
    const wb_gpu_outcome o = wb_dnn_graph_make(s->shape, s->handle, &s->graph->graph);
    for (; *sources && !o.error && !s->is_over; sources++) try_source(s, *sources, only);
    if (--s->graph->references == 0) {
        wb_dnn_graph_release(&s->graph->graph);
        wb_gpu_host->release(s->graph);
    }
    return o;
}

static wb_gpu_outcome propose(void *handle, const wb_conv_shape *shape, wb_conv_offer *offer,
                              void *context) {
    static const source all[] = {MODE_A, MODE_B, FALLBACK, ENGINES, NO_SOURCE};
    search s = {.handle = handle, .shape = shape, .offer = offer, .context = context};
    return search_sources(&s, all, -1);
}

/* A choice that names another engine was made by other lists. */
static bool take_first(void *context, const wb_conv_plan *offered) {
    wb_conv_plan *plan = context;
    if (plan->choice.source && plan->choice.engine != offered->choice.engine) {
        release_plan(offered->by);
        return true;
    }
    plan->by = offered->by, plan->workspace_bytes = offered->workspace_bytes;
    if (!plan->choice.source) plan->choice = offered->choice;
    return false;
}

static wb_gpu_outcome make(void *handle, wb_conv_plan *plan) {
    const wb_conv_choice *c = &plan->choice;
    const bool is_named = c->source > NO_SOURCE && c->source < SOURCES;
    const source heuristics[] = {MODE_A, FALLBACK, NO_SOURCE},
                 named[] = {(source)c->source, NO_SOURCE};
    search s = {.handle = handle, .shape = &plan->shape, .offer = take_first, .context = plan};
    return search_sources(&s, is_named ? named : heuristics, is_named ? c->index : -1);
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
    .propose = propose,
    .drop = release_plan,
    .run = run,
};
