/* Programs after a matrix product that cuBLASLt and hipBLASLt can compute with it. */
#ifndef WB_LT_EPILOGUE_H
#define WB_LT_EPILOGUE_H

#include <weber/plugin.h>

/* What is done to the product x, in this order. */
typedef enum wb_epilogue_kind {
    WB_EPILOGUE_NONE = 0,
    WB_EPILOGUE_BIAS = 1, /* x + b, b of m elements */
    WB_EPILOGUE_RELU = 2, /* max(x, 0) */
    WB_EPILOGUE_GELU = 4, /* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
    WB_EPILOGUE_RELU_BIAS = WB_EPILOGUE_RELU | WB_EPILOGUE_BIAS,
    WB_EPILOGUE_GELU_BIAS = WB_EPILOGUE_GELU | WB_EPILOGUE_BIAS,
} wb_epilogue_kind;

/* bias, result: arguments of the program. */
typedef struct wb_epilogue {
    int kind; /* wb_epilogue_kind */
    int bias, result;
    int64_t bias_offset_bytes;
} wb_epilogue;

/* True if the result and the bias are aligned in each run. */
bool wb_epilogue_is_aligned(const wb_call *call, const wb_epilogue *epilogue);

/* True for the operations that these epilogues can contain. */
bool wb_epilogue_takes(const char *name);

/* True if the program is one of these over the whole product, all in the call's type, and nothing
 * else needs the product itself. */
bool wb_epilogue_find(const wb_call *call, const wb_program *program, int split,
                      wb_epilogue *epilogue);

#endif
