/* How nodes become a plan. The stages, one file each:
 *
 *     order.c   the nodes behind the roots in order, and their key
 *     lower.c   macros expanded, operations offered, nodes written as values: a graph
 *     values.c  of these: equal ones merged, constants folded
 *     readers.c who reads each value
 *     units.c   the graph of units: what each needs, and their order
 *     fuse.c    values grouped into units: programs, library calls, copies
 *     sink.c    values moved to the programs that use them
 *     store.c   which values get memory
 *     emit.c    units written as programs and calls, with their operands' layouts
 *     kernels.c one kernel for all programs and calls that are equal
 *     updates.c which programs are updates, and which of these may run at once
 *     copies.c  which copies need not be made
 *     place.c   order of the units, memory of the values, donation
 *     gaps.c    the free stretches of the workspace
 *     check.c   that every value is read after it was written
 *     plan.c    kernels and commands: the finished plan
 *     scan.c    bodies of scans: where each step finds its arrays
 *     explain.c what became of it, in lines, for WEBER_DEBUG=plan
 *     pause.c   commands, bodies and collectives run in turn
 *     origins.c what messages and events say of a node
 *     numbers.c WEBER_DEBUG=nan: where the first NaN or infinity was made
 *     run.c     leaves bound, commands run, results handed to their nodes; the cache
 */
#ifndef WB_EVALUATE_PLAN_H
#define WB_EVALUATE_PLAN_H

#include <weber/plugin.h>

#include "array/body.h"
#include "array/view.h"
#include "base/events.h"
#include "base/table.h"
#include "device/device.h"
#include "evaluate/evaluate.h"
#include "ops/ops.h"
#include "program/cost.h"

/* ---- order.c ---- */

/* What a walk notes about a node on the tape. */
enum {
    WB_TAPE_LEAF = 1, /* evaluated: its buffer is read */
    WB_TAPE_ROOT = 2,
    WB_TAPE_STORED = 4,   /* gets memory of its own: roots, held nodes, nodes computed before */
    WB_TAPE_EXPOSED = 8,  /* somebody outside may read it later, and with it what it is made of */
    WB_TAPE_DONATED = 16, /* a leaf that nobody will read after this plan */
    WB_TAPE_SETTLED = 32, /* a new parameter or state: it should take over an old one's memory */
};

typedef struct wb_tape_node {
    wb_array *node;
    int32_t uses; /* references from nodes on the tape */
    /* evaluated views on the tape that hold a leaf's buffer and go with the plan */
    int32_t sharers;
    uint8_t marks;
} wb_tape_node;

typedef struct wb_tape {
    wb_tape_node *at; /* each after its inputs */
    uint64_t *key;
    int64_t count, capacity;
    int64_t words, words_capacity; /* key */
    struct wb_tape_step *stack;
    int64_t stack_capacity;
    uint64_t stamp;          /* of its walk */
    int64_t pending_moves;   /* their inputs have to be evaluated first, by plans of their own */
    int64_t unusable;        /* leaves without values: lost, or given to a body */
    bool keeps_recipes;      /* a node is exposed */
    const wb_device *device; /* where the plan runs */
    const wb_body *body;     /* whose tape it is: its leaves are placeholders; NULL: none */
} wb_tape;

static inline bool wb_is_pending_move(const wb_array *x) {
    return x->op == WB_OP_move && !x->buffer;
}

/* True where a plan reads x's buffer. An evaluated view of evaluated data is seen through, so that
 * both are known to share memory; but a slice is not, as its place would be part of the key. */
static inline bool wb_is_plan_leaf(const wb_array *x) {
    if (!x->buffer) return x->op == WB_OP_placeholder;
    const bool is_view = x->op == WB_OP_reshape || x->op == WB_OP_permute || x->op == WB_OP_expand;
    return !is_view || x->ninputs == 0 || x->inputs[0]->buffer != x->buffer;
}

/* Orders what the pending roots are made of, through pending moves as well. */
bool wb_tape_walk(wb_tape *tape, int count, wb_array *const *roots);

/* After a walk that met no pending moves: marks the nodes, chooses the device and writes the
 * key. */
bool wb_tape_order(wb_tape *tape, int count, wb_array *const *roots);

