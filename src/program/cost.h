/* The least work of a command, for weber profile. */
#ifndef WB_PROGRAM_COST_H
#define WB_PROGRAM_COST_H

#include <weber/plugin.h>

/* Operations on numbers: a multiplication and its addition are two, a function such as exp is one.
 * Bytes: each array, or the part that is used, counts as read or written once. */
typedef struct wb_cost {
    double operations, read_bytes, written_bytes;
} wb_cost;

wb_cost wb_cost_of_program(const wb_program *program);
wb_cost wb_cost_of_call(const wb_call *call);
/* Either may be NULL; a program that is a call's epilogue has the call's result in registers. */
wb_cost wb_cost_of_command(const wb_call *call, const wb_program *program);

#endif
