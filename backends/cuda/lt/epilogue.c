#include "epilogue.h"

#include <string.h>

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

/* Which callables the libraries have, and with which number. */
static const struct {
    const char *name;
    double number;
    int kind;
} activations[] = {{"relu", 0, WB_EPILOGUE_RELU}, {"gelu", 0.044715, WB_EPILOGUE_GELU}};

/* The activation that gives y, of x; WB_EPILOGUE_NONE: it is none of theirs, and x is y. */
static int activation_of(const matcher *m, uint16_t y, uint16_t *x) {
    *x = y;
    for (int32_t i = 0; i < m->program->ncallables; i++) {
        const wb_callable *c = &m->program->callables[i];
        for (size_t k = 0; k < sizeof activations / sizeof *activations; k++)
            if (c->out[0] == y && strcmp(c->name, activations[k].name) == 0 &&
                c->numbers[0] == activations[k].number) {
                *x = c->in[0];
                return activations[k].kind;
            }
    }
    return WB_EPILOGUE_NONE;
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
    uint16_t x;
    const int kind = activation_of(m, store->in[0], &x);
    bool has_bias;
    if (!is_sum(m, x, &has_bias)) return false;
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
