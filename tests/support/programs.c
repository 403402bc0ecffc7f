#include "support/programs.h"

#include <string.h>

enum { NONE = WB_NO_VALUE };

/* ---- making ---- */

void program_start(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes) {
    *m = (program_maker){.low = -3, .high = 3};
    m->program = (wb_program){.ndim = ndim,
                              .reduced = reduced,
                              .phases = 1,
                              .instructions = m->instructions,
                              .accesses = m->accesses};
    for (int d = 0; d < ndim; d++) m->program.sizes[d] = sizes[d];
}

#define START(m, reduced, ...)                                                                     \
    program_start(m, reduced, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                  (int64_t[]){__VA_ARGS__})

static uint16_t add(program_maker *m, wb_instruction i) {
    i.phase = (uint8_t)m->phase;
    m->instructions[m->program.ninstructions] = i;
    return (uint16_t)m->program.ninstructions++;
}

static wb_register register_of(wb_dtype dtype) {
    static const uint8_t registers[WB_DTYPE_COUNT] = {
        [WB_F32] = WB_R_F32, [WB_F64] = WB_R_F64, [WB_F16] = WB_R_F32, [WB_BF16] = WB_R_F32,
        [WB_I32] = WB_R_I32, [WB_I64] = WB_R_I64, [WB_U8] = WB_R_I32,  [WB_BOOL] = WB_R_BOOL};
    return (wb_register)registers[dtype];
}

static int argument_new(program_maker *m, wb_dtype dtype, bool is_output) {
    const int a = m->program.narguments++;
    m->dtypes[a] = dtype;
    m->is_output[a] = is_output;
    return a;
}

/* Room for all places of the access. */
static void make_room(program_maker *m, const wb_access *a) {
    int64_t last = a->offset;
    for (int d = 0; d < m->program.ndim; d++)
        if (a->strides[d] > 0) last += (m->program.sizes[d] - 1) * a->strides[d];
    if (a->argument != NONE && last + 1 > m->counts[a->argument]) m->counts[a->argument] = last + 1;
}

static int access_new(program_maker *m, int argument, wb_dtype dtype, int64_t offset,
                      const int64_t *strides) {
    wb_access *a = &m->accesses[m->program.naccesses];
    *a = (wb_access){.dtype = (uint8_t)dtype, .argument = (uint16_t)argument, .offset = offset};
    for (int d = 0; d < m->program.ndim; d++) a->strides[d] = strides[d];
    make_room(m, a);
    return m->program.naccesses++;
}

/* Strides of a dense array over the dimensions in mask; 0 in the others. */
static void dense(const program_maker *m, uint32_t mask, int64_t *strides) {
    int64_t next = 1;
    for (int d = 0; d < m->program.ndim; d++) {
        strides[d] = mask >> d & 1 ? next : 0;
        if (mask >> d & 1) next *= m->program.sizes[d];
    }
}

static uint32_t all_dims(const program_maker *m) { return (1u << m->program.ndim) - 1; }

static uint16_t load_at(program_maker *m, int argument, int64_t offset, const int64_t *strides,
                        bool row) {
    const wb_dtype dtype = m->dtypes[argument];
    return add(m, (wb_instruction){
                      .code = WB_CODE_load,
                      .type = (uint8_t)register_of(dtype),
                      .in = {NONE, NONE, NONE},
                      .row = row,
                      .index = (uint16_t)access_new(m, argument, dtype, offset, strides)
    });
}

/* A new input that is dense over the dimensions in mask. */
static uint16_t load_over(program_maker *m, wb_dtype dtype, uint32_t mask, bool row) {
    int64_t strides[8];
    dense(m, mask, strides);
    return load_at(m, argument_new(m, dtype, false), 0, strides, row);
}

static uint16_t load(program_maker *m, wb_dtype dtype) {
    return load_over(m, dtype, all_dims(m), false);
}

static void store_at(program_maker *m, int argument, uint16_t value, int64_t offset,
                     const int64_t *strides, bool row) {
    const wb_dtype dtype = m->dtypes[argument];
    (void)add(m, (wb_instruction){
                     .code = WB_CODE_store,
                     .type = (uint8_t)register_of(dtype),
                     .in = {value, NONE, NONE},
                     .row = row,
                     .index = (uint16_t)access_new(m, argument, dtype, offset, strides)
    });
}

