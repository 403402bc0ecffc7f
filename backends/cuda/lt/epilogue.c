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

/* One element for each row of the product, whose rows are the first dimension: a bias or its
 * gradient. */
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

/* The libraries want it aligned. */
static bool take_aux(const matcher *m, int argument) {
    m->found->aux = argument;
    return is_aligned(m->call, argument);
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
    CUBIC_3,
    RELU,
    SQUARE,
    HALF_X,
    SCALED,
    BENT,
    BENDING,
    INNER,
    TANH,
    CURVE,
    GELU,
    TANH_2,
    FLATNESS,
    BENT_3,
    BENDING_3,
    SPEED,
    RISE,
    FIRST,
    SECOND,
    SLOPE
};

/* clang-format off */
static const pattern patterns[] = {
    [ZERO]      = {WB_CODE_constant, .number = 0},
    [HALF]      = {WB_CODE_constant, .number = 0.5},
    [ONE]       = {WB_CODE_constant, .number = 1},
    [SCALE]     = {WB_CODE_constant, .number = 0.7978845608028654}, /* sqrt(2 / pi) */
    [CUBIC]     = {WB_CODE_constant, .number = 0.044715},
    [CUBIC_3]   = {WB_CODE_constant, .number = 0.134145},
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
    /* 0.5 (1 + t) + 0.5 x ((1 - t^2) u'); u' = scale (1 + 3 cubic x^2) */
    [TANH_2]    = {WB_CODE_square, .in = {TANH}},
    [FLATNESS]  = {WB_CODE_sub,    .in = {ONE, TANH_2}},
    [BENT_3]    = {WB_CODE_mul,    .in = {CUBIC_3, SQUARE}},
    [BENDING_3] = {WB_CODE_add,    .in = {ONE, BENT_3}},
    [SPEED]     = {WB_CODE_mul,    .in = {SCALE, BENDING_3}},
    [RISE]      = {WB_CODE_mul,    .in = {FLATNESS, SPEED}},
    [FIRST]     = {WB_CODE_mul,    .in = {HALF, CURVE}},
    [SECOND]    = {WB_CODE_mul,    .in = {HALF_X, RISE}},
    [SLOPE]     = {WB_CODE_add,    .in = {FIRST, SECOND}},
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

typedef struct stores {
    const wb_instruction *full[2], *row; /* NULL: there is none */
} stores;

/* False if there are more, or if one goes elsewhere. */
static bool find_stores(const matcher *m, stores *s) {
    *s = (stores){.row = NULL};
    for (int32_t i = 0; i < m->program->ninstructions; i++) {
        const wb_instruction *store = &m->program->instructions[i];
        if (store->code != WB_CODE_store) continue;
        const wb_access *a = access_of(m, store);
        const wb_instruction **place = store->row   ? &s->row
                                       : s->full[0] ? &s->full[1]
                                                    : &s->full[0];
        if (!a || *place || !(store->row ? take_bias(m, a) : is_dense(m, a))) return false;
        *place = store;
    }
    return s->full[0];
}

static int argument_of(const matcher *m, const wb_instruction *store) {
    return m->program->accesses[store->index].argument;
}

/* A bias, an activation, or both. The other store is what gelu is of; where somebody reads the
 * product, gelu is of that. */
static bool is_forward(const matcher *m, const wb_instruction *result,
                       const wb_instruction *other) {
    const uint16_t y = result->in[0];
    uint16_t x = WB_NO_VALUE;
    bool has_bias;
    int kind = is(m, y, RELU, &x)   ? WB_EPILOGUE_RELU
               : is(m, y, GELU, &x) ? WB_EPILOGUE_GELU
                                    : WB_EPILOGUE_NONE;
    if (!is_sum(m, kind ? x : y, &has_bias)) return false;
    if (has_bias) kind |= WB_EPILOGUE_BIAS;
    m->found->result = argument_of(m, result);
    m->found->kind = kind;
    if (m->call->mask) {
        m->found->kind |= WB_EPILOGUE_AUX;
        return kind & WB_EPILOGUE_RELU && m->call->is_result_private && !other &&
               take_aux(m, m->call->mask_argument);
    }
    if (m->call->is_result_private && !other) return kind;
    m->found->kind |= WB_EPILOGUE_AUX;
    if (m->call->is_result_private)
        return kind & WB_EPILOGUE_GELU && other->in[0] == x && take_aux(m, argument_of(m, other));
    return kind == WB_EPILOGUE_GELU && !other && take_aux(m, m->call->result_argument);
}

/* value without casts that change nothing in a register: halves are f32 there */
static uint16_t uncast(const matcher *m, uint16_t value) {
    while (value != WB_NO_VALUE && at(m, value)->code == WB_CODE_cast &&
           at(m, value)->from == at(m, value)->type)
        value = at(m, value)->in[0];
    return value;
}

static bool is_sum_of_columns(const matcher *m, uint16_t value, uint16_t of) {
    const wb_instruction *sum = at(m, uncast(m, value));
    return sum->code == WB_CODE_sum && uncast(m, sum->in[0]) == uncast(m, of) &&
           m->program->ndim == 2 && m->program->reduced == 2;
}

/* gelu's argument */
static bool is_aux(const matcher *m, uint16_t value) {
    if (!is_code(m, value, WB_CODE_load)) return false;
    const wb_access *a = access_of(m, at(m, value));
    return a && is_dense(m, a) && a->argument != m->call->result_argument &&
           take_aux(m, a->argument);
}

static bool is_times_slope(const matcher *m, uint16_t y) {
    if (!is_code(m, y, WB_CODE_mul)) return false;
    for (int side = 0; side < 2; side++) {
        const uint16_t *in = at(m, y)->in;
        uint16_t z = WB_NO_VALUE;
        if (is_product(m, in[side]) && is(m, in[1 - side], SLOPE, &z) && is_aux(m, z)) return true;
    }
    return false;
}

static bool is_zero(const matcher *m, uint16_t value) {
    uint16_t x = WB_NO_VALUE;
    return value != WB_NO_VALUE && is(m, value, ZERO, &x);
}

/* relu's result > 0 */
static bool is_positive(const matcher *m, uint16_t value) {
    if (!is_code(m, value, WB_CODE_gt)) return false;
    const uint16_t *in = at(m, value)->in;
    if (!is_code(m, in[0], WB_CODE_load) || !is_zero(m, in[1])) return false;
    const wb_access *a = access_of(m, at(m, in[0]));
    return a && is_dense(m, a) && a->argument == m->call->relu_argument;
}

static bool is_masked(const matcher *m, uint16_t y) {
    if (!is_code(m, y, WB_CODE_select)) return false;
    const uint16_t *in = at(m, y)->in;
    return is_positive(m, in[0]) && is_product(m, in[1]) && is_zero(m, in[2]) &&
           take_aux(m, m->call->mask_argument);
}

/* The product times gelu' or relu', and maybe the sums of that. */
static bool is_backward(const matcher *m, const stores *s) {
    const uint16_t y = s->full[0]->in[0];
    if (s->full[1] || !m->call->is_result_private) return false;
    if (s->row ? !is_sum_of_columns(m, s->row->in[0], y) : m->program->reduced) return false;
    m->found->result = argument_of(m, s->full[0]);
    m->found->kind =
        (m->call->mask ? WB_EPILOGUE_DRELU : WB_EPILOGUE_DGELU) | (s->row ? WB_EPILOGUE_BGRAD : 0);
    return m->call->mask ? is_masked(m, y) : is_times_slope(m, y);
}

static bool is_any(const matcher *m, const stores *s) {
    if (m->call->mask != WB_MASK_LEFT && is_backward(m, s)) return true;
    if (m->call->mask == WB_MASK_READ || s->row || m->program->reduced) return false;
    return is_forward(m, s->full[0], s->full[1]) ||
           (s->full[1] && is_forward(m, s->full[1], s->full[0]));
}

bool wb_epilogue_find(const wb_call *call, const wb_program *program, int split,
                      wb_epilogue *epilogue) {
    const matcher m = {call, program, epilogue};
    stores s;
    *epilogue = (wb_epilogue){.kind = WB_EPILOGUE_NONE};
    if (program->phases == 1 && split == 1 && find_stores(&m, &s) && is_any(&m, &s)) return true;
    epilogue->kind = WB_EPILOGUE_NONE;
    return false;
}

bool wb_epilogue_is_aligned(const wb_call *call, const wb_epilogue *e) {
    if (e->kind && !is_aligned(call, e->result)) return false;
    return !wb_epilogue_has_bias(e->kind) ||
           (is_aligned(call, e->bias) && e->bias_offset_bytes % 64 == 0);
}
