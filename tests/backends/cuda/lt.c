/* A library that stands for cuBLASLt, or (WB_HIP) hipBLASLt, over memory of this process or of
 * the fake driver: it keeps to what the manuals say of descriptors, alignment and workspace, and
 * refuses what breaks it. It proves that products are described rightly, and nothing about
 * speed. */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/on_device.h"
#include "lt/api.h"

enum {
    WORKSPACE = 1000,
    UNALIGNED = LT_ALIGNMENT_A == LT_NONE ? 1 : 256,
};

struct lt_handle_object {
    int unused;
};

struct lt_desc_object {
    lt_compute compute;
    lt_type scale;
    int32_t transpose_a, transpose_b, epilogue, bias_type;
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

/* live objects, questions to the heuristics, products, those with an epilogue, with aligned
 * operands, with columns that all begin at multiples of 16 bytes; the last one's type of
 * computation, questions that no library would answer; read by the test */
extern long fake_lt_live, fake_lt_asked, fake_lt_products, fake_lt_fused, fake_lt_aligned,
    fake_lt_columns, fake_lt_compute, fake_lt_invalid;
long fake_lt_live, fake_lt_asked, fake_lt_products, fake_lt_fused, fake_lt_aligned, fake_lt_compute,
    fake_lt_columns, fake_lt_invalid;

/* set by the test: the n-th call from now on fails (0: none); there is no TF32; there is no
 * algorithm for what is not aligned; the version, as the library tells it; how long a product takes
 * where time is made up, and one of several matrices */
extern long fake_lt_fail, fake_lt_no_tf32, fake_lt_no_unaligned, fake_lt_version, fake_lt_ms,
    fake_lt_batch_ms;
long fake_lt_fail, fake_lt_no_tf32, fake_lt_no_unaligned, fake_lt_version = LT_CHOOSE(130100, 1201),
                                                          fake_lt_ms, fake_lt_batch_ms;

#define X(result, name, parameters) result LT_NAME(name) parameters;
LT_FUNCTION_LIST(X)
#undef X

static bool fails(void) { return fake_lt_fail > 0 && --fake_lt_fail == 0; }
#define MAY_FAIL                                                                                   \
    if (fails()) return LT_EXECUTION_FAILED

#ifdef WB_HIP
lt_code LT_NAME(GetVersion)(lt_handle handle, int *version) {
    MAY_FAIL;
    if (!handle) return LT_INVALID_VALUE;
    *version = (int)fake_lt_version;
    return LT_SUCCESS;
}
#else
size_t LT_NAME(GetVersion)(void) { return (size_t)fake_lt_version; }
const char *LT_NAME(GetStatusName)(lt_code code) {
    return code == LT_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_OTHER";
}
#endif

static void *made(size_t bytes) {
    fake_lt_live++;
    return calloc(1, bytes);
}

static lt_code dropped(void *object) {
    fake_lt_live--;
    free(object);
    return LT_SUCCESS;
}

lt_code LT_NAME(Create)(lt_handle *handle) {
    MAY_FAIL;
    *handle = made(sizeof **handle);
    return LT_SUCCESS;
}
lt_code LT_NAME(Destroy)(lt_handle handle) { return dropped(handle); }

/* ---- descriptors ---- */

lt_code LT_NAME(MatmulDescCreate)(lt_desc *desc, lt_compute compute, lt_type scale) {
    MAY_FAIL;
    *desc = made(sizeof **desc);
    **desc = (struct lt_desc_object){.compute = compute, .scale = scale, .bias_type = LT_NONE};
    return LT_SUCCESS;
}
lt_code LT_NAME(MatmulDescDestroy)(lt_desc desc) { return dropped(desc); }

lt_code LT_NAME(MatmulDescSetAttribute)(lt_desc desc, lt_desc_attribute attribute,
                                        const void *value, size_t bytes) {
    MAY_FAIL;
    const struct {
        int attribute;
        void *place;
        size_t bytes;
    } places[] = {
        {LT_TRANSPOSE_A, &desc->transpose_a, sizeof desc->transpose_a},
        {LT_TRANSPOSE_B, &desc->transpose_b, sizeof desc->transpose_b},
        {LT_EPILOGUE, &desc->epilogue, sizeof desc->epilogue},
        {LT_BIAS_POINTER, &desc->bias, sizeof desc->bias},
        {LT_BIAS_TYPE, &desc->bias_type, sizeof desc->bias_type},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (attribute == places[i].attribute && bytes == places[i].bytes) {
            memcpy(places[i].place, value, bytes);
            return LT_SUCCESS;
        }
    return LT_INVALID_VALUE;
}

lt_code LT_NAME(MatrixLayoutCreate)(lt_layout *layout, lt_type type, uint64_t rows,
                                    uint64_t columns, int64_t leading) {
    MAY_FAIL;
    if (leading < (int64_t)rows) return LT_INVALID_VALUE;
    *layout = made(sizeof **layout);
    **layout = (struct lt_layout_object){
        .type = type, .rows = rows, .columns = columns, .leading = leading, .batch = 1};
    return LT_SUCCESS;
}
lt_code LT_NAME(MatrixLayoutDestroy)(lt_layout layout) { return dropped(layout); }

lt_code LT_NAME(MatrixLayoutSetAttribute)(lt_layout layout, lt_layout_attribute attribute,
                                          const void *value, size_t bytes) {
    MAY_FAIL;
    if (attribute == LT_BATCH_COUNT && bytes == sizeof layout->batch)
        memcpy(&layout->batch, value, bytes);
    else if (attribute == LT_BATCH_STRIDE && bytes == sizeof layout->stride)
        memcpy(&layout->stride, value, bytes);
    else
        return LT_INVALID_VALUE;
    return LT_SUCCESS;
}

lt_code LT_NAME(MatmulPreferenceCreate)(lt_preference *preference) {
    MAY_FAIL;
    *preference = made(sizeof **preference);
    for (int i = 0; i < 4; i++) (*preference)->alignment[i] = UNALIGNED;
    return LT_SUCCESS;
}
lt_code LT_NAME(MatmulPreferenceDestroy)(lt_preference preference) { return dropped(preference); }

lt_code LT_NAME(MatmulPreferenceSetAttribute)(lt_preference preference,
                                              lt_preference_attribute attribute, const void *value,
                                              size_t bytes) {
    MAY_FAIL;
    if (attribute == LT_WORKSPACE_BYTES && bytes == sizeof preference->workspace_bytes)
        memcpy(&preference->workspace_bytes, value, bytes);
    else if (LT_REDUCTIONS != LT_NONE && attribute == LT_REDUCTIONS &&
             bytes == sizeof preference->reductions)
        memcpy(&preference->reductions, value, bytes);
    else if (LT_ALIGNMENT_A != LT_NONE && attribute >= LT_ALIGNMENT_A &&
             attribute <= LT_ALIGNMENT_D && bytes == sizeof(uint32_t))
        memcpy(&preference->alignment[attribute - LT_ALIGNMENT_A], value, bytes);
    else
        return LT_INVALID_VALUE;
    return LT_SUCCESS;
}

/* ---- products ---- */

static bool is_operation(int32_t transpose) { return transpose == 0 || transpose == LT_TRANSPOSED; }

static bool is_aligned(uint64_t alignment, const void *pointer) {
    return (uintptr_t)pointer % alignment == 0;
}

/* Products of bf16 may be given in f32. */
static bool is_result(lt_type of, lt_type result) {
    return result == of || (of == LT_BF16 && result == LT_F32);
}

/* hipBLASLt takes a bias of the product's type or in f32: it is told which. */
static bool fit(const struct lt_desc_object *desc, lt_layout a, lt_layout b, lt_layout c) {
    const bool has_bias = desc->epilogue & LT_EPILOGUE_BIAS;
    const uint64_t m = desc->transpose_a ? a->columns : a->rows,
                   k = desc->transpose_a ? a->rows : a->columns,
                   n = desc->transpose_b ? b->rows : b->columns,
                   k_of_b = desc->transpose_b ? b->columns : b->rows;
    return m == c->rows && n == c->columns && k == k_of_b && a->batch == c->batch &&
           b->batch == c->batch && b->type == a->type && is_result(a->type, c->type) &&
           is_operation(desc->transpose_a) && is_operation(desc->transpose_b) &&
           (LT_BIAS_TYPE == LT_NONE || !has_bias || desc->bias_type == c->type) &&
           (desc->compute == LT_COMPUTE_F64) == (c->type == LT_F64) &&
           desc->scale == (c->type == LT_F64 ? LT_F64 : LT_F32);
}

/* With aligned operands another algorithm, and more workspace. Nothing for products of one row, so
 * that there is something to pass on; nor for halves whose partial sums may be rounded to their
 * type. As in hipBLASLt before 0.10, a bias without an address gets an algorithm that knows of
 * none. */
lt_code LT_NAME(MatmulAlgoGetHeuristic)(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b,
                                        lt_layout c, lt_layout d, lt_preference preference,
                                        int wanted, lt_choice *choices, int *count) {
    MAY_FAIL;
    (void)handle;
    fake_lt_asked++;
    *count = 0;
    if (wanted < 1 || !fit(desc, a, b, c) || c != d) {
        fake_lt_invalid++;
        return LT_INVALID_VALUE;
    }
    if (c->rows == 1 || a->type == LT_F16) return LT_NOT_SUPPORTED;
    if (LT_REDUCTIONS != LT_NONE &&
        (a->type == LT_BF16) != (preference->reductions == LT_REDUCTIONS_COMPUTED))
        return LT_NOT_SUPPORTED;
    if (desc->compute == LT_COMPUTE_TF32 && fake_lt_no_tf32) return LT_NOT_SUPPORTED;
    uint32_t alignment = UNALIGNED;
    for (int i = 0; i < 4; i++)
        if (preference->alignment[i] < alignment) alignment = preference->alignment[i];
    if (alignment < 16 && fake_lt_no_unaligned) return LT_NOT_SUPPORTED;
    const size_t bytes = WORKSPACE + alignment;
    if (bytes > preference->workspace_bytes) return LT_NOT_SUPPORTED;
    const bool takes_bias = LT_BIAS_TYPE == LT_NONE || desc->bias;
    *choices = (lt_choice){.algorithm = {.data = {alignment, bytes, takes_bias}},
                           .workspace_bytes = bytes};
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

static const double root = 0.7978845608028654, cubic = 0.044715;

static double finish(const struct lt_desc_object *desc, lt_type type, double x, int64_t row) {
    if (desc->epilogue & LT_EPILOGUE_BIAS) x += get(desc->bias, type, row);
    if (desc->epilogue & LT_EPILOGUE_RELU) x = x > 0 ? x : 0;
    if (desc->epilogue & LT_EPILOGUE_GELU) x = 0.5 * x * (1 + tanh(root * (x + cubic * x * x * x)));
    return x;
}

/* As on cards, the epilogue of a product decides which algorithm is used, and the algorithm decides
 * the last bits: with an epilogue, partial sums of f32 are rounded. */
static double add_up(const struct lt_desc_object *desc, lt_type type, double sum, double term) {
    sum += term;
    return desc->epilogue && type == LT_F32 ? (double)(float)sum : sum;
}

static void multiply(const struct lt_desc_object *desc, const void *a, lt_layout al, const void *b,
                     lt_layout bl, void *d, lt_layout dl, int64_t batch) {
    const int64_t k = (int64_t)(desc->transpose_a ? al->rows : al->columns);
    for (int64_t row = 0; row < (int64_t)dl->rows; row++) {
        for (int64_t column = 0; column < (int64_t)dl->columns; column++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++) {
                const int64_t in_a =
                                  desc->transpose_a ? i + row * al->leading : row + i * al->leading,
                              in_b = desc->transpose_b ? column + i * bl->leading
                                                       : i + column * bl->leading;
                sum = add_up(desc, al->type, sum,
                             get(a, al->type, batch * al->stride + in_a) *
                                 get(b, bl->type, batch * bl->stride + in_b));
            }
            put(d, dl->type, batch * dl->stride + row + column * dl->leading,
                finish(desc, dl->type, sum, row));
        }
    }
}

static size_t size_of(lt_type type) { return type == LT_F64 ? 8 : type == LT_F32 ? 4 : 2; }

/* Bytes from the first element to the last. */
static size_t extent(const struct lt_layout_object *l) {
    return size_of(l->type) * (size_t)((l->batch - 1) * l->stride +
                                       (int64_t)(l->columns - 1) * l->leading + (int64_t)l->rows);
}

/* An array of the call in the host's memory. */
typedef struct array {
    const void *there;
    size_t bytes; /* 0: there is none */
    bool is_written;
    char *copy;
} array;

static lt_code compute(const struct lt_desc_object *desc, const void *a, lt_layout al,
                       const void *b, lt_layout bl, void *d, lt_layout dl, gpu_stream stream,
                       bool takes_bias) {
    const bool has_bias = desc->epilogue & LT_EPILOGUE_BIAS;
    array arrays[] = {
        {a, extent(al), false, NULL},
        {b, extent(bl), false, NULL},
        {d, extent(dl), true, NULL},
        {desc->bias, has_bias ? dl->rows * size_of(dl->type) : 0, false, NULL},
    };
    enum { COUNT = sizeof arrays / sizeof *arrays };
    bool done = true;
    for (int i = 0; i < COUNT; i++) /* what lies between columns stays */
        if (arrays[i].bytes)
            done = done && fetch(stream, arrays[i].there, arrays[i].bytes, &arrays[i].copy);
    struct lt_desc_object host = *desc;
    host.bias = arrays[3].copy;
    if (!takes_bias) host.epilogue &= ~LT_EPILOGUE_BIAS;
    for (int32_t i = 0; done && i < dl->batch; i++)
        multiply(&host, arrays[0].copy, al, arrays[1].copy, bl, arrays[2].copy, dl, i);
    for (int i = 0; i < COUNT; i++) {
        if (arrays[i].bytes && arrays[i].is_written)
            done = done && put_back(stream, (void *)(uintptr_t)arrays[i].there, arrays[i].copy,
                                    arrays[i].bytes);
        free(arrays[i].copy);
    }
    return done ? LT_SUCCESS : LT_EXECUTION_FAILED;
}

/* Whoever runs other tests with this library sees that it was asked. */
__attribute__((destructor)) static void tell(void) {
    if (has_driver())
        (void)fprintf(stderr, "%s's stand-in: %ld products, %ld of them with an epilogue\n",
                      LT_LIBRARY, fake_lt_products, fake_lt_fused);
}

static bool has_aligned_columns(const void *first, lt_layout l) {
    return is_aligned(16, first) && (size_t)l->leading * size_of(l->type) % 16 == 0;
}

lt_code LT_NAME(Matmul)(lt_handle handle, lt_desc desc, const void *alpha, const void *a,
                        lt_layout a_layout, const void *b, lt_layout b_layout, const void *beta,
                        const void *c, lt_layout c_layout, void *d, lt_layout d_layout,
                        const lt_algorithm *algorithm, void *workspace, size_t workspace_bytes,
                        lt_stream stream) {
    MAY_FAIL;
    const uint64_t alignment = algorithm->data[0];
    if (!handle || !fit(desc, a_layout, b_layout, d_layout) || c != d || c_layout != d_layout ||
        get(alpha, desc->scale, 0) != 1 || get(beta, desc->scale, 0) != 0 ||
        !is_aligned(alignment, a) || !is_aligned(alignment, b) || !is_aligned(alignment, d) ||
        a_layout->stride < 0 || b_layout->stride < 0 || d_layout->stride < 0 || !workspace ||
        !is_aligned(256, workspace) || workspace_bytes < algorithm->data[1])
        return LT_INVALID_VALUE;
    if (!has_driver()) memset(workspace, 0xff, workspace_bytes);
    fake_lt_products++;
    fake_lt_fused += desc->epilogue != 0;
    fake_lt_aligned += alignment >= 16;
    fake_lt_columns += has_aligned_columns(a, a_layout) && has_aligned_columns(b, b_layout) &&
                       has_aligned_columns(d, d_layout);
    fake_lt_compute = desc->compute;
    const lt_code code =
        compute(desc, a, a_layout, b, b_layout, d, d_layout, stream, algorithm->data[2]);
    spend(d_layout->batch > 1 ? fake_lt_batch_ms : fake_lt_ms);
    return code;
}