static void store(program_maker *m, wb_dtype dtype, uint16_t value) {
    int64_t strides[8];
    dense(m, all_dims(m), strides);
    store_at(m, argument_new(m, dtype, true), value, 0, strides, false);
}

static void store_row(program_maker *m, wb_dtype dtype, uint16_t value) {
    int64_t strides[8];
    dense(m, all_dims(m) & ~m->program.reduced, strides);
    store_at(m, argument_new(m, dtype, true), value, 0, strides, true);
}

/* result: the register of the value. */
static uint16_t op_as(program_maker *m, wb_code code, wb_register type, wb_register result,
                      uint16_t x, uint16_t y, uint16_t z) {
    const bool row = m->instructions[x].row;
    return add(m, (wb_instruction){
                      .code = (uint8_t)code,
                      .type = (uint8_t)type,
                      .from = (uint8_t)result,
                      .row = row,
                      .in = {x, y, z}
    });
}

static uint16_t op(program_maker *m, wb_code code, wb_register type, uint16_t x, uint16_t y) {
    return op_as(m, code, type, type, x, y, NONE);
}

static uint16_t constant(program_maker *m, wb_register type, double number) {
    return add(m, (wb_instruction){
                      .code = WB_CODE_constant,
                      .type = (uint8_t)type,
                      .in = {NONE, NONE, NONE},
                      .constant = number
    });
}

static uint16_t cast(program_maker *m, wb_register from, wb_register to, uint16_t x) {
    return add(m, (wb_instruction){
                      .code = WB_CODE_cast,
                      .type = (uint8_t)to,
                      .from = (uint8_t)from,
                      .row = m->instructions[x].row,
                      .in = {x, NONE, NONE}
    });
}

/* What is added afterwards belongs to the next phase. */
static uint16_t reduce(program_maker *m, wb_code code, wb_register type, uint16_t x) {
    return add(m, (wb_instruction){
                      .code = (uint8_t)code,
                      .type = (uint8_t)type,
                      .from = (uint8_t)type,
                      .row = true,
                      .in = {x, NONE, NONE}
    });
}

static uint16_t spread(program_maker *m, uint16_t x) {
    return add(m, (wb_instruction){
                      .code = WB_CODE_spread,
                      .type = (uint8_t)wb_result_register(&m->instructions[x]),
                      .in = {x, NONE, NONE}
    });
}

static void next_phase(program_maker *m) { m->phase = m->program.phases++; }
/* Reductions of what phase number m->phase computes. */
static uint16_t sum(program_maker *m, wb_register type, uint16_t x) {
    m->phase++;
    const uint16_t made = reduce(m, WB_CODE_sum, type, x);
    m->phase--;
    return made;
}
static uint16_t largest(program_maker *m, wb_register type, uint16_t x) {
    m->phase++;
    const uint16_t made = reduce(m, WB_CODE_max_reduce, type, x);
    m->phase--;
    return made;
}

static const wb_dtype wide_dtypes[WB_R_COUNT] = {WB_F32, WB_F64, WB_I32, WB_I64, WB_BOOL};

/* ---- every row of ops.def for every register ---- */

typedef enum operation_class { FLOAT, NUMBER, COMPARE, LOGIC } operation_class;

static const struct {
    wb_code code;
    operation_class class;
    int inputs;
} operations[] = {
#define WB_UNARY(name, class, ...)  {WB_CODE_##name, class, 1},
#define WB_BINARY(name, class, ...) {WB_CODE_##name, class, 2},
#include <weber/ops.def>
};

static bool has_form(operation_class class, wb_register type) {
    if (class == LOGIC) return type == WB_R_BOOL;
    if (type == WB_R_BOOL) return false;
    return class != FLOAT || type <= WB_R_F64;
}

