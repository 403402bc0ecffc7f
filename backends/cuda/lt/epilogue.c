#include "epilogue.h"

#include <math.h>

typedef struct matcher {
    const wb_call *call;
    const wb_program *program;
    wb_epilogue *found;
} matcher;

/* ---- arrays ---- */

static const wb_access *access_of(const matcher *m, const wb_instruction *i) {
    const wb_access *a = &m->program->accesses[i->index];
    return a->dtype == m->call->dtype ? a : NULL;
}

/* Element after element over the domain, from the argument's first. */
static bool is_dense(const matcher *m, const wb_access *a) {
    int64_t stride = 1;
    for (int d = 0; d < m->program->ndim; d++) {
        if (a->strides[d] != stride) return false;
        stride *= m->program->sizes[d];
    }
    return a->offset == 0;
}

/* One element for each row of the product, whose rows are the first dimension. */
static bool is_per_row(const matcher *m, const wb_access *a) {
    if (a->strides[0] != 1) return false;
    for (int d = 1; d < m->program->ndim; d++)
        if (a->strides[d] != 0) return false;
    return true;
}

/* ---- values ---- */

static const wb_instruction *at(const matcher *m, uint16_t value) {
    return &m->program->instructions[value];
}

static bool is_code(const matcher *m, uint16_t value, int code) {
    return value != WB_NO_VALUE && at(m, value)->code == code && !at(m, value)->row;
}

static bool is_number(const matcher *m, uint16_t value, double number) {
    if (!is_code(m, value, WB_CODE_constant)) return false;
    return fabs(at(m, value)->constant - number) <= 1e-7 * fabs(number);
}

/* value = x code number, on either side; x is told. */
static bool is_with_number(const matcher *m, uint16_t value, int code, double number, uint16_t *x) {
    if (!is_code(m, value, code)) return false;
    const uint16_t *in = at(m, value)->in;
    for (int side = 0; side < 2; side++)
        if (is_number(m, in[side], number)) {
            *x = in[1 - side];
            return true;
        }
    return false;
}

static bool is_product(const matcher *m, uint16_t value) {
    if (!is_code(m, value, WB_CODE_load)) return false;
    const wb_access *a = access_of(m, at(m, value));
    return a && a->argument == m->call->result_argument && is_dense(m, a);
}

static bool is_bias(const matcher *m, uint16_t value) {
    static const int64_t bytes[WB_DTYPE_COUNT] = {
        [WB_F32] = 4, [WB_F64] = 8, [WB_F16] = 2, [WB_BF16] = 2};
    if (!is_code(m, value, WB_CODE_load)) return false;
    const wb_access *a = access_of(m, at(m, value));
    if (!a || a->argument == m->call->result_argument || !is_per_row(m, a)) return false;
    m->found->bias = a->argument;
    m->found->bias_offset_bytes = a->offset * bytes[a->dtype];
    return true;
}

/* The product, or the product and its bias. */
static bool is_sum(const matcher *m, uint16_t value, bool *has_bias) {
    *has_bias = false;
    if (is_product(m, value)) return true;
    if (!is_code(m, value, WB_CODE_add)) return false;
    const uint16_t *in = at(m, value)->in;
    *has_bias = true;
    return (is_product(m, in[0]) && is_bias(m, in[1])) ||
           (is_product(m, in[1]) && is_bias(m, in[0]));
}

/* ---- activations; each tells what it is of ---- */

static bool is_relu(const matcher *m, uint16_t value, uint16_t *x) {
    return is_with_number(m, value, WB_CODE_max, 0, x);
}

/* (sqrt(2 / pi) x) (1 + 0.044715 x^2): as src/ops writes it */
static bool is_gelu_inner(const matcher *m, uint16_t value, uint16_t x) {
    if (!is_code(m, value, WB_CODE_mul)) return false;
    for (int side = 0; side < 2; side++) {
        uint16_t scaled, term, square;
        if (is_with_number(m, at(m, value)->in[side], WB_CODE_mul, 0.7978845608028654, &scaled) &&
            scaled == x && is_with_number(m, at(m, value)->in[1 - side], WB_CODE_add, 1, &term) &&
            is_with_number(m, term, WB_CODE_mul, 0.044715, &square) &&
            is_code(m, square, WB_CODE_square) && at(m, square)->in[0] == x)
            return true;
    }
    return false;
}

/* (0.5 x) (1 + tanh(inner)) */
static bool is_gelu(const matcher *m, uint16_t value, uint16_t *x) {
    if (!is_code(m, value, WB_CODE_mul)) return false;
    for (int side = 0; side < 2; side++) {
        uint16_t curve;
        if (is_with_number(m, at(m, value)->in[side], WB_CODE_mul, 0.5, x) &&
            is_with_number(m, at(m, value)->in[1 - side], WB_CODE_add, 1, &curve) &&
            is_code(m, curve, WB_CODE_tanh) && is_gelu_inner(m, at(m, curve)->in[0], *x))
            return true;
    }
    return false;
}

/* ---- the program ---- */

/* The value of the one store; WB_NO_VALUE: there are others, or it goes elsewhere. */
static uint16_t stored_value(const matcher *m) {
    uint16_t value = WB_NO_VALUE;
    for (int32_t i = 0; i < m->program->ninstructions; i++) {
        const wb_instruction *store = &m->program->instructions[i];
        if (store->code != WB_CODE_store) continue;
        const wb_access *a = access_of(m, store);
        if (value != WB_NO_VALUE || store->row || !a || !is_dense(m, a)) return WB_NO_VALUE;
        value = store->in[0];
        m->found->result = a->argument;
    }
    return value;
}

bool wb_epilogue_find(const wb_call *call, const wb_program *program, int split,
                      wb_epilogue *epilogue) {
    const matcher m = {call, program, epilogue};
    uint16_t x;
    bool has_bias;
    *epilogue = (wb_epilogue){.kind = WB_EPILOGUE_NONE};
    if (!call->is_result_private || program->reduced || program->phases != 1 || split != 1)
        return false;
    const uint16_t value = stored_value(&m);
    if (value == WB_NO_VALUE) return false;
    if (is_relu(&m, value, &x) && is_sum(&m, x, &has_bias))
        epilogue->kind = has_bias ? WB_EPILOGUE_RELU_BIAS : WB_EPILOGUE_RELU;
    else if (is_gelu(&m, value, &x) && is_sum(&m, x, &has_bias))
        epilogue->kind = has_bias ? WB_EPILOGUE_GELU_BIAS : WB_EPILOGUE_GELU;
    else if (is_sum(&m, value, &has_bias) && has_bias)
        epilogue->kind = WB_EPILOGUE_BIAS;
    return epilogue->kind != WB_EPILOGUE_NONE;
}
