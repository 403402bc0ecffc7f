/* Values of a graph: equal ones are merged, constants folded, trivial operations dropped.
 *
 * Reads and writes values alone. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "evaluate/graph.h"
#include "ops/build.h"

static const wb_value *value_at(const wb_values *s, int32_t v) { return &s->at[v]; }

/* ---- equal values ---- */

static uint64_t hash_of(const wb_value *v) {
    uint64_t hash = (uint64_t)v->kind | (uint64_t)v->op << 8 | (uint64_t)v->dtype << 16 |
                    (uint64_t)v->ndim << 24;
    for (int i = 0; i < v->ninputs; i++) hash = wb_table_mix(hash, (uint64_t)wb_value_inputs(v)[i]);
    for (int d = 0; d < v->ndim; d++) hash = wb_table_mix(hash, (uint64_t)v->sizes[d]);
    for (int i = 0; i < WB_ATTRIBUTES; i++)
        hash = wb_table_mix(hash, (uint64_t)v->attributes.words[i]);
    const int64_t *words = v->payload ? wb_payload_words(v->payload) : NULL;
    for (int i = 0; words && i < v->payload->words; i++)
        hash = wb_table_mix(hash, (uint64_t)words[i]);
    if (v->kind == WB_VALUE_LATE) hash = wb_table_mix(hash, (uint64_t)v->tape);
    return wb_table_mix(hash, (uint64_t)wb_bits_of(v->constant));
}

static bool equal(const wb_value *a, const wb_value *b) {
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->ndim == b->ndim &&
           a->is_step == b->is_step && (a->kind != WB_VALUE_LATE || a->tape == b->tape) &&
           a->ninputs == b->ninputs && wb_bits_of(a->constant) == wb_bits_of(b->constant) &&
           memcmp(a->sizes, b->sizes, sizeof *a->sizes * a->ndim) == 0 &&
           memcmp(&a->attributes, &b->attributes, sizeof a->attributes) == 0 &&
           wb_payloads_agree(a->payload, b->payload) &&
           memcmp(wb_value_inputs(a), wb_value_inputs(b), sizeof(int32_t) * (size_t)a->ninputs) ==
               0;
}

/* Leaves are what their node is; late values merge only when they are the same node; random values
 * belong to their call. */
static bool may_merge(const wb_value *v) {
    return v->kind != WB_VALUE_LEAF && v->op != WB_OP_uniform && v->op != WB_OP_normal &&
           v->op != WB_OP_scan && v->op != WB_OP_collective;
}

int32_t wb_append_value(wb_values *s, const wb_value *v) {
    if (!WB_GROW(s->at, s->graph->count, s->capacity)) return -1;
    s->graph->values = s->at;
    s->at[s->graph->count] = *v;
    return (int32_t)s->graph->count++;
}

int32_t wb_add_value(wb_values *s, wb_value v) {
    const bool merges = may_merge(&v);
    v.is_step = s->is_step && (v.kind == WB_VALUE_ELEMENT || v.kind == WB_VALUE_REDUCE);
    const uint64_t hash = merges ? hash_of(&v) : wb_table_mix(1, (uint64_t)s->graph->count);
    int64_t i = merges ? wb_table_find(&s->table, hash) : -1;
    for (; i >= 0; i = wb_table_next(&s->table, i)) {
        if (!equal(&s->at[i], &v)) continue;
        wb_release(v.input_list);
        return (int32_t)i;
    }
    const int32_t number = wb_table_add(&s->table, hash) ? wb_append_value(s, &v) : -1;
    if (number < 0) {
        wb_release(v.input_list);
        return -1;
    }
    const bool shows = v.kind == WB_VALUE_VIEW && v.op != WB_OP_data; /* no copy */
    wb_value *added = &s->at[number];
    added->callable = 0;
    added->base = shows ? s->at[v.small_inputs[0]].base : number;
    if (v.kind != WB_VALUE_LEAF && v.kind != WB_VALUE_VIEW) added->layout = -1;
    (void)wb_payload_ref(v.payload);
    return number;
}

