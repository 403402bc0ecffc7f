/* A library that stands for cuBLASLt over memory of this process or of the fake driver: it keeps to what the manual says of descriptors, alignment and workspace, and
 * refuses what breaks it. It proves that products are described rightly, and nothing about speed. */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/on_device.h"
#include "nvidia/cublaslt_api.h"

enum { INVALID_VALUE = 7, EXECUTION_FAILED = 13, WORKSPACE = 1000 };

struct lt_handle_object {
    int unused;
};

struct lt_desc_object {
    lt_compute compute;
    lt_type scale;
    int32_t transpose_a, transpose_b, epilogue;
    const void *bias;
};

struct lt_layout_object {
    lt_type type;
    uint64_t rows, columns;
    int64_t leading, stride;
    int32_t batch;
};

struct lt_preference_object {
    size_t workspace_bytes;
    uint32_t alignment[4], reductions;
};

/* live objects, questions to the heuristics, products; read by the test */
extern long fake_lt_live, fake_lt_asked, fake_lt_products, fake_lt_aligned, fake_lt_compute;
long fake_lt_live, fake_lt_asked, fake_lt_products, fake_lt_aligned, fake_lt_compute;

#define X(result, name, parameters) result cublasLt##name parameters;
LT_FUNCTION_LIST(X)
#undef X

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusName(lt_code code) {
    return code == INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_OTHER";
}

static void *made(size_t bytes) {
    fake_lt_live++;
    return calloc(1, bytes);
}

static lt_code dropped(void *object) {
    fake_lt_live--;
    free(object);
    return LT_SUCCESS;
}

lt_code cublasLtCreate(lt_handle *handle) {
    *handle = made(sizeof **handle);
    return LT_SUCCESS;
}
lt_code cublasLtDestroy(lt_handle handle) { return dropped(handle); }

/* ---- descriptors ---- */

lt_code cublasLtMatmulDescCreate(lt_desc *desc, lt_compute compute, lt_type scale) {
    *desc = made(sizeof **desc);
    (*desc)->compute = compute, (*desc)->scale = scale;
    return LT_SUCCESS;
}
lt_code cublasLtMatmulDescDestroy(lt_desc desc) { return dropped(desc); }

lt_code cublasLtMatmulDescSetAttribute(lt_desc desc, lt_desc_attribute attribute, const void *value,
                                       size_t bytes) {
    void *place = attribute == LT_TRANSPOSE_A    ? (void *)&desc->transpose_a
                  : attribute == LT_TRANSPOSE_B  ? (void *)&desc->transpose_b
                  : attribute == LT_EPILOGUE     ? (void *)&desc->epilogue
                  : attribute == LT_BIAS_POINTER ? (void *)&desc->bias
                                                 : NULL;
    if (!place || bytes != (attribute == LT_BIAS_POINTER ? sizeof(void *) : sizeof(int32_t)))
        return INVALID_VALUE;
    memcpy(place, value, bytes);
    return LT_SUCCESS;
}

lt_code cublasLtMatrixLayoutCreate(lt_layout *layout, lt_type type, uint64_t rows, uint64_t columns,
                                   int64_t leading) {
    if (leading < (int64_t)rows) return INVALID_VALUE;
    *layout = made(sizeof **layout);
    **layout = (struct lt_layout_object){
        .type = type, .rows = rows, .columns = columns, .leading = leading, .batch = 1};
    return LT_SUCCESS;
}
lt_code cublasLtMatrixLayoutDestroy(lt_layout layout) { return dropped(layout); }

lt_code cublasLtMatrixLayoutSetAttribute(lt_layout layout, lt_layout_attribute attribute,
                                         const void *value, size_t bytes) {
    if (attribute == LT_BATCH_COUNT && bytes == sizeof layout->batch)
        memcpy(&layout->batch, value, bytes);
    else if (attribute == LT_BATCH_STRIDE && bytes == sizeof layout->stride)
        memcpy(&layout->stride, value, bytes);
    else
        return INVALID_VALUE;
    return LT_SUCCESS;
}