/* Rows number `first`, first + step ... that have a form for the register. */
static void make_rows(program_maker *m, int64_t size, wb_register type, int first, int step) {
    START(m, 0, size);
    m->low = type >= WB_R_I32 ? -40 : -3, m->high = -m->low;
    const wb_dtype dtype = wide_dtypes[type];
    const uint16_t x = load(m, dtype), y = load(m, dtype);
    const int count = (int)(sizeof operations / sizeof *operations);
    for (int k = first; k < count; k += step) {
        if (!has_form(operations[k].class, type)) continue;
        const bool compares = operations[k].class == COMPARE;
        const uint16_t o = op_as(m, operations[k].code, type, compares ? WB_R_BOOL : type, x,
                                 operations[k].inputs == 2 ? y : NONE, NONE);
        store(m, compares ? WB_BOOL : dtype, o);
    }
}

#define ROWS(name, type, first, step)                                                              \
    static void name(program_maker *m, int variant) {                                              \
        make_rows(m, variant ? 777 : 1000, type, first, step);                                     \
    }
ROWS(rows_f32_0, WB_R_F32, 0, 4)
ROWS(rows_f32_1, WB_R_F32, 1, 4)
ROWS(rows_f32_2, WB_R_F32, 2, 4)
ROWS(rows_f32_3, WB_R_F32, 3, 4)
ROWS(rows_f64_0, WB_R_F64, 0, 2)
ROWS(rows_f64_1, WB_R_F64, 1, 2)
ROWS(rows_i32, WB_R_I32, 0, 1)
ROWS(rows_i64, WB_R_I64, 0, 1)
ROWS(rows_bool, WB_R_BOOL, 0, 1)

/* Infinities, NaN, zeros of both signs, where results are bits: comparisons, the larger and the smaller one, sign. */
static void edges(program_maker *m, int variant) {
    static const wb_code codes[] = {WB_CODE_max, WB_CODE_min, WB_CODE_eq,    WB_CODE_ne,
                                    WB_CODE_lt,  WB_CODE_ge,  WB_CODE_floor, WB_CODE_sign};
    START(m, 0, variant ? 300 : 500);
    const uint16_t x = load(m, WB_F32), y = load(m, WB_F32);
    for (int k = 0; k < 8; k++) {
        const bool compares = k >= 2 && k < 6;
        const uint16_t o = op_as(m, codes[k], WB_R_F32, compares ? WB_R_BOOL : WB_R_F32, x,
                                 k < 6 ? y : NONE, NONE);
        store(m, compares ? WB_BOOL : WB_F32, o);
    }
    store(m, WB_I32, cast(m, WB_R_F32, WB_R_I32, x));
    store(m, WB_I64, cast(m, WB_R_F32, WB_R_I64, x));
    store(m, WB_BOOL, cast(m, WB_R_F32, WB_R_BOOL, x));
    store(m, WB_F16, x);
    store(m, WB_BF16, x);
    m->low = -PROGRAM_SPECIAL;
}

static void wrapping(program_maker *m, int variant) {
    START(m, 0, variant ? 300 : 500);
    m->low = -2147483648.0, m->high = 2147483647.0;
    const uint16_t x = load(m, WB_I32), y = load(m, WB_I32), a = load(m, WB_I64);
    static const wb_code codes[] = {WB_CODE_add, WB_CODE_sub, WB_CODE_mul, WB_CODE_mod};
    for (int k = 0; k < 4; k++) store(m, WB_I32, op(m, codes[k], WB_R_I32, x, y));
    store(m, WB_I32, op(m, WB_CODE_square, WB_R_I32, x, NONE));
    store(m, WB_I32, op(m, WB_CODE_neg, WB_R_I32, x, NONE));
    const uint16_t square = op(m, WB_CODE_square, WB_R_I64, a, NONE);
    store(m, WB_I64, op(m, WB_CODE_square, WB_R_I64, square, NONE));
    store(m, WB_I32, cast(m, WB_R_I64, WB_R_I32, square));
    const uint16_t wrapped = op(m, WB_CODE_mod, WB_R_I32, x, constant(m, WB_R_I32, 256));
    store(m, WB_U8, wrapped);
}

