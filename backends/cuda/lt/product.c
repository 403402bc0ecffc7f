/* The library's functions, and a product in its terms. */
#include "lt.h"

wb_lt_functions lt;

/* ---- the library ---- */

const wb_symbol wb_lt_symbols[WB_LT_FUNCTIONS] = {
#define X(result, name, parameters) {LT_PREFIX #name, offsetof(wb_lt_functions, name)},
    LT_FUNCTION_LIST(X)
#undef X
};

wb_gpu_outcome wb_lt_outcome(const char *call, lt_code code) {
    return (wb_gpu_outcome){.call = call,
                            .error = code == LT_SUCCESS ? NULL : wb_lt_error_name(code)};
}

/* ---- descriptors ---- */

static lt_type type_of(int dtype) {
    static const lt_type types[WB_DTYPE_COUNT] = {
        [WB_F32] = LT_F32, [WB_F64] = LT_F64, [WB_F16] = LT_F16, [WB_BF16] = LT_BF16};
    return types[dtype];
}

static lt_compute compute_of(const wb_lt_shape *shape) {
    if (shape->dtype == WB_F64) return LT_COMPUTE_F64;
    return shape->dtype == WB_F32 && shape->fast ? LT_COMPUTE_TF32 : LT_COMPUTE_F32;
}

/* What each adds to the library's number, whose bits are made in the same way. */
static int32_t epilogue_of(int kind) {
    static const struct {
        int kind;
        int32_t bits;
    } parts[] = {
        {WB_EPILOGUE_BIAS, LT_EPILOGUE_BIAS},
        {WB_EPILOGUE_RELU, LT_EPILOGUE_RELU},
        {WB_EPILOGUE_GELU, LT_EPILOGUE_GELU},
    };
    int32_t bits = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (kind & parts[i].kind) bits |= parts[i].bits;
    return bits;
}

static wb_gpu_outcome set_desc(lt_desc desc, lt_desc_attribute attribute, int32_t value) {
    return LT_TRY(MatmulDescSetAttribute, desc, attribute, &value, sizeof value);
}

/* A bias is of the product's type. hipBLASLt before 0.10 looks for algorithms without one as long
 * as it has no address; any will do, whose alignment counts. */
static wb_gpu_outcome announce_bias(const wb_lt_shape *shape, lt_desc desc) {
    static const gpu_pointer somewhere = WB_LT_ALIGNED_BYTES;
    if (LT_BIAS_TYPE == LT_NONE) return (wb_gpu_outcome){.error = NULL};
    const wb_gpu_outcome o = set_desc(desc, LT_BIAS_TYPE, type_of(shape->dtype));
    if (o.error) return o;
    return LT_TRY(MatmulDescSetAttribute, desc, LT_BIAS_POINTER, &somewhere, sizeof somewhere);
}

static wb_gpu_outcome make_desc(const wb_lt_shape *shape, lt_desc *desc) {
    const lt_type scale = shape->dtype == WB_F64 ? LT_F64 : LT_F32;
    wb_gpu_outcome o = LT_TRY(MatmulDescCreate, desc, compute_of(shape), scale);
    if (!o.error && shape->transpose_a) o = set_desc(*desc, LT_TRANSPOSE_A, LT_TRANSPOSED);
    if (!o.error && shape->transpose_b) o = set_desc(*desc, LT_TRANSPOSE_B, LT_TRANSPOSED);
    if (!o.error && shape->epilogue) o = set_desc(*desc, LT_EPILOGUE, epilogue_of(shape->epilogue));
    if (!o.error && shape->epilogue & WB_EPILOGUE_BIAS) o = announce_bias(shape, *desc);
    return o;
}

static wb_gpu_outcome make_layout(const wb_lt_shape *shape, int dtype, bool transposed,
                                  int64_t rows, int64_t columns, int64_t leading, int64_t stride,
                                  lt_layout *layout) {
    const int32_t batch = (int32_t)shape->batch;
    wb_gpu_outcome o =
        LT_TRY(MatrixLayoutCreate, layout, type_of(dtype), (uint64_t)(transposed ? columns : rows),
               (uint64_t)(transposed ? rows : columns), leading);
    if (o.error || batch == 1) return o;
    o = LT_TRY(MatrixLayoutSetAttribute, *layout, LT_BATCH_COUNT, &batch, sizeof batch);
    if (!o.error)
        o = LT_TRY(MatrixLayoutSetAttribute, *layout, LT_BATCH_STRIDE, &stride, sizeof stride);
    return o;
}

wb_gpu_outcome wb_lt_product_make(const wb_lt_shape *s, wb_lt_product *product) {
    *product = (wb_lt_product){.desc = NULL};
    wb_gpu_outcome o = make_desc(s, &product->desc);
    if (!o.error)
        o = make_layout(s, s->dtype, s->transpose_a, s->m, s->k, s->lda, s->stride_a, &product->a);
    if (!o.error)
        o = make_layout(s, s->dtype, s->transpose_b, s->k, s->n, s->ldb, s->stride_b, &product->b);
    if (!o.error)
        o = make_layout(s, s->result, false, s->m, s->n, s->ldc, s->stride_c, &product->c);
    return o;
}

void wb_lt_product_release(wb_lt_product *product) {
    if (product->a) (void)lt.MatrixLayoutDestroy(product->a);
    if (product->b) (void)lt.MatrixLayoutDestroy(product->b);
    if (product->c) (void)lt.MatrixLayoutDestroy(product->c);
    if (product->desc) (void)lt.MatmulDescDestroy(product->desc);
    *product = (wb_lt_product){.desc = NULL};
}