/* The tape of a body that is to run on the device: the walk, marks and key. It is the body's, and
 * changes with the next call. NULL with an error recorded. */
const wb_tape *wb_body_order(wb_body *body, const wb_device *device);
void wb_tape_end(wb_tape *tape);

/* Where the tape has the node; -1: nowhere. node->index may be another walk's where a body is
 * planned, which is later than its walk. */
int64_t wb_tape_place(const wb_tape *tape, const wb_array *node);

/* ---- origins.c ---- */

/* What made the values of x: of one result of several, the operation itself. */
const wb_array *wb_maker_of(const wb_array *x);
const char *wb_operation_of(const wb_array *x);
/* "Dense(2 => 3), layer 1 of Chain", or ""; of an optimiser's step, the layer of the gradient. */
const char *wb_layer_of(const wb_array *x);
/* "forward", "backward" or "update". */
const char *wb_direction_of(const wb_array *x);

/* ---- numbers.c ---- */

/* WEBER_DEBUG=nan */
bool wb_watches_numbers(void);
/* After the marks: what is computed is stored, and nothing is overwritten, so that
 * wb_numbers_check finds the values. */
void wb_numbers_store(wb_tape *tape);
/* After a plan: an error that names the first operation that made a root of it NaN or infinite. */
wb_status wb_numbers_check(const wb_tape *tape);

/* ---- lower.c ---- */

typedef enum wb_value_kind {
    WB_VALUE_LEAF,
    WB_VALUE_CONSTANT,
    WB_VALUE_LATE,
    WB_VALUE_SOURCE, /* iota, uniform, normal: computed inside programs */
    WB_VALUE_ELEMENT,
    WB_VALUE_REDUCE,
    WB_VALUE_VIEW,
    WB_VALUE_JOIN,
    WB_VALUE_CALL,
    WB_VALUE_RESULT, /* a further result of a call */
} wb_value_kind;

enum { WB_NO_UNIT = -1 };

/* What most passes look at comes first, so that it lies in one or two lines of the cache. */
typedef struct wb_value {
    uint8_t kind, op, dtype, ndim;
    int32_t ninputs;
    int32_t *input_list; /* values; only where there are more than three */
    int32_t small_inputs[3];
    int32_t base; /* views that need no copy: the value whose memory they show; else itself */
    int32_t unit;
    int32_t reader;   /* the program that read it last while programs were made, plus 1; 0: none */
    int32_t output;   /* number of the plan's output, or -1 */
    int32_t memory;   /* entry of the plan's memory table */
    int32_t layout;   /* in the graph's list, see wb_value_layout; -1: dense */
    int32_t holder;   /* the copy in whose memory it is stored (copies.c); -1: it has its own */
    int32_t tape;     /* leaf, late, random, stored: place of its node on the tape; -1 */
    int32_t callable; /* number of the callable whose first result it is, from 1 on; 0: none */
    /* in its unit: row values are ready before this phase, full ones are computed in it */
    uint8_t phase;
    bool stored;  /* needs memory */
    bool is_step; /* computed by an optimiser's step */
    bool is_told; /* a number that a step is told: computed apart, once for all steps */
    int32_t late; /* late, random: first of its late words */
    int64_t sizes[WB_MAX_DIMS];
    int64_t attributes[WB_ATTRIBUTES];
    double constant;
    int64_t offset_bytes; /* in the workspace */
    const char *apart;    /* why it began a unit of its own; NULL: nothing to join */
} wb_value;

/* An operation that the device takes: programs list it by its name. */
typedef struct wb_named_node {
    const char *name;
    double numbers[WB_CALLABLE_NUMBERS];
    int32_t in[WB_CALLABLE_INPUTS], out[WB_CALLABLE_RESULTS]; /* values; -1: none */
} wb_named_node;

