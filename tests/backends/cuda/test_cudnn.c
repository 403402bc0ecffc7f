/* Convolutions and attention in cuDNN's terms: graphs are made and finalised, which needs the
 * library but no GPU. Plans and their running need one. */
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/no_vendor.h"
#include "nvidia/cudnn.h"

typedef struct geometry {
    const char *name;
    wb_dtype dtype;
    int64_t in[3], kernel[3], stride[3], dilation[3], pad[3], pad_after[3];
    int64_t channels, filters, groups, batch;
} geometry;

/* name, type; in, kernel, stride, dilation, border before and after; channels, filters, groups,
 * batch */
static const geometry geometries[] = {
    {"3x3 padded",
     WB_F32,
     {28, 28, 1},
     {3, 3, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 0},
     {1, 1, 0},
     16,
     32,
     1,
     8},
    {"1x1",
     WB_F32,
     {14, 14, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {0, 0, 0},
     {0, 0, 0},
     64,
     32,
     1,
     4},
    {"strides that leave a rest",
     WB_F32,
     {28, 27, 1},
     {3, 3, 1},
     {2, 2, 1},
     {1, 1, 1},
     {0, 0, 0},
     {0, 0, 0},
     3,
     8,
     1,
     2},
    {"dilated",
     WB_F32,
     {20, 19, 1},
     {3, 2, 1},
     {1, 2, 1},
     {2, 3, 1},
     {2, 1, 0},
     {2, 1, 0},
     4,
     6,
     1,
     2},
    {"padded on one side",
     WB_F32,
     {10, 11, 1},
     {2, 4, 1},
     {1, 1, 1},
     {1, 1, 1},
     {0, 1, 0},
     {1, 2, 0},
     4,
     6,
     1,
     2},
    {"two groups",
     WB_F32,
     {12, 12, 1},
     {3, 3, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 0},
     {1, 1, 0},
     8,
     4,
     2,
     3},
    {"depthwise",
     WB_F32,
     {12, 12, 1},
     {3, 3, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 0},
     {1, 1, 0},
     8,
     8,
     8,
     3},
    {"one dimension",
     WB_F32,
     {100, 1, 1},
     {5, 1, 1},
     {2, 1, 1},
     {1, 1, 1},
     {2, 0, 0},
     {2, 0, 0},
     4,
     8,
     1,
     2},
    {"three dimensions",
     WB_F32,
     {9, 8, 7},
     {3, 2, 3},
     {1, 2, 1},
     {1, 1, 2},
     {1, 0, 2},
     {1, 0, 2},
     4,
     8,
     2,
     2},
    {"f16",
     WB_F16,
     {28, 28, 1},
     {3, 3, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 0},
     {1, 1, 0},
     16,
     32,
     1,
     8},
    {"bf16",
     WB_BF16,
     {28, 28, 1},
     {3, 3, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 0},
     {1, 1, 0},
     16,
     32,
     1,
     8},
    {"f64",
     WB_F64,
     {28, 28, 1},
     {3, 3, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 0},
     {1, 1, 0},
     16,
     32,
     1,
     8},
};

static const wb_call_kind kinds[] = {WB_CALL_conv_forward, WB_CALL_conv_data, WB_CALL_conv_filter};

static wb_call call_of(const geometry *g, wb_call_kind kind) {
    wb_call call = {.kind = kind,
                    .dtype = g->dtype,
                    .window = {.channels = g->channels,
                               .filters = g->filters,
                               .groups = g->groups,
                               .batch = g->batch}};
    wb_window_call *w = &call.window;
    for (int d = 0; d < 3; d++) {
        const int64_t reach = g->dilation[d] * (g->kernel[d] - 1) + 1;
        w->in[d] = g->in[d], w->kernel[d] = g->kernel[d], w->stride[d] = g->stride[d];
        w->dilation[d] = g->dilation[d], w->pad[d] = g->pad[d];
        w->out[d] = (g->in[d] + g->pad[d] + g->pad_after[d] - reach) / g->stride[d] + 1;
    }
    return call;
}

static bool is_there(void) {
    char reason[256] = "";
    const bool works = wb_dnn_load(reason, sizeof reason);
    print_message("%s\n", reason);
    return works;
}

static void graphs_of_all_geometries_are_finalised(void **state) {
    (void)state;
    if (!is_there()) skip();
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const wb_call call = call_of(&geometries[i], kinds[k]);
            wb_conv_shape shape;
            wb_dnn_graph graph;
            assert_true(wb_conv_shape_of(&call, &shape));
            const wb_gpu_outcome o = wb_dnn_graph_make(&shape, NULL, &graph);
            wb_dnn_graph_release(&graph);
            if (o.error)
                fail_msg("%s, kind %d: %s: %s", geometries[i].name, (int)kinds[k], o.call, o.error);
        }
}