wb_value wb_blank_value(const wb_array *node, wb_value_kind kind) {
    wb_value v = {.kind = (uint8_t)kind,
                  .op = (uint8_t)node->op,
                  .dtype = node->dtype,
                  .ndim = node->ndim,
                  .tape = -1};
    for (int d = 0; d < node->ndim; d++) v.sizes[d] = node->sizes[d];
    for (int i = 0; i < node->nattributes; i++) v.attributes.words[i] = node->attributes.words[i];
    if (kind == WB_VALUE_CALL && node->payload && node->payload->words) v.payload = node->payload;
    return v;
}

/* ---- building elementwise values ---- */

static int32_t constant(wb_values *s, wb_dtype dtype, double number) {
    wb_value v = {.kind = WB_VALUE_CONSTANT,
                  .op = WB_OP_full,
                  .dtype = (uint8_t)dtype,
                  .constant = number,
                  .tape = -1};
    return wb_add_value(s, v);
}

double wb_constant_as(wb_dtype dtype, double number) {
    if (dtype == WB_BOOL) return number != 0;
    if (dtype == WB_F32) return (double)(float)number;
    if (dtype == WB_F16) return wb_rounded_to_f16((float)number);
    if (dtype == WB_BF16) return (double)wb_of_bf16(wb_to_bf16((float)number));
    if (wb_dtype_is_float(dtype) || !(fabs(number) < 0x1p63)) return number;
    const int64_t whole = (int64_t)number;
    return dtype == WB_U8 ? (uint8_t)whole : dtype == WB_I32 ? (int32_t)whole : (double)whole;
}

/* A number that is combined with halves counts as f32, the type in which halves are computed. */
static int32_t recast_constant(wb_values *s, const wb_value *source, wb_dtype dtype) {
    wb_value v = *source;
    v.dtype = (uint8_t)dtype;
    v.constant = wb_constant_as(wb_is_half(dtype) ? WB_F32 : dtype, v.constant);
    return wb_add_value(s, v);
}

/* False for a number that the type may not hold: then the device's cast decides. */
static bool fits(wb_dtype dtype, double number) {
    if (wb_dtype_is_float(dtype) || dtype == WB_BOOL) return true;
    return dtype == WB_U8 ? number >= 0 && number < 256 : fabs(number) < 0x1p31;
}

static wb_value cast_of(const wb_value *source, int32_t from, wb_dtype dtype) {
    wb_value v = {.kind = WB_VALUE_ELEMENT,
                  .op = WB_OP_cast,
                  .dtype = (uint8_t)dtype,
                  .ndim = source->ndim,
                  .ninputs = 1,
                  .tape = -1};
    memcpy(v.sizes, source->sizes, sizeof v.sizes);
    v.small_inputs[0] = from;
    return v;
}

int32_t wb_cast_value(wb_values *s, int32_t from, wb_dtype dtype) {
    if (from < 0 || value_at(s, from)->dtype == dtype) return from;
    const wb_value source = *value_at(s, from);
    if (source.kind == WB_VALUE_LATE && wb_dtype_is_float(dtype))
        return recast_constant(s, &source, dtype);
    if (source.kind == WB_VALUE_CONSTANT && fits(dtype, source.constant))
        return recast_constant(s, &source, dtype);
    return wb_add_value(s, cast_of(&source, from, dtype));
}

/* A value in memory was rounded when it was stored; halves that a program computes have the digits
 * of f32 until then. */
static bool is_rounded(const wb_value *v) {
    if (v->kind == WB_VALUE_ELEMENT) return v->op == WB_OP_cast && v->attributes.cast.rounds;
    return v->kind != WB_VALUE_LATE && v->kind != WB_VALUE_SOURCE && v->kind != WB_VALUE_REDUCE;
}

int32_t wb_round_value(wb_values *s, int32_t from, wb_dtype dtype) {
    if (from < 0 || !wb_is_half(dtype)) return wb_cast_value(s, from, dtype);
    wb_value v = *value_at(s, from);
    if (v.kind == WB_VALUE_CONSTANT) {
        v.dtype = (uint8_t)dtype;
        v.constant = wb_constant_as(dtype, v.constant);
        return wb_add_value(s, v);
    }
    if (v.dtype == dtype && is_rounded(&v)) return from;
    v = cast_of(&v, from, dtype);
    v.attributes.cast.rounds = 1;
    return wb_add_value(s, v);
}