typedef struct wb_graph {
    wb_value *values;
    int64_t count, capacity;
    wb_layout *layouts; /* of the values that are not dense */
    int64_t layout_count, layout_capacity;
    wb_named_node *callables;
    int64_t callable_count, callable_capacity;
    const wb_tape *tape;
    int32_t *of_tape;      /* value of each node on the tape, or -1 */
    int64_t *reader_start; /* readers.c: those of value v are readers[reader_start[v] ..] */
    int32_t *readers;
    struct wb_unit *units;
    int64_t unit_count, unit_capacity;
    int32_t first_unit, last_unit; /* units.c: the ends of the list in order; -1: none */
    int32_t search_mark;           /* of the last search among units */
    int32_t *order;                /* units as they run */
    int64_t order_count, workspace_bytes;
    int32_t *known; /* of each value, its place among those of the program that is emitted */
    int32_t leaf_count, output_count, late_count; /* memory table: leaves, outputs, workspace */
    int32_t *leaves;                              /* places on the tape */
    int32_t *outputs;                             /* values */
    int32_t *late;                                /* place on the tape << 1 | word */
    int32_t settled_count;                        /* the first outputs: parameters and states */
    int32_t missed_donations;
    int32_t last_collective; /* value; -1: there is none */
    bool fuse;
    bool explain; /* WEBER_DEBUG=plan */
} wb_graph;

bool wb_graph_lower(wb_graph *graph, const wb_tape *tape);
void wb_graph_release(wb_graph *graph);

/* ---- values.c ---- */

/* Writes the values of a graph; ends with wb_table_release of the table. Functions give the number
 * of a value, -1 when out of memory. */
typedef struct wb_values {
    wb_graph *graph;
    wb_table table; /* by what tells them apart; under the values' numbers */
    bool is_step;   /* what is written next belongs to an optimiser's step */
} wb_values;

wb_value wb_blank_value(const wb_array *node, wb_value_kind kind);
/* The value, or an equal one that is there; takes over its list of inputs. */
int32_t wb_add_value(wb_values *values, wb_value v);
/* The same of an elementwise value, or what it comes to: a constant, one of its inputs. */
int32_t wb_add_element(wb_values *values, const wb_value *v);
int32_t wb_cast_value(wb_values *values, int32_t from, wb_dtype dtype);
/* The same, rounded to that type if it is a half: a cast to halves alone only says how the result
 * is stored, since programs compute in f32. Attribute 0 of such a cast is 1. */
int32_t wb_round_value(wb_values *values, int32_t from, wb_dtype dtype);
/* True if v has the sizes and type of the result. */
bool wb_stands_for(const wb_values *values, int32_t v, const wb_value *result);
/* A constant of this type: rounded, cut or wrapped as a cast does it. */
double wb_constant_as(wb_dtype dtype, double number);

static inline const int32_t *wb_value_inputs(const wb_value *v) {
    return v->ninputs > 3 ? v->input_list : v->small_inputs;
}

/* Where its elements lie, counted from its memory, or its holder's; a view's, from that of its
 * base. */
static inline wb_layout wb_value_layout(const wb_graph *graph, const wb_value *v) {
    return v->layout < 0 ? wb_layout_dense(v->ndim, v->sizes) : graph->layouts[v->layout];
}

static inline int64_t wb_value_count(const wb_value *v) {
    return wb_count_sizes(v->ndim, v->sizes);
}

/* ---- separate.c ---- */

/* Stored results whose values were found equal get memory each, unless they are views of one array:
 * two parameters that begin with the same numbers are no tie. */
bool wb_graph_separate(wb_graph *graph);

/* ---- readers.c ---- */

/* Lists, once for each graph, who reads the memory of each value. */
bool wb_graph_list_readers(wb_graph *graph);

/* The values that read the memory of v, itself or through views, in order; those that read it
 * twice stand there twice. Views, which show memory and read none, are left out. */
static inline const int32_t *wb_value_readers(const wb_graph *graph, int32_t v, int64_t *count) {
    *count = graph->reader_start[v + 1] - graph->reader_start[v];
    return graph->readers + graph->reader_start[v];
}

/* The value whose memory v shows: v itself, or what it is a view of. */
static inline int32_t wb_value_base(const wb_graph *graph, int32_t v) {
    return graph->values[v].base;
}

/* ---- units.c ---- */

typedef enum wb_unit_kind { WB_UNIT_PROGRAM, WB_UNIT_CALL, WB_UNIT_COPY } wb_unit_kind;

