/* Names of Julia's types, and its numbers. */
#include "formats/julia.h"

#include <string.h>

#include "base/half.h"

/* ---- names ---- */

bool wb_julia_last_is(const char *name, const char *last) {
    const char *dot = strrchr(name, '.');
    return strcmp(dot ? dot + 1 : name, last) == 0;
}

bool wb_julia_is_device_array(const char *type) {
    static const char *const names[] = {"CuArray", "ROCArray", "MtlArray", "oneArray", "CLArray"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wb_julia_last_is(type, names[i])) return true;
    return false;
}

bool wb_julia_is_beyond(const char *type) {
    return wb_julia_is_device_array(type) || wb_julia_last_is(type, "BigInt") ||
           wb_julia_last_is(type, "BigFloat");
}

const char *wb_julia_function(const wb_record *r) {
    if (r->kind != WB_RECORD_STRUCT || r->count) return NULL;
    const char *dot = strrchr(r->type, '.'), *last = dot ? dot + 1 : r->type;
    return *last == '#' ? last + 1 : NULL;
}

/* ---- numbers ---- */

uint64_t wb_julia_bits(const unsigned char *bytes, int64_t size_bytes) {
    uint64_t bits = 0;
    for (int64_t i = size_bytes; i-- > 0;) bits = bits << 8 | bytes[i];
    return bits;
}

static const wb_julia_number numbers[] = {
    {"Float64", 8, WB_RECORD_REAL, true, WB_F64},  {"Float32", 4, WB_RECORD_REAL, true, WB_F32},
    {"Float16", 2, WB_RECORD_REAL, true, WB_F16},  {"Int64", 8, WB_RECORD_INTEGER, true, WB_I64},
    {"Int32", 4, WB_RECORD_INTEGER, true, WB_I32}, {"Int16", 2, WB_RECORD_INTEGER, true, -1},
    {"Int8", 1, WB_RECORD_INTEGER, true, -1},      {"UInt64", 8, WB_RECORD_INTEGER, false, -1},
    {"UInt32", 4, WB_RECORD_INTEGER, false, -1},   {"UInt16", 2, WB_RECORD_INTEGER, false, -1},
    {"UInt8", 1, WB_RECORD_INTEGER, false, WB_U8}, {"Bool", 1, WB_RECORD_BOOL, false, WB_BOOL},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

const wb_julia_number *wb_julia_number_of(const char *type) {
    const char *name =
        strncmp(type, "Core.", 5) == 0 || strncmp(type, "Base.", 5) == 0 ? type + 5 : type;
    for (int i = 0; i < NUMBERS; i++)
        if (strcmp(numbers[i].name, name) == 0) return &numbers[i];
    return NULL;
}

const char *wb_julia_name_of_dtype(wb_dtype dtype) {
    for (int i = 0; i < NUMBERS; i++)
        if (numbers[i].dtype == (int)dtype) return numbers[i].name;
    return NULL;
}

static double real_of(uint64_t bits, int64_t size_bytes) {
    if (size_bytes == 2) return wb_of_f16((uint16_t)bits);
    const uint32_t narrow = (uint32_t)bits;
    float single;
    double real;
    memcpy(&single, &narrow, sizeof single);
    memcpy(&real, &bits, sizeof real);
    return size_bytes == 4 ? (double)single : real;
}

bool wb_julia_set_number(wb_record *r, const wb_julia_number *n, const unsigned char *bytes) {
    const uint64_t bits = wb_julia_bits(bytes, n->size_bytes);
    const int unused = 64 - 8 * (int)n->size_bytes;
    const bool fits = n->kind == WB_RECORD_BOOL ? bits <= 1 : n->is_signed || bits <= INT64_MAX;
    if (!fits) return false;
    if (n->kind == WB_RECORD_REAL)
        r->real = real_of(bits, n->size_bytes);
    else if (n->kind == WB_RECORD_BOOL)
        r->boolean = bits == 1;
    else
        r->integer = n->is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
    r->kind = (uint8_t)n->kind;
    return true;
}