static void casts(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    m->low = -100, m->high = 100;
    for (int from = 0; from < WB_R_COUNT; from++) {
        const uint16_t x = load(m, wide_dtypes[from]);
        for (int to = 0; to < WB_R_COUNT; to++)
            if (to != from)
                store(m, wide_dtypes[to], cast(m, (wb_register)from, (wb_register)to, x));
    }
}

static void casts_without_f64(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    m->low = -100, m->high = 100;
    for (int from = 0; from < WB_R_COUNT; from++) {
        if (from == WB_R_F64) continue;
        const uint16_t x = load(m, wide_dtypes[from]);
        for (int to = 0; to < WB_R_COUNT; to++)
            if (to != from && to != WB_R_F64)
                store(m, wide_dtypes[to], cast(m, (wb_register)from, (wb_register)to, x));
    }
}

static void memory_types(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    static const wb_dtype dtypes[] = {WB_F16, WB_BF16, WB_U8, WB_BOOL};
    m->low = 0, m->high = 100;
    for (int k = 0; k < 4; k++) {
        const uint16_t x = load(m, dtypes[k]);
        store(m, dtypes[k], x);
        if (k < 2) store(m, dtypes[k], op(m, WB_CODE_div, WB_R_F32, x, constant(m, WB_R_F32, 3)));
        if (k == 2) store(m, WB_I32, op(m, WB_CODE_add, WB_R_I32, x, x));
    }
}

static void choices(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    const uint16_t c = load(m, WB_BOOL);
    for (int t = 0; t < WB_R_COUNT; t++) {
        if (t == WB_R_F64) continue;
        const wb_register type = (wb_register)t;
        const uint16_t x = load(m, wide_dtypes[t]);
        store(m, wide_dtypes[t],
              op_as(m, WB_CODE_select, type, type, c, x, constant(m, type, 1.5)));
    }
}

static void numbers(program_maker *m, int variant) {
    START(m, 0, variant ? 20 : 30);
    static const double values[] = {-1e30, 7e9, -2.5, 0, 1.0 / 3};
    for (int t = 0; t < WB_R_COUNT; t++)
        for (int k = 0; k < 5 && t != WB_R_F64; k++) {
            if (t == WB_R_I32 && (k == 0 || k == 1)) continue;
            store(m, wide_dtypes[t], constant(m, (wb_register)t, values[k]));
        }
    for (int t = 0; t < WB_R_COUNT; t++)
        for (int k = 0; k < 5 && t != WB_R_F64; k++) {
            if (t == WB_R_I32 && k == 3) continue;
            const wb_instruction late = {
                .code = WB_CODE_late,
                .type = (uint8_t)t,
                .in = {NONE, NONE, NONE},
                .index = (uint16_t)(2 + k)
            };
            store(m, wide_dtypes[t], add(m, late));
        }
}

static uint16_t source(program_maker *m, wb_code code, wb_register type, int64_t offset,
                       const int64_t *strides) {
    return add(m, (wb_instruction){
                      .code = (uint8_t)code,
                      .type = (uint8_t)type,
                      .in = {NONE, NONE, NONE},
                      .index = (uint16_t)access_new(m, NONE, WB_F32, offset, strides)
    });
}

static void make_sources(program_maker *m, int variant, bool has_f64) {
    START(m, 0, variant ? 31 : 37, variant ? 9 : 11);
    int64_t all[8], second[8], odd[8];
    dense(m, 3, all);
    dense(m, 2, second);
    odd[0] = 3, odd[1] = -2;
    for (int t = has_f64 ? WB_R_F64 : WB_R_F32; t < WB_R_BOOL; t += has_f64 ? 5 : 1) {
        if (!has_f64 && t == WB_R_F64) continue;
        store(m, wide_dtypes[t], source(m, WB_CODE_iota, (wb_register)t, 40, odd));
        store(m, wide_dtypes[t], source(m, WB_CODE_iota, (wb_register)t, 0, second));
    }
    const wb_register type = has_f64 ? WB_R_F64 : WB_R_F32;
    store(m, wide_dtypes[type], source(m, WB_CODE_uniform, type, 0, all));
    store(m, wide_dtypes[type], source(m, WB_CODE_uniform, type, 40, odd));
    store(m, wide_dtypes[type], source(m, WB_CODE_normal, type, 0, all));
    store(m, wide_dtypes[type], source(m, WB_CODE_normal, type, 5, second));
    m->tolerance = has_f64 ? 1e-12 : 2e-6;
}