/* As with values: what searches look at comes first. */
typedef struct wb_unit {
    int32_t merged_into; /* absorbed by another unit, or -1 */
    int32_t fused_into;  /* of a call's program: that call; -1 */
    int32_t mark;        /* of the last search that found it */
    int32_t last;        /* greatest member */
    int64_t label;       /* less than that of every unit after it */
    /* units that have to run before this one: number << 1 | 1 if what it reads is a view of theirs.
     * One may stand there several times, or under the number that it had before it was merged:
     * wb_unit_needed tells. */
    int32_t *needs;
    int64_t need_count;
    int32_t *members; /* values: a program's in order; a call's or copy's one */
    int64_t member_count;
    int32_t before, after; /* its neighbours in the list in order; -1: none */
    wb_unit_kind kind;
    int32_t epilogue; /* a call's fused program unit, or -1; its own place: fused_into */
    int ndim;
    uint32_t reduced;
    int64_t sizes[WB_MAX_DIMS]; /* a program's domain */
    int phases;
    int32_t position;  /* in the plan */
    bool is_update;    /* settles parameters or states, and no other unit needs it */
    bool is_postponed; /* an update that comes last, with others */
    int64_t need_capacity, member_capacity;
} wb_unit;

/* The unit, or for a program that is fused to a call that call. */
int32_t wb_unit_runs_with(const wb_graph *graph, int32_t u);
/* The unit that computes v (through views), or WB_NO_UNIT for leaves, constants and inline
 * sources. */
int32_t wb_value_unit(const wb_graph *graph, int32_t v);

/* Notes that the unit needs another one, or those that compute a member's inputs. False when out of
 * memory. */
bool wb_unit_need(wb_graph *graph, int32_t unit, int32_t needed, bool by_view);
bool wb_unit_need_inputs(wb_graph *graph, int32_t unit, int32_t member);
/* The unit, as it is now, that number i of the list of needs stands for. */
int32_t wb_unit_needed(const wb_graph *graph, const wb_unit *unit, int64_t i);
/* True if the unit reads something of unit `of`, or of itself, as a view. */
bool wb_unit_reads_view(const wb_graph *graph, int32_t unit, int32_t of);
/* Lists what all units need anew, from their members. False when out of memory. */
bool wb_units_list_needs(wb_graph *graph);

/* A new unit comes first, if it needs none, or last. */
void wb_unit_put_first(wb_graph *graph, int32_t unit);
void wb_unit_put_last(wb_graph *graph, int32_t unit);

enum { WB_MOST_LOOKS = 128 };

/* Whether units can come before another one, `first`. Asking changes nothing; an answer that is yes
 * holds until a unit is moved. */
typedef struct wb_question {
    wb_graph *graph;
    int32_t first, mark, looks;
    int32_t count; /* what comes after `first` so far, and would have to be moved */
    int32_t found[WB_MOST_LOOKS];
} wb_question;

void wb_ask_before(wb_graph *graph, int32_t unit, wb_question *q);
/* True if this unit, too, comes before the first one, or can with all that it needs. False: it
 * needs the first one, or the search was given up; then the question has been answered. */
bool wb_may_come(wb_question *q, int32_t unit);
/* True if the two can be one: no third unit lies on a way between them (or none was found to). */
bool wb_may_unite(wb_graph *graph, int32_t a, int32_t b, wb_question *q);

/* What was answered with yes is done: those asked about are moved; the two become one in the order,
 * where the earlier one stood, and `into` needs what both need. False when out of memory. */
void wb_move_before(wb_question *q);
bool wb_unite(wb_question *q, int32_t into, int32_t from);

/* ---- fuse.c ---- */

/* Puts values into units, and says which of them are stored. False when out of memory. */
bool wb_graph_fuse(wb_graph *graph);

/* True for what is computed inside the programs that read it: numbers, iota, random sources. */
static inline bool wb_value_is_inline(const wb_value *v) {
    return v->kind == WB_VALUE_CONSTANT || v->kind == WB_VALUE_LATE || v->kind == WB_VALUE_SOURCE;
}
/* True for what programs are made of. */
static inline bool wb_value_is_fused(const wb_value *v) {
    return v->kind == WB_VALUE_ELEMENT || v->kind == WB_VALUE_REDUCE;
}
/* True if v has the sizes of the unit's domain; sizes of 1 at the end do not count. */
bool wb_value_is_full(const wb_unit *unit, const wb_value *v);
/* True for a row value of the unit: one for each combination of the dimensions that are not
 * reduced. */
