/* Convolutions in cuDNN's terms: graphs are made and finalised, which needs the library but no GPU.
 * Plans and their running need one. */
#include <cmocka.h>
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

/* name, type; in, kernel, stride, dilation, border before and behind; channels, filters, groups,
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
    call.window.out[0] -= 3; /* less than nothing is padded behind */
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

int main(void) {
    wb_gpu_host = &wb_builtin_host;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_of_all_geometries_are_finalised),
        cmocka_unit_test(a_graph_that_is_wrong_is_refused),
        cmocka_unit_test(what_is_no_convolution_for_it_is_passed_on),
        cmocka_unit_test(flips_share_a_plan_and_precisions_do_not),
    };
    return cmocka_run_group_tests_name("backends/cuda/test_cudnn", tests, NULL, NULL);
}