static void sources(program_maker *m, int variant) { make_sources(m, variant, false); }
static void sources_f64(program_maker *m, int variant) { make_sources(m, variant, true); }

/* ---- accesses ---- */

static void far_numbers(program_maker *m, int variant) {
    START(m, 0, variant ? 100 : 200, variant ? 10 : 20);
    const int64_t strides[] = {3000000000, -7};
    store(m, WB_I64, source(m, WB_CODE_iota, WB_R_I64, -5000000000, strides));
    store(m, WB_F32, op(m, WB_CODE_add, WB_R_F32, load(m, WB_F32), load_over(m, WB_F32, 1, false)));
}

static void one_dimension(program_maker *m, int variant) {
    const int64_t n = variant ? 5000 : 20000, step[] = {3}, back[] = {-1}, still[] = {0};
    START(m, 0, n);
    const uint16_t x = load(m, WB_F32);
    const uint16_t y = load_at(m, argument_new(m, WB_F32, false), 2, step, false);
    const uint16_t z = load_at(m, argument_new(m, WB_F32, false), n - 1, back, false);
    const uint16_t c = load_at(m, argument_new(m, WB_F32, false), variant ? 1 : 4, still, false);
    const uint16_t xy = op(m, WB_CODE_mul, WB_R_F32, x, y);
    const uint16_t scale = op(m, WB_CODE_add, WB_R_F32, c, constant(m, WB_R_F32, 2));
    const uint16_t o = op(m, WB_CODE_mul, WB_R_F32, op(m, WB_CODE_add, WB_R_F32, xy, z), scale);
    store(m, WB_F32, o);
    store_at(m, argument_new(m, WB_F32, true), xy, 1, step, false);
}

static void broadcasting(program_maker *m, int variant) {
    START(m, 0, variant ? 40 : 100, variant ? 9 : 33, variant ? 6 : 5);
    uint16_t o = load(m, WB_F32);
    for (uint32_t mask = 0; mask < 7; mask++)
        o = op(m, WB_CODE_add, WB_R_F32, o, load_over(m, WB_F32, mask, false));
    store(m, WB_F32, o);
}

static void permuted(program_maker *m, int variant) {
    const int64_t a = variant ? 5 : 12, b = variant ? 7 : 30, c = variant ? 11 : 9;
    START(m, 0, a, b, c);
    const int64_t in[] = {b * c, 1, b}, out[] = {-c, -a * c, 1};
    const uint16_t x = load_at(m, argument_new(m, WB_I32, false), 0, in, false);
    store_at(m, argument_new(m, WB_I32, true), x, (a - 1) * c + (b - 1) * a * c, out, false);
    store(m, WB_I32, x);
}

static void seven_dimensions(program_maker *m, int variant) {
    START(m, 0, 2, 3, 2, variant ? 4 : 5, 1, 2, 3, variant ? 3 : 2);
    uint16_t o = load_over(m, WB_F32, 0x55, false);
    o = op(m, WB_CODE_mul, WB_R_F32, o, load_over(m, WB_F32, 0xaa, false));
    o = op(m, WB_CODE_add, WB_R_F32, o, load_over(m, WB_F32, 0x33, false));
    store(m, WB_F32, o);
}

static void one_element(program_maker *m, int variant) {
    (void)variant;
    START(m, 0, 1);
    m->program.ndim = 0;
    const uint16_t x = load(m, WB_F32);
    store(m, WB_F32, op(m, WB_CODE_exp, WB_R_F32, x, NONE));
}

static void nothing(program_maker *m, int variant) {
    START(m, 0, variant ? 0 : 5, variant ? 3 : 0);
    store(m, WB_F32, load(m, WB_F32));
    m->counts[0] = m->counts[1] = 1;
}

