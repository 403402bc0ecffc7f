/* The tape as a graph of values, and the values as units: programs, library calls and copies, with
 * their order and memory. */
#ifndef WB_EVALUATE_GRAPH_H
#define WB_EVALUATE_GRAPH_H

#include <weber/plugin.h>

#include "array/view.h"
#include "base/table.h"
#include "evaluate/tape.h"

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
    wb_attributes attributes;
    wb_payload *payload; /* of a call: its node's, if that has words; referred to */
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

/* Lists the readers of each value's memory, once for each graph. */
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
/* Lists again what all units need, from their members. False when out of memory. */
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

/* ---- place.c ---- */

bool wb_graph_place(wb_graph *graph);
/* True if only the unit `reader`, the call's epilogue, reads the call's result. */
bool wb_is_private(const wb_graph *graph, int32_t call, int32_t reader);

/* ---- check.c ---- */

/* False with an error recorded (WB_ERROR_INTERNAL) where something would be read before it is
 * written, or after something else was written there. After wb_graph_place. */
bool wb_graph_check(const wb_graph *graph);

#endif
