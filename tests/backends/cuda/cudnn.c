/* A library that stands for cuDNN's backend interface over the fake driver's memory: convolutions
 * of f32 and f64, attention of bf16, nothing of f16. Its heuristics propose engines that must not
 * be taken first. One engine is proposed by the second of them alone, one by none.
 * It proves that convolutions are described rightly, and nothing about speed. */
#include <stdio.h>

#include "backends/cuda/convolve.h"
#include "backends/cuda/dnn_graph.h"

enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000 };
enum { WORKSPACE = 100, WORKSPACE_ALIGNMENT = 256 };
/* Engines, in the order in which they are proposed: first many that must not be taken. */
enum {
    CHANGING,
    ROUNDING,
    SPREADING,
    BROKEN,
    GOOD,
    SECOND, /* what the second heuristics propose */
    HIDDEN, /* what none proposes */
    ENGINES,
    FORBIDDEN = 30,
    PROPOSALS = FORBIDDEN + 2
};

struct dnn_handle_object {
    gpu_stream stream;
};

/* graphs of attention, of its derivative and of convolutions that ran, the last one's engine; set
 * by the test: the n-th call from now on fails (0: none), the version, how long engines take where
 * time is made up, that the second heuristics propose what the first do; read by the test */
extern long fake_dnn_attentions, fake_dnn_derivatives, fake_dnn_convolutions, fake_dnn_engine,
    fake_dnn_fail, fake_dnn_version, fake_dnn_ms[ENGINES], fake_dnn_has_one_list;
long fake_dnn_attentions, fake_dnn_derivatives, fake_dnn_convolutions, fake_dnn_engine,
    fake_dnn_fail, fake_dnn_version = 91900, fake_dnn_ms[ENGINES], fake_dnn_has_one_list;

static bool fails(void) { return fake_dnn_fail > 0 && --fake_dnn_fail == 0; }
#define MAY_FAIL                                                                                   \
    if (fails()) return EXECUTION_FAILED

#define X_(result, name, parameters) result cudnn##name parameters;
DNN_FUNCTION_LIST(X_)
#undef X_

__attribute__((destructor)) static void tell(void) {
    (void)fprintf(stderr, "cuDNN's stand-in: %ld convolutions\n", fake_dnn_convolutions);
}

size_t cudnnGetVersion(void) { return (size_t)fake_dnn_version; }
const char *cudnnGetErrorString(dnn_code code) {
    return code == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_OTHER";
}

dnn_code cudnnCreate(dnn_handle *handle) {
    *handle = calloc(1, sizeof **handle);
    return DNN_SUCCESS;
}
dnn_code cudnnDestroy(dnn_handle handle) {
    free(handle);
    return DNN_SUCCESS;
}
dnn_code cudnnSetStream(dnn_handle handle, dnn_stream stream) {
    handle->stream = stream;
    return DNN_SUCCESS;
}

/* ---- descriptors ---- */

dnn_code cudnnBackendCreateDescriptor(dnn_kind kind, dnn_descriptor *descriptor) {
    MAY_FAIL;
    object *o = calloc(1, sizeof *o);
    o->kind = kind;
    *descriptor = o;
    return DNN_SUCCESS;
}
dnn_code cudnnBackendDestroyDescriptor(dnn_descriptor descriptor) {
    free(descriptor);
    return DNN_SUCCESS;
}

static size_t bytes_of(dnn_type type) {
    if (type == DNN_TYPE_BOOLEAN) return sizeof(bool);
    return type == DNN_TYPE_INT64 || type == DNN_TYPE_DOUBLE || type == DNN_TYPE_POINTER ||
                   type == DNN_TYPE_DESCRIPTOR || type == DNN_TYPE_HANDLE
               ? 8
               : 4;
}

static dnn_code set(object *o, dnn_name name, dnn_type type, int64_t count, const void *elements) {
    const size_t bytes = (size_t)count * bytes_of(type);
    if (o->is_final || o->count == MOST_ATTRIBUTES || bytes > MOST_BYTES) return BAD_PARAM;
    o->attributes[o->count].name = name, o->attributes[o->count].type = type;
    o->attributes[o->count].count = count;
    memcpy(o->attributes[o->count++].bytes, elements, bytes);
    return DNN_SUCCESS;
}

dnn_code cudnnBackendSetAttribute(dnn_descriptor descriptor, dnn_name name, dnn_type type,
                                  int64_t count, const void *elements) {
    MAY_FAIL;
    return set(descriptor, name, type, count, elements);
}

static const object *operation_of(const object *graph) { return part(graph, DNN_GRAPH_OPERATIONS); }