lt_code cublasLtMatmulPreferenceCreate(lt_preference *preference) {
    *preference = made(sizeof **preference);
    for (int i = 0; i < 4; i++) (*preference)->alignment[i] = 256;
    return LT_SUCCESS;
}
lt_code cublasLtMatmulPreferenceDestroy(lt_preference preference) { return dropped(preference); }

lt_code cublasLtMatmulPreferenceSetAttribute(lt_preference preference,
                                             lt_preference_attribute attribute, const void *value,
                                             size_t bytes) {
    if (attribute == LT_WORKSPACE_BYTES && bytes == sizeof preference->workspace_bytes)
        memcpy(&preference->workspace_bytes, value, bytes);
    else if (attribute == LT_REDUCTIONS && bytes == sizeof preference->reductions)
        memcpy(&preference->reductions, value, bytes);
    else if (attribute >= LT_ALIGNMENT_A && attribute <= LT_ALIGNMENT_D &&
             bytes == sizeof(uint32_t))
        memcpy(&preference->alignment[attribute - LT_ALIGNMENT_A], value, bytes);
    else
        return INVALID_VALUE;
    return LT_SUCCESS;
}

/* ---- products ---- */

static bool fit(const struct lt_desc_object *desc, lt_layout a, lt_layout b, lt_layout c) {
    const uint64_t m = desc->transpose_a ? a->columns : a->rows,
                   k = desc->transpose_a ? a->rows : a->columns,
                   n = desc->transpose_b ? b->rows : b->columns,
                   k_of_b = desc->transpose_b ? b->columns : b->rows;
    return m == c->rows && n == c->columns && k == k_of_b && a->batch == c->batch &&
           b->batch == c->batch && a->type == c->type && b->type == c->type &&
           (desc->compute == LT_COMPUTE_F64) == (c->type == LT_F64) &&
           desc->scale == (c->type == LT_F64 ? LT_F64 : LT_F32);
}

/* With aligned operands another algorithm, and more workspace. Nothing for products of one row, so that there is something to pass on; nor for
 * halves whose partial sums may be rounded to their type. */
lt_code cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b,
                                       lt_layout c, lt_layout d, lt_preference preference,
                                       int wanted, lt_choice *choices, int *count) {
    (void)handle;
    fake_lt_asked++;
    *count = 0;
    if (wanted < 1 || !fit(desc, a, b, c) || c != d) return INVALID_VALUE;
    if (c->rows == 1 || c->type == LT_F16) return LT_NOT_SUPPORTED;
    if ((c->type == LT_BF16) != (preference->reductions == LT_REDUCTIONS_COMPUTED))
        return LT_NOT_SUPPORTED;
    uint32_t alignment = 256;
    for (int i = 0; i < 4; i++)
        if (preference->alignment[i] < alignment) alignment = preference->alignment[i];
    const size_t bytes = WORKSPACE + alignment;
    if (bytes > preference->workspace_bytes) return LT_NOT_SUPPORTED;
    *choices = (lt_choice){.algorithm = {.data = {alignment, bytes}}, .workspace_bytes = bytes};
    *count = 1;
    return LT_SUCCESS;
}

static double get(const void *array, lt_type type, int64_t i) {
    if (type == LT_F64) return ((const double *)array)[i];
    if (type == LT_F32) return (double)((const float *)array)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)array)[i] << 16; /* bf16 */
    float number;
    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

static void put(void *array, lt_type type, int64_t i, double value) {
    const float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (type == LT_F64)
        ((double *)array)[i] = value;
    else if (type == LT_F32)
        ((float *)array)[i] = number;
    else
        ((uint16_t *)array)[i] = (uint16_t)(bits >> 16);
}

static double finish(const struct lt_desc_object *desc, lt_type type, double x, int64_t row) {
    if (desc->epilogue & LT_EPILOGUE_BIAS) x += get(desc->bias, type, row);
    if (desc->epilogue & LT_EPILOGUE_RELU) x = x > 0 ? x : 0;
    if (desc->epilogue & LT_EPILOGUE_GELU)
        x = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x;
}