static void written_over(program_maker *m, int variant) {
    START(m, 0, variant ? 3000 : 30000);
    int64_t strides[8];
    dense(m, 1, strides);
    const uint16_t x = load(m, WB_F32), y = load(m, WB_F32);
    const uint16_t o = op(m, WB_CODE_sub, WB_R_F32, op(m, WB_CODE_mul, WB_R_F32, x, y), x);
    const uint16_t xy = op(m, WB_CODE_add, WB_R_F32, x, y);
    m->is_output[0] = m->is_output[1] = true;
    store_at(m, 0, o, 0, strides, false); /* stores come last, as in all programs */
    store_at(m, 1, xy, 0, strides, false);
}

/* More numbers than the block has room for. */
static void many_numbers(program_maker *m, int variant) {
    const int64_t a = variant ? 6 : 9, b = 8, c = variant ? 5 : 4;
    START(m, 0, a, b, c);
    uint16_t o = load(m, WB_F32);
    for (int k = 0; k < 30; k++) {
        const int64_t strides[] = {2, 2 * a + k, 2 * a * b + k * 40};
        o = op(m, WB_CODE_add, WB_R_F32, o,
               load_at(m, argument_new(m, WB_F32, false), 0, strides, false));
    }
    store(m, WB_F32, o);
}

static void guarded(program_maker *m, int variant) {
    START(m, 0, variant ? 1000 : 12000);
    const uint16_t good = load_over(m, WB_BOOL, 0, false), p = load(m, WB_F32), g = load(m, WB_F32);
    const wb_instruction late = {
        .code = WB_CODE_late, .type = WB_R_F32, .in = {NONE, NONE, NONE},
                .index = 4
    };
    const uint16_t step = op(m, WB_CODE_mul, WB_R_F32, g, add(m, late));
    const uint16_t next = op(m, WB_CODE_sub, WB_R_F32, p, step);
    store(m, WB_F32, op_as(m, WB_CODE_select, WB_R_F32, WB_R_F32, good, next, p));
}

/* ---- reductions ---- */

static void sums_and_largest(program_maker *m, uint32_t reduced, wb_dtype dtype, int ndim,
                             const int64_t *sizes) {
    program_start(m, reduced, ndim, sizes);
    const wb_register type = register_of(dtype);
    const uint16_t x = load(m, dtype), y = load_over(m, dtype, reduced, false);
    const uint16_t s = sum(m, type, op(m, WB_CODE_mul, type, x, y)), l = largest(m, type, x);
    m->phase = 1;
    store_row(m, dtype, s);
    store_row(m, dtype, op(m, WB_CODE_add, type, s, l));
    if (dtype == WB_F32) m->tolerance = 3e-5; /* of numbers that are much larger than their sum */
}

#define REDUCE(name, reduced, dtype, first, second)                                                \
    static void name(program_maker *m, int variant) {                                              \
        const int64_t one[] = {EXPAND first}, other[] = {EXPAND second};                           \
        sums_and_largest(m, reduced, dtype, (int)(sizeof one / sizeof *one),                       \
                         variant ? other : one);                                                   \
    }
#define EXPAND(...) __VA_ARGS__
REDUCE(rows_of_few, 1, WB_F32, (10, 500), (9, 433))
REDUCE(rows_of_many, 1, WB_F32, (1000, 70), (900, 80))
REDUCE(rows_of_i32, 1, WB_I32, (300, 70), (200, 80))
REDUCE(rows_of_i64, 1, WB_I64, (300, 70), (200, 80))
REDUCE(rows_of_f64, 1, WB_F64, (300, 70), (200, 80))
REDUCE(rows_of_f16, 1, WB_F16, (300, 70), (200, 80))
REDUCE(columns_of_few, 2, WB_F32, (100, 20), (130, 30))
REDUCE(columns_of_many, 2, WB_F32, (70, 1500), (60, 2000))
REDUCE(columns_of_i64, 2, WB_I64, (100, 300), (130, 280))
REDUCE(columns_of_f64, 2, WB_F64, (100, 300), (130, 280))
REDUCE(few_columns, 2, WB_F32, (3, 200), (4, 150))
REDUCE(all, 1, WB_F32, (3000), (4000))
REDUCE(all_of_many, 1, WB_F32, (300000), (400000))
REDUCE(all_of_many_i32, 1, WB_I32, (300000), (400000))
REDUCE(few_rows_of_many, 1, WB_F32, (100000, 3), (120000, 3))
REDUCE(few_columns_of_many, 2, WB_F32, (3, 100000), (3, 130000))
REDUCE(outer_and_inner, 5, WB_F32, (49, 12, 16), (36, 10, 8))
REDUCE(outer_and_inner_of_many, 5, WB_F32, (784, 3, 128), (400, 3, 200))
REDUCE(the_middle, 2, WB_F32, (40, 30, 20), (48, 40, 10))
REDUCE(few_in_the_middle, 10, WB_F32, (5, 30, 6, 7), (4, 40, 3, 8))
REDUCE(empty_rows, 1, WB_I32, (4, 0), (9, 0))

