/* The rows of the table EDGES as tests; see edges.h. */
#include "edges/edges.h"

#define EDGE_F32  WB_F32
#define EDGE_F64  WB_F64
#define EDGE_F16  WB_F16
#define EDGE_BF16 WB_BF16
#define EDGE_I32  WB_I32
#define EDGE_I64  WB_I64
#define EDGE_U8   WB_U8
#define EDGE_BOOL WB_BOOL

#define NUMBERS(dtype, ...)                                                                        \
    {                                                                                              \
        .given = true, .type = dtype,                                                              \
        .count = (int)(sizeof((const double[]){0, __VA_ARGS__}) / sizeof(double)) - 1, .at = {     \
            0,                                                                                     \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define X(type_, ...)     .x = NUMBERS(EDGE_##type_, __VA_ARGS__)
#define Y(type_, ...)     .y = NUMBERS(EDGE_##type_, __VA_ARGS__)
#define GIVES(type_, ...) .gives = NUMBERS(EDGE_##type_, __VA_ARGS__)
#define DX(...)           .dx = NUMBERS(0, __VA_ARGS__)
#define DY(...)           .dy = NUMBERS(0, __VA_ARGS__)
#define DDX(...)          .ddx = NUMBERS(0, __VA_ARGS__)
#define SAYS(text)        .says = text
#define WITHIN(error)     .within = error
#define FROM(text)        .source = text
#define INF               ((double)INFINITY)
#define NOT_A_NUMBER      ((double)NAN)

#define FUNCTION_AT(line) edge_at_##line
#define FUNCTION(line)    FUNCTION_AT(line)

#define EDGE(name_, expression, ...)                                                               \
    static wb_array *FUNCTION(__LINE__)(wb_array * x, wb_array * y) {                              \
        (void)x, (void)y;                                                                          \
        return expression;                                                                         \
    }
#include EDGES
#undef EDGE
#define EDGE(name_, expression, ...) {.name = name_, .make = FUNCTION(__LINE__), __VA_ARGS__},
static const edge edges[] = {
#include EDGES
};
#undef EDGE

static test_list edge_tests;

/* The rows, and what was added to edge_tests before. */
static int run_edges(void) {
    ADD_ROWS(&edge_tests, edges, an_edge_is_right);
    return run_test_list(EDGES, &edge_tests, NULL, NULL);
}
