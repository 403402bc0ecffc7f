/* Programs behind a matrix product that cuBLASLt and hipBLASLt can compute with it. */
#ifndef WB_LT_EPILOGUE_H
#define WB_LT_EPILOGUE_H

#include <weber/plugin.h>

/* What is done to the product x, in this order; and what is made of that. */
typedef enum wb_epilogue_kind {
    WB_EPILOGUE_NONE = 0,
    WB_EPILOGUE_BIAS = 1, /* x + b, b of m elements */
    WB_EPILOGUE_AUX =
        2, /* stored beside the result: what gelu is of; of relu, where that is positive */
    WB_EPILOGUE_RELU = 4,   /* max(x, 0) */
    WB_EPILOGUE_GELU = 8,   /* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
    WB_EPILOGUE_DGELU = 16, /* x gelu'(z), z being what the other product stored beside gelu(z) */
    WB_EPILOGUE_BGRAD = 32, /* stored beside the result: its sums along the rows, m elements */
    WB_EPILOGUE_DRELU =
        64, /* x where the other product noted that relu's argument was positive, else 0 */
    WB_EPILOGUE_RELU_BIAS = WB_EPILOGUE_RELU | WB_EPILOGUE_BIAS,
    WB_EPILOGUE_GELU_BIAS = WB_EPILOGUE_GELU | WB_EPILOGUE_BIAS,
    WB_EPILOGUE_GELU_AUX = WB_EPILOGUE_GELU | WB_EPILOGUE_AUX,
    WB_EPILOGUE_GELU_AUX_BIAS = WB_EPILOGUE_GELU_AUX | WB_EPILOGUE_BIAS,
    WB_EPILOGUE_RELU_AUX = WB_EPILOGUE_RELU | WB_EPILOGUE_AUX,
    WB_EPILOGUE_RELU_AUX_BIAS = WB_EPILOGUE_RELU_AUX | WB_EPILOGUE_BIAS,
    WB_EPILOGUE_DRELU_BGRAD = WB_EPILOGUE_DRELU | WB_EPILOGUE_BGRAD,
    WB_EPILOGUE_DGELU_BGRAD = WB_EPILOGUE_DGELU | WB_EPILOGUE_BGRAD,
} wb_epilogue_kind;

static inline bool wb_epilogue_has_bias(int kind) {
    return kind & (WB_EPILOGUE_BIAS | WB_EPILOGUE_BGRAD);
}

static inline bool wb_epilogue_has_aux(int kind) {
    return kind & (WB_EPILOGUE_AUX | WB_EPILOGUE_DGELU | WB_EPILOGUE_DRELU);
}

/* What lies beside are bits, of which each column has a multiple of 128. */
static inline bool wb_epilogue_has_mask(int kind) {
    return kind & WB_EPILOGUE_DRELU || (kind & WB_EPILOGUE_RELU_AUX) == WB_EPILOGUE_RELU_AUX;
}

/* bias, result, aux: arguments of the program. bias is the gradient's, too; aux lies as the result
 * does, unless it is a mask. */
typedef struct wb_epilogue {
    int kind; /* wb_epilogue_kind */
    int bias, result, aux;
    int64_t bias_offset_bytes;
} wb_epilogue;

/* True if the result and the bias are, in each run. */
bool wb_epilogue_is_aligned(const wb_call *call, const wb_epilogue *epilogue);

/* True if the program is one of these over the whole product, all in the call's type, and nothing
 * else needs the product itself. */
bool wb_epilogue_find(const wb_call *call, const wb_program *program, int split,
                      wb_epilogue *epilogue);

#endif