static void softmax_over(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes) {
    program_start(m, reduced, ndim, sizes);
    const uint16_t x = load(m, WB_F32), scale = load_over(m, WB_F32, all_dims(m) & ~reduced, true);
    const uint16_t high = largest(m, WB_R_F32, x);
    next_phase(m);
    const uint16_t e =
        op(m, WB_CODE_exp, WB_R_F32, op(m, WB_CODE_sub, WB_R_F32, x, spread(m, high)), NONE);
    const uint16_t total = sum(m, WB_R_F32, e);
    next_phase(m);
    const uint16_t scaled = op(m, WB_CODE_div, WB_R_F32, scale, total);
    store(m, WB_F32, op(m, WB_CODE_mul, WB_R_F32, e, spread(m, scaled)));
    m->phase = 2;
    store_row(m, WB_F32,
              op(m, WB_CODE_add, WB_R_F32, high, op(m, WB_CODE_log, WB_R_F32, total, NONE)));
}

#define SOFTMAX(name, reduced, first, second)                                                      \
    static void name(program_maker *m, int variant) {                                              \
        const int64_t one[] = {EXPAND first}, other[] = {EXPAND second};                           \
        softmax_over(m, reduced, (int)(sizeof one / sizeof *one), variant ? other : one);          \
    }
SOFTMAX(softmax_of_few, 1, (10, 300), (12, 200))
SOFTMAX(softmax_of_many, 1, (2000, 50), (1900, 70))
SOFTMAX(softmax_of_all, 1, (200000), (300000))
SOFTMAX(softmax_of_columns, 2, (100, 70), (90, 80))
SOFTMAX(softmax_of_long_columns, 2, (64, 3000), (64, 4000))
SOFTMAX(softmax_of_outer, 4, (5, 20, 60), (6, 30, 50))

/* Variance as two passes, then normalised, with a weight for each row: three phases, sums of a full value of a later phase. */
static void norm_over(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes) {
    program_start(m, reduced, ndim, sizes);
    const uint16_t x = load(m, WB_F32);
    const uint16_t part = constant(m, WB_R_F32, 1.0 / 64), tiny = constant(m, WB_R_F32, 1e-5);
    const uint16_t total = sum(m, WB_R_F32, x);
    next_phase(m);
    const uint16_t mean = op(m, WB_CODE_mul, WB_R_F32, total, part);
    const uint16_t d = op(m, WB_CODE_sub, WB_R_F32, x, spread(m, mean));
    const uint16_t squares = sum(m, WB_R_F32, op(m, WB_CODE_square, WB_R_F32, d, NONE));
    store(m, WB_F32, d);
    next_phase(m);
    const uint16_t variance = op(m, WB_CODE_mul, WB_R_F32, squares, part);
    const uint16_t inverse =
        op(m, WB_CODE_rsqrt, WB_R_F32, op(m, WB_CODE_add, WB_R_F32, variance, tiny), NONE);
    const uint16_t o = op(m, WB_CODE_mul, WB_R_F32, d, spread(m, inverse));
    store(m, WB_F16, op(m, WB_CODE_mul, WB_R_F32, o, load_over(m, WB_F32, reduced, false)));
    store_row(m, WB_F32, mean);
    store_row(m, WB_F32, variance);
}

