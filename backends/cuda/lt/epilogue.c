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
static bool take_bias(const matcher *m, const wb_access *a) {
    static const int64_t bytes[WB_DTYPE_COUNT] = {
        [WB_F32] = 4, [WB_F64] = 8, [WB_F16] = 2, [WB_BF16] = 2};
    if (a->argument == m->call->result_argument || a->strides[0] != 1) return false;
    for (int d = 1; d < m->program->ndim; d++)
        if (a->strides[d] != 0) return false;
    m->found->bias = a->argument;
    m->found->bias_offset_bytes = a->offset * bytes[a->dtype];
    return true;
}

static bool is_aligned(const wb_call *call, int argument) {
    return argument < 64 && call->aligned_arguments >> argument & 1;
}

/* ---- values ---- */

static const wb_instruction *at(const matcher *m, uint16_t value) {
    return &m->program->instructions[value];
}

static bool is_code(const matcher *m, uint16_t value, int code) {
    return value != WB_NO_VALUE && at(m, value)->code == code && !at(m, value)->row;
}

static bool is_product(const matcher *m, uint16_t value) {
    if (!is_code(m, value, WB_CODE_load)) return false;
    const wb_access *a = access_of(m, at(m, value));
    return a && a->argument == m->call->result_argument && is_dense(m, a);
}

static bool is_bias(const matcher *m, uint16_t value) {
    if (!is_code(m, value, WB_CODE_load)) return false;
    const wb_access *a = access_of(m, at(m, value));
    return a && take_bias(m, a);
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

/* ---- activations ---- */

typedef struct pattern {
    int code;
    int in[2];
    double number; /* of a constant */
} pattern;

/* As src/ops writes them: trees over x, which is the same value wherever it stands. */
enum {
    X,
    ZERO,
    HALF,
    ONE,
    SCALE,
    CUBIC,
    RELU,
    SQUARE,
    HALF_X,
    SCALED,
    BENT,
    BENDING,
    INNER,
    TANH,
    CURVE,
    GELU
};

/* clang-format off */
static const pattern patterns[] = {
    [ZERO]      = {WB_CODE_constant, .number = 0},
    [HALF]      = {WB_CODE_constant, .number = 0.5},
    [ONE]       = {WB_CODE_constant, .number = 1},
    [SCALE]     = {WB_CODE_constant, .number = 0.7978845608028654}, /* sqrt(2 / pi) */
    [CUBIC]     = {WB_CODE_constant, .number = 0.044715},
    [RELU]      = {WB_CODE_max,    .in = {X, ZERO}},
    /* 0.5 x (1 + t); t = tanh(u), u = scale x (1 + cubic x^2) */
    [SQUARE]    = {WB_CODE_square, .in = {X}},
    [HALF_X]    = {WB_CODE_mul,    .in = {HALF, X}},
    [SCALED]    = {WB_CODE_mul,    .in = {SCALE, X}},
    [BENT]      = {WB_CODE_mul,    .in = {CUBIC, SQUARE}},
    [BENDING]   = {WB_CODE_add,    .in = {ONE, BENT}},
    [INNER]     = {WB_CODE_mul,    .in = {SCALED, BENDING}},
    [TANH]      = {WB_CODE_tanh,   .in = {INNER}},
    [CURVE]     = {WB_CODE_add,    .in = {ONE, TANH}},
    [GELU]      = {WB_CODE_mul,    .in = {HALF_X, CURVE}},
};
/* clang-format on */

static bool is(const matcher *m, uint16_t value, int tree, uint16_t *x);

static bool are(const matcher *m, const uint16_t *in, const pattern *p, int first, uint16_t *x) {
    const bool is_one = p->code == WB_CODE_square || p->code == WB_CODE_tanh;
    const uint16_t before = *x;
    if (is(m, in[0], p->in[first], x) && (is_one || is(m, in[1], p->in[1 - first], x))) return true;
    *x = before;
    return false;
}

/* True if the value is such a tree. x: what it is of; WB_NO_VALUE: any, which is told. */
static bool is(const matcher *m, uint16_t value, int tree, uint16_t *x) {
    const pattern *p = &patterns[tree];
    if (tree == X) {
        if (*x == WB_NO_VALUE) *x = value;
        return *x == value;
    }
    if (!is_code(m, value, p->code)) return false;
    const wb_instruction *i = at(m, value);
    if (p->code == WB_CODE_constant) return fabs(i->constant - p->number) <= 1e-7 * fabs(p->number);
    const bool commutes =
        p->code == WB_CODE_add || p->code == WB_CODE_mul || p->code == WB_CODE_max;
    return are(m, i->in, p, 0, x) || (commutes && are(m, i->in, p, 1, x));
}

/* ---- the program ---- */

/* The one store, over the whole product; NULL: there are more, or it goes elsewhere. */
static const wb_instruction *find_store(const matcher *m) {
    const wb_instruction *found = NULL;
    for (int32_t i = 0; i < m->program->ninstructions; i++) {
        const wb_instruction *store = &m->program->instructions[i];
        if (store->code != WB_CODE_store) continue;
        const wb_access *a = access_of(m, store);
        if (found || !a || !is_dense(m, a)) return NULL;
        found = store;
    }
    return found;
}

/* A bias, an activation, or both. */
static bool is_known(const matcher *m, const wb_instruction *store) {
    const uint16_t y = store->in[0];
    uint16_t x = WB_NO_VALUE;
    bool has_bias;
    int kind = is(m, y, RELU, &x)   ? WB_EPILOGUE_RELU
               : is(m, y, GELU, &x) ? WB_EPILOGUE_GELU
                                    : WB_EPILOGUE_NONE;
    if (!is_sum(m, kind ? x : y, &has_bias)) return false;
    m->found->kind = kind | (has_bias ? WB_EPILOGUE_BIAS : 0);
    m->found->result = m->program->accesses[store->index].argument;
    return m->found->kind;
}

bool wb_epilogue_find(const wb_call *call, const wb_program *program, int split,
                      wb_epilogue *epilogue) {
    const matcher m = {call, program, epilogue};
    *epilogue = (wb_epilogue){.kind = WB_EPILOGUE_NONE};
    const wb_instruction *store = find_store(&m);
    if (split == 1 && !program->reduced && call->is_result_private && store && is_known(&m, store))
        return true;
    epilogue->kind = WB_EPILOGUE_NONE;
    return false;
}

bool wb_epilogue_is_aligned(const wb_call *call, const wb_epilogue *e) {
    if (e->kind && !is_aligned(call, e->result)) return false;
    return !(e->kind & WB_EPILOGUE_BIAS) ||
           (is_aligned(call, e->bias) && e->bias_offset_bytes % 64 == 0);
}