bool wb_value_is_row(const wb_unit *unit, const wb_value *v);

/* True for a sum that the unit, which is v's, computes beside its rows: no other value of the unit
 * reads it, since it is known when the program ends. */
bool wb_value_is_side_sum(const wb_graph *graph, const wb_unit *unit, const wb_value *v);

/* A program of its own for the member. Its number, or -1 when out of memory. */
int32_t wb_unit_new_program(wb_graph *graph, int32_t member);

enum { WB_MOST_MEMBERS = 160 };

/* The phase that v has in a unit whose members' phases are known: a full value's is the one in
 * which it is computed, a row value's is how many must have ended. */
int wb_phase_in(const wb_graph *graph, int32_t unit, const wb_value *v);
/* The phases that the unit needs for its own, and for v, which has that phase. */
int wb_phases_with(const wb_graph *graph, const wb_unit *u, const wb_value *v, int phase);

/* ---- sink.c ---- */

/* Moves values to the programs that alone use them. False when out of memory. */
bool wb_graph_sink(wb_graph *graph);

/* ---- store.c ---- */

/* Marks the values that need memory: what another unit reads, and what leaves the plan. False when
 * out of memory. */
bool wb_graph_store(wb_graph *graph);

/* ---- updates.c ---- */

/* Finds the updates, where the device joins them. Outputs are numbered before. */
bool wb_graph_find_updates(wb_graph *graph);
/* The postponed ones, alike ones side by side. NULL when out of memory. */
wb_unit **wb_graph_postponed(const wb_graph *graph, int64_t *count);
/* True if the unit at that position of the order is an update that may run at once with those
 * before it, from *first on; otherwise *first becomes its own position. */
bool wb_graph_is_concurrent(const wb_graph *graph, int64_t position, int64_t *first);

/* ---- copies.c ---- */

/* Gives values their place in copies that would read them alone. Outputs are numbered before. False
 * when out of memory. */
bool wb_graph_spare_copies(wb_graph *graph);

/* ---- gaps.c ---- */

typedef struct wb_gaps {
    struct wb_gap *nodes;
    int64_t count, capacity;
    int32_t root, unused;
    uint32_t random;
} wb_gaps;

/* One gap from 0 on without an end. False when out of memory, as for wb_gaps_give. */
bool wb_gaps_begin(wb_gaps *gaps);
void wb_gaps_end(wb_gaps *gaps);
/* The offset of the first stretch of this size, which is not 0. */
int64_t wb_gaps_take(wb_gaps *gaps, int64_t size);
bool wb_gaps_give(wb_gaps *gaps, int64_t offset, int64_t size);

/* ---- place.c ---- */

bool wb_graph_place(wb_graph *graph);
/* True if only the unit `reader`, fused behind the call, reads the call's result. */
bool wb_is_private(const wb_graph *graph, int32_t call, int32_t reader);

/* ---- check.c ---- */

/* False with an error recorded (WB_ERROR_INTERNAL) where something would be read before it is
 * written, or after something else was written there. After wb_graph_place. */
bool wb_graph_check(const wb_graph *graph);

/* ---- emit.c ---- */

/* A command in the making: a program or a call with the memory that it works on. */
typedef struct wb_emitted {
    wb_program program; /* owns its lists */
    int split;          /* leading dimensions of the domain that make up a call's rows */
    wb_argument *arguments;
    int64_t argument_count, argument_capacity;
    int64_t instruction_capacity, access_capacity;
} wb_emitted;

/* The unit as a program. keep: this many leading dimensions of its domain are not joined with the
 * rest; 0: no matter. */
bool wb_emit_program(const wb_graph *graph, const wb_unit *unit, int keep, wb_emitted *out);
/* Copies the elements of value `from` to where `layout`, of the same sizes, puts them in value
 * `to`. */
bool wb_emit_copy(const wb_graph *graph, int32_t from, int32_t to, const wb_layout *layout,
                  wb_emitted *out);