/* So that the test above is seen to be able to fail: sizes that do not belong together. */
static void a_graph_that_is_wrong_is_refused(void **state) {
    (void)state;
    if (!is_there()) skip();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const wb_call call = call_of(&geometries[0], kinds[k]);
        wb_conv_shape shape;
        wb_dnn_graph graph;
        assert_true(wb_conv_shape_of(&call, &shape));
        shape.pad[0] += 3;
        const wb_gpu_outcome o = wb_dnn_graph_make(&shape, NULL, &graph);
        wb_dnn_graph_release(&graph);
        assert_non_null(o.error);
        assert_non_null(strstr(o.call, "cudnnBackend"));
    }
}

static void what_is_no_convolution_for_it_is_passed_on(void **state) {
    (void)state;
    wb_conv_shape shape;
    wb_call call = call_of(&geometries[0], WB_CALL_conv_forward);
    assert_true(wb_conv_shape_of(&call, &shape));
    call.window.out[0] -= 3; /* less than nothing is padded at the end */
    assert_false(wb_conv_shape_of(&call, &shape));
    call = call_of(&geometries[0], WB_CALL_conv_forward);
    call.window.batch = 0;
    assert_false(wb_conv_shape_of(&call, &shape));
}

static void flips_share_a_plan_and_precisions_do_not(void **state) {
    (void)state;
    wb_conv_shape one, other;
    wb_call call = call_of(&geometries[0], WB_CALL_conv_forward);
    assert_true(wb_conv_shape_of(&call, &one));
    call.window.flip = true;
    assert_true(wb_conv_shape_of(&call, &other));
    assert_memory_equal(&one, &other, sizeof one);
    call.is_fast = true;
    assert_true(wb_conv_shape_of(&call, &other));
    assert_memory_not_equal(&one, &other, sizeof one);
}

/* ---- attention ---- */

typedef struct attention_row {
    const char *name;
    int32_t dtype;
    int64_t sizes[8]; /* dk, dv, queries, keys, heads, kv_heads, batch, is_causal */
} attention_row;

static const attention_row attentions[] = {
    {"a head", WB_BF16, {64, 64, 128, 128, 1, 1, 1, 0}},
    {"causal, f16", WB_F16, {64, 64, 1024, 1024, 12, 12, 8, 1}},
    {"groups of heads", WB_BF16, {128, 128, 256, 256, 8, 2, 2, 1}},
    {"other values, fewer queries", WB_BF16, {32, 64, 17, 130, 4, 4, 3, 0}},
    {"many keys", WB_BF16, {64, 64, 2048, 2048, 8, 8, 1, 0}},
    {"many heads", WB_BF16, {64, 64, 512, 512, 32, 32, 1, 0}},
};

enum { ATTENTIONS = sizeof attentions / sizeof *attentions };
static const wb_call_kind attention_kinds[] = {WB_CALL_attention, WB_CALL_attention_backward};

static void set_strides(int64_t strides[2], int64_t step, int64_t length) {
    strides[0] = step, strides[1] = step * length;
}

/* Of arrays that are parts of so much wider ones. */
static wb_conv_shape parts_of_attention(const attention_row *row, wb_call_kind kind,
                                        int64_t wider) {
    wb_conv_shape s;
    memset(&s, 0, sizeof s);
    s.kind = (int32_t)kind, s.dtype = row->dtype;
    wb_attention_shape *a = &s.attention;
    memcpy(a, row->sizes, sizeof row->sizes); /* its first members */
    a->all_heads = a->heads, a->all_kv_heads = a->kv_heads;
    set_strides(a->q_strides, a->dk * a->heads * wider, a->queries);
    set_strides(a->k_strides, a->dk * a->kv_heads * wider, a->keys);
    set_strides(a->v_strides, a->dv * a->kv_heads * wider, a->keys);
    return s;
}

static wb_conv_shape shape_of_attention(const attention_row *row, wb_call_kind kind) {
    return parts_of_attention(row, kind, 1);
}