#define NORM(name, reduced, first, second)                                                         \
    static void name(program_maker *m, int variant) {                                              \
        const int64_t one[] = {EXPAND first}, other[] = {EXPAND second};                           \
        norm_over(m, reduced, (int)(sizeof one / sizeof *one), variant ? other : one);             \
    }
NORM(norm_of_rows, 1, (64, 200), (80, 100))
NORM(norm_of_planes, 5, (49, 12, 8), (60, 13, 9))
NORM(norm_of_columns, 2, (40, 64), (50, 72))
NORM(norm_of_long_planes, 5, (900, 3, 70), (1000, 3, 80))

/* A NaN is the largest; infinities are in order. */
static void largest_of_special(program_maker *m, int variant) {
    START(m, 1, variant ? 36 : 40, variant ? 60 : 50);
    const uint16_t x = load(m, WB_F32);
    const uint16_t l = largest(m, WB_R_F32, x);
    m->phase = 1;
    store_row(m, WB_F32, l);
    m->low = -PROGRAM_SPECIAL;
}

/* The place of the largest: a reduction in the second phase of what the first found. */
static void place_of_largest(program_maker *m, int variant) {
    START(m, 1, variant ? 90 : 100, variant ? 20 : 30);
    int64_t first[8];
    dense(m, 1, first);
    const uint16_t x = load(m, WB_F32);
    const uint16_t high = largest(m, WB_R_F32, x);
    next_phase(m);
    const uint16_t is_high = op_as(m, WB_CODE_eq, WB_R_F32, WB_R_BOOL, x, spread(m, high), NONE);
    const uint16_t place =
        op(m, WB_CODE_neg, WB_R_I64, source(m, WB_CODE_iota, WB_R_I64, 0, first), NONE);
    const uint16_t chosen =
        op_as(m, WB_CODE_select, WB_R_I64, WB_R_I64, is_high, place, constant(m, WB_R_I64, -1e9));
    const uint16_t last = largest(m, WB_R_I64, chosen);
    m->phase = 2;
    store_row(m, WB_I64, op(m, WB_CODE_neg, WB_R_I64, last, NONE));
}

/* ---- the list ---- */

#define ROW(name)                                                                                  \
    { #name, name }
const program_row programs[] = {
    ROW(rows_f32_0),
    ROW(rows_f32_1),
    ROW(rows_f32_2),
    ROW(rows_f32_3),
    ROW(rows_f64_0),
    ROW(rows_f64_1),
    ROW(rows_i32),
    ROW(rows_i64),
    ROW(rows_bool),
    ROW(edges),
    ROW(wrapping),
    ROW(casts),
    ROW(casts_without_f64),
    ROW(memory_types),
    ROW(choices),
    ROW(numbers),
    ROW(sources),
    ROW(sources_f64),
    ROW(far_numbers),
    ROW(one_dimension),
    ROW(broadcasting),
    ROW(permuted),
    ROW(seven_dimensions),
    ROW(one_element),
    ROW(nothing),
    ROW(written_over),
    ROW(many_numbers),
    ROW(guarded),
    ROW(rows_of_few),
    ROW(rows_of_many),
    ROW(rows_of_i32),
    ROW(rows_of_i64),
    ROW(rows_of_f64),
    ROW(rows_of_f16),
    ROW(columns_of_few),
    ROW(columns_of_many),
    ROW(columns_of_i64),
    ROW(columns_of_f64),
    ROW(few_columns),
    ROW(all),
    ROW(all_of_many),
    ROW(all_of_many_i32),
    ROW(few_rows_of_many),
    ROW(few_columns_of_many),
    ROW(outer_and_inner),
    ROW(outer_and_inner_of_many),
    ROW(the_middle),
    ROW(few_in_the_middle),
    ROW(empty_rows),
    ROW(softmax_of_few),
    ROW(softmax_of_many),
    ROW(softmax_of_all),
    ROW(softmax_of_columns),
    ROW(softmax_of_long_columns),
    ROW(softmax_of_outer),
    ROW(norm_of_rows),
    ROW(norm_of_planes),
    ROW(norm_of_columns),
    ROW(norm_of_long_planes),
    ROW(largest_of_special),
    ROW(place_of_largest),
};
const int program_count = (int)(sizeof programs / sizeof *programs);