bool wb_emit_fill(const wb_graph *graph, int32_t to, double number, wb_emitted *out);
void wb_emitted_release(wb_emitted *emitted);
/* The memory of a value, an element's offset included. */
wb_argument wb_argument_of(const wb_graph *graph, int32_t v);

/* ---- call.c ---- */

/* The library call that a value stands for; offsets (may be NULL) is to be released with the
 * kernel. */
bool wb_emit_call(const wb_graph *graph, int32_t v, wb_call *call, wb_argument *arguments,
                  int *count, int64_t **offsets);
/* The row of an operation that is a call; of a scan one without uses. */
wb_call_row wb_call_row_for(int op);
int wb_call_result_count(int op);
/* True if the device takes the node, which is a call that it is offered. */
bool wb_is_taken(const wb_device *device, const wb_array *node);
/* True if it takes the node's halves as they are: else they come as f32. */
bool wb_is_taken_in_halves(const wb_device *device, const wb_array *node);
/* True if a matrix product can read an operand of this layout. */
bool wb_matmul_reads(const wb_layout *layout);
/* Attention: of q, k and v. */
bool wb_attention_reads(const wb_layout *layout);

/* ---- kernels.c ---- */

typedef struct wb_kernels {
    wb_table table;
    struct wb_kernel_entry *entries;
    int64_t capacity;
    uint64_t *keys;
    int64_t key_words, key_capacity;
    int64_t instruction_count, access_count; /* of all of them */
} wb_kernels;

/* Kernels that the table owns, one for all that ask for the same. NULL: with an error recorded, or
 * because the backend has none. */
void *wb_kernel_of_program(wb_kernels *kernels, const wb_device *device, const wb_program *program);
void *wb_kernel_of_call(wb_kernels *kernels, const wb_device *device, const wb_call *call,
                        const wb_program *epilogue, int split);
/* Gives all of them away, as a list to be released. False when out of memory: nothing is given. */
bool wb_kernels_hand_over(wb_kernels *kernels, void ***list, int64_t *count);
/* Releases the table and what it still owns. */
void wb_kernels_end(wb_kernels *kernels, const wb_backend *backend);

/* ---- plan.c ---- */

/* The plan's memory table: leaves, outputs, workspace, and what commands keep; a body's workspace
 * holds that. */
typedef struct wb_plan_output {
    int32_t memory; /* entry of the table; a donor's, where it takes over a leaf's buffer */
    bool is_donated;
    const char *tag; /* of its memory */
    size_t size_bytes;
} wb_plan_output;

/* What a command keeps from run to run of a plan: the leaf that it is made of, as it was then. */
typedef struct wb_plan_kept {
    int32_t leaf;
    int64_t offset;
    uint64_t contents; /* of wb_buffer_contents */
} wb_plan_kept;

typedef struct wb_plan_view { /* a node on the tape that is given an output's or a leaf's memory */
    int32_t tape, memory;
    wb_layout layout;
} wb_plan_view;

/* Where entry i of the memory table of a body is: in the first step at `first`; in step t, which
 * may be 0 too, at even[t & 1], t strides on. Arguments of the plan around it. */
typedef struct wb_scan_memory {
    wb_argument first, even[2];
    int64_t stride_bytes;
} wb_scan_memory;

/* A carry that each step writes where it was is first copied there. */
typedef struct wb_scan_start {
    wb_argument from, to;
    int64_t size_bytes;
} wb_scan_start;

/* A body that runs between two commands of its plan. */
typedef struct wb_plan_scan {
    int64_t steps;
    struct wb_plan *body;   /* referred to; NULL: no scan */
    wb_scan_memory *places; /* of leaves and outputs; then its workspace */
    wb_scan_start *starts;
    int32_t start_count;
} wb_plan_scan;

/* What the host does between two commands: a scan, or a collective. */
typedef struct wb_plan_pause {
    int32_t before; /* the command that comes next */
    int32_t tape;   /* place of its node: a body has late values, a collective its number */
    wb_plan_scan scan;
    wb_argument from, to; /* of a collective */
    bool is_begun;        /* a collective that goes on while commands run */
    bool is_wait;         /* no work: waits until `left` of those that were begun are left */
    int32_t left;
} wb_plan_pause;