static void finalise(const wb_conv_shape *s, const char *name) {
    wb_dnn_graph graph;
    const wb_gpu_outcome o = wb_dnn_graph_make(s, NULL, &graph);
    wb_dnn_graph_release(&graph);
    if (o.error) fail_msg("%s, kind %d: %s: %s", name, (int)s->kind, o.call, o.error);
}

/* Of all heads, of one entry's that share keys, and of parts of wider arrays. */
static void graphs_of_attention_are_finalised(void **state) {
    (void)state;
    if (!is_there()) skip();
    for (size_t i = 0; i < ATTENTIONS; i++)
        for (size_t k = 0; k < 2; k++) {
            wb_conv_shape s = shape_of_attention(&attentions[i], attention_kinds[k]);
            finalise(&s, attentions[i].name);
            s = parts_of_attention(&attentions[i], attention_kinds[k], 3);
            finalise(&s, attentions[i].name);
            s.attention.batch = 1, s.attention.heads /= s.attention.kv_heads;
            s.attention.kv_heads = 1;
            finalise(&s, attentions[i].name);
        }
}

/* Heads that are no multiple of the keys' heads. */
static void wrong_attention_is_refused(void **state) {
    (void)state;
    if (!is_there()) skip();
    for (size_t k = 0; k < 2; k++) {
        wb_conv_shape s = shape_of_attention(&attentions[2], attention_kinds[k]);
        wb_dnn_graph graph;
        s.attention.kv_heads = 3;
        const wb_gpu_outcome o = wb_dnn_graph_make(&s, NULL, &graph);
        wb_dnn_graph_release(&graph);
        assert_non_null(o.error);
    }
}

/* ---- a card that is described ---- */

/* From cuDNN 9.8 on engines can be chosen for a card that is not there. What the plugin itself does
 * not use of the interface. */
enum {
    DEVICE = 38,            /* CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR */
    DEVICE_TEXT = 2702,     /* CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION */
    HEURISTIC_DEVICE = 204, /* CUDNN_ATTR_ENGINEHEUR_DEVICEPROP */
    CONFIG_WORKSPACE = 303, /* CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE */
    TYPE_CHAR = 24,         /* CUDNN_TYPE_CHAR */
    MOST_CONFIGS = 64,
};

static const char h200[] =
    "{\"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64],"
    "\"regsPerBlock\": 65536, \"multiProcessorCount\": 132, \"warpSize\": 32,"
    "\"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": 232448,"
    "\"oversizedSharedMemoryPerBlock\": 0, \"smCountOrigin\": 0, \"memoryBusWidth\": 5120,"
    "\"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536,"
    "\"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048,"
    "\"pciDeviceId\": 0, \"isTccDriver\": 0, \"supportCoopLaunch\": 1,"
    "\"smClockRateKHz\": 1980000, \"memClockRateKHz\": 3201000, \"l2CacheSize\": 62914560,"
    "\"deviceVer\": 900, \"driverVer\": 13000, \"cudaDeviceId\": 0,"
    "\"totalGlobalMem\": 150754820096, \"deviceName\": \"NVIDIA H200\"}";

/* NULL: this cuDNN cannot do without a card. */
static dnn_descriptor describe_card(void) {
    dnn_descriptor card = NULL;
    if (dnn.BackendCreateDescriptor((dnn_kind)DEVICE, &card) == DNN_SUCCESS &&
        dnn.BackendSetAttribute(card, DEVICE_TEXT, TYPE_CHAR, sizeof h200, h200) == DNN_SUCCESS &&
        dnn.BackendFinalize(card) == DNN_SUCCESS)
        return card;
    if (card) (void)dnn.BackendDestroyDescriptor(card);
    return NULL;
}

/* What the engine would be given, if it is one of the derivative's: 0 where it does not say. */
static int64_t workspace_of(dnn_descriptor config) {
    int64_t bytes = 0, count = 0;
    (void)dnn.BackendGetAttribute(config, CONFIG_WORKSPACE, DNN_TYPE_INT64, 1, &count, &bytes);
    return bytes;
}

static bool is_taken(const wb_conv_shape *s, dnn_descriptor config) {
    return wb_dnn_is_suitable(s, config) && wb_dnn_fits(s, workspace_of(config));
}