static const object *tensor_of(const object *operation, int which) {
    static const dnn_name names[3][3] = {{DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y},
                                         {DNN_FILTER_X, DNN_FILTER_W, DNN_FILTER_Y},
                                         {DNN_DATA_X, DNN_DATA_W, DNN_DATA_Y}};
    return part(operation, names[operation->kind - DNN_FORWARD][which]);
}

/* The first of the graph's products; NULL: a convolution. */
static const object *product_of(const object *graph) {
    const object *const *operations = value(graph, DNN_GRAPH_OPERATIONS);
    for (int64_t i = 0; i < count_of(graph, DNN_GRAPH_OPERATIONS); i++)
        if (operations[i]->kind == DNN_DO_MATMUL) return operations[i];
    return NULL;
}

static bool is_attention(const object *graph) { return product_of(graph) != NULL; }
static bool is_derivative(const object *graph) {
    return is_attention(graph) && operation_of(graph)->kind == DNN_DO_POINTWISE;
}

static bool has_engines(const object *graph) {
    if (is_attention(graph)) return type_of(part(product_of(graph), DNN_DO_MATMUL_A)) == DNN_BF16;
    const int type = type_of(tensor_of(operation_of(graph), X));
    return type == DNN_F32 || type == DNN_F64;
}

/* Each proposal knows its graph. */
static void propose(const object *heuristic, int64_t wanted, int64_t *count,
                    dnn_descriptor *configs) {
    const object *graph = part(heuristic, DNN_HEURISTIC_GRAPH);
    const bool is_second =
        *(const int *)value(heuristic, DNN_HEURISTIC_MODE) == DNN_MODE_B && !fake_dnn_has_one_list;
    *count = has_engines(graph) ? PROPOSALS : 0;
    for (int i = 0; i < *count && i < wanted; i++) {
        object *config = configs[i];
        const int last = is_second ? SECOND : GOOD;
        config->engine = i < FORBIDDEN ? i % BROKEN : i == FORBIDDEN ? BROKEN : last;
        (void)set(config, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
        config->is_final = true;
    }
}

/* A derivative's engine stores a half for each query and key; one that does not adds up in any
 * order. */
static int64_t workspace_of(const object *config) {
    const object *graph = part(config, DNN_HEURISTIC_GRAPH);
    if (!is_derivative(graph)) return WORKSPACE;
    const int64_t stored = 2 * elements(part(product_of(graph), DNN_DO_MATMUL_C));
    return config->engine == ROUNDING ? stored / 2 : WORKSPACE + stored;
}

/* What a program makes itself: an engine of a graph by its number, and its configuration. */
static bool make_engine(object *engine) {
    engine->engine = (int)*(const int64_t *)value(engine, DNN_ENGINE_NUMBER);
    return engine->engine < ENGINES && has_engines(part(engine, DNN_ENGINE_GRAPH));
}

static void configure(object *config) {
    const object *engine = part(config, DNN_CONFIG_ENGINE), *graph = part(engine, DNN_ENGINE_GRAPH);
    config->engine = engine->engine;
    (void)set(config, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
}

dnn_code cudnnBackendFinalize(dnn_descriptor descriptor) {
    MAY_FAIL;
    object *o = descriptor;
    if (o->is_final) return BAD_PARAM;
    if (o->kind == DNN_PLAN && part(o, DNN_PLAN_CONFIG)->engine == BROKEN) return NOT_SUPPORTED;
    if (o->kind == DNN_ENGINE && !make_engine(o)) return NOT_SUPPORTED;
    if (o->kind == DNN_ENGINE_CONFIG) configure(o);
    o->is_final = true;
    return DNN_SUCCESS;
}

dnn_code cudnnBackendGetAttribute(dnn_descriptor descriptor, dnn_name name, dnn_type type,
                                  int64_t wanted, int64_t *count, void *elements) {
    static const int notes[ENGINES] = {[CHANGING] = DNN_NOTE_NONDETERMINISTIC,
                                       [ROUNDING] = DNN_NOTE_DOWN_CONVERT,
                                       [SPREADING] = DNN_NOTE_WINOGRAD_4,
                                       [BROKEN] = -1,
                                       [GOOD] = -1,
                                       [SECOND] = -1,
                                       [HIDDEN] = -1};
    const object *o = descriptor;
    MAY_FAIL;
    *count = 1;
    if (!o->is_final || (name != DNN_ENGINE_NOTES && type == DNN_TYPE_NUMERICAL_NOTE))
        return BAD_PARAM;
    if (name == DNN_HEURISTIC_RESULTS)
        propose(o, wanted, count, elements);
    else if (name == DNN_CONFIG_ENGINE) {
        object *engine = *(object **)elements;
        engine->engine = o->engine, engine->is_final = true;
    } else if (name == DNN_ENGINE_NOTES) {
        *count = notes[o->engine] >= 0;
        if (*count) *(int *)elements = notes[o->engine];
    } else if (name == DNN_GRAPH_ENGINES)
        *(int64_t *)elements = ENGINES;
    else if (name == DNN_ENGINE_NUMBER)
        *(int64_t *)elements = o->engine;
    else if (name == DNN_PLAN_WORKSPACE)
        *(int64_t *)elements = workspace_of(part(o, DNN_PLAN_CONFIG));
    else
        return BAD_PARAM;
    return DNN_SUCCESS;
}

/* ---- convolutions ---- */

static walk walk_of(const object *operation, dnn_name convolution) {
    static const int results[] = {Y, W, X};
    const object *c = part(operation, convolution);
    walk k = {.spatial = (int)*(const int64_t *)value(c, DNN_CONVOLUTION_SPATIAL),
              .is_f64 = type_of(tensor_of(operation, X)) == DNN_F64,
              .result = results[operation->kind - DNN_FORWARD],
              .stride = value(c, DNN_CONVOLUTION_STRIDES),
              .dilation = value(c, DNN_CONVOLUTION_DILATIONS),
              .pad = value(c, DNN_CONVOLUTION_PAD_BEFORE)};
    for (int t = 0; t < ARRAYS; t++) k.sizes[t] = value(tensor_of(operation, t), DNN_TENSOR_SIZES);
    return k;
}

static dnn_code convolve_graph(dnn_handle handle, const object *operation, const object *pack) {
    static const dnn_name convolution_names[] = {DNN_FORWARD_CONVOLUTION, DNN_FILTER_CONVOLUTION,
                                                 DNN_DATA_CONVOLUTION};
    const int64_t *ids = value(pack, DNN_PACK_IDS);
    void *const *pointers = value(pack, DNN_PACK_POINTERS);
    walk k = walk_of(operation, convolution_names[operation->kind - DNN_FORWARD]);
    for (int t = 0; t < ARRAYS; t++) {
        const object *tensor = tensor_of(operation, t);
        if (*(const int64_t *)value(tensor, DNN_TENSOR_ID) != ids[t] ||
            !is_aligned(tensor, pointers[t]))
            return BAD_PARAM;
    }
    if (!convolve_at(&k, handle->stream, pointers)) return EXECUTION_FAILED;
    spend(fake_dnn_ms[fake_dnn_engine]);
    fake_dnn_convolutions++;
    return DNN_SUCCESS;
}

/* Rounding and spreading of what is a half anyway are no fault; other bits from run to
 * run are. */
static bool may_run(const object *graph, int engine) {
    if (is_derivative(graph)) return engine == SPREADING || engine == GOOD;
    return engine >= GOOD || (is_attention(graph) && engine == ROUNDING);
}

/* Nothing else lies in the workspace: no array begins there, and what does is spoilt. */
static bool spoil(dnn_handle handle, const object *plan, const object *pack) {
    const size_t bytes = (size_t)workspace_of(part(plan, DNN_PLAN_CONFIG));
    char *const workspace = *(char *const *)value(pack, DNN_PACK_WORKSPACE);
    char *const *pointers = value(pack, DNN_PACK_POINTERS);
    for (int64_t i = 0; i < count_of(pack, DNN_PACK_POINTERS); i++)
        if ((uintptr_t)pointers[i] - (uintptr_t)workspace < bytes) return false;
    char *numbers = malloc(bytes);
    memset(numbers, 0xff, bytes);
    const bool works = put_back(handle->stream, workspace, numbers, bytes);
    free(numbers);
    return works;
}

dnn_code cudnnBackendExecute(dnn_handle handle, dnn_descriptor plan, dnn_descriptor pack) {
    MAY_FAIL;
    const object *config = part(plan, DNN_PLAN_CONFIG), *graph = part(config, DNN_HEURISTIC_GRAPH);
    if (!may_run(graph, config->engine) || !((const object *)pack)->is_final) return BAD_PARAM;
    if (*(const uintptr_t *)value(pack, DNN_PACK_WORKSPACE) % WORKSPACE_ALIGNMENT != 0)
        return BAD_PARAM;
    fake_dnn_engine = config->engine;
    if (!is_attention(graph)) return convolve_graph(handle, operation_of(graph), pack);
    if (!spoil(handle, plan, pack) || !evaluate(graph, pack, handle->stream))
        return EXECUTION_FAILED;
    *(is_derivative(graph) ? &fake_dnn_derivatives : &fake_dnn_attentions) += 1;
    return DNN_SUCCESS;
}
