/* Decides whether the program that follows a matrix product is one that cuBLASLt or hipBLASLt can
 * compute together with it: a bias, an activation, or a bias and then an activation. Any other
 * program runs as a kernel of its own. */
#include "epilogue.h"

#include <string.h>

/* The operations that the libraries have as epilogue of a product, and the number of each. */
static const struct {
    const char *name;
    double number;
    int kind; /* wb_epilogue_kind */
} rows[] = {{"add", 0, WB_EPILOGUE_BIAS},
            {"relu", 0, WB_EPILOGUE_RELU},
            {"gelu", 0.044715, WB_EPILOGUE_GELU}};

enum { ROWS = sizeof rows / sizeof *rows };

bool wb_epilogue_takes(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return true;
    return false;
}

static int kind_of(const wb_callable *c) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, c->name) == 0 && rows[i].number == c->numbers[0])
            return rows[i].kind;
    return WB_EPILOGUE_NONE;
}

/* ---- operands ---- */

/* Element after element over the domain, from the argument's first, in the call's type. */
static bool is_whole(const wb_call *call, const wb_program *p, wb_operand operand) {
    if (operand.kind != WB_OPERAND_ARRAY) return false;
    const wb_access *a = &p->accesses[operand.index];
    int64_t stride = 1;
    for (int d = 0; d < p->ndim; d++) {
        if (a->strides[d] != stride) return false;
        stride *= p->sizes[d];
    }
    return a->offset == 0 && a->dtype == call->dtype;
}

static bool is_product(const wb_call *call, const wb_program *p, wb_operand operand) {
    return is_whole(call, p, operand) &&
           p->accesses[operand.index].argument == call->result_argument;
}

/* One element for each row of the product, whose rows are the first dimension. */
static bool take_bias(const wb_call *call, const wb_program *p, wb_operand operand,
                      wb_epilogue *found) {
    static const int64_t bytes[WB_DTYPE_COUNT] = {
        [WB_F32] = 4, [WB_F64] = 8, [WB_F16] = 2, [WB_BF16] = 2};
    if (operand.kind != WB_OPERAND_ARRAY) return false;
    const wb_access *a = &p->accesses[operand.index];
    if (a->dtype != call->dtype || a->argument == call->result_argument || a->strides[0] != 1)
        return false;
    for (int d = 1; d < p->ndim; d++)
        if (a->strides[d] != 0) return false;
    found->bias = a->argument;
    found->bias_offset_bytes = a->offset * bytes[a->dtype];
    return true;
}

static bool is_aligned(const wb_call *call, int argument) {
    return argument < 64 && call->aligned_arguments >> argument & 1;
}

/* ---- the program ---- */

static bool is_same(wb_operand a, wb_operand b) { return a.kind == b.kind && a.index == b.index; }

/* Callable number i works on the product, or on what the one before it gives. */
static bool follows(const wb_call *call, const wb_program *p, int i, wb_operand x) {
    return i == 0 ? is_product(call, p, x)
                  : x.kind == WB_OPERAND_VALUE && is_same(x, p->callables[i - 1].out[0]);
}

static bool take(const wb_call *call, const wb_program *p, int i, wb_epilogue *found) {
    const wb_callable *c = &p->callables[i];
    const int kind = kind_of(c);
    /* a bias, an activation, or both in this order */
    if (kind <= found->kind || found->kind > WB_EPILOGUE_BIAS) return false;
    found->kind |= kind;
    if (kind != WB_EPILOGUE_BIAS) return follows(call, p, i, c->in[0]);
    return (follows(call, p, i, c->in[0]) && take_bias(call, p, c->in[1], found)) ||
           (follows(call, p, i, c->in[1]) && take_bias(call, p, c->in[0], found));
}

bool wb_epilogue_find(const wb_call *call, const wb_program *p, int split, wb_epilogue *found) {
    *found = (wb_epilogue){.kind = WB_EPILOGUE_NONE};
    bool is_known = split == 1 && p->is_named && call->is_result_private;
    for (int i = 0; is_known && i < p->ncallables; i++) is_known = take(call, p, i, found);
    const wb_operand last = is_known ? p->callables[p->ncallables - 1].out[0] : (wb_operand){0, 0};
    is_known = is_known && is_whole(call, p, last);
    if (is_known)
        found->result = p->accesses[last.index].argument;
    else
        found->kind = WB_EPILOGUE_NONE;
    return is_known;
}

bool wb_epilogue_is_aligned(const wb_call *call, const wb_epilogue *e) {
    if (e->kind && !is_aligned(call, e->result)) return false;
    return !(e->kind & WB_EPILOGUE_BIAS) ||
           (is_aligned(call, e->bias) && e->bias_offset_bytes % 64 == 0);
}