/* Engines that are proposed for the card, say that they can compute the graph, and suit us. */
static int64_t count_engines(dnn_descriptor card, const wb_conv_shape *s,
                             const wb_dnn_graph *graph) {
    const int mode = DNN_MODE_A;
    dnn_descriptor heuristic = NULL, configs[MOST_CONFIGS] = {NULL};
    int64_t count = 0, taken = 0;
    (void)dnn.BackendCreateDescriptor(DNN_HEURISTIC, &heuristic);
    for (int i = 0; i < MOST_CONFIGS; i++)
        (void)dnn.BackendCreateDescriptor(DNN_ENGINE_CONFIG, &configs[i]);
    (void)wb_dnn_set(heuristic, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph->graph);
    (void)wb_dnn_set(heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC, 1, &mode);
    (void)wb_dnn_set(heuristic, HEURISTIC_DEVICE, DNN_TYPE_DESCRIPTOR, 1, &card);
    if (dnn.BackendFinalize(heuristic) == DNN_SUCCESS)
        (void)dnn.BackendGetAttribute(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR,
                                      MOST_CONFIGS, &count, configs);
    for (int64_t i = 0; i < count; i++) taken += is_taken(s, configs[i]);
    for (int i = 0; i < MOST_CONFIGS; i++) (void)dnn.BackendDestroyDescriptor(configs[i]);
    (void)dnn.BackendDestroyDescriptor(heuristic);
    return taken;
}

static int64_t engines_of(dnn_descriptor card, const wb_conv_shape *s) {
    wb_dnn_graph graph;
    const wb_gpu_outcome o = wb_dnn_graph_make(s, NULL, &graph);
    const int64_t count = o.error ? 0 : count_engines(card, s, &graph);
    wb_dnn_graph_release(&graph);
    return count;
}

/* Engines ask for a driver's library, which then is not called: the toolkit's stub will do. The
 * derivative's have no note that they are nondeterministic, and store as much as they must. */
static void engines_of_a_card_take_attention(void **state) {
    (void)state;
    void *driver = dlopen(CUDA_STUB, RTLD_NOW | RTLD_GLOBAL);
    dnn_descriptor card = driver && is_there() ? describe_card() : NULL;
    if (!card) skip();
    for (size_t i = 0; i < ATTENTIONS; i++)
        for (size_t k = 0; k < 2; k++) {
            const wb_conv_shape s = shape_of_attention(&attentions[i], attention_kinds[k]),
                                parts = parts_of_attention(&attentions[i], attention_kinds[k], 3);
            const int64_t count = engines_of(card, &s);
            print_message("%s: %lld engines%s\n", attentions[i].name, (long long)count,
                          k ? " of the derivative" : "");
            assert_true(count > 0);
            assert_int_equal(engines_of(card, &parts), count);
        }
    wb_conv_shape odd = shape_of_attention(&attentions[0], WB_CALL_attention);
    odd.attention.dk = 12; /* which the plugin does not offer */
    assert_int_equal(engines_of(card, &odd), 0);
    (void)dnn.BackendDestroyDescriptor(card);
}

/* A derivative's engine with less than a half for each query and key does not store them. */
static void a_derivative_that_stores_too_little_or_too_much_is_not_taken(void **state) {
    (void)state;
    const wb_conv_shape s = shape_of_attention(&attentions[1], WB_CALL_attention_backward);
    const int64_t stored = (int64_t)2 * 8 * 12 * 1024 * 1024;
    assert_int_equal(wb_dnn_stored_bytes(&s.attention), stored);
    assert_true(wb_dnn_fits(&s, stored));
    assert_false(wb_dnn_fits(&s, stored / 8)); /* dq in f32 */
    assert_false(wb_dnn_fits(&s, 2 * stored));
}

int main(void) {
    wb_gpu_host = &wb_builtin_host;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_of_all_geometries_are_finalised),
        cmocka_unit_test(a_graph_that_is_wrong_is_refused),
        cmocka_unit_test(what_is_no_convolution_for_it_is_passed_on),
        cmocka_unit_test(flips_share_a_plan_and_precisions_do_not),
        cmocka_unit_test(graphs_of_attention_are_finalised),
        cmocka_unit_test(wrong_attention_is_refused),
        cmocka_unit_test(engines_of_a_card_take_attention),
        cmocka_unit_test(a_derivative_that_stores_too_little_or_too_much_is_not_taken),
    };
    return cmocka_run_group_tests_name("backends/cuda/test_cudnn", tests, NULL, NULL);
}
