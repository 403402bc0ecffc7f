/* Programs for tests of what runs or renders them: every instruction, register, type in memory,
 * kind of access and shape of phases.
 *
 *     program_maker m;
 *     programs[i].make(&m, 0);       // m.program; 1: the same with other sizes */
#ifndef WB_TESTS_PROGRAMS_H
#define WB_TESTS_PROGRAMS_H

#include "support/program_maker.h"

typedef struct program_row {
    const char *name;
    void (*make)(program_maker *m, int variant);
} program_row;

extern const program_row programs[];
extern const int program_count;

#endif