static bool is_number(const wb_values *s, int32_t v, double number) {
    const wb_value *value = value_at(s, v);
    return value->kind == WB_VALUE_CONSTANT && value->constant == number;
}

bool wb_stands_for(const wb_values *s, int32_t v, const wb_value *result) {
    const wb_value *value = value_at(s, v);
    if (value->dtype != result->dtype || value->ndim != result->ndim) return false;
    return memcmp(value->sizes, result->sizes, sizeof *value->sizes * result->ndim) == 0;
}

/* x + 0, x 1, x / 1, x - 0: the value that stands for the operation, or -1. x 0 is left alone: it
 * may be NaN. */
static int32_t drop_trivial(const wb_values *s, const wb_value *v) {
    if (v->ninputs != 2) return -1;
    const int32_t x = v->small_inputs[0], y = v->small_inputs[1];
    const bool x_neutral =
        (v->op == WB_OP_add && is_number(s, x, 0)) || (v->op == WB_OP_mul && is_number(s, x, 1));
    const bool y_neutral =
        ((v->op == WB_OP_add || v->op == WB_OP_sub) && is_number(s, y, 0)) ||
        ((v->op == WB_OP_mul || v->op == WB_OP_div || v->op == WB_OP_pow) && is_number(s, y, 1));
    if (y_neutral && wb_stands_for(s, x, v)) return x;
    return x_neutral && wb_stands_for(s, y, v) ? y : -1;
}

static bool fold(int op, double x, double y, double *result) {
    switch (op) {
    case WB_OP_add:
        *result = x + y;
        return true;
    case WB_OP_sub:
        *result = x - y;
        return true;
    case WB_OP_mul:
        *result = x * y;
        return true;
    case WB_OP_div:
        *result = x / y;
        return true;
    case WB_OP_neg:
        *result = -x;
        return true;
    case WB_OP_square:
        *result = x * x;
        return true;
    default:
        return false;
    }
}

/* A constant of all its sizes is a number that broadcasts: the consumer's sizes are its own. */
static int32_t fold_constants(wb_values *s, const wb_value *v) {
    double x, y = 0, result;
    if (v->ninputs > 2 || v->dtype == WB_F16 || v->dtype == WB_BF16 || v->ndim > 0) return -1;
    if (value_at(s, v->small_inputs[0])->kind != WB_VALUE_CONSTANT) return -1;
    x = value_at(s, v->small_inputs[0])->constant;
    if (v->ninputs == 2) {
        if (value_at(s, v->small_inputs[1])->kind != WB_VALUE_CONSTANT) return -1;
        y = value_at(s, v->small_inputs[1])->constant;
    }
    if (!wb_dtype_is_float((wb_dtype)v->dtype) || !fold(v->op, x, y, &result)) return -1;
    if (v->dtype == WB_F32) result = (double)(float)result;
    return constant(s, (wb_dtype)v->dtype, result);
}

/* pow with one of the usual constants is cheaper otherwise. */
static int32_t lower_power(wb_values *s, wb_value v) {
    const wb_value *exponent = value_at(s, v.small_inputs[1]);
    if (exponent->kind != WB_VALUE_CONSTANT) return wb_add_value(s, v);
    const double n = exponent->constant;
    if (n == 2)
        v.op = WB_OP_square;
    else if (n == 0.5)
        return wb_add_value(s, v);
    else if (n == -1)
        v.op = WB_OP_recip;
    else
        return wb_add_value(s, v);
    v.ninputs = 1;
    v.small_inputs[1] = 0;
    return wb_add_value(s, v);
}

int32_t wb_add_element(wb_values *s, const wb_value *v) {
    int32_t other = drop_trivial(s, v);
    if (other < 0) other = fold_constants(s, v);
    if (other >= 0) return other;
    return v->op == WB_OP_pow ? lower_power(s, *v) : wb_add_value(s, *v);
}