static void multiply(const struct lt_desc_object *desc, const void *a, lt_layout al, const void *b,
                     lt_layout bl, void *d, lt_layout dl, int64_t batch) {
    const int64_t k = (int64_t)(desc->transpose_a ? al->rows : al->columns);
    for (int64_t column = 0; column < (int64_t)dl->columns; column++)
        for (int64_t row = 0; row < (int64_t)dl->rows; row++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum += get(a, al->type,
                           batch * al->stride + (desc->transpose_a ? i + row * al->leading
                                                                   : row + i * al->leading)) *
                       get(b, bl->type,
                           batch * bl->stride + (desc->transpose_b ? column + i * bl->leading
                                                                   : i + column * bl->leading));
            put(d, dl->type, batch * dl->stride + row + column * dl->leading,
                finish(desc, dl->type, sum, row));
        }
}

static bool is_aligned(uint64_t alignment, const void *pointer) {
    return (uintptr_t)pointer % alignment == 0;
}

/* Bytes from the first element to the last. */
static size_t extent(const struct lt_layout_object *l) {
    const size_t each = l->type == LT_F64 ? 8 : l->type == LT_F32 ? 4 : 2;
    return each * (size_t)((l->batch - 1) * l->stride + (int64_t)(l->columns - 1) * l->leading +
                           (int64_t)l->rows);
}

static lt_code compute(const struct lt_desc_object *desc, const void *a, lt_layout al,
                       const void *b, lt_layout bl, void *d, lt_layout dl, gpu_stream stream) {
    struct lt_desc_object host = *desc;
    char *copies[4] = {NULL};
    bool done = fetch(stream, a, extent(al), &copies[0]) &&
                fetch(stream, b, extent(bl), &copies[1]) &&
                fetch(stream, d, extent(dl), &copies[2]); /* what lies between its columns stays */
    const size_t each = dl->type == LT_F64 ? 8 : dl->type == LT_F32 ? 4 : 2;
    if (desc->epilogue & LT_EPILOGUE_BIAS)
        done = done && fetch(stream, desc->bias, dl->rows * each, &copies[3]);
    host.bias = copies[3];
    for (int32_t i = 0; done && i < dl->batch; i++)
        multiply(&host, copies[0], al, copies[1], bl, copies[2], dl, i);
    done = done && put_back(stream, d, copies[2], extent(dl));
    for (int i = 0; i < 4; i++) free(copies[i]);
    return done ? LT_SUCCESS : EXECUTION_FAILED;
}

/* Whoever runs other tests with this library sees that it was asked. */
__attribute__((destructor)) static void tell(void) {
    if (driver_function("cuInit"))
        (void)fprintf(stderr, "cuBLASLt's stand-in: %ld products\n", fake_lt_products);
}

lt_code cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a,
                       lt_layout a_layout, const void *b, lt_layout b_layout, const void *beta,
                       const void *c, lt_layout c_layout, void *d, lt_layout d_layout,
                       const lt_algorithm *algorithm, void *workspace, size_t workspace_bytes,
                       lt_stream stream) {
    const uint64_t alignment = algorithm->data[0];
    if (!handle || !fit(desc, a_layout, b_layout, d_layout) || c != d || c_layout != d_layout ||
        get(alpha, desc->scale, 0) != 1 || get(beta, desc->scale, 0) != 0 ||
        !is_aligned(alignment, a) || !is_aligned(alignment, b) || !is_aligned(alignment, d) ||
        !workspace || !is_aligned(256, workspace) || workspace_bytes < algorithm->data[1])
        return INVALID_VALUE;
    if (!driver_function("cuInit")) memset(workspace, 0xff, workspace_bytes);
    fake_lt_products++;
    fake_lt_aligned += alignment >= 16;
    fake_lt_compute = desc->compute;
    return compute(desc, a, a_layout, b, b_layout, d, d_layout, stream);
}
