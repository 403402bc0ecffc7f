/* Units as the programs and calls that a backend compiles, one kernel for all that are equal. */
#ifndef WB_EVALUATE_EMIT_H
#define WB_EVALUATE_EMIT_H

#include "evaluate/graph.h"

/* ---- emit.c ---- */

/* A command in the making: a program or a call with the memory that it works on. */
typedef struct wb_emitted {
    wb_program program; /* owns its lists */
    int split;          /* number of leading dimensions of the domain that are a call's rows */
    wb_argument *arguments;
    int64_t argument_count, argument_capacity;
    int64_t instruction_capacity, access_capacity;
} wb_emitted;

/* Writes the unit as a program. places: a number for each value of the graph, 0 before the first
 * program, which only these functions read and write. keep: this many leading dimensions of its
 * domain are not joined with others; 0: any may be. */
bool wb_emit_program(const wb_graph *graph, int32_t *places, const wb_unit *unit, int keep,
                     wb_emitted *out);
/* Writes a program that copies the elements of value `from` into value `to`, to the places that
 * `layout`, of the same sizes, gives. */
bool wb_emit_copy(const wb_graph *graph, int32_t *places, int32_t from, int32_t to,
                  const wb_layout *layout, wb_emitted *out);
bool wb_emit_fill(const wb_graph *graph, int32_t to, double number, wb_emitted *out);
void wb_emitted_release(wb_emitted *emitted);
/* The memory of a value, with the offset of its first element. */
wb_argument wb_argument_of(const wb_graph *graph, int32_t v);

/* ---- call.c ---- */

/* Writes the library call of a value; offsets (may be NULL) is to be released with the kernel. */
bool wb_emit_call(const wb_graph *graph, int32_t v, wb_call *call, wb_argument *arguments,
                  int *count, int64_t **offsets);
/* The offset in wb_call of the member for the kind, and its size. */
size_t wb_call_member(wb_call_kind kind, size_t *size_bytes);
/* The row of an operation that is a call; for a scan, a row without uses. */
wb_call_row wb_call_row_for(int op);
int wb_call_result_count(int op);
/* True if the device takes the node, an offered call. */
bool wb_is_taken(const wb_device *device, const wb_array *node);
/* True if the device takes the node's f16 or bf16 inputs as they are; else it gets them as f32. */
bool wb_is_taken_in_halves(const wb_device *device, const wb_array *node);
/* True if a matrix product can read an operand of this layout. */
bool wb_matmul_reads(const wb_layout *layout);
/* True if attention can read q, k or v in this layout. */
bool wb_attention_reads(const wb_layout *layout);

/* ---- kernels.c ---- */

typedef struct wb_kernels {
    wb_table table;
    struct wb_kernel_entry *entries;
    int64_t capacity;
    uint64_t *keys;
    int64_t key_words, key_capacity;
    int64_t instruction_count, access_count; /* of all kernels */
} wb_kernels;

/* A kernel that the table owns; equal programs or calls get the same one. NULL with an error
 * recorded, or without one if the backend has no such kernel. */
void *wb_kernel_of_program(wb_kernels *kernels, const wb_device *device, const wb_program *program);
void *wb_kernel_of_call(wb_kernels *kernels, const wb_device *device, const wb_call *call,
                        const wb_program *epilogue, int split);
/* Hands all kernels over, as a list that the caller releases. False when out of memory: none
 * are. */
bool wb_kernels_hand_over(wb_kernels *kernels, void ***list, int64_t *count);
/* Releases the table and what it still owns. */
void wb_kernels_end(wb_kernels *kernels, const wb_backend *backend);

#endif
