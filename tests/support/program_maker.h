/* Making a program for a test.
 *
 *     program_maker m;
 *     program_start(&m, 1, 2, (int64_t[]){100, 20});                  // rows of 100, reduced
 *     const uint16_t x = program_load(&m, WB_F32), total = program_sum(&m, WB_R_F32, x);
 *     m.phase = 1; // of what is added from here on
 *     program_store_row(&m, WB_F32, total);
 *
 * Every load and store has an argument of its own unless it is made "at" one. Stores come last, as
 * in all programs. */
#ifndef WB_TESTS_PROGRAM_MAKER_H
#define WB_TESTS_PROGRAM_MAKER_H

#include <weber/plugin.h>

/* As m.low: inputs are infinities, NaN, zeros of both signs and what lies between; results are the
 * same bits. */
#define PROGRAM_SPECIAL 12345.0

enum {
    MOST_INSTRUCTIONS = 256,
    MOST_ACCESSES = 96,
    MOST_PROGRAM_ARGUMENTS = 64,
    PROGRAM_LATE = 16, /* late numbers after the two words of random numbers */
};

typedef struct program_maker {
    wb_program program;
    wb_instruction instructions[MOST_INSTRUCTIONS];
    wb_access accesses[MOST_ACCESSES];
    wb_dtype dtypes[MOST_PROGRAM_ARGUMENTS]; /* of the arguments */
    int64_t counts[MOST_PROGRAM_ARGUMENTS];  /* elements that they have room for */
    bool is_output[MOST_PROGRAM_ARGUMENTS];
    int phase;        /* of what is added */
    double low, high; /* between which the inputs lie; whole numbers lie in that range, too */
    double tolerance; /* relative; 0: by the type */
} program_maker;

/* A domain of ndim sizes; bits of reduced. Starts anew. */
void program_start(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes);

uint16_t program_add(program_maker *m, wb_instruction i);
int program_argument_new(program_maker *m, wb_dtype dtype, bool is_output);

/* Strides of a dense array over the dimensions in mask; 0 in the others. */
void program_dense(const program_maker *m, uint32_t mask, int64_t *strides);

/* A new input, dense over the whole domain, or over the dimensions in mask. */
uint16_t program_load(program_maker *m, wb_dtype dtype);
uint16_t program_load_over(program_maker *m, wb_dtype dtype, uint32_t mask, bool row);
uint16_t program_load_at(program_maker *m, int argument, int64_t offset, const int64_t *strides,
                         bool row);
/* iota, uniform, normal: offset + sum of i * stride is the number */
uint16_t program_source(program_maker *m, wb_code code, wb_register type, int64_t offset,
                        const int64_t *strides);
uint16_t program_constant(program_maker *m, wb_register type, double number);

/* An elementwise operation; result: the register of its value. WB_NO_VALUE for an operand that is
 * none. */
uint16_t program_op(program_maker *m, wb_code code, wb_register type, uint16_t x, uint16_t y);
uint16_t program_op_as(program_maker *m, wb_code code, wb_register type, wb_register result,
                       uint16_t x, uint16_t y, uint16_t z);
uint16_t program_cast(program_maker *m, wb_register from, wb_register to, uint16_t x);

/* Of what phase m->phase computes. */
uint16_t program_sum(program_maker *m, wb_register type, uint16_t x);
uint16_t program_largest(program_maker *m, wb_register type, uint16_t x);
/* What is added afterwards belongs to the next phase. */
void program_next_phase(program_maker *m);
uint16_t program_spread(program_maker *m, uint16_t x);

/* A new output. */
void program_store(program_maker *m, wb_dtype dtype, uint16_t value);
void program_store_row(program_maker *m, wb_dtype dtype, uint16_t value);
void program_store_at(program_maker *m, int argument, uint16_t value, int64_t offset,
                      const int64_t *strides, bool row);

#endif
