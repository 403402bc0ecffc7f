/* Programs behind a matrix product that cuBLASLt and hipBLASLt can compute with it. */
#ifndef WB_LT_EPILOGUE_H
#define WB_LT_EPILOGUE_H

#include <weber/plugin.h>

typedef enum wb_epilogue_kind {
    WB_EPILOGUE_NONE,
    WB_EPILOGUE_BIAS, /* x + b, b of m elements */
    WB_EPILOGUE_RELU, /* max(x, 0) */
    WB_EPILOGUE_RELU_BIAS,
    WB_EPILOGUE_GELU, /* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
    WB_EPILOGUE_GELU_BIAS,
} wb_epilogue_kind;

static inline bool wb_epilogue_has_bias(wb_epilogue_kind kind) {
    return kind == WB_EPILOGUE_BIAS || kind == WB_EPILOGUE_RELU_BIAS ||
           kind == WB_EPILOGUE_GELU_BIAS;
}

typedef struct wb_epilogue {
    wb_epilogue_kind kind;
    int bias, result; /* arguments of the program */
    int64_t bias_offset_bytes;
} wb_epilogue;

/* True if the program is one of these over the whole product, all in the call's type, and nothing else needs the product itself. */
bool wb_epilogue_find(const wb_call *call, const wb_program *program, int split,
                      wb_epilogue *epilogue);

#endif
