#include "support/programs.h"

enum { NONE = WB_NO_VALUE };

#define START(m, reduced, ...)                                                                     \
    program_start(m, reduced, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                  (int64_t[]){__VA_ARGS__})

static const wb_dtype wide_dtypes[WB_R_COUNT] = {WB_F32, WB_F64, WB_I32, WB_I64, WB_BOOL};

static uint32_t all_dims(const program_maker *m) { return (1u << m->program.ndim) - 1; }

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
    const uint16_t x = program_load(m, dtype), y = program_load(m, dtype);
    const int count = (int)(sizeof operations / sizeof *operations);
    for (int k = first; k < count; k += step) {
        if (!has_form(operations[k].class, type)) continue;
        const bool compares = operations[k].class == COMPARE;
        const uint16_t o = program_op_as(m, operations[k].code, type, compares ? WB_R_BOOL : type,
                                         x, operations[k].inputs == 2 ? y : NONE, NONE);
        program_store(m, compares ? WB_BOOL : dtype, o);
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

/* Infinities, NaN, zeros of both signs, where results are bits: comparisons, the larger and the
 * smaller one, sign. */
static void edges(program_maker *m, int variant) {
    static const wb_code codes[] = {WB_CODE_max, WB_CODE_min, WB_CODE_eq,    WB_CODE_ne,
                                    WB_CODE_lt,  WB_CODE_ge,  WB_CODE_floor, WB_CODE_sign};
    START(m, 0, variant ? 300 : 500);
    const uint16_t x = program_load(m, WB_F32), y = program_load(m, WB_F32);
    for (int k = 0; k < 8; k++) {
        const bool compares = k >= 2 && k < 6;
        const uint16_t o = program_op_as(m, codes[k], WB_R_F32, compares ? WB_R_BOOL : WB_R_F32, x,
                                         k < 6 ? y : NONE, NONE);
        program_store(m, compares ? WB_BOOL : WB_F32, o);
    }
    program_store(m, WB_I32, program_cast(m, WB_R_F32, WB_R_I32, x));
    program_store(m, WB_I64, program_cast(m, WB_R_F32, WB_R_I64, x));
    program_store(m, WB_BOOL, program_cast(m, WB_R_F32, WB_R_BOOL, x));
    program_store(m, WB_F16, x);
    program_store(m, WB_BF16, x);
    m->low = -PROGRAM_SPECIAL;
}

static void wrapping(program_maker *m, int variant) {
    START(m, 0, variant ? 300 : 500);
    m->low = -2147483648.0, m->high = 2147483647.0;
    const uint16_t x = program_load(m, WB_I32), y = program_load(m, WB_I32),
                   a = program_load(m, WB_I64);
    static const wb_code codes[] = {WB_CODE_add, WB_CODE_sub, WB_CODE_mul, WB_CODE_mod};
    for (int k = 0; k < 4; k++) program_store(m, WB_I32, program_op(m, codes[k], WB_R_I32, x, y));
    program_store(m, WB_I32, program_op(m, WB_CODE_square, WB_R_I32, x, NONE));
    program_store(m, WB_I32, program_op(m, WB_CODE_neg, WB_R_I32, x, NONE));
    const uint16_t square = program_op(m, WB_CODE_square, WB_R_I64, a, NONE);
    program_store(m, WB_I64, program_op(m, WB_CODE_square, WB_R_I64, square, NONE));
    program_store(m, WB_I32, program_cast(m, WB_R_I64, WB_R_I32, square));
    const uint16_t wrapped =
        program_op(m, WB_CODE_mod, WB_R_I32, x, program_constant(m, WB_R_I32, 256));
    program_store(m, WB_U8, wrapped);
}

static void casts(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    m->low = -100, m->high = 100;
    for (int from = 0; from < WB_R_COUNT; from++) {
        const uint16_t x = program_load(m, wide_dtypes[from]);
        for (int to = 0; to < WB_R_COUNT; to++)
            if (to != from)
                program_store(m, wide_dtypes[to],
                              program_cast(m, (wb_register)from, (wb_register)to, x));
    }
}

static void casts_without_f64(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    m->low = -100, m->high = 100;
    for (int from = 0; from < WB_R_COUNT; from++) {
        if (from == WB_R_F64) continue;
        const uint16_t x = program_load(m, wide_dtypes[from]);
        for (int to = 0; to < WB_R_COUNT; to++)
            if (to != from && to != WB_R_F64)
                program_store(m, wide_dtypes[to],
                              program_cast(m, (wb_register)from, (wb_register)to, x));
    }
}

static void memory_types(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    static const wb_dtype dtypes[] = {WB_F16, WB_BF16, WB_U8, WB_BOOL};
    m->low = 0, m->high = 100;
    for (int k = 0; k < 4; k++) {
        const uint16_t x = program_load(m, dtypes[k]);
        program_store(m, dtypes[k], x);
        if (k < 2)
            program_store(
                m, dtypes[k],
                program_op(m, WB_CODE_div, WB_R_F32, x, program_constant(m, WB_R_F32, 3)));
        if (k == 2) program_store(m, WB_I32, program_op(m, WB_CODE_add, WB_R_I32, x, x));
    }
}

static void choices(program_maker *m, int variant) {
    START(m, 0, variant ? 200 : 300);
    const uint16_t c = program_load(m, WB_BOOL);
    for (int t = 0; t < WB_R_COUNT; t++) {
        if (t == WB_R_F64) continue;
        const wb_register type = (wb_register)t;
        const uint16_t x = program_load(m, wide_dtypes[t]);
        program_store(
            m, wide_dtypes[t],
            program_op_as(m, WB_CODE_select, type, type, c, x, program_constant(m, type, 1.5)));
    }
}

static void numbers(program_maker *m, int variant) {
    START(m, 0, variant ? 20 : 30);
    static const double values[] = {-1e30, 7e9, -2.5, 0, 1.0 / 3};
    for (int t = 0; t < WB_R_COUNT; t++)
        for (int k = 0; k < 5 && t != WB_R_F64; k++) {
            if (t == WB_R_I32 && (k == 0 || k == 1)) continue;
            program_store(m, wide_dtypes[t], program_constant(m, (wb_register)t, values[k]));
        }
    for (int t = 0; t < WB_R_COUNT; t++)
        for (int k = 0; k < 5 && t != WB_R_F64; k++) {
            if (t == WB_R_I32 && k == 3) continue;
            const wb_instruction late = {.code = WB_CODE_late,
                                         .type = (uint8_t)t,
                                         .in = {NONE, NONE, NONE},
                                         .index = (uint16_t)(2 + k)};
            program_store(m, wide_dtypes[t], program_add(m, late));
        }
}

static void late_numbers(program_maker *m, int variant) {
    START(m, 0, variant ? 20 : 30);
    m->low = -PROGRAM_SPECIAL;
    for (int k = 0; k < PROGRAM_LATE; k++)
        program_store(m, WB_F32,
                      program_add(m, (wb_instruction){.code = WB_CODE_late,
                                                      .type = WB_R_F32,
                                                      .in = {NONE, NONE, NONE},
                                                      .index = (uint16_t)(2 + k)}));
}

static void make_sources(program_maker *m, int variant, bool has_f64) {
    START(m, 0, variant ? 33 : 37, variant ? 9 : 11);
    int64_t all[8], second[8], odd[8];
    program_dense(m, 3, all);
    program_dense(m, 2, second);
    odd[0] = 3, odd[1] = -2;
    for (int t = has_f64 ? WB_R_F64 : WB_R_F32; t < WB_R_BOOL; t += has_f64 ? 5 : 1) {
        if (!has_f64 && t == WB_R_F64) continue;
        program_store(m, wide_dtypes[t], program_source(m, WB_CODE_iota, (wb_register)t, 40, odd));
        program_store(m, wide_dtypes[t],
                      program_source(m, WB_CODE_iota, (wb_register)t, 0, second));
    }
    const wb_register type = has_f64 ? WB_R_F64 : WB_R_F32;
    program_store(m, wide_dtypes[type], program_source(m, WB_CODE_uniform, type, 0, all));
    program_store(m, wide_dtypes[type], program_source(m, WB_CODE_uniform, type, 40, odd));
    program_store(m, wide_dtypes[type], program_source(m, WB_CODE_normal, type, 0, all));
    program_store(m, wide_dtypes[type], program_source(m, WB_CODE_normal, type, 5, second));
    m->tolerance = has_f64 ? 1e-12 : 2e-6;
}

static void sources(program_maker *m, int variant) { make_sources(m, variant, false); }
static void sources_f64(program_maker *m, int variant) { make_sources(m, variant, true); }

/* ---- accesses ---- */

static void far_numbers(program_maker *m, int variant) {
    START(m, 0, variant ? 100 : 200, variant ? 10 : 20);
    const int64_t strides[] = {3000000000, -7};
    program_store(m, WB_I64, program_source(m, WB_CODE_iota, WB_R_I64, -5000000000, strides));
    program_store(m, WB_F32,
                  program_op(m, WB_CODE_add, WB_R_F32, program_load(m, WB_F32),
                             program_load_over(m, WB_F32, 1, false)));
}

static void one_dimension(program_maker *m, int variant) {
    const int64_t n = variant ? 5000 : 20000, step[] = {3}, back[] = {-1}, still[] = {0};
    START(m, 0, n);
    const uint16_t x = program_load(m, WB_F32);
    const uint16_t y = program_load_at(m, program_argument_new(m, WB_F32, false), 2, step, false);
    const uint16_t z =
        program_load_at(m, program_argument_new(m, WB_F32, false), n - 1, back, false);
    const uint16_t c =
        program_load_at(m, program_argument_new(m, WB_F32, false), variant ? 1 : 4, still, false);
    const uint16_t xy = program_op(m, WB_CODE_mul, WB_R_F32, x, y);
    const uint16_t scale =
        program_op(m, WB_CODE_add, WB_R_F32, c, program_constant(m, WB_R_F32, 2));
    const uint16_t o =
        program_op(m, WB_CODE_mul, WB_R_F32, program_op(m, WB_CODE_add, WB_R_F32, xy, z), scale);
    program_store(m, WB_F32, o);
    program_store_at(m, program_argument_new(m, WB_F32, true), xy, 1, step, false);
}

static void broadcasting(program_maker *m, int variant) {
    START(m, 0, variant ? 40 : 100, variant ? 9 : 33, variant ? 6 : 5);
    uint16_t o = program_load(m, WB_F32);
    for (uint32_t mask = 0; mask < 7; mask++)
        o = program_op(m, WB_CODE_add, WB_R_F32, o, program_load_over(m, WB_F32, mask, false));
    program_store(m, WB_F32, o);
}

/* A first dimension that is no loop for vectors; several chunks of it. */
static void short_runs(program_maker *m, int variant) {
    START(m, 0, variant ? 10 : 7, variant ? 3 : 5, variant ? 700 : 600);
    uint16_t o = program_load(m, WB_F32);
    for (uint32_t mask = 1; mask < 7; mask++)
        o = program_op(m, WB_CODE_sub, WB_R_F32, program_load_over(m, WB_F32, mask, false), o);
    program_store(m, WB_F32, o);
}

static void permuted(program_maker *m, int variant) {
    const int64_t a = variant ? 5 : 12, b = variant ? 7 : 30, c = variant ? 11 : 9;
    START(m, 0, a, b, c);
    const int64_t in[] = {b * c, 1, b}, out[] = {-c, -a * c, 1};
    const uint16_t x = program_load_at(m, program_argument_new(m, WB_I32, false), 0, in, false);
    program_store_at(m, program_argument_new(m, WB_I32, true), x, (a - 1) * c + (b - 1) * a * c,
                     out, false);
    program_store(m, WB_I32, x);
}

static void seven_dimensions(program_maker *m, int variant) {
    START(m, 0, 2, 3, 2, variant ? 4 : 5, 1, 2, 3, variant ? 3 : 2);
    uint16_t o = program_load_over(m, WB_F32, 0x55, false);
    o = program_op(m, WB_CODE_mul, WB_R_F32, o, program_load_over(m, WB_F32, 0xaa, false));
    o = program_op(m, WB_CODE_add, WB_R_F32, o, program_load_over(m, WB_F32, 0x33, false));
    program_store(m, WB_F32, o);
}

static void one_element(program_maker *m, int variant) {
    (void)variant;
    START(m, 0, 1);
    m->program.ndim = 0;
    const uint16_t x = program_load(m, WB_F32);
    program_store(m, WB_F32, program_op(m, WB_CODE_exp, WB_R_F32, x, NONE));
}

static void nothing(program_maker *m, int variant) {
    START(m, 0, variant ? 0 : 5, variant ? 3 : 0);
    program_store(m, WB_F32, program_load(m, WB_F32));
    m->counts[0] = m->counts[1] = 1;
}

static void written_over(program_maker *m, int variant) {
    START(m, 0, variant ? 3000 : 30000);
    int64_t strides[8];
    program_dense(m, 1, strides);
    const uint16_t x = program_load(m, WB_F32), y = program_load(m, WB_F32);
    const uint16_t o =
        program_op(m, WB_CODE_sub, WB_R_F32, program_op(m, WB_CODE_mul, WB_R_F32, x, y), x);
    const uint16_t xy = program_op(m, WB_CODE_add, WB_R_F32, x, y);
    m->is_output[0] = m->is_output[1] = true;
    program_store_at(m, 0, o, 0, strides, false); /* stores come last, as in all programs */
    program_store_at(m, 1, xy, 0, strides, false);
}

/* More numbers than the block has room for. */
static void many_numbers(program_maker *m, int variant) {
    const int64_t a = variant ? 6 : 9, b = 8, c = variant ? 5 : 4;
    START(m, 0, a, b, c);
    uint16_t o = program_load(m, WB_F32);
    for (int k = 0; k < 30; k++) {
        const int64_t strides[] = {2, 2 * a + k, 2 * a * b + k * 40};
        o = program_op(
            m, WB_CODE_add, WB_R_F32, o,
            program_load_at(m, program_argument_new(m, WB_F32, false), 0, strides, false));
    }
    program_store(m, WB_F32, o);
}

static void guarded(program_maker *m, int variant) {
    START(m, 0, variant ? 1000 : 12000);
    const uint16_t good = program_load_over(m, WB_BOOL, 0, false), p = program_load(m, WB_F32),
                   g = program_load(m, WB_F32);
    const wb_instruction late = {
        .code = WB_CODE_late, .type = WB_R_F32, .in = {NONE, NONE, NONE}, .index = 4};
    const uint16_t step = program_op(m, WB_CODE_mul, WB_R_F32, g, program_add(m, late));
    const uint16_t next = program_op(m, WB_CODE_sub, WB_R_F32, p, step);
    program_store(m, WB_F32, program_op_as(m, WB_CODE_select, WB_R_F32, WB_R_F32, good, next, p));
}

static void update(program_maker *m, int variant) {
    guarded(m, variant);
    m->program.is_update = true;
}

/* ---- reductions ---- */

static void sums_and_largest(program_maker *m, uint32_t reduced, wb_dtype dtype, int ndim,
                             const int64_t *sizes) {
    program_start(m, reduced, ndim, sizes);
    const wb_register type = wb_register_of(dtype);
    const uint16_t x = program_load(m, dtype), y = program_load_over(m, dtype, reduced, false);
    const uint16_t s = program_sum(m, type, program_op(m, WB_CODE_mul, type, x, y)),
                   l = program_largest(m, type, x);
    m->phase = 1;
    program_store_row(m, dtype, s);
    program_store_row(m, dtype, program_op(m, WB_CODE_add, type, s, l));
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
REDUCE(rows_between, 5, WB_F32, (5, 100, 4, 7), (6, 90, 3, 5))
REDUCE(rows_of_many, 1, WB_F32, (1000, 70), (900, 80))
REDUCE(rows_of_warps, 1, WB_F32, (100, 70), (120, 81))
REDUCE(many_rows_of_warps, 1, WB_F32, (300, 1100), (360, 1030))
REDUCE(rows_of_i32, 1, WB_I32, (300, 70), (400, 80))
REDUCE(rows_of_i64, 1, WB_I64, (300, 70), (380, 80))
REDUCE(rows_of_f64, 1, WB_F64, (300, 70), (380, 80))
REDUCE(rows_of_f16, 1, WB_F16, (304, 70), (400, 80))
REDUCE(columns_of_few, 2, WB_F32, (100, 20), (130, 30))
REDUCE(columns_of_many, 2, WB_F32, (70, 1500), (60, 2000))
REDUCE(columns_of_i64, 2, WB_I64, (100, 300), (130, 280))
REDUCE(columns_of_f64, 2, WB_F64, (100, 300), (130, 280))
REDUCE(few_columns, 2, WB_F32, (3, 200), (4, 240))
REDUCE(all, 1, WB_F32, (3000), (2900))
REDUCE(all_of_many, 1, WB_F32, (300000), (400000))
REDUCE(all_of_many_i32, 1, WB_I32, (300000), (400000))
REDUCE(few_rows_of_many, 1, WB_F32, (100000, 3), (120000, 3))
REDUCE(few_columns_of_many, 2, WB_F32, (3, 100000), (3, 130000))
REDUCE(outer_and_inner, 5, WB_F32, (49, 12, 16), (35, 10, 8))
REDUCE(outer_and_pieces, 5, WB_BF16, (56, 3, 40), (64, 3, 48))
REDUCE(outer_and_inner_of_many, 5, WB_F32, (784, 3, 128), (400, 3, 200))
REDUCE(the_middle, 2, WB_F32, (40, 30, 20), (48, 40, 10))
REDUCE(few_in_the_middle, 10, WB_F32, (5, 50, 6, 7), (4, 42, 3, 8))
REDUCE(empty_rows, 1, WB_I32, (4, 0), (9, 0))

static void softmax_over(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes) {
    program_start(m, reduced, ndim, sizes);
    const uint16_t x = program_load(m, WB_F32),
                   scale = program_load_over(m, WB_F32, all_dims(m) & ~reduced, true);
    const uint16_t high = program_largest(m, WB_R_F32, x);
    program_next_phase(m);
    const uint16_t e =
        program_op(m, WB_CODE_exp, WB_R_F32,
                   program_op(m, WB_CODE_sub, WB_R_F32, x, program_spread(m, high)), NONE);
    const uint16_t total = program_sum(m, WB_R_F32, e);
    program_next_phase(m);
    const uint16_t scaled = program_op(m, WB_CODE_div, WB_R_F32, scale, total);
    program_store(m, WB_F32, program_op(m, WB_CODE_mul, WB_R_F32, e, program_spread(m, scaled)));
    m->phase = 2;
    program_store_row(m, WB_F32,
                      program_op(m, WB_CODE_add, WB_R_F32, high,
                                 program_op(m, WB_CODE_log, WB_R_F32, total, NONE)));
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

/* Variance as two passes, then normalised, with a weight for each row: three phases, sums of a full
 * value of a later phase. */
static void norm_over(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes) {
    program_start(m, reduced, ndim, sizes);
    const uint16_t x = program_load(m, WB_F32);
    const uint16_t part = program_constant(m, WB_R_F32, 1.0 / 64),
                   tiny = program_constant(m, WB_R_F32, 1e-5);
    const uint16_t total = program_sum(m, WB_R_F32, x);
    program_next_phase(m);
    const uint16_t mean = program_op(m, WB_CODE_mul, WB_R_F32, total, part);
    const uint16_t d = program_op(m, WB_CODE_sub, WB_R_F32, x, program_spread(m, mean));
    const uint16_t squares =
        program_sum(m, WB_R_F32, program_op(m, WB_CODE_square, WB_R_F32, d, NONE));
    program_store(m, WB_F32, d);
    program_next_phase(m);
    const uint16_t variance = program_op(m, WB_CODE_mul, WB_R_F32, squares, part);
    const uint16_t inverse = program_op(m, WB_CODE_rsqrt, WB_R_F32,
                                        program_op(m, WB_CODE_add, WB_R_F32, variance, tiny), NONE);
    const uint16_t o = program_op(m, WB_CODE_mul, WB_R_F32, d, program_spread(m, inverse));
    program_store(
        m, WB_F16,
        program_op(m, WB_CODE_mul, WB_R_F32, o, program_load_over(m, WB_F32, reduced, false)));
    program_store_row(m, WB_F32, mean);
    program_store_row(m, WB_F32, variance);
}

#define NORM(name, reduced, first, second)                                                         \
    static void name(program_maker *m, int variant) {                                              \
        const int64_t one[] = {EXPAND first}, other[] = {EXPAND second};                           \
        norm_over(m, reduced, (int)(sizeof one / sizeof *one), variant ? other : one);             \
    }
NORM(norm_of_rows, 1, (64, 200), (48, 100))
NORM(norm_of_planes, 5, (49, 12, 8), (61, 13, 9))
NORM(norm_of_columns, 2, (40, 64), (50, 72))
NORM(norm_of_long_planes, 5, (900, 3, 70), (1000, 3, 80))

/* A NaN is the largest; infinities are in order. */
static void largest_of_special(program_maker *m, int variant) {
    START(m, 1, variant ? 36 : 40, variant ? 60 : 50);
    const uint16_t x = program_load(m, WB_F32);
    const uint16_t l = program_largest(m, WB_R_F32, x);
    m->phase = 1;
    program_store_row(m, WB_F32, l);
    m->low = -PROGRAM_SPECIAL;
}

/* The place of the largest: a reduction in the second phase of what the first found. */
static void place_of_largest(program_maker *m, int variant) {
    START(m, 1, variant ? 92 : 100, variant ? 20 : 30);
    int64_t first[8];
    program_dense(m, 1, first);
    const uint16_t x = program_load(m, WB_F32);
    const uint16_t high = program_largest(m, WB_R_F32, x);
    program_next_phase(m);
    const uint16_t is_high =
        program_op_as(m, WB_CODE_eq, WB_R_F32, WB_R_BOOL, x, program_spread(m, high), NONE);
    const uint16_t place = program_op(m, WB_CODE_neg, WB_R_I64,
                                      program_source(m, WB_CODE_iota, WB_R_I64, 0, first), NONE);
    const uint16_t chosen = program_op_as(m, WB_CODE_select, WB_R_I64, WB_R_I64, is_high, place,
                                          program_constant(m, WB_R_I64, -1e9));
    const uint16_t last = program_largest(m, WB_R_I64, chosen);
    m->phase = 2;
    program_store_row(m, WB_I64, program_op(m, WB_CODE_neg, WB_R_I64, last, NONE));
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
    ROW(late_numbers),
    ROW(sources),
    ROW(sources_f64),
    ROW(far_numbers),
    ROW(one_dimension),
    ROW(broadcasting),
    ROW(short_runs),
    ROW(permuted),
    ROW(seven_dimensions),
    ROW(one_element),
    ROW(nothing),
    ROW(written_over),
    ROW(update),
    ROW(many_numbers),
    ROW(guarded),
    ROW(rows_of_few),
    ROW(rows_between),
    ROW(rows_of_many),
    ROW(rows_of_warps),
    ROW(many_rows_of_warps),
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
    ROW(outer_and_pieces),
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