typedef struct wb_plan {
    int32_t refs;                  /* the cache, and plans whose body it is */
    int64_t runs;                  /* so far, with the one that runs */
    struct wb_plan *next;          /* in its bucket */
    struct wb_plan *newer, *older; /* by last use */
    uint64_t hash;
    uint64_t *key;
    int64_t words;
    const wb_device *device;
    int32_t leaf_count, output_count, view_count, command_count, late_count;
    int32_t *leaves; /* places on the tape, in the order of the memory table */
    wb_plan_output *outputs;
    wb_plan_view *views;
    wb_command *commands;
    int32_t *sources; /* places on the tape of what commands compute, or -1; NULL: not noted */
    wb_cost *costs;   /* of the commands, if these are noted */
    void **kernels;   /* of the commands, each once */
    int64_t kernel_count;
    int32_t *late; /* place on the tape << 1 | which word, for each late word */
    size_t workspace_bytes, size_bytes;
    int32_t missed_donations;
    bool checks_indices; /* a device may say later that one was bad */
    bool has_collectives;
    wb_plan_pause *pauses; /* in the order of the commands */
    int32_t pause_count;
    int32_t *results; /* of a body: the outputs that hold its results */
    /* room for the memory tables and late words of the bodies that run at once */
    int64_t body_entries, body_late;
    wb_argument *arguments; /* of all commands */
    wb_command *keepers;    /* copies: those that keep something of fixed operands */
    int32_t keeper_count;
    wb_plan_kept *kept; /* of each of them, and its memory; NULL: the plan is a body */
    void *kept_memory;
    size_t kept_bytes;
    int64_t **offsets; /* batch offsets of matrix products */
    int32_t offset_count;
} wb_plan;

wb_plan *wb_plan_new(const wb_tape *tape, uint64_t hash);
void wb_plan_unref(wb_plan *plan);

/* ---- run.c ---- */

/* The plan of a body on the device, from the thread's cache or new, with a reference for the
 * caller. NULL with an error recorded. */
wb_plan *wb_plan_of_body(wb_body *body, const wb_device *device);

/* ---- scan.c ---- */

/* Memory tables and late words that one run needs for bodies. */
typedef struct wb_scan_room {
    wb_memory *memory;
    uint64_t *late;
    int64_t kernels; /* commands that ran */
    int64_t run;     /* number of the plan's run, from 1 on */
    bool has_run;    /* something was queued */
} wb_scan_room;

/* Plans the body of the scan, a value that is a call. scratch: memory that comes behind all else in
 * the workspace; *scratch_bytes is given how much the body wants there. False with an error
 * recorded. */
bool wb_scan_plan(const wb_graph *graph, int32_t value, wb_argument scratch, wb_plan_scan *scan,
                  int64_t *scratch_bytes);
void wb_scan_release(wb_plan_scan *scan);
/* Runs the body for each step. node: the scan's. */
wb_status wb_scan_run(const wb_plan_scan *scan, const wb_array *node, const wb_memory *memory,
                      wb_scan_room *room, int64_t draws);

/* ---- device_times.c ---- */

/* The command that was queued last at the time `queued` is told as done by the device when it is;
 * nothing where the backend has no events that can be looked at. */
void wb_note_device_time(const wb_device *device, const wb_event_info *info, double queued);

/* ---- pause.c ---- */

/* Runs the plan's commands and, between them, its bodies and collectives. draws: by how much random
 * counters of bodies are further on than their nodes say. */
wb_status wb_plan_run(const wb_plan *plan, const wb_tape *tape, const wb_memory *memory,
                      const uint64_t *late, wb_scan_room *room, int64_t draws);
/* Where an argument is in that memory table. */
static inline wb_memory wb_plan_place(const wb_memory *memory, const wb_argument *a) {
    return (wb_memory){memory[a->memory].handle, memory[a->memory].offset_bytes + a->offset_bytes};
}
wb_status wb_plan_copy(const wb_device *device, wb_copy_kind kind, wb_memory to, wb_memory from,
                       int64_t size_bytes);

/* ---- explain.c ---- */

bool wb_plan_is_explained(void);
void wb_plan_explain(const wb_graph *graph, const wb_plan *plan);

#endif
