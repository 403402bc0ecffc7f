/* Programs for tests of what runs or renders them: every instruction, register, type in memory, kind of access and shape of phases.
 *
 *     program_maker m;
 *     programs[i].make(&m, 0);       // m.program; 1: the same with other sizes */
#ifndef WB_TESTS_PROGRAMS_H
#define WB_TESTS_PROGRAMS_H

#include <weber/plugin.h>

/* As m.low: inputs are infinities, NaN, zeros of both signs and what lies between. */
#define PROGRAM_SPECIAL 12345.0

enum { MOST_INSTRUCTIONS = 256, MOST_ACCESSES = 96, MOST_PROGRAM_ARGUMENTS = 64 };

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

typedef struct program_row {
    const char *name;
    void (*make)(program_maker *m, int variant);
} program_row;

extern const program_row programs[];
extern const int program_count;

/* A domain of ndim sizes; bits of reduced. Starts anew. */
void program_start(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes);

#endif
